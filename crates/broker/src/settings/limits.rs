//! The limits of a queue as they are in force.

use super::{LimitPolicy, QueueSettings, SettingsError};

/// What queues are like whose settings do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// At most so many bytes; 0 means no limit.
    pub max_bytes: u64,
    /// At so many percent of its limits a queue stops its producers; 0 means never.
    pub flow_stop_percent: u32,
    /// At so many percent it lets them go on.
    pub flow_resume_percent: u32,
    /// At so many percent of its limits operators are told of a queue; 0 means never.
    pub alert_percent: u32,
    /// Whether messages get an annotation that says when they came.
    pub ingress_timestamp: bool,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults {
            max_bytes: 100 * 1024 * 1024,
            flow_stop_percent: 80,
            flow_resume_percent: 70,
            alert_percent: 80,
            ingress_timestamp: false,
        }
    }
}

/// The limits of a queue; [`Limits::NONE`] where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most so many messages.
    pub max_count: u64,
    /// At most so many bytes.
    pub max_bytes: u64,
    /// More messages than this stop the producers.
    pub stop_count: u64,
    /// More bytes than this stop the producers.
    pub stop_bytes: u64,
    /// Less messages than this, and less bytes than `resume_bytes`, let them go on.
    pub resume_count: u64,
    /// See `resume_count`.
    pub resume_bytes: u64,
}

impl Limits {
    /// No limit.
    pub const NONE: u64 = u64::MAX;

    /// The limits that follow from settings, or why they contradict each other.
    pub fn of(settings: &QueueSettings, defaults: &Defaults) -> Result<Limits, SettingsError> {
        let count = Asked {
            max: some(settings.max_count.unwrap_or(0)),
            stop: settings.flow_stop_count,
            resume: settings.flow_resume_count,
            names: ["qpid.max_count", "qpid.flow_stop_count", "qpid.flow_resume_count"],
        };
        let bytes = Asked {
            max: some(settings.max_bytes.unwrap_or(defaults.max_bytes)),
            stop: settings.flow_stop_bytes,
            resume: settings.flow_resume_bytes,
            names: ["qpid.max_size", "qpid.flow_stop_size", "qpid.flow_resume_size"],
        };
        let policy = settings.limit_policy;
        let is_unlimited = count.max == Limits::NONE && bytes.max == Limits::NONE;
        if is_unlimited && matches!(policy, LimitPolicy::Ring | LimitPolicy::SelfDestruct) {
            return Err(SettingsError::Incomplete {
                name: "qpid.policy_type",
                needs: "qpid.max_count or qpid.max_size",
            });
        }
        // Whoever says anything about flow control says all of it.
        let is_explicit = count.is_explicit() || bytes.is_explicit();
        let percents = if is_explicit || !policy.holds_back() {
            (0, 0)
        } else {
            (defaults.flow_stop_percent, defaults.flow_resume_percent)
        };
        let (stop_count, resume_count) = count.thresholds(percents)?;
        let (stop_bytes, resume_bytes) = bytes.thresholds(percents)?;
        check_alerts(settings)?;
        Ok(Limits {
            max_count: count.max,
            max_bytes: bytes.max,
            stop_count,
            stop_bytes,
            resume_count,
            resume_bytes,
        })
    }
}

/// Operators are told that all is well again below the threshold at which they were told.
fn check_alerts(settings: &QueueSettings) -> Result<(), SettingsError> {
    let pairs = [
        (
            "qpid.alert_count_down",
            settings.alert_count_down,
            "qpid.alert_count",
            settings.alert_count,
        ),
        (
            "qpid.alert_size_down",
            settings.alert_bytes_down,
            "qpid.alert_size",
            settings.alert_bytes,
        ),
    ];
    for (down_name, down, up_name, up) in pairs {
        if let (Some(down), Some(up)) = (down, up)
            && down > up
        {
            let (larger, smaller) = ((down_name, down), (up_name, up));
            return Err(SettingsError::Conflict { larger, smaller });
        }
    }
    Ok(())
}

/// What is asked for in one dimension: messages or bytes.
struct Asked {
    max: u64,
    stop: Option<u64>,
    resume: Option<u64>,
    names: [&'static str; 3],
}

impl Asked {
    fn is_explicit(&self) -> bool {
        self.stop.is_some() || self.resume.is_some()
    }

