//! The lock around a queue.

use super::aftermath::{Aftermath, NEVER};
use super::showing::Showing;
use super::{
    ConsumerId, ConsumerOptions, DeleteIf, Enqueued, GroupReport, Mode, Outcome, ProducerId, Queue,
    Refusal, Rejected, Room, Settlement, Statistics, TakeLimit, Taking, Want,
};
use crate::budget::{Budget, Reservation};
use crate::error::{QueueError, no_exchange};
use crate::events::{Event, EventKind};
use crate::exchange::Alternate;
use crate::message::{Batch, Taken};
use crate::messages::Run;
use crate::node::Node;
use crate::settings::{Limits, QueueSettings, Terms};
use crate::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::wake::{Waker, Wakeups};
use mochila_wire::Now;
use std::fmt;
use std::sync::{Arc, Weak};

/// A queue that many threads use.
///
/// Every method takes the lock once, does work in proportion to the batch that it is given, and
/// returns whom to wake after the lock has been released. Payload is neither copied nor freed under
/// the lock.
///
/// A queue that has been deleted answers with [`QueueError::Deleted`], [`Taking::Gone`] or
/// [`Refusal::Deleted`]; whoever was linked to it has been woken to see.
/// Between finding a queue by name and linking to it, it may be deleted: look it up again then.
pub struct SharedQueue {
    name: Box<str>,
    pub(super) queue: Mutex<Queue>,
    pub(super) deleted: AtomicBool,
    /// What is unusual about it: `PRIVATE`, `REDIRECTED`.
    marks: AtomicU8,
    /// The number of the user who has made it; 0 for nobody that is known.
    creator: AtomicU32,
    /// When the node looks at this queue next. Written under the lock of the node's timers.
    pub(super) timeout_ms: AtomicU64,
    /// Whether its messages have names, to be known without the lock.
    is_named: AtomicBool,
    /// Whether some messages are kept out, to be known without the lock.
    is_screened: AtomicBool,
    pub(super) node: Weak<Node>,
    pub(super) this: Weak<SharedQueue>,
    reservation: Reservation,
}

/// One consumer of a queue, for those who want to know why messages do not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerReport {
    /// Its id.
    pub id: ConsumerId,
    /// The connection, as it was named at subscription.
    pub owner: u64,
    /// Whether it takes or only looks.
    pub mode: Mode,
    /// Whether it is the only one that may take.
    pub exclusive: bool,
    /// Messages that it holds and has not settled.
    pub held: u64,
    /// Messages that it has taken or seen so far.
    pub taken: u64,
    /// Whether it waits for messages; if not, it has no credit, or is about to come.
    pub waiting: bool,
}

