//! What valid clients say, from the first byte to the last.

use mochila_engine::{AttachRequest, ConnectionConfig, Credentials, Delivery, Event, SessionId};
use mochila_wire::message::{Body, MessageId};
use mochila_wire::performative::{ReceiverSettleMode, SenderSettleMode};
use mochila_wire::terminus::DISTRIBUTION_COPY;
use mochila_wire::{DeliveryState, Encode, Map, Message, Source, Target, Value};

use crate::Hall;

/// All conversations: frame by frame, all at once, and torn.
pub(super) fn all() -> Vec<Vec<u8>> {
    let conversations = [
        greeting(Credentials::NoSasl),
        greeting(Credentials::Anonymous),
        greeting(Credentials::Plain { user: "somebody".to_owned(), password: "secret".into() }),
        sending(),
        receiving(),
        second_thoughts(),
        relaying(),
        managing(),
        coming_and_going(),
    ];
    let manners = |said: &Vec<u8>| [0, 1, 7].map(|manner| [&[manner], &said[..]].concat());
    conversations.iter().flat_map(manners).collect()
}

fn greeting(credentials: Credentials) -> Vec<u8> {
    let mut hall = Hall::new();
    let guest = hall.guest_as(ConnectionConfig::new("guest"), credentials);
    hall.client(guest).close(None);
    hall.run();
    hall.said(guest).to_vec()
}

fn sending() -> Vec<u8> {
    let mut hall = Hall::new();
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    for index in 0..5u32 {
        hall.send(guest, sender, &Message::of_value(index).to_bytes());
    }
    hall.send_in_pieces(guest, sender, &Message::of_data(vec![7; 6_000]).to_bytes());
    hall.abort(guest, sender, b"beginning");
    let settled = Delivery { settled: true, ..Delivery::default() };
    let bytes = rich_message().to_bytes();
    hall.client(guest).outgoing(sender).expect("attached").deliver(&settled, &[&bytes]);
    hall.client(guest).detach(sender, true, None);
    hall.client(guest).close(None);
    hall.run();
    hall.said(guest).to_vec()
}

fn receiving() -> Vec<u8> {
    let (mut hall, guest, session) = filled(6);
    let receiver = hall.receiver(guest, session, "q");
    hall.grant(guest, receiver, 4);
    let outcomes = [
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::Rejected { error: None },
        DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: Some(Map::new().with("x-opt-mark", 1u32)),
        },
    ];
    for (id, outcome) in delivery_ids(&mut hall, guest).into_iter().zip(outcomes) {
        hall.client(guest).settle_incoming(session, id, id, outcome, true);
        hall.run();
    }
    hall.client(guest).grant_drain(receiver, 10);
    hall.run();
    hall.client(guest).echo(receiver);
    hall.grant(guest, receiver, 0);
    hall.client(guest).end(session, None);
    hall.client(guest).close(None);
    hall.run();
    hall.said(guest).to_vec()
}

/// A receiver that waits for the sender to settle, a browser, and settled deliveries.
fn second_thoughts() -> Vec<u8> {
    let (mut hall, guest, session) = filled(6);
    let target = || Target::default().into();
    let request = AttachRequest {
        rcv_settle_mode: ReceiverSettleMode::Second,
        ..AttachRequest::receiver("second", Source::at("q"), target())
    };
    let second = hall.attach(guest, session, request);
    hall.grant(guest, second, 2);
    for id in delivery_ids(&mut hall, guest) {
        let accepted = DeliveryState::Accepted;
        hall.client(guest).settle_incoming(session, id, id, accepted, false);
        hall.run();
    }
    let source = Source { distribution_mode: Some(DISTRIBUTION_COPY), ..Source::at("q") };
    let browser = AttachRequest::receiver("browser", source, target());
    let browser = hall.attach(guest, session, browser);
    hall.grant(guest, browser, 10);
    let request = AttachRequest {
        snd_settle_mode: SenderSettleMode::Settled,
        ..AttachRequest::receiver("settled", Source::at("q"), target())
    };
    let settled = hall.attach(guest, session, request);
    hall.grant(guest, settled, 10);
    hall.client(guest).detach(second, false, None);
    hall.run();
    hall.said(guest).to_vec()
}

