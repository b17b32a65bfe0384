//! What a subscription collects, and for whom.

use crate::bench::{Bench, Client, Link, text};
use mochila_broker::{ExchangeSettings, QueueSettings};
use mochila_engine::{AttachRequest, ConnectionConfig};
use mochila_wire::terminus::{
    APPLICATION_PROPERTIES_FILTER, HEADERS_BINDING, JMS_SELECTOR, NO_LOCAL, PROPERTIES_FILTER,
    TerminusExpiryPolicy,
};
use mochila_wire::{DeliveryState, Map, Message, Source, Symbol, Target, Value, condition};

pub(crate) fn named(bench: &mut Bench, container: &str) -> Client {
    bench.client_with(ConnectionConfig::new(container))
}

pub(crate) fn at(address: &str, filters: Map) -> Source {
    Source { filter: Some(filters), ..Source::at(address) }
}

pub(crate) fn selecting(selector: &str) -> Map {
    Map::new().with("selector", JMS_SELECTOR.with(selector))
}

fn no_local() -> Map {
    Map::new().with("no-local", NO_LOCAL.with(Value::List(Vec::new())))
}

/// It collects messages while its link is not there.
pub(crate) fn lasting(source: Source) -> Source {
    Source { expiry_policy: TerminusExpiryPolicy::Never, ..source }
}

