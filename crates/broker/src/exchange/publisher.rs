//! The links that send to an exchange, and what their credit depends on.

use super::{Exchange, ExchangeError, ExchangeKind, Published};
use crate::queue::{ProducerId, SharedQueue, Want};
use crate::slab::Slab;
use crate::sync::lock;
use crate::wake::{Waker, Wakeups};
use mochila_wire::Now;
use std::fmt;
use std::sync::Arc;

/// A link that sends to an exchange.
///
/// A full queue must not hold back a sender whose messages go to others too: it refuses them for
/// itself alone. But a sender whose messages all go to one queue is that queue's producer in all but
/// name, and one whose messages all go to queues without room would only be told that they went
/// nowhere. Either is *governed* by a queue: it is a producer there and gets its credit from it; of
/// several queues without room it waits for all, and goes on when one has some. What counts is where
/// the last messages went; before there are any, where its key leads, and if nobody can know that it
/// has credit for one message, to see where that goes.
///
/// ```text
///                              its key leads to one queue
///   new ─────────────────────────────────────────────────────────────────────────────┐
///    │ its first messages go to several queues, or to none                           │
///    ▼      all of the last messages went to one queue, or to closed ones            ▼
///   free ──────────────────────────────────────────────────────────────────▶ governed by a queue
///        ◀──────────────────────────────────────────────────────────────────
///                 a message went to another one that has room
/// ```
///
/// Whoever waits when bindings change is new again. What comes on credit from before they changed,
/// and goes to one queue, is taken as what that queue's producers have under way.
pub struct Publisher {
    exchange: Arc<Exchange>,
    key: Option<Box<[u8]>>,
    waker: Waker,
    id: (u32, u32),
    /// Nobody knows where its messages go.
    is_new: bool,
    /// The queue that would govern it if messages went on going where they went lately.
    candidate: Option<Arc<SharedQueue>>,
    /// How many have done so.
    run: u64,
    /// Its messages have gone different ways, and not because bindings have changed.
    is_various: bool,
    /// Which way the last ones went, if all went the same.
    way: Option<usize>,
    /// What bindings there were when it was last seen where its messages go.
    seen: u64,
    /// It has been let go on, to see where its messages go now.
    is_excused: bool,
    /// The queues that the last messages went to give no credit.
    is_closed: bool,
    governor: Option<(Arc<SharedQueue>, ProducerId)>,
    /// Other queues that the last messages went to, none of which gives credit: it goes on when one
    /// does.
    also: Vec<Arc<SharedQueue>>,
    /// Where it waits for those.
    waits: Vec<(Arc<SharedQueue>, ProducerId)>,
    /// Where it is on the list of those that are to be called when bindings change.
    stalled: Option<(u32, u32)>,
}

/// A link that receives through a queue which is bound to an exchange for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberId {
    slot: u32,
    generation: u32,
}

/// The links of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Links {
    publishers: Slab<Waker>,
    /// Publishers without credit.
    stalled: Slab<Waker>,
    subscribers: Slab<Waker>,
    used: bool,
}

impl Links {
    pub(crate) fn publishers(&self) -> usize {
        self.publishers.len()
    }

    /// Whether there has been one.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    /// Calls everybody, to be told that the exchange is gone.
    pub(crate) fn call_all(&mut self, wakeups: &mut Wakeups) {
        let all = self.publishers.values().chain(self.subscribers.values());
        all.for_each(|waker| wakeups.push(waker.clone()));
    }

    /// Calls publishers without credit, whose messages may go elsewhere now.
    pub(super) fn call_stalled(&self, wakeups: &mut Wakeups) {
        self.stalled.values().for_each(|waker| wakeups.push(waker.clone()));
    }

    pub(super) fn add_subscriber(&mut self, waker: Waker) -> SubscriberId {
        let (slot, generation) = self.subscribers.insert(waker);
        SubscriberId { slot, generation }
    }

    pub(super) fn remove_subscriber(&mut self, id: SubscriberId) {
        self.subscribers.remove(id.slot, id.generation);
    }
}

