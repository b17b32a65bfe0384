//! What becomes of messages that consumers were given.

use crate::bench::{QueueBench, message};
use mochila_broker::{Added, Outcome, TakeLimit, Taken, Taking};
use mochila_wire::{Map, Value};

fn modify(failed: bool, undeliverable_here: bool) -> Outcome {
    Outcome::Modify { failed, undeliverable_here, annotations: None }
}

#[test]
fn c7_released_messages_return_to_their_original_places_in_whatever_order_they_come() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a", "b", "c", "d", "e"]);
    let positions = bench.take(consumer, 4).positions();
    for index in [2, 0, 3, 1] {
        bench.release(consumer, &positions[index..=index]);
    }
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_released_message_wakes_whoever_waits() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send(&["a"]);
    let positions = bench.take(first, 1).positions();
    assert_eq!(bench.take(second, 1).taking, Taking::Waiting);
    bench.release(first, &positions);
    assert_eq!(bench.woken(), [second.key]);
    assert_eq!(bench.take(second, 1).texts, ["a"]);
}

#[test]
fn what_a_consumer_holds_goes_back_when_it_leaves() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send_numbers(0..6);
    let held = bench.take(first, 4).positions();
    bench.accept(first, &held[1..3]);
    bench.take(second, 10);
    bench.unsubscribe(first);
    assert_eq!(bench.woken(), [second.key]);
    assert_eq!(bench.take(second, 10).texts, ["0", "3"]);
}

#[test]
fn an_outcome_for_a_message_that_somebody_else_holds_changes_nothing() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send(&["a"]);
    let positions = bench.take(first, 1).positions();
    bench.accept(second, &positions);
    bench.settle(second, &[positions[0], 77, u64::MAX], Outcome::Reject);
    assert_eq!(bench.statistics().unacked_messages, 1);
    bench.accept(first, &positions);
    bench.accept(first, &positions);
    assert_eq!(bench.statistics().msg_depth, 0);
}

#[test]
fn a_range_of_messages_is_accepted_at_once() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send_numbers(0..1_000);
    bench.take(first, 300);
    let theirs = bench.take(second, 300);
    bench.take(first, 300);
    bench.queue.accept_range(bench.now, first.id, 0, 799).perform();
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.unacked_messages), (500, 400));
    bench.queue.accept_range(bench.now, second.id, 0, u64::MAX).perform();
    assert_eq!(bench.statistics().msg_depth, 200);
    assert_eq!(theirs.texts.len(), 300);
    bench.queue.settle_all(bench.now, first.id, &Outcome::Accept).perform();
    assert_eq!(bench.statistics().msg_depth, 100);
}

#[test]
fn a_failed_delivery_counts_and_a_release_does_not() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a"]);
    for (outcome, count) in [(Outcome::Release, 0), (modify(true, false), 0), (Outcome::Release, 1)]
    {
        let (position, message) = bench.receive(consumer);
        assert_eq!(message.header.unwrap_or_default().delivery_count, count);
        bench.settle(consumer, &[position], outcome);
    }
}

#[test]
fn a_message_goes_out_as_it_came_in_unless_something_has_changed() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a"]);
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 1, bytes: usize::MAX };
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    let delivery = taken.deliveries()[0];
    assert!(taken.patch(&delivery, &mut Added::new()).is_none());
    assert!(!delivery.was_acquired());
    bench.release(consumer, &[delivery.position]);
    taken.clear();
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    let delivery = taken.deliveries()[0];
    assert!(taken.patch(&delivery, &mut Added::new()).is_none());
    assert!(delivery.was_acquired());
}

#[test]
fn a_message_that_claims_a_first_acquirer_has_one_only_once() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let mut message = message("a");
    message.header_mut().first_acquirer = true;
    bench.send_messages(vec![message]);
    for first in [true, false] {
        let (position, message) = bench.receive(consumer);
        assert_eq!(message.header.unwrap().first_acquirer, first);
        bench.release(consumer, &[position]);
    }
}

#[test]
fn delivery_annotations_are_for_one_hop_only() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let mut message = message("a");
    message.delivery_annotations = Some(Map::new().with("x-opt-hop", 1u32));
    message.set_message_annotation("x-opt-all", 2u32);
    bench.send_messages(vec![message]);
    let (_, message) = bench.receive(consumer);
    assert_eq!(message.delivery_annotations, None);
    assert_eq!(message.message_annotation("x-opt-all"), Some(&Value::Uint(2)));
}

