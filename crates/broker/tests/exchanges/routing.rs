//! Which queues a message goes to, and what becomes of it if there are none.

use crate::bench::{Bench, message};
use mochila_broker::exchange::Unroutable;
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{
    DeleteIf, Exchange, ExchangeDeleteIf, ExchangeError, ExchangeKind, ExchangeSettings,
    QueueSettings, SharedQueue,
};
use mochila_wire::{Map, Message, Value};
use std::sync::Arc;

#[test]
fn a_message_goes_once_to_every_queue_that_matches() {
    let mut bench = Bench::new();
    let topic = bench.exchange(ExchangeKind::Topic);
    let a = bench.bind(&topic, "a", "stock.#");
    bench.bind(&topic, "a", "*.ibm");
    let b = bench.bind(&topic, "b", "stock.ibm");
    bench.publish(&topic, &["stock.ibm", "stock.sun", "bond.ibm", "bond.sun"]);
    assert_eq!(bench.texts(&a), ["stock.ibm", "stock.sun", "bond.ibm"]);
    assert_eq!(bench.texts(&b), ["stock.ibm"]);
    let numbers = topic.statistics();
    assert_eq!((numbers.msg_receives, numbers.msg_routes, numbers.msg_drops), (4, 4, 1));
    assert_eq!((numbers.binding_count, bench.broker.discards_no_route()), (3, 1));
}

#[test]
fn k11_a_topic_pattern_of_many_wildcards_is_no_bomb() {
    let mut bench = Bench::new();
    let topic = bench.exchange(ExchangeKind::Topic);
    let wild = "#.a.*.".repeat(40);
    let a = bench.bind(&topic, "a", &format!("{wild}b"));
    let b = bench.bind(&topic, "b", &format!("{wild}c"));
    let key = format!("{}b", "a.".repeat(500));
    bench.publish(&topic, &[&key]);
    assert_eq!(bench.texts(&a), [key]);
    assert_eq!(bench.texts(&b), [""; 0]);
}

#[test]
fn the_messages_of_one_sender_stay_in_order_whatever_their_keys() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let both = bench.bind(&direct, "both", "a");
    bench.bind(&direct, "both", "b");
    let one = bench.bind(&direct, "one", "b");
    bench.publish(&direct, &["a", "b", "a", "a", "b", "c", "b"]);
    assert_eq!(bench.texts(&both), ["a", "b", "a", "a", "b", "b"]);
    assert_eq!(bench.texts(&one), ["b", "b", "b"]);
}

#[test]
fn a_queue_that_is_bound_to_the_alternate_exchange_too_gets_all_in_order() {
    let mut bench = Bench::new();
    let fanout = bench.exchange_with("alternate", |settings| settings.kind = ExchangeKind::Fanout);
    let direct = bench.exchange_with("first", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.alternate_exchange = Some("alternate".into());
    });
    let both = bench.bind(&direct, "both", "k");
    bench.bind(&fanout, "both", "");
    bench.publish(&direct, &["1", "k", "2", "k", "k", "3"]);
    assert_eq!(bench.texts(&both), ["1", "k", "2", "k", "k", "3"]);
}

#[test]
fn a_fanout_exchange_and_an_address_with_a_key_do_not_look_at_subjects() {
    let mut bench = Bench::new();
    let fanout = bench.broker.exchange("amq.fanout").unwrap();
    let (a, b) = (bench.bind(&fanout, "a", "x"), bench.bind(&fanout, "b", ""));
    bench.publish(&fanout, &["1", "2"]);
    assert_eq!(
        (bench.texts(&a), bench.texts(&b)),
        (vec!["1".into(), "2".into()], vec!["1".into(), "2".into()])
    );
    let direct = bench.broker.exchange("amq.direct").unwrap();
    let c = bench.bind(&direct, "c", "key");
    bench.publish_all(&direct, Some("key"), vec![message("1"), message("key")]);
    assert_eq!(bench.texts(&c), ["1", "key"]);
}

