//! Settings of a queue as a map of arguments, as links and management bring it.

use super::argument::{ARGUMENTS, Argument};
use super::value::Argued;
use super::{QueueSettings, SettingsError, is_passed_over};
use mochila_wire::Map;

impl QueueSettings {
    /// Settings as arguments say, everything else by default.
    pub fn from_arguments(arguments: &Map) -> Result<QueueSettings, SettingsError> {
        QueueSettings::default().with_arguments(arguments)
    }

    /// These settings with what arguments say on top. Null takes an argument back, as if it had never
    /// been given, and what is only said of groups or priorities goes when those do.
    pub fn with_arguments(mut self, arguments: &Map) -> Result<QueueSettings, SettingsError> {
        let given = given(arguments)?;
        let before = self.clone();
        let (taken_back, said): (Vec<_>, Vec<_>) =
            given.iter().partition(|given| given.value.is_none());
        for Given { argument, value, .. } in taken_back.into_iter().chain(said) {
            argument.put(&mut self, value.clone())?;
        }
        for details in DETAILS {
            if details.are_of(&before) && !details.are_of(&self) {
                let is_given = |detail: &&Argument| given.iter().any(|it| it.argument.is(detail));
                for detail in details.all().filter(|detail| !is_given(detail)) {
                    detail.put(&mut self, None)?;
                }
            }
        }
        Ok(self)
    }

    /// The arguments in force, under their first names.
    pub fn to_arguments(&self) -> Map {
        let mut arguments = Map::new();
        for argument in ARGUMENTS {
            if let Some(value) = argument.get(self) {
                arguments.insert(argument.name, value);
            }
        }
        arguments
    }
}

/// An argument that is given, under one of its names.
struct Given<'a> {
    argument: &'static Argument,
    name: &'a str,
    value: Option<Argued>,
}

/// What each argument says. It may be given more than once, under other names, if it says the same.
fn given(arguments: &Map) -> Result<Vec<Given<'_>>, SettingsError> {
    let mut all: Vec<Given<'_>> = Vec::new();
    for (key, value) in arguments.iter() {
        let name = key.as_str().unwrap_or_default();
        let Some(argument) = Argument::named(name) else {
            if is_passed_over(name) {
                continue;
            }
            return Err(SettingsError::UnknownArgument { name: key.to_string() });
        };
        let value = argument.parse(value)?;
        match all.iter_mut().find(|given| given.argument.is(argument)) {
            None => all.push(Given { argument, name, value }),
            Some(given) if given.value.is_none() => *given = Given { argument, name, value },
            Some(given) if value.is_none() || given.value == value => {}
            Some(given) => {
                let (name, other) = (given.name.to_owned(), name.to_owned());
                return Err(SettingsError::Twice { name, other });
            }
        }
    }
    Ok(all)
}

/// Arguments that say more of what another one asks for, and mean nothing without it.
struct Details {
    of: &'static str,
    all: &'static [&'static str],
}

impl Details {
    /// Whether settings ask for what these are about.
    fn are_of(&self, settings: &QueueSettings) -> bool {
        Argument::named(self.of).is_some_and(|argument| argument.get(settings).is_some())
    }

    fn all(&self) -> impl Iterator<Item = &'static Argument> {
        ARGUMENTS.iter().filter(|argument| self.all.contains(&argument.name))
    }
}