impl SharedQueue {
    pub(crate) fn new(
        name: &str,
        settings: Arc<QueueSettings>,
        (terms, alternate): (Terms, Option<Alternate>),
        reservation: Reservation,
        node: &Arc<Node>,
    ) -> Arc<SharedQueue> {
        let budget = Arc::clone(node.budget());
        let is_named = AtomicBool::new(terms.arrangement.naming().is_some());
        let is_screened = AtomicBool::new(terms.screen.is_some());
        let mut queue = Queue::new(settings, node.defaults(), terms, budget);
        queue.set_alternate(alternate);
        Arc::new_cyclic(|this| SharedQueue {
            name: name.into(),
            queue: Mutex::new(queue),
            is_named,
            is_screened,
            deleted: AtomicBool::new(false),
            marks: AtomicU8::new(0),
            creator: AtomicU32::new(0),
            timeout_ms: AtomicU64::new(NEVER),
            node: Arc::downgrade(node),
            this: Weak::clone(this),
            reservation,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True once it has been deleted.
    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Relaxed)
    }

    /// The user who has made it, if that is known.
    pub fn creator(&self) -> Option<Arc<str>> {
        // Relaxed: written once, by whoever has made the queue.
        self.node.upgrade()?.creators().name(self.creator.load(Ordering::Relaxed))
    }

    /// Whoever has just made it is this user.
    pub fn set_creator(&self, user: &str) {
        if let Some(node) = self.node.upgrade() {
            self.creator.store(node.creators().number(user), Ordering::Relaxed);
        }
    }

    /// It is for what the node itself sends to one link: operators are not told of it.
    pub fn is_private(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & PRIVATE != 0
    }

    /// Operators are not to be told of it.
    pub(crate) fn keep_private(&self) {
        // Relaxed: whoever deletes the queue has got it from whoever made it.
        self.marks.fetch_or(PRIVATE, Ordering::Relaxed);
    }

    pub(super) fn is_redirected(&self) -> bool {
        // Relaxed: whoever sends meanwhile may still come here.
        self.marks.load(Ordering::Relaxed) & REDIRECTED != 0
    }

    pub(super) fn set_redirected(&self, is_redirected: bool) {
        match is_redirected {
            true => self.marks.fetch_or(REDIRECTED, Ordering::Relaxed),
            false => self.marks.fetch_and(!REDIRECTED, Ordering::Relaxed),
        };
    }

    /// The queue that gets what is sent to this one, if it is another.
    #[inline]
    pub(crate) fn peer(&self) -> Option<Arc<SharedQueue>> {
        if !self.is_redirected() {
            return None;
        }
        self.node.upgrade()?.redirects().peer(&self.name)
    }

    /// What it was asked to be like.
    pub fn settings(&self) -> QueueSettings {
        QueueSettings::clone(lock(&self.queue).settings())
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        *lock(&self.queue).limits()
    }

    /// Adds the messages of a batch as far as the limits allow; empties the batch.
    pub fn enqueue(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        if let Some(peer) = self.peer() {
            return peer.bring(now, batch, false);
        }
        self.bring(now, batch, true)
    }

    /// Why a message of this size is never let in, however empty the queue is; to be asked while a
    /// large message is still coming in.
    pub fn refuses(&self, message_bytes: u64) -> Option<Refusal> {
        lock(&self.queue).refuses(message_bytes)
    }

    /// Adds the messages of a batch of somebody to whom the queue gives no credit, and who cannot be
    /// held back: beyond the limit they are rejected, whatever the policy. Empties the batch.
    pub fn offer(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        if let Some(peer) = self.peer() {
            return peer.bring(now, batch, false);
        }
        self.bring(now, batch, false)
    }

    /// Adds a batch that other queues get too, and which stays as it is; `held_back` if this one has
    /// given its sender credit.
    pub(crate) fn share(
        &self,
        now: Now,
        batch: &mut Batch,
        held_back: bool,
    ) -> (Enqueued, Wakeups) {
        if let Some(peer) = self.peer() {
            return peer.share_here(now, batch, false);
        }
        self.share_here(now, batch, held_back)
    }

    fn share_here(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        if self.is_screened.load(Ordering::Relaxed) {
            // What is kept out here may enter elsewhere.
            return self.bring(now, &mut batch.twin(), held_back);
        }
        self.find_names(batch);
        self.bring_shared(now, batch, held_back)
    }

    fn bring(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        self.screen(batch);
        self.find_names(batch);
        let result = self.bring_shared(now, batch, held_back);
        batch.clear();
        result
    }

    fn bring_shared(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        let (mut enqueued, wakeups) = self.visit(|queue| queue.enqueue(now, batch, held_back));
        batch.number(&mut enqueued.rejected);
        if enqueued.rejected.iter().any(|rejected| rejected.reason == Refusal::Overrun) {
            let event = Event::new(EventKind::QueueSelfDestruct).with("queue", self.name());
            self.node.upgrade().inspect(|node| node.feed().raise(event));
        }
        (enqueued, wakeups)
    }

    /// Keeps room for the messages of a batch, all or none; says whether producers get no credit now.
    pub(crate) fn reserve(
        &self,
        batch: &mut Batch,
        is_held_back: bool,
    ) -> (Result<(Room, bool), Vec<Rejected>>, Wakeups) {
        self.screen(batch);
        self.find_names(batch);
        let (mut reserved, wakeups) = self.visit(|queue| queue.reserve(batch, is_held_back));
        if let Err(rejected) = &mut reserved {
            batch.number(rejected);
        }
        (reserved, wakeups)
    }

    /// Gives back room that was kept.
    pub(crate) fn give_back_room(&self, now: Now, room: Room) -> Wakeups {
        self.visit(|queue| queue.give_back_room(now, room)).1
    }

    /// Messages that a consumer holds get this outcome.
    pub(crate) fn settle_runs(
        &self,
        now: Now,
        id: ConsumerId,
        runs: impl Iterator<Item = Run>,
        outcome: &Outcome,
    ) -> Wakeups {
        self.visit(|queue| queue.settle_runs(now, id, runs, outcome)).1
    }

    /// A transaction has these messages of a consumer now.
    pub(crate) fn pledge(
        &self,
        now: Now,
        id: ConsumerId,
        runs: impl Iterator<Item = Run>,
    ) -> (u64, Wakeups) {
        self.visit(|queue| queue.pledge(now, id, runs))
    }

    /// The consumer has messages again that a transaction had.
    pub(crate) fn unpledge(
        &self,
        now: Now,
        id: ConsumerId,
        runs: impl Iterator<Item = Run>,
    ) -> Wakeups {
        self.visit(|queue| queue.unpledge(now, id, runs)).1
    }

    /// Messages of a transaction that failed get this outcome.
    pub(crate) fn redeem(
        &self,
        now: Now,
        id: ConsumerId,
        runs: &[Run],
        outcome: &Outcome,
    ) -> Wakeups {
        self.visit(|queue| {
            runs.iter().for_each(|run| queue.redeem(now, id, *run, outcome));
            queue.redeemed(now, id);
        })
        .1
    }

    /// Adds a consumer. It is idle until it takes for the first time.
    pub fn subscribe(&self, now: Now, options: ConsumerOptions) -> Result<ConsumerId, QueueError> {
        // A consumer that is new wakes nobody.
        self.visit(|queue| queue.subscribe(now, &self.name, options)).0
    }

    /// Removes a consumer; what it holds is released.
    pub fn unsubscribe(&self, now: Now, id: ConsumerId) -> Wakeups {
        self.unsubscribe_with(now, id, &Outcome::Release)
    }

    /// Removes a consumer; what it holds gets this outcome (the default outcome of its source, or
    /// one that counts as a failed attempt if its connection broke).
    pub fn unsubscribe_with(&self, now: Now, id: ConsumerId, outcome: &Outcome) -> Wakeups {
        self.visit(|queue| queue.unsubscribe(now, id, outcome)).1
    }

    /// Hands messages to a consumer, or registers it to be woken: one step.
    ///
    /// A consumer that is told [`Taking::More`], or is woken, has to come again or to be idle: the
    /// queue counts on it and may let others wait.
    pub fn take(
        &self,
        now: Now,
        id: ConsumerId,
        limit: TakeLimit,
        out: &mut Taken,
    ) -> (Taking, Wakeups) {
        if !id.selects {
            return self.visit(|queue| queue.take(now, id, limit, out));
        }
        let mut wakeups = self.look_ahead(id, limit);
        let (taking, woken) = self.visit(|queue| queue.take(now, id, limit, out));
        wakeups.merge(woken);
        (taking, wakeups)
    }

    /// Shows a consumer that selects what it has not been shown, so that it finds what it takes.
    fn look_ahead(&self, id: ConsumerId, limit: TakeLimit) -> Wakeups {
        let want = u64::from(limit.messages.min(MOST_AHEAD));
        let mut wakeups = Wakeups::new();
        let mut queue = lock(&self.queue);
        for _ in 0..SHOWN_IN_A_TAKE {
            let Some(mut showing) = queue.plan_showing_to(id, want) else { break };
            drop(queue);
            showing.evaluate();
            queue = lock(&self.queue);
            queue.install(showing);
            wakeups.merge(queue.take_wakeups());
        }
        wakeups
    }

    /// Shows those who select and wait what is new to them; who has to come is called.
    pub(super) fn show(&self, mut showing: Box<Showing>) -> Wakeups {
        let mut wakeups = Wakeups::new();
        let mut rounds = 1;
        loop {
            showing.evaluate();
            let mut queue = lock(&self.queue);
            queue.install(showing);
            let more = if rounds < SHOWN_IN_A_VISIT {
                queue.plan_showing()
            } else {
                queue.call_unshown();
                None
            };
            wakeups.merge(queue.take_wakeups());
            drop(queue);
            let Some(more) = more else { return wakeups };
            showing = more;
            rounds += 1;
        }
    }

    /// The consumer cannot take anything now (no credit, or its peer reads too slowly): it does not
    /// wait any more, and others get what it had been called for.
    pub fn idle(&self, now: Now, id: ConsumerId) -> Wakeups {
        self.visit(|queue| queue.idle(now, id)).1
    }

    /// Accepts messages by their positions; cheapest if they are in order.
    pub fn accept(&self, now: Now, id: ConsumerId, positions: &[u64]) -> Wakeups {
        self.visit(|queue| queue.accept(now, id, positions)).1
    }

    /// Accepts all that the consumer holds from position `first` to `last`.
    pub fn accept_range(&self, now: Now, id: ConsumerId, first: u64, last: u64) -> Wakeups {
        self.visit(|queue| queue.accept_range(now, id, first, last)).1
    }

    /// Settles messages, each with its own outcome. Positions that the consumer does not hold
    /// change nothing.
    pub fn settle(&self, now: Now, id: ConsumerId, settlements: &[Settlement]) -> Wakeups {
        self.visit(|queue| queue.settle(now, id, settlements)).1
    }

    /// Takes back messages that the consumer has taken and has not passed on to its peer, by their
    /// positions: to be taken again, also by a browser, which then goes on there.
    pub fn give_back(&self, now: Now, id: ConsumerId, positions: &[u64]) -> Wakeups {
        self.visit(|queue| queue.give_back(now, id, positions)).1
    }

    /// Settles all that the consumer holds.
    pub fn settle_all(&self, now: Now, id: ConsumerId, outcome: &Outcome) -> Wakeups {
        self.visit(|queue| queue.settle_all(now, id, outcome)).1
    }

    /// Adds a producer.
    pub fn attach_producer(&self, now: Now, waker: Waker) -> Result<ProducerId, QueueError> {
        // A producer that is new wakes nobody.
        self.visit(|queue| queue.attach_producer(now, &self.name, waker)).0
    }

    /// Adds a producer that is no link of the queue, and does not keep it in use: one that sends to
    /// an exchange, or to many queues.
    pub fn attach_guest(&self, waker: Waker) -> Result<ProducerId, QueueError> {
        self.visit(|queue| queue.attach_guest(&self.name, waker)).0
    }

    /// Removes a producer.
    pub fn detach_producer(&self, now: Now, id: ProducerId) -> Wakeups {
        self.visit(|queue| queue.detach_producer(now, id)).1
    }

    /// How much credit a producer may have: the absolute link credit, from now on. With 0, or with
    /// 1 to be told that there is no room, it stands in line, and is woken in its turn when the
    /// queue, or the node's memory, has room; then it has to ask again, or to detach.
    pub fn grant(&self, now: Now, id: ProducerId, want: &Want) -> (u32, Wakeups) {
        if let Some(peer) = self.peer().filter(|_| want.credit > 0) {
            // One lock after the other.
            let producers = self.lock().producer_count();
            return (peer.lock().credit_for_others(want, producers), Wakeups::new());
        }
        self.visit(|queue| queue.grant(now, id, want))
    }

    /// Other settings are in force from now on. How messages are grouped can change only while
    /// there are none.
    pub fn set_settings(&self, now: Now, settings: QueueSettings) -> Result<Wakeups, QueueError> {
        let node = self.node.upgrade();
        let alternate = match (&settings.alternate_exchange, &node) {
            (Some(name), Some(node)) => Some(node.alternate(name).map_err(no_exchange)?),
            _ => None,
        };
        let defaults = node.map(|node| *node.defaults()).unwrap_or_default();
        let terms = Terms::of(&settings, &defaults)?;
        let is_screened = terms.screen.is_some();
        let (result, wakeups) = self.visit(|queue| {
            queue.set_settings(now, &self.name, settings, &defaults, terms)?;
            queue.set_alternate(alternate);
            // Relaxed: what is sent meanwhile is looked at again under the lock.
            self.is_named.store(queue.naming().is_some(), Ordering::Relaxed);
            self.is_screened.store(is_screened, Ordering::Relaxed);
            Ok(())
        });
        result.map(|()| wakeups)
    }

    /// Arranges the messages of an ordinary queue as is asked for, if it has none yet; one that has
    /// messages, or is no ordinary queue any more, stays what it is.
    pub fn arrange(&self, now: Now, asked: &QueueSettings) -> Result<Wakeups, QueueError> {
        let settings = self.settings();
        if settings.arranges() || !asked.arranges() {
            return Ok(Wakeups::new());
        }
        match self.set_settings(now, settings.arranged_like(asked)) {
            Err(QueueError::NotEmpty { .. }) => Ok(Wakeups::new()),
            result => result,
        }
    }

    /// The link that made this queue is gone: its lifetime policy may say that it goes too.
    pub fn lose_creator(&self, now: Now) -> Wakeups {
        self.visit(|queue| queue.lose_creator(now)).1
    }

    /// Deletes the queue, and the messages with it.
    pub fn delete(&self, condition: DeleteIf) -> Result<Wakeups, QueueError> {
        let (result, wakeups) = self.visit(|queue| queue.delete(&self.name, condition));
        result.map(|()| wakeups)
    }

    /// Does what is due by time: messages expire, a queue that nobody uses goes.
    pub fn handle_timeout(&self, now: Now) -> Wakeups {
        let mut wakeups = Wakeups::new();
        loop {
            let (is_more, woken) = self.visit(|queue| queue.handle_timeout(now));
            wakeups.merge(woken);
            if !is_more {
                return wakeups;
            }
        }
    }

    /// The next time [`SharedQueue::handle_timeout`] may have something to do. The node's timers
    /// know it too.
    pub fn next_timeout_ms(&self) -> Option<u64> {
        lock(&self.queue).next_timeout_ms()
    }

    /// How many messages may be taken.
    pub fn available(&self) -> u64 {
        lock(&self.queue).available()
    }

    /// Its numbers.
    pub fn statistics(&self) -> Statistics {
        lock(&self.queue).statistics()
    }

    /// Its consumers.
    pub fn consumers(&self) -> Vec<ConsumerReport> {
        lock(&self.queue).consumers()
    }

    /// Its groups, up to so many; none if it has no groups.
    pub fn groups(&self, most: usize) -> Vec<GroupReport> {
        lock(&self.queue).groups(most)
    }

    /// How many groups there are of which it has messages.
    pub fn group_count(&self) -> usize {
        lock(&self.queue).group_count()
    }

    /// When the node's timers look at this queue; for them alone.
    pub(crate) fn timeout_ms(&self) -> &AtomicU64 {
        &self.timeout_ms
    }

    /// Keeps those messages of a batch out that are not to enter, while the queue is not locked.
    fn screen(&self, batch: &mut Batch) {
        if self.is_screened.load(Ordering::Relaxed) {
            let (screen, owner) = lock(&self.queue).screen();
            batch.screen(|message, connection| {
                screen.as_ref().is_none_or(|screen| screen.lets_in(message, connection, owner))
            });
        }
    }

    /// Finds the names of a batch's messages, if the queue needs them, while it is not locked.
    pub(super) fn find_names(&self, batch: &mut Batch) {
        if self.is_named.load(Ordering::Relaxed) {
            let address = std::ptr::from_ref(self).addr();
            batch.find_names_for(address, || lock(&self.queue).naming().cloned());
        }
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        self.reservation.budget()
    }

    pub(super) fn visit<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> (T, Wakeups) {
        let mut queue = lock(&self.queue);
        let result = change(&mut queue);
        let aftermath = Aftermath::of(&mut queue);
        drop(queue);
        (result, self.follow(aftermath))
    }

    /// The queue, locked for a transaction that changes others in the same step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl fmt::Debug for SharedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// It is for what the node itself sends to one link: operators are not told of it.
const PRIVATE: u8 = 1;
/// What is sent to it goes to another queue, and the other way round.
const REDIRECTED: u8 = 2;
/// A consumer that selects is shown messages until so many match.
const MOST_AHEAD: u32 = 256;
/// So many rounds of showing belong to one take; then others come first.
const SHOWN_IN_A_TAKE: usize = 16;
/// So many rounds of showing belong to one visit; then those who wait look for themselves.
const SHOWN_IN_A_VISIT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_queue_with_its_name_and_its_line_in_the_registry_takes_one_kib_at_most() {
        // A node may have a million of them.
        assert!(size_of::<SharedQueue>() <= 888, "{} bytes", size_of::<SharedQueue>());
    }
}
