//! Taking messages out of a queue, or registering for the next one.

use super::selection::Eligible;
use super::{ConsumerId, EXPIRED_AT_ONCE, Queue};
use crate::message::Taken;
use crate::messages::{Acquired, Run, Taker};
use mochila_wire::Now;

/// How much a consumer takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeLimit {
    /// At most so many messages: as many as it has credit for.
    pub messages: u32,
    /// At most so many bytes in memory: as many as there is room for in the output. A message that
    /// is larger is handed over alone.
    pub bytes: usize,
}

/// How a take ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// Nothing is left for this consumer: it will be woken when there is.
    Waiting,
    /// There is more, but others have to get their share first, or the bytes were enough. The
    /// queue counts on the consumer to come again soon, or to say that it is idle.
    More,
    /// It got as many messages as it asked for, and is idle: it takes again when it can.
    Satisfied,
    /// The queue has been deleted, or the consumer is not subscribed any more.
    Gone,
}

/// What a consumer has got so far while it takes.
#[derive(Debug)]
pub(super) struct Pass {
    /// How many messages it asked for.
    wanted: u64,
    /// How many it may have.
    most: u64,
    taken: u64,
    expired: u64,
    /// Bytes in memory that it still takes.
    bytes: usize,
}

impl Pass {
    pub(super) fn new(limit: TakeLimit, share: u64) -> Pass {
        let wanted = u64::from(limit.messages);
        Pass { wanted, most: share.min(wanted), taken: 0, expired: 0, bytes: limit.bytes }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.taken < self.most && self.expired < EXPIRED_AT_ONCE
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many more messages it may have.
    pub(super) fn left(&self) -> u64 {
        self.most - self.taken
    }

    pub(super) fn taker(&self, now: Now, id: ConsumerId) -> Taker {
        let (is_empty_handed, bytes) = (self.taken == 0, self.bytes);
        Taker { slot: id.slot, now_ms: now.mono_ms, bytes, is_empty_handed }
    }

    pub(super) fn note(&mut self, acquired: &Acquired) {
        self.taken += acquired.messages;
        self.expired += acquired.expired.messages();
        self.bytes = self.bytes.saturating_sub(acquired.bytes);
    }
}

impl Queue {
    /// Hands over messages, and says what the consumer is to do next: the same step.
    pub(crate) fn take(
        &mut self,
        now: Now,
        id: ConsumerId,
        limit: TakeLimit,
        out: &mut Taken,
    ) -> Taking {
        if self.deleted {
            return Taking::Gone;
        }
        let consumer = self.distributor.get(id).filter(|consumer| !consumer.lingers);
        let Some(consumer) = consumer else { return Taking::Gone };
        out.set_stamps(self.stamps.as_ref());
        let is_satisfied = if consumer.is_browser() {
            self.browse(now, id, limit, out)
        } else if self.messages.groups().is_some() {
            self.acquire_grouped(now, id, limit, out)
        } else if self.messages.levels().is_some() {
            self.acquire_by_priority(now, id, limit, out)
        } else {
            self.acquire(now, id, limit, out)
        };
        let taking = if is_satisfied {
            self.distributor.set_idle(id);
            Taking::Satisfied
        } else if self.has_more(id) {
            self.distributor.set_expected(id);
            Taking::More
        } else {
            self.distributor.set_waiting(id);
            Taking::Waiting
        };
        if self.messages.free().len() == 0 {
            self.call_transacting();
        }
        self.settle_down(now);
        taking
    }

    /// True if it got as many messages as it asked for.
    fn acquire(&mut self, now: Now, id: ConsumerId, limit: TakeLimit, out: &mut Taken) -> bool {
        let called_for = self.distributor.answer_call(id);
        let mut pass = Pass::new(limit, self.distributor.share(id, self.available()));
        let mut from = 0;
        while pass.goes_on() {
            let next = self.distributor.next(id, Eligible::free(&self.messages), from);
            let Some(run) = next else { break };
            match self.take_run(now, id, run, &mut pass, out) {
                Some(end) => from = end,
                None => break,
            }
        }
        self.end_acquiring(id, &pass, called_for)
    }

    /// Hands over as much of a run as the consumer may have; where to go on, unless there is no
    /// room for the next message.
    #[inline]
    pub(super) fn take_run(
        &mut self,
        now: Now,
        id: ConsumerId,
        mut run: Run,
        pass: &mut Pass,
        out: &mut Taken,
    ) -> Option<u64> {
        run.len = run.len.min(pass.left());
        let acquired = self.messages.acquire(run, pass.taker(now, id), out);
        pass.note(&acquired);
        let looked_at = Run::new(run.first, acquired.end - run.first);
        self.distributor.took(id, looked_at);
        let consumer = self.distributor.get_mut(id)?;
        consumer.taken += acquired.messages;
        if consumer.options.settled {
            let dequeued = self.messages.accept(looked_at, id.slot);
            self.leave(dequeued);
        } else {
            consumer.holding.took(looked_at, acquired.messages);
        }
        self.expired(acquired.expired);
        (acquired.end == run.end()).then_some(acquired.end)
    }

    /// True if the consumer got as many messages as it asked for.
    pub(super) fn end_acquiring(
        &mut self,
        id: ConsumerId,
        pass: &Pass,
        called_for: Option<u64>,
    ) -> bool {
        self.counters.acquires += pass.taken;
        self.distributor.renew_promises(&self.messages);
        self.distributor.advance_exclusions(id, self.messages.available());
        if called_for.is_some_and(|position| self.messages.available().contains(position)) {
            self.distributor.recheck_selecting();
        }
        pass.taken == pass.wanted
    }

    /// True if it has seen as many messages as it asked for.
    fn browse(&mut self, now: Now, id: ConsumerId, limit: TakeLimit, out: &mut Taken) -> bool {
        let wanted = u64::from(limit.messages);
        let mut seen = 0;
        let mut bytes = limit.bytes;
        while seen < wanted {
            let next = self.distributor.next_to_show(id, &self.messages);
            let Some((level, mut run)) = next else { break };
            run.len = run.len.min(wanted - seen);
            let is_empty_handed = seen == 0;
            let taker = Taker { slot: id.slot, now_ms: now.mono_ms, bytes, is_empty_handed };
            let shown = self.messages.browse(run, taker, out);
            seen += shown.messages;
            bytes = bytes.saturating_sub(shown.bytes);
            if shown.end > run.first {
                let run = Run::new(run.first, shown.end - run.first);
                self.distributor.showed(id, level, run);
            }
            if shown.end < run.end() {
                break;
            }
        }
        if let Some(consumer) = self.distributor.get_mut(id) {
            consumer.taken += seen;
            if seen < wanted {
                consumer.cursor.pass_by(&self.messages);
            }
        }
        seen == wanted
    }

    /// True if there is something that a consumer could take and that is not another's.
    fn has_more(&mut self, id: ConsumerId) -> bool {
        let Some(consumer) = self.distributor.get(id) else { return false };
        let is_browser = consumer.is_browser();
        if self.distributor.is_unshown(id, &self.messages) {
            return true;
        }
        if is_browser {
            return self.distributor.next_to_show(id, &self.messages).is_some();
        }
        self.distributor.may_take(id, &self.messages)
    }
}
