//! Bindings that a link brings along, and that go with it.

use crate::bench::{Bench, Client, Link, text};
use mochila_broker::ExchangeSettings;
use mochila_engine::{AttachRequest, ConnectionConfig};
use mochila_wire::terminus::TerminusExpiryPolicy;
use mochila_wire::{AmqpError, Map, Source, Symbol, Target, Value, condition};

/// A binding of the link's queue, by exchange and key.
fn to(exchange: &str, key: &str) -> Map {
    Map::new().with("exchange", exchange).with("key", key)
}

fn properties(bindings: &[Map]) -> Option<Map> {
    let bindings: Vec<Value> = bindings.iter().cloned().map(Value::from).collect();
    Some(Map::new().with("x-bindings", Value::List(bindings)))
}

/// Attaches a receiver with bindings.
fn receiver(bench: &mut Bench, client: Client, source: Source, bindings: &[Map]) -> Link {
    let name = format!("from-{}", source.address.as_deref().unwrap_or_default());
    let mut request = AttachRequest::receiver(name, source, Target::default().into());
    request.properties = properties(bindings);
    let link = bench.attach(client, request);
    if bench.detached(link).is_none() {
        bench.grant(link, 100);
    }
    link
}

fn sender(bench: &mut Bench, client: Client, address: &str, bindings: &[Map]) -> Link {
    let target = Target::at(address).into();
    let mut request = AttachRequest::sender(format!("to-{address}"), Source::default(), target);
    request.properties = properties(bindings);
    bench.attach(client, request)
}

fn refusal(bench: &mut Bench, source: Source, bindings: &[Map]) -> AmqpError {
    let client = bench.client();
    let link = receiver(bench, client, source, bindings);
    bench.detach_error(link)
}

fn count(bench: &Bench, exchange: &str) -> u64 {
    bench.node.broker.exchange(exchange).unwrap().statistics().binding_count
}

fn bind(bench: &Bench, exchange: &str, queue: &str, key: &str) {
    let exchange = bench.node.broker.exchange(exchange).unwrap();
    let queue = bench.node.broker.open(queue).unwrap();
    exchange.bind(bench.now, &queue, key, Map::new()).unwrap().1.perform();
}

/// What the answer says has been bound: exchange, queue and key of each.
fn in_force(bench: &mut Bench, link: Link) -> Vec<[String; 3]> {
    let properties = bench.answer(link).properties.unwrap_or_default();
    let Some(Value::List(bindings)) = properties.get("x-bindings") else { return Vec::new() };
    let shown = |binding: &Value| {
        let map = binding.as_map().unwrap();
        ["exchange", "queue", "key"].map(|name| map.get(name).unwrap().as_str().unwrap().to_owned())
    };
    bindings.iter().map(shown).collect()
}

#[test]
fn a_link_gets_what_it_binds_as_long_as_it_is_there() {
    let mut bench = Bench::new();
    let client = bench.client();
    let wanted = [to("amq.topic", "news.#"), to("amq.direct", "k")];
    let link = receiver(&mut bench, client, Source::at("q"), &wanted);
    assert_eq!(
        in_force(&mut bench, link),
        [["amq.topic", "q", "news.#"], ["amq.direct", "q", "k"]].map(|it| it.map(str::to_owned))
    );
    let publisher = bench.sender(client, "amq.topic/news.eu");
    bench.send(publisher, &text("a"));
    assert_eq!(bench.texts(link), ["a"]);
    bench.close_link(link);
    assert_eq!((count(&bench, "amq.topic"), count(&bench, "amq.direct")), (0, 0));
    bench.expect_nothing_left();
}

#[test]
fn bindings_of_a_link_go_when_its_client_is_killed_or_its_session_ends() {
    let mut bench = Bench::new();
    let killed = bench.client();
    receiver(&mut bench, killed, Source::at("a"), &[to("amq.topic", "#")]);
    let ending = bench.client();
    let node_queue = Map::new().with("queue", "b");
    bench.create("b", |_| {});
    sender(&mut bench, ending, "amq.fanout", &[node_queue]);
    assert_eq!((count(&bench, "amq.topic"), count(&bench, "amq.fanout")), (1, 1));
    bench.kill(killed);
    assert_eq!(count(&bench, "amq.topic"), 0);
    let session = bench.session(ending);
    bench.engine(ending).end(session, None);
    bench.run();
    assert_eq!(count(&bench, "amq.fanout"), 0);
    bench.expect_nothing_left();
}

