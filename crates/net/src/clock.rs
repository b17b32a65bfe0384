//! The one place where clocks are read.

use mochila_wire::Now;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads the monotonic and the wall clock; everything else is given a [`Now`].
///
/// Copies of a clock agree with each other: their monotonic time starts at the same moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Creates a clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// Reads both clocks.
    pub fn now(&self) -> Now {
        let wall_ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        let mono_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { mono_ms, wall_ms }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
