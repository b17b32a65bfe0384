//! Transactions: what they bring and take counts together, or not at all.

use crate::bench::{QueueBench, message};
use mochila_broker::{
    BatchBuilder, BrokerSettings, DeleteIf, Fault, Held, LargeBody, MessageMeta, Outcome,
    QueueSettings, Refusal, Settlement, SharedQueue, TakeLimit, Taken, Taking, TransactionSettings,
    Wait, Waiter,
};
use mochila_wire::Sections;
use std::sync::{Arc, Mutex, Weak};

#[test]
fn what_is_sent_in_a_transaction_is_redirected_like_everything_else() {
    let mut here = QueueBench::default();
    let mut there = here.beside("there", QueueSettings::default());
    here.broker.redirect(&here.queue, &there.queue).unwrap().perform();
    let mut transaction = here.begin();
    here.post(&mut transaction, &["a", "b"]);
    here.broker.cancel_redirect(&here.queue).unwrap();
    here.post(&mut transaction, &["c"]);
    here.commit(transaction).unwrap();
    assert_eq!((here.statistics().msg_depth, there.statistics().msg_depth), (1, 2));
    let consumer = there.consumer();
    assert_eq!(there.take(consumer, 9).texts, ["a", "b"]);
}

const FAILED: Outcome =
    Outcome::Modify { failed: true, undeliverable_here: false, annotations: None };

#[test]
fn what_a_transaction_brings_is_there_when_it_is_committed_and_not_before() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).taking, Taking::Waiting);
    let mut transaction = bench.begin();
    assert_eq!(bench.post(&mut transaction, &["a", "b"]).accepted, 2);
    bench.post(&mut transaction, &["c"]);
    assert_eq!((bench.woken(), bench.statistics().msg_depth), (vec![], 0));
    assert_eq!(bench.totals(), (1, 0, 0));
    bench.commit(transaction).unwrap();
    assert_eq!(bench.woken(), [consumer.key], "the one who waits is called");
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b", "c"]);
    let numbers = bench.statistics();
    assert_eq!((numbers.msg_txn_enqueues, numbers.msg_total_enqueues), (3, 3));
    assert_eq!(bench.totals(), (0, 1, 0));
}

#[test]
fn what_is_rolled_back_was_never_there_and_leaves_no_memory() {
    let mut bench = QueueBench::default();
    let empty = bench.broker.budget().used();
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a", "b"]);
    assert!(bench.broker.budget().used() > empty, "it is paid for as it comes");
    bench.rollback(transaction);
    bench.expect_nothing_left(empty);
    let numbers = bench.statistics();
    assert_eq!((numbers.msg_total_enqueues, numbers.msg_txn_enqueues), (0, 0));
    assert_eq!(bench.totals(), (0, 0, 1));
    let unused = bench.begin();
    assert_eq!(bench.totals(), (1, 0, 1));
    bench.rollback(unused);
    assert_eq!(bench.totals(), (0, 0, 1), "nothing was done in it");
}

#[test]
fn messages_that_are_accepted_leave_with_the_commit() {
    let mut bench = QueueBench::default();
    let empty = bench.broker.budget().used();
    bench.send_numbers(0..300);
    let consumer = bench.consumer();
    let got = bench.take(consumer, 300);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &got.positions());
    let numbers = bench.statistics();
    assert_eq!((numbers.msg_depth, numbers.unacked_messages), (300, 300), "nothing has left yet");
    bench.commit(transaction).unwrap();
    let numbers = bench.statistics();
    assert_eq!((numbers.msg_txn_dequeues, numbers.msg_total_dequeues), (300, 300));
    bench.unsubscribe(consumer);
    bench.expect_nothing_left(empty);
}

