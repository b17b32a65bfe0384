//! Bindings that are there for somebody, and go when nobody needs them any more.

use super::binding::Binding;
use super::{Exchange, ExchangeError};
use crate::queue::SharedQueue;
use crate::sync::{AtomicU64, Ordering};
use crate::wake::Wakeups;
use mochila_wire::{Map, Now};
use std::fmt;
use std::sync::{Arc, Weak};

/// A claim to a binding: of those that have one, the last that is given up ends the binding, unless
/// somebody has bound without a claim, before or since.
#[must_use = "the binding stays until the claim is given up"]
pub struct ScopedBinding {
    // Neither keeps alive what was deleted in the meantime.
    exchange: Weak<Exchange>,
    binding: Weak<Binding>,
}

impl ScopedBinding {
    pub(super) fn new(exchange: Weak<Exchange>, binding: &Arc<Binding>) -> ScopedBinding {
        ScopedBinding { exchange, binding: Arc::downgrade(binding) }
    }

    /// Its exchange, if it is there still.
    pub fn exchange(&self) -> Option<Arc<Exchange>> {
        self.exchange.upgrade()
    }

    /// The binding, if it is there still.
    pub fn binding(&self) -> Option<Arc<Binding>> {
        self.binding.upgrade()
    }

    /// Gives it up.
    pub fn end(self) -> Wakeups {
        match (self.exchange(), self.binding()) {
            (Some(exchange), Some(binding)) => exchange.release(&binding),
            _ => Wakeups::new(),
        }
    }
}

impl Exchange {
    /// Binds a queue for as long as somebody has a claim to the binding, which is what this returns.
    /// A binding that is there already stays as it is.
    pub fn bind_scoped(
        &self,
        now: Now,
        queue: &Arc<SharedQueue>,
        key: &str,
        arguments: Map,
    ) -> Result<(ScopedBinding, Wakeups), ExchangeError> {
        let bound = self.bind_for(now, queue, (key, arguments), Tenure::scoped())?;
        Ok((ScopedBinding::new(self.weak(), &bound.binding), bound.wakeups))
    }
}

/// How long a binding stays. It changes only under the lock of the exchange.
pub(crate) struct Tenure(AtomicU64);

impl Tenure {
    /// Until somebody ends it.
    pub(crate) fn kept() -> Tenure {
        Tenure(AtomicU64::new(KEPT))
    }

    /// As long as there is a claim to it, of which there is one.
    pub(crate) fn scoped() -> Tenure {
        Tenure(AtomicU64::new(1))
    }

    /// Somebody wants the same binding for so long.
    pub(crate) fn extend(&self, other: &Tenure) {
        // A claim to a binding that is kept ends nothing, so it need not be counted.
        self.set(self.claims().saturating_add(other.claims()));
    }

    /// A claim has been given up; true if that was the last one.
    pub(crate) fn release(&self) -> bool {
        let claims = self.claims();
        if claims != KEPT {
            self.set(claims.saturating_sub(1));
        }
        claims == 1
    }

    /// How many claims there are; `None` if it is kept.
    pub(crate) fn scope(&self) -> Option<u64> {
        Some(self.claims()).filter(|claims| *claims != KEPT)
    }

    fn claims(&self) -> u64 {
        // Relaxed, here and below: the lock orders what is done under it.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, claims: u64) {
        self.0.store(claims, Ordering::Relaxed);
    }
}

/// So many claims never come together.
const KEPT: u64 = u64::MAX;

impl fmt::Debug for ScopedBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopedBinding").field(&self.binding()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_claim_ends_a_binding_that_nobody_keeps() {
        let tenure = Tenure::scoped();
        tenure.extend(&Tenure::scoped());
        assert!(!tenure.release());
        assert!(tenure.release());
    }

    #[test]
    fn no_claim_ends_a_binding_that_somebody_keeps() {
        for (first, second) in
            [(Tenure::kept(), Tenure::scoped()), (Tenure::scoped(), Tenure::kept())]
        {
            first.extend(&second);
            assert!(!first.release());
            assert!(!first.release());
        }
    }
}
