//! Settings of a queue as they are in force, with what is left to the defaults.

use super::argument::{Argument, LAST_VALUE_QUEUE};
use super::naming::DEFAULT_GROUP;
use super::{ArgumentKind, Defaults, Limits, QueueSettings};
use mochila_wire::Value;

impl QueueSettings {
    /// These settings, and what is in force where they say nothing.
    pub(crate) fn in_force(self, limits: &Limits, defaults: &Defaults) -> QueueSettings {
        let told = |limit| if limit == Limits::NONE { 0 } else { limit };
        let alerts = |max, up: Option<u64>, down: Option<u64>| {
            let percent = u128::from(defaults.alert_percent.min(100));
            let up = up.unwrap_or((u128::from(told(max)) * percent / 100) as u64);
            (Some(up), Some(down.unwrap_or(up / 2)))
        };
        let (alert_count, alert_count_down) =
            alerts(limits.max_count, self.alert_count, self.alert_count_down);
        let (alert_bytes, alert_bytes_down) =
            alerts(limits.max_bytes, self.alert_bytes, self.alert_bytes_down);
        let usual_group = self.shared_groups.then(|| DEFAULT_GROUP.into());
        QueueSettings {
            max_count: Some(told(limits.max_count)),
            max_bytes: Some(told(limits.max_bytes)),
            flow_stop_count: Some(told(limits.stop_count)),
            flow_resume_count: Some(told(limits.resume_count)),
            flow_stop_bytes: Some(told(limits.stop_bytes)),
            flow_resume_bytes: Some(told(limits.resume_bytes)),
            alert_count,
            alert_count_down,
            alert_bytes,
            alert_bytes_down,
            alert_gap_seconds: self.alert_gap_seconds.or(Some(USUAL_ALERT_GAP_SECONDS)),
            ingress_timestamp: self.ingress_timestamp.or(Some(defaults.ingress_timestamp)),
            default_group: self.default_group.or(usual_group),
            fairshare_of: self.fairshare_of.map(|turn| turn.or(self.fairshare)),
            ..self
        }
    }
}

impl Argument {
    /// Its value in settings that are complete; `None` if there is no value that says what is so.
    pub fn in_force(&self, settings: &QueueSettings) -> Option<Value> {
        self.get(settings).or_else(|| match self.kind {
            ArgumentKind::Number
            | ArgumentKind::Count
            | ArgumentKind::Bytes
            | ArgumentKind::Seconds => Some(Value::Ulong(0)),
            // That there is a key, and which, is told under another name.
            ArgumentKind::Flag if self.name != LAST_VALUE_QUEUE => Some(Value::Bool(false)),
            ArgumentKind::Flag
            | ArgumentKind::Choice(_)
            | ArgumentKind::Annotation
            | ArgumentKind::Property
            | ArgumentKind::Text => None,
        })
    }
}

/// Operators are told of the same queue once in so long.
pub(crate) const USUAL_ALERT_GAP_SECONDS: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::Map;

    fn in_force(arguments: Map) -> QueueSettings {
        let settings = QueueSettings::from_arguments(&arguments).unwrap();
        let defaults = Defaults::default();
        let limits = Limits::of(&settings, &defaults).unwrap();
        settings.in_force(&limits, &defaults)
    }

    fn told(name: &str, settings: &QueueSettings) -> Option<Value> {
        Argument::named(name).unwrap().in_force(settings)
    }

    #[test]
    fn what_is_left_to_the_defaults_follows_from_them_and_from_the_limits() {
        let settings = in_force(Map::new().with("qpid.max_count", 1_000));
        for (name, value) in [
            ("qpid.max_size", 104_857_600),
            ("qpid.flow_stop_count", 800),
            ("qpid.flow_resume_count", 700),
            ("qpid.flow_stop_size", 83_886_080),
            ("qpid.alert_count", 800),
            ("qpid.alert_count_down", 400),
            ("qpid.alert_repeat_gap", 60),
            ("qpid.max_delivery_count", 0),
            ("qpid.priorities", 0),
        ] {
            assert_eq!(told(name, &settings), Some(Value::Ulong(value)), "{name}");
        }
        assert_eq!(told("qpid.ingress_timestamp", &settings), Some(false.into()));
        assert_eq!(told("qpid.default-message-group", &settings), None, "there are no groups");
        assert_eq!(told("qpid.filter", &settings), None);
    }

    #[test]
    fn what_is_not_limited_is_told_as_zero() {
        let asked = Map::new().with("qpid.max_size", 0).with("qpid.alert_size", 50);
        let settings = in_force(asked);
        for (name, value) in [
            ("qpid.max_count", 0),
            ("qpid.max_size", 0),
            ("qpid.flow_stop_size", 0),
            ("qpid.alert_count", 0),
            ("qpid.alert_size", 50),
            ("qpid.alert_size_down", 25),
        ] {
            assert_eq!(told(name, &settings), Some(Value::Ulong(value)), "{name}");
        }
    }

    #[test]
    fn what_is_so_is_told_of_every_kind_of_queue() {
        let groups = in_force(Map::new().with("qpid.shared_msg_group", true));
        assert_eq!(told("default-message-group", &groups), Some("qpid.no-group".into()));
        let urgent = in_force(Map::new().with("qpid.priorities", 4).with("qpid.fairshare", 3));
        assert_eq!(told("qpid.fairshare-2", &urgent), Some(Value::Ulong(3)));
        let values = in_force(Map::new().with("qpid.last_value_queue_key", "k"));
        assert_eq!(told("qpid.last_value_queue", &values), None, "it would be half the truth");
    }
}
