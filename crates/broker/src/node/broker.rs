//! The broker as the adaptors see it.

use super::{AbandonedTotals, Found, Node, Pattern};
use crate::budget::{Budget, NodeMemory, OverLimit, Reservation};
use crate::error::{QueueError, no_exchange};
use crate::events::{Event, EventKind, Feed};
use crate::exchange::{Exchange, ExchangeDeleteIf, ExchangeError, ExchangeSettings};
use crate::queue::{DeleteIf, SharedQueue, Statistics};
use crate::ration::Rations;
use crate::settings::{Defaults, QueueSettings, Terms};
use crate::sync::{AtomicU64, Ordering};
use crate::transaction::{Transaction, TransactionSettings, TransactionTotals, Wait, Waiting};
use crate::wake::Wakeups;
use mochila_wire::Now;
use std::fmt;
use std::hash::Hasher;
#[allow(deprecated, reason = "the hasher that replaces it takes no key")]
use std::hash::SipHasher;
use std::sync::Arc;

/// What a broker is like.
#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// What all messages together may take; 0 means no limit.
    pub memory_limit_bytes: u64,
    /// What queues are like whose settings do not say.
    pub defaults: Defaults,
    /// What an address becomes when it is used for the first time.
    pub patterns: Vec<Pattern>,
    /// No more queues than this.
    pub max_queues: usize,
    /// How large transactions may be, and how long they may take.
    pub transactions: TransactionSettings,
    /// No more exchanges than this.
    pub max_exchanges: usize,
    /// Something random, so that nobody guesses the names of dynamic queues.
    pub seed: u128,
}

impl Default for BrokerSettings {
    /// Attach to any name and a queue is there.
    fn default() -> BrokerSettings {
        BrokerSettings {
            memory_limit_bytes: 0,
            defaults: Defaults::default(),
            patterns: vec![Pattern::any()],
            max_queues: 10_000_000,
            transactions: TransactionSettings::default(),
            max_exchanges: 100_000,
            seed: 0,
        }
    }
}

/// Queues by name, and the memory that they share.
pub struct Broker {
    node: Arc<Node>,
    /// Queues that are made by the same pattern share their settings.
    patterns: Vec<(Pattern, Arc<QueueSettings>)>,
    max_queues: usize,
    max_exchanges: usize,
    seed: u128,
    dynamic_names: AtomicU64,
}

impl Broker {
    /// A broker without queues.
    pub fn new(settings: BrokerSettings) -> Arc<Broker> {
        let budget = Budget::new(settings.memory_limit_bytes);
        let shared = |pattern: Pattern| (pattern.clone(), Arc::new(pattern.settings));
        let node = Node::new(budget, settings.defaults, settings.transactions);
        node.declare_exchanges();
        Arc::new(Broker {
            node,
            patterns: settings.patterns.into_iter().map(shared).collect(),
            max_queues: settings.max_queues,
            max_exchanges: settings.max_exchanges,
            seed: settings.seed,
            dynamic_names: AtomicU64::new(0),
        })
    }

    /// What the log takes of what peers cause.
    pub fn rations(&self) -> &Arc<Rations> {
        self.node.feed().rations()
    }

