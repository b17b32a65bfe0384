//! The last message of each key.

use super::entries::{BLOCK, Block, Entries};
use super::groups::{Directory, Link};
use super::indexes;
use crate::budget::{Budget, Reservation};
use crate::message::{Batch, MessageName, Named};
use crate::settings::Naming;
use std::sync::Arc;

/// The keys of a queue that keeps one message of each, the last.
///
/// A key is like a group of which only one message may stay; it is gone when that message is.
#[derive(Debug)]
pub(crate) struct LastValues {
    naming: Arc<Naming>,
    keys: Directory,
    /// How many messages have links.
    links: u64,
    /// Messages that have been replaced and are still in the queue.
    replaced: Vec<u64>,
    reservation: Reservation,
}

impl LastValues {
    pub(crate) fn new(naming: Arc<Naming>, budget: &Arc<Budget>) -> LastValues {
        LastValues {
            naming,
            keys: Directory::default(),
            links: 0,
            replaced: Vec::new(),
            reservation: budget.charge(0),
        }
    }

    pub(crate) fn naming(&self) -> &Arc<Naming> {
        &self.naming
    }

    /// The message that one with this key will replace.
    pub(crate) fn last(&mut self, key: Option<MessageName<'_>>) -> Option<u64> {
        let number = self.keys.find(&key?);
        let last = self.keys.group(number).only();
        if last.is_none() {
            self.keys.leave(number);
        }
        last
    }

    /// The messages of a batch are about to be enqueued.
    pub(crate) fn expect(&mut self, batch: &Batch) {
        self.keys.expect(batch);
    }

    /// A message has become the last entry of this block: it gets its link, and is the last of its
    /// key.
    #[inline]
    pub(crate) fn link(&mut self, batch: &Batch, named: Named, position: u64, block: &mut Block) {
        let Some(number) = self.keys.number(batch, named) else {
            block.push_link(Link::NONE);
            return;
        };
        block.push_link(Link::of(number));
        let before = self.keys.group_mut(number).keep_only(position);
        self.replaced.extend(before);
    }

    /// So many messages have got their links.
    pub(crate) fn linked(&mut self, messages: u64) {
        self.links += messages;
        self.charge();
    }

    /// Messages that have been replaced, to be taken out of the queue whoever has them.
    pub(crate) fn take_replaced(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.replaced)
    }

    /// Messages of one block have left the queue.
    pub(crate) fn dequeued(&mut self, entries: &Entries, block: u64, mask: u128) {
        self.links -= u64::from(mask.count_ones());
        for position in indexes(mask).map(|index| block * BLOCK + index) {
            let link = entries.link(position);
            if !link.is_none() && self.keys.group_mut(link.group).let_go(position) {
                self.keys.leave(link.group);
            }
        }
        self.charge();
    }

    /// Bytes of memory that keys take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.links * size_of::<Link>() as u64 + self.keys.memory_bytes()
    }

    /// Gives up what is kept for the next messages.
    pub(crate) fn trim(&mut self) {
        self.keys.trim();
        self.replaced = Vec::new();
        self.charge();
    }

    fn charge(&mut self) {
        self.reservation.follow(self.memory_bytes());
    }
}
