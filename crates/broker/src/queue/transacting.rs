//! What a queue does for transactions: it keeps room for what they bring, and keeps what they take
//! away from everybody else.

use super::consumer::Hold;
use super::{ConsumerId, Outcome, Queue, Refusal, Rejected, SharedQueue, Want};
use crate::message::Batch;
use crate::messages::Run;
use mochila_wire::Now;

/// What transactions have in a queue, and have done with it; there only if any did something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transacted {
    /// Room that is kept for messages that are not in the queue yet.
    pub(crate) room: Room,
    pub(crate) enqueued_messages: u64,
    pub(crate) enqueued_bytes: u64,
    pub(crate) dequeued_messages: u64,
    pub(crate) dequeued_bytes: u64,
}

/// Room in a queue for the messages of a transaction. It is either filled or given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the queue would be narrower for ever"]
pub(crate) struct Room {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Room {
    /// The room that a batch takes.
    pub(crate) fn of(batch: &Batch) -> Room {
        Room { messages: batch.len() as u64, bytes: batch.bytes() }
    }
}

/// What becomes of a sender that gets no credit from a queue, and whose own transaction keeps room
/// there or elsewhere.
///
/// Where only the end of transactions makes room it must not wait: its own does not end before it
/// has sent the rest, and so it would wait for itself, or two for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leeway {
    /// It waits: there is room when others have taken, or settled, the messages of others.
    Wait,
    /// It goes on with so much credit, beyond the threshold and up to the limit.
    Credit(u32),
    /// There is no room, but for what other transactions keep as well: they may be about to end. If
    /// they wait for this one, it goes on as at [`Leeway::Limit`].
    Rivals,
    /// There is no room. It may send one message more, which is not to be taken beyond the limit: if
    /// that was not all, the transaction is in vain.
    Limit,
}

impl Leeway {
    /// True if only the end of transactions makes room.
    pub fn is_at_limit(&self) -> bool {
        matches!(self, Leeway::Rivals | Leeway::Limit)
    }
}

impl SharedQueue {
    /// For how many messages transactions keep room.
    pub(crate) fn room_kept(&self) -> u64 {
        self.lock().transacted().room.messages
    }

    /// What becomes of a producer with transactions that keep room here for `own` messages, or only
    /// elsewhere, and that wants so much credit and gets none.
    pub fn leeway(&self, want: &Want, own: u64) -> Leeway {
        self.lock().leeway(want, own)
    }
}

impl Queue {
    fn leeway(&self, want: &Want, own: u64) -> Leeway {
        let kept = self.transacted().room;
        if !self.policy.is_closed() {
            // Memory is short: if it is that of transactions, they go on until there is none.
            return match own > 0 && self.is_short_of_memory_because_of(kept.bytes) {
                true => Leeway::Credit(self.credit_for_memory().min(want.credit)),
                false => Leeway::Wait,
            };
        }
        // What consumers hold may be in transactions that wait for this one.
        let is_all_held = self.messages.free().len() == 0;
        if !is_all_held && !self.policy.is_closed_by(kept) {
            return Leeway::Wait;
        }
        match self.policy.credit_to_limit(want, self.producer_count()) {
            0 if !self.messages.is_empty() => Leeway::Wait,
            _ if own == 0 && kept.messages == 0 => Leeway::Wait,
            _ if own == 0 => Leeway::Rivals,
            0 if kept.messages > own => Leeway::Rivals,
            0 => Leeway::Limit,
            credit => Leeway::Credit(credit),
        }
    }

    /// Calls all producers that wait.
    pub(crate) fn call_waiting_producers(&mut self) {
        self.producers.call(u64::MAX, &self.budget, &mut self.wakeups);
    }

    /// Calls whoever waits, when there is room again, and yet not so much that everybody gets credit:
    /// those go on whose transactions have the rest.
    pub(super) fn call_transacting(&mut self) {
        if self.producers.waiting() > 0
            && self.policy.is_closed()
            && self.transacted().room.messages > 0
        {
            self.call_waiting_producers();
        }
    }

