//! The last look at everything.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Fate, Ledger, QueueRules};
use crate::number::{MessageNo, SenderNo};

/// Messages of one queue that are not there although they were accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// They may have expired.
    pub(crate) mortal: u64,
    /// They may have been dropped for newer ones.
    pub(crate) droppable: u64,
    /// They may have been replaced by newer ones.
    pub(crate) replaceable: u64,
    /// They may not, or they may have been refused without a word.
    pub(crate) others: u64,
}

impl Ledger {
    /// Looks for messages that were accepted and never arrived, when nothing is left in any queue.
    pub(crate) fn audit(&self, queue: &str) -> Missing {
        let mut missing = Missing::default();
        let rules = self.queues.get(queue).copied().unwrap_or_default();
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.queue != queue || !entry.is_missing() || !self.is_due(entry) {
                continue;
            }
            if self.may_be_taken(entry) {
                continue;
            }
            let may_be_refused = entry.fate == Fate::SentSettled && rules.may_refuse();
            if entry.ttl_ms.is_some() && !may_be_refused {
                missing.mortal += 1;
                continue;
            }
            if rules.drops && (!may_be_refused || rules.counts_refused()) {
                missing.droppable += 1;
                continue;
            }
            if rules.replaces && !may_be_refused {
                missing.replaceable += 1;
                continue;
            }
            missing.others += 1;
            let no = MessageNo(index);
            assert!(rules.forgets || may_be_refused, "{no:?} was lost: {entry:?}");
        }
        missing
    }

    /// Of each key the last value is not lost, when nothing is left in any queue.
    pub(crate) fn check_last_values(&self, queue: &str) {
        let rules = self.queues.get(queue).copied().unwrap_or_default();
        if !rules.replaces || rules.drops || !rules.is_steady() {
            return;
        }
        let mut keys: BTreeMap<Option<u32>, BTreeMap<SenderNo, &Entry>> = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        let is_here = |entry: &&Entry| entry.queue == queue;
        for entry in self.entries.iter().filter(is_here) {
            let is_certain = entry.fate == Fate::Accepted && self.is_due(entry);
            let is_nothing = matches!(entry.fate, Fate::Aborted | Fate::Refused | Fate::Sending);
            if entry.ttl_ms.is_some() || !is_certain && !is_nothing {
                // It may have come last, or gone when it was the last.
                unknown.insert(entry.key);
            }
            if is_certain {
                let last = keys.entry(entry.key).or_default().entry(entry.sender).or_insert(entry);
                *last = if last.rank < entry.rank { entry } else { last };
            }
        }
        for (key, last) in keys.into_iter().filter(|(key, _)| !unknown.contains(key)) {
            // One of them was the last of all.
            let may_be_it = |entry: &&Entry| !entry.is_missing() || self.may_be_taken(entry);
            let is_there = last.values().copied().any(|entry| may_be_it(&entry));
            assert!(is_there, "the last value of {key:?} was lost: {last:?}");
        }
    }

    /// Whether a queue may forget messages.
    pub(crate) fn forgets(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|rules| rules.forgets)
    }

    /// Whether the numbers of a queue are those of all its messages.
    pub(crate) fn counts_all(&self, queue: &str) -> bool {
        self.queues.get(queue).is_none_or(QueueRules::is_steady)
    }

    /// Whether what somebody holds may leave a queue all the same.
    pub(crate) fn replaces(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|rules| rules.replaces)
    }

    /// Messages of a queue that the broker has taken for certain.
    pub(crate) fn accepted_for(&self, queue: &str) -> u64 {
        let taken = self
            .entries
            .iter()
            .filter(|entry| entry.queue == queue && entry.fate == Fate::Accepted)
            .filter(|entry| self.is_due(entry));
        taken.count() as u64
    }

    /// Messages of a queue that receivers are done with, as the broker knows.
    pub(crate) fn done_of(&self, queue: &str) -> u64 {
        let done = self.entries.iter().filter(|entry| entry.queue == queue && entry.done);
        done.count() as u64
    }

    /// Nobody holds anything any more.
    pub(crate) fn check_nothing_held(&self) {
        for (index, entry) in self.entries.iter().enumerate() {
            assert_eq!(entry.holder, None, "{:?} is still held", MessageNo(index));
        }
    }
}