#[test]
fn a_headers_exchange_goes_by_application_properties() {
    let mut bench = Bench::new();
    let headers = bench.broker.exchange("amq.match").unwrap();
    let arguments = Map::new().with("x-match", "all").with("colour", "red");
    let red = bench.bind_with(&headers, "red", "k", arguments.clone());
    let all = bench.bind_with(&headers, "all", "", Map::new().with("x-match", "all"));
    let coloured = |colour: &str| {
        let mut message = message(colour);
        message.set_application_property("colour", colour);
        message
    };
    bench.publish_all(&headers, None, vec![coloured("red"), coloured("blue"), coloured("red")]);
    assert_eq!(bench.texts(&red), ["red", "red"]);
    assert_eq!(bench.texts(&all), ["red", "blue", "red"]);
    let again = headers.bind(bench.now, &red, "k", arguments).unwrap().0;
    assert!(!again, "the same binding once more changes nothing");
    let other = Map::new().with("x-match", "any").with("colour", "red");
    let error = headers.bind(bench.now, &red, "k", other).unwrap_err();
    assert!(matches!(error, ExchangeError::Duplicate { .. }));
    let error = headers.bind(bench.now, &red, "other", Map::new()).unwrap_err();
    assert!(error.to_string().contains("it needs x-match"), "{error}");
}

#[test]
fn the_bytes_of_a_message_are_there_and_paid_for_once_however_many_queues_have_it() {
    let mut bench = Bench::new();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    bench.bind(&fanout, "q0", "");
    let before = bench.broker.budget().used();
    bench.publish_all(&fanout, None, vec![Message::of_data(vec![0; 10_000])]);
    let one = bench.broker.budget().used() - before;
    let queues: Vec<_> = (1..10).map(|i| bench.bind(&fanout, &format!("q{i}"), "")).collect();
    let before = bench.broker.budget().used();
    bench.publish_all(&fanout, None, vec![Message::of_data(vec![0; 10_000])]);
    assert_eq!(bench.broker.budget().used() - before, one);
    for queue in &queues {
        assert_eq!((queue.statistics().msg_depth, queue.available()), (1, 1));
        bench.purge(queue);
    }
    assert_eq!(bench.broker.budget().used() - before, one, "q0 still has it");
    bench.purge(&bench.queue("q0"));
    assert!(bench.broker.budget().used() < before);
}

#[test]
fn a_full_queue_refuses_for_itself_alone() {
    let mut bench = Bench::new();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let small = QueueSettings { max_count: Some(2), ..QueueSettings::default() };
    let small = bench.broker.create("small", small).unwrap();
    fanout.bind(bench.now, &small, "", Map::new()).unwrap().1.perform();
    let large = bench.bind(&fanout, "large", "");
    let published = bench.publish(&fanout, &["1", "2", "3", "4"]);
    assert!(published.rejected.is_empty() && published.released.is_empty());
    assert_eq!(bench.texts(&small), ["1", "2"]);
    assert_eq!(bench.texts(&large), ["1", "2", "3", "4"]);
    assert_eq!(small.statistics().discards_overflow, 2);
}

#[test]
fn what_a_full_queue_refuses_for_itself_alone_is_a_dead_letter() {
    for in_transaction in [false, true] {
        let mut bench = Bench::new();
        let dead = bench.exchange_with("dead", |settings| settings.kind = ExchangeKind::Fanout);
        let letters = bench.bind(&dead, "letters", "");
        let direct = bench.exchange(ExchangeKind::Direct);
        let small = QueueSettings {
            max_count: Some(1),
            alternate_exchange: Some("dead".into()),
            ..QueueSettings::default()
        };
        let small = bench.broker.create("small", small).unwrap();
        direct.bind(bench.now, &small, "k", Map::new()).unwrap().1.perform();
        let large = bench.bind(&direct, "large", "k");
        let subjects = ["other", "k", "other", "k", "k"];
        if in_transaction {
            let mut transaction = bench.broker.begin();
            bench.publish_in(&mut transaction, &direct, &subjects);
            assert!(bench.texts(&letters).is_empty());
            transaction.commit(bench.now).unwrap().perform();
        } else {
            assert!(bench.publish(&direct, &subjects).rejected.is_empty());
        }
        assert_eq!((bench.texts(&small).len(), bench.texts(&large).len()), (1, 3));
        let letters = bench.messages(&letters);
        let annotation = |letter: &Message, key: &str| {
            letter.message_annotations.as_ref().and_then(|map| map.get(key)).cloned()
        };
        assert_eq!(letters.len(), 2, "{in_transaction}");
        for letter in &letters {
            assert_eq!(annotation(letter, "x-opt-deadletter-source"), Some("small".into()));
            assert_eq!(annotation(letter, "x-opt-deadletter-reason"), Some("overflow".into()));
        }
        assert_eq!(small.statistics().discards_overflow, 2);
    }
}

