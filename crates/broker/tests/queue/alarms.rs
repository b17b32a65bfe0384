//! What operators are told of a queue that grows.

use crate::bench::QueueBench;
use mochila_broker::{BrokerSettings, EventKind, ExchangeSettings, QueueSettings, Remark};

fn bench(settings: QueueSettings) -> QueueBench {
    let mut bench = QueueBench::new(settings);
    // Nobody asks when the queue was made.
    told(&mut bench);
    bench
}

fn alert_at(count: u64) -> QueueSettings {
    QueueSettings { alert_count: Some(count), ..QueueSettings::default() }
}

/// The events that have been told since this was asked last.
fn told(bench: &mut QueueBench) -> Vec<EventKind> {
    let before = bench.broker.feed().recent().last().map_or(0, |event| event.number);
    bench.broker.tell_events(bench.now).perform();
    let recent = bench.broker.feed().recent();
    let new = recent.iter().filter(|event| event.number > before);
    new.map(|event| event.event.kind()).collect()
}

#[test]
fn a_queue_that_grows_is_told_of_at_its_threshold_and_again_when_it_is_half_as_full() {
    let mut bench = bench(alert_at(10));
    bench.send_numbers(0..9);
    assert_eq!(told(&mut bench), []);
    bench.send_numbers(9..12);
    assert_eq!(told(&mut bench), [EventKind::ThresholdUpward]);
    let event = &bench.broker.feed().recent().last().unwrap().event.to_string();
    assert!(event.starts_with("queueThresholdCrossedUpward queue='q' count=12 size="), "{event}");
    bench.send_numbers(12..100);
    assert_eq!(told(&mut bench), [], "once is enough");
    bench.queue.purge(bench.now, 94).1.perform();
    assert_eq!(told(&mut bench), []);
    bench.queue.purge(bench.now, 1).1.perform();
    assert_eq!(told(&mut bench), [EventKind::ThresholdDownward]);
}

#[test]
fn the_log_has_lines_for_twenty_events_a_second_whoever_causes_them() {
    let bench = bench(QueueSettings::default());
    for name in 0..100 {
        bench.broker.open(&format!("q{name}")).unwrap();
    }
    bench.broker.tell_events(bench.now).perform();
    assert_eq!(bench.broker.rations().take(Remark::Event, bench.now), None);
    assert!(bench.broker.rations().take(Remark::WarningEvent, bench.now).is_some());
}

#[test]
fn whoever_asks_for_a_durable_queue_is_told_of() {
    let mut bench = bench(QueueSettings::default());
    let settings = QueueSettings { durable: true, ..QueueSettings::default() };
    bench.broker.create("kept", settings).unwrap();
    assert_eq!(told(&mut bench), [EventKind::NotDurable, EventKind::QueueDeclare]);
    let settings = ExchangeSettings { durable: true, ..ExchangeSettings::default() };
    bench.broker.create_exchange("kept", settings).unwrap();
    assert!(told(&mut bench).contains(&EventKind::NotDurable));
}

#[test]
fn thresholds_follow_from_the_limits_unless_they_are_set() {
    let settings = QueueSettings { max_count: Some(100), ..QueueSettings::default() };
    let mut bench = bench(settings);
    bench.send_numbers(0..79);
    assert_eq!(told(&mut bench), []);
    bench.send_numbers(79..80);
    assert_eq!(told(&mut bench), [EventKind::ThresholdUpward]);

    let unlimited = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
    let mut bench = self::bench(unlimited);
    bench.send_numbers(0..5_000);
    assert_eq!(told(&mut bench), []);
}

#[test]
fn bytes_have_a_threshold_too() {
    let settings = QueueSettings {
        alert_bytes: Some(1_000),
        alert_bytes_down: Some(100),
        ..QueueSettings::default()
    };
    let mut bench = bench(settings);
    bench.send(&[&"x".repeat(900)]);
    bench.send(&[&"x".repeat(100)]);
    assert_eq!(told(&mut bench), [EventKind::ThresholdUpward]);
    bench.queue.purge(bench.now, 1).1.perform();
    assert_eq!(told(&mut bench), [], "103 bytes are left");
    bench.queue.purge(bench.now, 1).1.perform();
    assert_eq!(told(&mut bench), [EventKind::ThresholdDownward]);
}

