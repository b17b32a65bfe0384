//! Annotations that a queue adds to its messages, as a receiver finds them.

use crate::bench::{Bench, pattern, text};
use mochila_wire::{DeliveryState, Map, Message, Value};

fn annotation(message: &Message, key: &str) -> Option<Value> {
    message.message_annotations.as_ref()?.get(key).cloned()
}

#[test]
fn d8_a_number_is_merged_with_what_the_sender_said_and_keeps_its_type() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.sequence_key = Some("seqno".into()));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 10);
    let mut typed = text("typed");
    typed.message_annotations = Some(Map::new().with("seqno", 0i64).with("x-opt-mine", 7u8));
    bench.send(sender, &text("plain"));
    bench.send(sender, &typed);
    let got = bench.got(receiver);
    assert_eq!(annotation(&got[0].message(), "seqno"), Some(Value::Uint(1)));
    let expected = Map::new().with("seqno", 2i64).with("x-opt-mine", 7u8);
    assert_eq!(got[1].message().message_annotations, Some(expected));
}

#[test]
fn d5_annotations_of_a_modified_message_stand_beside_those_of_the_queue_when_it_comes_again() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.sequence_key = Some("seqno".into()));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 10);
    bench.send(sender, &text("m"));
    let got = bench.got(receiver).remove(0);
    let modified = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: Some(Map::new().with("x-opt-why", "busy")),
    };
    bench.settle(&got, modified);
    let again = bench.got(receiver).remove(0).message();
    let expected = Map::new().with("x-opt-why", "busy").with("seqno", 1u32);
    assert_eq!(again.message_annotations, Some(expected));
    assert_eq!(again.header.unwrap().delivery_count, 1);
}

#[test]
fn a_large_message_gets_its_number_and_the_time_and_its_body_is_the_same() {
    let mut bench = Bench::with(|setup| setup.settings.large_message_bytes = 10_000);
    bench.create("q", |settings| {
        settings.sequence_key = Some("seqno".into());
        settings.ingress_timestamp = Some(true);
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let arrival = bench.now.wall_ms;
    let message = Message::of_data(pattern(300_000));
    bench.send(sender, &message);
    bench.advance(2_000);
    let receiver = bench.receiver(client, "q", 10);
    let got = bench.got(receiver).remove(0).message();
    assert_eq!(annotation(&got, "seqno"), Some(Value::Uint(1)));
    let time = Value::Long(arrival * 1_000_000);
    assert_eq!(annotation(&got, "x-opt-ingress-timestamp"), Some(time));
    assert_eq!(got.body, message.body);
}