#[test]
fn messages_that_were_settled_come_back_in_their_order_with_the_default_outcome() {
    let mut bench = QueueBench::default();
    bench.send_numbers(0..10);
    let (consumer, other) = (bench.consumer(), bench.consumer());
    assert_eq!(bench.take(consumer, 5).texts.len(), 5);
    let mut transaction = bench.begin();
    let held = Held { default_outcome: &FAILED, ..bench.held(consumer, true) };
    for position in [4, 2, 0, 1, 3] {
        transaction.accept(bench.now, &held, &[position]).perform();
    }
    assert_eq!(bench.take(other, 1).texts, ["5"]);
    bench.rollback(transaction);
    let again = bench.take(other, 20);
    assert_eq!(again.texts, ["0", "1", "2", "3", "4", "6", "7", "8", "9"]);
    let counts: Vec<_> = again.deliveries.iter().map(|it| it.delivery_count).collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn messages_that_were_not_settled_are_the_consumers_again() {
    let mut bench = QueueBench::default();
    bench.send(&["a", "b"]);
    let consumer = bench.consumer();
    bench.take(consumer, 2);
    let mut transaction = bench.begin();
    let held = bench.held(consumer, false);
    transaction.accept(bench.now, &held, &[0, 1]).perform();
    bench.accept(consumer, &[0]);
    assert_eq!(bench.statistics().msg_depth, 2, "what is in a transaction is not the consumer's");
    transaction.give_back(bench.now, &bench.held(consumer, false), &[0, 1]).perform();
    bench.rollback(transaction);
    bench.accept(consumer, &[0]);
    assert_eq!(bench.statistics().msg_depth, 1, "now it is");
    bench.unsubscribe(consumer);
    assert_eq!(bench.statistics().unacked_messages, 0);
}

#[test]
fn every_outcome_may_be_in_a_transaction_and_the_last_one_told_counts() {
    let mut bench = QueueBench::default();
    bench.send(&["accepted", "rejected", "released", "modified", "changed"]);
    let consumer = bench.consumer();
    bench.take(consumer, 5);
    let mut transaction = bench.begin();
    let settle = |(position, outcome)| Settlement { position, outcome };
    let elsewhere = Outcome::Modify { failed: true, undeliverable_here: true, annotations: None };
    let outcomes = [
        (0, Outcome::Accept),
        (1, Outcome::Reject),
        (2, Outcome::Release),
        (3, elsewhere),
        (4, Outcome::Reject),
        (4, Outcome::Release),
    ];
    let held = bench.held(consumer, true);
    let outcomes: Vec<_> = outcomes.into_iter().map(settle).collect();
    transaction.settle(bench.now, &held, &outcomes).perform();
    assert_eq!(bench.statistics().discards_subscriber, 0, "nothing has happened yet");
    bench.commit(transaction).unwrap();
    let numbers = bench.statistics();
    assert_eq!((numbers.msg_depth, numbers.discards_subscriber), (3, 1));
    assert_eq!(bench.take(consumer, 5).texts, ["released", "changed"]);
    let other = bench.consumer();
    let got = bench.take(other, 5);
    assert_eq!((got.texts, got.deliveries[0].delivery_count), (vec!["modified".to_owned()], 1));
}

#[test]
fn a_commit_concerns_several_queues_or_none() {
    let mut bench = QueueBench::default();
    let other = bench.broker.create("other", QueueSettings::default()).unwrap();
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a"]);
    bench.post_to(&mut transaction, &other, &["b", "c"]);
    bench.commit(transaction).unwrap();
    assert_eq!((bench.statistics().msg_depth, other.statistics().msg_depth), (1, 2));

    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["d"]);
    bench.post_to(&mut transaction, &other, &["e"]);
    other.delete(DeleteIf::default()).unwrap().perform();
    let fault = bench.commit(transaction).unwrap_err();
    assert_eq!(fault, Fault::QueueDeleted { name: "other".into() });
    assert_eq!(bench.statistics().msg_depth, 1, "nothing of it is there");
    assert_eq!(bench.totals(), (0, 1, 1));
}