fn with_capabilities(names: &[&'static str], source: Source) -> Source {
    let capabilities = names.iter().map(|name| Symbol::from_static(name)).collect();
    Source { capabilities, ..source }
}

pub(crate) fn shared(source: Source) -> Source {
    with_capabilities(&["shared", "global"], source)
}

fn limited(properties: Map, source: Source) -> Source {
    Source { dynamic_node_properties: Some(properties), ..source }
}

/// The link goes, and the subscription stays.
pub(crate) fn detach(bench: &mut Bench, client: Client, link: Link) {
    let id = bench.link_id(link);
    bench.engine(client).detach(id, false, None);
    bench.run();
}

/// Attaches as those do who want a subscription to end.
pub(crate) fn attach_to_end(
    bench: &mut Bench,
    client: Client,
    name: &str,
    desired: &[&'static str],
) -> Link {
    let request = AttachRequest::receiver(name, Source::default(), Target::default().into());
    let desired_capabilities = desired.iter().map(|name| Symbol::from_static(name)).collect();
    bench.attach(client, AttachRequest { source: None, desired_capabilities, ..request })
}

pub(crate) fn coloured(colour: &str, number: usize) -> Message {
    let mut message = text(&format!("{colour} {number}"));
    message.properties_mut().subject = Some(colour.to_owned());
    message.set_application_property("colour", colour);
    message
}

fn publish(bench: &mut Bench, client: Client, colours: &[&str]) {
    let sender = bench.sender(client, "amq.topic");
    for (number, colour) in colours.iter().enumerate() {
        bench.send(sender, &coloured(colour, number));
    }
    assert_eq!(bench.states(sender), vec![DeliveryState::Accepted; colours.len()]);
    bench.close_link(sender);
}

#[test]
fn what_a_selector_does_not_want_takes_no_room_in_the_queue_of_a_subscription() {
    let mut bench = Bench::new();
    let (reader, writer) = (named(&mut bench, "reader"), bench.client());
    let wanted = at("amq.topic", selecting("colour = 'red'"));
    let source = limited(Map::new().with("max-count", 10_u32), wanted.clone());
    let link = bench.subscribe(reader, "r", source);
    assert_eq!(bench.answer(link).source.unwrap().filter, wanted.filter);
    publish(&mut bench, writer, &["blue"; 10]);
    publish(&mut bench, writer, &["red", "red"]);
    let got = bench.got(link);
    assert_eq!(got.iter().map(|got| got.text()).collect::<Vec<_>>(), ["red 0", "red 1"]);
    bench.accept(&got);
    let numbers = bench.numbers("reader_r");
    let counts = (numbers.msg_depth, numbers.discards_filter, numbers.discards_overflow);
    assert_eq!(counts, (0, 10, 0));
}

#[test]
fn every_filter_of_a_link_keeps_messages_out_of_the_queue_of_its_subscription() {
    let red = || Map::new().with("colour", "red");
    let subject = PROPERTIES_FILTER.with(Map::new().with("subject", "red"));
    let sets = [
        Map::new().with("f", subject),
        Map::new().with("f", APPLICATION_PROPERTIES_FILTER.with(red())),
        selecting("colour = 'red'").with("second", JMS_SELECTOR.with("colour LIKE 'r%'")),
    ];
    for filters in sets {
        let mut bench = Bench::new();
        let (reader, writer) = (named(&mut bench, "reader"), bench.client());
        let link = bench.subscribe(reader, "r", at("amq.topic", filters.clone()));
        assert_eq!(bench.answer(link).source.unwrap().filter, Some(filters));
        publish(&mut bench, writer, &["blue", "red"]);
        assert_eq!(bench.texts(link), ["red 1"]);
        assert_eq!(bench.numbers("reader_r").discards_filter, 1);
    }
}

#[test]
fn a_filter_among_the_node_properties_and_that_of_the_link_both_have_to_match() {
    let mut bench = Bench::new();
    let (reader, writer) = (named(&mut bench, "reader"), bench.client());
    let properties = Map::new().with("filter", "amqp.subject <> 'green'");
    let source = limited(properties, at("amq.topic", selecting("colour <> 'blue'")));
    let link = bench.subscribe(reader, "r", source);
    publish(&mut bench, writer, &["blue", "green", "red"]);
    assert_eq!(bench.texts(link), ["red 2"]);
    assert_eq!(bench.numbers("reader_r").discards_filter, 2);
}

#[test]
fn a_selector_that_asks_for_what_the_queue_adds_is_asked_when_a_message_goes_out() {
    let mut bench = Bench::new();
    let (reader, writer) = (named(&mut bench, "reader"), bench.client());
    let properties = Map::new().with("qpid.queue_msg_sequence", "x-opt-number");
    let source = limited(properties, at("amq.topic", selecting("m.x-opt-number > 1")));
    let link = bench.subscribe(reader, "r", source);
    publish(&mut bench, writer, &["red", "green"]);
    assert_eq!(bench.texts(link), ["green 1"]);
}

#[test]
fn a_selector_may_choose_dead_letters_by_what_tells_of_them() {
    let mut bench = Bench::new();
    let (reader, writer) = (named(&mut bench, "reader"), bench.client());
    bench.create("orders", |settings| settings.alternate_exchange = Some("amq.fanout".into()));
    let selector = "m.x-opt-deadletter-reason = 'rejected'";
    let link = bench.subscribe(reader, "r", at("amq.fanout", selecting(selector)));
    let sender = bench.sender(writer, "amq.fanout");
    bench.send(sender, &text("alive"));
    let sender = bench.sender(writer, "orders");
    bench.send(sender, &text("dead"));
    let receiver = bench.receiver(reader, "orders", 1);
    let got = bench.got(receiver);
    bench.settle(&got[0], DeliveryState::Rejected { error: None });
    assert_eq!(bench.texts(link), ["dead"]);
    assert_eq!(bench.numbers("reader_r").discards_filter, 1);
}

#[test]
fn no_local_means_the_connection_that_the_subscription_is_attached_from_now() {
    let mut bench = Bench::new();
    let (first, other) = (named(&mut bench, "reader"), bench.client());
    let source = || lasting(at("amq.topic", no_local()));
    let link = bench.subscribe(first, "r", source());
    publish(&mut bench, first, &["own"]);
    publish(&mut bench, other, &["another's"]);
    assert_eq!(bench.texts(link), ["another's 0"]);
    detach(&mut bench, first, link);
    let queue = bench.queue("reader_r");
    let changed = QueueSettings { max_count: Some(100), ..queue.settings() };
    queue.set_settings(bench.now, changed).unwrap().perform();
    publish(&mut bench, first, &["own, and nobody there"]);
    let link = bench.subscribe(first, "r", source());
    assert_eq!(bench.depth("reader_r"), 1, "it was not settled: {:?}", bench.texts(link));
    bench.kill(first);
    let second = named(&mut bench, "reader");
    publish(&mut bench, second, &["own, and too early"]);
    publish(&mut bench, other, &["while away"]);
    let link = bench.subscribe(second, "r", source());
    publish(&mut bench, second, &["own again"]);
    let got = bench.got(link);
    let texts: Vec<_> = got.iter().map(|got| got.text()).collect();
    assert_eq!(texts, ["another's 0", "while away 0"]);
    bench.accept(&got);
    assert_eq!(bench.depth("reader_r"), 0);
}

#[test]
fn the_last_message_of_an_exchange_is_not_for_whoever_has_sent_it_and_wants_nothing_local() {
    let mut bench = Bench::new();
    let settings = ExchangeSettings { keeps_last: true, ..ExchangeSettings::default() };
    bench.node.broker.create_exchange("prices", settings).unwrap();
    let (writer, reader) = (named(&mut bench, "writer"), named(&mut bench, "reader"));
    let sender = bench.sender(writer, "prices/tea");
    bench.send(sender, &text("1.20"));
    let own = bench.subscribe(writer, "r", at("prices/tea", no_local()));
    let others = bench.subscribe(reader, "r", at("prices/tea", no_local()));
    assert_eq!((bench.texts(own).len(), bench.depth("writer_r")), (0, 0));
    assert_eq!(bench.texts(others), ["1.20"]);
}

#[test]
fn those_who_share_a_subscription_ask_for_the_same() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    let source = |selector| shared(at("amq.topic", selecting(selector)));
    let link = bench.subscribe(first, "s", source("colour = 'red'"));
    let refused = bench.subscribe(second, "s|2", source("colour = 'blue'"));
    assert_eq!(bench.detach_error(refused).condition, condition::RESOURCE_LOCKED);
    let other = bench.subscribe(second, "s|3", source("colour = 'red'"));
    assert!(bench.detached(other).is_none());
    publish(&mut bench, first, &["red", "blue", "red"]);
    let mut got = bench.texts(link);
    got.extend(bench.texts(other));
    got.sort();
    assert_eq!(got, ["red 0", "red 2"]);
    assert_eq!(bench.numbers("s").discards_filter, 1);
}

#[test]
fn what_is_local_to_one_of_those_who_share_a_subscription_is_for_the_others() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    let [one, other] = [(first, "s"), (second, "s|2")]
        .map(|(client, name)| bench.subscribe(client, name, shared(at("amq.topic", no_local()))));
    publish(&mut bench, first, &["a"; 3]);
    assert_eq!((bench.texts(one).len(), bench.texts(other).len()), (0, 3));
}

