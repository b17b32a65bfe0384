//! The node: queues by name, the memory that they share, and their timers.

mod abandoned;
mod broker;
mod creators;
mod exchanges;
mod pattern;
mod timers;

pub use abandoned::AbandonedTotals;
pub use broker::{Broker, BrokerSettings};
pub use pattern::Pattern;

use crate::budget::Budget;
use crate::events::{Event, EventKind, Feed};
use crate::queue::{Redirects, SharedQueue, Statistics};
use crate::settings::Defaults;
use crate::sync::{Mutex, RwLock, lock, read, write};
use crate::transaction::{Standoffs, Totals, TransactionSettings};
use abandoned::Abandoned;
use creators::Creators;
use exchanges::Exchanges;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use timers::Timers;

/// What all queues of a node have in common; each of them knows it.
pub(crate) struct Node {
    queues: RwLock<HashMap<Box<str>, Arc<SharedQueue>>>,
    budget: Arc<Budget>,
    defaults: Defaults,
    timers: Timers,
    feed: Feed,
    redirects: Redirects,
    transactions: TransactionSettings,
    totals: Totals,
    standoffs: Standoffs,
    exchanges: Exchanges,
    creators: Creators,
    /// The totals of queues that have been deleted.
    retired: Mutex<Statistics>,
    abandoned: Abandoned,
}

impl Node {
    pub(crate) fn new(
        budget: Arc<Budget>,
        defaults: Defaults,
        transactions: TransactionSettings,
    ) -> Arc<Node> {
        Arc::new(Node {
            queues: RwLock::new(HashMap::new()),
            budget,
            defaults,
            timers: Timers::default(),
            feed: Feed::new(),
            redirects: Redirects::default(),
            transactions,
            totals: Totals::default(),
            standoffs: Standoffs::default(),
            exchanges: Exchanges::default(),
            creators: Creators::default(),
            retired: Mutex::new(Statistics::default()),
            abandoned: Abandoned::default(),
        })
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// How large transactions may be.
    pub(crate) fn transactions(&self) -> &TransactionSettings {
        &self.transactions
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Transactions that wait for room.
    pub(crate) fn standoffs(&self) -> &Standoffs {
        &self.standoffs
    }

    /// Which queues have changed places for those who send.
    pub(crate) fn redirects(&self) -> &Redirects {
        &self.redirects
    }

    /// What has happened.
    pub(crate) fn feed(&self) -> &Feed {
        &self.feed
    }

    pub(crate) fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    /// Who has made queues.
    pub(crate) fn creators(&self) -> &Creators {
        &self.creators
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// What was left in queues that have been deleted.
    pub(crate) fn abandoned(&self) -> &Abandoned {
        &self.abandoned
    }

    /// The queue of this name, if it has not been deleted.
    pub(crate) fn queue(&self, name: &str) -> Option<Arc<SharedQueue>> {
        read(&self.queues).get(name).filter(|queue| !queue.is_deleted()).cloned()
    }

    /// Adds the queue that `make` makes, unless there is one: that one is the error then.
    pub(crate) fn add<E>(
        &self,
        name: &str,
        make: impl FnOnce(usize) -> Result<Arc<SharedQueue>, E>,
    ) -> Result<Arc<SharedQueue>, Found<E>> {
        let mut queues = write(&self.queues);
        if let Some(queue) = queues.get(name).filter(|queue| !queue.is_deleted()) {
            return Err(Found::Queue(Arc::clone(queue)));
        }
        let queue = make(queues.len()).map_err(Found::Error)?;
        queues.insert(name.into(), Arc::clone(&queue));
        Ok(queue)
    }

    /// A queue has been deleted. There may be another one of its name by now.
    pub(crate) fn forget(&self, queue: &SharedQueue, statistics: &Statistics) {
        let mut queues = write(&self.queues);
        if queues.get(queue.name()).is_some_and(|there| std::ptr::eq(Arc::as_ptr(there), queue)) {
            queues.remove(queue.name());
        }
        drop(queues);
        self.part(queue);
        if !queue.is_private() {
            self.feed.raise(Event::new(EventKind::QueueDelete).with("queue", queue.name()));
        }
        self.exchanges.forget_queue(std::ptr::from_ref(queue).addr());
        let gone = Statistics {
            msg_total_enqueues: statistics.msg_total_enqueues,
            msg_total_dequeues: statistics.msg_total_dequeues + statistics.msg_depth,
            byte_total_enqueues: statistics.byte_total_enqueues,
            byte_total_dequeues: statistics.byte_total_dequeues + statistics.byte_depth,
            msg_txn_enqueues: statistics.msg_txn_enqueues,
            msg_txn_dequeues: statistics.msg_txn_dequeues,
            byte_txn_enqueues: statistics.byte_txn_enqueues,
            byte_txn_dequeues: statistics.byte_txn_dequeues,
            acquires: statistics.acquires,
            releases: statistics.releases,
            discards_ttl: statistics.discards_ttl,
            discards_overflow: statistics.discards_overflow,
            discards_ring: statistics.discards_ring,
            discards_lvq: statistics.discards_lvq,
            discards_max_delivery: statistics.discards_max_delivery,
            discards_filter: statistics.discards_filter,
            discards_subscriber: statistics.discards_subscriber,
            discards_purge: statistics.discards_purge,
            reroutes: statistics.reroutes,
            flow_stopped_count: statistics.flow_stopped_count,
            ..Statistics::default()
        };
        lock(&self.retired).add(&gone);
    }

    /// All queues, in no order.
    pub(crate) fn queues(&self) -> Vec<Arc<SharedQueue>> {
        read(&self.queues).values().filter(|queue| !queue.is_deleted()).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        read(&self.queues).len()
    }

    /// The numbers of all queues together, of deleted ones too.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut total = *lock(&self.retired);
        for queue in self.queues() {
            total.add(&queue.statistics());
        }
        total
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Why a queue was not added.
pub(crate) enum Found<E> {
    /// There is one.
    Queue(Arc<SharedQueue>),
    /// It could not be made.
    Error(E),
}