#[test]
fn dead_letters_do_not_come_back_to_where_there_was_no_room() {
    let mut bench = Bench::new();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let limited = |max_count, limit_policy, to: &str| QueueSettings {
        max_count: Some(max_count),
        limit_policy,
        alternate_exchange: Some(to.into()),
        ..QueueSettings::default()
    };
    let bind = |bench: &Bench, exchange: &Exchange, queue: &Arc<SharedQueue>| {
        exchange.bind(bench.now, queue, "", Map::new()).unwrap().1.perform();
    };
    // What sends to it is also where its dead letters go.
    let small = bench.broker.create("small", limited(1, LimitPolicy::Reject, "e")).unwrap();
    bind(&bench, &fanout, &small);
    let large = bench.bind(&fanout, "large", "");
    for text in ["0", "1", "2"] {
        bench.publish(&fanout, &[text]);
    }
    assert_eq!(bench.texts(&small), ["0"]);
    assert_eq!(bench.texts(&large), ["0", "1", "1", "2", "2"]);
    // Many of them tell nobody more than they would alone.
    for name in ["second", "third", "fourth", "fifth"] {
        let queue = bench.broker.create(name, limited(1, LimitPolicy::Reject, "e")).unwrap();
        bind(&bench, &fanout, &queue);
    }
    bench.publish(&fanout, &["3"]);
    bench.purge(&large);
    bench.publish(&fanout, &["4"]);
    assert_eq!(bench.texts(&large), ["4"; 6], "once, and once for each that had no room");
    // Rings to each other, and one to itself.
    let exchanges = ["to-a", "to-b", "to-c"]
        .map(|name| bench.exchange_with(name, |settings| settings.kind = ExchangeKind::Fanout));
    let rings = [("a", "to-b"), ("b", "to-a"), ("c", "to-c")]
        .map(|(name, to)| bench.broker.create(name, limited(2, LimitPolicy::Ring, to)).unwrap());
    for (exchange, ring) in exchanges.iter().zip(&rings) {
        bind(&bench, exchange, ring);
    }
    for text in ["0", "1", "2", "3", "4", "5", "6", "7"] {
        bench.publish(&exchanges[0], &[text]);
        bench.publish(&exchanges[2], &[text]);
    }
    let left = rings.each_ref().map(|ring| bench.texts(ring));
    assert_eq!(left, [["6", "7"], ["4", "5"], ["6", "7"]]);
}

#[test]
fn what_its_sender_is_told_is_refused_is_no_dead_letter() {
    let mut bench = Bench::new();
    let letters = bench.bind(&bench.broker.exchange("amq.fanout").unwrap(), "letters", "");
    let fanout = bench.exchange(ExchangeKind::Fanout);
    for name in ["a", "b"] {
        let small = QueueSettings {
            max_count: Some(1),
            alternate_exchange: Some("amq.fanout".into()),
            ..QueueSettings::default()
        };
        let small = bench.broker.create(name, small).unwrap();
        fanout.bind(bench.now, &small, "", Map::new()).unwrap().1.perform();
    }
    assert_eq!(bench.publish(&fanout, &["1", "2"]).rejected.len(), 1);
    assert!(bench.texts(&letters).is_empty());
}

#[test]
fn a_message_that_every_queue_refuses_is_rejected() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let small = || QueueSettings { max_count: Some(1), ..QueueSettings::default() };
    for (name, key) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let queue = bench.broker.create(name, small()).unwrap();
        direct.bind(bench.now, &queue, key, Map::new()).unwrap().1.perform();
    }
    let published = bench.publish(&direct, &["x", "y", "x", "z", "y"]);
    let rejected: Vec<u32> = published.rejected.iter().map(|rejected| rejected.index).collect();
    assert_eq!(rejected, [2, 4]);
    let published = bench.publish(&direct, &["x"]);
    assert_eq!(published.rejected.len(), 1);
    bench.purge(&bench.queue("b"));
    assert!(bench.publish(&direct, &["x"]).rejected.is_empty());
}

