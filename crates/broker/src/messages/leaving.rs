//! Messages that go for good, and messages that come back from consumers.

use super::bits::Bits;
use super::entries::{BLOCK, NEVER, index_of, mask_of, pieces};
use super::entry::NOBODY;
use super::slots::Slots;
use super::{Death, Flags, Messages, Order, Run, runs_of};
use crate::message::Segment;
use crate::queue::Excess;
use std::sync::Arc;

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

/// What became of messages that a consumer gave back.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) messages: u64,
    /// Those that had expired in the meantime.
    pub(crate) expired: Dequeued,
    /// Those that have been delivered in vain as often as they may, and have been removed.
    pub(crate) spent: Dequeued,
}

/// How a message comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Return {
    /// As if it had never been taken.
    Untried,
    /// After a delivery in vain; with so many of them it is not delivered again.
    Failed { most: u32 },
}

/// What was dropped to make room for others.
#[derive(Debug, Default)]
#[must_use = "the depth of the queue would be wrong"]
pub(crate) struct Shed {
    pub(crate) dropped: Dequeued,
    /// Those that had expired anyway.
    pub(crate) expired: Dequeued,
}

impl Shed {
    fn messages(&self) -> u64 {
        self.dropped.messages + self.expired.messages
    }

    fn bytes(&self) -> u64 {
        self.dropped.bytes + self.expired.bytes
    }

    fn covers(&self, excess: Excess) -> bool {
        self.messages() >= excess.messages && self.bytes() >= excess.bytes
    }
}

/// Messages that are about to be dropped.
#[derive(Default)]
struct Going {
    messages: u64,
    bytes: u64,
}

impl Messages {
    /// Removes those messages of a run that a consumer holds.
    pub(crate) fn accept(&mut self, run: Run, holder: u32) -> Dequeued {
        self.remove(run, holder, None)
    }

    /// The same, as they could not be dealt with.
    pub(crate) fn reject(&mut self, run: Run, holder: u32) -> Dequeued {
        self.remove(run, holder, Some(Death::Rejected))
    }

    fn remove(&mut self, run: Run, holder: u32, death: Option<Death>) -> Dequeued {
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
                dequeued.merge(self.dequeue(number, mask_of(indexes), holder, death));
            }
            return dequeued;
        }
        for (number, indexes) in pieces(run) {
            dequeued.merge(self.dequeue(number, mask_of(indexes), holder, death));
        }
        dequeued
    }

    /// Removes those messages of one block that a consumer holds.
    pub(crate) fn accept_bits(&mut self, bits: Bits, holder: u32) -> Dequeued {
        self.dequeue(bits.block, bits.mask, holder, None)
    }

    /// Makes those messages of a run available again that a consumer holds, each in its place.
    pub(crate) fn release(&mut self, run: Run, holder: u32, how: Return, now_ms: u64) -> Returned {
        let mut returned = Returned::default();
        for (number, indexes) in pieces(run) {
            let Some(block) = self.entries.block_mut(number) else { continue };
            let (mut expired, mut spent, mut free) = (0, 0, 0u128);
            for index in indexes {
                let expiry_ms = block.expiry_ms(index);
                let Some(entry) = block.get_mut(index).filter(|e| e.holder == holder) else {
                    continue;
                };
                entry.holder = NOBODY;
                returned.messages += 1;
                if let Return::Failed { most } = how {
                    entry.delivery_count = entry.delivery_count.saturating_add(1);
                    entry.flags |= Flags::FAILED;
                    if entry.delivery_count >= most {
                        spent |= 1 << index;
                        continue;
                    }
                }
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
                if let Order::Levels(levels) = &mut self.order {
                    levels.insert(&self.entries, run);
                }
            }
            if let Order::Groups(groups) = &mut self.order {
                for run in runs_of(number, free | expired | spent) {
                    (run.first..run.end())
                        .for_each(|p| groups.release(&mut self.entries, p, holder));
                }
            }
            returned.expired.merge(self.dequeue(number, expired, NOBODY, EXPIRED));
            returned.spent.merge(self.dequeue(number, spent, NOBODY, Some(Death::Spent)));
        }
        returned
    }

    /// Removes a message that has been replaced by another one, and tells who held it.
    pub(crate) fn replace(&mut self, position: u64) -> Option<(u32, Dequeued)> {
        let holder = self.entries.get(position)?.holder;
        let run = Run::new(position, 1);
        if holder == NOBODY {
            self.unlist(run);
        }
        Some((holder, self.accept(run, holder)))
    }

    /// Drops available messages, those first that are missed least, until so much has gone, or at
    /// most `most` messages. What has expired goes on the way.
    pub(crate) fn shed(&mut self, excess: Excess, most: u64, now_ms: u64) -> Shed {
        let mut shed = Shed::default();
        while shed.messages() < most && !shed.covers(excess) {
            let Some((level, bits)) = self.least() else { break };
            let number = bits.block;
            let block = self.entries.block(number).expect("what is available has an entry");
            let (mut dropped, mut expired, mut going) = (0u128, 0u128, Going::default());
            for index in bits.first(most - shed.messages()).indexes() {
                let expiry_ms = block.expiry_ms(index);
                let entry = block.get(index).expect("what is available has an entry");
                if expiry_ms <= now_ms {
                    expired |= 1 << index;
                } else {
                    dropped |= 1 << index;
                }
                going.messages += 1;
                going.bytes += self.slots.size(entry);
                if shed.messages() + going.messages >= excess.messages
                    && shed.bytes() + going.bytes >= excess.bytes
                {
                    break;
                }
            }
            self.unlist_bits(level, Bits::new(number, dropped | expired));
            shed.dropped.merge(self.dequeue(number, dropped, NOBODY, Some(Death::Dropped)));
            shed.expired.merge(self.dequeue(number, expired, NOBODY, EXPIRED));
        }
        shed
    }

    /// The available messages that are dropped first, and their level if there are levels.
    fn least(&self) -> Option<(Option<usize>, Bits)> {
        match &self.order {
            Order::Levels(levels) => levels.least().map(|(level, bits)| (Some(level), bits)),
            Order::Fifo | Order::Groups(_) | Order::LastValues(_) => {
                self.available.next(0).map(|run| (None, Bits::of(run)))
            }
        }
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
                self.unlist(run);
            }
            dequeued.merge(self.dequeue(number, expired, NOBODY, EXPIRED));
        }
        dequeued
    }

    /// Removes entries of one block that `holder` has, and gives up what only they needed.
    pub(super) fn dequeue(
        &mut self,
        number: u64,
        mut mask: u128,
        holder: u32,
        death: Option<Death>,
    ) -> Dequeued {
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
            let size = self.slots.size(&entry);
            let overlay = match entry.flags.any(Flags::OVERLAY) {
                true => self.overlays.remove(&(number * BLOCK + index as u64)),
                false => None,
            };
            if let (Some(death), Some(grave)) = (death, &mut self.grave) {
                grave.bury(&entry, death, &self.slots, overlay.as_ref());
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
        match &mut self.order {
            Order::Fifo | Order::Levels(_) => {}
            Order::Groups(groups) => groups.dequeued(&mut self.entries, number, gone, holder),
            Order::LastValues(values) => values.dequeued(&self.entries, number, gone),
        }
        if let Some(timer) = self.entries.removed(number, dequeued.messages) {
            self.expiry.unwatch(timer);
        }
        dequeued
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

pub(super) const EXPIRED: Option<Death> = Some(Death::Expired);
/// A run over more blocks than this may have gaps that are worth jumping over.
const SHORT_BLOCKS: u64 = 64;