    /// Keeps room for all messages of a batch, or for none: those that do not fit are the error.
    /// Says as well whether producers get no credit now.
    ///
    /// A queue that drops messages makes room when they come, and not for what may never come.
    pub(crate) fn reserve(
        &mut self,
        batch: &Batch,
        held_back: bool,
    ) -> Result<(Room, bool), Vec<Rejected>> {
        if self.deleted {
            let all = 0..batch.len() as u32;
            return Err(all.map(|index| Rejected { index, reason: Refusal::Deleted }).collect());
        }
        let mut room = Room::of(batch);
        if !self.policy.admit_all(room.messages, room.bytes, held_back) {
            let mut admitted = Room::default();
            let mut rejected = Vec::new();
            for (index, message) in batch.messages.iter().enumerate() {
                match self.policy.keep_room(message, held_back) {
                    Ok(()) => {
                        admitted.messages += 1;
                        admitted.bytes += message.size;
                    }
                    Err(reason) => rejected.push(Rejected { index: index as u32, reason }),
                }
            }
            if !rejected.is_empty() {
                self.counters.discard(rejected.len() as u64, |discards| &mut discards.refused);
                self.policy.give_back(admitted);
                return Err(rejected);
            }
        }
        if self.policy.makes_room() {
            self.policy.give_back(room);
            room = Room::default();
        }
        let kept = &mut self.transacted_mut().room;
        kept.messages += room.messages;
        kept.bytes += room.bytes;
        Ok((room, self.is_closed()))
    }

    /// Gives back room that is not needed.
    pub(crate) fn give_back_room(&mut self, now: Now, room: Room) {
        self.take_room(room);
        self.policy.give_back(room);
        self.call_transacting();
        self.settle_down(now);
    }

    /// Adds the messages of a batch that came at `came`, for which room has been kept, if any.
    pub(crate) fn fill_room(&mut self, came: Now, room: Room, batch: &mut Batch) {
        self.take_room(room);
        self.policy.give_back(room);
        let room = Room::of(batch);
        self.policy.fill(room);
        self.counters.discard(batch.kept_out(), |discards| &mut discards.kept_out);
        self.find_names(batch);
        let added = self.messages.enqueue(came, batch, |_, _| true);
        self.counters.enqueued_messages += added.len;
        self.counters.enqueued_bytes += room.bytes;
        let transacted = self.transacted_mut();
        transacted.enqueued_messages += added.len;
        transacted.enqueued_bytes += room.bytes;
        self.note_arrival();
    }

    /// A transaction has done all that it does here. Only now is looked at what it leaves, since
    /// what it takes out of a ring makes room for what it brings back.
    pub(crate) fn committed(&mut self, now: Now) {
        self.settle_down(now);
    }

    /// A transaction has those messages of some runs now that the consumer held; returns how many.
    pub(crate) fn pledge(
        &mut self,
        now: Now,
        id: ConsumerId,
        runs: impl Iterator<Item = Run>,
    ) -> u64 {
        let mut pledged = 0;
        for run in runs {
            let run = self.known(run.first, run.len as usize);
            pledged += self.hand_over(Hold::own(id), Hold::pledged(id), run);
        }
        self.tidy(id);
        self.settle_down(now);
        pledged
    }

    /// The consumer has messages again that it had given to a transaction.
    pub(crate) fn unpledge(&mut self, now: Now, id: ConsumerId, runs: impl Iterator<Item = Run>) {
        for run in runs {
            let run = self.known(run.first, run.len as usize);
            self.hand_over(Hold::pledged(id), Hold::own(id), run);
        }
        self.settle_down(now);
    }

    /// The outcome of a message of a transaction that succeeds, or that it has if it does not.
    pub(crate) fn redeem(&mut self, now: Now, id: ConsumerId, run: Run, outcome: &Outcome) {
        let before = self.counters.dequeued_bytes;
        let run = self.known(run.first, run.len as usize);
        let left = self.apply(now, Hold::pledged(id), run, outcome);
        let bytes = self.counters.dequeued_bytes - before;
        if left > 0 {
            let transacted = self.transacted_mut();
            transacted.dequeued_messages += left;
            transacted.dequeued_bytes += bytes;
        }
    }

    /// A transaction has said all about a consumer's messages.
    pub(crate) fn redeemed(&mut self, id: ConsumerId) {
        self.distributor.forget(id);
    }

    /// What transactions have here and have done.
    pub(super) fn transacted(&self) -> Transacted {
        self.transacted.as_deref().copied().unwrap_or_default()
    }

    fn hand_over(&mut self, from: Hold, to: Hold, run: Run) -> u64 {
        let Some(consumer) = self.distributor.get_mut(from.id) else { return 0 };
        let count = self.messages.hand_over(run, from.mark(), to.mark());
        consumer.gave(from, run, count);
        consumer.got(to, run, count);
        count
    }

    fn take_room(&mut self, room: Room) {
        let kept = &mut self.transacted_mut().room;
        kept.messages -= room.messages;
        kept.bytes -= room.bytes;
    }

    fn transacted_mut(&mut self) -> &mut Transacted {
        self.transacted.get_or_insert_default()
    }
}
