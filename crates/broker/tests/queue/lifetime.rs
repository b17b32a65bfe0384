//! Purging, deleting, and who a queue belongs to.

use crate::bench::QueueBench;
use mochila_broker::{DeleteIf, Mode, QueueError, QueueSettings, Refusal, Taking};
use mochila_wire::Map;

#[test]
fn a_purge_removes_what_is_available_and_says_how_much_it_was() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send_numbers(0..10_000);
    bench.take(consumer, 10);
    assert_eq!(bench.queue.purge(bench.now, 100).0, 100);
    assert_eq!(bench.queue.purge(bench.now, u64::MAX).0, 9_890);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_purge), (10, 9_990));
    assert_eq!((statistics.acquires, statistics.discards_ttl), (10, 0));
}

#[test]
fn a_queue_is_deleted_only_under_the_conditions_given() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send(&["a"]);
    let delete = |bench: &QueueBench, unused, empty| {
        bench.broker.delete("q", DeleteIf { unused, empty }).map(|wakeups| wakeups.perform())
    };
    assert!(matches!(delete(&bench, true, false), Err(QueueError::InUse { consumers: 1, .. })));
    assert!(matches!(delete(&bench, false, true), Err(QueueError::NotEmpty { messages: 1, .. })));
    assert_eq!(delete(&bench, false, false), Ok(()));
    assert!(matches!(delete(&bench, false, false), Err(QueueError::NotFound { .. })));
    assert_eq!(bench.woken(), [consumer.key]);
}

#[test]
fn everybody_notices_that_a_queue_is_gone() {
    let mut bench = QueueBench::default();
    let (consumer, producer) = (bench.consumer(), bench.producer());
    bench.send(&["a"]);
    bench.take(consumer, 1);
    bench.broker.delete("q", DeleteIf::default()).unwrap().perform();
    assert_eq!(bench.woken(), [consumer.key, producer.key]);
    assert!(bench.queue.is_deleted());
    assert_eq!(bench.take(consumer, 1).taking, Taking::Gone);
    assert_eq!(bench.grant(producer, 1), 0);
    let enqueued = bench.send(&["b"]);
    assert_eq!(enqueued.rejected[0].reason, Refusal::Deleted);
    assert!(matches!(bench.try_subscribe(|_| {}), Err(QueueError::Deleted { .. })));
    // What they still do changes nothing.
    bench.accept(consumer, &[0]);
    bench.unsubscribe(consumer);
    bench.detach(producer);
    let again = bench.broker.open("q").unwrap();
    assert_eq!(again.statistics().msg_depth, 0);
}

#[test]
fn the_totals_of_the_node_remember_queues_that_are_gone() {
    let mut bench = QueueBench::default();
    bench.send(&["a", "b"]);
    bench.broker.delete("q", DeleteIf::default()).unwrap().perform();
    let total = bench.broker.statistics();
    assert_eq!((total.msg_total_enqueues, total.msg_total_dequeues, total.msg_depth), (2, 2, 0));
}

fn lives_until(arguments: Map) -> QueueSettings {
    QueueSettings::from_arguments(&arguments).unwrap()
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_link_after_its_delay() {
    let settings = lives_until(Map::new().with("qpid.auto_delete_timeout", 2u32));
    let mut bench = QueueBench::new(settings);
    let (consumer, producer) = (bench.consumer(), bench.producer());
    bench.unsubscribe(consumer);
    bench.pass(5_000);
    bench.detach(producer);
    bench.pass(1_000);
    assert!(!bench.queue.is_deleted());
    let consumer = bench.consumer();
    bench.pass(5_000);
    bench.unsubscribe(consumer);
    assert_eq!(bench.broker.next_timeout_ms(), Some(bench.now.mono_ms + 2_000));
    bench.pass(2_000);
    assert!(bench.queue.is_deleted());
    assert!(bench.broker.queue("q").is_none());
}

#[test]
fn a_queue_that_goes_without_messages_goes_with_the_last_of_them() {
    let settings = lives_until(Map::new().with("lifetime-policy", "delete-on-no-messages"));
    let mut bench = QueueBench::new(settings);
    let consumer = bench.consumer();
    bench.send(&["a"]);
    bench.queue.lose_creator(bench.now).perform();
    let positions = bench.take(consumer, 1).positions();
    assert!(!bench.queue.is_deleted());
    bench.accept(consumer, &positions);
    assert!(bench.queue.is_deleted());
    assert_eq!(bench.woken(), [consumer.key]);
}

#[test]
fn an_exclusive_queue_belongs_to_the_connection_that_came_first() {
    let settings = QueueSettings { exclusive: true, ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let consumer = bench.subscribe(|options| options.owner = 1);
    let refused = bench.try_subscribe(|options| options.owner = 2);
    assert!(matches!(refused, Err(QueueError::Locked { .. })));
    bench.subscribe(|options| {
        options.owner = 1;
        options.mode = Mode::Browse;
    });
    assert_eq!(bench.queue.consumers().len(), 2);
    bench.unsubscribe(consumer);
    assert!(bench.try_subscribe(|options| options.owner = 2).is_err());
}

#[test]
fn whoever_browses_an_exclusive_queue_neither_takes_it_nor_keeps_it() {
    let settings = QueueSettings { exclusive: true, ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    let browse = |bench: &mut QueueBench| {
        bench.subscribe(|options| {
            options.owner = 3;
            options.mode = Mode::Browse;
        })
    };
    browse(&mut bench);
    let consumer = bench.subscribe(|options| options.owner = 1);
    browse(&mut bench);
    assert!(bench.try_subscribe(|options| options.owner = 3).is_err(), "it is another's");
    bench.unsubscribe(consumer);
    bench.subscribe(|options| options.owner = 2);
}

#[test]
fn an_exclusive_consumer_stays_alone_until_it_leaves() {
    let mut bench = QueueBench::default();
    let browser = bench.browser();
    let consumer = bench.subscribe(|options| options.exclusive = true);
    assert!(matches!(bench.try_subscribe(|_| {}), Err(QueueError::Locked { .. })));
    bench.unsubscribe(consumer);
    let ordinary = bench.consumer();
    let refused = bench.try_subscribe(|options| options.exclusive = true);
    assert!(matches!(refused, Err(QueueError::Locked { .. })));
    bench.unsubscribe(ordinary);
    bench.unsubscribe(browser);
}

#[test]
fn one_can_see_who_holds_messages_and_who_waits() {
    let mut bench = QueueBench::default();
    let (first, second) = (bench.consumer(), bench.consumer());
    bench.send(&["a", "b"]);
    bench.take(first, 2);
    bench.take(second, 2);
    let reports = bench.queue.consumers();
    let seen: Vec<_> = reports.iter().map(|r| (r.id, r.held, r.taken, r.waiting)).collect();
    assert_eq!(seen, [(first.id, 2, 2, false), (second.id, 0, 0, true)]);
}
