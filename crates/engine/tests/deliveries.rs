//! Deliveries in one frame and in many (part 2, 2.6.12 to 2.6.14).

use mochila_engine::pair::{Pair, Random, RawPeer, Road, Seen};
use mochila_engine::{ConnectionConfig, Delivery, Event, LinkId, SessionId, TransferEvent};
use mochila_wire::frame::{self, FrameKind};
use mochila_wire::performative::{
    Begin, Flow, Open, ReceiverSettleMode, Role, Transfer, TransferState,
};
use mochila_wire::{DeliveryState, Encode, Performative, Symbol, condition};

fn sending_client(server: ConnectionConfig) -> (Pair, SessionId, Road) {
    let mut pair = Pair::opened_with(ConnectionConfig::new("client"), server);
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    pair.grant(road, 1_000);
    (pair, session, road)
}

fn small_frames() -> ConnectionConfig {
    ConnectionConfig { max_frame_size: 512, ..ConnectionConfig::new("server") }
}

fn receiving_engine() -> (RawPeer, LinkId) {
    let mut peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").expect("it is attached");
    peer.engine.grant(link, 100);
    peer.heard();
    (peer, link)
}

fn transfers(events: &[Seen]) -> Vec<(&TransferEvent, &Seen)> {
    let transfers = events.iter().filter_map(|seen| match &seen.event {
        Event::Transfer(transfer) => Some((transfer, seen)),
        _ => None,
    });
    transfers.collect()
}

/// Puts the deliveries that arrived together again.
fn assembled(events: &[Seen]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for (transfer, seen) in transfers(events) {
        if transfer.start {
            messages.push(Vec::new());
        }
        messages.last_mut().expect("a delivery has started").extend_from_slice(&seen.payload);
    }
    messages
}

fn detached(events: &[Seen]) -> Option<Symbol> {
    events.iter().find_map(|seen| match &seen.event {
        Event::Detached { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}

fn bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(len as u64).fill(&mut bytes);
    bytes
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    let (mut pair, _, road) = sending_client(ConnectionConfig::new("server"));
    let mut outgoing = pair.client.outgoing(road.client).unwrap();
    let first = outgoing.send(1, false, 0, &[b"head", b"", b"body"]);
    let second = outgoing.send(2, true, 0x8001_3700, &[b"x"]);
    assert_eq!((first, second), (0, 1));
    pair.run();
    let events = pair.server_events();
    let arrived = transfers(&events);
    let (transfer, seen) = arrived[0];
    assert_eq!((seen.payload.as_slice(), seen.tag.as_slice()), (&b"headbody"[..], &[0; 4][..]));
    assert!(transfer.is_whole() && !transfer.settled);
    assert_eq!((transfer.delivery_id, transfer.link), (0, road.server));
    let (transfer, seen) = arrived[1];
    assert_eq!((transfer.message_format, transfer.settled), (0x8001_3700, true));
    assert_eq!(seen.tag, [0, 0, 0, 1]);
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 1);
}

#[test]
fn messages_of_any_size_are_split_into_frames_that_fit() {
    for len in [0, 1, 430, 440, 450, 505, 512, 513, 1_000, 10_000] {
        let (mut pair, _, road) = sending_client(small_frames());
        let message = bytes(len);
        let (a, b) = message.split_at(len / 3);
        let mut outgoing = pair.client.outgoing(road.client).unwrap();
        assert!(outgoing.fits(len));
        outgoing.send(7, false, 0, &[a, b]);
        let output = std::mem::take(pair.client.output());
        let mut rest = &output[..];
        while !rest.is_empty() {
            let header = frame::Header::parse(rest).unwrap().unwrap();
            assert!(header.size <= 512, "{len}");
            rest = &rest[header.size as usize..];
        }
        *pair.client.output() = output;
        pair.run();
        let events = pair.server_events();
        assert_eq!(assembled(&events), [message], "{len}");
        assert!(transfers(&events).iter().all(|(transfer, _)| transfer.delivery_id == 0));
    }
}

#[test]
fn continuation_frames_carry_neither_id_nor_tag() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { max_frame_size: 512, ..Open::new("raw") });
    peer.send(0, &Begin::new(0, 100, 100));
    peer.events();
    let link = peer.attach(0, "link", Role::Receiver);
    peer.send(0, &RawPeer::credit_frame(1));
    peer.engine.outgoing(link).unwrap().send(0, true, 0, &[&bytes(1_000)]);
    let heard = peer.heard();
    assert_eq!(heard.len(), 3);
    for (number, said) in heard.iter().enumerate() {
        let Some(Performative::Transfer(transfer)) = said.performative() else { panic!() };
        let first = number == 0;
        assert_eq!(transfer.delivery_id.is_some(), first);
        assert_eq!(transfer.delivery_tag.is_some(), first);
        assert_eq!(transfer.message_format.is_some(), first);
        assert_eq!(transfer.more, number < 2);
    }
}

