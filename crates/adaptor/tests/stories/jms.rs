//! What Qpid JMS does on the wire, and what it expects.

use crate::bench::raw::{credit_of, receiving, settled, whole};
use crate::bench::{Bench, Raw, text};
use mochila_wire::performative::{
    Attach, Begin, Detach, Flow, Open, ReceiverSettleMode, Role, SenderSettleMode,
};
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, LifetimePolicy, TerminusDurability, TerminusExpiryPolicy,
};
use mochila_wire::{
    DeliveryState, Described, Encode, Map, Source, Symbol, Target, Value, condition,
};

fn symbols(names: &[&'static str]) -> Vec<Symbol> {
    names.iter().map(|name| Symbol::from_static(name)).collect()
}

/// A connection as the client opens it, and its first session.
fn connected(bench: &mut Bench) -> Raw {
    let wanted =
        ["sole-connection-for-container", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "SHARED-SUBS"];
    let properties = Map::new().with("product", "QpidJMS").with("version", "2.5.0");
    let raw = bench.raw_open(Open {
        desired_capabilities: symbols(&wanted),
        properties: Some(properties),
        idle_time_out: Some(30_000),
        ..Open::new("ID:a-uuid:1")
    });
    let offered = bench.hear(raw).open().offered_capabilities;
    assert!(offered.contains(&Symbol::from_static("ANONYMOUS-RELAY")));
    assert!(offered.contains(&Symbol::from_static("sole-connection-for-container")));
    // What is not there is not offered: the client then says so to its user.
    assert!(!offered.contains(&Symbol::from_static("DELAYED_DELIVERY")));
    assert!(offered.contains(&Symbol::from_static("SHARED-SUBS")));
    bench.say(raw, 0, &Begin::new(1, 2_147_483_647, 2_147_483_647));
    bench.say(raw, 1, &Begin::new(1, 2_147_483_647, 2_147_483_647));
    bench.hear(raw);
    raw
}

fn consumer(handle: u32) -> Attach {
    let outcomes =
        ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];
    Attach {
        source: Some(Source {
            default_outcome: Some(DeliveryState::modified(true, false)),
            outcomes: symbols(&outcomes),
            capabilities: symbols(&["queue"]),
            ..Source::at("orders")
        }),
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: ReceiverSettleMode::First,
        ..receiving(handle, "orders")
    }
}

fn filled(bodies: &[&str]) -> Bench {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "orders");
    for body in bodies {
        bench.send(sender, &text(body));
    }
    bench
}

#[test]
fn receive_with_a_time_out_drains_when_it_has_waited_long_enough() {
    let mut bench = filled(&[]);
    let raw = connected(&mut bench);
    bench.ask(raw, &consumer(0));
    bench.say(raw, 0, &credit_of(0, 0, 1_000));
    bench.advance(5_000);
    bench.hear(raw);
    let flow = bench.ask(raw, &Flow { drain: true, ..credit_of(0, 0, 1_000) }).flow();
    assert_eq!((flow.link_credit, flow.delivery_count), (Some(0), Some(1_000)));
    // The next receive gives credit again.
    assert!(bench.ask(raw, &credit_of(0, 1_000, 1_000)).is_silent());
    let client = bench.client();
    let sender = bench.sender(client, "orders");
    bench.send(sender, &text("a"));
    assert_eq!(bench.hear(raw).transfer().message(), text("a"));
}

#[test]
fn receive_no_wait_gets_a_message_that_is_there_and_the_end_of_the_drain() {
    let mut bench = filled(&["a", "b"]);
    let raw = connected(&mut bench);
    bench.ask(raw, &consumer(0));
    // Without prefetch: one message at a time.
    for seen in 0..2 {
        let heard = bench.ask(raw, &Flow { drain: true, ..credit_of(0, seen, 1) });
        assert_eq!(heard.names(), ["transfer", "flow"]);
    }
    assert_eq!(bench.ask(raw, &Flow { drain: true, ..credit_of(0, 2, 1) }).names(), ["flow"]);
}

