//! What a message is made of: bodies, sections, types, sizes, time to live.

use crate::harness::{Client, Result, expect, fresh, send, soon, take, url, value};
use fe2o3_amqp::Connection;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Body, Data, Header, Message, MessageAnnotations, MessageId, Priority,
    Properties, SerializableBody,
};
use fe2o3_amqp::types::primitives::{
    Array, Binary, Dec32, Dec64, Dec128, OrderedMap, Symbol, Timestamp, Uuid, Value,
};
use std::time::Duration;

crate::cases! {
    "send and receive" => send_and_receive,
    "all primitive types as body" => types_as_body,
    "all primitive types in annotations" => types_in_annotations,
    "properties, application properties and header" => sections,
    "several data and sequence sections stay apart" => several_sections,
    "large messages of 10 MB, both ways" => large,
    "frames of 512 bytes" => small_frames,
    "ttl expires a message that waits" => time_to_live,
}

fn every_type() -> Vec<Value> {
    let map: OrderedMap<Value, Value> =
        [(Value::from("a"), Value::Int(1)), (Value::Ulong(2), Value::Null)].into_iter().collect();
    vec![
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::Ubyte(255),
        Value::Ushort(65535),
        Value::Uint(0),
        Value::Uint(200),
        Value::Uint(u32::MAX),
        Value::Ulong(0),
        Value::Ulong(200),
        Value::Ulong(u64::MAX),
        Value::Byte(-128),
        Value::Short(i16::MIN),
        Value::Int(-100),
        Value::Int(i32::MIN),
        Value::Long(-100),
        Value::Long(i64::MIN),
        Value::Float(1.5.into()),
        Value::Double(std::f64::consts::PI.into()),
        Value::Decimal32(Dec32::from([1, 2, 3, 4])),
        Value::Decimal64(Dec64::from([7; 8])),
        Value::Decimal128(Dec128::from([9; 16])),
        Value::Char('\u{1f40e}'),
        Value::Timestamp(Timestamp::from_milliseconds(1_700_000_000_123)),
        Value::Uuid(Uuid::from([5; 16])),
        Value::Binary(Binary::from(vec![0, 1, 254, 255])),
        Value::Binary(Binary::from(vec![7; 1000])),
        Value::from(""),
        Value::from("sëlla \u{1f40e}"),
        Value::from("x".repeat(300)),
        Value::Symbol(Symbol::from("a-symbol")),
        Value::Symbol(Symbol::from("s".repeat(300))),
        Value::List(vec![Value::Int(1), Value::List(vec![]), Value::from("three")]),
        Value::Map(map),
        Value::Array(Array::from(vec![Value::Int(1), Value::Int(-300_000)])),
        Value::Array(Array::from(vec![Value::Symbol("a".into()), Value::Symbol("bc".into())])),
    ]
}

async fn round_trip<B: SerializableBody>(
    client: &mut Client,
    message: Message<B>,
) -> Result<Delivery<Body<Value>>> {
    let queue = fresh();
    let mut sender = client.sender(&queue).await?;
    let mut receiver = client.receiver(queue, 1).await?;
    send(&mut sender, message).await?;
    let delivery = take(&mut receiver).await?;
    soon("accept", receiver.accept(&delivery)).await?;
    soon("close", sender.close()).await?;
    soon("close", receiver.close()).await?;
    Ok(delivery)
}

async fn send_and_receive() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a", "b", "c"]).await?;
    expect(&mut client.receiver(queue, 10).await?, &["a", "b", "c"]).await?;
    client.close().await
}

async fn types_as_body() -> Result {
    let mut client = Client::new().await?;
    for sent in every_type() {
        let message = Message::builder().value(sent.clone()).build();
        let received = round_trip(&mut client, message).await?;
        assert_eq!(value(&received), &sent);
    }
    client.close().await
}

async fn types_in_annotations() -> Result {
    let mut client = Client::new().await?;
    let mut annotations = MessageAnnotations::default();
    for (number, value) in every_type().into_iter().enumerate() {
        annotations.insert(Symbol::from(format!("x-opt-{number}")).into(), value);
    }
    let message =
        Message::builder().message_annotations(annotations.clone()).value("x".to_string()).build();
    let received = round_trip(&mut client, message).await?.into_message();
    assert_eq!(received.message_annotations, Some(annotations));
    client.close().await
}

