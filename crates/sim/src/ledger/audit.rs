//! The last look at everything.

use super::{Fate, Ledger};
use crate::number::MessageNo;

/// Messages of one queue that are not there although they were accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// They may have expired.
    pub(crate) mortal: u64,
    /// They may have been dropped for newer ones.
    pub(crate) droppable: u64,
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
            let may_be_refused = entry.fate == Fate::SentSettled && rules.refuses;
            if entry.ttl_ms.is_some() && !may_be_refused {
                missing.mortal += 1;
                continue;
            }
            if rules.drops {
                missing.droppable += 1;
                continue;
            }
            missing.others += 1;
            let no = MessageNo(index);
            assert!(rules.forgets || may_be_refused, "{no:?} was lost: {entry:?}");
        }
        missing
    }

    /// Whether a queue may forget messages.
    pub(crate) fn forgets(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|rules| rules.forgets)
    }

    /// Whether the numbers of a queue are those of all its messages.
    pub(crate) fn counts_all(&self, queue: &str) -> bool {
        !self.queues.get(queue).is_some_and(|rules| rules.forgets || rules.restarts)
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