#[test]
fn frames_of_different_links_may_interleave() {
    let (mut peer, _) = receiving_engine();
    let other = peer.attach(1, "other", Role::Sender);
    peer.engine.grant(other, 10);
    let more = |handle, id| Transfer { handle, more: true, ..RawPeer::transfer_frame(id) };
    peer.send_with(0, &more(0, 0), b"a1");
    peer.send_with(0, &more(1, 1), b"b1");
    peer.send_with(0, &Transfer::default(), b"a2");
    peer.send_with(0, &Transfer { handle: 1, ..Transfer::default() }, b"b2");
    let events = peer.events();
    let seen: Vec<(u32, &[u8], bool)> = transfers(&events)
        .iter()
        .map(|(transfer, seen)| (transfer.delivery_id, &seen.payload[..], transfer.more))
        .collect();
    assert_eq!(
        seen,
        [
            (0, &b"a1"[..], true),
            (1, &b"b1"[..], true),
            (0, &b"a2"[..], false),
            (1, &b"b2"[..], false)
        ]
    );
}

#[test]
fn a_continuation_may_repeat_its_id_but_not_name_another() {
    let (mut peer, link) = receiving_engine();
    let more = Transfer { more: true, ..RawPeer::transfer_frame(0) };
    peer.send(0, &more);
    peer.send(0, &more);
    assert_eq!(peer.engine.link(link).unwrap().receiving(), Some(0));
    assert_eq!(transfers(&peer.events()).len(), 2);
    peer.send(0, &RawPeer::transfer_frame(1));
    assert_eq!(detached(&peer.events()), Some(condition::INVALID_FIELD));
}

#[test]
fn an_aborted_delivery_is_reported_and_the_next_one_starts_afresh() {
    let (mut peer, _) = receiving_engine();
    peer.send_with(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) }, b"half");
    peer.send_with(0, &Transfer { aborted: true, more: true, ..Transfer::default() }, b"junk");
    peer.send_with(0, &RawPeer::transfer_frame(1), b"whole");
    let events = peer.events();
    let arrived = transfers(&events);
    assert!(arrived[1].0.aborted && !arrived[1].0.more && !arrived[1].0.start);
    assert!(arrived[2].0.is_whole());
    assert_eq!(arrived[2].0.delivery_id, 1);
}

#[test]
fn settled_on_any_frame_settles_the_delivery() {
    let (mut peer, _) = receiving_engine();
    peer.send(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) });
    peer.send(0, &Transfer { more: true, settled: Some(true), ..Transfer::default() });
    peer.send(0, &Transfer { settled: Some(false), ..Transfer::default() });
    let events = peer.events();
    let settled: Vec<bool> = transfers(&events).iter().map(|(t, _)| t.settled).collect();
    assert_eq!(settled, [false, true, true]);
}