/// A sender without an address, and a dynamic queue.
fn relaying() -> Vec<u8> {
    let mut hall = Hall::new();
    let guest = hall.guest();
    let session = hall.session(guest);
    let source = Source { dynamic: true, ..Source::default() };
    let request = AttachRequest::receiver("dynamic", source, Target::default().into());
    let receiver = hall.attach(guest, session, request);
    hall.grant(guest, receiver, 5);
    let relay = AttachRequest::sender("relay", Source::default(), Target::default().into());
    let relay = hall.attach(guest, session, relay);
    for to in ["a", "b", "$nowhere"] {
        let mut message = Message::of_value("text");
        message.properties_mut().to = Some(to.to_owned());
        hall.send(guest, relay, &message.to_bytes());
    }
    hall.client(guest).end(session, None);
    hall.run();
    hall.said(guest).to_vec()
}

fn managing() -> Vec<u8> {
    let mut hall = Hall::new();
    let guest = hall.guest();
    let session = hall.session(guest);
    let replies =
        AttachRequest::receiver("replies", Source::at("$management"), Target::at("replies").into());
    let replies = hall.attach(guest, session, replies);
    hall.grant(guest, replies, 20);
    let requests = hall.sender(guest, session, "$management");
    for (number, operation) in
        ["CREATE", "READ", "UPDATE", "QUERY", "PURGE", "DELETE"].into_iter().enumerate()
    {
        let body = Value::Map(Map::new().with("max-count", 5u32));
        let mut message = Message { body: Body::Value(body), ..Message::default() };
        message.properties_mut().message_id = Some(MessageId::Ulong(number as u64));
        message.properties_mut().reply_to = Some("replies".to_owned());
        message.set_application_property("operation", operation);
        message.set_application_property("type", "org.mochila.queue");
        message.set_application_property("name", "managed");
        hall.send(guest, requests, &message.to_bytes());
    }
    hall.said(guest).to_vec()
}

/// Sessions and links that come and go, on channels and handles that are used again.
fn coming_and_going() -> Vec<u8> {
    let mut hall = Hall::new();
    let guest = hall.guest();
    for closed in [true, false] {
        let sessions: Vec<SessionId> = (0..3).map(|_| hall.session(guest)).collect();
        for session in sessions {
            let sender = hall.sender(guest, session, "q");
            hall.send(guest, sender, &Message::of_value(closed).to_bytes());
            let receiver = hall.receiver(guest, session, "q");
            hall.grant(guest, receiver, 1);
            hall.client(guest).detach(sender, closed, None);
            hall.run();
            hall.client(guest).end(session, None);
            hall.run();
        }
    }
    hall.said(guest).to_vec()
}

/// A client that has put messages into a queue.
fn filled(messages: u32) -> (Hall, usize, SessionId) {
    let mut hall = Hall::new();
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "q");
    for _ in 0..messages {
        hall.send(guest, sender, &rich_message().to_bytes());
    }
    (hall, guest, session)
}

fn rich_message() -> Message {
    let mut message = Message::of_data("data");
    message.header_mut().ttl = Some(60_000);
    message.header_mut().durable = true;
    message.delivery_annotations = Some(Map::new().with("x-opt-hop", 1u32));
    message.set_message_annotation("x-opt-a", 2u64);
    message.properties_mut().message_id = Some("id".into());
    message.set_application_property("a", 1.5f32);
    message
}

fn delivery_ids(hall: &mut Hall, guest: usize) -> Vec<u32> {
    let transfers = hall.heard(guest).into_iter().filter_map(|event| match event {
        Event::Transfer(transfer) if !transfer.more => Some(transfer.delivery_id),
        _ => None,
    });
    transfers.collect()
}
