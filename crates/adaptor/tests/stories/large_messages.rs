//! Messages of many frames, and those that are too large for memory.

use crate::bench::raw::{credit_of, framed, last, more, receiving, settled, whole};
use crate::bench::{Bench, bytes_of, pattern, text};
use mochila_broker::DeleteIf;
use mochila_broker::settings::LimitPolicy;
use mochila_engine::{AttachRequest, ConnectionConfig};
use mochila_wire::performative::{Attach, Begin, Detach, Flow, Open, SenderSettleMode, Transfer};
use mochila_wire::{DeliveryState, Encode, Message, Source, Symbol, Target, Value, condition};
use std::sync::Arc;

const MIB: usize = 1024 * 1024;

#[test]
fn h8_messages_of_any_size_come_out_as_they_went_in() {
    let mut bench = Bench::new();
    let sizes = [0, 1, 255, 256, 65_000, 65_536, 70_000, MIB - 1, MIB, MIB + 1, 10 * MIB];
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 1);
    bench.create("limitless", |settings| settings.max_bytes = Some(0));
    for size in sizes {
        let bytes = bytes_of(size);
        bench.send_bytes(sender, &bytes, false);
        let got = bench.got(receiver).remove(0);
        assert!(got.bytes == bytes, "a body of {size} bytes came out different");
        bench.accept(&[got]);
        bench.grant(receiver, 1);
    }
    assert_eq!(bench.files.count(), 0, "files go with their messages");
    bench.expect_nothing_left();
}

#[test]
fn h8_frames_of_any_size_on_either_side_carry_them() {
    for (ours, theirs) in [(512, 512), (512, 100_000), (100_000, 512), (4_096, 1_000)] {
        let mut bench = Bench::new();
        let config = |name, size| ConnectionConfig {
            max_frame_size: size,
            max_outgoing_frame_size: size,
            ..ConnectionConfig::new(name)
        };
        let from = bench.client_with(config("from", ours));
        let to = bench.client_with(config("to", theirs));
        let sender = bench.sender(from, "q");
        let receiver = bench.receiver(to, "q", 10);
        for size in [400, 450, 512, 3_000, 100_000] {
            let bytes = bytes_of(size);
            bench.send_bytes(sender, &bytes, false);
            let got = bench.got(receiver).remove(0);
            assert!(got.bytes == bytes, "{size} bytes from {ours} to {theirs}");
            bench.accept(&[got]);
        }
        assert_eq!(bench.depth("q"), 0);
    }
}

#[test]
fn h8_no_size_around_a_boundary_between_frames_is_special() {
    let mut bench = Bench::with(|setup| setup.engine.max_frame_size = 512);
    let config = ConnectionConfig { max_frame_size: 512, ..ConnectionConfig::new("small") };
    let client = bench.client_with(config);
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 1);
    let mut frames = Vec::new();
    // From one frame to two, from two to three, and from eight to nine.
    for size in (400..530).chain(890..1_030).chain(3_400..3_600) {
        let bytes = bytes_of(size);
        bench.send_bytes(sender, &bytes, size % 2 == 0);
        let got = bench.got(receiver).remove(0);
        assert!(got.bytes == bytes, "a body of {size} bytes came out different");
        frames.push(got.frames);
        bench.accept(&[got]);
        bench.grant(receiver, 1);
    }
    frames.dedup();
    assert_eq!(frames, [1, 2, 3, 8, 9], "each boundary was passed once");
    bench.expect_nothing_left();
}

#[test]
fn h8_bodies_of_every_kind_with_few_and_many_elements_pass() {
    // As the large content cases of the interoperability suite of Qpid have them.
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 1);
    for body in [MIB, 10 * MIB].into_iter().flat_map(large_bodies) {
        let bytes = Message::of_value(body).to_bytes();
        bench.send_bytes(sender, &bytes, false);
        assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
        let got = bench.got(receiver).remove(0);
        assert!(got.bytes == bytes, "{} bytes came out different", bytes.len());
        bench.accept(&[got]);
        bench.grant(receiver, 1);
    }
    bench.expect_nothing_left();
}

