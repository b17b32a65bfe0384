//! What becomes of deliveries: outcomes, settlement, ranges (part 2, 2.6.8 and part 3, 3.4).

use mochila_engine::pair::{Pair, RawPeer, Road, Said};
use mochila_engine::{AttachRequest, ConnectionConfig, Event, LinkId, SessionId};
use mochila_wire::performative::{Disposition, ReceiverSettleMode, Role, SenderSettleMode};
use mochila_wire::{AmqpError, DeliveryState, Map, Performative, Source, Target, condition};

fn sending_client(server: ConnectionConfig) -> (Pair, SessionId, Road) {
    let mut pair = Pair::opened_with(ConnectionConfig::new("client"), server);
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    pair.grant(road, 1_000);
    (pair, session, road)
}

fn receiving_engine() -> (RawPeer, LinkId) {
    let mut peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").expect("it is attached");
    peer.engine.grant(link, 100);
    peer.heard();
    (peer, link)
}

fn dispositions(heard: &[Said]) -> Vec<Disposition> {
    let dispositions = heard.iter().filter_map(|said| match said.performative() {
        Some(Performative::Disposition(disposition)) => Some(disposition),
        _ => None,
    });
    dispositions.collect()
}

#[test]
fn outcomes_are_put_together_into_ranges() {
    let (mut peer, _) = receiving_engine();
    let session = peer.engine.link(receiver(&peer)).unwrap().session();
    for id in 0..50 {
        peer.send(0, &RawPeer::transfer_frame(id));
    }
    peer.heard();
    for id in (0..20).chain(21..40) {
        peer.engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
    }
    peer.engine.settle_incoming(session, 20, 20, DeliveryState::Released, true);
    peer.engine.settle_incoming(session, 40, 49, DeliveryState::Accepted, true);
    let told: Vec<(u32, u32, Option<DeliveryState>)> = dispositions(&peer.heard())
        .into_iter()
        .map(|d| {
            assert_eq!((d.role, d.settled), (Role::Receiver, true));
            (d.first, d.last(), d.state)
        })
        .collect();
    assert_eq!(
        told,
        [
            (0, 19, Some(DeliveryState::Accepted)),
            (20, 20, Some(DeliveryState::Released)),
            (21, 49, Some(DeliveryState::Accepted))
        ]
    );
}

fn receiver(peer: &RawPeer) -> LinkId {
    peer.engine.link_named(Role::Receiver, "link").expect("it is attached")
}

#[test]
fn outcomes_are_told_before_the_link_they_belong_to_is_detached() {
    let (mut peer, link) = receiving_engine();
    let session = peer.engine.link(link).unwrap().session();
    peer.send(0, &RawPeer::transfer_frame(0));
    peer.engine.settle_incoming(session, 0, 0, DeliveryState::Accepted, true);
    peer.engine.detach(link, true, None);
    assert_eq!(peer.heard_names(), ["disposition", "detach"]);
    peer.engine.close(None);
    assert_eq!(peer.heard_names(), ["close"]);
}

#[test]
fn every_outcome_reaches_the_sender() {
    let error = AmqpError::new(condition::DECODE_ERROR, "no sense");
    let outcomes = [
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::Rejected { error: Some(Box::new(error)) },
        DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: Some(Map::new().with("x-opt-why", "because")),
        },
        DeliveryState::Received { section_number: 1, section_offset: 2 },
    ];
    for outcome in outcomes {
        let (mut pair, session, road) = sending_client(ConnectionConfig::new("server"));
        pair.client.outgoing(road.client).unwrap().send(77, false, 0, &[b"m"]);
        pair.run();
        let theirs = pair.server.link(road.server).unwrap().session();
        pair.server.settle_incoming(theirs, 0, 0, outcome.clone(), true);
        pair.run();
        let expected =
            Event::Disposition { session, first: 0, last: 0, settled: true, state: Some(outcome) };
        assert_eq!(pair.client_events()[0].event, expected);
        let mut resolved = Vec::new();
        pair.client.resolve_outgoing(session, 0, 0, true, &mut |link, token, id| {
            resolved.push((link, token, id));
        });
        assert_eq!(resolved, [(road.client, 77, 0)]);
        assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 0);
    }
}

#[test]
fn a_receiver_may_settle_without_a_word_about_the_outcome() {
    let mut peer = RawPeer::attached(Role::Receiver);
    let link = peer.engine.link_named(Role::Sender, "link").unwrap();
    peer.send(0, &RawPeer::credit_frame(1));
    peer.engine.outgoing(link).unwrap().send(0, false, 0, &[b"m"]);
    peer.events();
    let settled = Disposition {
        role: Role::Receiver,
        first: 0,
        last: None,
        settled: true,
        state: None,
        batchable: false,
    };
    peer.send(0, &settled);
    let events = peer.events();
    assert!(matches!(events[0].event, Event::Disposition { state: None, settled: true, .. }));
}

