//! A queue that drops old messages instead of refusing new ones.

use super::Queue;
use mochila_wire::Now;

impl Queue {
    /// Drops messages until the queue is within its limits, if it is one that does so.
    ///
    /// Only messages that nobody holds are dropped, those first that are missed least: of the
    /// lowest priority, and of these the oldest. If consumers hold so much that nothing else is
    /// left, the last message stays, also beyond the limits, up to twice as much as they allow.
    pub(super) fn drop_overflow(&mut self, now: Now) {
        let mut left = DROPPED_AT_ONCE;
        while let Some(excess) = self.policy.excess() {
            let most = match self.messages.available().len() {
                1 => u64::from(self.policy.is_far_over()),
                available => available.saturating_sub(1),
            };
            if most.min(left) == 0 {
                break;
            }
            let shed = self.messages.shed(excess, most.min(left), now.mono_ms);
            left -= shed.dropped.messages() + shed.expired.messages();
            self.counters.discard(shed.dropped.messages(), |discards| &mut discards.dropped);
            self.leave(shed.dropped);
            self.expired(shed.expired);
        }
    }
}

/// So many messages are dropped before the lock is released for others; more than a batch brings,
/// so that a queue whose limits were lowered gets there in the end.
const DROPPED_AT_ONCE: u64 = 65_536;
