//! How much a queue may hold, and what its producers notice of it.

use crate::bench::QueueBench;
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{QueueError, QueueSettings, Refusal};

fn limited(max_count: u64) -> QueueSettings {
    QueueSettings {
        max_count: Some(max_count),
        flow_stop_count: Some(0),
        ..QueueSettings::default()
    }
}

#[test]
fn a_full_queue_rejects_what_does_not_fit_and_keeps_the_rest() {
    let mut bench = QueueBench::new(limited(2));
    let enqueued = bench.send(&["a", "b", "c", "d"]);
    let reasons: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!(enqueued.accepted, 2);
    assert_eq!(reasons, [(2, Refusal::Count), (3, Refusal::Count)]);
    assert_eq!(bench.statistics().discards_overflow, 2);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b"]);
}

#[test]
fn acquired_messages_count_for_the_limit_until_they_are_settled() {
    let mut bench = QueueBench::new(limited(1));
    let consumer = bench.consumer();
    bench.send(&["a"]);
    let positions = bench.take(consumer, 1).positions();
    assert_eq!(bench.send(&["b"]).accepted, 0);
    bench.accept(consumer, &positions);
    assert_eq!(bench.send(&["b"]).accepted, 1);
}

#[test]
fn a_queue_that_rejects_takes_the_credit_of_its_producers_away() {
    let mut bench = QueueBench::new(limited(2));
    let (producer, consumer) = (bench.producer(), bench.consumer());
    assert_eq!(bench.grant(producer, 100), 100);
    bench.send(&["a", "b", "c"]);
    assert_eq!(bench.grant_again(producer, 100), 0);
    let positions = bench.take(consumer, 1).positions();
    bench.woken();
    bench.accept(consumer, &positions);
    assert_eq!(bench.woken(), [producer.key]);
    assert_eq!(bench.grant_again(producer, 100), 100);
}

#[test]
fn a_producer_that_finds_a_queue_rejecting_may_send_one_message_to_learn_it() {
    let mut bench = QueueBench::new(limited(1));
    bench.send(&["a", "b"]);
    let late = bench.producer();
    assert_eq!(bench.grant(late, 100), 1);
    assert_eq!(bench.send(&["c"]).accepted, 0);
    assert_eq!(bench.grant_again(late, 100), 0);
    bench.queue.purge(bench.now, 1).1.perform();
    assert_eq!(bench.woken(), [late.key]);
}

#[test]
fn producers_are_held_back_above_the_threshold_and_go_on_in_order() {
    let settings = QueueSettings { max_count: Some(10), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let producers = [bench.producer(), bench.producer(), bench.producer()];
    let consumer = bench.consumer();
    bench.send_numbers(0..9);
    assert_eq!(bench.statistics().flow_stopped, 1);
    for producer in producers {
        assert_eq!(bench.grant(producer, 5), 0);
    }
    assert_eq!(bench.statistics().producers_waiting, 3);
    let positions = bench.take(consumer, 9).positions();
    bench.accept(consumer, &positions[..2]);
    assert_eq!(bench.woken(), [], "seven are not less than seven");
    bench.accept(consumer, &positions[2..3]);
    assert_eq!(bench.woken(), producers.map(|producer| producer.key));
    assert_eq!(bench.grant(producers[0], 5), 1);
    let statistics = bench.statistics();
    assert_eq!((statistics.flow_stopped, statistics.flow_stopped_count), (0, 1));
}

#[test]
fn no_more_producers_go_on_at_a_time_than_there_is_room_for() {
    let settings =
        QueueSettings { max_count: Some(10), flow_stop_count: Some(2), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let producers: Vec<_> = (0..5).map(|_| bench.producer()).collect();
    let consumer = bench.consumer();
    bench.send_numbers(0..3);
    producers.iter().for_each(|producer| assert_eq!(bench.grant(*producer, 5), 0));
    let positions = bench.take(consumer, 3).positions();
    bench.accept(consumer, &positions[..2]);
    assert_eq!(bench.woken(), [producers[0].key, producers[1].key]);
    // One of them detaches without having sent anything: the others are not forgotten.
    bench.detach(producers[0]);
    assert_eq!(bench.woken(), [producers[2].key, producers[3].key]);
    assert_eq!(bench.grant(producers[1], 5), 1);
    assert_eq!(bench.woken(), [producers[4].key]);
}

#[test]
fn a_newcomer_does_not_swallow_the_call_of_a_producer_that_waits() {
    let settings =
        QueueSettings { max_count: Some(10), flow_stop_count: Some(1), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let producers = [bench.producer(), bench.producer(), bench.producer()];
    let consumer = bench.consumer();
    bench.send_numbers(0..2);
    producers.iter().for_each(|producer| assert_eq!(bench.grant(*producer, 5), 0));
    let positions = bench.take(consumer, 2).positions();
    bench.accept(consumer, &positions);
    assert_eq!(bench.woken(), [producers[0].key, producers[1].key]);
    bench.consumer();
    bench.producer();
    bench.grant(producers[0], 5);
    assert_eq!(bench.woken(), [producers[2].key]);
}

#[test]
fn a_producer_that_leaves_the_line_does_not_hold_up_the_next() {
    let mut bench = QueueBench::new(limited(1));
    let producers = [bench.producer(), bench.producer()];
    bench.send(&["a", "b"]);
    for producer in producers {
        assert_eq!(bench.grant_again(producer, 1), 0);
    }
    bench.detach(producers[0]);
    bench.queue.purge(bench.now, 1).1.perform();
    assert_eq!(bench.woken(), [producers[1].key]);
}

#[test]
fn a_blocking_queue_loses_nothing_that_was_under_way() {
    let settings = QueueSettings { limit_policy: LimitPolicy::Block, ..limited(2) };
    let mut bench = QueueBench::new(settings);
    let producer = bench.producer();
    assert_eq!(bench.send(&["a", "b", "c"]).accepted, 3);
    assert_eq!(bench.grant(producer, 10), 0);
}

#[test]
fn a_raised_limit_lets_producers_go_on_at_once() {
    let mut bench = QueueBench::new(limited(1));
    let producer = bench.producer();
    bench.send(&["a", "b"]);
    assert_eq!(bench.grant_again(producer, 1), 0);
    let wakeups = bench.queue.set_settings(bench.now, limited(5)).unwrap();
    bench.perform(wakeups);
    assert_eq!(bench.woken(), [producer.key]);
    assert_eq!(bench.send(&["b"]).accepted, 1);
}

#[test]
fn settings_that_contradict_each_other_are_refused_and_change_nothing() {
    let bench = QueueBench::new(limited(5));
    let wrong = QueueSettings { flow_stop_count: Some(6), ..limited(5) };
    assert!(matches!(
        bench.queue.set_settings(bench.now, wrong.clone()),
        Err(QueueError::Settings(_))
    ));
    assert!(matches!(bench.broker.create("other", wrong), Err(QueueError::Settings(_))));
    assert_eq!(bench.queue.limits().max_count, 5);
}
