//! Queues that drop old messages to make room for new ones.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{Held, Outcome, QueueSettings, Refusal, Settlement, Transaction};

fn ring(max_count: u64) -> QueueSettings {
    QueueSettings {
        max_count: Some(max_count),
        limit_policy: LimitPolicy::Ring,
        ..QueueSettings::default()
    }
}

fn ring_of_bytes(max_bytes: u64) -> QueueSettings {
    QueueSettings { max_count: None, max_bytes: Some(max_bytes), ..ring(0) }
}

#[test]
fn a_full_ring_takes_every_message_and_drops_the_oldest() {
    let mut bench = QueueBench::new(ring(3));
    let enqueued = bench.send(&["a", "b", "c", "d"]);
    assert_eq!((enqueued.accepted, enqueued.rejected.len()), (4, 0));
    bench.send(&["e"]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["c", "d", "e"]);
    let statistics = bench.statistics();
    assert_eq!((statistics.discards_ring, statistics.msg_depth), (2, 3));
    assert_eq!((statistics.msg_total_enqueues, statistics.msg_total_dequeues), (5, 2));
}

#[test]
fn producers_of_a_ring_are_never_held_back() {
    let mut bench = QueueBench::new(ring(3));
    let producer = bench.producer();
    bench.send_numbers(0..100);
    assert_eq!(bench.grant(producer, 1_000), 1_000);
    assert_eq!(bench.statistics().flow_stopped, 0);
}

#[test]
fn a_ring_of_bytes_drops_as_many_as_the_new_message_needs() {
    let body = "x".repeat(100);
    let size = mochila_wire::Encode::to_bytes(&message(&body)).len() as u64;
    let mut bench = QueueBench::new(ring_of_bytes(3 * size));
    bench.send(&[&body, &body, "short", &body]);
    assert_eq!(bench.statistics().discards_ring, 1);
    bench.send(&[&"y".repeat(150)]);
    let consumer = bench.consumer();
    let texts = bench.take(consumer, 10).texts;
    assert_eq!(texts, ["short", &body, &"y".repeat(150)]);
}

#[test]
fn a_message_that_is_larger_than_the_ring_is_rejected_and_nothing_is_dropped_for_it() {
    let mut bench = QueueBench::new(ring_of_bytes(100));
    let enqueued = bench.send(&["a", &"x".repeat(200), "b"]);
    let rejected = &enqueued.rejected;
    assert_eq!((rejected.len(), rejected[0].index, rejected[0].reason), (1, 1, Refusal::TooLarge));
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b"]);
    assert_eq!(bench.statistics().discards_ring, 0);
}

#[test]
fn what_a_consumer_holds_is_never_dropped() {
    let mut bench = QueueBench::new(ring(5));
    let consumer = bench.consumer();
    bench.send(&["m0", "m1", "m2", "m3", "m4"]);
    let held = bench.take(consumer, 3).positions();
    bench.send(&["m5", "m6", "m7"]);
    assert_eq!(bench.statistics().msg_depth, 5);
    // What comes back has its old place, and is the next to be dropped.
    bench.release(consumer, &held);
    assert_eq!(bench.take(consumer, 10).texts, ["m0", "m1", "m2", "m6", "m7"]);
}

/// A consumer that holds so many messages of a ring as came while it took each at once.
fn holding(bench: &mut QueueBench, messages: usize) -> (BenchConsumer, Vec<u64>) {
    let consumer = bench.consumer();
    let mut held = Vec::new();
    for number in 0..messages {
        bench.send(&[&number.to_string()]);
        held.extend(bench.take(consumer, 1).positions());
    }
    assert_eq!(held.len(), messages);
    (consumer, held)
}

/// What is left in a ring for those who come, in order.
fn rest(bench: &mut QueueBench) -> Vec<String> {
    let consumer = bench.consumer();
    bench.take(consumer, 100).texts
}

/// A transaction in which consumers have settled messages.
fn settled_in(bench: &QueueBench, settled: &[(BenchConsumer, &[u64], Outcome)]) -> Transaction {
    let mut transaction = bench.broker.begin();
    for (consumer, held, outcome) in settled {
        let settle = |position: &u64| Settlement { position: *position, outcome: outcome.clone() };
        let settlements: Vec<_> = held.iter().map(settle).collect();
        let held = Held {
            queue: &bench.queue,
            consumer: consumer.id,
            default_outcome: &Outcome::Release,
            settled: true,
        };
        transaction.settle(bench.now, &held, &settlements).perform();
    }
    transaction
}

