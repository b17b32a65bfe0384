//! Where a queue or an exchange sends what it cannot deliver.

use super::Exchange;
use crate::sync::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The alternate exchange of a queue or of an exchange; it is in use as long as this is there.
#[derive(Debug)]
pub(crate) struct Alternate {
    exchange: Weak<Exchange>,
    version: Arc<AtomicU64>,
}

impl Alternate {
    pub(crate) fn new(exchange: &Arc<Exchange>) -> Alternate {
        exchange.alternate_uses.fetch_add(1, Ordering::Relaxed);
        let version = Arc::clone(&exchange.version);
        Alternate { exchange: Arc::downgrade(exchange), version }
    }

    /// Which bindings it has.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self) -> Option<Arc<Exchange>> {
        self.exchange.upgrade().filter(|exchange| !exchange.is_deleted())
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.upgrade() {
            exchange.alternate_uses.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