#[test]
fn what_nobody_is_bound_for_is_dropped_released_or_rejected_as_the_exchange_says() {
    let mut bench = Bench::new();
    for (name, unroutable, expected) in [
        ("discard", Unroutable::Discard, (0, 0)),
        ("release", Unroutable::Release, (0, 2)),
        ("reject", Unroutable::Reject, (2, 0)),
    ] {
        let exchange = bench.exchange_with(name, |settings| {
            settings.kind = ExchangeKind::Direct;
            settings.unroutable = unroutable;
        });
        let queue = bench.bind(&exchange, name, "a");
        let published = bench.publish(&exchange, &["x", "a", "y"]);
        assert_eq!((published.rejected.len(), published.released.len()), expected, "{name}");
        assert_eq!(bench.texts(&queue), ["a"]);
        assert_eq!(exchange.statistics().msg_drops, 2);
    }
}

#[test]
fn an_alternate_exchange_gets_what_nobody_is_bound_for_and_hands_it_on_once() {
    let mut bench = Bench::new();
    bench.exchange_with("last", |settings| settings.kind = ExchangeKind::Fanout);
    let last = bench.broker.exchange("last").unwrap();
    let never = bench.bind(&last, "never", "");
    let second = bench.exchange_with("second", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.alternate_exchange = Some("last".into());
    });
    let first = bench.exchange_with("first", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.alternate_exchange = Some("second".into());
    });
    let (a, b) = (bench.bind(&first, "a", "a"), bench.bind(&second, "b", "b"));
    bench.publish(&first, &["a", "b", "c", "b"]);
    assert_eq!(bench.texts(&a), ["a"]);
    assert_eq!(bench.texts(&b), ["b", "b"]);
    assert!(bench.texts(&never).is_empty());
    assert_eq!(first.statistics().msg_drops, 1);
    let error = second.delete(ExchangeDeleteIf::default()).unwrap_err();
    assert!(matches!(error, ExchangeError::InUse { .. }), "{error}");
    first.delete(ExchangeDeleteIf::default()).unwrap().perform();
    assert_eq!(bench.broker.discards_no_route(), 1, "what has happened stays counted");
    drop(first);
    second.delete(ExchangeDeleteIf::default()).unwrap().perform();
}

#[test]
fn a_queue_that_is_bound_later_gets_the_last_message_if_it_matches_and_is_still_good() {
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    assert!(bench.texts(&bench.bind(&topic, "early", "#")).is_empty());
    let mut last = message("stock.ibm");
    last.header_mut().ttl = Some(1_000);
    bench.publish_all(&topic, None, vec![message("stock.sun"), last]);
    assert_eq!(bench.texts(&bench.queue("early")), ["stock.sun", "stock.ibm"]);
    let late = bench.bind(&topic, "late", "stock.*");
    assert_eq!(bench.texts(&late), ["stock.ibm"]);
    bench.bind(&topic, "late", "stock.*");
    assert_eq!(bench.texts(&late), ["stock.ibm"], "it was bound already");
    assert!(bench.texts(&bench.bind(&topic, "other", "bond.*")).is_empty());
    assert_eq!(bench.texts(&bench.queue("early")).len(), 2, "others do not get it again");
    bench.now = bench.now.after(400);
    let later = bench.bind(&topic, "later", "#");
    assert_eq!(bench.messages(&later)[0].header.unwrap().ttl, Some(600));
    bench.now = bench.now.after(600);
    assert!(bench.texts(&bench.bind(&topic, "too late", "#")).is_empty());
}

#[test]
fn an_exclusive_binding_ends_the_others_with_its_key() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let (a, b) = (bench.bind(&direct, "a", "k"), bench.bind(&direct, "b", "other"));
    bench.bind(&direct, "b", "k");
    let exclusive = Map::new().with("qpid.exclusive-binding", true);
    let c = bench.bind_with(&direct, "c", "k", exclusive);
    bench.publish(&direct, &["k", "other"]);
    assert!(bench.texts(&a).is_empty());
    assert_eq!((bench.texts(&b), bench.texts(&c)), (vec!["other".into()], vec!["k".into()]));
    assert!(bench.broker.exchanges_of(&a).is_empty());
    assert_eq!(bench.broker.exchanges_of(&b).len(), 1);
}

