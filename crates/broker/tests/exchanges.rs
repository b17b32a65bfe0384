//! Exchanges, and the queues behind them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use mochila_broker::exchange::Unroutable;
use mochila_broker::{
    Added, BatchBuilder, Broker, BrokerSettings, ConsumerOptions, DeleteIf, Exchange,
    ExchangeDeleteIf, ExchangeError, ExchangeKind, ExchangeSettings, MessageMeta, Mode, Published,
    Publisher, QueueSettings, Routing, SharedQueue, TakeLimit, Taken, Wake, Waker, Want,
};
use mochila_wire::annotation::write_head;
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message, Now, Value};
use std::sync::{Arc, Mutex};

/// A broker, and a clock that is turned by hand.
struct Bench {
    broker: Arc<Broker>,
    now: Now,
    routing: Routing,
    log: Arc<Log>,
}

/// Who has been woken, by key.
#[derive(Default)]
struct Log(Mutex<Vec<u32>>);

impl Wake for Log {
    fn wake(&self, key: u32) {
        self.0.lock().unwrap().push(key);
    }
}

impl Bench {
    fn new() -> Bench {
        Bench {
            broker: Broker::new(BrokerSettings::default()),
            now: Now::new(1_000_000, 1_700_000_000_000),
            routing: Routing::new(),
            log: Arc::default(),
        }
    }

    fn exchange(&self, kind: ExchangeKind) -> Arc<Exchange> {
        self.exchange_with("e", |settings| settings.kind = kind)
    }

    fn exchange_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut ExchangeSettings),
    ) -> Arc<Exchange> {
        let mut settings = ExchangeSettings::default();
        change(&mut settings);
        self.broker.create_exchange(name, settings).unwrap()
    }

    fn queue(&self, name: &str) -> Arc<SharedQueue> {
        self.broker.open(name).unwrap()
    }

    fn bind(&self, exchange: &Exchange, queue: &str, key: &str) -> Arc<SharedQueue> {
        self.bind_with(exchange, queue, key, Map::new())
    }

    fn bind_with(
        &self,
        exchange: &Exchange,
        queue: &str,
        key: &str,
        arguments: Map,
    ) -> Arc<SharedQueue> {
        let queue = self.queue(queue);
        exchange.bind(self.now, &queue, key, arguments).unwrap().1.perform();
        queue
    }

    /// A queue that stops its producers when it has three messages.
    fn stopping(&self, exchange: &Exchange, name: &str, key: &str) -> Arc<SharedQueue> {
        let settings = QueueSettings { flow_stop_count: Some(2), ..QueueSettings::default() };
        let queue = self.broker.create(name, settings).unwrap();
        exchange.bind(self.now, &queue, key, Map::new()).unwrap().1.perform();
        queue
    }

    /// Sends messages with these subjects, which are also their bodies, as one batch.
    fn publish(&mut self, exchange: &Exchange, subjects: &[&str]) -> Published {
        self.publish_all(exchange, None, subjects.iter().map(|it| message(it)).collect())
    }

    fn publish_all(
        &mut self,
        exchange: &Exchange,
        key: Option<&str>,
        messages: Vec<Message>,
    ) -> Published {
        let mut builder = BatchBuilder::new();
        let mut buffer = Vec::new();
        for message in &messages {
            let start = buffer.len();
            message.encode(&mut buffer);
            let bytes = &buffer[start..];
            let sections = scan(bytes, &Limits::DEFAULT).unwrap();
            builder.push(start..buffer.len(), &sections, MessageMeta::read(&sections, bytes));
        }
        let batch = builder.finish(&buffer, self.broker.budget()).unwrap();
        let key = key.map(str::as_bytes);
        let (published, wakeups) = exchange.publish(self.now, batch, key, &mut self.routing);
        wakeups.perform();
        published
    }

    fn publisher(&self, exchange: &Exchange) -> Publisher {
        let log: Arc<dyn Wake> = Arc::clone(&self.log) as _;
        exchange.attach_publisher(None, Waker::new(log, 7)).unwrap()
    }

    fn grant(&self, publisher: &mut Publisher, want: u32) -> u32 {
        let (granted, wakeups) = publisher.grant(self.now, &Want::credit(want));
        wakeups.perform();
        granted
    }

    /// Everything that a queue holds, as it would go out; it stays there.
    fn messages(&self, queue: &SharedQueue) -> Vec<Message> {
        let log: Arc<dyn Wake> = Arc::clone(&self.log) as _;
        let mut options = ConsumerOptions::new(Waker::new(log, 0));
        options.mode = Mode::Browse;
        let id = queue.subscribe(self.now, options).unwrap();
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: u32::MAX, bytes: usize::MAX };
        queue.take(self.now, id, limit, &mut taken).1.perform();
        let mut added = Added::new();
        let mut messages = Vec::new();
        for delivery in taken.deliveries() {
            let bytes = taken.bytes(delivery);
            let mut out = Vec::new();
            let from = taken
                .patch(delivery, &mut added)
                .map_or(0, |patch| write_head(&mut out, bytes, &taken.sections(delivery), &patch));
            out.extend_from_slice(&bytes[from..]);
            messages.push(Message::decode(&out).unwrap());
        }
        queue.unsubscribe(self.now, id).perform();
        messages
    }

    fn texts(&self, queue: &SharedQueue) -> Vec<String> {
        let text = |message: &Message| {
            String::from_utf8(message.body.content().expect("text or bytes").to_vec()).unwrap()
        };
        self.messages(queue).iter().map(text).collect()
    }

    fn purge(&self, queue: &SharedQueue) {
        queue.purge(self.now, u64::MAX).1.perform();
    }

    fn woken(&self) -> Vec<u32> {
        std::mem::take(&mut self.log.0.lock().unwrap())
    }
}

