//! What the simulator has found, told as simply as possible.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use mochila_broker::DeleteIf;
use mochila_engine::{AttachRequest, ConnectionConfig, Event};
use mochila_sim::Hall;
use mochila_wire::terminus::DISTRIBUTION_COPY;
use mochila_wire::{Encode, Map, Message, Source, Target, condition};

#[test]
fn the_header_of_a_large_message_counts_like_that_of_a_small_one() {
    let mut hall = Hall::with(|settings| settings.large_message_bytes = 1_000);
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    let mut message = Message::of_data(vec![7; 200_000]);
    message.header_mut().ttl = Some(500);
    message.delivery_annotations = Some(Map::new().with("x-opt-hop", 1u32));
    hall.send(guest, sender, &message.to_bytes());
    hall.send(guest, sender, &message.to_bytes());
    let receiver = hall.receiver(guest, session, "q");
    hall.pass(100);

    hall.grant(guest, receiver, 1);
    let received = hall.received(guest);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].body, message.body);
    assert_eq!(received[0].header.unwrap().ttl, Some(400));
    assert_eq!(received[0].delivery_annotations, None, "they were for the broker");

    hall.pass(1_000);
    hall.grant(guest, receiver, 1);
    assert_eq!(hall.received(guest), [], "it has expired");
}

#[test]
fn a_message_in_a_file_is_sent_whole_through_a_window_of_one_frame() {
    let mut hall = Hall::with(|settings| settings.large_message_bytes = 1_000);
    let narrow = ConnectionConfig { incoming_window: 1, ..ConnectionConfig::new("narrow") };
    let guest = hall.guest_with(narrow);
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    let message = Message::of_data(vec![7; 100_000]);
    hall.send(guest, sender, &message.to_bytes());
    let small = Message::of_data(vec![7; 5_000]);
    hall.send_in_pieces(guest, sender, &small.to_bytes());
    let receiver = hall.receiver(guest, session, "q");
    hall.grant(guest, receiver, 2);
    assert_eq!(hall.received(guest), [message, small]);
}

#[test]
fn a_consumer_whose_socket_is_full_leaves_messages_to_others() {
    let mut hall = Hall::new();
    let (slow, other, producer) = (hall.guest(), hall.guest(), hall.guest());
    let session = hall.session(slow);
    let receiver = hall.receiver(slow, session, "q");
    hall.grant(slow, receiver, 10);
    let session = hall.session(other);
    let receiver = hall.receiver(other, session, "q");
    hall.grant(other, receiver, 10);
    hall.chokes(slow);
    let session = hall.session(producer);
    let sender = hall.sender(producer, session, "q");
    for _ in 0..3 {
        hall.send(producer, sender, &text("message"));
    }
    assert_eq!(hall.received(other).len(), 2, "all but the one that is in the slow socket");
    hall.reads(slow);
    assert_eq!(hall.received(slow).len(), 1);
}

#[test]
fn a_consumer_in_the_middle_of_a_message_leaves_others_to_others() {
    let mut hall = Hall::new();
    let narrow = ConnectionConfig {
        incoming_window: 8,
        max_frame_size: 512,
        ..ConnectionConfig::new("narrow")
    };
    let (slow, other, producer) = (hall.guest_with(narrow), hall.guest(), hall.guest());
    let session = hall.session(slow);
    let receiver = hall.receiver(slow, session, "q");
    hall.grant(slow, receiver, 10);
    hall.looks_away(slow);
    let session = hall.session(producer);
    let sender = hall.sender(producer, session, "q");
    let long = Message::of_data(vec![7; 5_000]);
    hall.send(producer, sender, &long.to_bytes());
    let session = hall.session(other);
    let receiver = hall.receiver(other, session, "q");
    hall.grant(other, receiver, 10);
    hall.send(producer, sender, &text("short"));
    assert_eq!(hall.received(other).len(), 1, "the window of the first consumer is closed");
    hall.reads(slow);
    assert_eq!(hall.received(slow), [long]);
}

#[test]
fn a_drain_is_answered_after_the_message_that_waits_for_room_in_the_output() {
    let mut hall = Hall::with(|settings| {
        settings.output_limit = 600;
        settings.large_message_bytes = 1_000;
    });
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    let first = Message::of_data(vec![1; 575]);
    let second = Message::of_data(vec![2; 3_000]);
    hall.send(guest, sender, &first.to_bytes());
    hall.send_in_pieces(guest, sender, &second.to_bytes());
    let receiver = hall.receiver(guest, session, "q");
    hall.client(guest).grant_drain(receiver, 10);
    hall.run();
    assert_eq!(hall.received(guest), [first, second]);
    let link = hall.client(guest).link(receiver).unwrap();
    assert_eq!((link.credit(), link.is_draining(), link.delivery_count()), (0, false, 10));
}

#[test]
fn a_sender_that_gives_up_every_message_still_gets_credit() {
    let mut hall = Hall::with(|settings| settings.credit_window = 2);
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    for _ in 0..10 {
        hall.abort(guest, sender, b"beginning");
    }
    hall.send(guest, sender, &text("at last"));
}

#[test]
fn a_dynamic_queue_goes_with_its_link_however_that_goes() {
    for way in ["close", "detach", "end", "hang up"] {
        let mut hall = Hall::new();
        let guest = hall.guest();
        let session = hall.session(guest);
        let source = Source { dynamic: true, ..Source::default() };
        let target = Target::default().into();
        let receiver = hall.attach(guest, session, AttachRequest::receiver("r", source, target));
        assert_eq!(hall.node.broker.queue_count(), 1);
        match way {
            "close" => hall.client(guest).detach(receiver, true, None),
            "detach" => hall.client(guest).detach(receiver, false, None),
            "end" => hall.client(guest).end(session, None),
            _ => hall.client(guest).close(None),
        }
        hall.run();
        assert_eq!(hall.node.broker.queue_count(), 0, "after {way}");
    }
}

#[test]
fn a_browser_sees_the_messages_behind_one_that_is_sent_in_pieces() {
    let mut hall = Hall::with(|settings| settings.large_message_bytes = 1_000);
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    let large = Message::of_data(vec![2; 3_000]);
    hall.send_in_pieces(guest, sender, &large.to_bytes());
    hall.send(guest, sender, &text("a"));
    hall.send(guest, sender, &text("b"));
    let source = Source { distribution_mode: Some(DISTRIBUTION_COPY), ..Source::at("q") };
    let target = Target::default().into();
    let browser = hall.attach(guest, session, AttachRequest::receiver("r", source, target));
    hall.grant(guest, browser, 10);
    let seen = hall.received(guest);
    assert_eq!(seen, [large, Message::of_value("a"), Message::of_value("b")]);
}

#[test]
fn a_sender_is_detached_when_its_queue_is_deleted() {
    let mut hall = Hall::new();
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    hall.send(guest, sender, &text("message"));
    hall.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    hall.run();
    let detached = hall.heard(guest).into_iter().find_map(|event| match event {
        Event::Detached { link, error, .. } => Some((link, error.unwrap().condition)),
        _ => None,
    });
    assert_eq!(detached, Some((sender, condition::RESOURCE_DELETED)));
}

fn text(text: &str) -> Vec<u8> {
    Message::of_value(text).to_bytes()
}