#[test]
fn annotations_of_a_modified_message_are_there_when_it_comes_again() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let mut message = message("a");
    message.set_message_annotation("x-opt-old", 1u32);
    bench.send_messages(vec![message]);
    for (key, value) in [("x-opt-new", 2u32), ("x-opt-old", 3)] {
        let (position, _) = bench.receive(consumer);
        let annotations = Some(Box::new(Map::new().with(key, value)));
        let outcome = Outcome::Modify { failed: false, undeliverable_here: false, annotations };
        bench.settle(consumer, &[position], outcome);
    }
    let (position, message) = bench.receive(consumer);
    assert_eq!(message.message_annotation("x-opt-new"), Some(&Value::Uint(2)));
    assert_eq!(message.message_annotation("x-opt-old"), Some(&Value::Uint(3)));
    let used = bench.broker.budget().used();
    bench.accept(consumer, &[position]);
    assert!(bench.broker.budget().used() < used);
}

#[test]
fn a_message_that_is_undeliverable_here_goes_to_somebody_else() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send(&["a", "b"]);
    bench.take(second, 0);
    let positions = bench.take(first, 1).positions();
    bench.settle(first, &positions, modify(true, true));
    let got = bench.take(first, 10);
    assert_eq!((got.texts, got.taking), (vec!["b".to_owned()], Taking::Waiting));
    assert_eq!(bench.take(second, 10).texts, ["a"]);
}

#[test]
fn whoever_waits_behind_one_that_may_not_take_the_message_is_woken_instead() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send(&["a"]);
    let positions = bench.take(first, 1).positions();
    bench.take(second, 1);
    bench.settle(first, &positions, modify(false, true));
    assert_eq!(bench.woken(), [second.key]);
    // The second is on its way. The first finds nothing for itself, and must not wake anybody.
    assert_eq!(bench.take(first, 1).taking, Taking::Waiting);
    assert_eq!(bench.woken(), []);
    // The second cannot take it after all; the first still may not.
    bench.idle(second);
    assert_eq!(bench.woken(), []);
    bench.send(&["b"]);
    assert_eq!(bench.woken(), [first.key]);
    assert_eq!(bench.take(first, 1).texts, ["b"]);
}

#[test]
fn a_rejected_message_is_gone_and_counted() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a"]);
    let positions = bench.take(consumer, 1).positions();
    bench.settle(consumer, &positions, Outcome::Reject);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_subscriber), (0, 1));
}

#[test]
fn what_a_consumer_could_not_pass_on_goes_back_to_its_place() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a", "b", "c"]);
    let positions = bench.take(consumer, 10).positions();
    bench.queue.give_back(bench.now, consumer.id, &positions[1..]).perform();
    assert_eq!(bench.woken(), [consumer.key]);
    assert_eq!(bench.take(consumer, 10).texts, ["b", "c"]);
    assert_eq!(bench.statistics().unacked_messages, 3);
}

fn with_limit(max_delivery_count: u64) -> QueueBench {
    let settings = mochila_broker::QueueSettings {
        max_delivery_count: Some(max_delivery_count),
        ..Default::default()
    };
    QueueBench::new(settings)
}

#[test]
fn j8_a_message_that_always_fails_goes_round_only_so_often() {
    let mut bench = with_limit(3);
    let consumer = bench.consumer();
    bench.send(&["poison", "food"]);
    for attempt in 0..3 {
        let got = bench.take(consumer, 1);
        assert_eq!((&got.texts[0][..], got.deliveries[0].delivery_count), ("poison", attempt));
        bench.settle(consumer, &got.positions(), modify(true, false));
    }
    assert_eq!(bench.take(consumer, 9).texts, ["food"]);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_max_delivery), (1, 1));
    assert_eq!(statistics.msg_total_dequeues, 1);
}

#[test]
fn a_message_that_ends_its_consumers_is_given_up_too() {
    let mut bench = with_limit(2);
    bench.send(&["poison"]);
    for _ in 0..2 {
        let consumer = bench.consumer();
        assert_eq!(bench.take(consumer, 1).texts, ["poison"]);
        bench.queue.unsubscribe_with(bench.now, consumer.id, &modify(true, false)).perform();
    }
    assert_eq!(bench.statistics().msg_depth, 0);
}

#[test]
fn a_message_that_is_only_released_may_come_again_for_ever() {
    let mut bench = with_limit(1);
    let consumer = bench.consumer();
    bench.send(&["a"]);
    for _ in 0..5 {
        let positions = bench.take(consumer, 1).positions();
        bench.release(consumer, &positions);
        let positions = bench.take(consumer, 1).positions();
        bench.settle(consumer, &positions, modify(false, false));
    }
    assert_eq!(bench.statistics().msg_depth, 1);
}