#[test]
fn a_delivery_without_id_or_with_a_long_tag_detaches_the_link() {
    let no_id = Transfer { delivery_id: None, ..RawPeer::transfer_frame(0) };
    let long_tag = Transfer { delivery_tag: Some(&[7; 33]), ..RawPeer::transfer_frame(0) };
    for transfer in [no_id, long_tag] {
        let (mut peer, _) = receiving_engine();
        peer.send(0, &transfer);
        assert_eq!(detached(&peer.events()), Some(condition::INVALID_FIELD));
        assert_eq!(peer.heard_names(), ["detach"]);
    }
}

#[test]
fn a_message_that_is_too_large_detaches_the_link() {
    let mut peer = RawPeer::begun();
    peer.send(0, &RawPeer::attach_frame(0, "link", Role::Sender));
    let events = peer.events();
    let Event::Attached { link, peer: attach } = &events[0].event else { panic!("{events:?}") };
    let mut answer = mochila_engine::AttachAnswer::echo(attach);
    answer.max_message_size = 10;
    peer.engine.answer_attach(*link, answer);
    peer.engine.grant(*link, 10);
    peer.send_with(0, &RawPeer::transfer_frame(0), &[1; 10]);
    assert_eq!(transfers(&peer.events()).len(), 1);
    peer.send_with(0, &Transfer { more: true, ..RawPeer::transfer_frame(1) }, &[1; 6]);
    peer.send_with(0, &Transfer::default(), &[1; 5]);
    let events = peer.events();
    assert_eq!(transfers(&events).len(), 1);
    assert_eq!(detached(&events), Some(condition::MESSAGE_SIZE_EXCEEDED));
}

#[test]
fn the_state_of_a_delivery_counts_when_it_is_asked_whether_a_message_fits() {
    let server = ConnectionConfig { incoming_window: 2, ..small_frames() };
    let (mut pair, _, road) = sending_client(server);
    let state = DeliveryState::Transactional { txn_id: [7; 32].into(), outcome: None };
    let delivery = Delivery { state: Some(&state), ..Delivery::default() };
    let mut outgoing = pair.client.outgoing(road.client).unwrap();
    let message = bytes(2 * outgoing.frame_room());
    assert!(outgoing.fits(message.len()));
    assert!(!outgoing.fits_as(&delivery, message.len()));
    let len = (0..message.len()).rev().find(|len| outgoing.fits_as(&delivery, *len)).unwrap();
    outgoing.deliver(&delivery, &[&message[..len]]);
    assert_eq!(outgoing.room(), 0, "it has filled the window, and no more");
    pair.run();
    assert_eq!(assembled(&pair.server_events()), [&message[..len]]);
}

#[test]
fn a_large_message_flows_piece_by_piece_through_a_narrow_window() {
    let server = ConnectionConfig { incoming_window: 4, ..small_frames() };
    let (mut pair, session, road) = sending_client(server);
    let message = bytes(200_000);
    let delivery = Delivery { token: 9, ..Delivery::default() };
    let mut outgoing = pair.client.outgoing(road.client).unwrap();
    assert!(!outgoing.fits(message.len()));
    let mut sent = outgoing.start_large(&delivery, &message[..1_000]).taken;
    assert_eq!(pair.client.link(road.client).unwrap().sending(), Some(9));
    let mut received = Vec::new();
    let mut largest_output = 0;
    let mut done = false;
    while !done {
        let end = (sent + 3_000).min(message.len());
        let mut outgoing = pair.client.outgoing(road.client).unwrap();
        assert_eq!(outgoing.capacity(), 0, "nothing else may go on this link");
        let progress = outgoing.continue_large(&message[sent..end], end == message.len());
        sent += progress.taken;
        done = progress.done;
        largest_output = largest_output.max(pair.client.output().len());
        pair.run();
        let events = pair.server_events();
        transfers(&events).iter().for_each(|(_, seen)| received.extend_from_slice(&seen.payload));
        let windows = pair.client_events();
        assert!(done || windows.iter().any(|seen| seen.event == Event::Window { session }));
    }
    assert_eq!(received, message);
    assert!(largest_output <= 4 * 512, "no buffer of the message's size: {largest_output}");
    assert_eq!(pair.client.link(road.client).unwrap().sending(), None);
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 1);
    assert!(pair.client.outgoing(road.client).unwrap().capacity() > 0);
}