    /// The memory that all messages share.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.node.budget
    }

    /// What queues are like whose settings do not say.
    pub fn defaults(&self) -> &Defaults {
        &self.node.defaults
    }

    /// The queue of this name, if there is one.
    pub fn queue(&self, name: &str) -> Option<Arc<SharedQueue>> {
        self.node.queue(name)
    }

    /// The queue of this name; it is made if a pattern says so.
    pub fn open(&self, name: &str) -> Result<Arc<SharedQueue>, QueueError> {
        self.open_for(name, None)
    }

    /// The same for a user, who is its creator if it is made.
    pub fn open_for(&self, name: &str, user: Option<&str>) -> Result<Arc<SharedQueue>, QueueError> {
        if let Some(queue) = self.queue(name) {
            return Ok(queue);
        }
        let settings = self.settings_for(name);
        let settings = settings.ok_or_else(|| QueueError::NotFound { name: name.to_owned() })?;
        match self.declare(name, Arc::clone(settings)) {
            Ok(queue) => {
                if let Some(user) = user {
                    queue.set_creator(user);
                }
                Ok(queue)
            }
            Err(Found::Queue(queue)) => Ok(queue),
            Err(Found::Error(error)) => Err(error),
        }
    }

    /// What the queue is like that an address becomes when it is used for the first time; `None` if
    /// it becomes none.
    pub fn settings_for(&self, name: &str) -> Option<&Arc<QueueSettings>> {
        if name.starts_with(DYNAMIC) {
            // Whoever replies to a queue that is gone must not make one that nobody reads.
            return None;
        }
        let patterns = self.patterns.iter();
        Pattern::of(patterns.map(|(pattern, settings)| (pattern, settings)), name)
    }

    /// Whether a queue could be made with these settings, as far as they alone say.
    pub fn verify(&self, settings: &QueueSettings) -> Result<(), QueueError> {
        Terms::of(settings, self.defaults())?;
        Ok(())
    }

    /// Makes a queue; it is an error if there is one of this name.
    pub fn create(
        &self,
        name: &str,
        settings: QueueSettings,
    ) -> Result<Arc<SharedQueue>, QueueError> {
        self.declare(name, Arc::new(settings)).map_err(|found| match found {
            Found::Queue(_) => QueueError::Exists { name: name.to_owned() },
            Found::Error(error) => error,
        })
    }

    /// Makes a queue with a name that nobody has used or can guess, for a dynamic terminus.
    pub fn create_dynamic(&self, settings: QueueSettings) -> Result<Arc<SharedQueue>, QueueError> {
        let queue = self.create_unnamed(settings)?;
        self.tell_of(&queue);
        Ok(queue)
    }

    /// The same for what the node itself sends to one link: no event tells of the queue.
    pub fn create_private(&self, settings: QueueSettings) -> Result<Arc<SharedQueue>, QueueError> {
        let queue = self.create_unnamed(settings)?;
        queue.keep_private();
        Ok(queue)
    }

    fn create_unnamed(&self, settings: QueueSettings) -> Result<Arc<SharedQueue>, QueueError> {
        let settings = Arc::new(settings);
        loop {
            let name = self.dynamic_name();
            // Operators' tools have their answers sent to one of these.
            match self.add(&name, Arc::clone(&settings), Budget::reserve_for_operator) {
                Ok(queue) => return Ok(queue),
                Err(Found::Queue(_)) => {}
                Err(Found::Error(error)) => return Err(error),
            }
        }
    }

    fn declare(
        &self,
        name: &str,
        settings: Arc<QueueSettings>,
    ) -> Result<Arc<SharedQueue>, Found<QueueError>> {
        let queue = self.add(name, settings, Budget::reserve_for_node)?;
        self.tell_of(&queue);
        Ok(queue)
    }

    fn tell_of(&self, queue: &SharedQueue) {
        let settings = queue.settings();
        let event = Event::new(EventKind::QueueDeclare)
            .with("queue", queue.name())
            .with("durable", settings.durable)
            .with("exclusive", settings.exclusive)
            .with("autoDelete", settings.lifetime.is_some());
        self.node.feed().raise(event);
    }

    /// What is sent to one of two queues goes to the other from now on, and the other way round,
    /// until it is cancelled or one of them is deleted.
    pub fn redirect(
        &self,
        source: &Arc<SharedQueue>,
        target: &Arc<SharedQueue>,
    ) -> Result<Wakeups, QueueError> {
        self.node.redirect(source, target)
    }

    /// What is sent to a queue goes there again, and what is sent to its peer likewise.
    pub fn cancel_redirect(&self, queue: &SharedQueue) -> Result<(), QueueError> {
        self.node.cancel_redirect(queue)
    }

    /// What has happened, for its operators.
    pub fn feed(&self) -> &Feed {
        self.node.feed()
    }

    /// Tells what has happened since the last time, to those who listen. A worker that is about to
    /// rest does so; whoever asks for the recent events does it first.
    pub fn tell_events(&self, now: Now) -> Wakeups {
        if let Some(alarm) = self.node.budget.take_alarm(now) {
            self.node.feed().raise(alarm);
        }
        self.node.feed().tell(now, &self.node.budget)
    }

    /// Deletes a queue, and the messages with it.
    pub fn delete(&self, name: &str, condition: DeleteIf) -> Result<Wakeups, QueueError> {
        let queue = self.queue(name);
        let queue = queue.ok_or_else(|| QueueError::NotFound { name: name.to_owned() })?;
        queue.delete(condition)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction::new(&self.node)
    }

    /// Somebody with transactions waits for room that others' keep: that is known as long as what
    /// this returns is there.
    pub fn wait_for_room(&self, wait: Wait) -> Waiting {
        Waiting::new(&self.node, wait)
    }

    /// How large transactions may be, and how long they may take.
    pub fn transaction_settings(&self) -> &TransactionSettings {
        self.node.transactions()
    }

    /// How many transactions there are, and have been.
    pub fn transaction_totals(&self) -> TransactionTotals {
        self.node.totals().numbers()
    }

    /// All queues, in no order.
    pub fn queues(&self) -> Vec<Arc<SharedQueue>> {
        self.node.queues()
    }

    /// How many queues there are.
    pub fn queue_count(&self) -> usize {
        self.node.len()
    }

    /// The numbers of all queues together, of deleted ones too.
    pub fn statistics(&self) -> Statistics {
        self.node.statistics()
    }

    /// The exchange of this name, if there is one.
    pub fn exchange(&self, name: &str) -> Option<Arc<Exchange>> {
        self.node.exchanges().get(name)
    }

    /// The exchange that an address names, and the routing key if the address has one: it is
    /// `exchange` or `exchange/key`.
    pub fn exchange_at<'a>(&self, address: &'a str) -> Option<(Arc<Exchange>, Option<&'a str>)> {
        if let Some(exchange) = self.exchange(address) {
            return Some((exchange, None));
        }
        let (name, key) = address.split_once('/')?;
        Some((self.exchange(name)?, Some(key)))
    }

    /// Makes an exchange; it is an error if there is one of this name.
    pub fn create_exchange(
        &self,
        name: &str,
        settings: ExchangeSettings,
    ) -> Result<Arc<Exchange>, ExchangeError> {
        check_exchange_name(name)?;
        let is_durable = settings.durable;
        let settings = ExchangeSettings { durable: false, ..settings };
        let exchange = self.node.add_exchange(name, settings, self.max_exchanges)?;
        if is_durable {
            self.node.feed().raise(not_durable("exchange", name));
        }
        Ok(exchange)
    }

    /// Makes an exchange with a name that nobody has used or can guess, for a dynamic terminus.
    pub fn create_dynamic_exchange(
        &self,
        settings: ExchangeSettings,
    ) -> Result<Arc<Exchange>, ExchangeError> {
        self.create_exchange(&self.dynamic_name(), settings)
    }

    /// Deletes an exchange, and its bindings with it.
    pub fn delete_exchange(
        &self,
        name: &str,
        condition: ExchangeDeleteIf,
    ) -> Result<Wakeups, ExchangeError> {
        let exchange = self.exchange(name);
        let exchange = exchange.ok_or_else(|| ExchangeError::NotFound { name: name.to_owned() })?;
        exchange.delete(condition)
    }

    /// All exchanges but the nameless one, in no order.
    pub fn exchanges(&self) -> Vec<Arc<Exchange>> {
        self.node.exchanges().all()
    }

    /// The exchanges that a queue is bound to.
    pub fn exchanges_of(&self, queue: &Arc<SharedQueue>) -> Vec<Arc<Exchange>> {
        self.node.exchanges().of_queue(Arc::as_ptr(queue).addr())
    }

    /// How many messages no queue was bound for, at all exchanges that there are and have been.
    pub fn discards_no_route(&self) -> u64 {
        self.node.exchanges().drops()
    }

    /// Messages that were left in queues when these were deleted.
    pub fn abandoned(&self) -> AbandonedTotals {
        self.node.abandoned().totals()
    }

    /// Does what is due by time, on all queues; lets those go on who have waited for memory.
    pub fn handle_timeout(&self, now: Now) -> Wakeups {
        let mut wakeups = self.node.budget.resume();
        wakeups.merge(self.tell_events(now));
        for queue in self.node.timers.due(now.mono_ms) {
            wakeups.merge(queue.handle_timeout(now));
        }
        wakeups
    }

    /// The next time [`Broker::handle_timeout`] may have something to do: cheap, to be asked by
    /// every worker before it goes to sleep.
    pub fn next_timeout_ms(&self) -> Option<u64> {
        if self.node.budget.is_resume_due() || self.node.feed().is_due() {
            return Some(0);
        }
        let alarm_ms = self.node.budget.alarm_due_ms().unwrap_or(u64::MAX);
        Some(self.node.timers.next_ms().min(alarm_ms)).filter(|next_ms| *next_ms != u64::MAX)
    }

    fn add(
        &self,
        name: &str,
        settings: Arc<QueueSettings>,
        reserve: fn(&Arc<Budget>, u64) -> Result<Reservation, OverLimit>,
    ) -> Result<Arc<SharedQueue>, Found<QueueError>> {
        check_name(name).map_err(Found::Error)?;
        let is_durable = settings.durable;
        let settings = kept(settings);
        let terms = Terms::of(&settings, &self.node.defaults).map_err(QueueError::from);
        let terms = terms.map_err(Found::Error)?;
        let alternate = settings.alternate_exchange.as_deref();
        let alternate = alternate.map(|name| self.node.alternate(name)).transpose();
        let alternate = alternate.map_err(|error| Found::Error(no_exchange(error)))?;
        let queue = self.node.add(name, |count| {
            if count >= self.max_queues {
                return Err(QueueError::TooMany { limit: self.max_queues });
            }
            let memory = reserve(&self.node.budget, QUEUE_COST).map_err(QueueError::NoMemory)?;
            let memory = NodeMemory::new(memory);
            Ok(SharedQueue::new(name, settings, (terms, alternate), memory, &self.node))
        })?;
        if is_durable {
            self.node.feed().raise(not_durable("queue", name));
        }
        Ok(queue)
    }

    fn dynamic_name(&self) -> String {
        // Relaxed: the number has to be another one each time, nothing more.
        let number = self.dynamic_names.fetch_add(1, Ordering::Relaxed);
        let (first, second) = (self.keyed_hash(2 * number), self.keyed_hash(2 * number + 1));
        format!("{DYNAMIC}{first:016x}{second:016x}")
    }

    /// Whoever knows some names must not be able to guess others, so it takes a keyed hash.
    #[allow(deprecated, reason = "the hasher that replaces it takes no key")]
    fn keyed_hash(&self, number: u64) -> u64 {
        let mut hasher = SipHasher::new_with_keys((self.seed >> 64) as u64, self.seed as u64);
        hasher.write_u64(number);
        hasher.finish()
    }
}

