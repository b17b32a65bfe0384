//! Handing messages to consumers, and showing them to browsers.

use super::bits::Bits;
use super::entries::{BLOCK, index_of};
use super::entry::{Entry, NOBODY};
use super::leaving::EXPIRED;
use super::slots::Slots;
use super::{Dequeued, Flags, Messages, Run};
use crate::message::{Delivery, NO_OVERLAY, Overlay, Taken};
use std::collections::BTreeMap;
use std::sync::Arc;

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

impl Messages {
    /// Gives available messages that follow one another to a consumer.
    ///
    /// The run must lie in one block, as those do that [`Positions::next`] finds.
    pub(crate) fn acquire(&mut self, run: Run, taker: Taker, out: &mut Taken) -> Acquired {
        let number = run.first / BLOCK;
        let start = index_of(run.first);
        let handed = self.hand_out(number, start..start + run.len as usize, taker, out);
        let end = handed.end.unwrap_or(run.first);
        self.unlist(Run::new(run.first, end - run.first));
        let expired = self.dequeue(number, handed.expired, NOBODY, EXPIRED);
        Acquired { messages: handed.messages, bytes: handed.bytes, expired, end }
    }

    /// Gives available messages of one level of priority to a consumer; those of other levels may
    /// lie between them.
    pub(crate) fn acquire_of(
        &mut self,
        level: usize,
        bits: Bits,
        taker: Taker,
        out: &mut Taken,
    ) -> Acquired {
        let handed = self.hand_out(bits.block, bits.indexes(), taker, out);
        let end = handed.end.unwrap_or(bits.block * BLOCK);
        let gone = bits.before(end);
        self.unlist_bits(Some(level), gone);
        let expired = self.dequeue(bits.block, handed.expired, NOBODY, EXPIRED);
        Acquired { messages: handed.messages, bytes: handed.bytes, expired, end }
    }

    /// Gives those messages of a block to a consumer that have not expired, as far as they fit.
    #[inline(always)]
    fn hand_out(
        &mut self,
        number: u64,
        indexes: impl Iterator<Item = usize>,
        taker: Taker,
        out: &mut Taken,
    ) -> Handed {
        let mut deliveries = Deliveries::new(&self.slots, &self.overlays, taker.now_ms);
        let (mut messages, mut bytes, mut expired, mut end) = (0, 0, 0, None);
        let block = self.entries.block_mut(number).expect("what is available has an entry");
        for index in indexes {
            let position = number * BLOCK + index as u64;
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
            end = Some(position + 1);
        }
        Handed { messages, bytes, expired, end }
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
}

/// What a consumer was handed of a block.
struct Handed {
    messages: u64,
    bytes: usize,
    /// Those that had expired.
    expired: u128,
    /// Where to go on, unless it has not begun.
    end: Option<u64>,
}

/// Describes messages to whoever takes them.
pub(super) struct Deliveries<'a> {
    slots: &'a Slots,
    overlays: &'a BTreeMap<u64, Arc<Overlay>>,
    now_ms: u64,
    /// The slot of the last message, and its segment's index in what is taken.
    pub(super) last: Option<(u32, u32)>,
}

impl<'a> Deliveries<'a> {
    pub(super) fn new(
        slots: &'a Slots,
        overlays: &'a BTreeMap<u64, Arc<Overlay>>,
        now_ms: u64,
    ) -> Deliveries<'a> {
        Deliveries { slots, overlays, now_ms, last: None }
    }

    pub(super) fn push(&mut self, position: u64, entry: &Entry, expiry_ms: u64, out: &mut Taken) {
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