#[test]
fn a_large_message_may_end_without_another_byte() {
    let (mut pair, _, road) = sending_client(ConnectionConfig::new("server"));
    let mut outgoing = pair.client.outgoing(road.client).unwrap();
    assert_eq!(outgoing.start_large(&Delivery::default(), b"").taken, 0);
    assert_eq!(outgoing.continue_large(b"all", false).taken, 3);
    assert!(outgoing.continue_large(b"", true).done);
    pair.run();
    let events = pair.server_events();
    assert_eq!(assembled(&events), [b"all".to_vec()]);
    assert!(!transfers(&events).last().unwrap().0.more);
}

#[test]
fn links_share_the_window_while_a_large_message_is_under_way() {
    let (mut pair, session, road) = sending_client(ConnectionConfig::new("server"));
    let other = pair.client_sends(session, "other");
    pair.grant(other, 10);
    pair.client.outgoing(road.client).unwrap().start_large(&Delivery::default(), b"be");
    pair.client.outgoing(other.client).unwrap().send(0, true, 0, &[b"between"]);
    pair.client.outgoing(road.client).unwrap().continue_large(b"gun", true);
    pair.run();
    let events = pair.server_events();
    let payloads: Vec<&[u8]> = transfers(&events).iter().map(|(_, s)| &s.payload[..]).collect();
    assert_eq!(payloads, [&b"be"[..], b"between", b"gun"]);
}

#[test]
fn a_large_message_may_be_given_up() {
    let server = ConnectionConfig { incoming_window: 2, ..ConnectionConfig::new("server") };
    let (mut pair, _, road) = sending_client(server);
    let delivery = Delivery { token: 5, ..Delivery::default() };
    let mut outgoing = pair.client.outgoing(road.client).unwrap();
    outgoing.start_large(&delivery, b"half");
    outgoing.continue_large(b"more", false);
    assert!(!outgoing.abort_large(), "the window is closed");
    pair.run();
    assert!(pair.client.outgoing(road.client).unwrap().abort_large());
    pair.run();
    let events = pair.server_events();
    assert!(transfers(&events).last().unwrap().0.aborted);
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 0);
    pair.client.outgoing(road.client).unwrap().send(6, false, 0, &[b"next"]);
    pair.run();
    assert!(transfers(&pair.server_events())[0].0.is_whole());
}

#[test]
fn a_delivery_may_carry_its_own_tag_and_state() {
    let (mut pair, _, road) = sending_client(ConnectionConfig::new("server"));
    let state = DeliveryState::Transactional { txn_id: Box::from(*b"txn"), outcome: None };
    let delivery = Delivery {
        tag: Some(b"my-tag"),
        state: Some(&state),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        batchable: true,
        ..Delivery::default()
    };
    pair.client.outgoing(road.client).unwrap().deliver(&delivery, &[b"m"]);
    pair.run();
    let events = pair.server_events();
    let (transfer, seen) = transfers(&events)[0];
    assert_eq!(seen.tag, b"my-tag");
    assert_eq!(transfer.state.as_deref(), Some(&state));
    assert_eq!(transfer.txn_id(&[]), Some(&b"txn"[..]));
}

