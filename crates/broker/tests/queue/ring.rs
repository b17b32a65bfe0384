//! Queues that drop old messages to make room for new ones.

use crate::bench::{QueueBench, message};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{Outcome, QueueSettings, Refusal};

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
fn lower_limits_are_reached_with_the_next_message() {
    let mut bench = QueueBench::new(ring(100));
    bench.send_numbers(0..100);
    let wakeups = bench.queue.set_settings(bench.now, ring(2)).unwrap();
    bench.perform(wakeups);
    bench.send(&["last"]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["99", "last"]);
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