/// Values of so many bytes, of each kind that may be large.
fn large_bodies(size: usize) -> Vec<Value> {
    let letters = |len: usize| "0123456789abcdef".repeat(len / 16);
    let mut bodies = vec![
        Value::Binary(pattern(size)),
        Value::String(letters(size)),
        Value::Symbol(Symbol::new(letters(size)).unwrap()),
    ];
    for count in [1, 16, 256, 4_096] {
        let element = || Value::String(letters(size / count));
        bodies.push(Value::List((0..count).map(|_| element()).collect()));
        let pairs = (0..count as u32).map(|key| (Value::Uint(key), element()));
        bodies.push(Value::Map(pairs.collect()));
    }
    bodies
}

#[test]
fn h2_large_messages_follow_one_another_for_ever() {
    let mut bench = Bench::with(|setup| setup.engine.incoming_window = 16);
    let client = bench.client_with(ConnectionConfig {
        incoming_window: 16,
        max_frame_size: 1_024,
        max_outgoing_frame_size: 1_024,
        ..ConnectionConfig::new("small")
    });
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 5);
    let bytes = bytes_of(50_000);
    for round in 0..200 {
        bench.send_bytes(sender, &bytes, false);
        let got = bench.got(receiver);
        assert_eq!(got.len(), 1, "round {round}");
        assert!(got[0].bytes == bytes);
        bench.accept(&got);
        bench.grant(receiver, 5);
    }
    assert_eq!(bench.told(sender).len(), 200);
}

#[test]
fn a_large_message_is_in_a_file_and_only_its_head_in_memory() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let before = bench.node.broker.budget().used();
    bench.send_bytes(sender, &bytes_of(5 * MIB), false);
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    assert_eq!(bench.files.count(), 1);
    assert!(bench.node.broker.budget().used() - before < 4_096);
    assert!(bench.numbers("q").byte_depth > 5 * MIB as u64, "it counts with all its bytes");
}

#[test]
fn a_message_on_credit_that_memory_has_no_room_for_goes_to_a_file() {
    let mut bench = Bench::with(|setup| {
        setup.broker.memory_limit_bytes = 2_000_000;
        setup.engine.max_frame_size = 1_000_000;
    });
    let client = bench.client();
    let (parts, frame) = (bench.sender(client, "parts"), bench.raw_sender("frame"));
    let budget = Arc::clone(bench.node.broker.budget());
    let _taken = budget.reserve(1_950_000 - budget.used()).unwrap();
    let bytes = bytes_of(200_000);
    assert!(bench.credit(parts) > 0);
    bench.send_bytes(parts, &bytes, false);
    assert_eq!(bench.states(parts), [DeliveryState::Accepted]);
    bench.say_bytes(frame, &framed(0, &whole(0, 0), &bytes));
    assert_eq!(bench.hear(frame).disposition().state, Some(DeliveryState::Accepted));
    assert_eq!((bench.files.count(), budget.refused()), (2, 0), "nothing was rejected");
    for queue in ["parts", "frame"] {
        let receiver = bench.receiver(client, queue, 1);
        assert!(bench.got(receiver)[0].bytes == bytes, "{queue}");
    }
}

#[test]
fn a_message_that_is_still_coming_in_moves_to_a_file_when_memory_becomes_short() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 4_000_000);
    let raw = bench.raw_sender("q");
    let budget = Arc::clone(bench.node.broker.budget());
    let before = budget.used();
    let bytes = bytes_of(400_000);
    for (at, piece) in bytes[..300_000].chunks(60_000).enumerate() {
        bench.say_with(raw, 0, &more((at == 0).then_some(0)), piece);
    }
    assert_eq!((bench.files.count(), budget.used()), (0, before + 300_000));
    let taken = budget.reserve(3_600_000).unwrap();
    bench.say_with(raw, 0, &more(None), &bytes[300_000..350_000]);
    assert_eq!(bench.files.count(), 1);
    assert!(budget.used() - taken.bytes() < before + 1_000);
    bench.say_with(raw, 0, &last(), &bytes[350_000..]);
    assert_eq!(bench.hear(raw).disposition().state, Some(DeliveryState::Accepted));
    let client = bench.client();
    let receiver = bench.receiver(client, "q", 1);
    assert!(bench.got(receiver)[0].bytes == bytes);
}