static DETAILS: &[Details] = &[
    Details {
        of: "qpid.shared_msg_group",
        all: &["qpid.group_header_key", "qpid.default-message-group", "qpid.group_rebalance"],
    },
    Details {
        of: "qpid.priorities",
        all: &[
            "qpid.fairshare",
            "qpid.fairshare-0",
            "qpid.fairshare-1",
            "qpid.fairshare-2",
            "qpid.fairshare-3",
            "qpid.fairshare-4",
            "qpid.fairshare-5",
            "qpid.fairshare-6",
            "qpid.fairshare-7",
            "qpid.fairshare-8",
            "qpid.fairshare-9",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ArgumentKind, LifetimePolicy, LimitPolicy};
    use mochila_wire::Value;

    #[test]
    fn an_argument_is_understood_under_each_of_its_names() {
        for name in ["qpid.max_count", "max-count", "max-queue-count"] {
            let arguments = Map::new().with(name, Value::Uint(7));
            assert_eq!(QueueSettings::from_arguments(&arguments).unwrap().max_count, Some(7));
        }
    }

    #[test]
    fn numbers_may_come_as_text() {
        let arguments = Map::new().with("qpid.max_size", Value::from("1200000000"));
        let settings = QueueSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings.max_bytes, Some(1_200_000_000));
    }

    #[test]
    fn two_names_of_one_argument_have_to_say_the_same() {
        let arguments = Map::new().with("max-count", Value::Uint(5));
        let same = arguments.clone().with("qpid.max_count", Value::from("5"));
        assert_eq!(QueueSettings::from_arguments(&same).unwrap().max_count, Some(5));
        let one = arguments.clone().with("qpid.max_count", Value::Null);
        assert_eq!(QueueSettings::from_arguments(&one).unwrap().max_count, Some(5));
        let other = arguments.with("qpid.max_count", Value::Uint(6));
        assert_eq!(
            QueueSettings::from_arguments(&other).unwrap_err().to_string(),
            "max-count and qpid.max_count are the same argument, and have different values"
        );
        let twice =
            Map(vec![("exclusive".into(), true.into()), ("exclusive".into(), false.into())]);
        assert_eq!(
            QueueSettings::from_arguments(&twice).unwrap_err().to_string(),
            "exclusive is given twice, with different values"
        );
    }

    #[test]
    fn every_argument_can_be_taken_back() {
        let values = |kind| match kind {
            ArgumentKind::Flag => Value::from(true),
            ArgumentKind::Choice(words) => words[words.len() - 1].into(),
            ArgumentKind::Annotation | ArgumentKind::Property | ArgumentKind::Text => "x".into(),
            _ => Value::Uint(1),
        };
        for argument in ARGUMENTS {
            let given = Map::new().with(argument.name, values(argument.kind));
            let settings = QueueSettings::from_arguments(&given).unwrap();
            assert_ne!(settings, QueueSettings::default(), "{}", argument.name);
            let null = Map::new().with(argument.plain, Value::Null);
            let mut after = settings.with_arguments(&null).unwrap();
            if argument.name == "qpid.auto_delete_timeout" {
                assert_eq!(after.lifetime.take(), Some(LifetimePolicy::DeleteOnNoLinks));
            }
            assert_eq!(after, QueueSettings::default(), "{}", argument.name);
        }
    }

    #[test]
    fn what_is_taken_back_goes_before_what_is_given() {
        let arguments = Map::new().with("auto-delete", true).with("lifetime-policy", Value::Null);
        let settings = QueueSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings.lifetime, Some(LifetimePolicy::DeleteOnNoLinks));
    }

    #[test]
    fn what_says_more_of_groups_or_priorities_goes_with_them() {
        let usual = QueueSettings::default();
        for (given, end) in [
            (
                Map::new()
                    .with("shared-msg-group", true)
                    .with("group-header-key", "colour")
                    .with("default-message-group", "")
                    .with("group-rebalance", true),
                Map::new().with("qpid.shared_msg_group", 0),
            ),
            (
                Map::new().with("priorities", 5).with("fairshare", 3).with("fairshare-2", 0),
                Map::new().with("qpid.priorities", 0),
            ),
        ] {
            let settings = QueueSettings::from_arguments(&given).unwrap();
            assert_eq!(settings.clone().with_arguments(&end), Ok(usual.clone()));
            let null = end.iter().map(|(key, _)| (key.clone(), Value::Null)).collect();
            assert_eq!(settings.with_arguments(&null), Ok(usual.clone()));
        }
        let groups = Map::new().with("shared-msg-group", true);
        let settings = QueueSettings::from_arguments(&groups).unwrap();
        let said = Map::new().with("shared-msg-group", false).with("group-header-key", "colour");
        let settings = settings.with_arguments(&said).unwrap();
        assert_eq!(settings.group_header_key.as_deref(), Some("colour"), "to be refused");
    }

    #[test]
    fn a_key_that_is_empty_takes_back_the_one_there_is_and_is_no_key() {
        for name in ["qpid.last_value_queue_key", "qpid.queue_msg_sequence"] {
            let empty = Map::new().with(name, "");
            let error = QueueSettings::from_arguments(&empty).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.ends_with(", not ''"), "{error}");
            let settings = QueueSettings::from_arguments(&Map::new().with(name, "x")).unwrap();
            assert_eq!(settings.with_arguments(&empty), Ok(QueueSettings::default()));
        }
    }

    #[test]
    fn an_unknown_argument_is_a_clear_error() {
        let arguments = Map::new().with("qpid.max_cuont", Value::Uint(7));
        let error = QueueSettings::from_arguments(&arguments).unwrap_err();
        assert_eq!(error.to_string(), "'qpid.max_cuont' is not an argument of a queue");
    }

    #[test]
    fn what_only_concerns_an_older_broker_and_what_is_marked_is_passed_over() {
        let arguments = Map::new()
            .with("qpid.file_count", Value::Uint(8))
            .with("qpid.paging", true)
            .with("qpid.group_timestamp", true)
            .with("x-opt-colour", "red")
            .with("qpid.max_count", Value::Uint(7));
        let settings = QueueSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings, QueueSettings { max_count: Some(7), ..QueueSettings::default() });
    }

    #[test]
    fn what_would_keep_messages_out_or_mark_them_is_not_passed_over() {
        for name in ["qpid.trace.id", "qpid.trace.exclude"] {
            let arguments = Map::new().with(name, "site");
            QueueSettings::from_arguments(&arguments).unwrap_err();
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_a_clear_error() {
        let of = |name, value| {
            let arguments = Map::new().with(name, value);
            QueueSettings::from_arguments(&arguments).unwrap_err().to_string()
        };
        assert_eq!(
            of("qpid.policy_type", Value::from("rnig")),
            "qpid.policy_type takes one of reject, block, ring, self-destruct, ring-strict, not 'rnig'"
        );
        assert_eq!(
            of("qpid.max_count", Value::from("many")),
            "qpid.max_count takes a number of messages, not 'many'"
        );
        assert_eq!(
            of("qpid.priorities", Value::Long(-1)),
            "qpid.priorities takes a number, not -1"
        );
        assert!(of("exclusive", Value::Uint(2)).starts_with("exclusive takes true or false"));
    }

    #[test]
    fn the_policy_at_the_limit_is_known_under_the_words_of_every_tool() {
        for (word, policy) in [
            ("reject", LimitPolicy::Reject),
            ("ring", LimitPolicy::Ring),
            ("ring-strict", LimitPolicy::Ring),
            ("ring_strict", LimitPolicy::Ring),
            ("self-destruct", LimitPolicy::SelfDestruct),
            ("self_destruct", LimitPolicy::SelfDestruct),
        ] {
            let arguments = Map::new().with("qpid.policy_type", Value::from(word));
            assert_eq!(QueueSettings::from_arguments(&arguments).unwrap().limit_policy, policy);
        }
    }

    #[test]
    fn a_lifetime_policy_may_be_a_word_or_what_the_specification_says() {
        let policy = LifetimePolicy::DeleteOnNoMessages;
        for value in [policy.to_value(), Value::from("delete-on-no-messages")] {
            let arguments = Map::new().with("lifetime-policy", value);
            let settings = QueueSettings::from_arguments(&arguments).unwrap();
            assert_eq!(settings.lifetime, Some(policy));
        }
    }

    #[test]
    fn what_is_in_force_can_be_told_and_understood_again() {
        let arguments = Map::new()
            .with("qpid.max_count", Value::Uint(7))
            .with("limit-policy", Value::from("block"))
            .with("qpid.auto_delete_timeout", Value::Uint(3))
            .with("qpid.shared_msg_group", Value::Uint(1))
            .with("qpid.group_header_key", Value::from("colour"))
            .with("qpid.default-message-group", Value::from(""))
            .with("qpid.group_rebalance", true)
            .with("exclusive", true);
        let settings = QueueSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings.lifetime, Some(LifetimePolicy::DeleteOnNoLinks));
        assert_eq!(QueueSettings::from_arguments(&settings.to_arguments()), Ok(settings));
    }
}
