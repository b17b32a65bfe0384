//! The messages of one queue: where each stands, who has it, and when it goes.
//!
//! Everything here changes descriptors; payload is neither read nor copied.

mod compact;
mod entries;
mod entry;
mod expiry;
mod groups;
mod positions;
mod slots;

pub(crate) use entry::Flags;
pub(crate) use groups::{GroupState, Groups};
pub(crate) use positions::{Positions, Run};

use crate::message::{Batch, Delivery, Incoming, NO_OVERLAY, Overlay, Segment, Taken};
use entries::{BLOCK, Entries, NEVER, index_of, mask_of, pieces};
use entry::{Entry, NOBODY};
use expiry::Expiry;
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
    /// In which group each is, if the queue has groups.
    groups: Option<Box<Groups>>,
    next_position: u64,
    /// Segments that nobody needs any more, to be freed after the lock has been released.
    garbage: Vec<Arc<Segment>>,
}

/// Messages that have left the queue. Whoever keeps accounts gets it once, and cannot make one.
#[derive(Debug, Default)]
#[must_use = "the depth of the queue would be wrong"]
pub(crate) struct Dequeued {
    messages: u64,
    bytes: u64,
}

impl Dequeued {
    #[cfg(test)]
    pub(crate) fn for_test(messages: u64, bytes: u64) -> Dequeued {
        Dequeued { messages, bytes }
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn merge(&mut self, other: Dequeued) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// Who takes, and how much at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub(crate) slot: u32,
    pub(crate) now_ms: u64,
    /// Bytes in memory that it still takes.
    pub(crate) bytes: usize,
    /// It has nothing yet: the next message is handed over whatever its size.
    pub(crate) is_empty_handed: bool,
}

/// How many messages a consumer of a queue with groups takes at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picks {
    pub(crate) most: u64,
    /// How many that anybody might take.
    pub(crate) free: u64,
    /// It stops after so many that have expired.
    pub(crate) most_expired: u64,
}

/// What a consumer took of a run.
#[derive(Debug)]
pub(crate) struct Acquired {
    pub(crate) messages: u64,
    /// Their bytes in memory.
    pub(crate) bytes: usize,
    /// Those that had expired and have been removed instead.
    pub(crate) expired: Dequeued,
    /// Where to go on: before the end of the run if the limit of bytes was reached.
    pub(crate) end: u64,
}

