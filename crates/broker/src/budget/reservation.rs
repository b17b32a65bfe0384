//! Memory of the node that somebody has.

use super::Budget;
use std::fmt;
use std::sync::Arc;

/// Memory that has been reserved; it goes back when this is dropped.
#[must_use = "the memory goes back at once when the reservation is dropped"]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    /// What has been charged.
    pub(super) fn new(budget: &Arc<Budget>, bytes: u64) -> Reservation {
        Reservation { budget: Arc::clone(budget), bytes }
    }

    /// A reservation of nothing, for others to be merged into.
    pub fn nothing(budget: &Arc<Budget>) -> Reservation {
        Reservation { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Gives back all but `bytes`; at most what is there.
    pub fn shrink_to(&mut self, bytes: u64) {
        drop(self.split(self.bytes.saturating_sub(bytes)));
    }

    /// Makes it as much as is needed, whatever the limit; not byte by byte as long as there is
    /// more than that.
    pub(crate) fn follow(&mut self, bytes: u64) {
        if bytes > self.bytes {
            let ahead = PAID_AHEAD.min(self.budget.free());
            let more = self.budget.charge(bytes - self.bytes + ahead);
            self.merge(more);
        } else if self.bytes - bytes > 2 * PAID_AHEAD || bytes == 0 && self.bytes > 0 {
            let ahead = if bytes == 0 { 0 } else { PAID_AHEAD };
            self.shrink_to(bytes + ahead);
        }
    }

    /// Where it comes from.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// How much is reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `bytes` out into a reservation of their own; at most what is there.
    pub fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { budget: Arc::clone(&self.budget), bytes }
    }

    /// Takes in another reservation of the same budget.
    pub fn merge(&mut self, mut other: Reservation) {
        assert!(Arc::ptr_eq(&self.budget, &other.budget), "reservations of two budgets");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.bytes);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.bytes).finish()
    }
}

/// So much is paid at a time by whoever needs a little more again and again.
const PAID_AHEAD: u64 = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_paid_ahead_where_there_is_nothing_left() {
        let budget = Budget::with_soft_limit(100_000, 90_000);
        let mut early = Reservation::nothing(&budget);
        early.follow(100);
        assert_eq!(budget.used(), 100 + PAID_AHEAD, "not byte by byte");
        let _messages = budget.reserve(85_000).unwrap();
        let used = budget.used();
        let mut late = Reservation::nothing(&budget);
        late.follow(100);
        assert_eq!((late.bytes(), budget.used()), (100, used + 100));
        late.follow(150);
        assert_eq!(budget.used(), used + 150);
    }
}