#[test]
fn a_subscription_that_comes_back_with_the_same_wishes_keeps_what_it_has_collected() {
    let mut bench = Bench::new();
    let (reader, writer) = (named(&mut bench, "reader"), bench.client());
    let colour = |name| PROPERTIES_FILTER.with(Map::new().with("subject", name));
    let sets = [
        selecting("colour = 'red'").with("other", colour("red")),
        Map::new().with("a", colour("red")).with("b", JMS_SELECTOR.with("colour = 'red'")),
    ];
    for (count, filters) in sets.into_iter().enumerate() {
        let link = bench.subscribe(reader, "r", lasting(at("amq.topic", filters)));
        assert_eq!(bench.texts(link).len(), count);
        detach(&mut bench, reader, link);
        publish(&mut bench, writer, &["red"]);
    }
    let arguments = [
        Map::new().with("x-match", "all").with("colour", "red"),
        Map::new().with("colour", "red").with("x-match", "all"),
    ];
    for (count, arguments) in arguments.into_iter().enumerate() {
        let filters = Map::new().with("h", HEADERS_BINDING.with(arguments));
        let link = bench.subscribe(reader, "h", lasting(at("amq.match", filters)));
        assert_eq!(bench.texts(link).len(), count);
        detach(&mut bench, reader, link);
        let sender = bench.sender(writer, "amq.match");
        bench.send(sender, &coloured("red", 0));
    }
}

#[test]
fn a_subscription_that_comes_back_with_other_wishes_is_a_new_one() {
    let red = || at("amq.topic", selecting("colour = 'red'"));
    let keyed = |key: &str| Source::at(format!("amq.topic/{key}"));
    let with_no_local =
        at("amq.topic", selecting("colour = 'red'").with("n", no_local().0[0].1.clone()));
    let changes = [
        (red(), at("amq.topic", selecting("colour = 'blue'"))),
        (red(), Source::at("amq.topic")),
        (red(), with_no_local),
        (keyed("#"), keyed("blue")),
        (Source::at("amq.topic"), Source::at("amq.fanout")),
    ];
    for (before, after) in changes {
        let mut bench = Bench::new();
        let (reader, writer) = (named(&mut bench, "reader"), bench.client());
        let link = bench.subscribe(reader, "r", lasting(before));
        detach(&mut bench, reader, link);
        publish(&mut bench, writer, &["red", "blue"]);
        assert_ne!(bench.depth("reader_r"), 0);
        let address = after.address.clone().unwrap();
        let link = bench.subscribe(reader, "r", lasting(after));
        assert!(bench.detached(link).is_none());
        assert_eq!(bench.texts(link), [""; 0], "the old one is gone, and its messages with it");
        let sender = bench.sender(writer, address.split('/').next().unwrap());
        for colour in ["red", "blue"] {
            bench.send(sender, &coloured(colour, 9));
        }
        assert!(!bench.texts(link).is_empty());
        bench.close_link(link);
        assert_eq!(bench.queue_names(), [""; 0]);
        bench.expect_nothing_left();
    }
}