/// What became of messages that a consumer gave back.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) messages: u64,
    /// Those that had expired in the meantime.
    pub(crate) expired: Dequeued,
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
        self.groups.as_ref().map_or(&self.available, |groups| groups.free())
    }

    /// The groups, if the queue has any.
    pub(crate) fn groups(&self) -> Option<&Groups> {
        self.groups.as_deref()
    }

    pub(crate) fn groups_mut(&mut self) -> Option<&mut Groups> {
        self.groups.as_deref_mut()
    }

    /// From now on messages are in groups, or are not; there must be none.
    pub(crate) fn set_groups(&mut self, groups: Option<Groups>) {
        debug_assert!(self.is_empty(), "messages that are there would be in no group");
        self.groups = groups.map(Box::new);
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

    /// True if a message has not been dequeued.
    pub(crate) fn contains(&self, position: u64) -> bool {
        self.entries.get(position).is_some()
    }

    /// Adds those messages of a batch that `admits` lets in; returns where they stand.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        batch: &Batch,
        mut admits: impl FnMut(usize, &Incoming) -> bool,
    ) -> Run {
        let first = self.next_position;
        let mut admitted = batch.messages.iter().enumerate().filter(|(i, m)| admits(*i, m));
        let mut next = admitted.next();
        let mut filling = Filling::default();
        let mut groups = self.groups.as_deref_mut();
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
                block.push(entry, expiry_ms);
                if let Some(groups) = &mut groups {
                    block.push_link(groups.link(batch.group(number_in_batch)));
                }
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
        if let Some(groups) = &mut self.groups {
            groups.enqueued(&mut self.entries, added);
        }
        added
    }

    /// Gives available messages that follow one another to a consumer.
    ///
    /// The run must lie in one block, as those do that [`Positions::next`] finds.
    pub(crate) fn acquire(&mut self, run: Run, taker: Taker, out: &mut Taken) -> Acquired {
        let number = run.first / BLOCK;
        let mut deliveries = Deliveries::new(&self.slots, &self.overlays, taker.now_ms);
        let (mut messages, mut bytes, mut expired, mut end) = (0, 0, 0, run.first);
        let block = self.entries.block_mut(number).expect("what is available has an entry");
        for position in run.first..run.end() {
            let index = index_of(position);
            let expiry_ms = block.expiry_ms(index);
            let entry = block.get_mut(index).expect("what is available has an entry");
            if expiry_ms <= taker.now_ms {
                expired |= 1 << index;
            } else {
                let len = entry.len as usize;
                if bytes + len > taker.bytes && !(taker.is_empty_handed && messages == 0) {
                    break;
                }
                deliveries.push(position, entry, expiry_ms, out);
                entry.holder = taker.slot;
                entry.flags |= Flags::WAS_ACQUIRED;
                messages += 1;
                bytes += len;
            }
            end = position + 1;
        }
        self.available.remove(Run::new(run.first, end - run.first));
        let expired = self.dequeue(number, expired, NOBODY);
        Acquired { messages, bytes, expired, end }
    }

    /// Gives a consumer messages of its groups and of free ones, in order, and names where they
    /// stood.
    ///
    /// `next` finds the first of a set, not before a position, that the consumer may have. No more
    /// than `picks.free` of them begin with another group, or are in none.
    pub(crate) fn acquire_grouped(
        &mut self,
        mut picks: Picks,
        mut taker: Taker,
        mut next: impl FnMut(&Positions, u64) -> Option<u64>,
        runs: &mut Vec<Run>,
        out: &mut Taken,
    ) -> Acquired {
        let mut acquired = Acquired { messages: 0, bytes: 0, expired: Dequeued::default(), end: 0 };
        let mut segment = None;
        let mut run = Run::new(0, 0);
        while acquired.messages < picks.most && acquired.expired.messages < picks.most_expired {
            let Some(groups) = &mut self.groups else { break };
            let free = if picks.free > 0 { next(groups.free(), acquired.end) } else { None };
            let owned = groups.owned(taker.slot).and_then(|owned| next(owned, acquired.end));
            let Some(position) = owned.into_iter().chain(free).min() else { break };
            let (number, index) = (position / BLOCK, index_of(position));
            let block = self.entries.block_mut(number).expect("what is available has an entry");
            let expiry_ms = block.expiry_ms(index);
            let link = *block.link(index);
            let entry = block.get_mut(index).expect("what is available has an entry");
            if expiry_ms <= taker.now_ms {
                self.available.remove(Run::new(position, 1));
                acquired.expired.merge(self.dequeue(number, 1 << index, NOBODY));
                // The next one of its group stands behind it.
                acquired.end = position + 1;
                continue;
            }
            let len = entry.len as usize;
            if len > taker.bytes && !(taker.is_empty_handed && acquired.messages == 0) {
                break;
            }
            let mut deliveries = Deliveries::new(&self.slots, &self.overlays, taker.now_ms);
            deliveries.last = segment;
            deliveries.push(position, entry, expiry_ms, out);
            segment = deliveries.last;
            entry.holder = taker.slot;
            entry.flags |= Flags::WAS_ACQUIRED;
            groups.acquire(position, link, taker.slot);
            picks.free -= u64::from(free == Some(position));
            taker.bytes = taker.bytes.saturating_sub(len);
            acquired.messages += 1;
            acquired.bytes += len;
            acquired.end = position + 1;
            if run.end() == position && run.len > 0 {
                run.len += 1;
            } else {
                self.available.remove(run);
                runs.extend(Some(run).filter(|run| run.len > 0));
                run = Run::new(position, 1);
            }
        }
        self.available.remove(run);
        runs.extend(Some(run).filter(|run| run.len > 0));
        acquired
    }

    /// Shows available messages that follow one another to a browser, which leaves them there.
    pub(crate) fn browse(&self, run: Run, taker: Taker, out: &mut Taken) -> Acquired {
        let block = self.entries.block(run.first / BLOCK).expect("what is available has an entry");
        let mut deliveries = Deliveries::new(&self.slots, &self.overlays, taker.now_ms);
        let (mut messages, mut bytes, mut end) = (0, 0, run.first);
        for position in run.first..run.end() {
            let index = index_of(position);
            let expiry_ms = block.expiry_ms(index);
            let entry = block.get(index).expect("what is available has an entry");
            if expiry_ms > taker.now_ms {
                let len = entry.len as usize;
                if bytes + len > taker.bytes && !(taker.is_empty_handed && messages == 0) {
                    break;
                }
                deliveries.push(position, entry, expiry_ms, out);
                messages += 1;
                bytes += len;
            }
            end = position + 1;
        }
        Acquired { messages, bytes, expired: Dequeued::default(), end }
    }

    /// Removes those messages of a run that a consumer holds.
    pub(crate) fn accept(&mut self, run: Run, holder: u32) -> Dequeued {
        let mut dequeued = Dequeued::default();
        if run.len == 0 {
            return dequeued;
        }
        let (first, last) = (run.first / BLOCK, (run.end() - 1) / BLOCK);
        if last - first > SHORT_BLOCKS {
            // There may be a wide gap in it, so only the blocks that exist are looked at.
            let numbers: Vec<u64> = self.entries.numbers(first, last).collect();
            for number in numbers {
                let start = run.first.max(number * BLOCK);
                let end = run.end().min((number + 1) * BLOCK);
                let indexes = index_of(start)..index_of(start) + (end - start) as usize;
                dequeued.merge(self.dequeue(number, mask_of(indexes), holder));
            }
            return dequeued;
        }
        for (number, indexes) in pieces(run) {
            dequeued.merge(self.dequeue(number, mask_of(indexes), holder));
        }
        dequeued
    }

    /// Makes those messages of a run available again that a consumer holds, each in its place.
    pub(crate) fn release(&mut self, run: Run, holder: u32, failed: bool, now_ms: u64) -> Returned {
        let mut returned = Returned::default();
        for (number, indexes) in pieces(run) {
            let Some(block) = self.entries.block_mut(number) else { continue };
            let mut expired = 0;
            let mut free = 0u128;
            for index in indexes {
                let expiry_ms = block.expiry_ms(index);
                let Some(entry) = block.get_mut(index).filter(|e| e.holder == holder) else {
                    continue;
                };
                entry.holder = NOBODY;
                if failed {
                    entry.delivery_count = entry.delivery_count.saturating_add(1);
                    entry.flags |= Flags::FAILED;
                }
                returned.messages += 1;
                if expiry_ms <= now_ms {
                    expired |= 1 << index;
                    continue;
                }
                if expiry_ms != NEVER {
                    self.expiry.watch(now_ms, block, number, expiry_ms);
                }
                free |= 1 << index;
            }
            for run in runs_of(number, free) {
                self.available.insert(run);
            }
            if let Some(groups) = &mut self.groups {
                for run in runs_of(number, free | expired) {
                    (run.first..run.end()).for_each(|p| groups.release(&mut self.entries, p));
                }
            }
            returned.expired.merge(self.dequeue(number, expired, NOBODY));
        }
        returned
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

    /// Removes up to `most` available messages, the oldest first.
    pub(crate) fn purge(&mut self, most: u64) -> Dequeued {
        let mut dequeued = Dequeued::default();
        while dequeued.messages < most {
            let Some(mut run) = self.available.next(0) else { break };
            run.len = run.len.min(most - dequeued.messages);
            self.available.remove(run);
            dequeued.merge(self.accept(run, NOBODY));
        }
        dequeued
    }

    /// Removes available messages that have expired, at least `most` of them if there are.
    ///
    /// What is acquired is looked at when it comes back.
    pub(crate) fn expire(&mut self, now_ms: u64, most: u64) -> Dequeued {
        let mut dequeued = Dequeued::default();
        while dequeued.messages < most {
            let Some(number) = self.expiry.due(now_ms) else { break };
            let Some(block) = self.entries.block_mut(number) else { continue };
            let expired = self.expiry.look_at(now_ms, block, number);
            for run in runs_of(number, expired) {
                self.available.remove(run);
            }
            dequeued.merge(self.dequeue(number, expired, NOBODY));
        }
        dequeued
    }

    /// The next time [`Messages::expire`] may find something.
    pub(crate) fn next_expiry_ms(&self) -> Option<u64> {
        self.expiry.next_ms()
    }

    /// Gives up what is kept for the next messages, as none are in sight.
    pub(crate) fn trim(&mut self) {
        self.entries.trim();
        self.slots.trim();
        if let Some(groups) = &mut self.groups {
            groups.trim();
        }
    }

    /// Bytes of memory that messages take: their segments, and their entries.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let groups = self.groups.as_ref().map_or(0, |groups| groups.memory_bytes());
        self.slots.held_bytes() + self.entries.len() * size_of::<Entry>() as u64 + groups
    }

    /// What is to be freed once the lock has been released.
    pub(crate) fn take_garbage(&mut self) -> Vec<Arc<Segment>> {
        std::mem::take(&mut self.garbage)
    }

    /// Removes entries of one block that `holder` has, and gives up what only they needed.
    fn dequeue(&mut self, number: u64, mut mask: u128, holder: u32) -> Dequeued {
        let mut dequeued = Dequeued::default();
        if mask == 0 {
            return dequeued;
        }
        let Some(block) = self.entries.block_mut(number) else { return dequeued };
        let mut emptying = Emptying::default();
        let mut gone = 0;
        while mask != 0 {
            let index = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let Some(entry) = block.remove_if(index, |entry| entry.holder == holder) else {
                continue;
            };
            let size = if entry.flags.any(Flags::LARGE) {
                self.slots.large_size(entry.segment)
            } else {
                u64::from(entry.len)
            };
            if entry.flags.any(Flags::OVERLAY) {
                self.overlays.remove(&(number * BLOCK + index as u64));
            }
            if emptying.slot != entry.segment {
                self.garbage.extend(emptying.close(&mut self.slots));
                emptying.slot = entry.segment;
            }
            gone |= 1 << index;
            emptying.messages += 1;
            emptying.bytes += entry.len;
            dequeued.messages += 1;
            dequeued.bytes += size;
        }
        self.garbage.extend(emptying.close(&mut self.slots));
        if let Some(groups) = &mut self.groups {
            groups.dequeued(&mut self.entries, number, gone, holder);
        }
        if let Some(timer) = self.entries.removed(number, dequeued.messages) {
            self.expiry.unwatch(timer);
        }
        dequeued
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

/// A segment whose messages are being removed.
#[derive(Default)]
struct Emptying {
    slot: u32,
    messages: u32,
    bytes: u32,
}

impl Emptying {
    fn close(&mut self, slots: &mut Slots) -> Option<Arc<Segment>> {
        let (messages, bytes) =
            (std::mem::take(&mut self.messages), std::mem::take(&mut self.bytes));
        if messages == 0 { None } else { slots.remove(self.slot, messages, bytes) }
    }
}

/// Describes messages to whoever takes them.
struct Deliveries<'a> {
    slots: &'a Slots,
    overlays: &'a BTreeMap<u64, Arc<Overlay>>,
    now_ms: u64,
    /// The slot of the last message, and its segment's index in what is taken.
    last: Option<(u32, u32)>,
}