/// A message whose subject is its body.
fn message(subject: &str) -> Message {
    let mut message = Message::of_value(subject);
    message.properties_mut().subject = Some(subject.to_owned());
    message
}

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
    let all = bench.bind(&headers, "all", "");
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
fn messages_get_numbers_of_their_exchange() {
    let mut bench = Bench::new();
    let direct = bench.exchange_with("e", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.sequences = true;
    });
    let (a, b) = (bench.bind(&direct, "a", "a"), bench.bind(&direct, "b", "b"));
    bench.publish(&direct, &["a", "b", "b"]);
    let mut annotated = message("a");
    annotated.set_message_annotation("x-opt-mine", 5u32);
    bench.publish_all(&direct, None, vec![annotated]);
    let numbers = |queue: &SharedQueue| -> Vec<Value> {
        let messages = bench.messages(queue);
        let number = |message: &Message| {
            message.message_annotations.as_ref().unwrap().get("qpid.msg_sequence").unwrap().clone()
        };
        messages.iter().map(number).collect()
    };
    assert_eq!(numbers(&a), [Value::Long(1), Value::Long(4)]);
    assert_eq!(numbers(&b), [Value::Long(2), Value::Long(3)]);
    let last = bench.messages(&a).pop().unwrap().message_annotations.unwrap();
    assert_eq!(last.get("x-opt-mine"), Some(&Value::Uint(5)));
    bench.purge(&a);
    bench.purge(&b);
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

#[test]
fn a_sender_whose_messages_all_go_to_one_queue_is_held_back_by_it() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    let mut publisher = bench.publisher(&direct);
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    assert_eq!(full.statistics().producers_waiting, 1);
    bench.purge(&full);
    assert_eq!(bench.woken(), [7]);
    assert_eq!(bench.grant(&mut publisher, 100), 3, "as much as there is room");
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    bench.broker.delete("full", DeleteIf::default()).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    publisher.detach(bench.now).perform();
    assert_eq!(direct.statistics().producer_count, 0);
}

#[test]
fn a_full_queue_does_not_hold_back_a_sender_whose_messages_go_to_others_too() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    bench.bind(&direct, "roomy", "roomy");
    let mut publisher = bench.publisher(&direct);
    for _ in 0..100 {
        for key in ["full", "roomy"] {
            publisher.note(&bench.publish(&direct, &[key]));
            if full.statistics().msg_depth > 1 {
                assert_eq!(bench.grant(&mut publisher, 100), 100);
            }
        }
    }
    for _ in 0..100 {
        publisher.note(&bench.publish(&direct, &["full"]));
    }
    assert_eq!(bench.grant(&mut publisher, 100), 0, "nothing has gone elsewhere for long");
    bench.purge(&full);
    publisher.note(&bench.publish(&direct, &["roomy"]));
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    assert_eq!(full.statistics().producer_count, 0, "it is not its producer any more");
    publisher.detach(bench.now).perform();
}

#[test]
fn a_sender_is_held_back_when_every_queue_that_it_sends_to_is_full() {
    let mut bench = Bench::new();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let a = bench.stopping(&fanout, "a", "");
    let b = bench.stopping(&fanout, "b", "");
    let mut publisher = bench.publisher(&fanout);
    publisher.note(&bench.publish(&fanout, &["1", "2", "3"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    bench.purge(&a);
    bench.purge(&b);
    assert_eq!(bench.woken(), [7]);
    assert!(bench.grant(&mut publisher, 100) > 0);
    publisher.note(&bench.publish(&fanout, &["1"]));
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    publisher.detach(bench.now).perform();
}

#[test]
fn a_queue_that_holds_a_sender_back_is_not_in_use_because_of_it() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    let mut publisher = bench.publisher(&direct);
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    assert_eq!(full.statistics().producer_count, 0);
    full.delete(DeleteIf { unused: true, empty: false }).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    publisher.detach(bench.now).perform();
}

#[test]
fn whoever_sends_to_an_exchange_that_is_deleted_is_told() {
    let bench = Bench::new();
    let exchange = bench.exchange(ExchangeKind::Direct);
    let publisher = bench.publisher(&exchange);
    let unused = ExchangeDeleteIf { unused: true };
    assert!(matches!(exchange.delete(unused), Err(ExchangeError::InUse { .. })));
    exchange.delete(ExchangeDeleteIf::default()).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    assert!(publisher.exchange().is_deleted());
    publisher.detach(bench.now).perform();
}