#[test]
fn a_binding_does_not_get_other_arguments_than_it_has() {
    let bench = Bench::new();
    let flag = |value: Value| Map::new().with("qpid.exclusive-binding", value);
    for (exchange, has, others) in [
        ("amq.topic", Map::new(), Map::new().with("foo", 1)),
        ("amq.fanout", Map::new().with("foo", 1), Map::new().with("foo", 2)),
        ("amq.direct", Map::new(), flag(true.into())),
        ("amq.direct", flag(true.into()), flag(false.into())),
    ] {
        let exchange = bench.broker.exchange(exchange).unwrap();
        let queue = bench.bind_with(&exchange, "q", "k", has.clone());
        let other = bench.bind(&exchange, "other", "k");
        let error = exchange.bind(bench.now, &queue, "k", others).unwrap_err();
        assert!(matches!(error, ExchangeError::Duplicate { .. }), "{error}");
        assert_eq!(exchange.bindings_of(&other).len(), 1, "nobody else loses his binding by that");
        for again in [has.clone(), Map::new()] {
            assert!(!exchange.bind(bench.now, &queue, "k", again).unwrap().0);
        }
        assert_eq!(*exchange.binding(&queue, "k").unwrap().arguments(), has);
        for queue in [&queue, &other] {
            let _ = exchange.unbind(queue, "k");
        }
    }
}

#[test]
fn arguments_of_a_binding_that_say_the_same_are_the_same() {
    let bench = Bench::new();
    let direct = bench.broker.exchange("amq.direct").unwrap();
    let flag = |value: Value| Map::new().with("qpid.exclusive-binding", value).with("foo", 1);
    for (key, has, again) in [
        ("yes", flag(1.into()), flag(true.into())),
        ("no", flag(false.into()), Map::new().with("foo", 1)),
        ("none", Map::new().with("foo", 1), flag("no".into())),
    ] {
        let queue = bench.bind_with(&direct, "q", key, has);
        assert!(!direct.bind(bench.now, &queue, key, again).unwrap().0, "{key}");
    }
}

#[test]
fn a_binding_that_is_not_exclusive_ends_no_others() {
    let bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let there = bench.bind(&direct, "there", "k");
    for value in [false.into(), 0.into(), "no".into()] {
        let arguments = Map::new().with("qpid.exclusive-binding", Value::clone(&value));
        let queue = bench.queue(&format!("{value}"));
        assert!(direct.bind(bench.now, &queue, "k", arguments).unwrap().0);
        assert_eq!(direct.bindings_of(&there).len(), 1, "{value}");
    }
    let arguments = Map::new().with("qpid.exclusive-binding", "maybe");
    let error = direct.bind(bench.now, &bench.queue("q"), "k", arguments).unwrap_err();
    assert!(error.to_string().contains("takes true or false"), "{error}");
}

#[test]
fn only_a_direct_exchange_has_exclusive_bindings() {
    let bench = Bench::new();
    for name in ["amq.fanout", "amq.topic", "amq.match"] {
        let exchange = bench.broker.exchange(name).unwrap();
        let arguments = Map::new().with("x-match", "all").with("qpid.exclusive-binding", true);
        let there = bench.bind_with(&exchange, "q", "k", Map::new().with("x-match", "any"));
        let other = bench.queue("other");
        let error = exchange.bind(bench.now, &other, "k", arguments).unwrap_err();
        assert!(error.to_string().contains("is for direct exchanges"), "{name}: {error}");
        assert_eq!(exchange.bindings_of(&there).len(), 1, "{name}");
    }
}

#[test]
fn a_route_that_is_known_changes_with_the_bindings() {
    let mut bench = Bench::new();
    let topic = bench.exchange(ExchangeKind::Topic);
    let (a, b) = (bench.bind(&topic, "a", "#"), bench.queue("b"));
    bench.publish(&topic, &["x"]);
    bench.bind(&topic, "b", "x");
    bench.publish(&topic, &["x"]);
    topic.unbind(&a, "#").unwrap().perform();
    bench.publish(&topic, &["x"]);
    assert_eq!((bench.texts(&a).len(), bench.texts(&b).len()), (2, 2));
    let error = topic.unbind(&a, "#").unwrap_err();
    assert!(matches!(error, ExchangeError::NotBound { .. }));
}