    /// The thresholds at which producers stop and go on.
    fn thresholds(&self, percents: (u32, u32)) -> Result<(u64, u64), SettingsError> {
        let [max_name, stop_name, resume_name] = self.names;
        let stop = self.stop.map_or_else(|| self.percent(percents.0), some);
        let resume = match self.resume.map(some) {
            Some(Limits::NONE) => stop,
            Some(resume) => resume,
            // Of a queue of one message that one stops them, and they go on when it has left.
            None => self.percent(percents.1).min(stop).max(1),
        };
        if self.is_explicit() && stop != Limits::NONE && resume > stop {
            let (larger, smaller) = ((resume_name, resume), (stop_name, stop));
            return Err(SettingsError::Conflict { larger, smaller });
        }
        if stop != Limits::NONE && stop > self.max {
            let (larger, smaller) = ((stop_name, stop), (max_name, self.max));
            return Err(SettingsError::Conflict { larger, smaller });
        }
        Ok((stop, resume))
    }

    fn percent(&self, percent: u32) -> u64 {
        if self.max == Limits::NONE || percent == 0 {
            return Limits::NONE;
        }
        (u128::from(self.max) * u128::from(percent) / 100) as u64
    }
}

fn some(limit: u64) -> u64 {
    if limit == 0 { Limits::NONE } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(change: impl FnOnce(&mut QueueSettings)) -> Result<Limits, SettingsError> {
        let mut settings = QueueSettings::default();
        change(&mut settings);
        Limits::of(&settings, &Defaults::default())
    }

    #[test]
    fn the_only_message_of_a_queue_of_one_stops_producers() {
        let limits = limits(|s| s.max_count = Some(1)).unwrap();
        assert_eq!((limits.stop_count, limits.resume_count), (0, 1));
    }

    #[test]
    fn a_queue_holds_100_mib_unless_told_otherwise_and_stops_producers_at_80_percent() {
        let limits = limits(|_| {}).unwrap();
        assert_eq!((limits.max_count, limits.max_bytes), (Limits::NONE, 104_857_600));
        assert_eq!((limits.stop_bytes, limits.resume_bytes), (83_886_080, 73_400_320));
        assert_eq!((limits.stop_count, limits.resume_count), (Limits::NONE, Limits::NONE));
    }

    #[test]
    fn zero_means_no_limit() {
        let limits = limits(|s| s.max_bytes = Some(0)).unwrap();
        assert_eq!((limits.max_bytes, limits.stop_bytes), (Limits::NONE, Limits::NONE));
    }

    #[test]
    fn flow_control_is_switched_off_by_a_threshold_of_zero() {
        let limits = limits(|s| {
            s.max_count = Some(1_000);
            s.flow_stop_bytes = Some(0);
        })
        .unwrap();
        assert_eq!((limits.max_count, limits.stop_count), (1_000, Limits::NONE));
        assert_eq!(limits.stop_bytes, Limits::NONE);
    }

    #[test]
    fn a_stop_without_a_resume_threshold_resumes_where_it_stops() {
        let limits = limits(|s| s.flow_stop_count = Some(10)).unwrap();
        assert_eq!((limits.stop_count, limits.resume_count), (10, 10));
    }

    #[test]
    fn a_ring_holds_nobody_back_unless_told_to() {
        for policy in [LimitPolicy::Ring, LimitPolicy::SelfDestruct] {
            let limits = limits(|s| {
                s.max_count = Some(1_000);
                s.limit_policy = policy;
            });
            let limits = limits.unwrap();
            assert_eq!((limits.max_count, limits.max_bytes), (1_000, 104_857_600));
            assert_eq!((limits.stop_count, limits.stop_bytes), (Limits::NONE, Limits::NONE));
        }
    }

    #[test]
    fn a_ring_without_any_limit_is_a_clear_error() {
        let error = limits(|s| {
            s.max_bytes = Some(0);
            s.limit_policy = LimitPolicy::Ring;
        });
        let text = "qpid.policy_type means nothing without qpid.max_count or qpid.max_size";
        assert_eq!(error.unwrap_err().to_string(), text);
    }

    #[test]
    fn thresholds_that_contradict_each_other_are_an_error() {
        let error = limits(|s| {
            s.flow_stop_count = Some(10);
            s.flow_resume_count = Some(11);
        });
        let text = "qpid.flow_resume_count (11) must not be larger than qpid.flow_stop_count (10)";
        assert_eq!(error.unwrap_err().to_string(), text);
        let error = limits(|s| {
            s.max_count = Some(5);
            s.flow_stop_count = Some(10);
        });
        let text = "qpid.flow_stop_count (10) must not be larger than qpid.max_count (5)";
        assert_eq!(error.unwrap_err().to_string(), text);
    }
}
