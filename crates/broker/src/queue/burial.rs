//! Dead letters of a queue go to its alternate exchange.

use super::SharedQueue;
use crate::message::Batch;
use crate::messages::{Cascade, DeadLetters, Death, Messages};
use crate::sync::lock;
use crate::transaction::Transaction;
use crate::wake::Wakeups;
use mochila_wire::{Now, Symbol, Value};
use std::sync::Arc;

impl SharedQueue {
    /// Publishes dead letters, each with where it comes from and why; says how many. No lock may be
    /// held.
    ///
    /// A queue may be bound, by way of exchanges, to itself. Messages for which it has no room do not
    /// come back to it, and others go on in this way for a few queues only; they are dropped then.
    pub(super) fn bury(&self, dead: DeadLetters) -> (u64, Wakeups) {
        self.bury_in(dead, None)
    }

    /// Publishes messages for which the queue had no room, of a batch whose sender is not told, since
    /// others have them; in a transaction if they came in one. No lock may be held.
    pub(crate) fn bury_refused(
        &self,
        now: Now,
        batch: &mut Batch,
        transaction: Option<&mut Transaction>,
    ) -> Wakeups {
        let peer = self.peer();
        let queue = peer.as_deref().unwrap_or(self);
        let dead = lock(&queue.queue).messages_mut().dead_on_arrival(now, batch);
        dead.map_or_else(Wakeups::new, |dead| queue.bury_in(dead, transaction).1)
    }

    fn bury_in(&self, dead: DeadLetters, transaction: Option<&mut Transaction>) -> (u64, Wakeups) {
        let DeadLetters { mut batch, deaths, alternate, now, cascade } = dead;
        let cascade = Cascade::further(cascade.as_deref());
        let (Some(exchange), Some(cascade)) = (alternate.get(), cascade) else {
            return (0, Wakeups::new());
        };
        if deaths.iter().all(|death| *death == Death::Dropped) {
            cascade.note_full(std::ptr::from_ref(self).addr());
        }
        for (index, death) in deaths.iter().enumerate() {
            let annotations = [
                (SOURCE, Value::from(self.name())),
                (REASON, Value::from(death.name())),
                (TIME, Value::Timestamp(now.wall_ms)),
            ];
            batch.annotate(index, &annotations, self.budget());
        }
        batch.cascade = Some(Arc::new(cascade));
        (batch.len() as u64, exchange.publish_dead(now, &mut batch, transaction))
    }

    /// Publishes what is left of a queue that has been deleted; says how many messages that were.
    pub(super) fn bury_left(&self, messages: &mut Messages) -> (u64, Wakeups) {
        let (mut buried, mut wakeups) = (0, Wakeups::new());
        while let Some(dead) = messages.take_left(BURIED_AT_ONCE) {
            let (published, woken) = self.bury(dead);
            buried += published;
            wakeups.merge(woken);
        }
        (buried, wakeups)
    }
}

/// The annotation that says which queue a dead letter comes from.
const SOURCE: Symbol = Symbol::from_static("x-opt-deadletter-source");
/// The annotation that says why it is one: `rejected`, `expired`, `max-deliveries`, `overflow` or
/// `deleted`.
const REASON: Symbol = Symbol::from_static("x-opt-deadletter-reason");
/// The annotation that says since when.
const TIME: Symbol = Symbol::from_static("x-opt-deadletter-time");
/// So many are published at a time.
const BURIED_AT_ONCE: u64 = 1024;
