//! In which order messages are taken, and which of them belong together.

use super::priorities::Priorities;
use super::{Naming, QueueSettings, SettingsError};
use std::sync::Arc;

/// How the messages of a queue stand to each other.
#[derive(Clone, Debug)]
pub(crate) enum Arrangement {
    /// They are taken as they came.
    Fifo,
    /// As they came, and those of one group by one consumer at a time.
    Groups(Arc<Naming>),
    /// The urgent ones first.
    Priorities(Priorities),
    /// As they came, and of each key only the last one stays.
    LastValues(Arc<Naming>),
}

impl Arrangement {
    /// The arrangement that settings ask for, or why they make no sense.
    pub(crate) fn of(settings: &QueueSettings) -> Result<Arrangement, SettingsError> {
        let groups = Naming::of_groups(settings)?.map(Arc::new).map(Arrangement::Groups);
        let priorities = Priorities::of(settings)?.map(Arrangement::Priorities);
        let values = Naming::of_keys(settings).map(Arc::new).map(Arrangement::LastValues);
        let asked = [(GROUPS, groups), (PRIORITIES, priorities), (LAST_VALUES, values)];
        let mut asked = asked.into_iter().filter_map(|(name, asked)| Some((name, asked?)));
        if settings.browse_only && settings.shared_groups {
            // Nobody would ever own a group.
            return Err(SettingsError::Contradiction { one: GROUPS, other: "qpid.browse-only" });
        }
        match (asked.next(), asked.next()) {
            (Some((one, _)), Some((other, _))) => Err(SettingsError::Contradiction { one, other }),
            (Some((_, arrangement)), None) => Ok(arrangement),
            (None, _) => Ok(Arrangement::Fifo),
        }
    }

    /// What names messages, if they have names.
    pub(crate) fn naming(&self) -> Option<&Arc<Naming>> {
        match self {
            Arrangement::Groups(naming) | Arrangement::LastValues(naming) => Some(naming),
            Arrangement::Fifo | Arrangement::Priorities(_) => None,
        }
    }
}

const GROUPS: &str = "qpid.shared_msg_group";
const PRIORITIES: &str = "qpid.priorities";
const LAST_VALUES: &str = "qpid.last_value_queue_key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_together_is_a_clear_error() {
        let settings =
            QueueSettings { shared_groups: true, priorities: Some(3), ..QueueSettings::default() };
        let error = Arrangement::of(&settings).unwrap_err().to_string();
        assert_eq!(error, "qpid.shared_msg_group and qpid.priorities do not go together");
        let settings = QueueSettings {
            last_value_key: Some("key".into()),
            priorities: Some(3),
            ..QueueSettings::default()
        };
        let error = Arrangement::of(&settings).unwrap_err().to_string();
        assert_eq!(error, "qpid.priorities and qpid.last_value_queue_key do not go together");
    }
}
