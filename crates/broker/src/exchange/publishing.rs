//! What an exchange does with messages.

use super::counts::Amount;
use super::last::LastToBe;
use super::{Alternate, Exchange, Published, Routing};
use crate::message::{Batch, SEQUENCE};
use crate::queue::{Enqueued, Refusal, Rejected};
use crate::sync::{Ordering, lock};
use crate::transaction::{Fault, Transaction};
use crate::wake::Wakeups;
use mochila_wire::{Now, Value};

impl Exchange {
    /// Finds the queues of a batch. If messages are numbered, they have their numbers now.
    ///
    /// A number is there once. Messages of one sender have rising ones; those that are published at
    /// the same time may stand in a queue in another order than that of their numbers, since nobody
    /// waits for anybody.
    pub fn route(&self, batch: &mut Batch, key: Option<&[u8]>, routing: &mut Routing) {
        if self.settings().sequences {
            self.number(batch);
        }
        self.find_for(batch, key, routing);
    }

    /// Gives the queues what was routed to them.
    pub fn deliver(
        &self,
        now: Now,
        batch: &mut Batch,
        routing: &mut Routing,
    ) -> (Published, Wakeups) {
        self.counts().received(Amount::of(batch));
        let mut last = self.last.as_ref().map(lock);
        if last.is_some() {
            // Who was bound in the meantime has got the message before this one.
            self.find(batch, routing);
        }
        let (published, wakeups) = routing.deliver(now, batch, self, None);
        if let Some(last) = &mut last
            && let Some(index) = published.last_accepted()
        {
            last.keep(now, batch, index, routing.key());
        }
        routing.clear();
        (published, wakeups)
    }

    /// Both steps; empties the batch.
    pub fn publish(
        &self,
        now: Now,
        batch: &mut Batch,
        key: Option<&[u8]>,
        routing: &mut Routing,
    ) -> (Published, Wakeups) {
        self.route(batch, key, routing);
        let result = self.deliver(now, batch, routing);
        batch.clear();
        result
    }

    /// Routes the messages of a batch, and has a transaction bring them to the queues if it succeeds;
    /// empties the batch. A message that no queue has room for dooms it.
    ///
    /// If the exchange keeps its last message, the last one of them is kept when it is committed.
    pub fn publish_in(
        &self,
        now: Now,
        transaction: &mut Transaction,
        batch: &mut Batch,
        key: Option<&[u8]>,
        routing: &mut Routing,
    ) -> (Published, Wakeups) {
        self.route(batch, key, routing);
        self.counts().received(Amount::of(batch));
        let (published, mut wakeups) = routing.deliver(now, batch, self, Some(transaction));
        if let Some(first) = published.rejected.first()
            && transaction.fault().is_none()
        {
            wakeups.merge(transaction.doom(now, Fault::Refused(first.reason)));
        }
        if let Some(index) = published.last_accepted()
            && let Some(this) = self.this.upgrade()
        {
            transaction.note_last(LastToBe::of(now, &this, batch, index, routing));
        }
        routing.clear();
        batch.clear();
        (published, wakeups)
    }

    /// Publishes messages that have left a queue because they had to.
    ///
    /// They do not count as the last message: that is locked while queues get messages, and a queue
    /// that gets some may drop others.
    pub(crate) fn publish_dead(
        &self,
        now: Now,
        batch: &mut Batch,
        transaction: Option<&mut Transaction>,
    ) -> Wakeups {
        let mut routing = Routing::new();
        self.route(batch, None, &mut routing);
        self.counts().received(Amount::of(batch));
        routing.deliver(now, batch, self, transaction).1
    }

    /// Publishes messages that an operator takes out of a queue: those that no queue has taken are
    /// refused, whatever the exchange does with others that no queue is bound for.
    ///
    /// If the exchange keeps its last message, the last one that was taken is kept.
    pub(crate) fn publish_moved(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        let mut routing = Routing::new();
        let mut last = self.last.as_ref().map(lock);
        self.route(batch, None, &mut routing);
        let strays = routing.take_strays();
        let mut received = Amount::of(batch);
        received.messages -= strays.len() as u64;
        received.bytes -= strays.iter().map(|index| batch.bytes_of(*index)).sum::<u64>();
        self.counts().received(received);
        let (mut published, wakeups) = routing.deliver(now, batch, self, None);
        let reason = Refusal::NoRoute;
        published.rejected.extend(strays.iter().map(|index| Rejected { index: *index, reason }));
        published.rejected.sort_by_key(|rejected| rejected.index);
        if let (Some(last), Some(index)) = (&mut last, published.last_accepted()) {
            last.keep(now, batch, index, None);
        }
        let Published { rejected, is_closed, .. } = published;
        let accepted = batch.len() as u32 - rejected.len() as u32;
        (Enqueued { accepted, rejected, is_closed }, wakeups)
    }

    /// Finds the queues of a batch that came with this key.
    pub(super) fn find_for(&self, batch: &Batch, key: Option<&[u8]>, routing: &mut Routing) {
        routing.set_key(key);
        self.find(batch, routing);
    }

    fn find(&self, batch: &Batch, routing: &mut Routing) {
        let key = routing.take_key();
        routing.clear();
        routing.put_key(key);
        routing.set_version(self.version());
        self.with_table(|table| routing.find(table, batch));
        if routing.strays().is_empty() {
            return;
        }
        if let Some(alternate) = self.alternate.as_ref().and_then(Alternate::get) {
            // Once: its own alternate exchange is not asked.
            alternate.with_table(|table| routing.find_strays(table, batch));
        }
    }

    fn number(&self, batch: &mut Batch) {
        // Relaxed: every message gets a number of its own, nothing more.
        let first = self.next_number.fetch_add(batch.len() as u64, Ordering::Relaxed);
        if batch.number_from(first as i64) {
            return;
        }
        for index in 0..batch.len() {
            let number = Value::Long((first + index as u64) as i64);
            batch.annotate(index, &[(SEQUENCE.clone(), number)], self.budget());
        }
    }
}