#[test]
fn room_is_kept_from_the_moment_a_message_comes_so_that_a_commit_cannot_fail_for_it() {
    let limit =
        QueueSettings { max_count: Some(3), flow_stop_count: Some(0), ..QueueSettings::default() };
    let mut bench = QueueBench::new(limit);
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a", "b"]);
    assert_eq!(bench.send(&["c", "d"]).rejected.len(), 1, "two places are taken");
    bench.commit(transaction).unwrap();
    assert_eq!(bench.statistics().msg_depth, 3);
}

#[test]
fn a_message_that_is_refused_dooms_its_transaction() {
    let limit =
        QueueSettings { max_count: Some(2), flow_stop_count: Some(0), ..QueueSettings::default() };
    let mut bench = QueueBench::new(limit);
    let empty = bench.broker.budget().used();
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a"]);
    let enqueued = bench.post(&mut transaction, &["b", "c"]);
    assert_eq!((enqueued.accepted, enqueued.rejected.len()), (1, 1));
    assert_eq!(bench.broker.budget().used(), empty, "it keeps nothing any more");
    let enqueued = bench.post(&mut transaction, &["d"]);
    assert_eq!(enqueued.rejected[0].reason, Refusal::Doomed);
    let fault = bench.commit(transaction).unwrap_err();
    assert_eq!(fault, Fault::Refused(Refusal::Count));
    assert_eq!(bench.send(&["x", "y"]).accepted, 2, "the room is there again");
}

#[test]
fn a_producer_that_waits_for_room_goes_on_when_a_transaction_gives_it_back() {
    let limit = QueueSettings {
        max_count: Some(10),
        flow_stop_count: Some(4),
        flow_resume_count: Some(2),
        ..QueueSettings::default()
    };
    let mut bench = QueueBench::new(limit);
    let producer = bench.producer();
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a", "b", "c", "d", "e"]);
    assert_eq!(bench.grant(producer, 10), 0);
    bench.rollback(transaction);
    assert_eq!(bench.woken(), [producer.key]);
    assert!(bench.grant(producer, 10) > 0);
}

#[test]
fn operations_and_bytes_of_a_transaction_are_bounded() {
    let transactions =
        TransactionSettings { max_operations: 3, max_bytes: 1_000, ..<_>::default() };
    let settings = BrokerSettings { transactions, ..BrokerSettings::default() };
    let mut bench = QueueBench::with(settings, QueueSettings::default());
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a", "b"]);
    bench.post(&mut transaction, &["c", "d"]);
    let fault = bench.commit(transaction).unwrap_err();
    assert_eq!(fault, Fault::TooManyOperations { limit: 3 });

    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["x".repeat(1_000).as_str()]);
    assert_eq!(bench.commit(transaction).unwrap_err(), Fault::TooManyBytes { limit: 1_000 });

    bench.send(&["a", "b", "c", "d"]);
    let consumer = bench.consumer();
    let got = bench.take(consumer, 4);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &got.positions());
    assert_eq!(bench.take(consumer, 4).texts.len(), 4, "what is settled is not kept any longer");
    assert!(bench.commit(transaction).is_err());
}

#[test]
fn without_memory_a_transaction_is_doomed() {
    let settings = BrokerSettings { memory_limit_bytes: 100_000, ..BrokerSettings::default() };
    let mut bench = QueueBench::with(settings, QueueSettings::default());
    bench.send(&["a"]);
    let consumer = bench.consumer();
    bench.take(consumer, 1);
    let budget = Arc::clone(bench.broker.budget());
    let rest = budget.reserve(100_000 - budget.used()).unwrap();
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &[0]);
    drop(rest);
    assert!(matches!(bench.commit(transaction), Err(Fault::NoMemory(_))));
    assert_eq!(bench.take(consumer, 1).texts, ["a"]);
}

