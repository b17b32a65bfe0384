//! Removing messages from a queue, and moving them to another or to an exchange, as an operator says.

use super::picking::{Pick, Picking};
use super::{Enqueued, Queue, Refusal, SharedQueue};
use crate::error::QueueError;
use crate::exchange::Exchange;
use crate::message::Batch;
use crate::messages::{Run, Withdrawal};
use crate::wake::Wakeups;
use mochila_wire::Now;

/// What became of messages that were to be moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many have been moved.
    pub messages: u64,
    /// Why others have not, which are where they were: what has ended it, or else why the first has
    /// been passed by.
    pub refused: Option<Refusal>,
}

impl SharedQueue {
    /// Removes messages; returns how many it were.
    pub fn purge(&self, now: Now, pick: impl Into<Pick>) -> (u64, Wakeups) {
        let pick = pick.into();
        let mut picking = Picking::new(&pick, self);
        let (mut purged, mut wakeups) = (0, Wakeups::new());
        while let Some(runs) = picking.next(now, self, PURGED_AT_ONCE) {
            let (count, woken) = self.visit(|queue| queue.purge(now, runs));
            wakeups.merge(woken);
            picking.used(count);
            purged += count;
        }
        (purged, wakeups)
    }

    /// Moves messages to another queue, in order, as far as it has room. One that the queue keeps
    /// out stays; the next may get in.
    pub fn move_to(
        &self,
        now: Now,
        destination: &SharedQueue,
        pick: impl Into<Pick>,
    ) -> Result<(Moved, Wakeups), QueueError> {
        if std::ptr::eq(self, destination) {
            return Err(QueueError::Itself { name: self.name().to_owned() });
        }
        Ok(self.move_by(now, &pick.into(), |batch| destination.take_in(now, batch)))
    }

    /// Publishes messages to an exchange, in order, and removes those that a queue has taken. A
    /// message that no queue is bound for, or that all queues keep out, stays; the next may get in.
    pub fn reroute(
        &self,
        now: Now,
        exchange: &Exchange,
        pick: impl Into<Pick>,
    ) -> (Moved, Wakeups) {
        let put = |batch: &mut Batch| exchange.publish_moved(now, batch);
        let (moved, mut wakeups) = self.move_by(now, &pick.into(), put);
        let count = |queue: &mut Queue| queue.counters.rerouted(moved.messages);
        wakeups.merge(self.visit(count).1);
        (moved, wakeups)
    }

    /// Moves messages to wherever `put` puts them.
    ///
    /// No two queues are ever locked at once: messages are withdrawn here, put there, and only then
    /// removed here, or put back in their places.
    fn move_by(
        &self,
        now: Now,
        pick: &Pick,
        mut put: impl FnMut(&mut Batch) -> (Enqueued, Wakeups),
    ) -> (Moved, Wakeups) {
        let mut picking = Picking::new(pick, self);
        let (mut moved, mut wakeups) = (Moved::default(), Wakeups::new());
        while let Some(runs) = picking.next(now, self, MOVED_AT_ONCE) {
            let (mut withdrawal, woken) = self.visit(|queue| queue.withdraw(now, runs));
            wakeups.merge(woken);
            let (enqueued, woken) = put(&mut withdrawal.batch);
            wakeups.merge(woken);
            let refused: Vec<u32> = enqueued.rejected.iter().map(|it| it.index).collect();
            let (count, woken) = self.visit(|queue| queue.conclude(now, &withdrawal, &refused));
            wakeups.merge(woken);
            picking.used(count);
            moved.messages += count;
            let mut reasons = enqueued.rejected.iter().map(|rejected| rejected.reason);
            moved.refused = moved.refused.or(reasons.clone().next());
            if let Some(end) = reasons.find(|reason| !reason.is_of_one_message()) {
                moved.refused = Some(end);
                break;
            }
        }
        (moved, wakeups)
    }

    /// Adds messages that come from another queue, as far as the limits allow.
    fn take_in(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        self.screen(batch);
        self.find_names(batch);
        self.let_in(batch, |queue, batch| queue.take_in(now, batch))
    }
}

impl Queue {
    /// Removes those of these messages that are still available; returns how many it were.
    fn purge(&mut self, now: Now, runs: &[Run]) -> u64 {
        let mut purged = 0;
        for run in runs {
            let dequeued = self.messages.purge(*run);
            purged += dequeued.messages();
            self.leave(dequeued);
        }
        self.counters.discard(purged, |discards| &mut discards.purged);
        self.settle_down(now);
        purged
    }

    /// Withdraws those of these messages that are still available.
    fn withdraw(&mut self, now: Now, runs: &[Run]) -> Withdrawal {
        let mut withdrawal = Withdrawal::default();
        if !self.deleted {
            for run in runs {
                self.messages.withdraw(now, *run, &mut withdrawal);
            }
        }
        withdrawal
    }

    /// Removes withdrawn messages that stand elsewhere now, and puts those back that were `refused`
    /// there. Returns how many have been moved.
    fn conclude(&mut self, now: Now, withdrawal: &Withdrawal, refused: &[u32]) -> u64 {
        let mut moved = 0;
        for run in withdrawal.moved(refused) {
            let dequeued = self.messages.let_go(run);
            moved += dequeued.messages();
            self.leave(dequeued);
        }
        for run in withdrawal.left(refused) {
            let returned = self.messages.put_back(run, now.mono_ms);
            self.distributor.released(run, self.messages.available());
            self.expired(returned.expired);
        }
        self.settle_down(now);
        moved
    }

    /// Messages that do not get in stay where they are, so they do not count as discarded.
    fn take_in(&mut self, now: Now, batch: &mut Batch) -> Enqueued {
        let before = self.counters.discards();
        let enqueued = self.enqueue(now, batch, false);
        self.counters.forget_refused(before);
        enqueued
    }
}

/// So many messages are purged before the lock is released for others.
const PURGED_AT_ONCE: u64 = 4096;
/// So many are moved at a time.
const MOVED_AT_ONCE: u64 = 512;
