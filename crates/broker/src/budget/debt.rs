//! Credit for which no memory is kept, as long as there is plenty.

use super::line::Waiting;
use super::{Budget, MOST};
use crate::sync::{Ordering, lock};
use crate::wake::{Waker, Wakeups};
use std::collections::BTreeMap;

/// Memory that a sender may use and that nobody keeps for it.
///
/// All debts together are for no more than half of what is free when they are made. When the rest
/// has gone down to that, they are called in: the senders look at their credit again, and have no
/// more than what is kept for them. What they had sent before finds its place in the other half.
#[derive(Debug)]
pub(super) struct Debt {
    pub(super) bytes: u64,
    number: u64,
    /// How often debts had been called in before.
    recalls: u64,
}

/// Who has debts.
#[derive(Default)]
pub(super) struct Debtors {
    by_number: BTreeMap<u64, Waker>,
    came: u64,
    bytes: u64,
}

impl Budget {
    /// Lets somebody use so much without keeping it, if there is plenty. It gives up what it `owes`.
    pub(super) fn lend(&self, waker: Waker, bytes: u64, owes: Option<Debt>) -> Option<Debt> {
        let mut waiting = lock(&self.waiting);
        self.strike(&mut waiting, owes);
        let is_plenty = waiting.debtors.bytes.saturating_add(bytes) <= self.free() / 2;
        let debt = is_plenty.then(|| {
            let debtors = &mut waiting.debtors;
            debtors.came += 1;
            debtors.bytes += bytes;
            debtors.by_number.insert(debtors.came, waker);
            Debt { bytes, number: debtors.came, recalls: self.recalls.load(Ordering::Relaxed) }
        });
        self.note_recall(&waiting);
        // What was taken meanwhile has not seen this debt.
        self.look_for_debts(self.taken());
        debt
    }

    /// Whether much more than so many bytes might be lent.
    pub(super) fn is_plenty_for(&self, bytes: u64) -> bool {
        lock(&self.waiting).debtors.bytes.saturating_add(bytes) <= self.free() / 4
    }

    /// A debt is over.
    pub(super) fn repay(&self, debt: Debt) {
        let mut waiting = lock(&self.waiting);
        self.strike(&mut waiting, Some(debt));
        self.note_recall(&waiting);
    }

    /// Whether it has not been called in.
    pub(super) fn stands(&self, debt: &Debt) -> bool {
        debt.recalls == self.recalls.load(Ordering::Relaxed)
    }

    /// So much is in use now: debts are called in if that is too much for them.
    #[inline]
    pub(super) fn look_for_debts(&self, taken: u64) {
        if taken > self.recall_at.load(Ordering::Relaxed) {
            self.resume_due.store(true, Ordering::Release);
        }
    }

    /// Calls all debts in, if it is time.
    pub(super) fn recall(&self, waiting: &mut Waiting, wakeups: &mut Wakeups) {
        if self.taken() <= self.recall_at.load(Ordering::Relaxed) {
            return;
        }
        let debtors = &mut waiting.debtors;
        debtors.bytes = 0;
        self.recalls.fetch_add(1, Ordering::Relaxed);
        for waker in std::mem::take(&mut debtors.by_number).into_values() {
            wakeups.push(waker);
        }
        self.note_recall(waiting);
    }

    fn strike(&self, waiting: &mut Waiting, debt: Option<Debt>) {
        let Some(debt) = debt.filter(|debt| self.stands(debt)) else { return };
        waiting.debtors.by_number.remove(&debt.number);
        waiting.debtors.bytes -= debt.bytes;
    }

    pub(super) fn note_recall(&self, waiting: &Waiting) {
        let soft_limit = self.soft_limit.load(Ordering::Relaxed);
        let recall_at = match waiting.debtors.by_number.is_empty() {
            true => MOST,
            false => soft_limit.saturating_sub(waiting.debtors.bytes),
        };
        self.recall_at.store(recall_at, Ordering::Relaxed);
    }
}
