//! What queues, exchanges and bindings take.

use super::{Budget, OverLimit, Reservation};
use crate::sync::Ordering;
use std::sync::Arc;

/// Memory of a node, which goes back when it is gone.
///
/// Whoever sends to a new queue or receives from one must be able to attach when messages have taken
/// all that they may: so a part of the limit is not for them.
#[derive(Debug)]
pub(crate) struct NodeMemory(Reservation);

impl NodeMemory {
    pub(crate) fn new(memory: Reservation) -> NodeMemory {
        memory.budget().nodes.fetch_add(memory.bytes(), Ordering::Relaxed);
        NodeMemory(memory)
    }

    /// Where it comes from.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        self.0.budget()
    }
}

impl Drop for NodeMemory {
    fn drop(&mut self) {
        self.budget().nodes.fetch_sub(self.0.bytes(), Ordering::Relaxed);
    }
}

impl Budget {
    /// Reserves `bytes` for a node, or nothing at all.
    pub(crate) fn reserve_for_node(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OverLimit> {
        let limit = self.limit.load(Ordering::Relaxed);
        self.reserve_up_to(limit - super::kept_for_operators(limit), bytes)
    }
}
