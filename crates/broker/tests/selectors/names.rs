//! The names of JMS and AMQP (K8), from messages that have everything.

use crate::support::{Encoded, compiled};
use mochila_broker::SelectorInput;
use mochila_wire::message::MessageId;
use mochila_wire::types::{Map, Symbol, Timestamp, Uuid};
use mochila_wire::{Message, Value};

fn full(message: &mut Message) {
    let header = message.header_mut();
    header.durable = true;
    header.priority = 7;
    header.ttl = Some(60_000);
    header.first_acquirer = true;
    header.delivery_count = 2;
    message.delivery_annotations = Some(Map::new().with("x-opt-to", "there"));
    message.set_message_annotation("x-opt-offset", "12");
    message.set_message_annotation("x-opt-delivery-time", Value::Timestamp(1_700_000_000_500));
    let properties = message.properties_mut();
    properties.message_id = Some("ID:me:1".into());
    properties.user_id = Some(b"guest".to_vec());
    properties.to = Some("orders".into());
    properties.subject = Some("invoice".into());
    properties.reply_to = Some("answers".into());
    properties.correlation_id = Some("request-5".into());
    properties.content_type = Some("text/plain".into());
    properties.absolute_expiry_time = Some(Timestamp(1_700_000_060_000));
    properties.creation_time = Some(Timestamp(1_700_000_000_000));
    properties.group_id = Some("g1".into());
    properties.group_sequence = Some(3);
    properties.reply_to_group_id = Some("g2".into());
    message.set_application_property("colour", "red");
}

#[track_caller]
fn all_match(message: &Encoded, selectors: &[&str]) {
    for selector in selectors {
        assert!(message.matches(selector), "{selector}");
    }
}

#[test]
fn k8_the_names_of_jms_are_fields_of_amqp() {
    all_match(
        &Encoded::new(full),
        &[
            "JMSMessageID = 'ID:me:1'",
            "JMSCorrelationID = 'request-5'",
            "JMSCorrelationID LIKE 'request-_'",
            "JMSType = 'invoice'",
            "JMSPriority = 7 AND JMSPriority > 4",
            "JMSDeliveryMode = 'PERSISTENT'",
            "JMSTimestamp = 1700000000000",
            "JMSExpiration - JMSTimestamp = 60000",
            "JMSDeliveryTime = 1700000000500",
            "JMSDestination = 'orders'",
            "JMSReplyTo = 'answers'",
            "JMSRedelivered = TRUE AND JMSRedelivered",
            "JMSXDeliveryCount = 3",
            "JMSXGroupID = 'g1'",
            "JMSXGroupSeq BETWEEN 3 AND 4",
            "JMSXUserID = 'guest'",
            "JMS_AMQP_TTL = 60000 AND JMS_AMQP_REPLY_TO_GROUP_ID = 'g2'",
        ],
    );
}

#[test]
fn k8_a_message_without_the_fields_has_their_defaults_or_nothing() {
    let absent = [
        "JMSMessageID",
        "JMSCorrelationID",
        "JMSType",
        "JMSTimestamp",
        "JMSDestination",
        "JMSReplyTo",
        "JMSXGroupID",
        "JMSXGroupSeq",
        "JMSXUserID",
        "amqp.subject",
        "amqp.ttl",
        "amqp.absolute_expiry_time",
        "amqp.annotation.x",
        "JMSDeliveryTime",
    ];
    let bare = Encoded::new(|_| {});
    let shortened = Encoded::new(|message| message.properties_mut().message_id = Some("".into()));
    for name in absent {
        assert!(bare.matches(&format!("{name} IS NULL")), "{name}");
        assert!(!bare.matches(&format!("{name} = {name}")), "{name}");
    }
    for name in &absent[1..] {
        assert!(shortened.matches(&format!("{name} IS NULL")), "{name}");
    }
    all_match(
        &bare,
        &[
            "JMSPriority = 4",
            "JMSDeliveryMode = 'NON_PERSISTENT'",
            "JMSExpiration = 0",
            "NOT JMSRedelivered",
            "JMSXDeliveryCount = 1",
            "amqp.delivery_count = 0 AND NOT amqp.durable AND NOT amqp.first_acquirer",
        ],
    );
}