#[test]
fn a_message_stays_in_memory_where_that_is_short_and_the_disk_is_full() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 16_000_000);
    bench.files.fill_up();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let budget = Arc::clone(bench.node.broker.budget());
    let _taken = budget.reserve(15_100_000).unwrap();
    bench.send_bytes(sender, &bytes_of(200_000), false);
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn a_large_message_gets_its_new_head_too() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = Message::of_data(pattern(2 * MIB));
    message.header_mut().ttl = Some(60_000);
    message.header_mut().priority = 9;
    bench.send(sender, &message);
    bench.advance(1_000);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver).remove(0);
    bench.settle(&got, DeliveryState::modified(true, false));
    bench.advance(1_000);
    bench.grant(receiver, 1);
    let again = bench.got(receiver).remove(0).message();
    let header = again.header.unwrap();
    assert_eq!((header.ttl, header.delivery_count, header.priority), (Some(58_000), 1, 9));
    assert!(again.body == message.body);
}

#[test]
fn a_large_message_does_not_keep_small_ones_on_other_links_waiting() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (large, small) = (bench.sender(client, "large"), bench.sender(client, "small"));
    bench.send_bytes(large, &bytes_of(3 * MIB), false);
    bench.send(small, &text("small"));
    let raw = bench.raw_begun();
    for (handle, queue) in [(0, "large"), (1, "small")] {
        bench.say(raw, 0, &receiving(handle, queue));
    }
    bench.hear(raw);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 1));
    bench.say(raw, 0, &credit_of(1, 0, 1));
    bench.stall(raw, false);
    let transfers = bench.hear(raw).transfers();
    let at = transfers.iter().position(|moved| moved.handle == 1).unwrap();
    assert!(at < transfers.len() - 1, "it came {at} of {}", transfers.len());
    let body: Vec<u8> =
        transfers.iter().filter(|m| m.handle == 0).flat_map(|m| m.payload.clone()).collect();
    assert!(body == bytes_of(3 * MIB));
}

#[test]
fn a_peer_that_does_not_read_holds_no_more_output_than_the_limit() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for _ in 0..3 {
        bench.send_bytes(sender, &bytes_of(4 * MIB), false);
    }
    let raw = bench.raw_receiver("q", 0);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 10));
    assert!(bench.waiting_output(raw) < 512 * 1024);
    bench.stall(raw, false);
    let bytes: usize = bench.hear(raw).transfers().iter().map(|moved| moved.payload.len()).sum();
    assert!(bytes > 12 * MIB);
}

#[test]
fn frames_of_two_links_may_alternate_within_their_messages() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    for (handle, queue) in [(0, "a"), (1, "b")] {
        bench.say(raw, 0, &crate::bench::raw::sending(handle, queue));
    }
    let message = bytes_of(1_000);
    let pieces: Vec<_> = message.chunks(100).collect();
    for (at, piece) in pieces.iter().enumerate() {
        for handle in [0, 1] {
            let first = if at == 0 { whole(handle, handle) } else { Transfer::default() };
            let is_last = at + 1 == pieces.len();
            bench.say_with(raw, 0, &Transfer { handle, more: !is_last, ..first }, piece);
        }
    }
    let client = bench.client();
    for queue in ["a", "b"] {
        let receiver = bench.receiver(client, queue, 1);
        assert!(bench.got(receiver)[0].bytes == message);
    }
}