/// A way in which messages come back that a consumer held.
type Return = fn(&mut QueueBench, BenchConsumer, &[u64]);

#[test]
fn when_messages_come_back_the_oldest_are_dropped_at_once_down_to_the_limit() {
    let ways: [(&str, Return); 6] = [
        ("released", |bench, consumer, held| bench.release(consumer, held)),
        ("modified", |bench, consumer, held| {
            let outcome =
                Outcome::Modify { failed: true, undeliverable_here: false, annotations: None };
            bench.settle(consumer, held, outcome);
        }),
        ("the link is gone", |bench, consumer, _| bench.unsubscribe(consumer)),
        ("not passed on", |bench, consumer, held| {
            bench.queue.give_back(bench.now, consumer.id, held).perform();
        }),
        ("rolled back", |bench, consumer, held| {
            let transaction = settled_in(bench, &[(consumer, held, Outcome::Accept)]);
            transaction.rollback(bench.now).perform();
        }),
        ("released by a commit", |bench, consumer, held| {
            let transaction = settled_in(bench, &[(consumer, held, Outcome::Release)]);
            transaction.commit(bench.now).unwrap().perform();
        }),
    ];
    for (way, come_back) in ways {
        let mut bench = QueueBench::new(ring(3));
        let (consumer, held) = holding(&mut bench, 5);
        bench.send(&["5"]);
        assert_eq!(bench.statistics().msg_depth, 6, "{way}");
        come_back(&mut bench, consumer, &held);
        let statistics = bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.discards_ring), (3, 3), "{way}");
        assert_eq!((statistics.unacked_messages, statistics.msg_total_dequeues), (0, 3), "{way}");
        assert_eq!(rest(&mut bench), ["3", "4", "5"], "{way}");
    }
}

#[test]
fn a_ring_of_bytes_drops_what_is_too_much_when_messages_come_back() {
    let size = mochila_wire::Encode::to_bytes(&message("0")).len() as u64;
    let mut bench = QueueBench::new(ring_of_bytes(3 * size));
    let (consumer, held) = holding(&mut bench, 5);
    bench.release(consumer, &held[1..4]);
    // What is still held is not dropped.
    assert_eq!((bench.statistics().byte_depth, bench.statistics().discards_ring), (3 * size, 2));
    bench.release(consumer, &held);
    assert_eq!(rest(&mut bench), ["0", "3", "4"]);
}

#[test]
fn what_comes_back_to_a_ring_with_priorities_is_dropped_if_it_is_the_least_urgent() {
    let mut bench = QueueBench::new(QueueSettings { priorities: Some(10), ..ring(3) });
    let urgent = |text: &str, priority| {
        let mut message = message(text);
        message.header_mut().priority = priority;
        message
    };
    let consumer = bench.consumer();
    let mut held = Vec::new();
    for (text, priority) in [("urgent", 9), ("idle", 1), ("usual", 4), ("later", 4), ("new", 2)] {
        bench.send_messages(vec![urgent(text, priority)]);
        held.extend(bench.take(consumer, 1).positions());
    }
    bench.release(consumer, &held);
    assert_eq!(rest(&mut bench), ["urgent", "usual", "later"]);
}

#[test]
fn what_is_dropped_when_messages_come_back_is_a_dead_letter() {
    let mut bench = QueueBench::default();
    let mut dead = bench.beside("dead", QueueSettings::default());
    let fanout = bench.broker.exchange("amq.fanout").unwrap();
    fanout.bind(bench.now, &dead.queue, "", mochila_wire::Map::new()).unwrap().1.perform();
    let settings = QueueSettings { alternate_exchange: Some("amq.fanout".into()), ..ring(2) };
    bench.queue.set_settings(bench.now, settings).unwrap().perform();
    let (consumer, held) = holding(&mut bench, 4);
    bench.release(consumer, &held);
    let reader = dead.consumer();
    for text in ["0", "1"] {
        let (_, letter) = dead.receive(reader);
        assert_eq!(letter.body, message(text).body);
        let reason = letter.message_annotations.unwrap().get("x-opt-deadletter-reason").cloned();
        assert_eq!(reason, Some("overflow".into()));
    }
}

