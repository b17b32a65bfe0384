//! What tests do with transactions on a bench.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::{
    Batch, Enqueued, Fault, Held, Outcome, SharedQueue, Transaction, TransactionTotals,
};
use std::sync::Arc;

impl QueueBench {
    pub(crate) fn begin(&self) -> Transaction {
        self.broker.begin()
    }

    pub(crate) fn post(&mut self, transaction: &mut Transaction, texts: &[&str]) -> Enqueued {
        let queue = Arc::clone(&self.queue);
        self.post_to(transaction, &queue, texts)
    }

    pub(crate) fn post_to(
        &mut self,
        transaction: &mut Transaction,
        queue: &Arc<SharedQueue>,
        texts: &[&str],
    ) -> Enqueued {
        let now = self.now;
        let messages = texts.iter().map(|text| message(text)).collect();
        self.batch(messages, |batch: &mut Batch| {
            let (enqueued, wakeups) = transaction.enqueue(now, queue, batch, true);
            wakeups.perform();
            enqueued
        })
    }

    pub(crate) fn held<'a>(&'a self, consumer: BenchConsumer, settled: bool) -> Held<'a> {
        let default_outcome = &Outcome::Release;
        Held { queue: &self.queue, consumer: consumer.id, default_outcome, settled }
    }

    /// The consumer accepts messages in a transaction, and settles them.
    pub(crate) fn pledge(
        &self,
        transaction: &mut Transaction,
        consumer: BenchConsumer,
        positions: &[u64],
    ) {
        let held = self.held(consumer, true);
        transaction.accept(self.now, &held, positions).perform();
    }

    pub(crate) fn commit(&self, transaction: Transaction) -> Result<(), Fault> {
        match transaction.commit(self.now) {
            Ok(wakeups) => {
                wakeups.perform();
                Ok(())
            }
            Err(transaction) => {
                let fault = transaction.fault().cloned().expect("it says why");
                self.rollback(transaction);
                Err(fault)
            }
        }
    }

    pub(crate) fn rollback(&self, transaction: Transaction) {
        transaction.rollback(self.now).perform();
    }

    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let TransactionTotals { open, committed, rolled_back } = self.broker.transaction_totals();
        (open, committed, rolled_back)
    }

    /// Nothing is left: no message, no memory beyond that of an empty queue.
    pub(crate) fn expect_nothing_left(&self, empty: u64) {
        assert_eq!(self.statistics().msg_depth, 0);
        assert_eq!(self.broker.budget().used(), empty);
    }
}
