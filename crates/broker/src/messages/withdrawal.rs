//! Taking messages out of a queue so that they can stand in another one.

use super::entries::{BLOCK, index_of, pieces};
use super::entry::{Flags, MOVER, NOBODY};
use super::leaving::{Return, Returned};
use super::{Dequeued, Messages, Order, Run};
use crate::message::{Batch, Incoming, MessageMeta, NO_OVERLAY};
use mochila_wire::Now;

/// Messages on their way from one queue to another, in order.
///
/// They still stand where they stood, out of everybody's reach, until it is known that the other
/// queue has them; so none is lost or out of place if it refuses some.
#[derive(Debug, Default)]
#[must_use = "the messages would be out of everybody's reach for ever"]
pub(crate) struct Withdrawal {
    /// What the other queue gets: the same bytes, and what has happened to each message.
    pub(crate) batch: Batch,
    /// Where each message of the batch stands.
    positions: Vec<u64>,
}

impl Withdrawal {
    /// The messages whose places in the batch are in order and not among `refused`, or are.
    fn runs(&self, refused: &[u32], is_refused: bool) -> Vec<Run> {
        let mut refused = refused.iter().peekable();
        let mut runs: Vec<Run> = Vec::new();
        for (index, position) in self.positions.iter().enumerate() {
            if refused.next_if(|refused| **refused as usize == index).is_some() != is_refused {
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end() == *position => last.len += 1,
                _ => runs.push(Run::new(*position, 1)),
            }
        }
        runs
    }

    /// Messages that the other queue has taken, by where they stood.
    pub(crate) fn moved(&self, refused: &[u32]) -> Vec<Run> {
        self.runs(refused, false)
    }

    /// Messages that it has not.
    pub(crate) fn left(&self, refused: &[u32]) -> Vec<Run> {
        self.runs(refused, true)
    }
}

impl Messages {
    /// Withdraws those messages of a run that are available.
    pub(crate) fn withdraw(&mut self, now: Now, run: Run, out: &mut Withdrawal) {
        out.batch.may_stay = true;
        for there in self.take_available(run) {
            for (number, indexes) in pieces(there) {
                for index in indexes {
                    self.withdraw_one(now, number * BLOCK + index as u64, out);
                }
            }
        }
    }

    /// Removes withdrawn messages for good: they stand elsewhere now.
    pub(crate) fn let_go(&mut self, run: Run) -> Dequeued {
        self.accept(run, MOVER)
    }

    /// Makes withdrawn messages available again, each in its place.
    pub(crate) fn put_back(&mut self, run: Run, now_ms: u64) -> Returned {
        self.release(run, MOVER, Return::Untried, now_ms)
    }

    /// Removes those messages of a run that are available.
    pub(crate) fn purge(&mut self, run: Run) -> Dequeued {
        let mut dequeued = Dequeued::default();
        for there in self.take_available(run) {
            dequeued.merge(self.accept(there, NOBODY));
        }
        dequeued
    }

    /// The available messages of a run, which are not available any more.
    fn take_available(&mut self, run: Run) -> Vec<Run> {
        let mut there = Vec::new();
        self.available.take_out(run, |run| there.push(run));
        if let Order::Levels(levels) = &mut self.order {
            there.iter().for_each(|run| levels.remove(&self.entries, *run));
        }
        there
    }

    fn withdraw_one(&mut self, now: Now, position: u64, out: &mut Withdrawal) {
        let (number, index) = (position / BLOCK, index_of(position));
        let block = self.entries.block_mut(number).expect("what is available has an entry");
        let expiry_ms = block.expiry_ms(index);
        let entry = block.get_mut(index).expect("what is available has an entry");
        entry.holder = MOVER;
        let entry = *entry;
        if let Order::Groups(groups) = &mut self.order {
            groups.withdraw(&mut self.entries, position);
        }
        let flags = entry.flags;
        let left_ms = expiry_ms.saturating_sub(now.mono_ms);
        let segment = self.slots.segment(entry.segment);
        let meta = MessageMeta {
            message_format: segment.message_format(),
            durable: flags.any(Flags::DURABLE),
            priority: entry.priority,
            ttl_ms: flags.any(Flags::TTL).then(|| u32::try_from(left_ms).unwrap_or(u32::MAX)),
            absolute_expiry_ms: flags
                .any(Flags::EXPIRES)
                .then(|| now.wall_ms.saturating_add_unsigned(left_ms)),
            delivery_count: entry.delivery_count,
            first_acquirer: flags.any(Flags::CLAIMS_FIRST),
            has_delivery_annotations: flags.any(Flags::DELIVERY_ANNOTATIONS),
        };
        let message = Incoming {
            segment: 0,
            offset: entry.offset,
            len: entry.len,
            size: self.slots.size(&entry),
            overlay: NO_OVERLAY,
            meta,
            head: entry.head(),
            past: flags.past(),
        };
        let overlay = match flags.any(Flags::OVERLAY) {
            true => self.overlays.get(&position),
            false => None,
        };
        out.batch.add_moved(segment, message, overlay);
        out.positions.push(position);
    }
}
