//! Stories of the node: queues by name.

use mochila_broker::{Broker, BrokerSettings, Pattern, QueueError, QueueSettings};
use std::collections::HashSet;
use std::sync::Arc;

#[test]
fn with_the_default_configuration_any_name_is_a_queue() {
    let broker = Broker::new(BrokerSettings::default());
    let queue = broker.open("orders").unwrap();
    assert_eq!(queue.name(), "orders");
    assert!(Arc::ptr_eq(&queue, &broker.open("orders").unwrap()));
    assert_eq!(broker.queue_count(), 1);
}

#[test]
fn patterns_say_which_names_become_queues_and_of_what_kind() {
    let settings = QueueSettings { max_count: Some(5), ..QueueSettings::default() };
    let broker = Broker::new(BrokerSettings {
        patterns: vec![Pattern::new("orders.*", settings)],
        ..BrokerSettings::default()
    });
    assert_eq!(broker.open("orders.eu").unwrap().limits().max_count, 5);
    assert!(matches!(broker.open("other"), Err(QueueError::NotFound { .. })));
    broker.create("other", QueueSettings::default()).unwrap();
    assert!(broker.open("other").is_ok());
}

#[test]
fn a_queue_is_made_once() {
    let broker = Broker::new(BrokerSettings::default());
    broker.create("q", QueueSettings::default()).unwrap();
    let again = broker.create("q", QueueSettings::default());
    assert_eq!(again.unwrap_err().to_string(), "a queue named 'q' exists already");
}

#[test]
fn names_that_make_no_sense_are_refused_with_a_reason() {
    let broker = Broker::new(BrokerSettings::default());
    for name in ["", "$management", "a\nb", &"x".repeat(2_000)] {
        assert!(matches!(broker.open(name), Err(QueueError::InvalidName { .. })), "{name}");
    }
}

#[test]
fn there_are_no_more_queues_than_allowed() {
    let settings = BrokerSettings { max_queues: 2, ..BrokerSettings::default() };
    let broker = Broker::new(settings);
    broker.open("a").unwrap();
    broker.open("b").unwrap();
    assert!(matches!(broker.open("c"), Err(QueueError::TooMany { limit: 2 })));
    assert!(broker.open("a").is_ok());
}

#[test]
fn queues_take_memory_too() {
    let settings = BrokerSettings { memory_limit_bytes: 10_000, ..BrokerSettings::default() };
    let broker = Broker::new(settings);
    let made = (0..100).take_while(|n| broker.open(&n.to_string()).is_ok()).count();
    assert!((1..10).contains(&made), "{made}");
    assert!(matches!(broker.open("more"), Err(QueueError::NoMemory(_))));
}

#[test]
fn names_of_dynamic_queues_do_not_repeat_and_depend_on_the_seed() {
    let names = |seed| {
        let broker = Broker::new(BrokerSettings { seed, ..BrokerSettings::default() });
        let name = |_| broker.create_dynamic(QueueSettings::default()).unwrap().name().to_owned();
        (0..100).map(name).collect::<HashSet<_>>()
    };
    assert_eq!(names(1).len(), 100);
    assert!(names(1).is_disjoint(&names(2)));
}

#[test]
fn no_queue_says_that_it_survives_a_restart_whoever_asked_for_it() {
    let durable = QueueSettings { durable: true, max_count: Some(5), ..QueueSettings::default() };
    let broker = Broker::new(BrokerSettings {
        patterns: vec![Pattern::new("orders.*", durable.clone())],
        ..BrokerSettings::default()
    });
    for queue in [
        broker.open("orders.eu").unwrap(),
        broker.create("a", durable.clone()).unwrap(),
        broker.create_dynamic(durable).unwrap(),
    ] {
        assert!(!queue.settings().durable, "{}", queue.name());
        assert_eq!(queue.limits().max_count, 5);
    }
}
