//! Transactions on queues that drop, replace or delete themselves.

use crate::bench::{QueueBench, message};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{DeleteIf, Fault, QueueSettings, Refusal};
use std::sync::Arc;

fn ring_of(max_count: u64) -> QueueBench {
    let limit_policy = LimitPolicy::Ring;
    let max_count = Some(max_count);
    QueueBench::new(QueueSettings { max_count, limit_policy, ..QueueSettings::default() })
}

#[test]
fn i6_what_a_transaction_has_of_a_ring_is_dequeued_once_whatever_the_ring_drops() {
    for commits in [true, false] {
        let mut bench = ring_of(3);
        bench.send(&["a", "b"]);
        let consumer = bench.consumer();
        bench.take(consumer, 2);
        let mut transaction = bench.begin();
        bench.pledge(&mut transaction, consumer, &[0, 1]);
        bench.send_numbers(0..10);
        match commits {
            true => bench.commit(transaction).unwrap(),
            false => bench.rollback(transaction),
        }
        bench.send(&["x", "y", "z"]);
        assert_eq!(bench.take(consumer, 9).texts, ["x", "y", "z"]);
        let numbers = bench.statistics();
        assert_eq!((numbers.msg_depth, numbers.msg_total_dequeues), (3, 12));
        assert_eq!(numbers.msg_txn_dequeues, if commits { 2 } else { 0 });
    }
}

#[test]
fn a_ring_drops_nothing_for_messages_that_may_never_come() {
    let mut bench = ring_of(2);
    bench.send(&["a", "b"]);
    let mut lost = bench.begin();
    bench.post(&mut lost, &["x", "y"]);
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["c"]);
    assert_eq!(bench.statistics().msg_depth, 2);
    bench.rollback(lost);
    bench.commit(transaction).unwrap();
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 9).texts, ["b", "c"]);
}

#[test]
fn a_queue_does_not_delete_itself_for_a_message_that_never_came() {
    let limit_policy = LimitPolicy::SelfDestruct;
    let settings = QueueSettings { max_count: Some(1), limit_policy, ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a", "b"]);
    assert_eq!(bench.commit(transaction), Err(Fault::Refused(Refusal::Count)));
    assert!(!bench.queue.is_deleted());
}

/// A queue that keeps the last message of each key.
fn last_values() -> QueueBench {
    let last_value_key = Some("key".into());
    QueueBench::new(QueueSettings { last_value_key, ..QueueSettings::default() })
}

fn keyed(key: &str, text: &str) -> mochila_wire::Message {
    let mut message = message(text);
    message.set_application_property("key", key);
    message
}

#[test]
fn a_commit_replaces_last_values_as_any_message_does() {
    let mut bench = last_values();
    bench.send_messages(vec![keyed("k", "old"), keyed("other", "stays")]);
    let (now, queue) = (bench.now, Arc::clone(&bench.queue));
    let mut transaction = bench.begin();
    bench.batch(vec![keyed("k", "first"), keyed("k", "last")], |batch| {
        transaction.enqueue(now, &queue, batch, true).1.perform();
    });
    assert_eq!(bench.statistics().msg_depth, 2);
    bench.commit(transaction).unwrap();
    assert_eq!(bench.statistics().msg_depth, 2, "one of each key");
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 9).texts, ["stays", "last"]);
}

#[test]
fn i6_what_is_replaced_while_a_transaction_has_it_is_not_dequeued_again() {
    for commits in [true, false] {
        let mut bench = last_values();
        bench.send_messages(vec![keyed("k", "old")]);
        let consumer = bench.consumer();
        bench.take(consumer, 1);
        let mut transaction = bench.begin();
        bench.pledge(&mut transaction, consumer, &[0]);
        bench.send_messages(vec![keyed("k", "new")]);
        bench.unsubscribe(consumer);
        match commits {
            true => bench.commit(transaction).unwrap(),
            false => bench.rollback(transaction),
        }
        let numbers = bench.statistics();
        assert_eq!((numbers.msg_depth, numbers.msg_total_dequeues), (1, 1));
        assert_eq!(numbers.msg_txn_dequeues, 0);
        let next = bench.consumer();
        assert_eq!(bench.take(next, 9).texts, ["new"]);
        bench.unsubscribe(next);
        bench.queue.delete(DeleteIf { unused: true, empty: false }).unwrap().perform();
    }
}