#[test]
fn a_range_reaches_over_links_and_is_clamped_to_what_was_sent() {
    let mut pair = Pair::opened();
    let (session, theirs) = pair.session();
    let a = pair.client_sends(session, "a");
    let b = pair.client_sends(session, "b");
    pair.grant(a, 10);
    pair.grant(b, 10);
    for token in 0..3 {
        pair.client.outgoing(a.client).unwrap().send(token, false, 0, &[b"a"]);
        pair.client.outgoing(b.client).unwrap().send(token + 10, false, 0, &[b"b"]);
    }
    pair.run();
    pair.server.settle_incoming(theirs, 0, 1_000_000, DeliveryState::Accepted, true);
    pair.run();
    let events = pair.client_events();
    let Event::Disposition { first, last, .. } = events[0].event else { panic!("{events:?}") };
    assert_eq!((first, last), (0, 5));
    let mut tokens = Vec::new();
    pair.client.resolve_outgoing(session, first, last, true, &mut |_, t, _| tokens.push(t));
    assert_eq!(tokens, [0, 10, 1, 11, 2, 12]);
}

#[test]
fn a_disposition_for_what_was_never_sent_is_ignored_and_a_backward_one_is_an_error() {
    let disposition = |first, last| Disposition {
        role: Role::Receiver,
        first,
        last: Some(last),
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: true,
    };
    let mut peer = RawPeer::attached(Role::Receiver);
    peer.send(0, &disposition(5, 9));
    assert!(peer.events().is_empty());
    peer.send(0, &disposition(9, 5));
    assert!(matches!(&peer.events()[0].event, Event::Ended { error: Some(error), .. }
        if error.condition == condition::INVALID_FIELD));
}

#[test]
fn in_mode_second_the_sender_settles_after_the_receiver_has_told_the_outcome() {
    let mut pair = Pair::opened();
    let (session, theirs) = pair.session();
    let request = AttachRequest {
        rcv_settle_mode: ReceiverSettleMode::Second,
        snd_settle_mode: SenderSettleMode::Unsettled,
        ..AttachRequest::sender("q", Source::default(), Target::at("q").into())
    };
    let road = pair.attach(session, request);
    pair.grant(road, 10);
    for token in 0..3 {
        pair.client.outgoing(road.client).unwrap().send(token, false, 0, &[b"m"]);
    }
    pair.run();
    pair.server_events();
    pair.server.settle_incoming(theirs, 0, 2, DeliveryState::Accepted, false);
    pair.run();
    let events = pair.client_events();
    let Event::Disposition { first, last, settled: false, .. } = events[0].event else {
        panic!("{events:?}")
    };
    let mut tokens = Vec::new();
    pair.client.resolve_outgoing(session, first, last, false, &mut |_, t, _| tokens.push(t));
    assert_eq!(tokens, [0, 1, 2]);
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 3, "they are not settled yet");

    pair.client.settle_outgoing(session, first, last, None);
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 0);
    pair.run();
    let expected = Event::IncomingSettled { session: theirs, first: 0, last: 2 };
    assert_eq!(pair.server_events()[0].event, expected);
}

#[test]
fn an_outcome_that_does_not_fit_the_peers_frames_says_less() {
    let long = "reason ".repeat(200);
    let outcomes = [
        DeliveryState::Rejected {
            error: Some(Box::new(AmqpError::new(condition::INTERNAL_ERROR, long.clone()))),
        },
        DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: false,
            message_annotations: Some(Map::new().with("x-opt-long", long)),
        },
    ];
    for outcome in outcomes {
        let client = ConnectionConfig { max_frame_size: 512, ..ConnectionConfig::new("client") };
        let mut pair = Pair::opened_with(client, ConnectionConfig::new("server"));
        let (session, theirs) = pair.session();
        let road = pair.client_sends(session, "q");
        pair.grant(road, 1);
        pair.client.outgoing(road.client).unwrap().send(0, false, 0, &[b"m"]);
        pair.run();
        pair.server.settle_incoming(theirs, 0, 0, outcome.clone(), true);
        assert!(pair.server.output().len() <= 512);
        pair.run();
        let events = pair.client_events();
        let Event::Disposition { state: Some(told), .. } = &events[0].event else {
            panic!("{events:?}")
        };
        assert_eq!(std::mem::discriminant(told), std::mem::discriminant(&outcome));
    }
}
