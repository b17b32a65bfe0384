//! A subscription whose queue was not made for it: an operator has, say, with settings of its own.

use super::{Queue, SharedQueue};
use crate::exchange::{Binding, Exchange, ScopedBinding};
use crate::wake::Wakeups;
use std::sync::Arc;

/// A subscription that a queue serves which was not made for it. It ends, and the queue stays.
#[derive(Debug)]
#[must_use = "the queue would stay bound"]
pub struct Adoption {
    binding: ScopedBinding,
    is_shared: bool,
    /// So long it is there without consumers; `None` if it stays until somebody ends it.
    keeps_ms: Option<u64>,
    /// When it ends, if nobody comes back.
    due_ms: Option<u64>,
}

impl Adoption {
    /// One that is bound so, and that stays so long without consumers: until somebody ends it if
    /// `None`.
    pub fn new(binding: ScopedBinding, is_shared: bool, keeps_ms: Option<u64>) -> Adoption {
        Adoption { binding, is_shared, keeps_ms, due_ms: None }
    }

    /// Ends it. No lock may be held.
    pub(super) fn end(self) -> Wakeups {
        self.binding.end()
    }

    /// Looks at it after something has changed: true if its time has come.
    fn is_over(&mut self, now_ms: u64, consumers: usize) -> bool {
        let ends_ms = self.keeps_ms.filter(|_| consumers == 0);
        self.due_ms =
            ends_ms.map(|keeps_ms| self.due_ms.unwrap_or(now_ms.saturating_add(keeps_ms)));
        self.due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }
}

impl SharedQueue {
    /// It serves a subscription from now on; the one that it has served before ends.
    pub fn adopt(&self, subscription: Adoption) -> Wakeups {
        let before = self.lock().rare.get_or_insert_default().adoption.replace(subscription);
        before.map_or_else(Wakeups::new, Adoption::end)
    }

    /// The subscription that it serves stays so long without consumers from now on, as in
    /// [`Adoption::new`].
    pub fn renew_adoption(&self, keeps_ms: Option<u64>) {
        if let Some(adoption) = self.lock().rare.as_mut().and_then(|rare| rare.adoption.as_mut()) {
            adoption.keeps_ms = keeps_ms;
        }
    }

    /// The subscription that it serves ends, if there is one.
    pub fn end_adoption(&self) -> Wakeups {
        let before = self.lock().rare.as_mut().and_then(|rare| rare.adoption.take());
        before.map_or_else(Wakeups::new, Adoption::end)
    }

    /// How it is bound for a subscription that it serves, and whether links share that.
    pub fn adopted(&self) -> Option<(Arc<Exchange>, Arc<Binding>, bool)> {
        let queue = self.lock();
        let adoption = queue.rare.as_ref()?.adoption.as_ref()?;
        Some((adoption.binding.exchange()?, adoption.binding.binding()?, adoption.is_shared))
    }
}

impl Queue {
    /// Ends a subscription whose time has come.
    pub(super) fn look_at_adoption(&mut self, now_ms: u64) {
        let consumers = self.distributor.len();
        let Some(rare) = &mut self.rare else { return };
        if let Some(over) = rare.adoption.take_if(|adoption| adoption.is_over(now_ms, consumers)) {
            rare.ended_adoption = Some(over);
        }
    }

    /// When a subscription ends, if nobody comes back.
    pub(super) fn adoption_due_ms(&self) -> Option<u64> {
        self.rare.as_ref()?.adoption.as_ref()?.due_ms
    }

    /// A subscription that has ended, to be done with without the lock.
    pub(super) fn take_ended_adoption(&mut self) -> Option<Adoption> {
        self.rare.as_mut()?.ended_adoption.take()
    }
}