#[test]
fn a_queue_that_wavers_is_told_of_once_in_the_gap() {
    let gap = QueueSettings { alert_gap_seconds: Some(30), ..alert_at(10) };
    let mut bench = bench(gap);
    let mut heard = Vec::new();
    for _ in 0..29 {
        bench.send_numbers(0..10);
        bench.queue.purge(bench.now, u64::MAX).1.perform();
        heard.extend(told(&mut bench));
        bench.pass(1_000);
    }
    // Both crossings were over before anybody could be told of the first.
    assert_eq!(heard, [EventKind::ThresholdUpward, EventKind::ThresholdDownward]);
    bench.send_numbers(0..10);
    assert_eq!(told(&mut bench), [], "29 seconds have passed");
    bench.pass(1_000);
    assert_eq!(told(&mut bench), [EventKind::ThresholdUpward], "it is still above");
    assert_eq!(bench.broker.next_timeout_ms(), None);
}

#[test]
fn a_queue_that_has_shrunk_before_the_gap_is_over_is_not_told_of() {
    let mut bench = bench(alert_at(10));
    for _ in 0..2 {
        bench.send_numbers(0..10);
        bench.queue.purge(bench.now, u64::MAX).1.perform();
    }
    told(&mut bench);
    bench.send_numbers(0..10);
    bench.pass(30_000);
    bench.queue.purge(bench.now, 1).1.perform();
    bench.pass(30_000);
    assert_eq!((told(&mut bench), bench.broker.next_timeout_ms()), (vec![], None));
    bench.send_numbers(0..1);
    assert_eq!(told(&mut bench), [EventKind::ThresholdUpward]);
}

#[test]
fn nobody_is_told_where_the_thresholds_are_zero() {
    let mut bench = bench(QueueSettings { max_count: Some(10), ..alert_at(0) });
    bench.send_numbers(0..10);
    assert_eq!(told(&mut bench), []);
    let defaults = mochila_broker::settings::Defaults { alert_percent: 0, ..Default::default() };
    let broker = BrokerSettings { defaults, ..BrokerSettings::default() };
    let limited = QueueSettings { max_count: Some(10), ..QueueSettings::default() };
    let mut bench = QueueBench::with(broker, limited);
    told(&mut bench);
    bench.send_numbers(0..10);
    assert_eq!(told(&mut bench), []);
}

#[test]
fn the_life_of_a_queue_is_told_and_that_of_a_private_one_is_not() {
    let mut bench = bench(QueueSettings::default());
    let other = bench.broker.create_dynamic(QueueSettings::default()).unwrap();
    other.delete(mochila_broker::DeleteIf::default()).unwrap().perform();
    let private = bench.broker.create_private(QueueSettings::default()).unwrap();
    private.delete(mochila_broker::DeleteIf::default()).unwrap().perform();
    assert_eq!(told(&mut bench), [EventKind::QueueDeclare, EventKind::QueueDelete]);
}

#[test]
fn events_are_told_without_anybody_asking_and_only_the_last_thousand_are_remembered() {
    let mut bench = bench(QueueSettings::default());
    assert_eq!(bench.broker.next_timeout_ms(), None);
    for number in 0..600 {
        let queue = bench.broker.create(&number.to_string(), QueueSettings::default()).unwrap();
        queue.delete(mochila_broker::DeleteIf::default()).unwrap().perform();
    }
    assert_eq!(bench.broker.next_timeout_ms(), Some(0), "the next worker that rests tells them");
    bench.pass(0);
    let recent = bench.broker.feed().recent();
    assert_eq!((recent.len(), recent.last().unwrap().number), (1_000, 1_201));
    assert_eq!(bench.broker.next_timeout_ms(), None);
}

#[test]
fn more_events_than_there_is_room_for_are_lost_and_do_no_harm() {
    let mut bench = bench(QueueSettings::default());
    for number in 0..5_000 {
        bench.broker.create(&number.to_string(), QueueSettings::default()).unwrap();
    }
    bench.pass(0);
    assert_eq!(bench.broker.feed().recent().last().unwrap().number, 1 + 4_096);
}
