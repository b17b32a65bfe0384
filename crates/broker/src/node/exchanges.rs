//! The exchanges of a node by name, and which of them a queue is bound to.

use super::Node;
use crate::budget::{NodeMemory, Reservation};
use crate::events::{Event, EventKind};
use crate::exchange::{
    Alternate, Exchange, ExchangeError, ExchangeKind, ExchangeParts, ExchangeSettings,
};
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock, lock, read, write};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// All exchanges that there are.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    by_name: RwLock<HashMap<Box<str>, Arc<Exchange>>>,
    /// By the address of a queue that is bound, whose bindings keep it where it is.
    bound: Mutex<HashMap<usize, Vec<Weak<Exchange>>, foldhash::fast::RandomState>>,
    /// Messages that went nowhere at exchanges that have been deleted.
    retired_drops: AtomicU64,
}

impl Exchanges {
    /// The exchange of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Exchange>> {
        read(&self.by_name).get(name).filter(|exchange| !exchange.is_deleted()).cloned()
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Exchange>> {
        read(&self.by_name).values().filter(|exchange| !exchange.is_deleted()).cloned().collect()
    }

    /// Messages that no queue was bound for, at all exchanges that there are and have been.
    pub(crate) fn drops(&self) -> u64 {
        let there: u64 = self.all().iter().map(|exchange| exchange.drops()).sum();
        there + self.retired_drops.load(Ordering::Relaxed)
    }

    /// The exchanges that a queue is bound to.
    pub(crate) fn of_queue(&self, queue: usize) -> Vec<Arc<Exchange>> {
        let bound = lock(&self.bound);
        bound.get(&queue).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// A queue has been deleted: its bindings go with it.
    pub(crate) fn forget_queue(&self, queue: usize) {
        let exchanges = lock(&self.bound).remove(&queue);
        for exchange in exchanges.iter().flatten().filter_map(Weak::upgrade) {
            exchange.forget_queue(queue);
        }
    }

    /// An exchange has been deleted. There may be another one of its name by now.
    pub(crate) fn forget(&self, exchange: &Exchange) {
        let mut by_name = write(&self.by_name);
        let is_it = |there: &Arc<Exchange>| std::ptr::eq(Arc::as_ptr(there), exchange);
        let gone = match by_name.get(exchange.name()).is_some_and(is_it) {
            true => by_name.remove(exchange.name()),
            false => None,
        };
        drop(by_name);
        self.retired_drops.fetch_add(exchange.drops(), Ordering::Relaxed);
        drop(gone);
    }

    pub(crate) fn note_bound(&self, queue: usize, exchange: &Weak<Exchange>) {
        let mut bound = lock(&self.bound);
        let exchanges = bound.entry(queue).or_default();
        if !exchanges.iter().any(|known| known.ptr_eq(exchange)) {
            exchanges.push(Weak::clone(exchange));
        }
    }

    pub(crate) fn note_unbound(&self, queue: usize, exchange: &Weak<Exchange>) {
        let mut bound = lock(&self.bound);
        let Some(exchanges) = bound.get_mut(&queue) else { return };
        exchanges.retain(|known| !known.ptr_eq(exchange));
        if exchanges.is_empty() {
            bound.remove(&queue);
        }
    }
}

impl Node {
    /// Makes the exchanges that are always there.
    pub(crate) fn declare_exchanges(self: &Arc<Node>) {
        for (name, kind) in PREDECLARED {
            let parts = ExchangeParts {
                settings: ExchangeSettings::of(kind),
                is_predeclared: true,
                alternate: None,
                memory: NodeMemory::new(Reservation::nothing(&self.budget)),
            };
            let exchange = Exchange::new(name, parts, self);
            write(&self.exchanges.by_name).insert(name.into(), exchange);
        }
    }

    /// Makes an exchange.
    pub(crate) fn add_exchange(
        self: &Arc<Node>,
        name: &str,
        settings: ExchangeSettings,
        limit: usize,
    ) -> Result<Arc<Exchange>, ExchangeError> {
        let alternate = match settings.alternate_exchange.as_deref() {
            Some(alternate) => Some(self.alternate(alternate)?),
            None => None,
        };
        let mut by_name = write(&self.exchanges.by_name);
        if by_name.get(name).is_some_and(|exchange| !exchange.is_deleted()) {
            return Err(ExchangeError::Exists { name: name.to_owned() });
        }
        if by_name.len() >= limit {
            return Err(ExchangeError::TooMany { limit });
        }
        let memory = self.budget.reserve_for_node(EXCHANGE_COST);
        let memory = NodeMemory::new(memory.map_err(ExchangeError::NoMemory)?);
        let parts = ExchangeParts { settings, is_predeclared: false, alternate, memory };
        let exchange = Exchange::new(name, parts, self);
        by_name.insert(name.into(), Arc::clone(&exchange));
        drop(by_name);
        let settings = exchange.settings();
        let event = Event::new(EventKind::ExchangeDeclare)
            .with("exchange", name)
            .with("exchangeType", settings.kind.name())
            .with("durable", settings.durable)
            .with("autoDelete", settings.auto_delete);
        self.feed.raise(event);
        Ok(exchange)
    }

    /// The exchange of this name as an alternate exchange.
    pub(crate) fn alternate(&self, name: &str) -> Result<Alternate, ExchangeError> {
        let exchange = self.exchanges.get(name);
        let exchange = exchange.ok_or_else(|| ExchangeError::NotFound { name: name.to_owned() })?;
        Ok(Alternate::new(&exchange))
    }
}

/// The exchanges that are always there, beside the nameless one.
const PREDECLARED: [(&str, ExchangeKind); 4] = [
    ("amq.direct", ExchangeKind::Direct),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.match", ExchangeKind::Headers),
];
/// What an exchange takes without bindings.
const EXCHANGE_COST: u64 = 1024;
