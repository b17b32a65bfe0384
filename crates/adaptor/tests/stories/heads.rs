//! What the broker changes in front of a message, and what it leaves alone.

use crate::bench::raw::whole;
use crate::bench::{Bench, Client, Link, pattern, text};
use mochila_engine::Delivery;
use mochila_wire::message::Header;
use mochila_wire::{DeliveryState, Encode, Limits, Map, Message, Timestamp, Value, section};

fn linked() -> (Bench, Client, Link) {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    (bench, client, sender)
}

/// A message with every section before and after its body.
fn full() -> Message {
    let mut message = Message::of_data(pattern(500));
    *message.header_mut() = Header { durable: true, priority: 7, ..Header::default() };
    message.set_message_annotation("x-opt-user", 1u64);
    message.properties_mut().subject = Some("subject".into());
    message.set_application_property("a", Value::List(vec![1u8.into(), Value::Null]));
    message.footer = Some(Map::new().with("crc", 7u32));
    message
}

fn bare(bytes: &[u8]) -> &[u8] {
    let sections = section::scan(bytes, &Limits::DEFAULT).unwrap();
    &bytes[sections.bare().start..]
}

#[test]
fn a_message_that_nothing_happened_to_comes_out_byte_for_byte() {
    let (mut bench, client, sender) = linked();
    let receiver = bench.receiver(client, "q", 10);
    // Wide encodings where narrow ones would do: a sign that nothing was encoded anew.
    let odd: &[u8] = &[
        0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x70, 0xd0, 0, 0, 0, 6, 0, 0, 0, 2, 0x42, 0x40, //
        0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x77, 0xb1, 0, 0, 0, 2, b'h', b'i',
    ];
    for bytes in [odd, &full().to_bytes()] {
        bench.send_bytes(sender, bytes, false);
        assert_eq!(bench.got(receiver)[0].bytes, bytes);
    }
}

#[test]
fn the_bare_message_stays_as_it_is_whatever_is_changed_in_front_of_it() {
    let (mut bench, client, sender) = linked();
    let mut message = full();
    message.header_mut().ttl = Some(60_000);
    message.header_mut().first_acquirer = true;
    message.delivery_annotations = Some(Map::new().with("x-opt-hop", 1u32));
    let sent = message.to_bytes();
    bench.send_bytes(sender, &sent, false);
    let receiver = bench.receiver(client, "q", 0);
    for round in 0..4u32 {
        bench.advance(1_000);
        bench.grant(receiver, 1);
        let got = bench.got(receiver).remove(0);
        assert_eq!(bare(&got.bytes), bare(&sent), "round {round}");
        assert_eq!(got.message().header.unwrap().delivery_count, round);
        let annotations = Map::new().with("x-opt-round", round);
        let message_annotations = Some(annotations);
        bench.settle(
            &got,
            DeliveryState::Modified {
                delivery_failed: true,
                undeliverable_here: false,
                message_annotations,
            },
        );
    }
}

#[test]
fn the_time_to_live_that_is_left_goes_along() {
    let (mut bench, client, sender) = linked();
    let mut message = text("fleeting");
    message.header_mut().ttl = Some(10_000);
    bench.send(sender, &message);
    bench.advance(2_500);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver).remove(0);
    assert_eq!(got.message().header.unwrap().ttl, Some(7_500));
    bench.settle(&got, DeliveryState::Released);
    bench.advance(2_500);
    bench.grant(receiver, 1);
    assert_eq!(bench.got(receiver)[0].message().header.unwrap().ttl, Some(5_000));
}

#[test]
fn a_message_whose_time_is_up_is_not_delivered() {
    let (mut bench, client, sender) = linked();
    let mut by_ttl = text("ttl");
    by_ttl.header_mut().ttl = Some(1_000);
    let mut by_time = text("time");
    by_time.properties_mut().absolute_expiry_time = Some(Timestamp(bench.now.wall_ms + 1_000));
    for message in [&by_ttl, &by_time, &text("stays")] {
        bench.send(sender, message);
    }
    bench.advance(1_001);
    let receiver = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(receiver), ["stays"]);
    assert_eq!(bench.numbers("q").discards_ttl, 2);
}

