//! A queue's share of the node's memory.

use super::{ProducerId, Queue};

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
    /// bytes were free.
    pub(super) fn is_short_of_memory_because_of(&self, bytes: u64) -> bool {
        let held = self.messages.memory_bytes();
        self.is_short_of_memory() && !self.budget.would_be_beyond_share(held, bytes)
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
