//! What names a message within its queue: the group that it is in, or its key.

use super::{QueueSettings, SettingsError};
use foldhash::quality::RandomState;
use mochila_wire::section::Section;
use std::hash::{BuildHasher, Hasher};

/// Where messages say what they belong to, and what becomes of those that do not.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(crate) source: NameSource,
    /// The name of messages that have none; `None` if they belong to nothing.
    pub(crate) default: Option<Box<str>>,
    /// Whoever sends must not be able to choose names that collide, so it has a key. Nothing that
    /// can be seen depends on it.
    hasher: RandomState,
}

/// Where a message has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameSource {
    /// The property `group-id` (part 3, section 3.2.4).
    GroupId,
    /// This application property.
    Application(Box<str>),
}

impl NameSource {
    /// The section in which it is.
    #[inline]
    pub(crate) fn section(&self) -> Section {
        match self {
            NameSource::GroupId => Section::Properties,
            NameSource::Application(_) => Section::ApplicationProperties,
        }
    }
}

impl Naming {
    /// What names the groups that settings ask for, if any, or why they make no sense.
    pub(crate) fn of_groups(settings: &QueueSettings) -> Result<Option<Naming>, SettingsError> {
        if !settings.shared_groups {
            let details = [
                ("qpid.group_header_key", is_name(settings.group_header_key.as_deref())),
                // Without groups no message is in one, which is what the empty text asks for.
                ("qpid.default-message-group", is_name(settings.default_group.as_deref())),
                ("qpid.group_rebalance", settings.rebalances_groups),
            ];
            return match details.into_iter().find(|(_, is_asked)| *is_asked) {
                Some((name, _)) => {
                    Err(SettingsError::Incomplete { name, needs: "qpid.shared_msg_group" })
                }
                None => Ok(None),
            };
        }
        let source = match settings.group_header_key.as_deref() {
            None | Some("") => NameSource::GroupId,
            Some(name) => NameSource::Application(name.into()),
        };
        let default = settings.default_group.as_deref().unwrap_or(DEFAULT_GROUP);
        let hasher = RandomState::default();
        Ok(Some(Naming {
            source,
            default: Some(default).filter(|name| !name.is_empty()).map(Box::from),
            hasher,
        }))
    }

    /// What names the keys of which the last value is kept, if settings ask for that.
    pub(crate) fn of_keys(settings: &QueueSettings) -> Option<Naming> {
        let key = settings.last_value_key.as_deref().filter(|key| !key.is_empty())?;
        let hasher = RandomState::default();
        Some(Naming {
            source: NameSource::Application(key.into()),
            default: Some(Box::default()),
            hasher,
        })
    }

    pub(crate) fn hash(&self, name: &[u8]) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name);
        hasher.finish() as u32
    }

    /// True if messages have the same names either way.
    pub(crate) fn names_like(&self, other: &Naming) -> bool {
        self.source == other.source && self.default == other.default
    }
}

fn is_name(name: Option<&str>) -> bool {
    name.is_some_and(|name| !name.is_empty())
}

/// The group of messages that name none, as in Qpid.
pub(super) const DEFAULT_GROUP: &str = "qpid.no-group";

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(change: impl FnOnce(&mut QueueSettings)) -> Result<Option<Naming>, SettingsError> {
        let mut settings = QueueSettings::default();
        change(&mut settings);
        Naming::of_groups(&settings)
    }

    #[test]
    fn a_queue_has_no_groups_unless_asked() {
        assert!(naming(|_| {}).unwrap().is_none());
    }

    #[test]
    fn the_group_is_the_property_group_id_unless_a_key_is_given() {
        for key in [None, Some(Box::default())] {
            let naming = naming(|settings| {
                settings.shared_groups = true;
                settings.group_header_key = key;
            });
            assert_eq!(naming.unwrap().unwrap().source, NameSource::GroupId);
        }
    }

    #[test]
    fn what_is_said_of_groups_that_are_not_asked_for_is_a_clear_error() {
        let usual = QueueSettings::default;
        for (settings, name) in [
            (
                QueueSettings { group_header_key: Some("colour".into()), ..usual() },
                "qpid.group_header_key",
            ),
            (
                QueueSettings { default_group: Some("x".into()), ..usual() },
                "qpid.default-message-group",
            ),
            (QueueSettings { rebalances_groups: true, ..usual() }, "qpid.group_rebalance"),
        ] {
            let text = format!("{name} means nothing without qpid.shared_msg_group");
            assert_eq!(Naming::of_groups(&settings).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn messages_that_name_no_group_are_in_one_or_in_none() {
        let default = |name: Option<&str>| {
            let naming = naming(|settings| {
                settings.shared_groups = true;
                settings.default_group = name.map(Box::from);
            });
            naming.unwrap().unwrap().default.map(String::from)
        };
        assert_eq!(default(None).as_deref(), Some("qpid.no-group"));
        assert_eq!(default(Some("others")).as_deref(), Some("others"));
        assert_eq!(default(Some("")), None);
    }
}
