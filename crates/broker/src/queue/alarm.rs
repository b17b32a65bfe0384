//! Telling operators that a queue grows, before its limits are reached.

use super::policy::Policy;
use crate::events::{Event, EventKind};
use crate::settings::{Defaults, QueueSettings, USUAL_ALERT_GAP_SECONDS};

/// Watches the depth of a queue: messages and bytes, each with a threshold to be told of and a
/// lower one below which all is well again.
///
/// ```text
///          as much as the upper threshold
///   calm ─────────────┬──────────────────────────────────▶ raised
///     ▲ ▲             │ too soon after the last time        ▲ │
///     │ └─ less ─── waiting ──────── the gap is over ───────┘ │
///     └──────────── no more than the lower threshold ─────────┘
/// ```
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Upper thresholds that nobody has set are at so many percent of the limits; with `EXPLICIT`
    /// if some have been set. One byte for both: there may be a million queues.
    percent: u8,
    /// Where the two are, messages and bytes.
    levels: [Level; 2],
    /// Whether an upward, or a downward, crossing has to be told.
    crossed: Option<bool>,
    /// No upward crossing is told before that, in whole seconds: there may be a million queues.
    quiet_until_s: u32,
}

/// Where a depth is, and whether that has been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    #[default]
    Calm,
    /// Above the upper threshold, to be told when the gap is over.
    Waiting,
    Raised,
}

/// A threshold that a queue has crossed, and how much it held then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    is_upward: bool,
    messages: u64,
    bytes: u64,
}

impl Alarm {
    pub(crate) fn new(settings: &QueueSettings, defaults: &Defaults) -> Alarm {
        let mut alarm = Alarm::default();
        alarm.set(settings, defaults);
        alarm
    }

    /// Other thresholds are in force from now on.
    pub(crate) fn set(&mut self, settings: &QueueSettings, defaults: &Defaults) {
        let set = [
            settings.alert_count,
            settings.alert_count_down,
            settings.alert_bytes,
            settings.alert_bytes_down,
        ];
        self.percent = defaults.alert_percent.min(100) as u8;
        if set.iter().any(Option::is_some) {
            self.percent |= EXPLICIT;
        }
    }

    /// Looks at the depth after a change.
    #[inline]
    pub(crate) fn look(&mut self, now_ms: u64, policy: &Policy, settings: &QueueSettings) {
        let limits = policy.limits();
        let maxima = [limits.max_count, limits.max_bytes];
        let percent = u64::from(self.percent & !EXPLICIT);
        for (index, depth) in [policy.messages(), policy.bytes()].into_iter().enumerate() {
            // In hundredths, so that nothing has to be divided.
            let depth = depth.saturating_mul(100);
            let usual = maxima[index].saturating_mul(percent);
            let (up, down) = match self.percent & EXPLICIT != 0 {
                true => explicit(settings, index, usual),
                false => (usual, usual / 2),
            };
            let is_above = depth >= up && up > 0;
            let is_to_change = match self.levels[index] {
                Level::Calm => is_above,
                Level::Waiting => true,
                Level::Raised => depth <= down,
            };
            if is_to_change {
                self.change(index, is_above, now_ms, settings);
            }
        }
    }

    /// When something has to be told though nothing changes.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let is_waiting = self.levels.contains(&Level::Waiting);
        is_waiting.then_some(u64::from(self.quiet_until_s) * 1_000)
    }

    /// What has to be told, if anything.
    #[inline]
    pub(crate) fn take(&mut self, policy: &Policy) -> Option<Crossing> {
        let is_upward = self.crossed.take()?;
        let (messages, bytes) = (policy.messages(), policy.bytes());
        Some(Crossing { is_upward, messages, bytes })
    }

    #[cold]
    fn change(&mut self, index: usize, is_above: bool, now_ms: u64, settings: &QueueSettings) {
        let is_quiet = now_ms < u64::from(self.quiet_until_s) * 1_000;
        let level = match self.levels[index] {
            Level::Waiting if !is_above => Level::Calm,
            Level::Calm | Level::Waiting if is_quiet => Level::Waiting,
            Level::Calm | Level::Waiting => {
                let gap_seconds = settings.alert_gap_seconds.unwrap_or(USUAL_ALERT_GAP_SECONDS);
                let until_s = now_ms.div_ceil(1_000).saturating_add(gap_seconds);
                self.quiet_until_s = u32::try_from(until_s).unwrap_or(u32::MAX);
                self.crossed = Some(true);
                Level::Raised
            }
            Level::Raised => {
                self.crossed = Some(false);
                Level::Calm
            }
        };
        self.levels[index] = level;
    }
}

impl Crossing {
    pub(crate) fn to_event(self, queue: &str) -> Event {
        let kind = match self.is_upward {
            true => EventKind::ThresholdUpward,
            false => EventKind::ThresholdDownward,
        };
        Event::new(kind).with("queue", queue).with("count", self.messages).with("size", self.bytes)
    }
}

/// Thresholds that have been set, in hundredths; the upper one follows from the limit if it has
/// not, and the lower one from the upper one.
fn explicit(settings: &QueueSettings, index: usize, usual: u64) -> (u64, u64) {
    let (up, down) = match index {
        0 => (settings.alert_count, settings.alert_count_down),
        _ => (settings.alert_bytes, settings.alert_bytes_down),
    };
    let up = up.map_or(usual, |up| up.saturating_mul(100));
    (up, down.map_or(up / 2, |down| down.saturating_mul(100)))
}

/// Some thresholds have been set.
const EXPLICIT: u8 = 1 << 7;
