//! What links say of their nodes: what is refused, what is passed over, and what is answered.

use crate::attaching::refused;
use crate::bench::raw::{receiving, sending};
use crate::bench::{Bench, Client};
use mochila_broker::{Pattern, QueueSettings};
use mochila_wire::performative::Attach;
use mochila_wire::{Map, Source, Target, Value, condition};

/// An attach of a receiver whose source has these properties.
fn from(address: &str, properties: Map) -> Attach {
    let source = Source { dynamic_node_properties: Some(properties), ..Source::at(address) };
    Attach { source: Some(source), ..receiving(0, address) }
}

/// An attach of a sender whose target has these properties.
fn to(address: &str, properties: Map) -> Attach {
    let target = Target { dynamic_node_properties: Some(properties), ..Target::at(address) };
    Attach { target: Some(target.into()), ..sending(0, address) }
}

/// Expects a link to be refused because of its properties.
fn expect_refused(bench: &mut Bench, attach: &Attach, reason: &str) {
    let error = refused(bench, attach);
    assert_eq!(error.condition, condition::INVALID_FIELD);
    let description = error.description.unwrap();
    assert!(description.contains(reason), "{description}");
}

/// The properties that are answered to a receiver with these.
fn answered(bench: &mut Bench, client: Client, address: &str, properties: Map) -> Map {
    let source = Source { dynamic_node_properties: Some(properties), ..Source::at(address) };
    let link = bench.receiver_of(client, source, 0);
    bench.answer(link).source.unwrap().dynamic_node_properties.unwrap()
}

#[test]
fn what_is_wrong_is_refused_as_well_where_the_queue_is_there() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.priorities = Some(4));
    for (name, value, reason) in [
        ("qpid.foo", Value::Uint(1), "'qpid.foo' is not an argument of a queue"),
        ("qpid.max_count", "many".into(), "qpid.max_count takes a number of messages"),
        ("qpid.group_header_key", "k".into(), "means nothing without qpid.shared_msg_group"),
        ("qpid.filter", "a =".into(), "qpid.filter takes a selector"),
    ] {
        let properties = Map::new().with(name, value);
        expect_refused(&mut bench, &from("q", properties.clone()), reason);
        expect_refused(&mut bench, &to("q", properties), reason);
    }
    assert_eq!(bench.numbers("q").consumer_count, 0);
    let client = bench.client();
    let asked = Map::new().with("qpid.last_value_queue_key", "k");
    let in_force = answered(&mut bench, client, "q", asked);
    assert_eq!(in_force.get("qpid.priorities"), Some(&Value::Ulong(4)), "it is used as it is");
}

#[test]
fn what_a_pattern_has_is_had_by_those_who_come_later_too() {
    let urgent = QueueSettings { priorities: Some(4), ..<_>::default() };
    let mut bench = Bench::with(|setup| {
        setup.broker.patterns = vec![Pattern::new("urgent.*", urgent)];
    });
    let client = bench.client();
    for _ in 0..2 {
        let asked = Map::new().with("qpid.fairshare", 3u32);
        let in_force = answered(&mut bench, client, "urgent.a", asked);
        assert_eq!(in_force.get("qpid.fairshare"), Some(&Value::Ulong(3)));
    }
}

#[test]
fn what_says_a_part_of_what_a_queue_is_like_is_no_error() {
    let mut bench = Bench::new();
    bench.create("q", |settings| {
        (settings.shared_groups, settings.max_bytes) = (true, Some(1_000_000_000));
    });
    let client = bench.client();
    let asked =
        Map::new().with("qpid.group_rebalance", true).with("qpid.flow_stop_size", "800000000");
    let in_force = answered(&mut bench, client, "q", asked);
    assert_eq!(in_force.get("qpid.shared_msg_group"), Some(&true.into()), "it stays as it is");
    assert!(!bench.queue("q").settings().rebalances_groups);
}

#[test]
fn what_neither_exchanges_nor_queues_understand_is_refused_by_exchanges() {
    let mut bench = Bench::new();
    for (name, value, reason) in [
        ("qpid.foo", Value::Uint(1), "'qpid.foo' is not an argument of an exchange"),
        ("qpid.max_count", "many".into(), "qpid.max_count takes a number of messages"),
        ("qpid.fairshare", Value::Uint(3), "means nothing without qpid.priorities"),
        ("exchange-type", "xml".into(), "exchange-type takes one of"),
    ] {
        let properties = Map::new().with(name, value);
        for address in ["amq.topic", "amq.topic/news"] {
            expect_refused(&mut bench, &from(address, properties.clone()), reason);
            expect_refused(&mut bench, &to(address, properties.clone()), reason);
        }
        let mut made = from("made", properties.clone());
        let source = made.source.as_mut().unwrap();
        source.capabilities = vec!["topic".into(), "create-on-demand".into()];
        expect_refused(&mut bench, &made, reason);
        let mut temporary = from("", properties);
        let source = temporary.source.as_mut().unwrap();
        (source.address, source.dynamic) = (None, true);
        source.capabilities = vec!["temporary-topic".into()];
        expect_refused(&mut bench, &temporary, reason);
    }
    assert_eq!(bench.queue_names(), [""; 0]);
    assert_eq!(bench.node.broker.exchanges().len(), 4, "nothing was made in passing");
}

#[test]
fn what_is_marked_may_be_passed_over_and_is_not_answered() {
    let mut bench = Bench::new();
    let client = bench.client();
    for address in ["made", "made"] {
        let asked = Map::new()
            .with("x-opt-colour", "red")
            .with("qpid.replicate", "all")
            .with("qpid.max_count", 5u32);
        let in_force = answered(&mut bench, client, address, asked);
        assert_eq!(in_force.get("qpid.max_count"), Some(&Value::Ulong(5)));
        for name in ["x-opt-colour", "qpid.replicate"] {
            assert_eq!(in_force.get(name), None, "{address}");
        }
    }
}
