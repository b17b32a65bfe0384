//! Publishing to exchanges and subscribing to them.

use crate::bench::{Bench, Client, text};
use mochila_broker::exchange::Unroutable;
use mochila_broker::{DeleteIf, Exchange, ExchangeDeleteIf, ExchangeKind, ExchangeSettings};
use mochila_engine::{AttachRequest, ConnectionConfig};
use mochila_wire::terminus::{
    DIRECT_BINDING, Filter, HEADERS_BINDING, JMS_SELECTOR, LifetimePolicy, TOPIC_BINDING,
    TerminusExpiryPolicy,
};
use mochila_wire::{
    DeliveryState, Described, Map, Message, Source, Symbol, Target, Value, condition,
};
use std::sync::Arc;

/// A message about something, which is its body too.
fn about(subject: &str) -> Message {
    let mut message = text(subject);
    message.properties_mut().subject = Some(subject.to_owned());
    message
}

fn filtered(address: &str, filter: Map) -> Source {
    Source { filter: Some(filter), ..Source::at(address) }
}

fn bind(bench: &Bench, exchange: &str, queue: &str, key: &str) {
    let exchange = bench.node.broker.exchange(exchange).unwrap();
    let queue = bench.node.broker.open(queue).unwrap();
    exchange.bind(bench.now, &queue, key, Map::new()).unwrap().1.perform();
}

fn exchange(bench: &Bench, name: &str, settings: ExchangeSettings) -> Arc<Exchange> {
    bench.node.broker.create_exchange(name, settings).unwrap()
}

fn client_named(bench: &mut Bench, container: &str) -> Client {
    bench.client_with(ConnectionConfig::new(container))
}

#[test]
fn a_message_goes_to_the_queues_that_its_subject_matches() {
    let mut bench = Bench::new();
    bind(&bench, "amq.topic", "news", "news.#");
    bind(&bench, "amq.topic", "all", "#");
    let client = bench.client();
    let sender = bench.sender(client, "amq.topic");
    for subject in ["news.eu", "sport"] {
        bench.send(sender, &about(subject));
    }
    assert_eq!(bench.states(sender), vec![DeliveryState::Accepted; 2]);
    let (news, all) = (bench.receiver(client, "news", 10), bench.receiver(client, "all", 10));
    assert_eq!(
        (bench.texts(news), bench.texts(all)),
        (vec!["news.eu".to_owned()], vec!["news.eu".to_owned(), "sport".to_owned()],)
    );
}

#[test]
fn the_key_may_be_part_of_the_address() {
    let mut bench = Bench::new();
    bind(&bench, "amq.direct", "q", "orders");
    let client = bench.client();
    let sender = bench.sender(client, "amq.direct/orders");
    assert_eq!(bench.address(sender), "amq.direct/orders");
    bench.send(sender, &about("something else"));
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn the_anonymous_terminus_reaches_exchanges_too() {
    let mut bench = Bench::new();
    bind(&bench, "amq.direct", "a", "a");
    bind(&bench, "amq.fanout", "b", "");
    let client = bench.client();
    let request = AttachRequest::sender("relay", Source::default(), Target::default().into());
    let sender = bench.attach(client, request);
    for (to, subject) in
        [("amq.direct", "a"), ("amq.direct/a", "x"), ("amq.fanout", "x"), ("q", "x")]
    {
        let mut message = about(subject);
        message.properties_mut().to = Some(to.into());
        bench.send(sender, &message);
    }
    assert_eq!(bench.states(sender), vec![DeliveryState::Accepted; 4]);
    assert_eq!((bench.depth("a"), bench.depth("b"), bench.depth("q")), (2, 1, 1));
}

#[test]
fn a_queue_with_a_slash_in_its_name_is_a_queue() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "orders/eu");
    bench.send(sender, &text("a"));
    assert_eq!(bench.depth("orders/eu"), 1);
}