#[test]
fn what_was_bound_before_stays_bound() {
    let mut bench = Bench::new();
    bind(&bench, "amq.topic", "q", "news.#");
    let client = bench.client();
    receiver(&mut bench, client, Source::at("q"), &[to("amq.topic", "news.#")]);
    bench.kill(client);
    assert_eq!(count(&bench, "amq.topic"), 1);
}

#[test]
fn two_links_with_the_same_binding_have_it_until_the_second_goes() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    for client in [first, second] {
        receiver(&mut bench, client, Source::at("q"), &[to("amq.topic", "#")]);
    }
    bench.kill(first);
    assert_eq!(count(&bench, "amq.topic"), 1);
    bench.kill(second);
    assert_eq!(count(&bench, "amq.topic"), 0);
}

#[test]
fn a_link_that_is_only_detached_loses_its_bindings_and_has_them_again_when_it_comes_back() {
    let mut bench = Bench::new();
    let client = bench.client();
    for _ in 0..2 {
        let link = receiver(&mut bench, client, Source::at("q"), &[to("amq.topic", "#")]);
        assert_eq!(count(&bench, "amq.topic"), 1);
        let id = bench.link_id(link);
        bench.engine(client).detach(id, false, None);
        bench.run();
        assert_eq!(count(&bench, "amq.topic"), 0);
    }
}

#[test]
fn a_subscription_may_be_bound_with_more_keys_than_one() {
    let mut bench = Bench::new();
    let client = bench.client();
    let keys = ["b", "c"].map(|key| Map::new().with("key", key));
    let link = receiver(&mut bench, client, Source::at("amq.direct/a"), &keys);
    let publisher = bench.sender(client, "amq.direct");
    for key in ["a", "b", "c", "d"] {
        let mut message = text(key);
        message.properties_mut().subject = Some(key.to_owned());
        bench.send(publisher, &message);
    }
    assert_eq!(bench.texts(link), ["a", "b", "c"]);
    bench.close_link(link);
    assert_eq!(count(&bench, "amq.direct"), 0);
}

#[test]
fn a_subscription_keeps_what_somebody_else_had_bound_for_a_link_alone() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    receiver(&mut bench, first, Source::at("s"), &[to("amq.direct", "b")]);
    let shared = Source {
        capabilities: vec![Symbol::from_static("shared"), Symbol::from_static("global")],
        ..Source::at("amq.direct/b")
    };
    let link = bench.attach(second, AttachRequest::receiver("s", shared, Target::default().into()));
    assert!(bench.detached(link).is_none());
    bench.kill(first);
    assert_eq!(count(&bench, "amq.direct"), 1);
}

#[test]
fn headers_are_matched_as_the_arguments_of_a_link_binding_say() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments = Map::new().with("x-match", "all").with("colour", "red");
    let wanted = Map::new().with("exchange", "amq.match").with("arguments", arguments);
    let link = receiver(&mut bench, client, Source::at("q"), &[wanted]);
    let publisher = bench.sender(client, "amq.match");
    for colour in ["red", "blue"] {
        let mut message = text(colour);
        message.set_application_property("colour", colour);
        bench.send(publisher, &message);
    }
    assert_eq!(bench.texts(link), ["red"]);
}