#[test]
fn a_subscription_that_somebody_uses_stays_what_it_is() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    let link = bench.subscribe(first, "s", shared(Source::at("amq.topic/a")));
    for source in [Source::at("amq.topic/b"), Source::at("amq.fanout")] {
        let refused = bench.subscribe(second, "s", shared(source));
        assert_eq!(bench.detach_error(refused).condition, condition::RESOURCE_LOCKED);
    }
    publish(&mut bench, second, &["a", "b"]);
    assert_eq!(bench.texts(link), ["a 0"]);
}

#[test]
fn a_link_that_is_refused_for_its_bindings_leaves_the_subscription_that_it_would_change() {
    let wrong = [
        Map::new().with("exchange", "none").with("key", "x"),
        Map::new().with("exchange", "amq.direct").with("queue", "none"),
        Map::new().with("exchange", "amq.match").with("key", "x"),
        Map::new().with("arguments", Map::new().with("qpid.exclusive-binding", true)),
    ];
    for binding in wrong {
        let mut bench = Bench::new();
        let (reader, writer) = (named(&mut bench, "reader"), bench.client());
        let red = lasting(at("amq.topic", selecting("colour = 'red'")));
        let link = bench.subscribe(reader, "r", red.clone());
        detach(&mut bench, reader, link);
        publish(&mut bench, writer, &["red"]);
        let source = lasting(at("amq.topic", selecting("colour = 'blue'")));
        let mut request = AttachRequest::receiver("r", source, Target::default().into());
        request.properties = Some(Map::new().with("x-bindings", Value::List(vec![binding.into()])));
        let refused = bench.attach(reader, request);
        bench.detach_error(refused);
        let link = bench.subscribe(reader, "r", red);
        assert_eq!(bench.texts(link), ["red 0"]);
    }
}

/// Whether both of two links get something of what is sent: they do not share a subscription then.
fn are_apart(bench: &mut Bench, links: [Link; 2]) -> bool {
    let client = bench.client();
    publish(bench, client, &["a"]);
    links.map(|link| bench.texts(link).len()) == [1, 1]
}

#[test]
fn a_shared_subscription_is_of_one_container_unless_it_is_global() {
    for (capabilities, queues) in [
        (&["topic", "shared"][..], vec!["one_s", "other_s"]),
        (&["topic", "shared", "global"], vec!["s"]),
    ] {
        let mut bench = Bench::new();
        let links = ["one", "other"].map(|container| {
            let client = named(&mut bench, container);
            bench.subscribe(client, "s", with_capabilities(capabilities, Source::at("amq.topic")))
        });
        assert_eq!(bench.queue_names(), queues);
        assert_eq!(bench.answer(links[0]).source.unwrap().capabilities, capabilities);
        assert_eq!(are_apart(&mut bench, links), queues.len() == 2);
    }
}

#[test]
fn links_of_one_container_share_a_subscription_over_several_connections() {
    let mut bench = Bench::new();
    let links = ["s", "s|2"].map(|name| {
        let client = named(&mut bench, "one");
        bench.subscribe(client, name, with_capabilities(&["shared"], Source::at("amq.topic")))
    });
    assert_eq!(bench.queue_names(), ["one_s"]);
    assert!(!are_apart(&mut bench, links));
}

#[test]
fn a_subscription_that_does_not_last_is_another_than_one_of_its_name_that_does() {
    let mut bench = Bench::new();
    let client = named(&mut bench, "one");
    let source = || with_capabilities(&["shared"], Source::at("amq.topic"));
    let lasts = bench.subscribe(client, "s", lasting(source()));
    let does_not = bench.subscribe(client, "s|volatile1", source());
    assert_eq!(bench.queue_names(), ["one_s", "one_s|volatile"]);
    assert!(are_apart(&mut bench, [lasts, does_not]));
}

