//! How the messages of a queue are grouped.

use super::{QueueSettings, SettingsError};
use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};

/// What names a message's group, and what becomes of messages that name none.
#[derive(Debug)]
pub(crate) struct Grouping {
    pub(crate) source: GroupSource,
    /// The group of messages that name none; `None` if they are in no group.
    pub(crate) default: Option<Box<str>>,
    pub(crate) default_hash: u64,
    /// Whoever sends must not be able to choose names that collide, so it has a key. Nothing that
    /// can be seen depends on it.
    hasher: RandomState,
}

/// Where a message says in which group it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupSource {
    /// The property `group-id` (part 3, section 3.2.4).
    GroupId,
    /// This application property.
    Application(Box<str>),
}

impl Grouping {
    /// The grouping that settings ask for, if any, or why they make no sense.
    pub(crate) fn of(settings: &QueueSettings) -> Result<Option<Grouping>, SettingsError> {
        if !settings.shared_groups {
            return match settings.group_header_key {
                Some(_) => Err(SettingsError::Incomplete {
                    name: "qpid.group_header_key",
                    needs: "qpid.shared_msg_group",
                }),
                None => Ok(None),
            };
        }
        let source = match settings.group_header_key.as_deref() {
            None | Some("") => GroupSource::GroupId,
            Some(name) => GroupSource::Application(name.into()),
        };
        let default = settings.default_group.as_deref().unwrap_or(DEFAULT_GROUP);
        let hasher = RandomState::default();
        Ok(Some(Grouping {
            source,
            default: Some(default).filter(|name| !name.is_empty()).map(Box::from),
            default_hash: hash(&hasher, default.as_bytes()),
            hasher,
        }))
    }

    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        hash(&self.hasher, name)
    }

    /// True if messages are in the same groups either way.
    pub(crate) fn groups_like(&self, other: &Grouping) -> bool {
        self.source == other.source && self.default == other.default
    }
}

fn hash(hasher: &RandomState, name: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name);
    hasher.finish()
}

/// The group of messages that name none, as in Qpid.
const DEFAULT_GROUP: &str = "qpid.no-group";

#[cfg(test)]
mod tests {
    use super::*;

    fn grouping(
        change: impl FnOnce(&mut QueueSettings),
    ) -> Result<Option<Grouping>, SettingsError> {
        let mut settings = QueueSettings::default();
        change(&mut settings);
        Grouping::of(&settings)
    }

    #[test]
    fn a_queue_has_no_groups_unless_asked() {
        assert!(grouping(|_| {}).unwrap().is_none());
    }

    #[test]
    fn the_group_is_the_property_group_id_unless_a_key_is_given() {
        for key in [None, Some(Box::default())] {
            let grouping = grouping(|settings| {
                settings.shared_groups = true;
                settings.group_header_key = key;
            });
            assert_eq!(grouping.unwrap().unwrap().source, GroupSource::GroupId);
        }
    }

    #[test]
    fn a_key_alone_is_a_clear_error() {
        let error = grouping(|settings| settings.group_header_key = Some("colour".into()));
        let text = "qpid.group_header_key means nothing without qpid.shared_msg_group";
        assert_eq!(error.unwrap_err().to_string(), text);
    }

    #[test]
    fn messages_that_name_no_group_are_in_one_or_in_none() {
        let default = |name: Option<&str>| {
            let grouping = grouping(|settings| {
                settings.shared_groups = true;
                settings.default_group = name.map(Box::from);
            });
            grouping.unwrap().unwrap().default.map(String::from)
        };
        assert_eq!(default(None).as_deref(), Some("qpid.no-group"));
        assert_eq!(default(Some("others")).as_deref(), Some("others"));
        assert_eq!(default(Some("")), None);
    }
}
