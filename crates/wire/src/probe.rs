//! What must hold for any bytes, as functions that fuzzers and seeded tests call.
//!
//! Each reads the bytes in every way that a peer can make us read them, and panics if two ways
//! disagree. Refusing the bytes is always right; believing different things about them is not.
//! What comes back is whether there was something to believe.

use crate::annotation::{HeadPatch, write_head};
use crate::decode::{Decode, DecodeError, Decoder, Limits, RawValue};
use crate::encode::Encode;
use crate::frame::{FrameKind, Header, Protocol};
use crate::message::Message;
use crate::performative::{Performative, Transfer};
use crate::sasl::SaslFrame;
use crate::section::{BodyKind, Section, Sections, StreamScanner, scan, scan_head, verify};
use crate::types::{Symbol, Value};

/// Reads bytes as a protocol header, and as frames one after another.
pub fn frames(mut bytes: &[u8]) -> bool {
    let _ = Protocol::parse(bytes);
    let mut believed = false;
    while let Ok(Some(header)) = Header::parse_within(bytes, MAX_FRAME) {
        let Some(body) = header.body(bytes) else { break };
        believed |= match header.kind {
            FrameKind::Amqp => performative(body),
            FrameKind::Sasl => sasl(body),
        };
        bytes = &bytes[header.size as usize..];
    }
    believed
}

/// Reads bytes as the body of an AMQP frame.
pub fn performative(body: &[u8]) -> bool {
    let Ok((decoded, used)) = Performative::decode(body) else { return false };
    let encoded = decoded.to_bytes();
    let (again, all) = Performative::decode(&encoded).expect("what we wrote can be read");
    assert_eq!(all, encoded.len());
    assert_eq!(again.to_bytes(), encoded, "{decoded:?}");
    if let Performative::Transfer(_) = decoded {
        let (_, alone) = Transfer::decode(body).expect("both ways to read a transfer agree");
        assert_eq!(alone, used);
        message(&body[used..]);
    }
    true
}

/// Reads bytes as the body of a SASL frame.
pub fn sasl(body: &[u8]) -> bool {
    let Ok(decoded) = SaslFrame::from_body(body) else { return false };
    let encoded = decoded.to_bytes();
    let mut decoder = Decoder::new(&encoded);
    let again = SaslFrame::decode(&mut decoder).expect("what we wrote can be read");
    assert_eq!(again.to_bytes(), encoded);
    true
}

/// Reads bytes as a value.
pub fn value(bytes: &[u8]) -> bool {
    let mut eager = Decoder::new(bytes);
    let decoded = eager.value();
    let mut walker = Decoder::new(bytes);
    let walked = walker.walk();
    assert_eq!(decoded.as_ref().err(), walked.as_ref().err(), "decoding and walking agree");
    let Ok(decoded) = decoded else { return false };
    assert_eq!(eager.rest(), walker.rest());
    let mut skipper = Decoder::new(bytes);
    let raw = skipper.raw().expect("what can be decoded can be passed over");
    assert_eq!(eager.rest(), skipper.rest());
    lazily(raw);
    assert_eq!(raw.type_of(), decoded.type_of());
    let encoded = decoded.to_bytes();
    let again = Value::from_bytes(&encoded).expect("what we wrote can be read");
    assert_eq!(again.to_bytes(), encoded, "{decoded:?}");
    let _ = decoded.to_string();
    true
}

/// Reads bytes as a message.
pub fn message(bytes: &[u8]) -> bool {
    let limits = Limits::DEFAULT;
    let head = scan_head(bytes, &limits);
    let streamed = streamed(bytes, &limits);
    let decoded = Message::decode(bytes);
    let Ok(sections) = scan(bytes, &limits) else {
        assert!(decoded.is_err(), "a scan refuses no more than decoding does");
        return false;
    };
    // Only a stream has to give up on descriptors longer than it wants to collect.
    match streamed {
        Ok(kind) => assert_eq!(kind, sections.body_kind()),
        Err(DecodeError::UnknownDescriptor(_)) => {}
        Err(error) => panic!("a scan accepts what a stream refuses: {error}"),
    }
    check_offsets(bytes, &sections);
    if sections.body_kind() != BodyKind::Empty {
        let head = head.expect("the head is fine").expect("the body has begun");
        assert_eq!(head.bare_start(), sections.bare_start());
        assert_eq!(head.len(), sections.body_start());
        assert_eq!(head.header(bytes), sections.header(bytes));
    }
    let _ = verify(bytes, &limits);
    fields(bytes, &sections);
    forward(bytes, &sections);
    if let Ok(decoded) = decoded {
        let encoded = decoded.to_bytes();
        let again = Message::decode(&encoded).expect("what we wrote can be read");
        assert_eq!(again.to_bytes(), encoded);
    }
    true
}