#[test]
fn a_session_that_is_closed_without_acknowledging_lets_deliveries_fail() {
    let mut bench = filled(&["a"]);
    let raw = connected(&mut bench);
    let answer = bench.ask(raw, &consumer(0)).attach();
    let source = answer.source.unwrap();
    assert_eq!(source.default_outcome, Some(DeliveryState::modified(true, false)));
    bench.say(raw, 0, &credit_of(0, 0, 10));
    bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });
    bench.hear(raw);
    bench.say(raw, 0, &Attach { name: "again".into(), ..consumer(1) });
    bench.say(raw, 0, &credit_of(1, 0, 10));
    let again = bench.hear(raw).transfer().message();
    assert_eq!(again.header.unwrap().delivery_count, 1);
}

#[test]
fn recover_modifies_what_was_delivered_and_it_comes_again() {
    let mut bench = filled(&["a", "b"]);
    let raw = connected(&mut bench);
    bench.ask(raw, &consumer(0));
    bench.say(raw, 0, &credit_of(0, 0, 10));
    bench.hear(raw);
    bench.say(raw, 0, &settled(0, 1, DeliveryState::modified(true, false)));
    let again = bench.hear(raw).transfers();
    let counts = again.iter().map(|moved| moved.message().header.unwrap().delivery_count);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1]);
    assert_eq!(again.iter().map(|moved| moved.id).collect::<Vec<_>>(), [Some(2), Some(3)]);
}

#[test]
fn a_queue_browser_gets_copies_sent_settled() {
    let mut bench = filled(&["a", "b"]);
    let raw = connected(&mut bench);
    let mut attach = consumer(0);
    attach.snd_settle_mode = SenderSettleMode::Settled;
    attach.source.as_mut().unwrap().distribution_mode = Some(DISTRIBUTION_COPY);
    let answer = bench.ask(raw, &attach).attach();
    assert_eq!(answer.snd_settle_mode, SenderSettleMode::Settled);
    let heard = bench.ask(raw, &Flow { drain: true, ..credit_of(0, 0, 100) });
    assert_eq!(heard.names(), ["transfer", "transfer", "flow"]);
    assert!(heard.transfers().iter().all(|moved| moved.settled));
    assert_eq!(bench.depth("orders"), 2);
}

#[test]
fn a_consumer_with_a_selector_learns_that_it_is_in_force() {
    let mut bench = filled(&["a"]);
    let raw = connected(&mut bench);
    let selector = Described {
        descriptor: Value::Ulong(0x0000_468c_0000_0004),
        value: "colour = 'red'".into(),
    };
    let no_local = Described {
        descriptor: Value::Ulong(0x0000_468c_0000_0003),
        value: Value::List(Vec::new()),
    };
    let mut attach = consumer(0);
    let filters = Map::new().with("jms-selector", selector).with("no-local", no_local);
    attach.source.as_mut().unwrap().filter = Some(filters.clone());
    assert_eq!(bench.ask(raw, &attach).attach().source.unwrap().filter, Some(filters));
    let heard = bench.ask(raw, &credit_of(0, 0, 10));
    assert_eq!(heard.transfers().len(), 0, "the message there is has no colour");
}

#[test]
fn a_subscription_to_a_topic_that_is_not_there_is_refused_and_unsubscribing_finds_none() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let mut attach = receiving(0, "news");
    attach.name = "subscription|global".into();
    let source = attach.source.as_mut().unwrap();
    source.durable = TerminusDurability::UnsettledState;
    source.expiry_policy = TerminusExpiryPolicy::Never;
    source.distribution_mode = Some(DISTRIBUTION_COPY);
    source.capabilities = symbols(&["topic", "shared", "global"]);
    let heard = bench.ask(raw, &attach);
    assert_eq!(heard.names(), ["attach", "detach"]);
    assert_eq!(heard.detach().error.unwrap().condition, condition::NOT_FOUND);
    bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });

    let attach = Attach { name: "subscription".into(), source: None, ..receiving(1, "") };
    let heard = bench.ask(raw, &attach);
    assert_eq!(heard.attach().source, None);
    assert_eq!(heard.detach().error.unwrap().condition, condition::NOT_FOUND);
}

