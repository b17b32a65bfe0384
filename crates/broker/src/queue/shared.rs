//! The lock around a queue.

use super::aftermath::{Aftermath, NEVER};
use super::{ConsumerId, DeleteIf, GroupReport, Mode, ProducerId, Queue, Statistics, Want};
use crate::budget::{Budget, NodeMemory};
use crate::error::{QueueError, no_exchange};
use crate::exchange::Alternate;
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
/// A queue that has been deleted answers with [`QueueError::Deleted`],
/// [`Taking::Gone`](crate::Taking::Gone) or [`Refusal::Deleted`](crate::Refusal::Deleted); whoever
/// was linked to it has been woken to see.
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
    pub(super) is_named: AtomicBool,
    /// Whether some messages are kept out, to be known without the lock.
    pub(super) is_screened: AtomicBool,
    pub(super) node: Weak<Node>,
    pub(super) this: Weak<SharedQueue>,
    memory: NodeMemory,
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
        memory: NodeMemory,
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
            memory,
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

    /// What it is like, with what is left to the node's defaults.
    pub fn settings_in_force(&self) -> QueueSettings {
        let defaults = self.node.upgrade().map(|node| *node.defaults()).unwrap_or_default();
        let queue = lock(&self.queue);
        let (settings, limits) = (QueueSettings::clone(queue.settings()), *queue.limits());
        drop(queue);
        settings.in_force(&limits, &defaults)
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        *lock(&self.queue).limits()
    }

    /// Adds a producer.
    pub fn attach_producer(&self, now: Now, waker: Waker) -> Result<ProducerId, QueueError> {
        self.visit_and_wake(|queue| queue.attach_producer(now, &self.name, waker))
    }

    /// Adds a producer that is no link of the queue, and does not keep it in use: one that sends to
    /// an exchange, or to many queues.
    pub fn attach_guest(&self, waker: Waker) -> Result<ProducerId, QueueError> {
        self.visit_and_wake(|queue| queue.attach_guest(&self.name, waker))
    }

    /// Calls all who wait to send.
    pub(crate) fn call_waiting_producers(&self) -> Wakeups {
        self.visit(Queue::call_waiting_producers).1
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
        if let Some(peer) = self.redirect_peer().filter(|_| settings.may_delete_itself()) {
            return Err(QueueError::Redirected { name: self.name.to_string(), peer });
        }
        let node = self.node.upgrade();
        let alternate = match (&settings.alternate_exchange, &node) {
            (Some(name), Some(node)) => Some(node.alternate(name).map_err(no_exchange)?),
            _ => None,
        };
        let defaults = node.map(|node| *node.defaults()).unwrap_or_default();
        let terms = Terms::of(&settings, &defaults)?;
        let is_screened = terms.screen.is_some();
        self.try_visit(|queue| {
            queue.set_settings(now, &self.name, settings, &defaults, terms)?;
            queue.set_alternate(alternate);
            // Relaxed: what is sent meanwhile is looked at again under the lock.
            self.is_named.store(queue.naming().is_some(), Ordering::Relaxed);
            self.is_screened.store(is_screened, Ordering::Relaxed);
            Ok(())
        })
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

    /// It lives as long as these settings say, and is else what it was.
    pub fn set_lifetime(&self, now: Now, settings: &QueueSettings) -> Wakeups {
        self.visit(|queue| queue.set_lifetime(now, settings)).1
    }

    /// The link that made this queue is gone: its lifetime policy may say that it goes too.
    pub fn lose_creator(&self, now: Now) -> Wakeups {
        self.visit(|queue| queue.lose_creator(now)).1
    }

    /// Deletes the queue, and the messages with it.
    pub fn delete(&self, condition: DeleteIf) -> Result<Wakeups, QueueError> {
        self.try_visit(|queue| queue.delete(&self.name, condition))
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

    pub(super) fn budget(&self) -> &Arc<Budget> {
        self.memory.budget()
    }

    pub(super) fn visit<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> (T, Wakeups) {
        let mut queue = lock(&self.queue);
        let result = change(&mut queue);
        let aftermath = Aftermath::of(&mut queue);
        drop(queue);
        (result, self.follow(aftermath))
    }

    /// Changes something for whoever has no use for wake-ups. The change itself may call nobody, but
    /// every visit takes along who waits for something else: for the node's memory, or to be shown
    /// messages. They are told at once, so that none is forgotten.
    pub(super) fn visit_and_wake<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let (result, wakeups) = self.visit(change);
        wakeups.perform();
        result
    }

    /// Changes something, or is refused that; then those are told at once who can go on all the same.
    fn try_visit(
        &self,
        change: impl FnOnce(&mut Queue) -> Result<(), QueueError>,
    ) -> Result<Wakeups, QueueError> {
        match self.visit(change) {
            (Ok(()), wakeups) => Ok(wakeups),
            (Err(error), wakeups) => {
                wakeups.perform();
                Err(error)
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_queue_with_its_name_and_its_line_in_the_registry_takes_one_kib_at_most() {
        // A node may have a million of them.
        assert!(size_of::<SharedQueue>() <= 888, "{} bytes", size_of::<SharedQueue>());
    }
}