#[test]
fn a_message_beyond_the_largest_that_is_accepted_detaches_its_link() {
    let mut bench = Bench::with(|setup| setup.settings.max_message_bytes = 10_000);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    assert_eq!(bench.answer(sender).max_message_size, Some(10_000));
    bench.send_bytes(sender, &bytes_of(9_000), false);
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    bench.send_bytes(sender, &bytes_of(20_000), false);
    assert_eq!(bench.detach_error(sender).condition, condition::MESSAGE_SIZE_EXCEEDED);
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &more(Some(0)), &[0; 6_000]);
    bench.say_with(raw, 0, &more(None), &[0; 6_000]);
    let error = bench.hear(raw).detach().error.unwrap();
    assert_eq!(error.condition, condition::MESSAGE_SIZE_EXCEEDED);
    assert!(error.description.unwrap().contains("10000"));
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn a_large_message_is_rejected_where_the_disk_has_no_room() {
    let mut bench = Bench::new();
    bench.files.fill_up();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(2 * MIB), false);
    let DeliveryState::Rejected { error: Some(error) } = bench.states(sender).remove(0) else {
        panic!("it was not rejected")
    };
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    bench.send(sender, &text("small"));
    assert_eq!(bench.states(sender), [DeliveryState::Accepted], "the link goes on");
    bench.expect_nothing_left();
}

#[test]
fn a_large_message_that_cannot_be_read_again_is_given_up() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(2 * MIB), false);
    bench.send(sender, &text("next"));
    bench.files.lose();
    let receiver = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(receiver), ["next"]);
    assert_eq!(bench.numbers("q").discards_subscriber, 1);
}

#[test]
fn a_large_message_that_breaks_off_in_the_middle_of_a_read_is_aborted() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(4 * MIB), false);
    let raw = bench.raw_receiver("q", 0);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 2));
    bench.files.lose();
    bench.stall(raw, false);
    let transfers = bench.hear(raw).transfers();
    assert!(transfers.last().unwrap().aborted);
    bench.send(sender, &text("next"));
    assert_eq!(bench.hear(raw).transfer().message(), text("next"));
}

#[test]
fn a4_a_message_that_has_begun_to_leave_leaves_as_a_whole() {
    // Its queue is purged or makes room, it expires: what has been written goes on.
    for event in ["purge", "expire", "make room"] {
        let mut bench = Bench::new();
        bench.create("q", |settings| {
            settings.max_count = Some(1);
            settings.limit_policy = LimitPolicy::Ring;
        });
        let client = bench.client();
        let sender = bench.sender(client, "q");
        let mut message = Message::of_data(pattern(2 * MIB));
        message.header_mut().ttl = Some(10_000);
        bench.send(sender, &message);
        let raw = bench.raw_begun();
        let attach = Attach { snd_settle_mode: SenderSettleMode::Settled, ..receiving(0, "q") };
        bench.ask(raw, &attach);
        bench.stall(raw, true);
        bench.say(raw, 0, &credit_of(0, 0, 1));
        match event {
            "purge" => bench.queue("q").purge(bench.now, u64::MAX).1.perform(),
            "expire" => bench.advance(20_000),
            _ => {
                bench.send(sender, &text("one"));
                bench.send(sender, &text("two"));
            }
        }
        bench.stall(raw, false);
        let transfers = bench.hear(raw).transfers();
        assert!(transfers.iter().all(|moved| !moved.aborted));
        let bytes: Vec<u8> = transfers.iter().flat_map(|moved| moved.payload.clone()).collect();
        assert!(Message::decode(&bytes).unwrap().body == message.body, "{event}");
        assert_eq!(bench.depth("q"), u64::from(event == "make room"));
    }
}

#[test]
fn a4_a_message_whose_queue_is_deleted_in_the_middle_of_it_does_not_end_as_if_it_were_whole() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &Message::of_data(pattern(2 * MIB)));
    let raw = bench.raw_begun();
    let attach = Attach { snd_settle_mode: SenderSettleMode::Settled, ..receiving(0, "q") };
    bench.ask(raw, &attach);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 1));
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.stall(raw, false);
    let heard = bench.hear(raw);
    // The link ends, and with it what has come of the message.
    assert_eq!(heard.detach().error.unwrap().condition, condition::RESOURCE_DELETED);
    let transfers = heard.transfers();
    assert!(!transfers.is_empty() && transfers.iter().all(|moved| moved.more));
}

