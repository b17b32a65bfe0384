use std::time::{Duration, Instant, SystemTime};

use mochila_wire::Now;

/// The clocks that the engine is driven by: a monotonic one that begins with this value, and the
/// system's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { base: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        // A system clock before 1970 is as good as none.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now {
            mono_ms: self.base.elapsed().as_millis() as u64,
            wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX),
        }
    }

    /// The instant of a deadline on the monotonic clock.
    pub(crate) fn instant(&self, mono_ms: u64) -> Instant {
        self.base + Duration::from_millis(mono_ms)
    }
}