impl Publisher {
    pub(super) fn attach(
        exchange: Arc<Exchange>,
        key: Option<&str>,
        waker: Waker,
    ) -> Result<Publisher, ExchangeError> {
        let id = {
            let mut links = lock(&exchange.links);
            links.used = true;
            links.publishers.insert(waker.clone())
        };
        if exchange.is_deleted() {
            return Err(exchange.gone());
        }
        let mut publisher = Publisher {
            exchange,
            key: key.map(|key| key.as_bytes().into()),
            waker,
            id,
            is_new: true,
            candidate: None,
            run: 0,
            is_various: false,
            way: None,
            seen: 0,
            is_excused: false,
            is_closed: false,
            governor: None,
            also: Vec::new(),
            waits: Vec::new(),
            stalled: None,
        };
        publisher.begin();
        Ok(publisher)
    }

    /// Nothing has been sent yet, since bindings were what they are now.
    fn begin(&mut self) {
        self.seen = self.exchange.version();
        self.candidate = self.exchange.only_queue(self.key());
        self.is_new = self.candidate.is_none();
        self.run = 0;
        self.is_various &= self.is_new;
        self.is_closed = false;
        self.also.clear();
    }

    /// Where it sends to.
    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// The key that its address has; otherwise each message has its own.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Notes what became of a batch; true if a queue is to govern it that does not yet, which has to
    /// say how much credit it may keep.
    pub fn note(&mut self, published: &Published) -> bool {
        self.learn(published);
        let governor = self.next_governor().map(Arc::as_ptr);
        governor.is_some() && governor != self.governor().map(Arc::as_ptr)
    }

