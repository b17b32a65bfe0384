//! Annotations that the queue adds: each message's number, and when it came.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::settings::Defaults;
use mochila_broker::{
    Added, BatchBuilder, BrokerSettings, Front, LargeBody, MessageMeta, Origin, Outcome,
    QueueSettings, TakeLimit, Taken,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message, Value};
use std::sync::Arc;

const TIME: &str = "x-opt-ingress-timestamp";
const TIME_MS: i64 = 1_700_000_123_456;

fn numbered() -> QueueBench {
    let arguments = Map::new().with("qpid.queue_msg_sequence", "seqno");
    QueueBench::new(QueueSettings::from_arguments(&arguments).unwrap())
}

fn annotation(bench: &mut QueueBench, consumer: BenchConsumer, key: &str) -> Option<Value> {
    let (_, message) = bench.receive(consumer);
    message.message_annotations.and_then(|map| map.get(key).cloned())
}

#[test]
fn every_message_gets_its_number_in_the_queue() {
    let mut bench = numbered();
    bench.send_numbers(0..300);
    let consumer = bench.consumer();
    for number in 1..=300u32 {
        assert_eq!(annotation(&mut bench, consumer, "seqno"), Some(Value::Uint(number)));
    }
}

#[test]
fn a_browser_sees_the_number_and_a_message_keeps_it_when_it_comes_back() {
    let mut bench = numbered();
    bench.send_numbers(0..3);
    let (browser, consumer) = (bench.browser(), bench.consumer());
    for _ in 0..2 {
        assert_eq!(annotation(&mut bench, consumer, "seqno"), Some(Value::Uint(1)));
        bench.release(consumer, &[0]);
    }
    assert_eq!(annotation(&mut bench, browser, "seqno"), Some(Value::Uint(1)));
    assert_eq!(annotation(&mut bench, browser, "seqno"), Some(Value::Uint(2)));
}

#[test]
fn a_key_that_the_message_has_is_replaced_and_keeps_its_type() {
    let mut bench = numbered();
    let mut with = message("m");
    with.message_annotations =
        Some(Map::new().with("a", 1u8).with("seqno", 77u64).with("z", "last"));
    bench.send_messages(vec![with]);
    let consumer = bench.consumer();
    let (_, message) = bench.receive(consumer);
    let expected = Map::new().with("a", 1u8).with("seqno", 1u64).with("z", "last");
    assert_eq!(message.message_annotations, Some(expected));
}

#[test]
fn the_number_stands_beside_what_consumers_have_added_and_wins_over_it() {
    let mut bench = numbered();
    bench.send(&["a", "b"]);
    let consumer = bench.consumer();
    bench.take(consumer, 1);
    let annotations = Some(Box::new(Map::new().with("x", 5u32).with("seqno", 99u32)));
    let modified = Outcome::Modify { failed: true, undeliverable_here: false, annotations };
    bench.settle(consumer, &[0], modified);
    let (_, message) = bench.receive(consumer);
    let annotations = message.message_annotations.unwrap();
    assert_eq!(annotations.get("x"), Some(&Value::Uint(5)));
    assert_eq!(annotations.get("seqno"), Some(&Value::Uint(1)));
    assert_eq!(message.header.unwrap().delivery_count, 1);
    assert_eq!(annotation(&mut bench, consumer, "seqno"), Some(Value::Uint(2)), "the next one");
}

/// Sends one message that came over a connection at a known time.
fn send_at(bench: &QueueBench, message: &Message) {
    let bytes = message.to_bytes();
    let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
    let mut builder = BatchBuilder::new();
    builder.set_origin(Origin { connection: 1, time_ms: TIME_MS });
    builder.push(0..bytes.len(), &sections, MessageMeta::read(&sections, &bytes));
    let batch = builder.finish(&bytes, bench.broker.budget()).unwrap();
    bench.queue.enqueue(bench.now, batch).1.perform();
}

