//! What becomes of messages that consumers hold.

use super::consumer::Hold;
use super::{ConsumerId, Outcome, Queue, Settlement};
use crate::message::Overlay;
use crate::messages::{Bits, Dequeued, Messages, Return, Run};
use mochila_wire::{Map, Now};

impl Queue {
    /// Removes messages that a consumer holds; positions that it does not hold change nothing.
    ///
    /// The fast path: runs of positions in order cost one look at each block.
    pub(crate) fn accept(&mut self, now: Now, id: ConsumerId, positions: &[u64]) {
        let mut rest = positions;
        while let Some(first) = rest.first() {
            let follows = |(index, position): (usize, &u64)| {
                position.checked_sub(*first) == Some(index as u64)
            };
            let len = rest.iter().enumerate().take_while(|pair| follows(*pair)).count();
            if len >= LONG || len == rest.len() {
                self.dequeue(Hold::own(id), self.known(*first, len), Messages::accept);
                rest = &rest[len..];
            } else {
                // Messages of one priority lie between others.
                let (bits, len) = Bits::starting(rest);
                self.dequeue_bits(Hold::own(id), bits);
                rest = &rest[len..];
            }
        }
        self.tidy(id);
        self.settle_down(now);
    }

    /// Removes the messages of a range of positions that a consumer holds.
    pub(crate) fn accept_range(&mut self, now: Now, id: ConsumerId, first: u64, last: u64) {
        let end = last.saturating_add(1).min(self.messages.next_position());
        let run = Run::new(first, end.saturating_sub(first));
        self.dequeue(Hold::own(id), run, Messages::accept);
        self.tidy(id);
        self.settle_down(now);
    }

    /// Settles each message with its own outcome.
    pub(crate) fn settle(&mut self, now: Now, id: ConsumerId, settlements: &[Settlement]) {
        let mut rest = settlements;
        while let Some(first) = rest.first() {
            let follows = |(index, settlement): (usize, &Settlement)| {
                settlement.position.checked_sub(first.position) == Some(index as u64)
                    && settlement.outcome == first.outcome
            };
            let len = rest.iter().enumerate().take_while(|pair| follows(*pair)).count();
            let run = self.known(first.position, len);
            self.apply(now, Hold::own(id), run, &first.outcome);
            rest = &rest[len..];
        }
        self.tidy(id);
        self.settle_down(now);
    }

    /// Gives those messages of some runs that a consumer holds one outcome.
    pub(crate) fn settle_runs(
        &mut self,
        now: Now,
        id: ConsumerId,
        runs: impl Iterator<Item = Run>,
        outcome: &Outcome,
    ) {
        for run in runs {
            let run = self.known(run.first, run.len as usize);
            self.apply(now, Hold::own(id), run, outcome);
        }
        self.tidy(id);
        self.settle_down(now);
    }

    /// Takes back what a consumer was given and has not passed on; it will get it again.
    pub(crate) fn give_back(&mut self, now: Now, id: ConsumerId, positions: &[u64]) {
        let Some(consumer) = self.distributor.get(id) else { return };
        if consumer.is_browser() {
            self.distributor.show_again(id, positions, &self.messages);
            self.distributor.call_browsers(&mut self.wakeups);
        } else {
            for position in positions {
                self.release(now, Hold::own(id), self.known(*position, 1), false);
            }
        }
        self.settle_down(now);
    }

    /// Settles everything that a consumer holds.
    pub(crate) fn settle_all(&mut self, now: Now, id: ConsumerId, outcome: &Outcome) {
        let Some(consumer) = self.distributor.get(id) else { return };
        let runs: Vec<Run> = consumer.holding.runs().collect();
        for run in runs {
            self.apply(now, Hold::own(id), run, outcome);
        }
        self.settle_down(now);
    }

    /// The part of a run that has positions of this queue; peers name what they like.
    pub(super) fn known(&self, first: u64, len: usize) -> Run {
        let left = self.messages.next_position().saturating_sub(first);
        Run::new(if left == 0 { 0 } else { first }, left.min(len as u64))
    }

    /// Gives an outcome to those messages of a run that are held like this; returns how many have
    /// left the queue.
    pub(super) fn apply(&mut self, now: Now, hold: Hold, run: Run, outcome: &Outcome) -> u64 {
        match outcome {
            Outcome::Accept => self.dequeue(hold, run, Messages::accept),
            Outcome::Reject => {
                let rejected = self.dequeue(hold, run, Messages::reject);
                self.counters.discard(rejected, |discards| &mut discards.rejected);
                rejected
            }
            Outcome::Release => {
                self.release(now, hold, run, false);
                0
            }
            Outcome::Modify { failed, undeliverable_here, annotations } => {
                if let Some(annotations) = annotations {
                    self.annotate(hold, run, annotations);
                }
                if *undeliverable_here {
                    self.exclude(hold, run);
                }
                self.release(now, hold, run, *failed);
                0
            }
        }
    }

    /// Removes those messages of a run that a consumer holds, and returns how many it were.
    fn dequeue(
        &mut self,
        hold: Hold,
        run: Run,
        remove: fn(&mut Messages, Run, u32) -> Dequeued,
    ) -> u64 {
        let Some(consumer) = self.distributor.get_mut(hold.id) else { return 0 };
        let dequeued = remove(&mut self.messages, run, hold.mark());
        let count = dequeued.messages();
        consumer.gave(hold, run, count);
        self.leave(dequeued);
        count
    }

    /// Removes those messages of a block that a consumer holds.
    fn dequeue_bits(&mut self, hold: Hold, bits: Bits) {
        let Some(consumer) = self.distributor.get_mut(hold.id) else { return };
        let dequeued = self.messages.accept_bits(bits, hold.mark());
        consumer.gave_bits(hold, bits, dequeued.messages());
        self.leave(dequeued);
    }

    fn release(&mut self, now: Now, hold: Hold, run: Run, failed: bool) {
        let Some(consumer) = self.distributor.get_mut(hold.id) else { return };
        let how = match failed {
            true => Return::Failed { most: self.settings.most_deliveries() },
            false => Return::Untried,
        };
        let returned = self.messages.release(run, hold.mark(), how, now.mono_ms);
        consumer.gave(hold, run, returned.messages);
        self.counters.discard(returned.messages, |discards| &mut discards.released);
        if returned.messages > 0 {
            self.distributor.released(run, self.messages.available());
        }
        self.expired(returned.expired);
        let spent = returned.spent.messages();
        self.counters.discard(spent, |discards| &mut discards.spent);
        self.leave(returned.spent);
    }

    fn annotate(&mut self, hold: Hold, run: Run, annotations: &Map) {
        for position in run.first..run.end() {
            if !self.messages.is_held(position, hold.mark()) {
                continue;
            }
            let old = self.messages.overlay(position);
            // What would be too much for one message is left out; it keeps what it had.
            if let Some(overlay) = Overlay::merge(old, annotations, &self.budget) {
                self.messages.annotate(position, overlay);
            }
        }
    }

    fn exclude(&mut self, hold: Hold, run: Run) {
        if self.distributor.get(hold.id).is_none_or(|consumer| consumer.lingers) {
            return;
        }
        for position in run.first..run.end() {
            if self.messages.is_held(position, hold.mark()) {
                let messages = &self.messages;
                self.distributor.exclude(hold.id, position, |position| messages.contains(position));
            }
        }
    }

    pub(super) fn tidy(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.distributor.get_mut(id) {
            consumer.holding.tidy(|run| self.messages.held_in(run, id.slot));
        }
    }
}

/// Positions that follow one another are settled as a run if they are so many.
const LONG: usize = 16;
