//! Nothing that comes from a peer makes a selector panic.

use crate::support::{Encoded, Random, compiled};
use mochila_broker::{Selector, SelectorInput};
use mochila_wire::message::MessageId;
use mochila_wire::{Limits, Sections, section};

/// What selectors are made of, whole and in pieces.
const WORDS: [&str; 56] = [
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "IN",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "=",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "(",
    ")",
    ",",
    "a",
    "b",
    "x.y",
    "JMSPriority",
    "JMSMessageID",
    "amqp.subject",
    "amqp.annotation.x-opt-a",
    "\"q\"",
    "'t'",
    "'%_'",
    "'!'",
    "''",
    "'",
    "\"",
    "0",
    "1",
    "5L",
    "0x1F",
    "017",
    "1.5",
    "1e9",
    ".5f",
    "7.",
    "9223372036854775808",
    "é",
    "\u{0}",
    "$",
    "!",
    "&",
    "1e",
    "0x",
];

#[test]
fn random_bytes_are_no_reason_to_panic() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
        let _ = Selector::new(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_words_are_compiled_and_evaluated_or_refused_with_a_place() {
    let message = Encoded::new(|message| {
        message.set_application_property("a", 1);
        message.set_application_property("b", "t");
        message.properties_mut().message_id = Some(MessageId::from(7));
    });
    let mut compiled = 0;
    for seed in 0..30_000 {
        let mut random = Random::new(seed);
        let mut text = String::new();
        for _ in 0..1 + random.below(9) {
            text.push_str(random.pick(&WORDS));
            text.push_str(random.pick(&["", " ", " ", " "]));
        }
        match Selector::new(&text) {
            Ok(Some(selector)) => {
                compiled += 1;
                selector.matches(&message.input());
            }
            Ok(None) => panic!("{text:?} is not blank"),
            Err(error) => assert!(text.is_char_boundary(error.offset()), "seed {seed}: {text:?}"),
        }
    }
    assert!(compiled > 300, "{compiled} were selectors");
}

#[test]
fn a_damaged_message_is_no_reason_to_panic() {
    let selector = compiled(
        "a = 1 AND b LIKE 't%' OR c > 5 OR JMSMessageID = 'x' OR JMSCorrelationID LIKE '%y' \
         OR amqp.subject = 's' OR JMSXGroupSeq > 1 OR amqp.annotation.x = 1 OR amqp.ttl > 5 \
         OR amqp.delivery_annotation.y = 2 OR JMSExpiration > 1 OR amqp.message_id = 'z'",
    );
    let message = Encoded::new(|message| {
        message.header_mut().ttl = Some(5);
        message.set_message_annotation("x", "not one");
        message.set_application_property("a", 2);
        message.set_application_property("b", "s");
        message.set_application_property("c", 1.5);
        message.properties_mut().message_id = Some("ID:AMQP_UUID:x".into());
        message.properties_mut().correlation_id = Some(MessageId::Binary(vec![1, 2, 3]));
        message.properties_mut().subject = Some("t".into());
    });
    let mut scanned = 0;
    for seed in 0..10_000 {
        let mut random = Random::new(seed);
        let mut bytes = message.bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        // As it lies in the queue of somebody who had it scanned before, and as it is.
        selector.matches(&SelectorInput { bytes: &bytes, ..message.input() });
        if let Ok(sections) = section::scan(&bytes, &Limits::DEFAULT) {
            scanned += 1;
            selector.matches(&SelectorInput::of(&bytes, &sections));
        }
        let ends = [(); 5].map(|()| random.below(bytes.len() + 9) as u32);
        let sections = Sections::of_head(ends, bytes.len() as u32);
        selector.matches(&SelectorInput { bytes: &bytes, sections, ..message.input() });
    }
    assert!(scanned > 1_000, "{scanned} could be scanned");
}
