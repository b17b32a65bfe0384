//! The messages of one queue: where each stands, who has it, and when it goes.
//!
//! Everything here changes descriptors; payload is neither read nor copied.

mod bits;
mod compact;
mod dead;
mod entries;
mod entry;
mod expiry;
mod groups;
mod last_values;
mod leaving;
mod levels;
mod name;
mod positions;
mod slots;
mod taking;
mod walking;
mod window;
mod withdrawal;

pub(crate) use bits::Bits;
pub(crate) use compact::Compaction;
pub(crate) use dead::{Cascade, DeadLetters, Death, Grave};
pub(crate) use entry::Flags;
pub(crate) use groups::{GroupState, Groups, Handover};
pub(crate) use leaving::{Dequeued, Return};
pub(crate) use levels::{Choice, Levels};
pub(crate) use positions::{Positions, Run};
pub(crate) use taking::{Acquired, Taker};
pub(crate) use walking::Walk;
pub(crate) use withdrawal::Withdrawal;

use crate::budget::Budget;
use crate::message::{Batch, Incoming, Overlay, Segment};
use crate::settings::{Arrangement, Naming};
use entries::{BLOCK, Block, Entries, index_of, mask_of, pieces};
use entry::Entry;
use expiry::Expiry;
use last_values::LastValues;
use mochila_wire::Now;
use slots::Slots;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The messages of a queue, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    entries: Entries,
    available: Positions,
    slots: Slots,
    overlays: BTreeMap<u64, Arc<Overlay>>,
    expiry: Expiry,
    order: Order,
    next_position: u64,
    /// Segments that nobody needs any more, to be freed after the lock has been released.
    garbage: Vec<Arc<Segment>>,
    /// Where dead letters are collected, if they have somewhere to go.
    grave: Option<Box<Grave>>,
}

/// What there is beside the order in which messages came.
#[derive(Debug, Default)]
enum Order {
    #[default]
    Fifo,
    Groups(Box<Groups>),
    Levels(Box<Levels>),
    LastValues(Box<LastValues>),
}

impl Messages {
    /// How many messages, acquired ones included.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The messages that may be acquired.
    pub(crate) fn available(&self) -> &Positions {
        &self.available
    }

    /// The messages that any consumer may acquire.
    pub(crate) fn free(&self) -> &Positions {
        self.groups().map_or(&self.available, Groups::free)
    }

    /// The groups, if the queue has any.
    pub(crate) fn groups(&self) -> Option<&Groups> {
        match &self.order {
            Order::Groups(groups) => Some(groups),
            Order::Fifo | Order::Levels(_) | Order::LastValues(_) => None,
        }
    }

    pub(crate) fn groups_mut(&mut self) -> Option<&mut Groups> {
        match &mut self.order {
            Order::Groups(groups) => Some(groups),
            Order::Fifo | Order::Levels(_) | Order::LastValues(_) => None,
        }
    }

    /// What names the messages, if they have names.
    pub(crate) fn naming(&self) -> Option<&Arc<Naming>> {
        match &self.order {
            Order::Groups(groups) => Some(groups.naming()),
            Order::LastValues(values) => Some(values.naming()),
            Order::Fifo | Order::Levels(_) => None,
        }
    }

    /// The levels of priority, if the queue has any.
    pub(crate) fn levels(&self) -> Option<&Levels> {
        match &self.order {
            Order::Levels(levels) => Some(levels),
            Order::Fifo | Order::Groups(_) | Order::LastValues(_) => None,
        }
    }

    pub(crate) fn levels_mut(&mut self) -> Option<&mut Levels> {
        match &mut self.order {
            Order::Levels(levels) => Some(levels),
            Order::Fifo | Order::Groups(_) | Order::LastValues(_) => None,
        }
    }

    /// Whether of each key only the last message stays.
    pub(crate) fn keeps_last_values(&self) -> bool {
        matches!(self.order, Order::LastValues(_))
    }

    /// The encoded bytes of the message that one of a batch would replace.
    pub(crate) fn last_bytes(&mut self, batch: &Batch, index: usize) -> Option<u64> {
        let Order::LastValues(values) = &mut self.order else { return None };
        let last = self.entries.get(values.last(batch.name(batch.named(index).number))?)?;
        Some(self.slots.size(last))
    }

    /// Messages that have been replaced by those that came last.
    pub(crate) fn take_replaced(&mut self) -> Vec<u64> {
        match &mut self.order {
            Order::LastValues(values) => values.take_replaced(),
            Order::Fifo | Order::Groups(_) | Order::Levels(_) => Vec::new(),
        }
    }

