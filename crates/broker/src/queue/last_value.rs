//! A queue that keeps one message of each key, the last.

use super::consumer::Hold;
use super::{Queue, Rejected};
use crate::message::Batch;
use crate::messages::{Dequeued, Run};
use mochila_wire::Now;

impl Queue {
    /// Adds the messages of a batch as far as the limits allow, each in place of the last one with
    /// its key: the limits are for what is left then. Returns how many messages, and their bytes.
    pub(super) fn enqueue_last_values(
        &mut self,
        now: Now,
        batch: &Batch,
        held_back: bool,
        rejected: &mut Vec<Rejected>,
    ) -> (u64, u64) {
        if self.policy.lets_in_all(batch.len() as u64, batch.bytes(), held_back) {
            self.policy.enter(batch.len() as u64, batch.bytes());
            let added = self.messages.enqueue(now, batch, |_, _| true);
            self.drop_replaced();
            self.policy.update();
            return (added.len, batch.bytes());
        }
        let (mut added, mut bytes) = (0, 0);
        for (index, message) in batch.messages.iter().enumerate() {
            let last = self.messages.last_bytes(batch, index);
            match self.policy.admit_instead(message, last, held_back) {
                Ok(()) => {
                    added += self.messages.enqueue(now, batch, |other, _| other == index).len;
                    bytes += message.size;
                    self.drop_replaced();
                }
                Err(reason) => rejected.push(Rejected { index: index as u32, reason }),
            }
        }
        (added, bytes)
    }

    /// Takes out of the queue what has been replaced, whoever holds it: when that is settled, there
    /// is nothing left to be done.
    pub(super) fn drop_replaced(&mut self) {
        let mut replaced = Dequeued::default();
        for position in self.messages.take_replaced() {
            let Some((holder, dequeued)) = self.messages.replace(position) else { continue };
            let hold = Hold::named(holder, |slot| self.distributor.in_slot(slot));
            if let Some(hold) = hold
                && let Some(consumer) = self.distributor.get_mut(hold.id)
            {
                consumer.gave(hold, Run::new(position, 1), dequeued.messages());
            }
            replaced.merge(dequeued);
        }
        self.counters.discard(replaced.messages(), |discards| &mut discards.replaced);
        self.leave(replaced);
    }
}