/// What operators are told of somebody who has asked for a durable queue or exchange.
fn not_durable(kind: &'static str, name: &str) -> Event {
    Event::new(EventKind::NotDurable).with(kind, name).with("reason", NOTHING_IS_KEPT)
}

const NOTHING_IS_KEPT: &str = "nothing is kept on disk yet: it is gone when the broker stops";

/// Settings as they can be kept: nothing survives a restart, so nobody is told that it does.
fn kept(settings: Arc<QueueSettings>) -> Arc<QueueSettings> {
    match settings.durable {
        false => settings,
        true => Arc::new(QueueSettings { durable: false, ..(*settings).clone() }),
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker")
            .field("queues", &self.queue_count())
            .field("budget", self.budget())
            .finish_non_exhaustive()
    }
}

fn check_exchange_name(name: &str) -> Result<(), ExchangeError> {
    let reason = if name.starts_with("amq.") || name.starts_with("qpid.") {
        "names that begin with amq. or qpid. are reserved"
    } else if name.contains('/') {
        "what follows a / in an address is a routing key"
    } else {
        match check_name(name) {
            Ok(()) => return Ok(()),
            Err(QueueError::InvalidName { reason, .. }) => reason,
            Err(_) => "no queue could have it either",
        }
    };
    let name = name.escape_debug().take(80).collect();
    Err(ExchangeError::InvalidName { name, reason })
}

fn check_name(name: &str) -> Result<(), QueueError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MOST_NAME_BYTES {
        "it is longer than 1024 bytes"
    } else if name.starts_with('$') {
        "names that begin with $ are the node's own"
    } else if name.starts_with("amq.") || name.starts_with("qpid.") {
        "names that begin with amq. or qpid. are reserved for exchanges"
    } else if name.chars().any(char::is_control) {
        "it holds control characters"
    } else {
        return Ok(());
    };
    Err(QueueError::InvalidName { name: name.escape_debug().take(80).collect(), reason })
}

/// How the names of dynamic queues begin; no pattern makes such queues.
const DYNAMIC: &str = "dynamic-";
/// What a queue without messages takes.
const QUEUE_COST: u64 = 1024;
const MOST_NAME_BYTES: usize = 1024;
