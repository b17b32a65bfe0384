//! Messages and frames that are wrong, as they reach a queue.

use crate::bench::raw::{framed, receiving, whole};
use crate::bench::{Bench, text};
use mochila_engine::pair::Random;
use mochila_wire::frame::{self, PROTOCOL_AMQP, PROTOCOL_SASL};
use mochila_wire::performative::{Begin, Close, Detach, End, Open, Transfer};
use mochila_wire::{DeliveryState, Encode, Map, Message, Value, condition, sasl};

/// Sends bytes as a message, and expects them to be rejected with a reason.
fn rejected(payload: &[u8]) -> String {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &whole(0, 0), payload);
    let Some(DeliveryState::Rejected { error: Some(error) }) = bench.hear(raw).disposition().state
    else {
        panic!("{payload:?} was not rejected")
    };
    assert_eq!(error.condition, condition::DECODE_ERROR);
    assert_eq!(bench.depth("q"), 0);
    // The link, and everything else, goes on.
    bench.say_with(raw, 0, &whole(0, 1), &text("fine").to_bytes());
    assert_eq!(bench.hear(raw).disposition().state, Some(DeliveryState::Accepted));
    bench.expect_nothing_left();
    error.description.unwrap()
}

#[test]
fn n1_a_message_that_is_cut_off_or_is_none_is_rejected_with_the_reason() {
    let whole = text("a message that will be cut").to_bytes();
    for end in 1..whole.len() {
        assert!(rejected(&whole[..end]).contains("damaged"));
    }
    rejected(b"plain text");
    rejected(&[0x00, 0x53, 0x99, 0x40]);
}

#[test]
fn n1_a_message_of_endless_sections_is_rejected() {
    let description = rejected(&EMPTY_SECTION.repeat(10_001));
    assert!(description.contains("section"), "{description}");
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &whole(0, 0), &EMPTY_SECTION.repeat(10_000));
    assert_eq!(bench.hear(raw).disposition().state, Some(DeliveryState::Accepted));
}

#[test]
fn n1_sections_without_end_in_frames_without_end_are_rejected_however_they_come() {
    // So small that it stays in memory, and so large that it goes to a file.
    for pieces in [100, 2_000] {
        let mut bench = Bench::new();
        let raw = bench.raw_sender("q");
        // Frames end in the middle of a section.
        let bytes = EMPTY_SECTION.repeat(pieces * 200);
        for (index, piece) in bytes.chunks(997).enumerate() {
            let transfer = Transfer { more: true, ..whole(0, 0) };
            let rest = Transfer { handle: 0, more: true, ..Transfer::default() };
            bench.say_with(raw, 0, if index == 0 { &transfer } else { &rest }, piece);
        }
        bench.say_with(raw, 0, &Transfer::default(), &[]);
        let heard = bench.hear(raw);
        let Some(DeliveryState::Rejected { error: Some(error) }) = heard.disposition().state else {
            panic!("{heard:?}")
        };
        assert!(error.description.unwrap().contains("section"));
        assert_eq!(bench.depth("q"), 0);
        bench.expect_nothing_left();
    }
}

/// A section without anything in it.
const EMPTY_SECTION: [u8; 5] = [0x00, 0x53, 0x75, 0xa0, 0x00];

#[test]
fn n1_sections_out_of_order_are_rejected() {
    let body = text("b").to_bytes();
    let mut late = Message::default();
    late.properties_mut().subject = Some("too late".into());
    rejected(&[&body[..], &late.to_bytes()].concat());
    rejected(&[&body[..], &body].concat());
}

