//! The links that send to an exchange, and what their credit depends on.

use super::{Alternate, Exchange, ExchangeError, ExchangeKind, Published};
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
/// nowhere. Either is *governed* by a queue: it is a producer there and gets its credit from it. What
/// counts is where the last messages went; before there are any, where its key leads, and if nobody
/// can know that it has credit for one message, to see where that goes.
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
/// Whoever waits for a queue that its messages cannot go to any more is new again.
pub struct Publisher {
    exchange: Arc<Exchange>,
    key: Option<Box<[u8]>>,
    waker: Waker,
    id: (u32, u32),
    /// Nobody knows where its messages go.
    is_new: bool,
    /// The queue that would govern it if messages went on going where they went lately.
    candidate: Option<Arc<SharedQueue>>,
    /// How many have done so, and whether none has gone elsewhere ever.
    run: u64,
    is_single_minded: bool,
    /// The queues that the last messages went to give no credit.
    is_closed: bool,
    governor: Option<(Arc<SharedQueue>, ProducerId)>,
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
            is_single_minded: true,
            is_closed: false,
            governor: None,
        };
        publisher.begin();
        Ok(publisher)
    }

    /// Nothing has been sent yet.
    fn begin(&mut self) {
        self.candidate = self.exchange.only_queue(self.key());
        self.is_new = self.candidate.is_none();
        self.run = 0;
        self.is_single_minded = true;
        self.is_closed = false;
    }

    /// Where it sends to.
    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// The key that its address has; otherwise each message has its own.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Notes what became of a batch; true if a queue governs it now that did not before, which has to
    /// say how much credit it may keep.
    pub fn note(&mut self, published: &Published) -> bool {
        let before = self.next_governor().map(Arc::as_ptr);
        self.learn(published);
        let governor = self.next_governor().map(Arc::as_ptr);
        governor.is_some() && governor != before
    }

    fn learn(&mut self, published: &Published) {
        self.is_closed = published.is_closed;
        self.is_new = false;
        let candidate = published.governor.as_ref();
        let is_same = match (candidate, &self.candidate) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            _ => false,
        };
        if is_same {
            self.run += published.messages;
            return;
        }
        // It has gone elsewhere if something has been sent before.
        self.is_single_minded &= self.run == 0 && candidate.is_some();
        self.candidate = candidate.cloned();
        self.run = published.messages;
    }

    /// The queue that is to say how much credit it gets, if one is.
    fn next_governor(&self) -> Option<&Arc<SharedQueue>> {
        self.candidate.as_ref().filter(|_| self.is_governed())
    }

    /// Whether a queue says how much credit it gets.
    fn is_governed(&self) -> bool {
        let is_settled = self.is_single_minded || self.run >= PATIENCE;
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
        let granted = self.ask_governor(now, want, &mut wakeups);
        if granted == 0 && self.is_led_elsewhere() {
            self.begin();
            let granted = self.ask_governor(now, want, &mut wakeups);
            return (granted, wakeups);
        }
        (granted, wakeups)
    }

    fn ask_governor(&mut self, now: Now, want: &Want, wakeups: &mut Wakeups) -> u32 {
        let free = if self.is_new { want.credit.min(1) } else { want.credit };
        let Some(queue) = self.next_governor().cloned().filter(|queue| !queue.is_deleted()) else {
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
        granted
    }

    /// Whether nothing that it sends can go to the queue any more that governs it.
    fn is_led_elsewhere(&self) -> bool {
        let governor = self.governor.as_ref();
        governor.is_some_and(|(queue, _)| !self.exchange.may_lead(self.key(), queue))
    }

    /// The queue that says how much credit it gets, if one does. What it has sent there before it
    /// knew of credit that was taken back has to be taken.
    pub fn governor(&self) -> Option<&Arc<SharedQueue>> {
        self.governor.as_ref().map(|(queue, _)| queue)
    }

    /// The link is gone.
    pub fn detach(mut self, now: Now) -> Wakeups {
        let mut wakeups = self.let_go(now);
        lock(&self.exchange.links).publishers.remove(self.id.0, self.id.1);
        wakeups.merge(self.exchange.go_if_unused());
        wakeups
    }

    fn let_go(&mut self, now: Now) -> Wakeups {
        match self.governor.take() {
            Some((queue, producer)) => queue.detach_producer(now, producer),
            None => Wakeups::new(),
        }
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

    /// Whether a message with this key may go to a queue.
    fn may_lead(&self, key: Option<&[u8]>, queue: &Arc<SharedQueue>) -> bool {
        let alternate = self.alternate.as_ref().and_then(Alternate::get);
        self.leads(key, queue) || alternate.is_some_and(|it| it.leads(key, queue))
    }

    fn leads(&self, key: Option<&[u8]>, queue: &Arc<SharedQueue>) -> bool {
        let Some(key) = self.deciding(key) else { return !self.bindings_of(queue).is_empty() };
        let mut leads = false;
        self.with_table(|table| {
            table.by_key(key, |queues| leads = queues.iter().any(|it| Arc::ptr_eq(it, queue)));
        });
        leads
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
