//! Queues that delete themselves at their limit.

use crate::bench::QueueBench;
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{EventKind, QueueError, QueueSettings, Refusal, Taking};

fn bench() -> QueueBench {
    QueueBench::new(QueueSettings {
        max_count: Some(2),
        max_bytes: Some(1_000),
        limit_policy: LimitPolicy::SelfDestruct,
        ..QueueSettings::default()
    })
}

/// Whether operators have been told that a queue has deleted itself.
fn is_told(bench: &QueueBench) -> bool {
    bench.broker.tell_events(bench.now).perform();
    let told = bench.broker.feed().recent();
    told.iter().any(|told| told.event.kind() == EventKind::QueueSelfDestruct)
}

#[test]
fn a_queue_deletes_itself_with_the_message_that_is_too_many() {
    let mut bench = bench();
    let (consumer, producer) = (bench.consumer(), bench.producer());
    bench.take(consumer, 0);
    let used = bench.broker.budget().used();
    let enqueued = bench.send(&["a", "b", "c", "d"]);
    let reasons: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!(enqueued.accepted, 2);
    assert_eq!(reasons, [(2, Refusal::Overrun), (3, Refusal::Overrun)]);
    assert!(bench.queue.is_deleted() && bench.broker.queue("q").is_none());
    assert!(is_told(&bench));
    let mut woken = bench.woken();
    woken.sort_unstable();
    assert_eq!(woken, [consumer.key, producer.key]);
    assert_eq!(bench.take(consumer, 1).taking, Taking::Gone);
    assert!(bench.broker.budget().used() <= used, "its messages are gone");
    assert_eq!(bench.send(&["e"]).rejected[0].reason, Refusal::Deleted);
    let subscribed = bench.try_subscribe(|_| {});
    assert!(matches!(subscribed, Err(QueueError::Deleted { .. })));
}

#[test]
fn it_does_so_too_when_an_operator_moves_too_many_messages_there_and_says_it() {
    let bench = bench();
    let mut from = bench.beside("from", QueueSettings::default());
    from.send(&["a", "b", "c", "d"]);
    let (moved, wakeups) = from.queue.move_to(from.now, &bench.queue, u64::MAX).unwrap();
    wakeups.perform();
    assert_eq!((moved.messages, moved.refused), (2, Some(Refusal::Overrun)));
    assert_eq!(from.statistics().msg_depth, 2);
    assert!(bench.queue.is_deleted() && is_told(&bench));
}

#[test]
fn it_stays_as_long_as_it_is_within_its_limits_and_holds_nobody_back() {
    let mut bench = bench();
    let producer = bench.producer();
    bench.send(&["a", "b"]);
    assert_eq!(bench.grant(producer, 100), 100);
    assert!(!bench.queue.is_deleted());
}

#[test]
fn a_message_that_no_such_queue_could_hold_is_rejected_and_the_queue_stays() {
    let mut bench = bench();
    let enqueued = bench.send(&["a", &"x".repeat(2_000)]);
    assert_eq!((enqueued.accepted, enqueued.rejected[0].reason), (1, Refusal::TooLarge));
    assert!(!bench.queue.is_deleted());
}

#[test]
fn the_same_name_is_a_new_queue_at_once() {
    let mut bench = bench();
    bench.send(&["a", "b", "c"]);
    let next = bench.broker.open("q").unwrap();
    assert!(!next.is_deleted());
    assert_eq!(next.statistics().msg_depth, 0);
}