#[test]
fn a_full_queue_does_not_make_others_get_a_message_twice() {
    let mut bench = Bench::new();
    bench.create("small", |settings| {
        settings.max_count = Some(1);
        settings.flow_stop_count = Some(0);
    });
    bind(&bench, "amq.fanout", "small", "");
    bind(&bench, "amq.fanout", "large", "");
    let client = bench.client();
    let sender = bench.sender(client, "amq.fanout");
    for _ in 0..3 {
        bench.send(sender, &text("a"));
    }
    assert_eq!(bench.states(sender), vec![DeliveryState::Accepted; 3]);
    assert_eq!((bench.depth("small"), bench.depth("large")), (1, 3));
    assert_eq!(bench.numbers("small").discards_overflow, 2);
    bench.node.broker.delete("large", DeleteIf::default()).unwrap().perform();
    bench.send(sender, &text("b"));
    let states = bench.states(sender);
    let DeliveryState::Rejected { error: Some(error) } = &states[0] else { panic!("{states:?}") };
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
}

#[test]
fn what_nobody_is_bound_for_is_accepted_and_counted_or_told_as_the_exchange_says() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (name, unroutable) in [
        ("discard", Unroutable::Discard),
        ("release", Unroutable::Release),
        ("reject", Unroutable::Reject),
    ] {
        exchange(&bench, name, ExchangeSettings { unroutable, ..<_>::default() });
        let sender = bench.sender(client, name);
        bench.send(sender, &about("nothing"));
        match (unroutable, &bench.states(sender)[..]) {
            (Unroutable::Discard, [DeliveryState::Accepted])
            | (Unroutable::Release, [DeliveryState::Released]) => {}
            (Unroutable::Reject, [DeliveryState::Rejected { error: Some(error) }]) => {
                assert_eq!(error.condition, condition::NOT_FOUND);
            }
            (_, states) => panic!("{name}: {states:?}"),
        }
    }
    assert_eq!(bench.node.broker.discards_no_route(), 3);
}

#[test]
fn a_link_from_an_exchange_has_a_queue_that_goes_with_it() {
    let mut bench = Bench::new();
    let receiving = client_named(&mut bench, "reader");
    let sending = bench.client();
    let source = Source { capabilities: vec!["topic".into()], ..Source::at("amq.topic") };
    let all = bench.subscribe(receiving, "all", source);
    let some = bench.subscribe(receiving, "some", Source::at("amq.topic/news.*"));
    assert_eq!(bench.queue_names(), ["reader_all", "reader_some"]);
    assert_eq!(bench.answer(all).source.unwrap().capabilities, ["topic"]);
    assert_eq!(bench.address(some), "amq.topic/news.*");
    let sender = bench.sender(sending, "amq.topic");
    for subject in ["news.eu", "sport", "news.us"] {
        bench.send(sender, &about(subject));
    }
    assert_eq!(bench.texts(all), ["news.eu", "sport", "news.us"]);
    assert_eq!(bench.texts(some), ["news.eu", "news.us"]);
    bench.close_link(all);
    assert_eq!(bench.queue_names(), ["reader_some"]);
    bench.kill(receiving);
    assert_eq!(bench.queue_names(), [""; 0]);
    assert_eq!(bench.node.broker.exchange("amq.topic").unwrap().statistics().binding_count, 0);
    bench.expect_nothing_left();
}

#[test]
fn whoever_subscribes_gets_the_last_message_of_an_exchange_that_keeps_it() {
    let mut bench = Bench::new();
    let settings = ExchangeSettings { keeps_last: true, ..ExchangeSettings::default() };
    exchange(&bench, "prices", settings);
    let client = bench.client();
    let sender = bench.sender(client, "prices/tea");
    bench.send(sender, &text("1.20"));
    let first = bench.subscribe(client, "first", Source::at("prices/tea"));
    assert_eq!(bench.texts(first), ["1.20"]);
    bench.close_link(first);
    assert_eq!(bench.queue_names(), [""; 0], "its queue goes with it");
    let dynamic = Source { dynamic: true, ..Source::default() };
    let own = bench.subscribe(client, "own", dynamic);
    let queue = bench.address(own);
    bind(&bench, "prices", &queue, "tea");
    bench.run();
    assert_eq!(bench.texts(own), ["1.20"]);
}