async fn sections() -> Result {
    let mut client = Client::new().await?;
    for id in [
        MessageId::from(7),
        MessageId::from(Uuid::from([1; 16])),
        MessageId::from(Binary::from(vec![0, 1])),
        MessageId::String("id-1".to_string()),
    ] {
        let properties = Properties {
            message_id: Some(id.clone()),
            user_id: Some(Binary::from(b"ann".to_vec())),
            to: Some("to".into()),
            subject: Some("subject".into()),
            reply_to: Some("reply-to".into()),
            correlation_id: Some(id),
            content_type: Some("text/plain".into()),
            content_encoding: Some("gzip".into()),
            absolute_expiry_time: Some(Timestamp::from_milliseconds(4_102_444_800_500)),
            creation_time: Some(Timestamp::from_milliseconds(1_700_000_000_250)),
            group_id: Some("group".into()),
            group_sequence: Some(u32::MAX),
            reply_to_group_id: Some("reply-group".into()),
        };
        let application = ApplicationProperties::builder()
            .insert("true", true)
            .insert("ubyte", 255u8)
            .insert("uint", u32::MAX)
            .insert("ulong", u64::MAX)
            .insert("int", i32::MIN)
            .insert("long", i64::MIN)
            .insert("double", 2.5f64)
            .insert("string", "text")
            .build();
        let message = Message::builder()
            .header(Header { durable: true, priority: Priority(9), ..Default::default() })
            .properties(properties.clone())
            .application_properties(application.clone())
            .value("x".to_string())
            .build();
        let received = round_trip(&mut client, message).await?.into_message();
        assert_eq!(received.properties, Some(properties));
        assert_eq!(received.application_properties, Some(application));
        let header = received.header.expect("a header");
        assert!(header.durable);
        assert_eq!(header.priority, Priority(9));
    }
    client.close().await
}

async fn several_sections() -> Result {
    let mut client = Client::new().await?;
    let data = [&b"one"[..], b"", b"three"].map(|bytes| Data(Binary::from(bytes.to_vec())));
    let received =
        round_trip(&mut client, Message::builder().data_batch(data.clone()).build()).await?;
    let Body::Data(sections) = received.body() else { panic!("{:?}", received.body()) };
    assert_eq!(sections.iter().collect::<Vec<_>>(), data.iter().collect::<Vec<_>>());
    let lists = vec![vec![Value::Int(1), Value::from("a")], vec![Value::Int(2)]];
    let message = Message::builder().sequence_batch(lists.clone()).build();
    let received = round_trip(&mut client, message).await?;
    let Body::Sequence(sections) = received.body() else { panic!("{:?}", received.body()) };
    assert_eq!(sections.iter().map(|section| section.0.clone()).collect::<Vec<_>>(), lists);
    client.close().await
}

async fn large() -> Result {
    let mut client = Client::new().await?;
    let mut state = 1u32;
    let body: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(10_000_000)
    .collect();
    let message = Message::builder().data(Binary::from(body.clone())).build();
    let received = round_trip(&mut client, message).await?;
    let Body::Data(sections) = received.body() else { panic!("not data") };
    assert_eq!(sections.len(), 1);
    assert!(sections[0].0.as_ref() as &[u8] == body, "the bodies differ");
    client.close().await
}

async fn small_frames() -> Result {
    let open = Connection::builder().container_id(fresh()).max_frame_size(512u32);
    let mut client = Client::on(soon("open", open.open(&*url())).await?).await?;
    for size in [0, 1, 400, 450, 480, 500, 512, 1024, 100_000] {
        let message = Message::builder().value("x".repeat(size)).build();
        assert_eq!(value(&round_trip(&mut client, message).await?), &Value::from("x".repeat(size)));
    }
    client.close().await
}

async fn time_to_live() -> Result {
    let mut client = Client::new().await?;
    let queue = fresh();
    let mut sender = client.sender(&queue).await?;
    for (text, ttl) in [("short", Some(200)), ("long", Some(60_000)), ("for ever", None)] {
        let message = Message::builder()
            .header(Header { ttl, ..Default::default() })
            .value(text.to_string())
            .build();
        send(&mut sender, message).await?;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    expect(&mut client.receiver(queue.as_str(), 10).await?, &["long", "for ever"]).await?;
    client.expect_empty(&queue).await?;
    client.close().await
}