#[test]
fn a_link_whose_binding_cannot_be_made_is_refused_with_the_reason_and_leaves_nothing() {
    let mut bench = Bench::new();
    bind(&bench, "amq.direct", "q", "other");
    let at = || Source::at("q");
    let good = || to("amq.topic", "#");
    let fully = |exchange: &'static str, queue: &'static str| {
        Map::new().with("exchange", exchange).with("queue", queue)
    };
    let number = Map::new().with("exchange", "amq.topic").with("key", 5_u32);
    let more = to("amq.topic", "a").with("shoe", 1_u32);
    let no_map = to("amq.topic", "a").with("arguments", "x");
    let contradiction = to("amq.match", "m").with("arguments", Map::new().with("x-match", "some"));
    let cases = [
        (vec![good(), fully("none", "q")], condition::NOT_FOUND, "no exchange is named 'none'"),
        (vec![good(), fully("amq.topic", "none")], condition::NOT_FOUND, "no queue is named"),
        (vec![good(), Map::new()], condition::INVALID_FIELD, "no exchange is named"),
        (vec![good(), number], condition::INVALID_FIELD, "key has to be text"),
        (vec![good(), more], condition::INVALID_FIELD, "key and arguments, not 'shoe'"),
        (vec![good(), no_map], condition::INVALID_FIELD, "arguments have to be a map"),
        (vec![good(), contradiction], condition::INVALID_FIELD, "x-match"),
        (vec![good(); 65], condition::RESOURCE_LIMIT_EXCEEDED, "64 bindings"),
    ];
    for (bindings, condition, words) in cases {
        let error = refusal(&mut bench, at(), &bindings);
        let text = error.description.unwrap_or_default();
        assert_eq!(error.condition, condition, "{text}");
        assert!(text.contains(words), "{text}");
        assert_eq!(count(&bench, "amq.topic"), 0, "{text}");
        assert_eq!(bench.numbers("q").consumer_count, 0, "{text}");
    }
    let client = bench.client();
    let anonymous = sender(&mut bench, client, "", &[to("amq.topic", "#")]);
    let error = bench.detach_error(anonymous);
    assert!(error.description.unwrap_or_default().contains("no queue is named"));
    let mut request = AttachRequest::receiver("odd", at(), Target::default().into());
    request.properties = Some(Map::new().with("x-bindings", "a"));
    let odd = bench.attach(client, request);
    assert_eq!(bench.detach_error(odd).condition, condition::INVALID_FIELD);
    bench.expect_nothing_left();
}

#[test]
fn a_link_is_refused_whose_bindings_the_peer_could_not_hear_of_in_a_frame() {
    let mut bench = Bench::new();
    let small = ConnectionConfig { max_frame_size: 512, ..ConnectionConfig::new("small") };
    let client = bench.client_with(small);
    bench.create(&"q".repeat(200), |_| {});
    let long = Source::at("q".repeat(200));
    let refused = receiver(&mut bench, client, long, &[to("amq.topic", "a"), to("amq.topic", "b")]);
    let error = bench.detach_error(refused);
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert!(error.description.unwrap_or_default().contains("frame"));
    assert_eq!(count(&bench, "amq.topic"), 0);
    let taken = receiver(&mut bench, client, Source::at("q"), &[to("amq.topic", "a")]);
    assert_eq!(in_force(&mut bench, taken).len(), 1);
}

#[test]
fn a_subscription_that_is_refused_for_its_bindings_goes_if_it_is_new_and_stays_if_it_is_not() {
    let mut bench = Bench::new();
    let lasting =
        || Source { expiry_policy: TerminusExpiryPolicy::Never, ..Source::at("amq.topic/a") };
    let bad = [to("none", "x")];
    let client = bench.client();
    let refused = receiver(&mut bench, client, lasting(), &bad);
    assert_eq!(bench.detach_error(refused).condition, condition::NOT_FOUND);
    assert!(bench.queue_names().is_empty());
    let link = receiver(&mut bench, client, lasting(), &[]);
    let id = bench.link_id(link);
    bench.engine(client).detach(id, false, None);
    bench.run();
    let refused = receiver(&mut bench, client, lasting(), &bad);
    assert_eq!(bench.detach_error(refused).condition, condition::NOT_FOUND);
    assert_eq!((bench.queue_names().len(), count(&bench, "amq.topic")), (1, 1));
}

#[test]
fn an_exchange_or_a_queue_that_goes_before_the_link_takes_the_binding_with_it() {
    let mut bench = Bench::new();
    bench.node.broker.create_exchange("e", ExchangeSettings::default()).unwrap();
    let client = bench.client();
    let link = receiver(&mut bench, client, Source::at("q"), &[to("e", "k")]);
    bench.node.broker.delete_exchange("e", <_>::default()).unwrap().perform();
    bench.run();
    assert!(bench.detached(link).is_none(), "the link is to the queue");
    bench.node.broker.delete("q", <_>::default()).unwrap().perform();
    bench.run();
    assert_eq!(bench.detach_error(link).condition, condition::RESOURCE_DELETED);
    bench.expect_nothing_left();
}

#[test]
fn a_queue_for_answers_of_management_is_not_bound() {
    let mut bench = Bench::new();
    let error = refusal(&mut bench, Source::at("$management"), &[to("amq.topic", "#")]);
    assert_eq!(error.condition, condition::INVALID_FIELD);
    // The place of its answers is free again.
    let client = bench.client();
    let link = receiver(&mut bench, client, Source::at("$management"), &[]);
    assert!(bench.detached(link).is_none());
}
