//! One exchange: a table of bindings that publishers read without a lock.

use super::binding::{Binding, EXCLUSIVE, Target, is_exclusive, rule, written};
use super::bindings::Bindings;
use super::counts::Counts;
use super::last::Last;
use super::matcher::{Matcher, Rule};
use super::publisher::{Links, Publisher, SubscriberId};
use super::scoped::Tenure;
use super::{
    Alternate, ExchangeError, ExchangeKind, ExchangeSettings, ExchangeStatistics, Routing,
    Unroutable,
};
use crate::budget::{Budget, NodeMemory};
use crate::events::{Event, EventKind};
use crate::node::Node;
use crate::queue::SharedQueue;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use crate::wake::{Waker, Wakeups};
use arc_swap::ArcSwapOption;
use mochila_wire::{Map, Now};
use std::fmt;
use std::sync::{Arc, Weak};

/// An exchange that many threads publish to.
///
/// The table of its bindings is lent to publishers; whoever binds takes it back first, changes it,
/// and lends it again when the next publisher asks. So a binding costs what it costs to enter it in
/// the table, however large that is, except where somebody is reading just then: then it is copied.
pub struct Exchange {
    name: Box<str>,
    settings: ExchangeSettings,
    is_predeclared: bool,
    lent: ArcSwapOption<Matcher<Target>>,
    bindings: Mutex<Bindings>,
    /// A higher number whenever bindings have changed.
    pub(super) version: Arc<AtomicU64>,
    deleted: AtomicBool,
    /// The number of the next message, if they are numbered.
    pub(super) next_number: AtomicU64,
    /// Held while messages are delivered, if the last one is kept: so whoever is bound meanwhile
    /// gets each once, either as the last one or as the next.
    pub(super) last: Option<Mutex<Last>>,
    counts: Counts,
    pub(super) links: Mutex<Links>,
    pub(super) alternate: Option<Alternate>,
    /// Queues and exchanges that have this one as their alternate exchange.
    pub(super) alternate_uses: AtomicU64,
    node: Weak<Node>,
    pub(super) this: Weak<Exchange>,
    memory: NodeMemory,
}

/// Under what conditions an exchange may be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeDeleteIf {
    /// Only if nothing is bound to it and nobody sends to it.
    pub unused: bool,
}

/// A binding that was asked for.
pub(super) struct Bound {
    pub(super) binding: Arc<Binding>,
    /// It was not there before.
    pub(super) is_new: bool,
    pub(super) wakeups: Wakeups,
}

/// What an exchange is made of.
pub(crate) struct Parts {
    pub(crate) settings: ExchangeSettings,
    pub(crate) is_predeclared: bool,
    pub(crate) alternate: Option<Alternate>,
    pub(crate) memory: NodeMemory,
}

