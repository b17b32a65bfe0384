//! So many messages a second and not more.

use std::time::{Duration, Instant};

/// When the next message is due at a constant rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: Instant,
    interval: Duration,
}

impl Pace {
    /// `per_second` of 0 is no limit.
    pub(crate) fn new(per_second: u64, start: Instant) -> Option<Self> {
        let interval_ns = 1_000_000_000_u64.checked_div(per_second)?;
        Some(Self { start, interval: Duration::from_nanos(interval_ns) })
    }

    /// When the message after `done` others is due.
    pub(crate) fn due(&self, done: u64) -> Instant {
        let ns = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX).saturating_mul(done);
        self.start + Duration::from_nanos(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_at_equal_distances_from_the_start() {
        let start = Instant::now();
        let pace = Pace::new(200, start).unwrap();
        assert_eq!(pace.due(0), start);
        assert_eq!(pace.due(3) - start, Duration::from_millis(15));
        assert!(Pace::new(0, start).is_none());
    }
}