#[test]
fn the_filters_of_a_source_bind_its_queue_and_are_answered() {
    let mut bench = Bench::new();
    let client = bench.client();
    let numbered = |filter: Filter, argument: Value| -> Value {
        Described { descriptor: Value::Ulong(filter.code), value: argument }.into()
    };
    let headers = Map::new().with("x-match", "all").with("colour", "red");
    let cases = [
        ("amq.direct", DIRECT_BINDING.with("red")),
        ("amq.direct", numbered(DIRECT_BINDING, "red".into())),
        ("amq.topic", TOPIC_BINDING.with("red.#")),
        ("amq.topic", numbered(TOPIC_BINDING, "red.#".into())),
        ("amq.match", HEADERS_BINDING.with(headers.clone())),
        ("amq.match", numbered(HEADERS_BINDING, headers.into())),
    ];
    for (address, filter) in cases {
        let filters = Map::new().with("a name", filter);
        let link = bench.receiver_of(client, filtered(address, filters.clone()), 10);
        assert_eq!(bench.answer(link).source.unwrap().filter, Some(filters));
        let sender = bench.sender(client, address);
        for colour in ["red", "blue"] {
            let mut message = about(colour);
            message.set_application_property("colour", colour);
            bench.send(sender, &message);
        }
        assert_eq!(bench.texts(link), ["red"], "{address}");
        bench.close_link(link);
    }
}

#[test]
fn a_selector_selects_from_what_the_binding_lets_through() {
    let mut bench = Bench::new();
    let client = bench.client();
    let filters = Map::new()
        .with("subject", TOPIC_BINDING.with("news.#"))
        .with("selector", JMS_SELECTOR.with("colour = 'red'"));
    let link = bench.receiver_of(client, filtered("amq.topic", filters.clone()), 10);
    let mut answered = bench.answer(link).source.unwrap().filter.unwrap();
    answered.0.sort_by_key(|(key, _)| key.as_str().map(str::to_owned));
    let mut asked = filters;
    asked.0.sort_by_key(|(key, _)| key.as_str().map(str::to_owned));
    assert_eq!(answered, asked);
    let sender = bench.sender(client, "amq.topic");
    for (subject, colour) in [("news.eu", "red"), ("news.us", "blue"), ("sport", "red")] {
        let mut message = about(subject);
        message.set_application_property("colour", colour);
        bench.send(sender, &message);
    }
    assert_eq!(bench.texts(link), ["news.eu"]);
}

#[test]
fn a_filter_that_is_wrong_refuses_the_link_and_leaves_no_queue() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (address, filter) in [
        ("amq.topic", TOPIC_BINDING.with(5)),
        ("amq.match", HEADERS_BINDING.with("red")),
        ("amq.match", HEADERS_BINDING.with(Map::new().with("x-match", "some"))),
    ] {
        let filters = Map::new().with("f", filter);
        let link = bench.subscribe(client, "wrong", filtered(address, filters));
        assert_eq!(bench.detach_error(link).condition, condition::INVALID_FIELD);
        assert_eq!(bench.queue_names(), [""; 0]);
    }
}

#[test]
fn a_subscription_that_does_not_expire_collects_messages_until_its_link_is_closed() {
    let mut bench = Bench::new();
    let reader = client_named(&mut bench, "reader");
    let source = Source { expiry_policy: TerminusExpiryPolicy::Never, ..Source::at("amq.topic") };
    let link = bench.subscribe(reader, "durable", source.clone());
    let answer = bench.answer(link).source.unwrap();
    assert_eq!(answer.expiry_policy, TerminusExpiryPolicy::Never);
    bench.kill(reader);
    let client = bench.client();
    let sender = bench.sender(client, "amq.topic");
    bench.send(sender, &about("while away"));
    let reader = client_named(&mut bench, "reader");
    let link = bench.subscribe(reader, "durable", source.clone());
    assert_eq!(bench.texts(link), ["while away"]);
    bench.close_link(link);
    assert_eq!(bench.queue_names(), [""; 0]);
    let link = bench.subscribe(reader, "durable", source);
    bench.send(sender, &about("new"));
    assert_eq!(bench.texts(link), ["new"]);
}

