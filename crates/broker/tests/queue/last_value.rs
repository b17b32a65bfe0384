//! Queues that keep one message of each key, the last.

use crate::bench::{QueueBench, message};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{Enqueued, Outcome, QueueSettings, Refusal};
use mochila_wire::{Encode, Message, Value};

fn settings() -> QueueSettings {
    QueueSettings { last_value_key: Some("stock".into()), ..QueueSettings::default() }
}

fn bench() -> QueueBench {
    QueueBench::new(settings())
}

fn keyed(key: impl Into<Value>, text: &str) -> Message {
    let mut message = message(text);
    message.set_application_property("stock", key);
    message
}

/// Sends messages, each a key and a text.
fn send(bench: &mut QueueBench, messages: &[(&str, &str)]) -> Enqueued {
    bench.send_messages(messages.iter().map(|(key, text)| keyed(*key, text)).collect())
}

#[test]
fn a_new_value_stands_at_the_end_and_the_old_one_is_gone() {
    let mut bench = bench();
    send(&mut bench, &[("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")]);
    send(&mut bench, &[("b", "b2"), ("b", "b3")]);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_lvq), (3, 3));
    assert_eq!((statistics.msg_total_enqueues, statistics.msg_total_dequeues), (6, 3));
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["a2", "c1", "b3"]);
}

#[test]
fn messages_without_the_key_or_with_an_empty_one_are_alike_and_seven_is_seven() {
    let mut bench = bench();
    bench.send(&["none"]);
    send(&mut bench, &[("", "empty")]);
    bench.send_messages(vec![keyed(7u32, "number"), keyed("7", "text")]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["empty", "text"]);
}

#[test]
fn a_browser_sees_each_value_and_later_its_updates() {
    let mut bench = bench();
    send(&mut bench, &[("a", "a1"), ("b", "b1")]);
    let browser = bench.browser();
    assert_eq!(bench.take(browser, 10).texts, ["a1", "b1"]);
    send(&mut bench, &[("a", "a2")]);
    assert_eq!(bench.woken(), [browser.key]);
    assert_eq!(bench.take(browser, 10).texts, ["a2"]);
    let late = bench.browser();
    assert_eq!(bench.take(late, 10).texts, ["b1", "a2"]);
}

#[test]
fn i6_a_message_that_is_replaced_while_somebody_holds_it_is_settled_cleanly() {
    for outcome in [Outcome::Accept, Outcome::Reject, Outcome::Release] {
        let mut bench = bench();
        let consumer = bench.consumer();
        send(&mut bench, &[("a", "a1"), ("b", "b1")]);
        let held = bench.take(consumer, 2).positions();
        send(&mut bench, &[("a", "a2")]);
        assert_eq!((bench.statistics().msg_depth, bench.statistics().unacked_messages), (2, 1));
        assert_eq!(bench.queue.consumers()[0].held, 1);
        bench.settle(consumer, &held[..1], outcome.clone());
        let statistics = bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.msg_total_dequeues), (2, 1), "{outcome:?}");
        assert_eq!((statistics.releases, statistics.discards_subscriber), (0, 0));
        bench.accept(consumer, &held[1..]);
        let positions = bench.take(consumer, 10).positions();
        bench.accept(consumer, &positions);
        let statistics = bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), (0, 0));
        assert_eq!(statistics.msg_total_dequeues, 3);
    }
}

#[test]
fn a_consumer_that_leaves_gives_back_only_what_has_not_been_replaced() {
    let mut bench = bench();
    let consumer = bench.consumer();
    send(&mut bench, &[("a", "a1"), ("b", "b1")]);
    bench.take(consumer, 2);
    send(&mut bench, &[("a", "a2")]);
    bench.unsubscribe(consumer);
    let next = bench.consumer();
    assert_eq!(bench.take(next, 10).texts, ["b1", "a2"]);
}

#[test]
fn a_value_that_has_been_taken_out_is_not_replaced() {
    let mut bench = bench();
    let consumer = bench.consumer();
    send(&mut bench, &[("a", "a1")]);
    let positions = bench.take(consumer, 1).positions();
    bench.accept(consumer, &positions);
    send(&mut bench, &[("a", "a2")]);
    assert_eq!((bench.statistics().discards_lvq, bench.statistics().msg_depth), (0, 1));
}

#[test]
fn a_full_queue_takes_new_values_of_the_keys_that_it_has() {
    // Without flow control the limit holds for everybody.
    let full = QueueSettings { max_count: Some(2), flow_stop_count: Some(0), ..settings() };
    let mut bench = QueueBench::new(full);
    send(&mut bench, &[("a", "a1"), ("b", "b1")]);
    let enqueued = send(&mut bench, &[("a", "a2"), ("c", "c1"), ("b", "b2"), ("a", "a3")]);
    let rejected: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!((enqueued.accepted, rejected), (3, vec![(1, Refusal::Count)]));
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["b2", "a3"]);
}

#[test]
fn a_value_that_would_be_too_large_does_not_push_out_the_old_one() {
    let size = keyed("a", "a1").to_bytes().len() as u64;
    let mut bench = QueueBench::new(QueueSettings { max_bytes: Some(size), ..settings() });
    send(&mut bench, &[("a", "a1")]);
    assert_eq!(send(&mut bench, &[("a", "longer")]).rejected.len(), 1);
    assert_eq!(send(&mut bench, &[("a", "a2")]).accepted, 1);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["a2"]);
}

#[test]
fn updates_do_not_stop_producers_as_long_as_the_keys_are_few() {
    let mut bench = QueueBench::new(QueueSettings { max_count: Some(1_000), ..settings() });
    let producer = bench.producer();
    for round in 0..100 {
        let text = round.to_string();
        let messages: Vec<_> = (0..750).map(|key| keyed(key as u64, &text)).collect();
        bench.send_messages(messages);
    }
    assert!(bench.grant(producer, 100) > 0);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.flow_stopped_count), (750, 0));
}

#[test]
fn a_ring_of_last_values_drops_the_value_that_is_oldest() {
    let mut bench = QueueBench::new(QueueSettings {
        max_count: Some(2),
        limit_policy: LimitPolicy::Ring,
        ..settings()
    });
    send(&mut bench, &[("a", "a1"), ("b", "b1"), ("a", "a2")]);
    assert_eq!(bench.statistics().discards_ring, 0);
    send(&mut bench, &[("c", "c1")]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["a2", "c1"]);
    assert_eq!((bench.statistics().discards_ring, bench.statistics().discards_lvq), (1, 1));
}

#[test]
fn keys_that_are_gone_take_no_memory() {
    let mut bench = bench();
    let used = bench.broker.budget().used();
    for key in 0..10_000u64 {
        bench.send_messages(vec![keyed(key, "value")]);
    }
    assert_eq!(bench.queue.purge(bench.now, u64::MAX).0, 10_000);
    let consumer = bench.consumer();
    bench.unsubscribe(consumer);
    assert_eq!((bench.broker.budget().used(), bench.statistics().memory_bytes), (used, 0));
}
