//! How long subscriptions live, also those whose queue was not made for them.

use crate::bench::{Bench, text};
use crate::subscriptions::{
    at, attach_to_end, coloured, detach, lasting, named, selecting, shared,
};
use mochila_broker::{ExchangeKind, ExchangeSettings};
use mochila_engine::AttachRequest;
use mochila_wire::{Map, Source, Target, condition};

#[test]
fn a_queue_that_was_no_subscription_is_not_lost_to_one_of_its_name() {
    let mut bench = Bench::new();
    bench.create("orders", |_| {});
    let client = bench.client();
    let sender = bench.sender(client, "orders");
    bench.send(sender, &coloured("red", 0));
    bench.send(sender, &coloured("blue", 1));
    let source = shared(at("amq.topic", selecting("colour = 'red'")));
    let link = bench.subscribe(client, "orders", source);
    assert_eq!(bench.texts(link), ["red 0"]);
    assert_eq!(bench.depth("orders"), 2);
    let exchange = bench.node.broker.exchange("amq.topic").unwrap();
    assert_eq!(exchange.statistics().binding_count, 1);
    bench.close_link(link);
    assert_eq!((bench.depth("orders"), exchange.statistics().binding_count), (2, 0));
    let request = AttachRequest::receiver("orders", Source::default(), Target::default().into());
    bench.attach(client, AttachRequest { source: None, ..request });
    assert_eq!(bench.queue_names(), ["orders"], "it cannot be unsubscribed either");
}

/// How a queue is bound that an operator has made, and bound with the key `own`.
fn keys_of(bench: &Bench, queue: &str) -> Vec<String> {
    let exchange = bench.node.broker.exchange("amq.topic").unwrap();
    let bindings = exchange.bindings_of(&bench.queue(queue));
    let mut keys: Vec<String> = bindings.iter().map(|it| it.key().to_owned()).collect();
    keys.sort();
    keys
}

fn operators_queue(bench: &Bench, name: &str) {
    bench.create(name, |_| {});
    let exchange = bench.node.broker.exchange("amq.topic").unwrap();
    exchange.bind(bench.now, &bench.queue(name), "own", Map::new()).unwrap().1.perform();
}

#[test]
fn a_lasting_subscription_upon_an_operators_queue_ends_when_its_owner_says_so() {
    for (name, source, end_it) in [
        ("one_r", lasting(at("amq.topic/news", Map::new())), &[][..]),
        ("r", lasting(shared(at("amq.topic/news", Map::new()))), &["global"]),
    ] {
        let mut bench = Bench::new();
        operators_queue(&bench, name);
        let client = named(&mut bench, "one");
        let link = bench.subscribe(client, "r", source);
        detach(&mut bench, client, link);
        assert_eq!(keys_of(&bench, name), ["news", "own"]);
        let stranger = named(&mut bench, "other");
        let refused = attach_to_end(&mut bench, stranger, "r", &[]);
        assert_eq!(bench.detach_error(refused).condition, condition::NOT_FOUND);
        let link = attach_to_end(&mut bench, client, "r", end_it);
        bench.close_link(link);
        assert_eq!(keys_of(&bench, name), ["own"], "the queue stays, and is bound as before");
        let again = attach_to_end(&mut bench, client, "r", end_it);
        assert_eq!(bench.detach_error(again).condition, condition::NOT_FOUND);
    }
}

#[test]
fn a_subscription_upon_an_operators_queue_ends_when_its_time_is_over() {
    let mut bench = Bench::new();
    operators_queue(&bench, "one_r");
    let client = named(&mut bench, "one");
    let source = Source { timeout: 2, ..at("amq.topic/news", Map::new()) };
    let link = bench.subscribe(client, "r", source.clone());
    detach(&mut bench, client, link);
    bench.advance(1_900);
    assert_eq!(keys_of(&bench, "one_r"), ["news", "own"]);
    let link = bench.subscribe(client, "r", source);
    bench.advance(10_000);
    assert_eq!(keys_of(&bench, "one_r"), ["news", "own"], "its link is there again");
    detach(&mut bench, client, link);
    bench.advance(2_000);
    assert_eq!(keys_of(&bench, "one_r"), ["own"]);
    let at_once = bench.subscribe(client, "r", at("amq.topic/news", Map::new()));
    assert_eq!(keys_of(&bench, "one_r"), ["news", "own"]);
    detach(&mut bench, client, at_once);
    assert_eq!(keys_of(&bench, "one_r"), ["own"], "without a time it ends with its link");
}

#[test]
fn a_subscription_lives_as_long_as_the_link_wants_that_came_last() {
    let one = |timeout| Source { timeout, ..at("amq.topic/news", Map::new()) };
    let never = || lasting(at("amq.topic/news", Map::new()));
    for operators in [false, true] {
        for (first, second, lives_ms) in [
            (one(1), never(), None),
            (one(1), one(60), Some(60_000)),
            (never(), one(1), Some(1_000)),
            (one(60), one(1), Some(1_000)),
        ] {
            let mut bench = Bench::new();
            if operators {
                operators_queue(&bench, "one_r");
            }
            let exchange = bench.node.broker.exchange("amq.topic").unwrap();
            let client = named(&mut bench, "one");
            let is_there = |bench: &Bench| {
                let queue = bench.node.broker.queue("one_r");
                queue.is_some_and(|queue| exchange.binding(&queue, "news").is_some())
            };
            for source in [first, second] {
                let link = bench.subscribe(client, "r", source.clone());
                let answer = bench.answer(link).source.unwrap();
                let asked = (source.expiry_policy, source.timeout);
                assert_eq!((answer.expiry_policy, answer.timeout), asked);
                detach(&mut bench, client, link);
            }
            bench.advance(lives_ms.unwrap_or(1_000_000) - 100);
            assert!(is_there(&bench), "{lives_ms:?} {operators}");
            bench.advance(100);
            assert_eq!(is_there(&bench), lives_ms.is_none(), "{lives_ms:?} {operators}");
        }
    }
}

#[test]
fn a_lasting_subscription_keeps_what_it_has_when_its_exchange_is_deleted() {
    for attached in [true, false] {
        let mut bench = Bench::new();
        let settings = ExchangeSettings { kind: ExchangeKind::Topic, ..<_>::default() };
        bench.node.broker.create_exchange("prices", settings.clone()).unwrap();
        let client = named(&mut bench, "one");
        let source = lasting(at("prices", Map::new()));
        let link = bench.subscribe(client, "r", source.clone());
        detach(&mut bench, client, link);
        let sender = bench.sender(client, "prices");
        bench.send(sender, &text("kept"));
        if attached {
            let request = AttachRequest::receiver("r", source.clone(), Target::default().into());
            bench.attach(client, request);
        }
        let gone = bench.node.broker.exchange("prices").unwrap();
        gone.delete(<_>::default()).unwrap().perform();
        bench.run();
        assert_eq!(bench.depth("one_r"), 1);
        bench.node.broker.create_exchange("prices", settings).unwrap();
        let link = bench.subscribe(client, "r", source);
        assert_eq!(bench.texts(link), ["kept"], "it goes on when there is one of that name again");
        detach(&mut bench, client, link);
        let again = bench.node.broker.exchange("prices").unwrap();
        again.delete(<_>::default()).unwrap().perform();
        let link = attach_to_end(&mut bench, client, "r", &[]);
        let answer = bench.answer(link).source.unwrap();
        assert_eq!(answer.address.as_deref(), Some("prices"));
        bench.close_link(link);
        assert!(bench.queue_names().is_empty(), "it can be ended also without");
    }
}