#[test]
fn a_temporary_queue_is_closed_with_the_link_that_made_it() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let mut attach = Attach::new("qpid-jms:temp-queue-creator:ID:a-uuid:1:1", 0, Role::Sender);
    attach.source = Some(Source::default());
    attach.target = Some(
        Target {
            dynamic: true,
            durable: TerminusDurability::None,
            expiry_policy: TerminusExpiryPolicy::LinkDetach,
            dynamic_node_properties: Some(LifetimePolicy::DeleteOnClose.to_properties()),
            capabilities: symbols(&["temporary-queue"]),
            ..Target::default()
        }
        .into(),
    );
    let answer = bench.ask(raw, &attach).attach();
    let address = answer.target.as_ref().and_then(|t| t.target()).unwrap().address.clone();
    let address = address.expect("the node has a name");
    assert_eq!(bench.queue_names(), [address]);
    bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_producer_without_destination_is_one_link_for_all() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let mut attach = Attach::new("qpid-jms:sender:ID:1:<unknown>", 0, Role::Sender);
    attach.source = Some(Source::default());
    attach.target = Some(Target { capabilities: symbols(&["queue"]), ..Target::default() }.into());
    attach.initial_delivery_count = Some(0);
    let heard = bench.ask(raw, &attach);
    assert_eq!(heard.names(), ["attach", "flow"]);
    for (id, to) in [(0, "a"), (1, "b")] {
        let mut message = text("m");
        message.properties_mut().to = Some(to.into());
        bench.say_with(raw, 0, &whole(0, id + 1), &message.to_bytes());
    }
    assert_eq!((bench.depth("a"), bench.depth("b")), (1, 1));
}

#[test]
fn a_shared_durable_subscription_collects_messages_and_ends_when_it_is_unsubscribed() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let mut attach = receiving(0, "amq.topic");
    attach.name = "subscription|global".into();
    let source = attach.source.as_mut().unwrap();
    source.durable = TerminusDurability::UnsettledState;
    source.expiry_policy = TerminusExpiryPolicy::Never;
    source.distribution_mode = Some(DISTRIBUTION_COPY);
    source.capabilities = symbols(&["topic", "shared", "global"]);
    let answer = bench.ask(raw, &attach).attach();
    let source = answer.source.unwrap();
    assert_eq!(source.expiry_policy, TerminusExpiryPolicy::Never);
    assert_eq!(source.capabilities, symbols(&["topic", "shared", "global"]));
    // A consumer that is closed leaves its durable subscription by only detaching.
    bench.say(raw, 0, &Detach { handle: 0, closed: false, error: None });
    bench.hear(raw);
    let client = bench.client();
    let sender = bench.sender(client, "amq.topic");
    bench.send(sender, &text("a"));
    assert_eq!(
        (bench.queue_names(), bench.depth("subscription")),
        (vec!["subscription".into()], 1)
    );
    let attach = Attach { name: "subscription|global".into(), source: None, ..receiving(1, "") };
    let answer = bench.ask(raw, &attach).attach();
    assert_eq!(answer.source.unwrap().address.as_deref(), Some("amq.topic"));
    bench.say(raw, 0, &Detach { handle: 1, closed: true, error: None });
    bench.hear(raw);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_second_connection_with_the_same_client_id_fails_at_once() {
    let mut bench = Bench::new();
    connected(&mut bench);
    let second = bench.raw_open(Open {
        desired_capabilities: symbols(&["sole-connection-for-container"]),
        ..Open::new("ID:a-uuid:1")
    });
    let heard = bench.hear(second);
    let properties = heard.open().properties.unwrap();
    let failed = properties.get("amqp:connection-establishment-failed");
    assert_eq!(failed, Some(&Value::Bool(true)));
    assert_eq!(heard.close().error.unwrap().condition, condition::INVALID_FIELD);
}

#[test]
fn a_transacted_session_finds_a_coordinator() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let mut attach = Attach::new("qpid-jms:coordinator:ID:1:1", 0, Role::Sender);
    let outcomes =
        ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];
    attach.source = Some(Source { outcomes: symbols(&outcomes), ..Source::default() });
    let capabilities = symbols(&["amqp:local-transactions"]);
    attach.target = Some(mochila_wire::Coordinator { capabilities }.into());
    let heard = bench.ask(raw, &attach);
    let target = heard.attach().target;
    let Some(mochila_wire::TargetArchetype::Coordinator(coordinator)) = target else {
        panic!("{target:?} is no coordinator");
    };
    assert!(coordinator.capabilities.contains(&"amqp:local-transactions".into()));
    assert!(heard.flow().link_credit > Some(0));
}