#[test]
fn the_id_of_a_transaction_is_found_where_it_came_in() {
    let (mut pair, session, _) = sending_client(ConnectionConfig::new("server"));
    let state = TransferState::InTransaction(b"txn");
    let transfer = Transfer { state: Some(state), ..RawPeer::transfer_frame(0) };
    let mut frame = Vec::new();
    let start = frame::start(&mut frame, FrameKind::Amqp, pair.client.channel(session).unwrap());
    transfer.encode(&mut frame);
    frame.extend_from_slice(b"payload");
    frame::finish(&mut frame, start);
    pair.server.handle_bytes(pair.now(), &frame);
    let Some(Event::Transfer(transfer)) = pair.server.poll_event() else { panic!() };
    assert_eq!(transfer.txn_id(&frame), Some(&b"txn"[..]));
    assert_eq!(&frame[transfer.payload()], b"payload");
    assert_eq!(transfer.state, None);
}

#[test]
fn presettled_messages_cost_no_memory_while_they_pass() {
    let (mut pair, session, road) = sending_client(ConnectionConfig::new("server"));
    pair.client.outgoing(road.client).unwrap().send(42, false, 0, &[b"unsettled"]);
    pair.run();
    for _ in 0..30 {
        pair.grant(road, 1_000);
        for _ in 0..1_000 {
            pair.client.outgoing(road.client).unwrap().send(0, true, 0, &[b"settled"]);
        }
        pair.run();
        pair.server_events();
    }
    let mut tokens = Vec::new();
    pair.client.resolve_outgoing(session, 0, 40_000, true, &mut |_, t, _| tokens.push(t));
    assert_eq!(tokens, [42]);
}

#[test]
fn deliveries_survive_any_tearing_of_the_bytes() {
    for seed in 0..20 {
        let (pair, session, road) = sending_client(small_frames());
        let mut pair = pair.torn(seed);
        let mut random = Random::new(seed);
        let mut sent = Vec::new();
        let mut received = Vec::new();
        for token in 0..30 {
            let message = bytes(random.below(3_000));
            pair.client.outgoing(road.client).unwrap().send(token, false, 0, &[&message]);
            sent.push(message);
            pair.run_once();
            received.extend(pair.server_events());
        }
        pair.run();
        received.extend(pair.server_events());
        assert!(assembled(&received) == sent, "seed {seed}");
        for (transfer, _) in transfers(&received) {
            if !transfer.more {
                let id = transfer.delivery_id;
                let state = DeliveryState::Accepted;
                pair.server.settle_incoming(transfer.session, id, id, state, true);
            }
        }
        pair.run();
        let events = pair.client_events();
        let ranges = events.iter().filter(|s| matches!(s.event, Event::Disposition { .. })).count();
        assert_eq!(ranges, 1, "seed {seed}");
        let mut tokens = Vec::new();
        pair.client.resolve_outgoing(session, 0, 29, true, &mut |_, t, _| tokens.push(t));
        assert_eq!(tokens, (0..30).collect::<Vec<u64>>());
    }
}

#[test]
fn a_killed_sender_leaves_a_delivery_that_never_ends() {
    let (mut peer, link) = receiving_engine();
    peer.send_with(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) }, b"half");
    assert_eq!(peer.engine.link(link).unwrap().receiving(), Some(0));
    peer.engine.handle_eof(peer.now);
    let events = peer.events();
    assert!(matches!(events.last().unwrap().event, Event::Closed { by_peer: true, .. }));
    assert!(peer.engine.is_closed());
    peer.engine.settle_incoming(
        peer.engine.link(link).unwrap().session(),
        0,
        0,
        DeliveryState::Accepted,
        true,
    );
    peer.engine.grant(link, 5);
    assert!(peer.heard().is_empty());
}

#[test]
fn a_flow_with_an_unknown_next_incoming_id_does_not_stop_deliveries() {
    let mut peer = RawPeer::attached(Role::Receiver);
    let link = peer.engine.link_named(Role::Sender, "link").unwrap();
    for id in 0..100 {
        let flow = Flow {
            next_incoming_id: Some(4_000_000_000),
            delivery_count: Some(id),
            ..RawPeer::credit_frame(1)
        };
        peer.send(0, &flow);
        peer.engine.outgoing(link).unwrap().send(0, true, 0, &[b"m"]);
    }
    assert_eq!(peer.heard().len(), 100);
}