#[test]
fn n9_a_message_of_many_zero_width_arrays_costs_no_more_than_its_bytes() {
    // Each array claims a million nulls in a few bytes; a queue has no use for them.
    let array = [0xf0, 0, 0, 0, 5, 0x00, 0x0f, 0x42, 0x40, 0x40];
    let list: Vec<u8> = array.repeat(1_000);
    let mut message = vec![0x00, 0x53, 0x77, 0xd0];
    message.extend_from_slice(&(list.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(&1_000u32.to_be_bytes());
    message.extend_from_slice(&list);
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &whole(0, 0), &message);
    assert!(bench.node.broker.budget().peak() < 40_000);
    assert_eq!(bench.hear(raw).dispositions().len(), 1, "it is taken or rejected, in no time");
}

#[test]
fn n9_zero_width_arrays_before_the_connection_is_open_end_it() {
    let mut bench = Bench::new();
    let raw = bench.raw();
    bench.say_bytes(raw, &PROTOCOL_AMQP);
    // open with offered-capabilities: an array of ten million empty lists.
    let array = [&[0xf0, 0, 0, 0, 5][..], &10_000_000u32.to_be_bytes(), &[0x45]].concat();
    let mut fields = vec![0xa1, 1, b'c', 0x40, 0x40, 0x40, 0x40, 0x40, 0x40];
    fields.extend_from_slice(&array);
    let mut open = vec![0x00, 0x53, 0x10, 0xc0, fields.len() as u8 + 1, 8];
    open.extend_from_slice(&fields);
    bench.say_with(raw, 0, &Bytes(open), b"");
    assert_eq!(bench.hear(raw).names().last(), Some(&"close"));
    assert_eq!(bench.node.management.directory().failed_handshakes(), 1);
}

#[test]
fn n11_a_body_that_nests_deeper_than_the_limit_is_rejected_where_a_node_protects_its_consumers() {
    let nested = (0..100).fold(Value::Null, |value, _| Value::List(vec![value]));
    let bytes = Message::of_value(nested).to_bytes();
    for (protects, expected) in [(false, 1), (true, 0)] {
        let mut bench = Bench::with(|setup| setup.settings.verify_bodies = protects);
        let raw = bench.raw_sender("q");
        bench.say_with(raw, 0, &whole(0, 0), &bytes);
        assert_eq!(bench.depth("q"), expected);
        if protects {
            let Some(DeliveryState::Rejected { error: Some(error) }) =
                bench.hear(raw).disposition().state
            else {
                panic!("it was not rejected")
            };
            assert!(error.description.unwrap().contains("deep"));
            bench.say_with(raw, 0, &whole(0, 1), &text("flat").to_bytes());
            assert_eq!(bench.depth("q"), 1);
        }
    }
}

#[test]
fn a_body_descriptor_that_only_begins_with_a_known_name_is_rejected() {
    let mut payload = vec![0x00, 0xa3];
    let name = b"amqp:data:binary:and-more";
    payload.push(name.len() as u8);
    payload.extend_from_slice(name);
    payload.extend_from_slice(&[0xa0, 1, 7]);
    rejected(&payload);
}

#[test]
fn n3_a_large_frame_from_somebody_who_has_not_opened_is_refused_by_its_header() {
    let mut bench = Bench::new();
    let raw = bench.raw();
    bench.say_bytes(raw, &PROTOCOL_AMQP);
    bench.say_bytes(raw, &[0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0]);
    let error = bench.hear(raw).close().error.unwrap();
    assert_eq!(error.condition, condition::FRAMING_ERROR);
}

#[test]
fn a_frame_above_the_size_that_was_agreed_closes_the_connection() {
    let mut bench = Bench::with(|setup| setup.engine.max_frame_size = 1_000);
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &whole(0, 0), &[0; 2_000]);
    let error = bench.hear(raw).close().error.unwrap();
    assert_eq!(error.condition, condition::FRAMING_ERROR);
    bench.expect_nothing_left();
}

#[test]
fn b6_a_handle_in_use_ends_the_session_and_both_links() {
    let mut bench = Bench::new();
    let raw = bench.raw_receiver("q", 10);
    let mut again = receiving(0, "other");
    again.name = "another".into();
    let error = bench.ask(raw, &again).end().error.unwrap();
    assert_eq!(error.condition, condition::HANDLE_IN_USE);
    assert_eq!(bench.numbers("q").consumer_count, 0);
    bench.say(raw, 0, &End { error: None });
    bench.say(raw, 0, &Begin::new(0, 10, 10));
    assert!(bench.hear(raw).names().contains(&"begin"));
}

