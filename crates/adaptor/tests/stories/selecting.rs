//! Filters of a source: which messages a link gets.

use crate::bench::{Bench, Client, Link, text};
use mochila_wire::terminus::{
    DIRECT_BINDING, DISTRIBUTION_COPY, HEADERS_BINDING, JMS_SELECTOR, NO_LOCAL, TOPIC_BINDING,
};
use mochila_wire::{Described, Map, Message, Source, Symbol, Value, condition};

fn source(filter: Map) -> Source {
    Source { filter: Some(filter), ..Source::at("q") }
}

fn selector(text: &str) -> Source {
    source(Map::new().with("jms-selector", JMS_SELECTOR.with(text)))
}

fn selecting(bench: &mut Bench, client: Client, text: &str) -> Link {
    bench.receiver_of(client, selector(text), 100)
}

fn coloured(body: &str, colour: &str) -> Message {
    let mut message = text(body);
    message.set_application_property("colour", colour);
    message
}

#[test]
fn k1_not_and_like_go_together_in_every_way() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (select, expected) in [
        ("colour NOT LIKE 'r%'", vec!["b"]),
        ("NOT colour LIKE 'r%'", vec!["b"]),
        ("NOT (colour LIKE 'r%')", vec!["b"]),
        ("NOT colour NOT LIKE 'r%'", vec!["a"]),
    ] {
        let link = selecting(&mut bench, client, select);
        let sender = bench.sender(client, "q");
        bench.send(sender, &coloured("a", "red"));
        bench.send(sender, &coloured("b", "blue"));
        bench.send(sender, &text("without colour"));
        assert_eq!(bench.texts(link), expected, "{select}");
        bench.close_link(link);
        bench.queue("q").purge(bench.now, u64::MAX).1.perform();
    }
}

#[test]
fn k3_a_selector_that_is_wrong_anywhere_refuses_the_link_and_says_where() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (select, complaint) in [
        ("colour = 'red' colour", "at byte 15"),
        ("colour =", "at byte 8"),
        ("(colour = 'red'))", "at byte 16"),
        ("colour = 'red", "at byte 9"),
    ] {
        let link = selecting(&mut bench, client, select);
        let error = bench.detach_error(link);
        assert_eq!(error.condition, condition::INVALID_FIELD);
        let description = error.description.unwrap();
        assert!(description.contains(complaint), "{select}: {description}");
        assert_eq!(bench.answer(link).source, None);
    }
    assert_eq!(bench.queue_names(), [""; 0], "nothing is made for a link that is refused");
}

#[test]
fn k7_a_blank_selector_is_none_and_is_in_force() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for blank in ["", " ", "\t\n "] {
        let link = selecting(&mut bench, client, blank);
        bench.send(sender, &text("m"));
        assert_eq!(bench.texts(link), ["m"]);
        let answer = bench.answer(link).source.unwrap();
        assert_eq!(answer.filter, selector(blank).filter);
        bench.close_link(link);
        bench.queue("q").purge(bench.now, u64::MAX).1.perform();
    }
}

#[test]
fn k8_jms_names_mean_fields_of_the_message() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut right = text("right");
    right.header_mut().priority = 9;
    right.properties_mut().correlation_id = Some("c-1".into());
    right.properties_mut().group_id = Some("g".into());
    bench.send(sender, &text("wrong"));
    bench.send(sender, &right);
    for select in ["JMSCorrelationID = 'c-1'", "JMSXGroupID = 'g'", "JMSPriority > 4"] {
        let browser = Source { distribution_mode: Some(DISTRIBUTION_COPY), ..selector(select) };
        let link = bench.receiver_of(client, browser, 10);
        assert_eq!(bench.texts(link), ["right"], "{select}");
    }
}

#[test]
fn what_a_link_does_not_select_stays_for_another_that_does() {
    let mut bench = Bench::new();
    let client = bench.client();
    let red = selecting(&mut bench, client, "colour = 'red'");
    let blue = selecting(&mut bench, client, "colour = 'blue'");
    let sender = bench.sender(client, "q");
    for (index, colour) in ["red", "blue", "green", "red"].into_iter().enumerate() {
        bench.send(sender, &coloured(&index.to_string(), colour));
    }
    assert_eq!(bench.texts(red), ["0", "3"]);
    assert_eq!(bench.texts(blue), ["1"]);
    let rest = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(rest), ["2"]);
}

