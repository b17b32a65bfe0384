//! What those do who take messages from a queue that many threads use.

use super::showing::Showing;
use super::{ConsumerId, ConsumerOptions, Outcome, Settlement, SharedQueue, TakeLimit, Taking};
use crate::error::QueueError;
use crate::message::Taken;
use crate::messages::Run;
use crate::sync::lock;
use crate::wake::Wakeups;
use mochila_wire::Now;

impl SharedQueue {
    /// Adds a consumer. It is idle until it takes for the first time.
    pub fn subscribe(&self, now: Now, options: ConsumerOptions) -> Result<ConsumerId, QueueError> {
        self.visit_and_wake(|queue| queue.subscribe(now, self.name(), options))
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

    /// Takes back messages that the consumer has taken and has not passed on to its peer, by their
    /// positions: to be taken again, also by a browser, which then goes on there.
    pub fn give_back(&self, now: Now, id: ConsumerId, positions: &[u64]) -> Wakeups {
        self.visit(|queue| queue.give_back(now, id, positions)).1
    }

    /// Settles all that the consumer holds.
    pub fn settle_all(&self, now: Now, id: ConsumerId, outcome: &Outcome) -> Wakeups {
        self.visit(|queue| queue.settle_all(now, id, outcome)).1
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
            queue.redeemed(id);
            queue.settle_down(now);
        })
        .1
    }
}

/// A consumer that selects is shown messages until so many match.
const MOST_AHEAD: u32 = 256;
/// So many rounds of showing belong to one take; then others come first.
const SHOWN_IN_A_TAKE: usize = 16;
/// So many rounds of showing belong to one visit; then those who wait look for themselves.
const SHOWN_IN_A_VISIT: usize = 4;