#[test]
fn the_time_is_that_of_the_arrival_in_nanoseconds() {
    let settings = QueueSettings { ingress_timestamp: Some(true), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    send_at(&bench, &message("m"));
    bench.pass(5_000);
    let consumer = bench.consumer();
    let time = Value::Long(TIME_MS * 1_000_000);
    assert_eq!(annotation(&mut bench, consumer, TIME), Some(time));
}

#[test]
fn a_node_may_stamp_the_messages_of_all_queues_but_those_that_say_no() {
    let defaults = Defaults { ingress_timestamp: true, ..Defaults::default() };
    let node = || BrokerSettings { defaults, ..BrokerSettings::default() };
    for (asked, expected) in [(None, true), (Some(true), true), (Some(false), false)] {
        let settings = QueueSettings { ingress_timestamp: asked, ..QueueSettings::default() };
        let mut bench = QueueBench::with(node(), settings);
        send_at(&bench, &message("m"));
        let consumer = bench.consumer();
        assert_eq!(annotation(&mut bench, consumer, TIME).is_some(), expected);
    }
}

#[test]
fn both_annotations_can_be_had_and_settings_can_change_while_the_queue_is_there() {
    let mut bench = numbered();
    for _ in 0..3 {
        send_at(&bench, &message("m"));
    }
    let consumer = bench.consumer();
    let with_time = QueueSettings { ingress_timestamp: Some(true), ..bench.queue.settings() };
    bench.queue.set_settings(bench.now, with_time).unwrap().perform();
    let (_, both) = bench.receive(consumer);
    assert_eq!(both.message_annotations.unwrap().len(), 2);
    bench.queue.set_settings(bench.now, QueueSettings::default()).unwrap().perform();
    assert_eq!(bench.receive(consumer).1.message_annotations, None);
}

#[test]
fn a_name_that_is_empty_or_no_symbol_is_refused() {
    let settings = |name: &str| {
        let arguments = Map::new().with("qpid.queue_msg_sequence", name);
        QueueSettings::from_arguments(&arguments)
    };
    for name in ["", "n\u{fc}mber"] {
        let sentence = format!("qpid.queue_msg_sequence takes a name in ASCII, not '{name}'");
        assert_eq!(settings(name).unwrap_err().to_string(), sentence);
    }
    // Tools of old sent 1, and got an annotation of that name.
    let arguments = Map::new().with("qpid.queue_msg_sequence", 1u32);
    let settings = QueueSettings::from_arguments(&arguments).unwrap();
    assert_eq!(settings.sequence_key.as_deref(), Some("1"));
    assert_eq!(settings.to_arguments().get("qpid.queue_msg_sequence"), Some(&Value::from("1")));
}

/// FNV-1a; any change of a byte changes it.
fn digest(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[test]
fn the_bare_message_and_the_users_annotations_go_out_byte_for_byte() {
    let mut message = message("body");
    message.header_mut().durable = true;
    message.properties_mut().subject = Some("subject".into());
    message.set_application_property("p", 1.5f64);
    let pairs = (0..200).map(|i| (Value::from(format!("k{i}")), Value::Ulong(i << 40)));
    let user: Map = pairs.collect();
    message.message_annotations = Some(user.clone());
    let original = message.to_bytes();
    let sections = scan(&original, &Limits::DEFAULT).unwrap();
    let mut items = Vec::new();
    user.iter().for_each(|(key, value)| {
        key.encode(&mut items);
        value.encode(&mut items);
    });

    let mut bench = numbered();
    send_at(&bench, &message);
    let (browser, consumer) = (bench.browser(), bench.consumer());
    for link in [browser, consumer] {
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: 1, bytes: usize::MAX };
        bench.queue.take(bench.now, link.id, limit, &mut taken).1.perform();
        let delivery = taken.deliveries()[0];
        let (mut head, mut added) = (Vec::new(), Added::new());
        let from = taken.write_head(&delivery, &mut added, &mut head);
        let bare = &taken.bytes(&delivery)[from..];
        assert_eq!(digest(bare), digest(&original[sections.bare_start()..]));
        assert!(head.windows(items.len()).any(|window| window == items), "the items as they were");
        let sent = Message::decode(&[&head, bare].concat()).unwrap();
        assert_eq!(sent.message_annotations, Some(user.clone().with("seqno", 1u32)));
    }
}

#[test]
fn what_was_written_for_one_message_is_used_for_the_next_only_where_it_is_the_same() {
    let user = Map::new().with("mine", 1u32);
    for sequence in [true, false] {
        let mut settings = QueueSettings { ingress_timestamp: Some(true), ..Default::default() };
        settings.sequence_key = sequence.then(|| "seqno".into());
        let mut bench = QueueBench::new(settings);
        let durable = |mut message: Message| {
            message.header_mut().durable = true;
            message
        };
        let annotated = |mut message: Message| {
            message.message_annotations = Some(user.clone());
            message
        };
        let waits = |mut message: Message| {
            message.header_mut().ttl = Some(60_000);
            message
        };
        let plain = || message("text");
        let messages = vec![
            plain(),
            plain(),
            durable(plain()),
            durable(plain()),
            plain(),
            annotated(plain()),
            plain(),
            annotated(durable(plain())),
            durable(plain()),
            waits(plain()),
            waits(plain()),
            plain(),
        ];
        messages.iter().for_each(|message| send_at(&bench, message));
        bench.pass(7);
        let consumer = bench.consumer();
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: 100, bytes: usize::MAX };
        bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
        assert_eq!(taken.len(), messages.len());
        let mut front = Front::default();
        for delivery in taken.deliveries() {
            let mut head = Vec::new();
            let from = taken.write_head(delivery, &mut Added::new(), &mut head);
            assert_eq!(taken.write_front(delivery, &mut Added::new(), &mut front), from);
            assert_eq!(front.bytes(), head, "message {}", delivery.position);
        }
    }
}

struct OnDisk(Vec<u8>);

impl LargeBody for OnDisk {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.0[offset as usize..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

#[test]
fn a_message_that_is_too_large_for_memory_gets_its_number_too() {
    let mut bench = numbered();
    let whole = message(&"x".repeat(100_000)).to_bytes();
    let sections = scan(&whole, &Limits::DEFAULT).unwrap();
    let head = whole[..sections.body_start()].to_vec();
    let meta = MessageMeta::read(&sections, &whole);
    let mut builder = BatchBuilder::new();
    builder.push_large(head, &sections, meta, Arc::new(OnDisk(whole)));
    let batch = builder.finish(&[], bench.broker.budget()).unwrap();
    bench.queue.enqueue(bench.now, batch).1.perform();
    let consumer = bench.consumer();
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 1, bytes: usize::MAX };
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    let delivery = taken.deliveries()[0];
    let mut added = Added::new();
    let patch = taken.patch(&delivery, &mut added).unwrap();
    assert_eq!(patch.annotations, [("seqno".into(), Value::Uint(1))]);
    bench.perform(bench.queue.unsubscribe(bench.now, consumer.id));
}
