//! Telling a link that there may be something to do.

use std::fmt;
use std::sync::Arc;

/// Whoever serves links and can be told to look again at one of them.
///
/// A wake-up is a hint without content: the link looks at its queue again, and finds something or
/// registers again.
pub trait Wake: Send + Sync {
    /// Tells the link that subscribed, or attached, with this key.
    fn wake(&self, key: u32);
}

/// One link: whom to tell, and what it calls the link.
#[derive(Clone)]
pub struct Waker {
    wake: Arc<dyn Wake>,
    key: u32,
}

impl Waker {
    /// The link that `wake` knows as `key`.
    pub fn new(wake: Arc<dyn Wake>, key: u32) -> Waker {
        Waker { wake, key }
    }

    /// Tells the link.
    pub fn wake(&self) {
        self.wake.wake(self.key);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The links that may go on after something has changed.
///
/// They are collected under a queue's lock and told after it has been released.
#[derive(Debug, Default)]
#[must_use = "a link that is not woken waits for ever"]
pub struct Wakeups(Vec<Waker>);

impl Wakeups {
    /// Nobody to wake.
    pub const fn new() -> Wakeups {
        Wakeups(Vec::new())
    }

    /// True if there is nobody to wake.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are to be woken.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds one.
    pub fn push(&mut self, waker: Waker) {
        self.0.push(waker);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: Wakeups) {
        if self.0.is_empty() {
            self.0 = other.0;
        } else {
            self.0.append(&mut other.0);
        }
    }

    /// Tells them all, in order. No lock may be held.
    pub fn perform(self) {
        for waker in &self.0 {
            waker.wake();
        }
    }

    /// Tells them all and keeps the memory for the next time. No lock may be held.
    pub fn perform_all(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}
