//! How large transactions may be, and how many there have been.

use crate::sync::{AtomicU64, Ordering};

/// How much a transaction may do, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionSettings {
    /// Messages sent and outcomes told in one transaction.
    pub max_operations: u64,
    /// Encoded bytes of the messages sent in one transaction; 0 means no limit.
    pub max_bytes: u64,
    /// Transactions that are open on one session at a time.
    pub max_per_session: usize,
    /// How long a transaction may be open; 0 means for ever.
    pub timeout_ms: u64,
}

impl Default for TransactionSettings {
    fn default() -> TransactionSettings {
        TransactionSettings {
            max_operations: 1_000_000,
            max_bytes: 0,
            max_per_session: 128,
            timeout_ms: 60_000,
        }
    }
}

/// How many transactions there are, and have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionTotals {
    /// Those that have been declared and not discharged.
    pub open: u64,
    /// Those that succeeded.
    pub committed: u64,
    /// Those that did not, and in which something was done.
    pub rolled_back: u64,
}

/// The transactions of a node, counted.
///
/// Relaxed: each is a number of its own and guards nothing.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    begun: AtomicU64,
    committed: AtomicU64,
    rolled_back: AtomicU64,
    unused: AtomicU64,
}

impl Totals {
    pub(super) fn begun(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self) {
        self.committed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn rolled_back(&self) {
        self.rolled_back.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended in which nothing was done.
    pub(super) fn unused(&self) {
        self.unused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn numbers(&self) -> TransactionTotals {
        // The ends first, so that no transaction that has ended meanwhile makes the rest negative.
        let committed = self.committed.load(Ordering::Relaxed);
        let rolled_back = self.rolled_back.load(Ordering::Relaxed);
        let unused = self.unused.load(Ordering::Relaxed);
        let begun = self.begun.load(Ordering::Relaxed);
        TransactionTotals {
            open: begun.saturating_sub(committed + rolled_back + unused),
            committed,
            rolled_back,
        }
    }
}