#[test]
fn what_a_consumer_has_settled_in_a_transaction_outlives_it() {
    let mut bench = QueueBench::default();
    bench.send(&["a", "b", "c"]);
    let consumer = bench.consumer();
    bench.take(consumer, 3);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &[0, 2]);
    bench.unsubscribe(consumer);
    let numbers = bench.statistics();
    assert_eq!((numbers.consumer_count, numbers.unacked_messages), (0, 2));
    let next = bench.consumer();
    assert_eq!(bench.take(next, 3).texts, ["b"], "what it had not settled is there again");
    bench.commit(transaction).unwrap();
    bench.accept(next, &[1]);
    assert_eq!(bench.statistics().msg_depth, 0);
}

#[test]
fn the_place_of_a_consumer_that_went_is_free_when_its_transaction_is_over() {
    let mut bench = QueueBench::default();
    bench.send(&["a"]);
    let consumer = bench.consumer();
    bench.take(consumer, 1);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &[0]);
    bench.unsubscribe(consumer);
    let next = bench.consumer();
    assert_ne!(format!("{:?}", next.id), format!("{:?}", consumer.id));
    bench.rollback(transaction);
    assert_eq!(bench.take(next, 1).texts, ["a"]);
    bench.unsubscribe(next);
    assert!(bench.queue.consumers().is_empty());
    bench.queue.delete(DeleteIf { unused: true, empty: false }).unwrap().perform();
}

#[test]
fn a_group_stays_with_its_consumer_until_the_transaction_is_over() {
    let mut bench = QueueBench::new(QueueSettings {
        group_header_key: Some("group".into()),
        shared_groups: true,
        ..QueueSettings::default()
    });
    let of_group = |text: &str| {
        let mut message = message(text);
        message.application_properties = Some(mochila_wire::Map::new().with("group", "g"));
        message
    };
    bench.send_messages(["1", "2", "3"].map(of_group).to_vec());
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.take(first, 1);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, first, &[0]);
    bench.unsubscribe(first);
    assert!(bench.take(second, 9).texts.is_empty(), "the group is not free");
    bench.woken();
    bench.rollback(transaction);
    assert_eq!(bench.woken(), [second.key]);
    assert_eq!(bench.take(second, 1).texts, ["1"], "the order is kept");
}

#[test]
fn i6_what_is_gone_while_a_transaction_has_it_is_not_dequeued_again() {
    for commits in [true, false] {
        let mut bench = QueueBench::default();
        let empty = bench.broker.budget().used();
        bench.send(&["a", "b"]);
        let consumer = bench.consumer();
        bench.take(consumer, 2);
        let mut transaction = bench.begin();
        bench.pledge(&mut transaction, consumer, &[0, 1]);
        // A purge takes what is available, and this is not.
        let (purged, wakeups) = bench.queue.purge(bench.now, u64::MAX);
        wakeups.perform();
        assert_eq!(purged, 0);
        bench.queue.delete(DeleteIf::default()).unwrap().perform();
        match commits {
            true => bench.commit(transaction).unwrap(),
            false => bench.rollback(transaction),
        }
        let total = bench.broker.statistics();
        assert_eq!((total.msg_total_enqueues, total.msg_total_dequeues), (2, 2));
        drop(bench.queue);
        assert!(bench.broker.budget().used() < empty);
    }
}

#[test]
fn i2_a_large_rollback_gives_everything_back_in_order() {
    let mut bench = QueueBench::default();
    bench.send_numbers(0..20_000);
    let consumer = bench.consumer();
    let got = bench.take(consumer, 20_000);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &got.positions());
    bench.rollback(transaction);
    let again = bench.take(consumer, 20_000);
    assert_eq!(again.texts, got.texts);
}