fn streamed(bytes: &[u8], limits: &Limits) -> Result<BodyKind, DecodeError> {
    let mut scanner = StreamScanner::new(limits);
    // Pieces of uneven size, so that sections are cut apart in many places.
    let mut size = 1;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        scanner.push(piece)?;
        rest = after;
        size = size * 2 % 61 + 1;
    }
    scanner.finish()
}

fn check_offsets(bytes: &[u8], sections: &Sections) {
    let mut at = 0;
    for section in SECTIONS {
        let range = sections.range(section);
        assert_eq!(range.start, at, "sections stand next to each other");
        assert!(range.end >= at);
        at = range.end;
    }
    assert_eq!((at, sections.len()), (bytes.len(), bytes.len()));
}

fn fields(bytes: &[u8], sections: &Sections) {
    let _ = sections.header(bytes);
    let _ = (sections.user_id(bytes), sections.to(bytes), sections.subject(bytes));
    let _ = (sections.reply_to(bytes), sections.content_type(bytes), sections.group_id(bytes));
    let _ = (sections.absolute_expiry_time(bytes), sections.creation_time(bytes));
    let _ = sections.group_sequence(bytes);
    let ids = [sections.message_id(bytes), sections.correlation_id(bytes)];
    let body = sections.body_value(bytes);
    ids.into_iter().flatten().chain(body).for_each(lazily);
    sections.raw_properties(bytes).into_iter().flatten().for_each(lazily);
    let maps = [
        sections.delivery_annotations(bytes),
        sections.message_annotations(bytes),
        sections.application_properties(bytes),
    ];
    for (key, value) in maps.into_iter().flatten().flatten() {
        lazily(key);
        lazily(value);
    }
    let _ = sections.message_annotation(bytes, "x-opt-a");
    let _ = sections.application_property(bytes, "a");
}

/// Asks a value for everything that it might be.
fn lazily(value: RawValue<'_>) {
    let _ = (value.type_of(), value.is_null(), value.as_str(), value.as_binary());
    let _ = (value.as_u64(), value.as_i64(), value.as_bool(), value.as_described());
    let _ = value.as_map().map(Iterator::count);
    let _ = value.as_list().map(Iterator::count);
    let _ = value.decode();
}

/// Sends a message on with everything about it changed, and looks at what would arrive.
fn forward(bytes: &[u8], sections: &Sections) {
    let annotations = [
        (Symbol::from_static("x-opt-a"), Value::Ulong(1 << 40)),
        (Symbol::from_static("a"), Value::from("text")),
    ];
    let patches = [
        HeadPatch { delivery_count: sections.header(bytes).delivery_count, ..Default::default() },
        HeadPatch { delivery_count: 7, ttl_ms: Some(1000), ..Default::default() },
        HeadPatch {
            delivery_count: u32::MAX,
            ttl_ms: Some(0),
            drop_ttl: true,
            first_acquirer: Some(true),
            drop_delivery_annotations: true,
            annotations: &annotations,
        },
    ];
    for patch in patches {
        let mut sent = Vec::new();
        let from = write_head(&mut sent, bytes, sections, &patch);
        sent.extend_from_slice(&bytes[from..]);
        let after = scan(&sent, &Limits::DEFAULT).expect("what we send on is a message");
        assert_eq!(sent[after.bare_start()..], bytes[sections.bare_start()..]);
        assert_eq!(after.header(&sent).delivery_count, patch.delivery_count);
    }
}

const MAX_FRAME: u32 = 1 << 20;

const SECTIONS: [Section; 7] = [
    Section::Header,
    Section::DeliveryAnnotations,
    Section::MessageAnnotations,
    Section::Properties,
    Section::ApplicationProperties,
    Section::Body,
    Section::Footer,
];
