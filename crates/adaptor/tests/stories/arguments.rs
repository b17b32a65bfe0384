//! What links say of their nodes: what is refused, what is passed over, and what is answered.

use crate::attaching::refused;
use crate::bench::raw::{receiving, sending};
use crate::bench::{Bench, Client, Link};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{ExchangeKind, ExchangeSettings, Pattern, QueueSettings};
use mochila_engine::AttachRequest;
use mochila_wire::performative::Attach;
use mochila_wire::{Map, Source, Symbol, Target, Value, condition};

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
    properties_of(bench, link)
}

fn properties_of(bench: &mut Bench, link: Link) -> Map {
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
    for address in ["made", "made", "amq.topic"] {
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

#[test]
fn what_was_asked_for_is_answered_as_it_is_in_force_by_default_too() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_count = Some(1_000));
    let client = bench.client();
    let in_force = answered(&mut bench, client, "q", Map::new().with("exclusive", false));
    assert_eq!(in_force.get("qpid.max_size"), None, "nobody asked");
    let asked = Map::new()
        .with("qpid.max_size", 7u32)
        .with("flow-stop-count", 7u32)
        .with("qpid.flow_resume_size", 7u32)
        .with("qpid.alert_size", 7u32)
        .with("qpid.alert_count_down", 7u32)
        .with("qpid.alert_repeat_gap", 7u32)
        .with("qpid.ingress_timestamp", true)
        .with("qpid.max_delivery_count", 7u32)
        .with("qpid.browse-only", true)
        .with("qpid.priorities", 7u32)
        .with("qpid.auto_delete_timeout", 7u32);
    // Whether messages are arranged is not for a link to say while there are some.
    let sender = bench.sender(client, "q");
    bench.send(sender, &crate::bench::text("a"));
    let in_force = answered(&mut bench, client, "q", asked);
    for (name, value) in [
        ("qpid.max_count", 1_000),
        ("qpid.max_size", 104_857_600),
        ("qpid.flow_stop_count", 800),
        ("qpid.flow_resume_size", 73_400_320),
        ("qpid.alert_size", 83_886_080),
        ("qpid.alert_count_down", 400),
        ("qpid.alert_repeat_gap", 60),
        ("qpid.max_delivery_count", 0),
        ("qpid.priorities", 0),
        ("qpid.auto_delete_timeout", 0),
    ] {
        assert_eq!(in_force.get(name), Some(&Value::Ulong(value)), "{name}");
    }
    for name in ["qpid.ingress_timestamp", "qpid.browse-only", "auto-delete"] {
        assert_eq!(in_force.get(name), Some(&Value::Bool(false)), "{name}");
    }
}

#[test]
fn a_limit_that_a_queue_does_not_have_is_answered_as_none() {
    let mut bench = Bench::new();
    bench.create("values", |settings| {
        (settings.max_bytes, settings.last_value_key) = (Some(0), Some("k".into()));
    });
    let client = bench.client();
    let asked = Map::new().with("qpid.max_count", 5u32).with("qpid.last_value_queue", 1u32);
    let in_force = answered(&mut bench, client, "values", asked);
    for name in ["qpid.max_count", "qpid.max_size"] {
        assert_eq!(in_force.get(name), Some(&Value::Ulong(0)), "{name}");
    }
    assert_eq!(in_force.get("qpid.last_value_queue_key"), Some(&"k".into()));
    assert_eq!(in_force.get("qpid.last_value_queue"), None, "it is one, with another key");
}

#[test]
fn a_subscription_is_answered_with_what_its_exchange_and_its_queue_are_like() {
    let mut bench = Bench::new();
    let client = bench.client();
    let asked = || {
        Map::new()
            .with("qpid.max_count", 5u32)
            .with("qpid.policy_type", "ring")
            .with("qpid.max_size", "1000")
    };
    let in_force = answered(&mut bench, client, "amq.topic", asked());
    assert_eq!(in_force.get("exchange-type"), Some(&"topic".into()));
    assert_eq!(in_force.get("qpid.max_count"), Some(&Value::Ulong(5)));
    assert_eq!(in_force.get("qpid.max_size"), Some(&Value::Ulong(1_000)));
    assert_eq!(in_force.get("qpid.policy_type"), Some(&"ring".into()));
    assert_eq!(in_force.get("qpid.flow_stop_count"), None, "nobody asked");
    let target = Target { dynamic_node_properties: Some(asked()), ..Target::at("amq.topic") };
    let request = AttachRequest::sender("s", Source::default(), target.into());
    let sender = bench.attach(client, request);
    let target = bench.answer(sender).target.unwrap().target().unwrap().clone();
    let in_force = target.dynamic_node_properties.unwrap();
    assert_eq!(in_force.get("exchange-type"), Some(&"topic".into()));
    assert_eq!(in_force.get("qpid.max_count"), None, "a sender has no queue there");
}

#[test]
fn a_subscription_that_is_there_is_answered_as_it_is() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut source = Source::at("amq.topic");
    source.capabilities = vec!["shared".into(), "global".into()];
    source.dynamic_node_properties =
        Some(Map::new().with("qpid.max_count", 5u32).with("qpid.policy_type", "ring"));
    for name in ["sub|1", "sub|2"] {
        let request = AttachRequest::receiver(name, source.clone(), Target::at("here").into());
        let link = bench.attach(client, request);
        let in_force = properties_of(&mut bench, link);
        assert_eq!(in_force.get("qpid.max_count"), Some(&Value::Ulong(5)));
        assert_eq!(in_force.get("qpid.policy_type"), Some(&"ring".into()));
        source.dynamic_node_properties =
            Some(Map::new().with("qpid.max_count", 9u32).with("qpid.policy_type", "reject"));
    }
    assert_eq!(bench.queue("sub").settings().limit_policy, LimitPolicy::Ring);
}

#[test]
fn nodes_of_the_nodes_own_have_no_properties_to_answer() {
    let mut bench = Bench::new();
    let client = bench.client();
    for address in [Some("$management"), None] {
        let mut target = Target { address: address.map(str::to_owned), ..Target::default() };
        target.dynamic_node_properties = Some(Map::new().with("qpid.max_count", 5u32));
        let request =
            AttachRequest::sender(address.unwrap_or("s"), Source::default(), target.into());
        let link = bench.attach(client, request);
        let target = bench.answer(link).target.unwrap().target().unwrap().clone();
        assert_eq!(target.dynamic_node_properties, None);
    }
}

#[test]
fn capabilities_are_answered_where_they_are_true() {
    const ASKED: [&str; 4] =
        ["legacy-amqp-direct-binding", "legacy-amqp-topic-binding", "shared", "durable"];
    let mut bench = Bench::new();
    let client = bench.client();
    let settings = ExchangeSettings::of(ExchangeKind::Headers);
    bench.node.broker.create_exchange("headers", settings).unwrap();
    let [direct, topic, shared, _] = ASKED;
    for (address, expected) in [
        ("amq.direct", vec![direct, shared]),
        ("amq.topic", vec![topic, shared]),
        ("amq.fanout", vec![shared]),
        ("headers", vec![shared]),
        ("queue", vec![direct, topic]),
    ] {
        let capabilities = ASKED.map(Symbol::from_static).to_vec();
        let source = Source { capabilities, ..Source::at(address) };
        let link = bench.receiver_of(client, source, 0);
        assert_eq!(bench.answer(link).source.unwrap().capabilities, expected, "{address}");
    }
}
