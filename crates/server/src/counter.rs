//! Numbers that several threads change.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number that several threads change, rarely.
// Relaxed: a counter guards no other memory; only its own value matters.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, n: usize) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
