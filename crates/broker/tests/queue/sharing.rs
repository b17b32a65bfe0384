//! Who gets which message, and who is woken.

use crate::bench::QueueBench;
use mochila_broker::{TakeLimit, Taking};

#[test]
fn messages_leave_in_the_order_in_which_they_came() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a", "b"]);
    bench.send(&["c"]);
    let got = bench.take(consumer, 10);
    assert_eq!(got.texts, ["a", "b", "c"]);
    assert_eq!(got.taking, Taking::Waiting);
}

#[test]
fn a_consumer_that_found_nothing_is_woken_by_the_next_enqueue() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).taking, Taking::Waiting);
    assert_eq!(bench.woken(), []);
    bench.send(&["a"]);
    assert_eq!(bench.woken(), [consumer.key]);
    bench.send(&["b"]);
    assert_eq!(bench.woken(), [], "it is on its way already");
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b"]);
}

#[test]
fn a_consumer_that_got_all_it_asked_for_is_not_woken() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a"]);
    assert_eq!(bench.take(consumer, 1).taking, Taking::Satisfied);
    bench.send(&["b"]);
    assert_eq!(bench.woken(), []);
}

#[test]
fn as_many_consumers_are_woken_as_there_are_messages_in_turn() {
    let mut bench = QueueBench::default();
    let consumers = [bench.consumer(), bench.consumer(), bench.consumer()];
    for consumer in consumers {
        bench.take(consumer, 10);
    }
    bench.send(&["a"]);
    assert_eq!(bench.woken(), [consumers[0].key]);
    assert_eq!(bench.take(consumers[0], 10).texts, ["a"]);
    bench.send(&["b", "c"]);
    assert_eq!(bench.woken(), [consumers[1].key, consumers[2].key]);
}

#[test]
fn those_who_are_woken_together_get_a_fair_share_each() {
    let mut bench = QueueBench::default();
    let consumers = [bench.consumer(), bench.consumer(), bench.consumer()];
    for consumer in consumers {
        bench.take(consumer, 100);
    }
    bench.send_numbers(0..10);
    let shares = consumers.map(|consumer| bench.take(consumer, 100));
    assert_eq!(shares.each_ref().map(|got| got.texts.len()), [4, 2, 2]);
    assert!(shares.iter().all(|got| got.taking == Taking::More));
    let rest = consumers.map(|consumer| bench.take(consumer, 100).texts.len());
    assert_eq!(rest.iter().sum::<usize>(), 2);
}

#[test]
fn a_consumer_that_comes_uncalled_leaves_a_message_to_the_one_who_was_called() {
    let mut bench = QueueBench::default();
    let (eager, patient) = (bench.consumer(), bench.consumer());
    bench.take(eager, 10);
    bench.take(patient, 10);
    bench.send(&["a"]);
    assert_eq!(bench.take(eager, 10).texts, ["a"]);
    bench.woken();
    bench.send(&["b"]);
    assert_eq!(bench.woken(), [patient.key]);
    let got = bench.take(eager, 10);
    assert_eq!((got.texts.len(), got.taking), (0, Taking::Waiting));
    assert_eq!(bench.take(patient, 10).texts, ["b"]);
}

#[test]
fn a_consumer_that_left_a_message_to_another_is_called_if_that_one_cannot_take_it() {
    let mut bench = QueueBench::default();
    let (called, uncalled) = (bench.consumer(), bench.consumer());
    bench.take(called, 10);
    bench.send(&["a"]);
    assert_eq!(bench.woken(), [called.key]);
    assert_eq!(bench.take(uncalled, 10).taking, Taking::Waiting);
    bench.idle(called);
    assert_eq!(bench.woken(), [uncalled.key]);
    assert_eq!(bench.take(uncalled, 10).texts, ["a"]);
}

#[test]
fn a_consumer_alone_gets_everything_at_once() {
    let mut bench = QueueBench::default();
    let (consumer, idle) = (bench.consumer(), bench.consumer());
    bench.take(idle, 1);
    bench.idle(idle);
    bench.send_numbers(0..1_000);
    assert_eq!(bench.take(consumer, 2_000).texts.len(), 1_000);
}

#[test]
fn a_woken_consumer_that_has_lost_its_credit_passes_the_message_on() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.take(first, 1);
    bench.take(second, 1);
    bench.send(&["a"]);
    assert_eq!(bench.woken(), [first.key]);
    bench.idle(first);
    assert_eq!(bench.woken(), [second.key]);
}

#[test]
fn a_woken_consumer_that_leaves_passes_the_message_on() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.take(first, 1);
    bench.take(second, 1);
    bench.send(&["a"]);
    bench.unsubscribe(first);
    assert_eq!(bench.woken(), [first.key, second.key]);
}

#[test]
fn a_take_stops_at_the_bytes_it_has_room_for_but_gives_one_message_at_least() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let long = "x".repeat(500);
    bench.send(&[&long, &long, &long]);
    let limit = TakeLimit { messages: 10, bytes: 100 };
    let got = bench.take_limited(consumer, limit);
    assert_eq!((got.texts.len(), got.taking), (1, Taking::More));
    let limit = TakeLimit { messages: 10, bytes: 1_100 };
    assert_eq!(bench.take_limited(consumer, limit).texts.len(), 2);
}

#[test]
fn a_settled_consumer_takes_messages_out_for_good() {
    let mut bench = QueueBench::default();
    let consumer = bench.subscribe(|options| options.settled = true);
    bench.send(&["a", "b"]);
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b"]);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.unacked_messages), (0, 0));
    assert_eq!((statistics.acquires, statistics.msg_total_dequeues), (2, 2));
}