    fn learn(&mut self, published: &Published) {
        if published.messages == 0 {
            return;
        }
        self.is_closed = published.is_closed;
        self.is_new = false;
        self.is_excused = false;
        let is_surprise = self.seen != published.version;
        self.seen = published.version;
        if is_surprise {
            self.run = 0;
        }
        if self.exchange.deciding(self.key()).is_none() {
            let is_other_way = self.run > 0 && self.way != published.way;
            self.is_various |= is_other_way || published.way.is_none();
        }
        self.way = published.way;
        self.also.clone_from(&published.also);
        let candidate = published.governor.as_ref();
        let is_same = match (candidate, &self.candidate) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            _ => false,
        };
        if is_same {
            self.run += published.messages;
            return;
        }
        self.candidate = candidate.cloned();
        self.run = published.messages;
    }

    /// Its messages may go elsewhere now than those before.
    fn begin_again(&mut self) {
        self.begin();
        self.is_excused = self.is_new;
    }

    /// The queue that is to say how much credit it gets, if one is.
    fn next_governor(&self) -> Option<&Arc<SharedQueue>> {
        self.candidate.as_ref().filter(|_| self.is_governed())
    }

    /// Whether a queue says how much credit it gets.
    fn is_governed(&self) -> bool {
        let is_settled = !self.is_various || self.run >= PATIENCE;
        // What it brings now stays in the memory that is short.
        let is_burden = self.is_closed && self.exchange.budget().is_short();
        self.candidate.is_some() && (is_settled || is_burden)
    }

    /// Whether the credit that it still has is to be taken back.
    pub fn is_stopped(&self) -> bool {
        self.is_closed && self.is_governed()
    }

    /// How much credit it may have that wants `want`, as far as the node has memory for it: the
    /// absolute link credit, from now on. With 0 it is woken when it may have some; then it has to ask again, or to detach.
    pub fn grant(&mut self, now: Now, want: &Want) -> (u32, Wakeups) {
        let mut wakeups = Wakeups::new();
        if self.candidate.as_ref().is_some_and(|queue| queue.is_deleted()) {
            self.begin_again();
        }
        let mut granted = self.ask_governor(now, want, &mut wakeups);
        self.set_stalled(granted == 0);
        // It is called from now on if bindings change.
        if granted == 0 && self.seen != self.exchange.version() {
            self.begin_again();
            granted = self.ask_governor(now, want, &mut wakeups);
            self.set_stalled(granted == 0);
        }
        (granted, wakeups)
    }

    fn set_stalled(&mut self, is_stalled: bool) {
        match self.stalled {
            None if is_stalled => {
                let waker = self.waker.clone();
                self.stalled = Some(lock(&self.exchange.links).stalled.insert(waker));
            }
            Some((slot, generation)) if !is_stalled => {
                lock(&self.exchange.links).stalled.remove(slot, generation);
                self.stalled = None;
            }
            _ => {}
        }
    }

    fn ask_governor(&mut self, now: Now, want: &Want, wakeups: &mut Wakeups) -> u32 {
        let free = if self.is_new { want.credit.min(1) } else { want.credit };
        let Some(queue) = self.next_governor().cloned() else {
            wakeups.merge(self.let_go(now));
            return free;
        };
        if !self.governor.as_ref().is_some_and(|(governor, _)| Arc::ptr_eq(governor, &queue)) {
            wakeups.merge(self.let_go(now));
            match queue.attach_guest(self.waker.clone()) {
                Ok(producer) => self.governor = Some((queue, producer)),
                // It went just then, and governs nobody any more.
                Err(_) => return free,
            }
        }
        let Some((queue, producer)) = &self.governor else { return 0 };
        let (granted, woken) = queue.grant(now, *producer, want);
        wakeups.merge(woken);
        if granted > 0 {
            wakeups.merge(self.wait_no_more(now));
            return granted;
        }
        match self.wait_for_others(now, want, wakeups) {
            true => 0,
            false => {
                wakeups.merge(self.let_go(now));
                free
            }
        }
    }

    /// Waits for the other queues that have given no credit; false if one gives some, or is gone.
    fn wait_for_others(&mut self, now: Now, want: &Want, wakeups: &mut Wakeups) -> bool {
        if self.exchange.budget().is_short() {
            // One place in the line of those who wait for memory is enough.
            return true;
        }
        for queue in &self.also {
            let there = self.waits.iter().find(|(other, _)| Arc::ptr_eq(other, queue));
            let producer = match there {
                Some((_, producer)) => *producer,
                None => {
                    let Ok(producer) = queue.attach_guest(self.waker.clone()) else { return false };
                    self.waits.push((Arc::clone(queue), producer));
                    producer
                }
            };
            let (granted, woken) = queue.grant(now, producer, want);
            wakeups.merge(woken);
            if granted > 0 || queue.is_deleted() {
                return false;
            }
        }
        true
    }

    fn wait_no_more(&mut self, now: Now) -> Wakeups {
        let mut wakeups = Wakeups::new();
        for (queue, producer) in self.waits.drain(..) {
            wakeups.merge(queue.detach_producer(now, producer));
        }
        wakeups
    }

    /// The queue that says how much credit it gets, if one does. What it has sent there before it
    /// knew of credit that was taken back has to be taken.
    pub fn governor(&self) -> Option<&Arc<SharedQueue>> {
        self.governor.as_ref().map(|(queue, _)| queue)
    }

    /// Whether what comes now was sent before it was known that all of it goes to the queue to which
    /// it goes.
    #[inline]
    pub fn is_surprised(&self) -> bool {
        self.is_excused || self.seen != self.exchange.version()
    }

    /// The link is gone.
    pub fn detach(mut self, now: Now) -> Wakeups {
        let mut wakeups = self.let_go(now);
        self.set_stalled(false);
        lock(&self.exchange.links).publishers.remove(self.id.0, self.id.1);
        wakeups.merge(self.exchange.go_if_unused());
        wakeups
    }

    fn let_go(&mut self, now: Now) -> Wakeups {
        let mut wakeups = self.wait_no_more(now);
        if let Some((queue, producer)) = self.governor.take() {
            wakeups.merge(queue.detach_producer(now, producer));
        }
        wakeups
    }
}

impl Exchange {
    /// The queue that all messages with this key go to, if there is just one and the key says so.
    fn only_queue(&self, key: Option<&[u8]>) -> Option<Arc<SharedQueue>> {
        let key = self.deciding(key)?;
        let mut only = None;
        self.with_table(|table| {
            table.by_key(key, |queues| {
                if let [queue] = queues {
                    only = Some(Arc::clone(queue));
                }
            });
        });
        only
    }

    /// What decides where messages go of a sender whose address has this key; `None` if each of them
    /// does.
    fn deciding<'a>(&self, key: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match self.settings().kind {
            ExchangeKind::Direct | ExchangeKind::Topic => key,
            ExchangeKind::Fanout => Some(&[]),
            ExchangeKind::Headers => None,
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

/// So many messages in a row have to go one way before a sender is governed whose messages have
/// gone other ways before.
const PATIENCE: u64 = 64;