#[test]
fn k8_an_id_of_any_type_is_found_by_what_qpid_jms_shows_of_it() {
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    let bytes = *b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
    let cases: [(MessageId, String, String); 5] = [
        (MessageId::Uuid(Uuid(bytes)), format!("ID:AMQP_UUID:{uuid}"), String::new()),
        (MessageId::Ulong(7), "ID:AMQP_ULONG:7".into(), String::new()),
        (MessageId::Binary(vec![0x0a, 0xff]), "ID:AMQP_BINARY:0AFF".into(), String::new()),
        ("plain".into(), "ID:AMQP_NO_PREFIX:plain".into(), "plain".into()),
        ("ID:AMQP_UUID:x".into(), "ID:AMQP_STRING:ID:AMQP_UUID:x".into(), String::new()),
    ];
    for (id, message_id, correlation_id) in cases {
        let message = Encoded::new(|message| {
            message.properties_mut().message_id = Some(id.clone());
            message.properties_mut().correlation_id = Some(id);
        });
        let correlation_id =
            if correlation_id.is_empty() { message_id.clone() } else { correlation_id };
        all_match(
            &message,
            &[
                &format!("JMSMessageID = '{message_id}'"),
                &format!("JMSMessageID IN ('x', '{message_id}')"),
                &format!("JMSMessageID LIKE '{}%'", &message_id[..8]),
                &format!("JMSCorrelationID = '{correlation_id}'"),
                &format!("'{correlation_id}' = JMSCorrelationID AND JMSMessageID IS NOT NULL"),
            ],
        );
    }
    let plain = Encoded::new(|message| message.properties_mut().message_id = Some("m-1".into()));
    all_match(
        &plain,
        &[
            "JMSMessageID = 'm-1'",
            "JMSMessageID IN ('m-0', 'm-1') AND JMSMessageID <> 'm-2'",
            "amqp.message_id = 'm-1'",
        ],
    );
    let typed = Encoded::new(|message| {
        message.properties_mut().message_id = Some(MessageId::Uuid(Uuid(bytes)));
        message.properties_mut().correlation_id = Some(7.into());
    });
    let selector = format!("amqp.message_id = '{uuid}' AND amqp.correlation_id = 7");
    all_match(&typed, &[&selector]);
}

#[test]
fn fields_are_found_under_the_names_that_users_of_other_brokers_write() {
    all_match(
        &Encoded::new(full),
        &[
            "amqp.header.priority = 7 AND amqp.priority = 7 AND header.priority = h.priority",
            "amqp.message_id = 'ID:me:1' AND amqp.properties.message_id = properties.message-id",
            "amqp.subject = 'invoice' AND p.subject = properties.subject",
            "amqp.correlation_id = 'request-5'",
            "amqp.to = 'orders' AND amqp.reply_to = 'answers' AND amqp.user_id = 'guest'",
            "amqp.content_type = 'text/plain' AND amqp.content_encoding IS NULL",
            "amqp.creation_time < amqp.absolute_expiry_time",
            "amqp.group_id = 'g1' AND amqp.group_sequence = 3",
            "amqp.durable AND amqp.delivery_mode = 'PERSISTENT' AND amqp.redelivered",
            "amqp.delivery_count = 2 AND delivery.count = 2 AND delivery.redelivered",
            "amqp.ttl = 60000 AND amqp.first_acquirer",
            "amqp.annotation.x-opt-offset > '11'",
            "\"amqp.annotation.x-opt-offset\" = '12' AND m.x-opt-offset = '12'",
            "message_annotations.x-opt-offset = amqp.message_annotations.x-opt-offset",
            "amqp.delivery_annotation.x-opt-to = 'there' AND delivery.annotation.x-opt-to = 'there'",
            "amqp.application_properties.colour = 'red' AND application_properties.colour = colour",
            "AMQPriority = 7 AND AMQDurable = 'DURABLE' AND AMQGroupID = 'g1' AND AMQSize > 100",
        ],
    );
}

#[test]
fn what_the_broker_knows_is_in_front_of_what_the_bytes_say() {
    let message = Encoded::new(full);
    let added = [
        (Symbol::from_static("x-opt-offset"), Value::from("99")),
        (Symbol::from_static("x-opt-seq"), Value::from(5u32)),
    ];
    let input = SelectorInput { delivery_count: 9, annotations: &added, ..message.input() };
    let matches = |selector| compiled(selector).matches(&input);
    assert!(matches("JMSXDeliveryCount = 10 AND delivery.count = 9"));
    assert!(matches("amqp.annotation.x-opt-offset = '99' AND m.x-opt-seq = 5"));
    assert!(matches("amqp.annotation.x-opt-delivery-time > 0"));
}

#[test]
fn an_application_property_may_have_a_symbol_for_a_key_and_come_twice() {
    let message = Encoded::new(|message| {
        let map = message.application_properties.get_or_insert_default();
        map.0.push((Value::Symbol("a".into()), 1.into()));
        map.0.push((Value::from("a"), 2.into()));
        map.0.push((Value::from("b"), 3.into()));
        map.0.push((Value::from(7), 4.into()));
    });
    all_match(&message, &["a = 1 AND b = 3"]);
}
