//! Messages that were left in queues when these were deleted.

use crate::sync::{AtomicU64, Ordering};

/// Counts them, once for each queue that is deleted.
#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    lost: AtomicU64,
    buried: AtomicU64,
}

/// How many messages were left in queues that have been deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedTotals {
    /// Those that had nowhere to go.
    pub lost: u64,
    /// Those that were published to the alternate exchange of their queue.
    pub buried: u64,
}

impl Abandoned {
    /// A queue has been deleted that had so many messages, of which so many have been published.
    pub(crate) fn add(&self, left: u64, buried: u64) {
        // Relaxed: numbers to be looked at; nothing depends on them.
        self.lost.fetch_add(left.saturating_sub(buried), Ordering::Relaxed);
        self.buried.fetch_add(buried, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> AbandonedTotals {
        AbandonedTotals {
            lost: self.lost.load(Ordering::Relaxed),
            buried: self.buried.load(Ordering::Relaxed),
        }
    }
}