#[test]
fn what_leaves_in_the_same_commit_makes_room_for_what_comes_back() {
    let mut bench = QueueBench::new(ring(2));
    let (one, first) = holding(&mut bench, 2);
    let (other, second) = holding(&mut bench, 2);
    let settled = [(one, &first[..], Outcome::Release), (other, &second[..], Outcome::Accept)];
    let transaction = settled_in(&bench, &settled);
    transaction.commit(bench.now).unwrap().perform();
    assert_eq!(bench.statistics().discards_ring, 0);
    assert_eq!(bench.take(one, 9).positions(), first);
}

#[test]
fn the_last_message_stays_beside_those_that_consumers_hold_up_to_twice_the_limit() {
    let mut bench = QueueBench::new(ring(2));
    let consumer = bench.consumer();
    let mut held = Vec::new();
    bench.send(&["a", "b"]);
    held.extend(bench.take(consumer, 2).positions());
    bench.send(&["c"]);
    bench.send(&["d"]);
    let got = bench.take(consumer, 10);
    assert_eq!(got.texts, ["d"], "of the new ones, the newest");
    held.extend(got.positions());
    bench.send(&["e"]);
    held.extend(bench.take(consumer, 10).positions());
    assert_eq!(bench.statistics().msg_depth, 4);
    // With twice the limit in the hands of consumers, new messages are dropped themselves.
    assert_eq!(bench.send(&["f"]).accepted, 1);
    assert_eq!((bench.statistics().msg_depth, bench.statistics().discards_ring), (4, 2));
    bench.accept(consumer, &held);
    bench.send(&["g"]);
    assert_eq!(bench.take(consumer, 10).texts, ["g"]);
}

#[test]
fn a_browser_sees_what_is_left_and_waits_for_the_next() {
    let mut bench = QueueBench::new(ring(2));
    let browser = bench.browser();
    bench.send(&["a", "b"]);
    assert_eq!(bench.take(browser, 1).texts, ["a"]);
    bench.send(&["c", "d"]);
    assert_eq!(bench.take(browser, 10).texts, ["c", "d"]);
}

#[test]
fn lower_limits_are_reached_at_once() {
    let mut bench = QueueBench::new(ring(100));
    bench.send_numbers(0..100);
    let wakeups = bench.queue.set_settings(bench.now, ring(2)).unwrap();
    bench.perform(wakeups);
    assert_eq!(bench.statistics().discards_ring, 98);
    assert_eq!(rest(&mut bench), ["98", "99"]);
}

#[test]
fn limits_that_are_much_lower_are_reached_in_pieces_between_which_others_have_the_queue() {
    let mut bench = QueueBench::new(ring(100_000));
    (0..100).for_each(|_| drop(bench.send(&["x"; 1_000])));
    bench.queue.set_settings(bench.now, ring(10)).unwrap().perform();
    let depth = bench.statistics().msg_depth;
    assert!((10..100_000).contains(&depth), "{depth}");
    assert_eq!(bench.broker.next_timeout_ms(), Some(0), "the rest is due");
    bench.pass(0);
    assert_eq!(bench.statistics().msg_depth, 10);
    bench.pass(0);
    assert_eq!(bench.broker.next_timeout_ms(), None);
}

#[test]
fn what_has_expired_is_not_counted_as_dropped() {
    let mut bench = QueueBench::new(ring(2));
    let mut short = message("short");
    short.header_mut().ttl = Some(10);
    bench.send_messages(vec![short]);
    bench.now = bench.now.after(10);
    bench.send(&["a", "b"]);
    let statistics = bench.statistics();
    assert_eq!((statistics.discards_ring, statistics.discards_ttl), (0, 1));
}

#[test]
fn i6_a_message_that_a_consumer_holds_is_settled_once_whatever_the_ring_has_dropped_around_it() {
    let mut bench = QueueBench::new(ring(2));
    let consumer = bench.consumer();
    bench.send(&["a"]);
    let held = bench.take(consumer, 1).positions();
    bench.send(&["b", "c", "d"]);
    bench.accept(consumer, &held);
    bench.accept(consumer, &held);
    bench.settle(consumer, &held, Outcome::Reject);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.msg_total_dequeues), (1, 3));
    assert_eq!((statistics.discards_ring, statistics.discards_subscriber), (2, 0));
}