#[test]
fn j1_a_message_expires_wherever_it_stands() {
    let (mut bench, client, sender) = linked();
    for (body, ttl) in [("long", Some(1_000_000)), ("short", Some(500)), ("ever", None)] {
        let mut message = text(body);
        message.header_mut().ttl = ttl;
        bench.send(sender, &message);
    }
    // Nobody looks at the queue, and the first message holds nothing up.
    bench.advance(1_000);
    assert_eq!((bench.depth("q"), bench.numbers("q").discards_ttl), (2, 1));
    let receiver = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(receiver), ["long", "ever"]);
}

#[test]
fn a_message_that_expires_while_it_is_held_is_not_delivered_again() {
    let (mut bench, client, sender) = linked();
    let mut message = text("held");
    message.header_mut().ttl = Some(1_000);
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver).remove(0);
    bench.advance(5_000);
    assert_eq!(bench.depth("q"), 1, "whoever holds it may still accept it");
    bench.settle(&got, DeliveryState::Released);
    assert_eq!((bench.depth("q"), bench.numbers("q").discards_ttl), (0, 1));
}

#[test]
fn delivery_annotations_end_here_and_message_annotations_go_on() {
    let (mut bench, client, sender) = linked();
    let mut message = full();
    message.delivery_annotations = Some(Map::new().with("x-opt-for-this-hop", true));
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver)[0].message();
    assert_eq!(got, Message { delivery_annotations: None, ..message });
}

#[test]
fn the_format_of_a_message_is_kept() {
    let (mut bench, client, sender) = linked();
    let receiver = bench.receiver(client, "q", 10);
    // A batch as Azure clients send it.
    let batch = Delivery { message_format: 0x8001_3700, ..Delivery::default() };
    bench.deliver(sender, &batch, &Message::of_data(pattern(100)).to_bytes());
    bench.deliver(sender, &batch, &Message::of_data(pattern(200_000)).to_bytes());
    bench.send(sender, &text("ordinary"));
    let formats: Vec<_> = bench.got(receiver).iter().map(|got| got.format).collect();
    assert_eq!(formats, [0x8001_3700, 0x8001_3700, 0]);
}

#[test]
fn a_format_that_is_not_made_of_sections_is_rejected_with_its_number() {
    let (mut bench, _, sender) = linked();
    let strange = Delivery { message_format: 0xabcd_ef00, ..Delivery::default() };
    bench.deliver(sender, &strange, b"{\"json\": true}");
    let DeliveryState::Rejected { error: Some(error) } = bench.states(sender).remove(0) else {
        panic!("it was not rejected")
    };
    assert!(error.description.unwrap().contains("0xabcdef00"));
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn d12_a_message_without_a_header_is_not_durable_and_gets_none() {
    let (mut bench, client, sender) = linked();
    let mut durable = text("durable");
    durable.header_mut().durable = true;
    bench.send(sender, &text("transient"));
    bench.send(sender, &durable);
    let receiver = bench.receiver(client, "q", 10);
    let got: Vec<_> = bench.got(receiver).iter().map(|got| got.message().header).collect();
    assert_eq!(got[0], None);
    assert!(got[1].as_ref().unwrap().durable);
}

#[test]
fn a_delivery_tag_of_any_length_up_to_32_bytes_is_taken() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let tag = [7; 32];
    for (id, len) in [(0, 0), (1, 1), (2, 16), (3, 32)] {
        let mut transfer = whole(0, id);
        transfer.delivery_tag = Some(&tag[..len]);
        bench.say_with(raw, 0, &transfer, &text("m").to_bytes());
    }
    assert_eq!(bench.depth("q"), 4);
}
