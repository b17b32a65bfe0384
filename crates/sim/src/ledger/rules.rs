//! What may happen to the messages of a queue.

use mochila_broker::QueueSettings;
use mochila_broker::settings::LimitPolicy;

/// What may happen to messages of a queue besides being delivered, and how they stand to each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueRules {
    /// Messages may be refused: it has a limit, the node has one, or it may be deleted.
    refuses: bool,
    /// Messages may vanish: it is purged or deleted. What it is like may then change, too.
    pub(crate) forgets: bool,
    /// The oldest messages that nobody holds may be dropped for newer ones: it is a ring.
    pub(crate) drops: bool,
    /// Of the messages with one key the last stays.
    pub(crate) replaces: bool,
    /// Messages of one group are with one consumer at a time.
    pub(crate) groups: bool,
    /// Urgent messages go first: there are so many levels of urgency.
    levels: Option<u8>,
    /// Lower levels have their turns.
    has_turns: bool,
    /// Some receivers do not take whatever comes first.
    pub(crate) is_choosy: bool,
    /// It may be deleted and made again, and its numbers begin anew.
    pub(crate) restarts: bool,
    /// What links had when they went counts as failed, although no client has seen it.
    pub(crate) counts_unseen: bool,
}

impl QueueRules {
    /// What a queue with such settings may do.
    pub(crate) fn arrange(&mut self, settings: &QueueSettings) {
        self.drops = settings.limit_policy == LimitPolicy::Ring;
        self.replaces = settings.last_value_key.is_some();
        self.groups = settings.shared_groups;
        self.levels = settings.priorities.map(|levels| levels.min(10) as u8);
        self.has_turns = settings.fairshare.is_some();
    }

    /// Messages may be refused, and not all that are may be counted.
    pub(crate) fn let_refuse(&mut self) {
        self.refuses = true;
    }

    /// Whether messages may be refused.
    ///
    /// What is held in a ring has its place: where nothing else can be dropped, what comes is
    /// refused.
    pub(crate) fn may_refuse(&self) -> bool {
        self.refuses || self.drops
    }

    /// Whether messages may be gone although nobody is done with them.
    pub(crate) fn may_lose(&self) -> bool {
        self.forgets || self.drops || self.replaces
    }

    /// Whether every message that is refused is counted as an overflow of the queue.
    pub(crate) fn counts_refused(&self) -> bool {
        !self.refuses
    }

    /// Whether what is known of its kind holds to the end.
    pub(crate) fn is_steady(&self) -> bool {
        !self.forgets && !self.restarts
    }

    /// The level of a priority, if there are levels: they lie around the middle.
    pub(crate) fn level(&self, priority: u8) -> Option<u8> {
        let levels = self.levels?;
        let first = 5 - levels.div_ceil(2).min(5);
        Some(priority.saturating_sub(first).min(levels - 1))
    }

    /// Whether whoever takes something takes the first message there is.
    pub(crate) fn is_taken_in_order(&self) -> bool {
        !self.is_choosy && !self.has_turns && !self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_lie_around_the_middle() {
        let levels = |count| {
            let settings = QueueSettings { priorities: Some(count), ..QueueSettings::default() };
            let mut rules = QueueRules::default();
            rules.arrange(&settings);
            [0, 4, 5, 9].map(|priority| rules.level(priority).unwrap())
        };
        assert_eq!(levels(2), [0, 0, 1, 1]);
        assert_eq!(levels(3), [0, 1, 2, 2]);
        assert_eq!(levels(10), [0, 4, 5, 9]);
    }
}