    /// The level of priority in which a message stands.
    pub(crate) fn level_of(&self, position: u64) -> Option<usize> {
        self.levels()?.level_of(&self.entries, position)
    }

    /// Whether messages stand to each other like this already; what may change while there are some
    /// is changed.
    pub(crate) fn is_arranged(&mut self, arrangement: &Arrangement) -> bool {
        match (&mut self.order, arrangement) {
            (Order::Fifo, Arrangement::Fifo) => true,
            (Order::Groups(groups), Arrangement::Groups(naming)) => {
                groups.naming().names_like(naming)
            }
            (Order::Levels(levels), Arrangement::Priorities(priorities)) => {
                levels.change(priorities)
            }
            (Order::LastValues(values), Arrangement::LastValues(naming)) => {
                values.naming().names_like(naming)
            }
            _ => false,
        }
    }

    /// Messages stand to each other like this from now on; there must be none.
    pub(crate) fn arrange(&mut self, arrangement: &Arrangement, budget: &Arc<Budget>) {
        debug_assert!(self.is_empty(), "messages that are there would have no place");
        self.order = match arrangement {
            Arrangement::Fifo => Order::Fifo,
            Arrangement::Groups(naming) => {
                Order::Groups(Box::new(Groups::new(Arc::clone(naming), budget)))
            }
            Arrangement::Priorities(priorities) => {
                Order::Levels(Box::new(Levels::new(*priorities)))
            }
            Arrangement::LastValues(naming) => {
                Order::LastValues(Box::new(LastValues::new(Arc::clone(naming), budget)))
            }
        };
    }

    /// The position that the next message will get.
    pub(crate) fn next_position(&self) -> u64 {
        self.next_position
    }

    /// True if a consumer has acquired a message and not settled it.
    pub(crate) fn is_held(&self, position: u64, holder: u32) -> bool {
        self.entries.get(position).is_some_and(|entry| entry.holder == holder)
    }

    /// The parts of a run that a consumer has acquired and not settled.
    pub(crate) fn held_in(&self, run: Run, holder: u32) -> impl Iterator<Item = Run> {
        pieces(run).flat_map(move |(number, indexes)| {
            let block = self.entries.block(number);
            let held = block.map_or(0, |block| block.held_by(holder) & mask_of(indexes));
            runs_of(number, held)
        })
    }

    /// Takes available messages out of what can be acquired; they are still in the queue.
    fn unlist(&mut self, run: Run) {
        self.available.remove(run);
        if let Order::Levels(levels) = &mut self.order {
            levels.remove(&self.entries, run);
        }
    }

    /// Takes available messages of one block, and of one level if there are levels, out of what can
    /// be acquired; they are still in the queue.
    fn unlist_bits(&mut self, level: Option<usize>, bits: Bits) {
        self.available.remove_bits(bits);
        if let (Order::Levels(levels), Some(level)) = (&mut self.order, level) {
            levels.remove_of(level, bits);
        }
    }

    /// True if a message has not been dequeued.
    pub(crate) fn contains(&self, position: u64) -> bool {
        self.entries.get(position).is_some()
    }

