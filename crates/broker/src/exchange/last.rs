//! The last message of an exchange, for queues that are bound later.

use super::{Exchange, Routing};
use crate::message::Batch;
use crate::queue::SharedQueue;
use crate::sync::{MutexGuard, lock};
use crate::wake::Wakeups;
use mochila_wire::Now;
use std::sync::Arc;

/// A message that is kept after it has been delivered.
#[derive(Debug, Default)]
pub(crate) struct Last {
    /// One message, or none yet.
    batch: Batch,
    /// When it expires; `None` if it does not.
    expiry_ms: Option<u64>,
    /// The key that it came with, where the address had one.
    key: Option<Box<[u8]>>,
}

impl Last {
    /// Keeps a message of a batch instead.
    pub(crate) fn keep(&mut self, now: Now, batch: &Batch, index: u32, key: Option<&[u8]>) {
        self.batch.select(batch, &[index]);
        self.expiry_ms = self.batch.messages[0].meta.expiry_ms(now);
        self.key = key.map(Box::from);
    }

    /// The message for a queue that has just been bound, with what is left of its time, and the
    /// key that it came with.
    pub(crate) fn offer(&self, now: Now) -> Option<(Batch, Option<&[u8]>)> {
        if self.batch.is_empty() || self.expiry_ms.is_some_and(|expiry| expiry <= now.mono_ms) {
            return None;
        }
        let mut batch = Batch::default();
        batch.select(&self.batch, &[0]);
        let meta = &mut batch.messages[0].meta;
        if let (Some(expiry_ms), Some(_)) = (self.expiry_ms, meta.ttl_ms) {
            let left = expiry_ms - now.mono_ms;
            meta.ttl_ms = Some(u32::try_from(left).unwrap_or(u32::MAX));
        }
        Some((batch, self.key.as_deref()))
    }
}

/// The last message that a transaction has sent to an exchange, to be kept there if it succeeds.
#[derive(Debug)]
pub(crate) struct LastToBe {
    exchange: Arc<Exchange>,
    last: Last,
    /// The queues that it goes to. Others that are bound before the commit get it too, as if they
    /// had been bound after it.
    queues: Vec<Arc<SharedQueue>>,
}

impl LastToBe {
    /// This message of a batch that has been routed; none if the exchange keeps none.
    pub(super) fn of(
        now: Now,
        exchange: &Arc<Exchange>,
        batch: &Batch,
        index: u32,
        routing: &Routing,
    ) -> Option<LastToBe> {
        exchange.last.as_ref()?;
        let mut last = Last::default();
        last.keep(now, batch, index, routing.key());
        let queues = routing.queues_of(index).cloned().collect();
        Some(LastToBe { exchange: Arc::clone(exchange), last, queues })
    }

    /// The exchange, as all who commit put several in order.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.exchange).addr()
    }

    /// Holds the exchange's messages back, and whoever is to be bound to it.
    pub(crate) fn lock(&self) -> Option<MutexGuard<'_, Last>> {
        self.exchange.last.as_ref().map(lock)
    }

    /// The transaction has succeeded: this is the last message, as long as the exchange is held.
    pub(crate) fn become_last(&self, now: Now, place: &mut Last) -> Wakeups {
        let mut wakeups = Wakeups::new();
        place.batch.copy_of(&self.last.batch);
        place.expiry_ms = self.last.expiry_ms;
        place.key.clone_from(&self.last.key);
        let Some((mut batch, key)) = place.offer(now) else { return wakeups };
        let mut routing = Routing::new();
        self.exchange.find_for(&batch, key, &mut routing);
        let is_new =
            |queue: &&Arc<SharedQueue>| !self.queues.iter().any(|it| Arc::ptr_eq(it, queue));
        for queue in routing.queues().filter(is_new) {
            wakeups.merge(queue.share(now, &mut batch, false).1);
        }
        wakeups
    }
}
