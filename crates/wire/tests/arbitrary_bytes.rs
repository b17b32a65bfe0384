//! No bytes make a decoder panic, and no two ways to read them disagree.
//!
//! Every run does the same, from a seed that it prints; `MOCHILA_SEED` chooses another one and
//! `MOCHILA_ROUNDS` makes it longer.

use mochila_wire::message::{Body, Header, Properties};
use mochila_wire::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Role,
};
use mochila_wire::types::{Array, Described, Map};
use mochila_wire::{
    AmqpError, DeliveryState, Encode, Message, Performative, Source, Target, Type, Value,
    condition, frame, probe, sasl,
};

/// SplitMix64: small, and good enough to make a mess.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Bytes that look like AMQP more often than chance would have it.
    fn plausible(&mut self, len: usize) -> Vec<u8> {
        const CODES: [u8; 48] = [
            0x00, 0x00, 0x00, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x50, 0x51, 0x52, 0x53, 0x54,
            0x55, 0x56, 0x60, 0x61, 0x70, 0x71, 0x72, 0x73, 0x74, 0x80, 0x81, 0x82, 0x83, 0x84,
            0x94, 0x98, 0xa0, 0xa1, 0xa3, 0xb0, 0xb1, 0xb3, 0xc0, 0xc1, 0xd0, 0xd1, 0xe0, 0xf0, 1,
            2, 3, 4, 8, 16,
        ];
        (0..len).map(|_| CODES[self.below(CODES.len())]).collect()
    }

    /// Changes valid bytes in one of the ways that break parsers.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.below(bytes.len());
        match self.below(8) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.next() as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => bytes.truncate(at),
            4 => bytes.insert(at, self.next() as u8),
            5 => drop(bytes.remove(at)),
            6 => {
                let end = at + self.below(bytes.len() - at + 1);
                let piece = bytes[at..end].to_vec();
                let to = self.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let len = 1 + self.below(8);
                let piece = self.plausible(len);
                bytes.splice(at..at, piece);
            }
        }
    }
}

