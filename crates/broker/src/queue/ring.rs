//! A queue that drops old messages instead of refusing new ones.

use super::{Excess, Queue};
use mochila_wire::Now;

impl Queue {
    /// Drops messages until the queue is within its limits, if it is one that does so: when others
    /// have come in, when consumers have given some back, and when the limits are lower.
    ///
    /// Only messages that nobody holds are dropped, those first that are missed least: of the
    /// lowest priority, and of these the oldest. If consumers hold so much that nothing else is
    /// left, the last message stays, also beyond the limits, up to twice as much as they allow.
    pub(super) fn drop_overflow(&mut self, now: Now) {
        let mut left = DROPPED_AT_ONCE;
        while left > 0
            && let Some((excess, most)) = self.overflow()
        {
            let shed = self.messages.shed(excess, most.min(left), now.mono_ms);
            left -= shed.dropped.messages() + shed.expired.messages();
            self.counters.discard(shed.dropped.messages(), |discards| &mut discards.dropped);
            self.leave(shed.dropped);
            self.expired(shed.expired);
        }
    }

    /// True if there is more to drop than is dropped at once.
    pub(super) fn overflows(&self) -> bool {
        !self.deleted && self.overflow().is_some()
    }

    /// What has to be dropped, if anything, and as how many messages at most.
    fn overflow(&self) -> Option<(Excess, u64)> {
        let excess = self.policy.excess()?;
        let most = match self.messages.available().len() {
            1 => u64::from(self.policy.is_far_over()),
            available => available.saturating_sub(1),
        };
        (most > 0).then_some((excess, most))
    }
}

/// So many messages are dropped before the lock is released for others; the rest is due at once.
const DROPPED_AT_ONCE: u64 = 65_536;
