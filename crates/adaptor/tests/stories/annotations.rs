//! Annotations and other things that senders do to the sections of a message.

use crate::bench::{Bench, Client, Link, text};
use mochila_wire::message::Body;
use mochila_wire::{DeliveryState, Encode, Map, Message, Symbol, Value, condition};

fn strict(is_strict: bool) -> (Bench, Client, Link) {
    let mut bench = Bench::with(|setup| setup.settings.strict_messages = is_strict);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    (bench, client, sender)
}

/// Messages that the specification does not allow and that senders send.
fn sloppy() -> Vec<Message> {
    let mut plain_key = text("a");
    plain_key.set_message_annotation("routing", "somewhere");
    let mut string_key = text("b");
    let mut annotations = Map::new();
    annotations.insert("x-opt-in-a-string", 1u32);
    string_key.message_annotations = Some(annotations);
    let mut for_the_hop = text("c");
    for_the_hop.delivery_annotations = Some(Map::new().with("hop", 1u32));
    let mut no_body = Message { body: Body::Empty, ..Message::default() };
    no_body.properties_mut().subject = Some("no body".into());
    vec![plain_key, string_key, for_the_hop, no_body]
}

#[test]
fn d11_what_the_specification_does_not_allow_is_carried_all_the_same() {
    let (mut bench, client, sender) = strict(false);
    let receiver = bench.receiver(client, "q", 10);
    for message in sloppy() {
        bench.send(sender, &message);
        let got = bench.got(receiver).remove(0).message();
        assert_eq!(got, Message { delivery_annotations: None, ..message });
    }
}

#[test]
fn d11_a_strict_node_rejects_it_and_says_what_is_wrong() {
    let (mut bench, client, sender) = strict(true);
    let receiver = bench.receiver(client, "q", 10);
    let complaints = ["'routing'", "has to be a symbol", "'hop'", "no body"];
    for (message, complaint) in sloppy().into_iter().zip(complaints) {
        bench.send(sender, &message);
        let DeliveryState::Rejected { error: Some(error) } = bench.states(sender).remove(0) else {
            panic!("{message:?} was not rejected")
        };
        assert_eq!(error.condition, condition::NOT_IMPLEMENTED);
        let description = error.description.unwrap();
        assert!(description.contains(complaint), "{description}");
    }
    let mut good = text("good");
    good.set_message_annotation("x-opt-mine", 1u32);
    good.set_message_annotation("x-old-style", 1u32);
    bench.send(sender, &good);
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    assert_eq!(bench.texts(receiver), ["good"]);
}

#[test]
fn annotations_of_jms_are_not_touched() {
    let (mut bench, client, sender) = strict(true);
    let receiver = bench.receiver(client, "q", 1);
    let mut message = text("a");
    message.set_message_annotation("x-opt-jms-msg-type", Value::Byte(5));
    message.set_message_annotation("x-opt-jms-dest", Value::Byte(0));
    message.set_message_annotation("x-opt-jms-reply-to", Value::Byte(2));
    let bytes = message.to_bytes();
    bench.send_bytes(sender, &bytes, false);
    assert_eq!(bench.got(receiver)[0].bytes, bytes);
}

#[test]
fn hundreds_of_annotations_come_out_as_they_came_in() {
    let (mut bench, client, sender) = strict(false);
    let mut message = text("annotated");
    for number in 0..300 {
        let value = vec![number as u8; number % 40];
        let key = Symbol::new(format!("x-opt-{number}")).unwrap();
        message.set_message_annotation(key, value);
    }
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver).remove(0);
    assert_eq!(got.bytes, message.to_bytes());
    let added = Some(Map::new().with("x-opt-7", "replaced").with("x-opt-new", true));
    bench.settle(
        &got,
        DeliveryState::Modified {
            delivery_failed: false,
            undeliverable_here: false,
            message_annotations: added,
        },
    );
    bench.grant(receiver, 1);
    let again = bench.got(receiver).remove(0).message();
    message.set_message_annotation("x-opt-7", "replaced");
    message.set_message_annotation("x-opt-new", true);
    assert_eq!(again, message);
}
