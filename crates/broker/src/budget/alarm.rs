//! Telling operators that the node's memory is short.

use super::{Budget, WAITING};
use crate::events::{Event, EventKind};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use mochila_wire::Now;

/// What operators have been told of the memory.
///
/// ```text
///         in use beyond the soft limit, or waited for, or messages were rejected
///   calm ────────────────────────────────────────────────────────────────────────▶ raised
///        ◀────────────────────────────────────────────────────────────────────────
///         neither in use beyond the soft limit nor waited for
/// ```
///
/// Nobody is told more often than once in `GAP_MS` that memory is short, nor within `HOLD_MS` after
/// that, that it is over: memory that is short again and again is one trouble and not a hundred.
#[derive(Default)]
pub(super) struct Alarm {
    // Relaxed, all three: they are written under the lock, and only say when it is worth taking.
    is_raised: AtomicBool,
    /// Nothing is told before that, on the monotonic clock.
    quiet_until_ms: AtomicU64,
    /// Rejected messages that operators have been told of.
    told_refused: AtomicU64,
    raised_at_ms: Mutex<u64>,
}

impl Budget {
    /// When operators are to be told something; `None` while they know how it is.
    pub(crate) fn alarm_due_ms(&self) -> Option<u64> {
        let alarm = &self.alarm;
        let is_due = match alarm.is_raised.load(Ordering::Relaxed) {
            true => !self.is_scarce(),
            false => self.is_scarce() || self.untold_refused() > 0,
        };
        is_due.then(|| alarm.quiet_until_ms.load(Ordering::Relaxed))
    }

    /// What operators are to be told now.
    pub(crate) fn take_alarm(&self, now: Now) -> Option<Event> {
        let is_due = || self.alarm_due_ms().is_some_and(|due_ms| due_ms <= now.mono_ms);
        if !is_due() {
            return None;
        }
        let mut raised_at_ms = lock(&self.alarm.raised_at_ms);
        // Another worker may have told it in the meantime.
        is_due().then(|| self.cross(now, &mut raised_at_ms))
    }

    fn cross(&self, now: Now, raised_at_ms: &mut u64) -> Event {
        let alarm = &self.alarm;
        let is_over = alarm.is_raised.load(Ordering::Relaxed);
        let (kind, quiet_until_ms) = match is_over {
            true => (EventKind::MemoryFree, *raised_at_ms + GAP_MS),
            false => (EventKind::MemoryShort, now.mono_ms + HOLD_MS),
        };
        let refused = self.untold_refused();
        alarm.told_refused.fetch_add(refused, Ordering::Relaxed);
        alarm.quiet_until_ms.store(quiet_until_ms, Ordering::Relaxed);
        alarm.is_raised.store(!is_over, Ordering::Relaxed);
        let event = Event::new(kind)
            .with("usedBytes", self.used())
            .with("limitBytes", self.limit().unwrap_or(0))
            .with("messagesRejected", refused);
        if is_over {
            return event.with("forMs", now.mono_ms.saturating_sub(*raised_at_ms));
        }
        *raised_at_ms = now.mono_ms;
        event.with("sendersWaiting", self.waiting() as u64)
    }

    /// Whether somebody is held back because of it.
    fn is_scarce(&self) -> bool {
        self.is_short() || self.taken.load(Ordering::Relaxed) & WAITING != 0
    }

    fn untold_refused(&self) -> u64 {
        self.refused().saturating_sub(self.alarm.told_refused.load(Ordering::Relaxed))
    }
}

/// Operators are told that memory is short once in so long.
const GAP_MS: u64 = 60_000;
/// It is not over before.
const HOLD_MS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::{Wake, Waker};
    use std::sync::Arc;

    fn at(mono_ms: u64) -> Now {
        Now::new(mono_ms, 0)
    }

    fn told(budget: &Budget, mono_ms: u64) -> Option<String> {
        budget.take_alarm(at(mono_ms)).map(|event| event.to_string())
    }

    #[test]
    fn operators_hear_once_that_memory_is_short_and_once_that_it_is_over() {
        let budget = Budget::new(16_000);
        assert_eq!((budget.alarm_due_ms(), told(&budget, 0)), (None, None));
        let taken = budget.reserve(15_500).unwrap();
        assert_eq!(budget.alarm_due_ms(), Some(0));
        assert_eq!(
            told(&budget, 1_000).unwrap(),
            "memoryShort usedBytes=15500 limitBytes=16000 messagesRejected=0 sendersWaiting=0"
        );
        assert_eq!((budget.alarm_due_ms(), told(&budget, 50_000)), (None, None));
        drop(taken);
        assert_eq!(
            told(&budget, 61_000).unwrap(),
            "memoryFree usedBytes=0 limitBytes=16000 messagesRejected=0 forMs=60000"
        );
        assert_eq!(budget.alarm_due_ms(), None);
    }

    #[test]
    fn memory_that_is_short_again_and_again_is_told_twice_a_minute() {
        let budget = Budget::new(16_000);
        let mut lines = Vec::new();
        for ms in (0..600_000).step_by(100) {
            let taken = budget.reserve(15_500).unwrap();
            lines.extend(told(&budget, ms));
            drop(taken);
            lines.extend(told(&budget, ms));
        }
        assert_eq!(lines.len(), 2 * 10, "{lines:?}");
    }

    #[test]
    fn a_message_that_is_rejected_for_want_of_memory_is_trouble_too() {
        let budget = Budget::new(16_000);
        budget.note_refused(3);
        assert!(told(&budget, 0).unwrap().contains("messagesRejected=3"));
        budget.note_refused(2);
        assert!(told(&budget, HOLD_MS - 1).is_none(), "it is not over yet");
        assert!(told(&budget, HOLD_MS).unwrap().contains("messagesRejected=2"));
        budget.note_refused(1);
        assert_eq!(budget.alarm_due_ms(), Some(GAP_MS));
        assert!(told(&budget, GAP_MS).unwrap().starts_with("memoryShort"));
    }

    #[test]
    fn a_sender_that_waits_for_memory_is_trouble_too() {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(&self, _: u32) {}
        }
        let budget = Budget::new(16_000);
        let taken = budget.reserve(14_000).unwrap();
        let place = budget.wait(&Waker::new(Arc::new(Nobody), 0), None, 14_000).unwrap();
        assert!(told(&budget, 0).unwrap().contains("sendersWaiting=1"));
        budget.leave(place);
        assert!(told(&budget, HOLD_MS).unwrap().starts_with("memoryFree"));
        drop(taken);
    }
}
