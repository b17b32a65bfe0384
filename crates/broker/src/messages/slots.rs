//! The segments that a queue's messages lie in.

use super::entry::{Entry, Flags};
use crate::message::Segment;
use std::sync::Arc;

/// A table of segments; entries name a segment by its slot, and the slot counts them.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Bytes in memory of all segments.
    held_bytes: u64,
    /// Bytes in memory of the messages that have not been dequeued.
    live_bytes: u64,
    /// The slot at which the search for sparse segments goes on.
    hand: u32,
    /// A compaction has been planned and not been installed.
    pub(super) is_compacting: bool,
}

#[derive(Debug)]
pub(crate) struct Slot {
    segment: Option<Arc<Segment>>,
    /// Messages in it that have not been dequeued.
    live: u32,
    live_bytes: u32,
    /// All its messages have positions from here on …
    pub(crate) first: u64,
    /// … up to but without this one.
    pub(crate) end: u64,
}

impl Slots {
    /// Puts a segment into a slot; its messages have positions from `first` on.
    pub(crate) fn put(&mut self, segment: &Arc<Segment>, first: u64) -> u32 {
        self.held_bytes += segment.bytes().len() as u64;
        let segment = Some(Arc::clone(segment));
        let slot = Slot { segment, live: 0, live_bytes: 0, first, end: first };
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub(crate) fn segment(&self, slot: u32) -> &Arc<Segment> {
        self.slots[slot as usize].segment.as_ref().expect("a slot that is named holds a segment")
    }

    /// Encoded bytes of a message.
    #[inline]
    pub(crate) fn size(&self, entry: &Entry) -> u64 {
        if entry.flags.any(Flags::LARGE) {
            return self.segment(entry.segment).large_body().map_or(0, |body| body.len());
        }
        u64::from(entry.len)
    }

    /// Counts messages of a segment, the last of which stands before `end`.
    pub(crate) fn add(&mut self, slot: u32, messages: u32, bytes: u32, end: u64) {
        let slot = &mut self.slots[slot as usize];
        slot.live += messages;
        slot.live_bytes += bytes;
        slot.end = end;
        self.live_bytes += u64::from(bytes);
    }

    /// Counts messages off; the segment when these were its last.
    pub(crate) fn remove(&mut self, index: u32, messages: u32, bytes: u32) -> Option<Arc<Segment>> {
        let slot = &mut self.slots[index as usize];
        slot.live -= messages;
        slot.live_bytes -= bytes;
        self.live_bytes -= u64::from(bytes);
        if slot.live > 0 { None } else { self.vacate(index) }
    }

    fn vacate(&mut self, index: u32) -> Option<Arc<Segment>> {
        let segment = self.slots[index as usize].segment.take()?;
        self.held_bytes -= segment.bytes().len() as u64;
        self.free.push(index);
        if self.free.len() == self.slots.len() {
            // Nothing is left: a queue that has been drained does not keep the table of its
            // backlog.
            self.slots.clear();
            self.free.clear();
            if self.slots.capacity() > KEPT_SLOTS {
                self.trim();
            }
        }
        Some(segment)
    }

    /// Gives up what has been kept although it is empty.
    pub(crate) fn trim(&mut self) {
        if self.slots.is_empty() {
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// True if so much of the memory holds nothing any more that segments have to be compacted.
    pub(crate) fn is_sparse(&self) -> bool {
        self.held_bytes > self.live_bytes * SPARSE + SPARSE_BYTES
    }

    /// The next segment of which little is left; looks at no more than a few.
    pub(crate) fn next_sparse(&mut self) -> Option<u32> {
        if !self.is_sparse() {
            return None;
        }
        for _ in 0..self.slots.len().min(LOOKED_AT) {
            self.hand = (self.hand + 1) % self.slots.len() as u32;
            let slot = &self.slots[self.hand as usize];
            let Some(segment) = &slot.segment else { continue };
            if segment.bytes().len() as u64 >= u64::from(slot.live_bytes) * SPARSE
                && segment.large_body().is_none()
                && slot.live > 0
            {
                return Some(self.hand);
            }
        }
        None
    }

    /// True if a slot still holds this segment.
    pub(crate) fn holds(&self, index: u32, segment: &Arc<Segment>) -> bool {
        let slot = self.slots.get(index as usize).and_then(|slot| slot.segment.as_ref());
        slot.is_some_and(|held| Arc::ptr_eq(held, segment))
    }

    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    /// Bytes in memory of all segments.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}

/// Memory may be this many times what is live, and a bit.
const SPARSE: u64 = 4;
const SPARSE_BYTES: u64 = 128 * 1024;
/// How many slots one search looks at.
const LOOKED_AT: usize = 64;
/// An empty table of at most this size is kept.
const KEPT_SLOTS: usize = 4;
