//! Giving back the memory of segments of which little is left.

use super::entries::BLOCK;
use super::{Messages, Run};
use crate::budget::Budget;
use crate::message::Segment;
use std::sync::Arc;

/// A segment that is to be replaced by a smaller one.
///
/// Planned and installed under the queue's lock; the copying in between is done without it, while
/// messages are consumed as ever.
#[derive(Debug)]
pub(crate) struct Compaction {
    slot: u32,
    segment: Arc<Segment>,
    messages: Vec<Moved>,
}

#[derive(Clone, Copy, Debug)]
struct Moved {
    position: u64,
    from: u32,
    to: u32,
    len: u32,
}

impl Compaction {
    /// Copies what is left of the segment.
    ///
    /// It is charged whatever the limit: much more than that comes back at once.
    pub(crate) fn copy(&mut self, budget: &Arc<Budget>) -> Arc<Segment> {
        let total = self.messages.iter().map(|moved| moved.len as usize).sum();
        let reservation = budget.charge(total as u64 + COST * self.messages.len() as u64);
        let mut bytes = Vec::with_capacity(total);
        for moved in &mut self.messages {
            let start = moved.from as usize;
            moved.to = bytes.len() as u32;
            bytes.extend_from_slice(&self.segment.bytes()[start..start + moved.len as usize]);
        }
        let (format, origin) = (self.segment.message_format(), self.segment.origin());
        let mut copy = Segment::new(bytes.into_boxed_slice(), format, origin, reservation);
        if let Some(numbers) = self.segment.numbers() {
            let moves = self.messages.iter().map(|moved| (moved.from, moved.to));
            copy.set_numbers(numbers.moved(moves));
        }
        Arc::new(copy)
    }
}

impl Messages {
    /// A segment that should be compacted now.
    pub(crate) fn plan_compaction(&mut self) -> Option<Compaction> {
        if self.slots.is_compacting {
            return None;
        }
        let index = self.slots.next_sparse()?;
        self.slots.is_compacting = true;
        let slot = self.slots.slot(index);
        let span = Run::new(slot.first, slot.end - slot.first);
        let numbers = self.entries.numbers(span.first / BLOCK, span.end() / BLOCK);
        let mut messages = Vec::new();
        for number in numbers {
            let Some(block) = self.entries.block(number) else { continue };
            for at in block.indexes() {
                let Some(entry) = block.get(at).filter(|entry| entry.segment == index) else {
                    continue;
                };
                let position = number * BLOCK + at as u64;
                messages.push(Moved { position, from: entry.offset, to: 0, len: entry.len });
            }
        }
        let segment = Arc::clone(self.slots.segment(index));
        Some(Compaction { slot: index, segment, messages })
    }

    /// Moves the messages that are still there to their copies.
    pub(crate) fn install_compaction(&mut self, compaction: &Compaction, copy: &Arc<Segment>) {
        self.slots.is_compacting = false;
        let old = compaction.slot;
        if !self.slots.holds(old, &compaction.segment) {
            return;
        }
        let first = compaction.messages.first().map_or(0, |moved| moved.position);
        let new = self.slots.put(copy, first);
        let (mut messages, mut bytes, mut end) = (0, 0, first);
        for moved in &compaction.messages {
            let entry = self.entries.get_mut(moved.position);
            let Some(entry) = entry.filter(|entry| entry.segment == old) else { continue };
            entry.segment = new;
            entry.offset = moved.to;
            messages += 1;
            bytes += moved.len;
            end = moved.position + 1;
        }
        self.slots.add(new, messages, bytes, end);
        // The old one still holds its segment, so at least one message was left to move.
        self.garbage.extend(self.slots.remove(old, messages, bytes));
    }
}

/// What a message costs beyond its bytes.
const COST: u64 = 40;