#[test]
fn the_bindings_of_a_queue_go_with_it() {
    let mut bench = Bench::new();
    let fresh = bench.broker.budget().used();
    let topic = bench.broker.exchange("amq.topic").unwrap();
    let direct = bench.broker.exchange("amq.direct").unwrap();
    let a = bench.bind(&topic, "a", "#");
    bench.bind(&topic, "a", "x.y");
    bench.bind(&direct, "a", "x");
    bench.broker.delete("a", DeleteIf::default()).unwrap().perform();
    assert_eq!((topic.statistics().binding_count, direct.statistics().binding_count), (0, 0));
    assert!(matches!(
        topic.bind(bench.now, &a, "#", Map::new()),
        Err(ExchangeError::NoQueue { .. })
    ));
    assert_eq!(topic.statistics().binding_count, 0);
    bench.publish(&topic, &["x.y"]);
    assert_eq!(topic.statistics().msg_drops, 1);
    drop((a, std::mem::take(&mut bench.routing)));
    assert_eq!(bench.broker.budget().used(), fresh, "memory is left");
}

#[test]
fn an_exchange_that_goes_by_itself_goes_with_its_last_binding_and_sender() {
    let bench = Bench::new();
    let exchange = bench.exchange_with("e", |settings| settings.auto_delete = true);
    let publisher = bench.publisher(&exchange);
    let queue = bench.bind(&exchange, "q", "#");
    exchange.unbind(&queue, "#").unwrap().perform();
    assert!(bench.broker.exchange("e").is_some(), "somebody still sends to it");
    publisher.detach(bench.now).perform();
    assert!(bench.broker.exchange("e").is_none() && exchange.is_deleted());
    let again = bench.exchange_with("e", |settings| settings.auto_delete = true);
    bench.bind(&again, "q", "#");
    bench.broker.delete("q", DeleteIf::default()).unwrap().perform();
    assert!(bench.broker.exchange("e").is_none());
}

#[test]
fn exchanges_that_are_always_there_stay_and_their_names_are_reserved() {
    let bench = Bench::new();
    let names = ["amq.direct", "amq.fanout", "amq.match", "amq.topic"];
    let mut there: Vec<_> =
        bench.broker.exchanges().iter().map(|exchange| exchange.name().to_owned()).collect();
    there.sort();
    assert_eq!(there, names);
    for name in names {
        let error = bench.broker.delete_exchange(name, ExchangeDeleteIf::default()).unwrap_err();
        assert!(matches!(error, ExchangeError::Predeclared { .. }));
    }
    for name in ["", "amq.mine", "qpid.mine", "a/b", "$a"] {
        let error = bench.broker.create_exchange(name, ExchangeSettings::default()).unwrap_err();
        assert!(matches!(error, ExchangeError::InvalidName { .. }), "{name}");
    }
    bench.exchange(ExchangeKind::Direct);
    let error = bench.broker.create_exchange("e", ExchangeSettings::default()).unwrap_err();
    assert!(matches!(error, ExchangeError::Exists { .. }));
    let missing = ExchangeSettings {
        alternate_exchange: Some("missing".into()),
        ..ExchangeSettings::default()
    };
    let error = bench.broker.create_exchange("f", missing).unwrap_err();
    assert!(matches!(error, ExchangeError::NotFound { .. }));
}

#[test]
fn an_address_is_an_exchange_or_an_exchange_and_a_key() {
    let bench = Bench::new();
    let at = |address| {
        let found = bench.broker.exchange_at(address);
        found.map(|(exchange, key)| (exchange.name().to_owned(), key))
    };
    assert_eq!(at("amq.topic"), Some(("amq.topic".into(), None)));
    assert_eq!(at("amq.topic/a.b/c"), Some(("amq.topic".into(), Some("a.b/c"))));
    assert_eq!(at("amq.topic/"), Some(("amq.topic".into(), Some(""))));
    assert_eq!((at("other"), at("other/key")), (None, None));
}