    /// Adds those messages of a batch that `admits` lets in; returns where they stand.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        batch: &Batch,
        admits: impl FnMut(usize, &Incoming) -> bool,
    ) -> Run {
        // Each order has a loop of its own, so that the plain one need not ask which it is.
        let mut order = std::mem::take(&mut self.order);
        let added = match &mut order {
            Order::Fifo => self.fill(now, batch, admits, |_, _, _| {}),
            Order::Groups(groups) => {
                groups.expect(batch);
                let added = self.fill(now, batch, admits, |index, position, block| {
                    groups.link(batch, batch.named(index), position, block);
                });
                groups.linked(&mut self.entries, added.len);
                added
            }
            Order::Levels(levels) => {
                let added = self.fill(now, batch, admits, |index, position, _| {
                    levels.place(position, batch.messages[index].meta.priority);
                });
                levels.placed();
                added
            }
            Order::LastValues(values) => {
                values.expect(batch);
                let added = self.fill(now, batch, admits, |index, position, block| {
                    values.link(batch, batch.named(index), position, block);
                });
                values.linked(added.len);
                added
            }
        };
        self.order = order;
        added
    }

    /// Adds the entries of those messages of a batch that `admits` lets in. Each is shown to `note`,
    /// by its number in the batch and where it stands, when it is the last entry of its block.
    #[inline]
    fn fill(
        &mut self,
        now: Now,
        batch: &Batch,
        mut admits: impl FnMut(usize, &Incoming) -> bool,
        mut note: impl FnMut(usize, u64, &mut Block),
    ) -> Run {
        let first = self.next_position;
        let mut admitted = batch.messages.iter().enumerate().filter(|(i, m)| admits(*i, m));
        let mut next = admitted.next();
        let mut filling = Filling::default();
        while next.is_some() {
            let number = self.next_position / BLOCK;
            let room = BLOCK as usize - index_of(self.next_position);
            let block = self.entries.block_for(self.next_position, batch.messages.len());
            for _ in 0..room {
                let Some((number_in_batch, message)) = next else { break };
                if filling.segment != Some(message.segment) {
                    filling.close(&mut self.slots, self.next_position);
                    let segment = &batch.segments[message.segment as usize];
                    filling.slot = self.slots.put(segment, self.next_position);
                    filling.segment = Some(message.segment);
                }
                let mut entry = Entry::new(message, filling.slot);
                let expiry_ms = message.meta.expiry_ms(now);
                if let Some(expiry_ms) = expiry_ms {
                    entry.flags |= Flags::EXPIRES;
                    self.expiry.watch(now.mono_ms, block, number, expiry_ms);
                }
                if let Some(overlay) = batch.overlays.get(message.overlay as usize) {
                    self.overlays.insert(self.next_position, Arc::clone(overlay));
                }
                block.push(entry, expiry_ms);
                note(number_in_batch, self.next_position, block);
                filling.messages += 1;
                filling.bytes += message.len;
                self.next_position += 1;
                next = admitted.next();
            }
        }
        filling.close(&mut self.slots, self.next_position);
        let added = Run::new(first, self.next_position - first);
        self.entries.pushed(added.len);
        self.available.insert(added);
        added
    }

    /// Those messages of a run that one holder has are another's from now on; returns how many.
    pub(crate) fn hand_over(&mut self, run: Run, from: u32, to: u32) -> u64 {
        let mut count = 0;
        for (number, indexes) in pieces(run) {
            let Some(block) = self.entries.block_mut(number) else { continue };
            count += block.hand_over(indexes, from, to);
        }
        count
    }

    /// Adds annotations to a message that a consumer holds.
    pub(crate) fn annotate(&mut self, position: u64, overlay: Overlay) {
        if let Some(entry) = self.entries.get_mut(position) {
            entry.flags |= Flags::OVERLAY;
            self.overlays.insert(position, Arc::new(overlay));
        }
    }

    pub(crate) fn overlay(&self, position: u64) -> Option<&Overlay> {
        self.overlays.get(&position).map(Arc::as_ref)
    }

    /// The next time [`Messages::expire`] may find something.
    pub(crate) fn next_expiry_ms(&self) -> Option<u64> {
        self.expiry.next_ms()
    }

    /// Gives up what is kept for the next messages, as none are in sight.
    pub(crate) fn trim(&mut self) {
        self.entries.trim();
        self.slots.trim();
        match &mut self.order {
            Order::Fifo | Order::Levels(_) => {}
            Order::Groups(groups) => groups.trim(),
            Order::LastValues(values) => values.trim(),
        }
    }

    /// Bytes of memory that messages take: their segments, and their entries.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let names = match &self.order {
            Order::Groups(groups) => groups.memory_bytes(),
            Order::LastValues(values) => values.memory_bytes(),
            Order::Fifo | Order::Levels(_) => 0,
        };
        self.slots.held_bytes() + self.entries.len() * size_of::<Entry>() as u64 + names
    }

    /// What is to be freed once the lock has been released.
    pub(crate) fn take_garbage(&mut self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.garbage)
    }
}

/// A segment whose messages are being added.
#[derive(Default)]
struct Filling {
    /// Its number in the batch.
    segment: Option<u32>,
    slot: u32,
    messages: u32,
    bytes: u32,
}

impl Filling {
    fn close(&mut self, slots: &mut Slots, end: u64) {
        if self.segment.take().is_some() {
            slots.add(self.slot, self.messages, self.bytes, end);
        }
        (self.messages, self.bytes) = (0, 0);
    }
}

/// The bits that are set.
fn indexes(mut mask: u128) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let index = mask.trailing_zeros();
        mask &= mask - 1;
        Some(u64::from(index))
    })
}

/// The runs of positions whose bits are set in a block's mask.
fn runs_of(number: u64, mut mask: u128) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let start = mask.trailing_zeros();
        let len = (mask >> start).trailing_ones();
        mask &= !mask_of(start as usize..(start + len) as usize);
        Some(Run::new(number * BLOCK + u64::from(start), u64::from(len)))
    })
}