#[test]
fn a_transfer_on_a_link_on_which_we_send_detaches_it() {
    let mut bench = Bench::new();
    let raw = bench.raw_receiver("q", 10);
    bench.say_with(raw, 0, &whole(0, 0), &text("wrong way").to_bytes());
    assert_eq!(bench.hear(raw).detach().error.unwrap().condition, condition::NOT_ALLOWED);
    assert_eq!((bench.depth("q"), bench.numbers("q").consumer_count), (0, 0));
}

#[test]
fn n4_frames_with_flipped_bits_harm_nobody_else() {
    let mut bench = Bench::new();
    let witness = bench.client();
    let (sender, receiver) =
        (bench.sender(witness, "witness"), bench.receiver(witness, "witness", 1));
    let scripts = [script(false), script(true)];
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut bytes = scripts[seed as usize % 2].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        let raw = bench.raw();
        let cut = random.below(bytes.len());
        bench.say_bytes(raw, &bytes[..cut]);
        bench.say_bytes(raw, &bytes[cut..]);
        bench.cut(raw);
        bench.forget_the_gone();
        if seed % 100 == 0 {
            bench.send(sender, &text("still here"));
            let got = bench.got(receiver);
            assert_eq!(got.len(), 1, "seed {seed}");
            bench.accept(&got);
            bench.grant(receiver, 1);
        }
    }
    bench.expect_nothing_left();
}

#[test]
fn n4_messages_with_flipped_bits_are_taken_or_rejected_and_come_out_as_they_were() {
    let mut message = text("body");
    message.header_mut().ttl = Some(1 << 30);
    message.header_mut().first_acquirer = true;
    message.delivery_annotations = Some(Map::new().with("d", 1u32));
    message.set_message_annotation("x-opt-a", "b");
    message.properties_mut().subject = Some("s".into());
    message.set_application_property("k", 1.5f64);
    message.footer = Some(Map::new().with("f", true));
    let bytes = message.to_bytes();
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let mut bytes = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = random.next_u32() as u8;
        }
        bench.say_with(raw, 0, &whole(0, seed as u32), &bytes);
    }
    assert_eq!(bench.hear(raw).detaches(), []);
    let kept = bench.depth("q");
    assert!((100..3_000).contains(&kept), "{kept}");
    let client = bench.client();
    let receiver = bench.receiver(client, "q", 10_000);
    let got = bench.got(receiver);
    assert_eq!(got.len() as u64, kept);
    for got in &got {
        bench.settle(got, DeliveryState::modified(true, false));
    }
    bench.grant(receiver, 10_000);
    assert_eq!(bench.got(receiver).len() as u64, kept);
}

/// What an ordinary peer says from beginning to end.
fn script(has_sasl: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if has_sasl {
        bytes.extend(PROTOCOL_SASL);
        let mechanism = "ANONYMOUS".into();
        let trace = Some(b"trace".to_vec());
        let init = sasl::Init { mechanism, initial_response: trace, hostname: None };
        frame::write_sasl(&mut bytes, &init);
    }
    bytes.extend(PROTOCOL_AMQP);
    bytes.extend(framed(0, &Open::new("script"), b""));
    bytes.extend(framed(0, &Begin::new(0, 1_000, 1_000), b""));
    bytes.extend(framed(0, &crate::bench::raw::sending(0, "scripted"), b""));
    bytes.extend(framed(0, &receiving(1, "scripted"), b""));
    bytes.extend(framed(0, &crate::bench::raw::credit_of(1, 0, 10), b""));
    bytes.extend(framed(0, &whole(0, 0), &text("a").to_bytes()));
    bytes.extend(framed(0, &Transfer { more: true, ..whole(0, 1) }, &text("b").to_bytes()[..4]));
    let accepted = crate::bench::raw::settled(0, 0, DeliveryState::Accepted);
    bytes.extend(framed(0, &accepted, b""));
    bytes.extend(framed(0, &Detach { handle: 1, closed: true, error: None }, b""));
    bytes.extend(framed(0, &End { error: None }, b""));
    bytes.extend(framed(0, &Close { error: None }, b""));
    bytes
}

/// Bytes that stand where a performative does.
struct Bytes(Vec<u8>);

impl Encode for Bytes {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}