impl Exchange {
    pub(crate) fn new(name: &str, parts: Parts, node: &Arc<Node>) -> Arc<Exchange> {
        let Parts { settings, is_predeclared, alternate, memory } = parts;
        Arc::new_cyclic(|this| Exchange {
            name: name.into(),
            is_predeclared,
            lent: ArcSwapOption::empty(),
            bindings: Mutex::new(Bindings::new(settings.kind)),
            version: Arc::default(),
            deleted: AtomicBool::new(false),
            next_number: AtomicU64::new(1),
            last: settings.keeps_last.then(Mutex::default),
            counts: Counts::default(),
            links: Mutex::default(),
            alternate,
            alternate_uses: AtomicU64::new(0),
            node: Arc::downgrade(node),
            this: Weak::clone(this),
            memory,
            settings,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is like.
    pub fn settings(&self) -> &ExchangeSettings {
        &self.settings
    }

    /// True if it is always there.
    pub fn is_predeclared(&self) -> bool {
        self.is_predeclared
    }

    /// True once it has been deleted.
    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Relaxed)
    }

    /// Its numbers.
    pub fn statistics(&self) -> ExchangeStatistics {
        ExchangeStatistics {
            binding_count: lock(&self.bindings).len() as u64,
            producer_count: lock(&self.links).publishers() as u64,
            ..self.counts.statistics()
        }
    }

    /// All its bindings, in no order.
    pub fn bindings(&self) -> Vec<Arc<Binding>> {
        lock(&self.bindings).iter().cloned().collect()
    }

    /// The binding of a queue with a key.
    pub fn binding(&self, queue: &Arc<SharedQueue>, key: &str) -> Option<Arc<Binding>> {
        let key = written(self.settings.kind, key);
        lock(&self.bindings).get(&Target(Arc::clone(queue)), &key).cloned()
    }

    /// The bindings of a queue.
    pub fn bindings_of(&self, queue: &Arc<SharedQueue>) -> Vec<Arc<Binding>> {
        lock(&self.bindings).of(Target(Arc::clone(queue)).address()).to_vec()
    }

    /// Binds a queue; false if that was so already. If the exchange keeps its last message, the
    /// queue gets it if it matches.
    pub fn bind(
        &self,
        now: Now,
        queue: &Arc<SharedQueue>,
        key: &str,
        arguments: Map,
    ) -> Result<(bool, Wakeups), ExchangeError> {
        let bound = self.bind_for(now, queue, (key, arguments), Tenure::kept())?;
        Ok((bound.is_new, bound.wakeups))
    }

    /// Whether a binding may have these arguments.
    pub fn verify_binding(&self, arguments: &Map) -> Result<(), ExchangeError> {
        self.rule_of(arguments).map(drop)
    }

    fn rule_of(&self, arguments: &Map) -> Result<Rule, ExchangeError> {
        let kind = self.settings.kind;
        if is_exclusive(arguments)? && kind != ExchangeKind::Direct {
            let reason = format!("{EXCLUSIVE} is for direct exchanges");
            return Err(ExchangeError::InvalidBinding { reason });
        }
        rule(kind, arguments)
    }

    pub(super) fn bind_for(
        &self,
        now: Now,
        queue: &Arc<SharedQueue>,
        (key, arguments): (&str, Map),
        tenure: Tenure,
    ) -> Result<Bound, ExchangeError> {
        let kind = self.settings.kind;
        let rule = self.rule_of(&arguments)?;
        let key = written(kind, key);
        let cost = BINDING_COST + key.len() as u64;
        let memory = self.budget().reserve_for_node(cost).map_err(ExchangeError::NoMemory)?;
        let memory = NodeMemory::new(memory);
        let is_exclusive = is_exclusive(&arguments)?;
        let target = Target(Arc::clone(queue));
        let binding = Binding { key, queue: target, arguments, rule, tenure, _memory: memory };
        let binding = Arc::new(binding);
        // Nobody is between this exchange's messages while it takes effect.
        let last = self.last.as_ref().map(lock);
        let (binding, is_new, evicted) = self.change(|bindings| {
            let (binding, is_new) = bindings.add(binding)?;
            let evicted = if is_exclusive { bindings.evict(&binding) } else { Vec::new() };
            Ok((binding, is_new, evicted))
        })?;
        let mut wakeups = Wakeups::new();
        for (other, left) in evicted {
            wakeups.merge(self.handle_unbound(&other.queue, &other.key, left));
        }
        self.note_bound(&binding.queue);
        if queue.is_deleted() {
            // It went just then, and may have looked for its bindings before this one.
            self.forget_queue(binding.queue.address());
            return Err(ExchangeError::NoQueue { name: queue.name().to_owned() });
        }
        if is_new {
            self.tell_of(EventKind::Bind, queue, &binding.key);
        }
        if is_new {
            lock(&self.links).call_stalled(&mut wakeups);
        }
        if is_new && let Some(last) = last {
            wakeups.merge(offer_last(now, &last, &binding, kind));
        }
        Ok(Bound { binding, is_new, wakeups })
    }

    /// Ends a binding.
    pub fn unbind(&self, queue: &Arc<SharedQueue>, key: &str) -> Result<Wakeups, ExchangeError> {
        let key = written(self.settings.kind, key);
        let target = Target(Arc::clone(queue));
        let left = self.change(|bindings| Ok(bindings.remove(&target, &key)))?;
        match left {
            None => Err(ExchangeError::NotBound {
                exchange: self.name.to_string(),
                queue: queue.name().to_owned(),
                key: key.into(),
            }),
            Some(left) => {
                let mut wakeups = self.handle_unbound(&target, &key, left);
                wakeups.merge(self.go_if_unused());
                Ok(wakeups)
            }
        }
    }

    /// A claim to a binding has been given up.
    pub(super) fn release(&self, binding: &Arc<Binding>) -> Wakeups {
        // Without the exchange there is no binding.
        let left = self.change(|bindings| Ok(bindings.release(binding))).unwrap_or_default();
        let Some(left) = left else { return Wakeups::new() };
        let mut wakeups = self.handle_unbound(&binding.queue, &binding.key, left);
        wakeups.merge(self.go_if_unused());
        wakeups
    }

    /// A binding has ended; so many others its queue still has. Those who wait for the queue may find
    /// that their messages go elsewhere now.
    fn handle_unbound(&self, queue: &Target, key: &str, left: usize) -> Wakeups {
        if left == 0 {
            self.note_unbound(queue);
        }
        self.tell_of(EventKind::Unbind, queue, key);
        queue.call_waiting_producers()
    }

    /// Ends all bindings of a queue, perhaps one that is gone.
    pub(crate) fn forget_queue(&self, queue: usize) {
        let _ = self.change(|bindings| {
            bindings.remove_queue(queue);
            Ok(())
        });
        // Nobody sends to an exchange that goes for want of use.
        drop(self.go_if_unused());
    }

    /// Adds a link that sends, to addresses with this key if there is one.
    pub fn attach_publisher(
        &self,
        key: Option<&str>,
        waker: Waker,
    ) -> Result<Publisher, ExchangeError> {
        let this = self.this.upgrade().ok_or_else(|| self.gone())?;
        Publisher::attach(this, key, waker)
    }

    /// Adds a link that receives through a queue of its own, to be told when the exchange is
    /// deleted.
    pub fn attach_subscriber(&self, waker: Waker) -> SubscriberId {
        lock(&self.links).add_subscriber(waker)
    }

    /// Removes one.
    pub fn detach_subscriber(&self, id: SubscriberId) {
        lock(&self.links).remove_subscriber(id);
    }

    /// Deletes the exchange and its bindings. Links that send to it are told.
    pub fn delete(&self, condition: ExchangeDeleteIf) -> Result<Wakeups, ExchangeError> {
        if self.is_predeclared {
            return Err(ExchangeError::Predeclared { name: self.name.to_string() });
        }
        let in_use = |by: String| ExchangeError::InUse { name: self.name.to_string(), by };
        let uses = self.alternate_uses.load(Ordering::Relaxed);
        if uses > 0 {
            let who = if uses == 1 { "queue or exchange has" } else { "queues or exchanges have" };
            return Err(in_use(format!("others: {uses} {who} it as alternate exchange")));
        }
        let publishers = lock(&self.links).publishers();
        let mut bindings = lock(&self.bindings);
        if bindings.closed {
            return Err(self.gone());
        }
        if condition.unused && bindings.len() + publishers > 0 {
            let count = bindings.len();
            return Err(in_use(format!("{count} bindings and {publishers} producers")));
        }
        self.lent.store(None);
        let gone = bindings.close(self.settings.kind);
        self.deleted.store(true, Ordering::Relaxed);
        drop(bindings);
        for binding in &gone {
            self.note_unbound(&binding.queue);
        }
        if let Some(node) = self.node.upgrade() {
            node.exchanges().forget(self);
            node.feed().raise(Event::new(EventKind::ExchangeDelete).with("exchange", self.name()));
        }
        let mut wakeups = Wakeups::new();
        lock(&self.links).call_all(&mut wakeups);
        Ok(wakeups)
    }

    pub(super) fn weak(&self) -> Weak<Exchange> {
        Weak::clone(&self.this)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether it drops what no queue is bound for, and tells nobody.
    pub(super) fn drops_strays(&self) -> bool {
        self.settings.unroutable == Unroutable::Discard && self.alternate.is_none()
    }

    /// Messages that went nowhere.
    pub(crate) fn drops(&self) -> u64 {
        self.counts.drops()
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        self.memory.budget()
    }

    pub(super) fn gone(&self) -> ExchangeError {
        ExchangeError::Deleted { name: self.name.to_string() }
    }

    /// Deletes the exchange if it goes by itself and nothing uses it any more.
    pub(super) fn go_if_unused(&self) -> Wakeups {
        if !self.settings.auto_delete || self.is_deleted() {
            return Wakeups::new();
        }
        let was_used = lock(&self.bindings).used || lock(&self.links).used();
        let gone = was_used.then(|| self.delete(ExchangeDeleteIf { unused: true }));
        gone.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn with_table(&self, read: impl FnOnce(&Matcher<Target>)) {
        let lent = self.lent.load();
        if let Some(table) = &*lent {
            return read(table);
        }
        drop(lent);
        let bindings = lock(&self.bindings);
        let table = Arc::clone(&bindings.table);
        // Under the lock, so that a table that has been changed is never lent as it was.
        self.lent.store(Some(Arc::clone(&table)));
        drop(bindings);
        read(&table);
    }

    fn change<R>(
        &self,
        change: impl FnOnce(&mut Bindings) -> Result<R, ExchangeError>,
    ) -> Result<R, ExchangeError> {
        let mut bindings = lock(&self.bindings);
        if bindings.closed {
            return Err(self.gone());
        }
        self.lent.store(None);
        // Release: whoever reads it does not find the table of before.
        self.version.fetch_add(1, Ordering::Release);
        change(&mut bindings)
    }

    /// Which bindings there are, those of the alternate exchange included: read before messages are
    /// routed, it is not newer than what they are routed by.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        let alternate = self.alternate.as_ref().map_or(0, Alternate::version);
        self.version.load(Ordering::Acquire) + alternate
    }

    /// Tells operators of a binding, unless its queue is none of their business.
    fn tell_of(&self, kind: EventKind, queue: &SharedQueue, key: &str) {
        if let Some(node) = self.node.upgrade().filter(|_| !queue.is_private()) {
            let event = Event::new(kind).with("exchange", self.name()).with("queue", queue.name());
            node.feed().raise(event.with("key", key));
        }
    }

    fn note_bound(&self, queue: &Target) {
        if let Some(node) = self.node.upgrade() {
            node.exchanges().note_bound(queue.address(), &self.this);
        }
    }

    fn note_unbound(&self, queue: &Target) {
        if let Some(node) = self.node.upgrade() {
            node.exchanges().note_unbound(queue.address(), &self.this);
        }
    }
}

/// Gives the last message of an exchange to a queue that has just been bound.
fn offer_last(now: Now, last: &Last, binding: &Binding, kind: ExchangeKind) -> Wakeups {
    let Some((mut batch, key)) = last.offer(now) else { return Wakeups::new() };
    let mut table = Matcher::new(kind);
    table.bind(binding.key.as_bytes(), binding.queue.clone(), &binding.rule);
    let mut routing = Routing::new();
    routing.set_key(key);
    routing.find(&table, &batch);
    if routing.strays().is_empty() {
        binding.queue.offer(now, &mut batch).1
    } else {
        Wakeups::new()
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("name", &self.name)
            .field("kind", &self.settings.kind)
            .finish_non_exhaustive()
    }
}

/// What a binding takes beside its key.
const BINDING_COST: u64 = 384;