impl<'a> Deliveries<'a> {
    fn new(
        slots: &'a Slots,
        overlays: &'a BTreeMap<u64, Arc<Overlay>>,
        now_ms: u64,
    ) -> Deliveries<'a> {
        Deliveries { slots, overlays, now_ms, last: None }
    }

    fn push(&mut self, position: u64, entry: &Entry, expiry_ms: u64, out: &mut Taken) {
        let segment = match self.last {
            Some((slot, segment)) if slot == entry.segment => segment,
            _ => {
                let segment = out.segment(self.slots.segment(entry.segment));
                self.last = Some((entry.segment, segment));
                segment
            }
        };
        let overlay = if entry.flags.any(Flags::OVERLAY) {
            self.overlays.get(&position).map_or(NO_OVERLAY, |overlay| out.overlay(overlay))
        } else {
            NO_OVERLAY
        };
        let ttl_ms = (expiry_ms - self.now_ms).min(u64::from(u32::MAX)) as u32;
        out.push(Delivery {
            position,
            delivery_count: entry.delivery_count,
            segment,
            offset: entry.offset,
            len: entry.len,
            ttl_ms,
            overlay,
            flags: entry.flags,
            priority: entry.priority,
            head: entry.head(),
        });
    }
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

/// A run over more blocks than this may have gaps that are worth jumping over.
const SHORT_BLOCKS: u64 = 64;
