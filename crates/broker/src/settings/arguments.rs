//! Settings of a queue as a map of arguments, as links and management bring it.

use super::argument::{ARGUMENTS, Argument};
use super::{QueueSettings, SettingsError, is_passed_over};
use mochila_wire::Map;

impl QueueSettings {
    /// Settings as arguments say, everything else by default.
    pub fn from_arguments(arguments: &Map) -> Result<QueueSettings, SettingsError> {
        QueueSettings::default().with_arguments(arguments)
    }

    /// These settings with what arguments say on top.
    pub fn with_arguments(mut self, arguments: &Map) -> Result<QueueSettings, SettingsError> {
        for (key, value) in arguments.iter() {
            let name = key.as_str().unwrap_or_default();
            match Argument::named(name) {
                Some(argument) => argument.set(&mut self, value)?,
                None if is_passed_over(name) => {}
                None => return Err(SettingsError::UnknownArgument { name: key.to_string() }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{LifetimePolicy, LimitPolicy};
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