#[test]
fn a_subscription_for_one_link_does_not_become_a_shared_one() {
    let mut bench = Bench::new();
    let (client, writer) = (named(&mut bench, "one"), bench.client());
    let source = || lasting(Source::at("amq.topic"));
    let link = bench.subscribe(client, "s", source());
    detach(&mut bench, client, link);
    publish(&mut bench, writer, &["a"]);
    let refused = bench.subscribe(client, "s", with_capabilities(&["shared"], source()));
    let error = bench.detach_error(refused);
    assert_eq!(error.condition, condition::NOT_ALLOWED);
    assert!(error.description.unwrap().contains("is not shared"));
    assert_eq!(bench.depth("one_s"), 1);
}

#[test]
fn a_shared_subscription_of_one_container_ends_when_it_is_unsubscribed() {
    let mut bench = Bench::new();
    let others = named(&mut bench, "other");
    let source = |names| lasting(with_capabilities(names, Source::at("amq.topic")));
    let link = bench.subscribe(others, "s|global", source(&["shared", "global"]));
    detach(&mut bench, others, link);
    let client = named(&mut bench, "one");
    let link = bench.subscribe(client, "s", source(&["shared"]));
    detach(&mut bench, client, link);
    let link = attach_to_end(&mut bench, client, "s", &[]);
    bench.close_link(link);
    assert_eq!(bench.queue_names(), ["s"]);
    let link = attach_to_end(&mut bench, client, "s", &[]);
    assert_eq!(bench.detach_error(link).condition, condition::NOT_FOUND, "that is another one");
    let link = attach_to_end(&mut bench, client, "s", &["shared", "global"]);
    bench.close_link(link);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn nobody_ends_a_subscription_of_somebody_else() {
    let mut bench = Bench::new();
    let (one, two) = (named(&mut bench, "one"), named(&mut bench, "two"));
    let source = || lasting(Source::at("amq.topic"));
    for (name, source) in [("all", shared(source())), ("own", source())] {
        let link = bench.subscribe(one, name, source);
        detach(&mut bench, one, link);
    }
    for (name, capabilities) in [
        ("all", &[][..]),
        ("all", &["shared"]),
        ("own", &[]),
        ("one_own", &[]),
        ("one_own", &["shared"]),
        ("one_own", &["shared", "global"]),
        ("one_own|global", &[]),
    ] {
        let link = attach_to_end(&mut bench, two, name, capabilities);
        assert_eq!(bench.detach_error(link).condition, condition::NOT_FOUND, "{name}");
    }
    assert_eq!(bench.queue_names(), ["all", "one_own"]);
}

#[test]
fn what_an_operator_has_bound_stays_bound() {
    let mut bench = Bench::new();
    bench.create("op", |_| {});
    let queue = bench.queue("op");
    let keys = |bench: &Bench, exchange: &str| -> Vec<String> {
        let exchange = bench.node.broker.exchange(exchange).unwrap();
        let mut keys: Vec<_> =
            exchange.bindings_of(&queue).iter().map(|it| it.key().to_owned()).collect();
        keys.sort();
        keys
    };
    for (exchange, key) in [("amq.topic", "a"), ("amq.topic", "z"), ("amq.fanout", "")] {
        let exchange = bench.node.broker.exchange(exchange).unwrap();
        exchange.bind(bench.now, &queue, key, Map::new()).unwrap().1.perform();
    }
    let client = bench.client();
    let of = |key: &str| shared(lasting(Source::at(format!("amq.topic/{key}"))));
    let link = bench.subscribe(client, "op", of("b"));
    assert_eq!(keys(&bench, "amq.topic"), ["a", "b", "z"]);
    let refused = bench.subscribe(client, "op|2", of("c"));
    assert_eq!(bench.detach_error(refused).condition, condition::RESOURCE_LOCKED);
    detach(&mut bench, client, link);
    assert_eq!(keys(&bench, "amq.topic"), ["a", "b", "z"], "it is to last");
    let link = bench.subscribe(client, "op", of("c"));
    assert_eq!(keys(&bench, "amq.topic"), ["a", "c", "z"], "that is another subscription");
    detach(&mut bench, client, link);
    let link = bench.subscribe(client, "op", of("a"));
    assert_eq!(keys(&bench, "amq.topic"), ["a", "z"]);
    bench.close_link(link);
    let link = bench.subscribe(client, "op", shared(Source::at("amq.topic/b")));
    assert_eq!(keys(&bench, "amq.topic"), ["a", "b", "z"]);
    detach(&mut bench, client, link);
    assert_eq!(keys(&bench, "amq.topic"), ["a", "z"], "that one was not to last");
    assert_eq!(keys(&bench, "amq.fanout"), [""]);
    drop(queue);
    bench.expect_nothing_left();
}
