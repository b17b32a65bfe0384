//! A queue's share of the node's memory.

use super::{ProducerId, Queue, SharedQueue};
use crate::budget::{Claim, Reservation};
use crate::message::cost_of_one;
use crate::wake::Wakeups;

impl SharedQueue {
    /// Hands over what the queue has kept for the next message, if there is something; if not, the
    /// producer is called when there is.
    pub fn lend_kept(&self, id: ProducerId, claim: &mut Claim) -> (bool, Wakeups) {
        self.visit(|queue| queue.lend_kept(id, claim))
    }
}

impl Queue {
    /// True if the queue holds more than its share of the node's memory.
    pub(super) fn is_short_of_memory(&self) -> bool {
        let held = self.messages.memory_bytes();
        match self.counters.short_at_kib > 0 {
            true => !self.budget.may_go_on(held),
            false => self.budget.is_beyond_share(held),
        }
    }

    /// True if the queue holds more than its share of the node's memory, and would not if so many
    /// bytes were free, which are most of what is in use.
    pub(super) fn is_short_of_memory_because_of(&self, bytes: u64) -> bool {
        let held = self.messages.memory_bytes();
        let is_most = bytes > self.budget.used() / 2;
        is_most && self.is_short_of_memory() && !self.budget.would_be_beyond_share(held, bytes)
    }

    /// Whether messages are rejected of somebody who has no credit, since the queue has its share of
    /// the node's memory.
    pub(super) fn refuses_for_memory(&mut self, messages: u64) -> bool {
        let is_short = self.is_short_of_memory();
        if is_short {
            self.counters.discard(messages, |discards| &mut discards.refused);
            self.budget.note_refused(messages);
        }
        is_short
    }

    /// A producer waits if the node's memory is short: true then.
    pub(super) fn wait_for_memory(&mut self, id: ProducerId) -> bool {
        let held = self.messages.memory_bytes();
        let waits =
            self.is_short_of_memory() && self.producers.wait_for_memory(id, &self.budget, held);
        self.counters.short_at_kib =
            if waits { self.counters.short_at_kib.max(kib(held)) } else { 0 };
        waits
    }

    /// A producer waits for room. It need not stand in the line of those who wait for memory: so
    /// when there is room somebody has to ask whether there is memory too.
    pub(super) fn wait_for_room(&mut self, id: ProducerId) {
        self.producers.wait(id);
        self.counters.short_at_kib = 0;
    }

    /// A producer waits neither for room nor for memory any more. If it alone stood in the line for
    /// those who wait here, the next one has to ask.
    pub(super) fn wait_no_longer(&mut self, id: ProducerId) {
        if self.producers.leave(id, &self.budget) {
            self.counters.short_at_kib = 0;
        }
    }

    /// Whether the node's memory is still short for those who wait. If the queue has become much
    /// smaller all are called, since they wait for more than they need.
    pub(super) fn is_still_short(&mut self) -> bool {
        if self.counters.short_at_kib == 0 {
            return false;
        }
        let held = self.messages.memory_bytes();
        if self.budget.may_go_on(held) {
            self.counters.short_at_kib = 0;
            return false;
        }
        if kib(held) < self.counters.short_at_kib - self.counters.short_at_kib / 8 {
            self.counters.short_at_kib = kib(held);
            self.producers.call(u64::MAX, &self.budget, &mut self.wakeups);
        }
        true
    }

    /// While memory is short, a queue that is read keeps some of what its messages leave, for the next
    /// ones: what is free goes to whoever has waited longest, and if that is always another one, whose
    /// messages nobody takes, the queue would stand still.
    pub(super) fn keep_some(&mut self, messages: u64, bytes: u64) {
        if !self.budget.is_short() || self.producers.waiting() == 0 {
            return;
        }
        let one = cost_of_one(self.policy.usual_bytes());
        // The next message may be somewhat larger.
        let most = self.budget.least_kept().max(one + one / 4);
        let left = bytes.saturating_add(messages.saturating_mul(cost_of_one(0)));
        let has = self.kept().map_or(0, Reservation::bytes);
        let more = left.min(most.saturating_sub(has));
        let Some(more) = self.budget.keep(more).filter(|more| more.bytes() > 0) else { return };
        match &mut self.rare.get_or_insert_default().kept {
            Some(kept) => kept.merge(more),
            none => *none = Some(more),
        }
        self.producers.call(1, &self.budget, &mut self.wakeups);
    }

    /// Gives back what was kept and is not needed any more.
    pub(super) fn keep_no_more(&mut self) {
        if self.kept().is_some() && (!self.budget.is_short() || self.producers.len() == 0) {
            self.take_kept();
        }
    }

    fn kept(&self) -> Option<&Reservation> {
        self.rare.as_ref()?.kept.as_ref()
    }

    fn take_kept(&mut self) -> Option<Reservation> {
        self.rare.as_mut()?.kept.take()
    }

    fn lend_kept(&mut self, id: ProducerId, claim: &mut Claim) -> bool {
        if self.deleted || self.policy.is_closed() || !self.producers.contains(id) {
            return false;
        }
        let Some(kept) = self.take_kept() else {
            self.producers.wait(id);
            return false;
        };
        self.wait_no_longer(id);
        claim.take_over(kept);
        true
    }

    /// How many messages the node's memory has room for, shared by the producers of this queue; at
    /// least one.
    pub(super) fn credit_for_memory(&self) -> u32 {
        let each = self.messages_that_memory_has_room_for() / self.producers.len().max(1) as u64;
        u32::try_from(each).unwrap_or(u32::MAX).max(1)
    }

    /// How many messages more the queue may take before it has its share of the node's memory.
    pub(super) fn messages_that_memory_has_room_for(&self) -> u64 {
        let held = self.messages.memory_bytes();
        let each = held.checked_div(self.messages.len()).unwrap_or(self.policy.usual_bytes());
        self.budget.room_for(held) / each.max(1)
    }
}

/// So many KiB, at least one.
fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX).max(1)
}