#[test]
fn a_drain_of_a_link_for_which_nothing_is_there_is_answered() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &coloured("m", "red"));
    let blue = bench.receiver_of(client, selector("colour = 'blue'"), 0);
    let id = bench.link_id(blue);
    bench.engine(client).grant_drain(id, 10);
    bench.run();
    assert_eq!(bench.texts(blue), [""; 0]);
    assert_eq!(bench.credit(blue), 0);
}

#[test]
fn no_local_keeps_messages_of_the_same_connection_away() {
    let mut bench = Bench::new();
    let (here, there) = (bench.client(), bench.client());
    let filter = Map::new().with("no-local", NO_LOCAL.with(Vec::<Value>::new()));
    let link = bench.receiver_of(here, source(filter.clone()), 10);
    assert_eq!(bench.answer(link).source.unwrap().filter, Some(filter));
    for (client, body) in [(here, "mine"), (there, "yours")] {
        let sender = bench.sender(client, "q");
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.texts(link), ["yours"]);
}

#[test]
fn filters_on_properties_and_application_properties_are_in_force() {
    // AMQP Filter Expressions 1.0, 4.2.4 and 4.2.5, under the names and the numbers that they have there.
    let descriptors: [[Value; 2]; 2] = [
        [
            Symbol::from_static("amqp:properties-filter").into(),
            Symbol::from_static("amqp:application-properties-filter").into(),
        ],
        [Value::Ulong(0x0000_0000_0000_0173), Value::Ulong(0x0000_0000_0000_0174)],
    ];
    let about = |subject: &str, mut message: Message| {
        message.properties_mut().subject = Some(subject.into());
        message
    };
    for [properties, application] in descriptors {
        let mut bench = Bench::new();
        let client = bench.client();
        let of_news =
            Described { descriptor: properties, value: Map::new().with("subject", "news").into() };
        let red =
            Described { descriptor: application, value: Map::new().with("colour", "red").into() };
        let sets = [
            (Map::new().with("p", of_news.clone()), vec!["both", "news"]),
            (Map::new().with("a", red.clone()), vec!["both", "red"]),
            (Map::new().with("p", of_news).with("a", red), vec!["both"]),
        ];
        let sender = bench.sender(client, "q");
        for (set, expected) in sets {
            let link = bench.receiver_of(client, source(set.clone()), 10);
            assert_eq!(bench.answer(link).source.unwrap().filter, Some(set));
            for message in [
                text("neither"),
                about("news", coloured("both", "red")),
                about("news", coloured("news", "blue")),
                about("sport", coloured("red", "red")),
            ] {
                bench.send(sender, &message);
            }
            assert_eq!(bench.texts(link), expected);
            bench.close_link(link);
            bench.queue("q").purge(bench.now, u64::MAX).1.perform();
        }
    }
}

#[test]
fn the_binding_filters_of_the_qpid_clients_select_by_subject_from_a_queue() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (all, red) = (Map::new().with("x-match", "all"), Map::new().with("x-match", "any"));
    for (filter, expected) in [
        (DIRECT_BINDING.with("news.eu"), vec!["news.eu"]),
        (DIRECT_BINDING.with("news.*"), vec!["news.*"]),
        (DIRECT_BINDING.with(""), vec![""]),
        (TOPIC_BINDING.with("news.*"), vec!["news.eu", "news.*"]),
        (TOPIC_BINDING.with("news.#"), vec!["news", "news.eu", "news.*", "news.eu.paris"]),
        (TOPIC_BINDING.with("sport"), vec!["sport"]),
        (HEADERS_BINDING.with(all.with("topic", "sport")), vec!["sport"]),
        (HEADERS_BINDING.with(red.with("topic", "news").with("nothing", 1)), vec!["news"]),
    ] {
        let filters = Map::new().with("subject-filter", filter);
        let link = bench.receiver_of(client, source(filters.clone()), 100);
        assert_eq!(bench.answer(link).source.unwrap().filter, Some(filters), "it is in force");
        let sender = bench.sender(client, "q");
        for subject in ["", "news", "news.eu", "news.*", "news.eu.paris", "sport"] {
            let mut message = text(subject);
            message.properties_mut().subject = Some(subject.into());
            message.set_application_property("topic", subject);
            bench.send(sender, &message);
        }
        assert_eq!(bench.texts(link), expected);
        bench.close_link(link);
        bench.queue("q").purge(bench.now, u64::MAX).1.perform();
    }
    for filter in [TOPIC_BINDING.with(5u32), HEADERS_BINDING.with("news")] {
        let link = bench.receiver_of(client, source(Map::new().with("f", filter)), 1);
        assert_eq!(bench.detach_error(link).condition, condition::INVALID_FIELD);
    }
}