fn random(name: &str) -> (Random, usize) {
    let number = |key, default| {
        std::env::var(key).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (seed, rounds) = (number("MOCHILA_SEED", 0x0061_6d71), number("MOCHILA_ROUNDS", 100_000));
    println!("{name}: MOCHILA_SEED={seed} MOCHILA_ROUNDS={rounds}");
    (Random(seed), rounds as usize)
}

fn messages() -> Vec<Vec<u8>> {
    let mut full = Message::of_data("data");
    full.header = Some(Header { durable: true, ttl: Some(1000), ..Header::default() });
    full.delivery_annotations = Some(Map::new().with("d", 1u32));
    full.set_message_annotation("x-opt-a", 2u64);
    full.set_message_annotation("a", "text");
    *full.properties_mut() = Properties {
        message_id: Some("id".into()),
        to: Some("to".into()),
        group_id: Some("g".into()),
        ..Properties::default()
    };
    full.set_application_property("a", 1.5f32);
    full.footer = Some(Map::new().with("f", true));
    let lists = Body::Sequence(vec![vec![1u32.into()], vec![]]);
    [full, Message { body: lists, ..Message::default() }, Message::of_value(values())]
        .iter()
        .map(Encode::to_bytes)
        .collect()
}

fn values() -> Value {
    let array = Array::new(Type::String, vec!["a".into(), "b".into()]).expect("strings");
    let described = Described { descriptor: 7u64.into(), value: Value::Char('x') };
    let uuid = Value::Uuid([3; 16]);
    let map = Map::new().with("k", uuid);
    Value::List(vec![array.into(), map.into(), described.into(), 1.5f64.into()])
}

fn frames() -> Vec<Vec<u8>> {
    let error = Some(AmqpError::new(condition::NOT_FOUND, "no").with_info(Map::new()));
    let open = Open {
        offered_capabilities: vec!["a".into(), "b".into()],
        properties: Some(Map::new().with("p", 1u32)),
        ..Open::new("container")
    };
    let attach = Attach {
        source: Some(Source {
            filter: Some(Map::new().with("f", values())),
            default_outcome: Some(DeliveryState::modified(true, true)),
            ..Source::at("a")
        }),
        target: Some(Target::at("b").into()),
        ..Attach::new("link", 1, Role::Sender)
    };
    let disposition = Disposition {
        role: Role::Receiver,
        first: 1,
        last: Some(9),
        settled: true,
        state: Some(DeliveryState::Transactional {
            txn_id: Box::from(*b"t"),
            outcome: Some(Box::new(DeliveryState::Accepted)),
        }),
        batchable: true,
    };
    let performatives = [
        Performative::Open(Box::new(open)),
        Performative::Begin(Box::new(Begin::new(1, 2, 3))),
        Performative::Attach(Box::new(attach)),
        Performative::Flow(Flow { handle: Some(1), link_credit: Some(9), ..Flow::default() }),
        Performative::Disposition(disposition),
        Performative::Detach(Box::new(Detach { handle: 1, closed: true, error: error.clone() })),
        Performative::End(End { error: error.clone() }),
        Performative::Close(Close { error }),
    ];
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for performative in &performatives {
        let mut out = Vec::new();
        frame::write(&mut out, 1, performative);
        frames.push(out);
    }
    for message in messages() {
        let head = frame::TransferHead {
            delivery_id: Some(1),
            delivery_tag: b"tag",
            ..frame::TransferHead::default()
        };
        let mut out = Vec::new();
        frame::write_transfer(&mut out, 1, &head, &[&message]);
        frames.push(out);
    }
    let init = sasl::Init {
        mechanism: "PLAIN".into(),
        initial_response: Some(b"\0user\0password".to_vec()),
        hostname: None,
    };
    let mechanisms = sasl::Mechanisms { sasl_server_mechanisms: vec!["PLAIN".into()] };
    let outcome = sasl::Outcome { code: sasl::Code::Ok, additional_data: None };
    for sasl in [
        sasl::SaslFrame::Init(init),
        sasl::SaslFrame::Mechanisms(mechanisms),
        sasl::SaslFrame::Outcome(outcome),
    ] {
        let mut out = Vec::new();
        frame::write_sasl(&mut out, &sasl);
        frames.push(out);
    }
    frames
}

/// Both ends have to be tried: bytes that are refused, and bytes that are believed.
fn assert_some_are_believed(believed: usize, rounds: usize) {
    println!("{believed} of {rounds} were believed");
    assert!(believed > rounds / 50 && believed < rounds, "the examples are broken too much");
}

#[test]
fn the_examples_are_valid_before_they_are_broken() {
    for bytes in frames() {
        let header = frame::Header::parse(&bytes).unwrap().unwrap();
        let body = header.body(&bytes).unwrap();
        match header.kind {
            frame::FrameKind::Amqp => assert!(Performative::decode(body).is_ok()),
            frame::FrameKind::Sasl => assert!(sasl::SaslFrame::from_body(body).is_ok()),
        }
        assert!(probe::frames(&bytes));
    }
    for bytes in messages() {
        assert!(Message::decode(&bytes).is_ok());
        assert!(probe::message(&bytes));
    }
}

#[test]
fn n6_what_is_cut_off_anywhere_is_not_read_beyond_its_end() {
    for bytes in frames() {
        for end in 0..bytes.len() {
            assert!(!probe::frames(&bytes[..end]), "{end} bytes of {bytes:02x?} are no frame");
            if end < frame::HEADER_LEN {
                continue;
            }
            // A frame that says it is as long as that.
            let mut cut = bytes[..end].to_vec();
            cut[..4].copy_from_slice(&(end as u32).to_be_bytes());
            probe::frames(&cut);
        }
    }
    for bytes in messages() {
        for end in 0..bytes.len() {
            // A message may end where a section does.
            probe::message(&bytes[..end]);
        }
    }
    let bytes = values().to_bytes();
    (0..bytes.len()).for_each(|end| assert!(!probe::value(&bytes[..end]), "{end} bytes"));
}

#[test]
fn random_bytes_are_read_or_refused() {
    let (mut random, rounds) = random("random bytes");
    let mut believed = 0;
    for _ in 0..rounds {
        let len = random.below(100);
        let bytes = if random.below(2) == 0 { random.bytes(len) } else { random.plausible(len) };
        probe::frames(&bytes);
        probe::performative(&bytes);
        probe::sasl(&bytes);
        probe::message(&bytes);
        believed += usize::from(probe::value(&bytes));
    }
    assert_some_are_believed(believed, rounds);
}

#[test]
fn broken_frames_are_read_or_refused() {
    let (mut random, rounds) = random("broken frames");
    let mut believed = 0;
    let frames = frames();
    for _ in 0..rounds {
        let mut bytes = frames[random.below(frames.len())].clone();
        for _ in 0..=random.below(4) {
            // The frame header stays, or hardly anything behind it would ever be looked at.
            let mut body = bytes.split_off(frame::HEADER_LEN.min(bytes.len()));
            random.mutate(&mut body);
            bytes.append(&mut body);
        }
        let size = (bytes.len() as u32).to_be_bytes();
        bytes[..4].copy_from_slice(&size);
        believed += usize::from(probe::frames(&bytes));
        random.mutate(&mut bytes);
        probe::frames(&bytes);
    }
    assert_some_are_believed(believed, rounds);
}

#[test]
fn broken_messages_are_read_or_refused() {
    let (mut random, rounds) = random("broken messages");
    let mut believed = 0;
    let messages = messages();
    for _ in 0..rounds {
        let mut bytes = messages[random.below(messages.len())].clone();
        for _ in 0..=random.below(4) {
            random.mutate(&mut bytes);
        }
        believed += usize::from(probe::message(&bytes));
    }
    assert_some_are_believed(believed, rounds);
}

#[test]
fn broken_values_are_read_or_refused() {
    let (mut random, rounds) = random("broken values");
    let mut believed = 0;
    for _ in 0..rounds {
        let mut bytes = values().to_bytes();
        for _ in 0..=random.below(4) {
            random.mutate(&mut bytes);
        }
        believed += usize::from(probe::value(&bytes));
    }
    assert_some_are_believed(believed, rounds);
}
