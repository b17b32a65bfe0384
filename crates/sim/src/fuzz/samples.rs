//! Valid frames, messages and values.

use mochila_wire::frame::Header;
use mochila_wire::message::Body;
use mochila_wire::types::{Array, Described};
use mochila_wire::{Encode, Map, Message, Type, Value};

use super::conversations;
use super::delivery::frame_len;

/// The frames of all conversations.
pub(super) fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for conversation in conversations::all() {
        let mut rest = &conversation[1..];
        while !rest.is_empty() {
            let (frame, after) = rest.split_at(frame_len(rest));
            all.push(frame.to_vec());
            rest = after;
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The bodies of all frames, and values of all types.
pub(super) fn values() -> Vec<Vec<u8>> {
    let body = |frame: &Vec<u8>| {
        let header = Header::parse(frame).ok().flatten()?;
        header.body(frame).map(<[u8]>::to_vec)
    };
    let mut all: Vec<Vec<u8>> = frames().iter().filter_map(body).collect();
    all.extend(every_type().iter().map(Encode::to_bytes));
    all.push(Value::List(every_type()).to_bytes());
    all
}

/// Messages with all sections, and with every kind of body.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let mut full = Message::of_data("data");
    full.header_mut().ttl = Some(1_000);
    full.delivery_annotations = Some(Map::new().with("d", 1u32));
    full.set_message_annotation("x-opt-a", 2u64);
    full.properties_mut().to = Some("to".to_owned());
    full.properties_mut().group_id = Some("group".to_owned());
    full.set_application_property("a", "text");
    full.footer = Some(Map::new().with("f", true));
    let bodies = [
        Body::Empty,
        Body::Data(vec![b"one".to_vec(), Vec::new(), b"three".to_vec()]),
        Body::Sequence(vec![every_type(), Vec::new()]),
        Body::Value(Value::List(every_type())),
    ];
    let with_body = |body| Message { body, ..full.clone() }.to_bytes();
    let alone = Message::of_value("alone").to_bytes();
    bodies.into_iter().map(with_body).chain([alone]).collect()
}

fn every_type() -> Vec<Value> {
    let described = Described { descriptor: 7u64.into(), value: "described".into() };
    let numbers = Array::new(Type::Int, vec![1i32.into(), (-5i32).into()]).expect("integers");
    let nothing = Array::new(Type::Null, vec![Value::Null; 3]).expect("nulls");
    vec![
        Value::Null,
        true.into(),
        1u8.into(),
        2u16.into(),
        3u32.into(),
        4u64.into(),
        (-1i8).into(),
        (-2i16).into(),
        (-3i32).into(),
        (-4i64).into(),
        1.5f32.into(),
        2.5f64.into(),
        Value::Decimal64([1; 8]),
        Value::Char('x'),
        Value::Timestamp(1),
        Value::Uuid([3; 16]),
        Value::Binary(vec![1, 2, 3]),
        "text".into(),
        Value::Symbol("symbol".into()),
        Value::List(vec![1u32.into(), Value::Null]),
        Map::new().with("key", 1u32).into(),
        numbers.into(),
        nothing.into(),
        described.into(),
    ]
}
