//! Who settles first, on both sides of the broker.

use crate::bench::raw::{credit_of, receiving, sending, settled, whole};
use crate::bench::{Bench, text};
use mochila_engine::AttachRequest;
use mochila_wire::performative::{
    Attach, Disposition, ReceiverSettleMode, Role, SenderSettleMode, Transfer,
};
use mochila_wire::{DeliveryState, Encode, Source, Target};

#[test]
fn an_unsettled_message_is_accepted_and_settled_once_it_is_in_the_queue() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &whole(0, 0), &text("a").to_bytes());
    let disposition = bench.hear(raw).disposition();
    assert_eq!(disposition, settled(0, 0, DeliveryState::Accepted).without_last());
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn messages_of_one_packet_are_settled_by_one_range() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let packet: Vec<u8> = (0..50)
        .flat_map(|id| crate::bench::raw::framed(0, &whole(0, id), &text("m").to_bytes()))
        .collect();
    bench.say_bytes(raw, &packet);
    assert_eq!(bench.hear(raw).disposition(), settled(0, 49, DeliveryState::Accepted));
}

#[test]
fn a_presettled_message_is_not_spoken_of_again() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let transfer = Transfer { settled: Some(true), ..whole(0, 0) };
    bench.say_with(raw, 0, &transfer, &text("a").to_bytes());
    assert!(bench.hear(raw).is_silent());
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn settled_and_unsettled_messages_may_alternate_on_a_link() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let packet: Vec<u8> = (0..6)
        .flat_map(|id| {
            let transfer = Transfer { settled: Some(id % 3 == 0), ..whole(0, id) };
            crate::bench::raw::framed(0, &transfer, &text("m").to_bytes())
        })
        .collect();
    bench.say_bytes(raw, &packet);
    let ranges: Vec<_> =
        bench.hear(raw).dispositions().iter().map(|d| (d.first, d.last())).collect();
    assert_eq!(ranges, [(1, 2), (4, 5)]);
    assert_eq!(bench.depth("q"), 6);
}

#[test]
fn in_mode_second_we_tell_the_outcome_and_the_sender_settles() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let attach = Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sending(0, "q") };
    assert_eq!(bench.ask(raw, &attach).attach().rcv_settle_mode, ReceiverSettleMode::Second);
    bench.say_with(raw, 0, &whole(0, 0), &text("a").to_bytes());
    let told = bench.hear(raw).disposition();
    assert_eq!((told.state.clone(), told.settled), (Some(DeliveryState::Accepted), false));
    assert_eq!(bench.depth("q"), 1);
    let done = Disposition { role: Role::Sender, ..settled(0, 0, DeliveryState::Accepted) };
    assert!(bench.ask(raw, &done).is_silent());
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn a_single_delivery_may_be_settled_first_on_a_link_of_mode_second() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    bench.ask(raw, &Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sending(0, "q") });
    let transfer = Transfer { rcv_settle_mode: Some(ReceiverSettleMode::First), ..whole(0, 0) };
    bench.say_with(raw, 0, &transfer, &text("a").to_bytes());
    assert!(bench.hear(raw).disposition().settled);
}

#[test]
fn a_rejection_in_mode_second_waits_for_the_sender_too() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    bench.ask(raw, &Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..sending(0, "q") });
    bench.say_with(raw, 0, &whole(0, 0), b"no message");
    let told = bench.hear(raw).disposition();
    assert!(matches!(told.state, Some(DeliveryState::Rejected { .. })) && !told.settled);
}

#[test]
fn a_receiver_of_mode_second_settles_after_we_have() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    let raw = bench.raw_begun();
    bench.ask(raw, &Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..receiving(0, "q") });
    bench.ask(raw, &credit_of(0, 0, 1));
    let told = Disposition { settled: false, ..settled(0, 0, DeliveryState::Accepted) };
    let answer = bench.ask(raw, &told).disposition();
    assert_eq!((answer.role, answer.first, answer.settled), (Role::Sender, 0, true));
    assert_eq!(bench.depth("q"), 0);
    assert!(bench.ask(raw, &settled(0, 0, DeliveryState::Accepted)).is_silent());
}

#[test]
fn messages_that_are_sent_settled_leave_the_queue_when_they_are_sent() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let request = AttachRequest {
        snd_settle_mode: SenderSettleMode::Settled,
        ..AttachRequest::receiver("r", Source::at("q"), Target::default().into())
    };
    let receiver = bench.attach(client, request);
    for body in ["a", "b", "c"] {
        bench.send(sender, &text(body));
    }
    bench.grant(receiver, 2);
    let got = bench.got(receiver);
    assert!(got.iter().all(|got| got.settled));
    assert_eq!((got.len(), bench.depth("q")), (2, 1));
    bench.kill(client);
    assert_eq!(bench.depth("q"), 1, "what was sent settled does not come back");
}

#[test]
fn a_thousand_presettled_messages_in_one_packet_are_all_there() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let packet: Vec<u8> = (0..1_000)
        .flat_map(|id| {
            let transfer = Transfer { settled: Some(true), ..whole(0, id) };
            crate::bench::raw::framed(0, &transfer, &text("m").to_bytes())
        })
        .collect();
    bench.say_bytes(raw, &packet);
    assert_eq!(bench.depth("q"), 1_000);
    let flows = bench.hear(raw).flows();
    assert_eq!(flows.last().unwrap().link_credit, Some(1_000), "the credit is topped up");
}

#[test]
fn settled_on_a_later_frame_settles_the_delivery() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let message = text("in two frames").to_bytes();
    let (first, second) = message.split_at(7);
    bench.say_with(raw, 0, &Transfer { more: true, ..whole(0, 0) }, first);
    let last = Transfer { handle: 0, settled: Some(true), ..Transfer::default() };
    bench.say_with(raw, 0, &last, second);
    assert!(bench.hear(raw).is_silent());
    assert_eq!(bench.depth("q"), 1);
}

trait WithoutLast {
    fn without_last(self) -> Self;
}

impl WithoutLast for Disposition {
    /// As it is written where the range is one delivery.
    fn without_last(self) -> Disposition {
        Disposition { last: None, ..self }
    }
}