/// A body that looks, when it goes, how many messages the queue has left. That is without the
/// queue's lock, or it would wait for ever.
struct Witness {
    queue: Weak<SharedQueue>,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl LargeBody for Witness {
    fn len(&self) -> u64 {
        1_000
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let depth = self.queue.upgrade().map(|queue| queue.statistics().msg_depth);
        self.seen.lock().unwrap().extend(depth);
    }
}

#[test]
fn i2_a_large_rollback_is_done_in_pieces_between_which_others_have_the_queue() {
    // Each of them has had its last attempt, and goes; so the pieces can be seen.
    let settings = QueueSettings { max_delivery_count: Some(1), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let seen = Arc::default();
    for _ in 0..200 {
        let mut builder = BatchBuilder::new();
        for _ in 0..64 {
            let (queue, seen) = (Arc::downgrade(&bench.queue), Arc::clone(&seen));
            let body = Arc::new(Witness { queue, seen });
            let meta = MessageMeta::default();
            builder.push_large(vec![7; 10], &Sections::default(), meta, body);
        }
        let batch = builder.finish(&[], bench.broker.budget()).unwrap();
        bench.queue.enqueue(bench.now, batch).1.perform();
    }
    let consumer = bench.consumer();
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 12_800, bytes: usize::MAX };
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    let positions: Vec<_> = taken.deliveries().iter().map(|it| it.position).collect();
    drop(taken);
    let mut transaction = bench.begin();
    bench.pledge(&mut transaction, consumer, &positions);
    transaction.rollback_with(bench.now, &FAILED).perform();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), 12_800);
    seen.dedup();
    assert_eq!(seen, [12_800 - 4_096, 12_800 - 2 * 4_096, 12_800 - 3 * 4_096, 0]);
}

#[test]
fn the_time_to_live_of_a_message_begins_when_it_comes() {
    let mut bench = QueueBench::default();
    let (now, queue) = (bench.now, Arc::clone(&bench.queue));
    let mut transaction = bench.begin();
    let mut short = message("short");
    short.header = Some(mochila_wire::message::Header { ttl: Some(1_000), ..<_>::default() });
    bench.batch(vec![short, message("long")], |batch| {
        transaction.enqueue(now, &queue, batch, true).1.perform();
    });
    bench.pass(1_500);
    bench.commit(transaction).unwrap();
    bench.pass(100);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 2).texts, ["long"]);
}

#[test]
fn a_queue_that_goes_without_messages_stays_as_long_as_some_are_to_come() {
    let lifetime = Some(mochila_broker::settings::LifetimePolicy::DeleteOnNoLinksOrMessages);
    let mut bench = QueueBench::new(QueueSettings { lifetime, ..QueueSettings::default() });
    let producer = bench.producer();
    let mut transaction = bench.begin();
    bench.post(&mut transaction, &["a"]);
    bench.detach(producer);
    assert!(!bench.queue.is_deleted());
    bench.rollback(transaction);
    assert!(bench.queue.is_deleted());
}

#[test]
fn a_transaction_is_about_so_many_queues_and_no_more() {
    let mut bench = QueueBench::default();
    let mut transaction = bench.begin();
    for number in 0..1_025 {
        let queue = bench.broker.open(&format!("queue-{number}")).unwrap();
        bench.post_to(&mut transaction, &queue, &["a"]);
    }
    let fault = bench.commit(transaction).unwrap_err();
    assert_eq!(fault, Fault::TooManyQueues { limit: 1_024 });
    assert_eq!(bench.broker.statistics().msg_depth, 0);
}

#[test]
fn nobody_looks_closely_while_very_many_wait_for_room() {
    let bench = QueueBench::default();
    let wait = |connection| Wait {
        waiter: Waiter { connection, session: 0 },
        queue: Arc::clone(&bench.queue),
        kept: Arc::new([]),
        since_ms: bench.now.mono_ms,
    };
    let some: Vec<_> = (0..1_000).map(|number| bench.broker.wait_for_room(wait(number))).collect();
    assert!(!some[0].is_standoff(bench.now), "nobody keeps room for which it could wait");
    let more = bench.broker.wait_for_room(wait(1_000));
    assert!(some[0].is_standoff(bench.now));
    drop(more);
    assert!(!some[0].is_standoff(bench.now));
}