#[test]
fn a_subscription_with_a_timeout_waits_so_long_for_its_receiver_to_come_back() {
    let mut bench = Bench::new();
    let reader = client_named(&mut bench, "reader");
    let source = Source { timeout: 10, ..Source::at("amq.topic") };
    bench.subscribe(reader, "patient", source.clone());
    bench.kill(reader);
    let client = bench.client();
    let sender = bench.sender(client, "amq.topic");
    bench.send(sender, &about("a"));
    bench.advance(9_000);
    let reader = client_named(&mut bench, "reader");
    let link = bench.subscribe(reader, "patient", source);
    assert_eq!(bench.texts(link), ["a"]);
    bench.kill(reader);
    bench.advance(11_000);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_subscription_is_for_one_receiver_unless_it_is_shared() {
    let mut bench = Bench::new();
    let (first, second) = (client_named(&mut bench, "same"), client_named(&mut bench, "same"));
    bench.subscribe(first, "sole", Source::at("amq.topic"));
    let refused = bench.subscribe(second, "sole", Source::at("amq.topic"));
    assert_eq!(bench.detach_error(refused).condition, condition::RESOURCE_LOCKED);
    let other = client_named(&mut bench, "other");
    let capabilities = ["shared".into(), "global".into()];
    let shared = || Source { capabilities: capabilities.to_vec(), ..Source::at("amq.topic") };
    let a = bench.subscribe(first, "ours", shared());
    let b = bench.subscribe(other, "ours|2", shared());
    assert_eq!(bench.queue_names(), ["ours", "same_sole"]);
    assert_eq!(bench.answer(a).source.unwrap().capabilities, capabilities);
    let sender = bench.sender(second, "amq.topic");
    for number in 0..4 {
        bench.send(sender, &about(&number.to_string()));
    }
    let (a_got, b_got) = (bench.texts(a).len(), bench.texts(b).len());
    assert_eq!(a_got + b_got, 4);
    bench.close_link(a);
    assert_eq!(bench.queue_names(), ["ours", "same_sole"], "others still share it");
    bench.close_link(b);
    assert_eq!(bench.queue_names(), ["same_sole"]);
}

#[test]
fn a_subscription_that_is_wanted_otherwise_than_before_is_bound_otherwise() {
    let mut bench = Bench::new();
    let reader = client_named(&mut bench, "reader");
    let source = |address: &str| Source {
        expiry_policy: TerminusExpiryPolicy::Never,
        ..Source::at(address)
    };
    bench.subscribe(reader, "sub", source("amq.topic/a"));
    bench.kill(reader);
    let reader = client_named(&mut bench, "reader");
    let link = bench.subscribe(reader, "sub", source("amq.topic/b"));
    let sender = bench.sender(reader, "amq.topic");
    for subject in ["a", "b"] {
        bench.send(sender, &about(subject));
    }
    assert_eq!(bench.texts(link), ["b"]);
}

#[test]
fn a_durable_subscription_ends_when_its_name_is_attached_without_source_and_closed() {
    let mut bench = Bench::new();
    let reader = client_named(&mut bench, "reader");
    let source = Source { expiry_policy: TerminusExpiryPolicy::Never, ..Source::at("amq.topic") };
    bench.subscribe(reader, "sub", source);
    bench.kill(reader);
    let reader = client_named(&mut bench, "reader");
    let mut request = AttachRequest::receiver("sub", Source::default(), Target::default().into());
    request.source = None;
    let link = bench.attach(reader, request);
    assert_eq!(bench.address(link), "amq.topic");
    bench.close_link(link);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn the_properties_of_a_node_that_are_a_queues_are_for_the_queues_of_subscribers() {
    let mut bench = Bench::new();
    let client = client_named(&mut bench, "c");
    let properties = Map::new().with("qpid.max_count", 5u32);
    let source = Source { dynamic_node_properties: Some(properties), ..Source::at("amq.topic") };
    bench.subscribe(client, "l", source);
    assert_eq!(bench.queue("c_l").settings().max_count, Some(5));
}

#[test]
fn an_exchange_may_be_made_by_whoever_attaches() {
    let mut bench = Bench::new();
    let client = bench.client();
    let properties = Map::new().with("exchange-type", "fanout").with("auto-delete", true);
    let target = Target {
        capabilities: vec!["create-on-demand".into(), "topic".into()],
        dynamic_node_properties: Some(properties),
        ..Target::at("made")
    };
    let request = AttachRequest::sender("s", Source::default(), target.into());
    let sender = bench.attach(client, request);
    let exchange = bench.node.broker.exchange("made").unwrap();
    assert_eq!(exchange.settings().kind, ExchangeKind::Fanout);
    let target = bench.answer(sender).target.unwrap().target().unwrap().clone();
    assert_eq!(target.capabilities, ["create-on-demand", "topic"]);
    let in_force = target.dynamic_node_properties.unwrap();
    assert_eq!(in_force.get("exchange-type"), Some(&"fanout".into()));
    assert_eq!(in_force.get("auto-delete"), Some(&true.into()));
    bench.close_link(sender);
    assert!(bench.node.broker.exchange("made").is_none());
    let missing = Source { capabilities: vec!["topic".into()], ..Source::at("missing") };
    let refused = bench.receiver_of(client, missing, 0);
    assert_eq!(bench.detach_error(refused).condition, condition::NOT_FOUND);
    assert_eq!(bench.queue_names(), [""; 0], "a topic does not become a queue");
}

#[test]
fn a_temporary_topic_lives_as_long_as_the_link_that_made_it() {
    let mut bench = Bench::new();
    let (maker, other) = (bench.client(), bench.client());
    let target = Target {
        dynamic: true,
        capabilities: vec!["temporary-topic".into()],
        dynamic_node_properties: Some(LifetimePolicy::DeleteOnClose.to_properties()),
        ..Target::default()
    };
    let request = AttachRequest::sender("t", Source::default(), target.into());
    let made = bench.attach(maker, request);
    let name = bench.address(made);
    assert!(name.starts_with("dynamic-"));
    let source =
        Source { capabilities: vec!["temporary-topic".into()], ..Source::at(name.clone()) };
    let receiver = bench.subscribe(maker, "r", source);
    let sender = bench.sender(other, &name);
    bench.send(sender, &text("a"));
    assert_eq!(bench.texts(receiver), ["a"]);
    bench.close_link(made);
    assert_eq!(bench.detach_error(sender).condition, condition::RESOURCE_DELETED);
    assert_eq!(bench.detach_error(receiver).condition, condition::RESOURCE_DELETED);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn capabilities_choose_between_a_queue_and_an_exchange_of_one_name() {
    let mut bench = Bench::new();
    exchange(&bench, "both", ExchangeSettings::of(ExchangeKind::Fanout));
    bench.create("both", |_| {});
    bind(&bench, "both", "bound", "");
    let client = bench.client();
    for (capability, expected) in [("queue", (1, 0)), ("topic", (1, 1)), ("neither", (2, 1))] {
        let capabilities = vec![Symbol::from(capability)];
        let target = Target { capabilities, ..Target::at("both") };
        let request = AttachRequest::sender(capability, Source::default(), target.into());
        let sender = bench.attach(client, request);
        bench.send(sender, &text("a"));
        assert_eq!((bench.depth("both"), bench.depth("bound")), expected, "{capability}");
    }
}

#[test]
fn links_of_an_exchange_that_is_deleted_are_detached_with_the_reason() {
    let mut bench = Bench::new();
    let deleted = exchange(&bench, "e", ExchangeSettings::default());
    let client = bench.client();
    let sender = bench.sender(client, "e");
    let receiver = bench.subscribe(client, "r", Source::at("e"));
    deleted.delete(ExchangeDeleteIf::default()).unwrap().perform();
    bench.run();
    for link in [sender, receiver] {
        let error = bench.detach_error(link);
        assert_eq!(error.condition, condition::RESOURCE_DELETED);
        assert!(error.description.unwrap().contains("exchange 'e'"));
    }
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_sender_all_of_whose_messages_go_to_one_full_queue_gets_credit_when_it_has_room() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.flow_stop_count = Some(4));
    bind(&bench, "amq.direct", "q", "k");
    bind(&bench, "amq.direct", "other", "other");
    let client = bench.client();
    let sender = bench.sender(client, "amq.direct");
    for _ in 0..5 {
        bench.send(sender, &about("k"));
    }
    assert_eq!(bench.credit(sender), 0);
    let receiver = bench.receiver(client, "q", 10);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert!(bench.credit(sender) > 0);
    assert_eq!(bench.states(sender), vec![DeliveryState::Accepted; 5]);
    bench.expect_nothing_left();
}
