/// One reading of the clocks, taken by the shell and handed down as an argument.
///
/// Deadlines are milliseconds on the monotonic clock; AMQP timestamps (part 1, 1.6.17) are
/// milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that never goes back; its origin means nothing.
    pub mono_ms: u64,
    /// Milliseconds since the Unix epoch; may jump when the clock is set.
    pub wall_ms: i64,
}

impl Now {
    /// Makes a reading from both clocks.
    pub const fn new(mono_ms: u64, wall_ms: i64) -> Now {
        Now { mono_ms, wall_ms }
    }

    /// The reading after `ms` milliseconds have passed on both clocks.
    #[must_use]
    pub const fn after(self, ms: u64) -> Now {
        Now {
            mono_ms: self.mono_ms.saturating_add(ms),
            wall_ms: self.wall_ms.saturating_add_unsigned(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_on_both_clocks_and_never_overflows() {
        assert_eq!(Now::new(5, -10).after(20), Now::new(25, 10));
        assert_eq!(Now::new(u64::MAX, i64::MAX).after(1), Now::new(u64::MAX, i64::MAX));
    }
}
