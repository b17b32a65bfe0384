//! Queues that hand out urgent messages first.

use super::{QueueSettings, SettingsError};

/// How priorities make levels, and how the levels share the consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priorities {
    /// The level of each priority.
    levels: [u8; PRIORITIES],
    /// How many messages of each level are taken one after another at most; 0 for any number.
    pub(crate) turns: Turns,
    count: u8,
}

/// A number of messages for each level.
pub(crate) type Turns = [u32; PRIORITIES];

impl Priorities {
    /// The levels that settings ask for, if any, or why they make no sense.
    pub(crate) fn of(settings: &QueueSettings) -> Result<Option<Priorities>, SettingsError> {
        let asked = settings.priorities.unwrap_or(0);
        if asked == 0 {
            // A turn of any number of messages is what there is without levels.
            let is_turn = |turn: &Option<u32>| turn.is_some_and(|turn| turn > 0);
            if is_turn(&settings.fairshare) || settings.fairshare_of.iter().any(is_turn) {
                return Err(SettingsError::Incomplete {
                    name: "qpid.fairshare",
                    needs: "qpid.priorities",
                });
            }
            return Ok(None);
        }
        let count = asked.min(PRIORITIES as u64) as u8;
        // As in Qpid: the levels are around the middle, and what is below or above is with the
        // lowest or the highest.
        let first = 5 - count.div_ceil(2).min(5);
        let level = |priority: usize| (priority as u8).saturating_sub(first).min(count - 1);
        let highest = settings.fairshare_of.iter().rposition(Option::is_some);
        if let Some(level) = highest.filter(|level| *level >= usize::from(count)) {
            return Err(SettingsError::NoSuchLevel { level, levels: usize::from(count) });
        }
        let usual = settings.fairshare.unwrap_or(0);
        Ok(Some(Priorities {
            levels: std::array::from_fn(level),
            turns: settings.fairshare_of.map(|turn| turn.unwrap_or(usual)),
            count,
        }))
    }

    /// How many levels.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The level of a message.
    #[inline]
    pub(crate) fn level(&self, priority: u8) -> usize {
        usize::from(self.levels[usize::from(priority).min(PRIORITIES - 1)])
    }
}

/// How many priorities a message can have (part 3, section 3.2.1), and so the most levels.
pub(crate) const PRIORITIES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(count: u64) -> Vec<usize> {
        let settings = QueueSettings { priorities: Some(count), ..QueueSettings::default() };
        let priorities = Priorities::of(&settings).unwrap().unwrap();
        (0..12).map(|priority| priorities.level(priority)).collect()
    }

    #[test]
    fn levels_are_around_the_middle_as_the_older_brokers_have_them() {
        assert_eq!(levels(1), [0; 12]);
        assert_eq!(levels(2), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(levels(3), [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(levels(5), [0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4]);
        assert_eq!(levels(10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]);
        assert_eq!(levels(200), levels(10));
    }

    #[test]
    fn turns_need_levels() {
        let mut settings = QueueSettings { fairshare: Some(5), ..QueueSettings::default() };
        let error = Priorities::of(&settings).unwrap_err().to_string();
        assert_eq!(error, "qpid.fairshare means nothing without qpid.priorities");
        settings.priorities = Some(3);
        settings.fairshare_of[2] = Some(1);
        let priorities = Priorities::of(&settings).unwrap().unwrap();
        assert_eq!(priorities.turns[..3], [5, 5, 1]);
        settings.fairshare_of[3] = Some(1);
        let error = Priorities::of(&settings).unwrap_err().to_string();
        assert_eq!(error, "qpid.fairshare-3 is for a level that is not there: there are 3 levels");
    }
}