#[test]
fn a_receiver_may_settle_a_message_before_it_has_all_of_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(2 * MIB), false);
    let raw = bench.raw_receiver("q", 0);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 1));
    bench.say(raw, 0, &settled(0, 0, DeliveryState::Released));
    bench.stall(raw, false);
    let transfers = bench.hear(raw).transfers();
    assert!(!transfers.last().unwrap().more, "the delivery has an end");
    let other = bench.receiver(client, "q", 1);
    assert!(bench.got(other)[0].bytes == bytes_of(2 * MIB));
}

#[test]
fn credit_that_is_taken_back_before_a_large_message_has_begun_gives_it_back() {
    let mut bench = Bench::with(|setup| {
        setup.settings.output_limit = 2_000;
        setup.settings.large_message_bytes = 10_000;
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for size in [990, 990, 100_000] {
        bench.send_bytes(sender, &bytes_of(size), false);
    }
    let raw = bench.raw_receiver("q", 0);
    bench.stall(raw, true);
    // The first two fill the output; the third one is taken with them and cannot begin.
    bench.say(raw, 0, &credit_of(0, 0, 3));
    assert_eq!(bench.numbers("q").unacked_messages, 3);
    bench.say(raw, 0, &Flow { drain: true, ..credit_of(0, 2, 0) });
    bench.stall(raw, false);
    let heard = bench.hear(raw);
    assert_eq!(heard.transfers().len(), 2);
    assert_eq!(heard.flows().len(), 1, "the drain is answered");
    let other = bench.receiver(client, "q", 1);
    assert!(bench.got(other)[0].bytes == bytes_of(100_000));
}

#[test]
fn a_link_that_is_closed_in_the_middle_of_a_message_gives_it_back() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(2 * MIB), false);
    let raw = bench.raw_receiver("q", 0);
    bench.stall(raw, true);
    bench.say(raw, 0, &credit_of(0, 0, 1));
    bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });
    bench.stall(raw, false);
    let other = bench.receiver(client, "q", 1);
    assert!(bench.got(other)[0].bytes == bytes_of(2 * MIB));
}

#[test]
fn a_large_message_may_be_sent_settled() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(2 * MIB), true);
    let request = AttachRequest {
        snd_settle_mode: SenderSettleMode::Settled,
        ..AttachRequest::receiver("r", Source::at("q"), Target::default().into())
    };
    let receiver = bench.attach(client, request);
    bench.grant(receiver, 1);
    let got = bench.got(receiver).remove(0);
    assert!(got.settled && got.bytes == bytes_of(2 * MIB));
    assert_eq!((bench.depth("q"), bench.files.count()), (0, 0));
}

#[test]
fn a_small_session_window_lets_a_large_message_through_piece_by_piece() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let bytes = bytes_of(3_000);
    bench.send_bytes(sender, &bytes, false);
    let raw = bench.raw_open(Open { max_frame_size: 512, ..Open::new("narrow") });
    bench.say(raw, 0, &Begin::new(0, 1, 1));
    bench.say(raw, 0, &receiving(0, "q"));
    bench.hear(raw);
    bench.say(raw, 0, &Flow { incoming_window: 1, ..credit_of(0, 0, 1) });
    let mut all = Vec::new();
    for seen in 1.. {
        let moved = bench.hear(raw).transfer();
        all.extend_from_slice(&moved.payload);
        if !moved.more {
            break;
        }
        let window =
            Flow { handle: None, delivery_count: None, link_credit: None, ..credit_of(0, seen, 0) };
        bench.say(raw, 0, &Flow { incoming_window: 1, ..window });
    }
    assert!(all == bytes);
}
