//! Links: attach, detach, names and handles (part 2, 2.6).

use mochila_engine::pair::{Pair, RawPeer, Said, Seen};
use mochila_engine::{AttachAnswer, AttachRequest, ConnectionConfig, Error, Event, LinkId};
use mochila_wire::performative::{
    Attach, Begin, Detach, Flow, Open, ReceiverSettleMode, Role, SenderSettleMode, Transfer,
};
use mochila_wire::{AmqpError, Map, Performative, Source, Symbol, Target, condition, frame};

fn sender(name: &str) -> AttachRequest {
    AttachRequest::sender(name, Source::default(), Target::at(name).into())
}

fn receiver(name: &str) -> AttachRequest {
    AttachRequest::receiver(name, Source::at(name), Target::default().into())
}

fn detached(events: &[Seen]) -> Vec<(LinkId, bool, Option<Symbol>)> {
    let detached = events.iter().filter_map(|seen| match &seen.event {
        Event::Detached { link, closed, error } => {
            Some((*link, *closed, error.as_ref().map(|error| error.condition.clone())))
        }
        _ => None,
    });
    detached.collect()
}

fn ended(events: &[Seen]) -> Option<Symbol> {
    events.iter().find_map(|seen| match &seen.event {
        Event::Ended { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}

fn asked(events: &[Seen]) -> Vec<(LinkId, &Attach)> {
    let asked = events.iter().filter_map(|seen| match &seen.event {
        Event::Attached { link, peer } => Some((*link, &**peer)),
        _ => None,
    });
    asked.collect()
}

fn detaches(heard: &[Said]) -> Vec<Detach> {
    let detaches = heard.iter().filter_map(|said| match said.performative() {
        Some(Performative::Detach(detach)) => Some(*detach),
        _ => None,
    });
    detaches.collect()
}

#[test]
fn an_attach_is_answered_with_what_is_really_there() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let request = AttachRequest {
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: ReceiverSettleMode::Second,
        desired_capabilities: vec!["queue".into()],
        properties: Some(Map::new().with("k", "v")),
        initial_delivery_count: 7,
        max_message_size: 1_000,
        ..sender("up")
    };
    let link = pair.client.attach(session, request).unwrap();
    assert!(!pair.client.link(link).unwrap().is_attached());
    pair.run();

    let events = pair.server_events();
    let (theirs, peer) = asked(&events)[0];
    assert_eq!((peer.name.as_str(), peer.role), ("up", Role::Sender));
    assert_eq!(peer.initial_delivery_count, Some(7));
    assert_eq!(peer.desired_capabilities, ["queue"]);
    assert_eq!(peer.properties, Some(Map::new().with("k", "v")));
    assert_eq!(pair.server.link(theirs).unwrap().delivery_count(), 7);
    assert_eq!(pair.server.link(theirs).unwrap().peer_max_message_size(), Some(1_000));

    let mut answer = AttachAnswer::echo(peer);
    answer.rcv_settle_mode = ReceiverSettleMode::First;
    answer.target = Some(Target::at("made-for-you").into());
    answer.offered_capabilities = vec!["queue".into()];
    answer.max_message_size = 9;
    pair.server.answer_attach(theirs, answer);
    pair.run();

    let events = pair.client_events();
    let Event::AttachConfirmed { link: confirmed, peer } = &events[0].event else {
        panic!("{events:?}")
    };
    assert_eq!(*confirmed, link);
    assert_eq!(peer.offered_capabilities, ["queue"]);
    let ours = pair.client.link(link).unwrap();
    assert!(ours.is_attached());
    assert_eq!(ours.rcv_settle_mode(), ReceiverSettleMode::First);
    assert_eq!(ours.snd_settle_mode(), SenderSettleMode::Unsettled);
    assert_eq!(ours.peer_max_message_size(), Some(9));
    let target = ours.target().and_then(|target| target.target()).unwrap();
    assert_eq!(target.address.as_deref(), Some("made-for-you"));
    assert_eq!((ours.role(), ours.session(), ours.name()), (Role::Sender, session, "up"));
}

#[test]
fn a_link_may_be_attached_before_its_session_was_answered() {
    let mut pair = Pair::opened();
    let session = pair.client.begin().unwrap();
    let link = pair.client.attach(session, receiver("q")).unwrap();
    pair.client.grant(link, 5);
    pair.run();
    let events = pair.server_events();
    let (theirs, peer) = asked(&events)[0];
    pair.server.answer_attach(theirs, AttachAnswer::echo(peer));
    assert_eq!(pair.server.outgoing(theirs).unwrap().capacity(), 5);
}

#[test]
fn credit_granted_before_the_attach_was_answered_counts_from_the_senders_count() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let link = pair.client.attach(session, receiver("q")).unwrap();
    pair.client.grant(link, 5);
    pair.run();
    let events = pair.server_events();
    let (theirs, peer) = asked(&events)[0];
    let answer = AttachAnswer { initial_delivery_count: u32::MAX, ..AttachAnswer::echo(peer) };
    pair.server.answer_attach(theirs, answer);
    let mut outgoing = pair.server.outgoing(theirs).unwrap();
    assert_eq!(outgoing.capacity(), 5);
    outgoing.send(0, true, 0, &[b"m"]);
    pair.run();
    let link = pair.client.link(link).unwrap();
    assert_eq!((link.credit(), link.delivery_count()), (4, 0));
}

#[test]
fn a_refused_attach_has_a_null_terminus_and_is_detached_with_the_reason() {
    for (role, request) in [(Role::Sender, sender("q")), (Role::Receiver, receiver("q"))] {
        let mut pair = Pair::opened();
        let (session, _) = pair.session();
        let link = pair.client.attach(session, request).unwrap();
        pair.run();
        let events = pair.server_events();
        let (theirs, _) = asked(&events)[0];
        let error = AmqpError::new(condition::NOT_FOUND, "there is no queue 'q'");
        pair.server.refuse_attach(theirs, error);
        pair.run();

        let events = pair.client_events();
        let Event::AttachConfirmed { peer, .. } = &events[0].event else { panic!("{events:?}") };
        match role {
            Role::Sender => assert_eq!((&peer.target, peer.source.is_some()), (&None, true)),
            Role::Receiver => assert_eq!((&peer.source, peer.target.is_some()), (&None, true)),
        }
        assert_eq!(detached(&events), [(link, true, Some(condition::NOT_FOUND))]);
        assert!(pair.server_events().is_empty(), "who refused needs no telling");
        pair.client_sends(session, "q");
        assert_eq!(pair.server.links().count(), 1);
    }
}

#[test]
fn a_detach_is_answered_in_kind() {
    for closed in [true, false] {
        let mut pair = Pair::opened();
        let (session, _) = pair.session();
        let road = pair.client_sends(session, "q");
        pair.client.detach(road.client, closed, None);
        pair.run();
        assert_eq!(detached(&pair.server_events()), [(road.server, closed, None)]);
        assert_eq!(detached(&pair.client_events()), [(road.client, closed, None)]);
        let again = pair.client_sends(session, "q");
        assert_ne!(again.client, road.client, "a stale id does not find the new link");
        assert!(pair.client.link(road.client).is_none());
    }
}

#[test]
fn a_detach_carries_its_error_and_both_sides_may_detach_at_once() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    let error = AmqpError::new(condition::DETACH_FORCED, "the queue was deleted");
    pair.server.detach(road.server, true, Some(error));
    pair.client.detach(road.client, true, None);
    pair.run();
    let told = Some(condition::DETACH_FORCED);
    assert_eq!(detached(&pair.client_events()), [(road.client, true, told)]);
    assert_eq!(detached(&pair.server_events()), [(road.server, true, None)]);
}

#[test]
fn a_link_may_be_detached_before_it_was_answered() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let link = pair.client.attach(session, sender("q")).unwrap();
    pair.client.detach(link, true, None);
    pair.run();
    let events = pair.server_events();
    let (theirs, peer) = asked(&events)[0];
    assert_eq!(detached(&events), [(theirs, true, None)]);
    assert!(pair.client_events().is_empty(), "the server's application has not answered");
    pair.server.answer_attach(theirs, AttachAnswer::echo(peer));
    pair.run();
    assert_eq!(detached(&pair.client_events()), [(link, true, None)]);
    pair.client_sends(session, "q");
    assert_eq!((pair.client.links().count(), pair.server.links().count()), (1, 1));
}

#[test]
fn an_attach_that_was_taken_back_may_still_be_refused() {
    let mut peer = RawPeer::begun();
    peer.send(0, &RawPeer::attach_frame(0, "q", Role::Sender));
    peer.send(0, &Detach { handle: 0, closed: true, error: None });
    let events = peer.events();
    let (link, _) = asked(&events)[0];
    peer.engine.refuse_attach(link, condition::NOT_FOUND.into());
    assert_eq!(peer.heard_names(), ["attach", "detach"]);
    peer.attach(0, "q", Role::Sender);
}

#[test]
fn b6_a_handle_in_use_ends_the_session() {
    let mut peer = RawPeer::attached(Role::Sender);
    peer.send(0, &RawPeer::attach_frame(0, "other", Role::Sender));
    let heard = peer.heard();
    let Some(Performative::End(end)) = heard[0].performative() else { panic!("{heard:?}") };
    let error = end.error.unwrap();
    assert_eq!(error.condition, condition::HANDLE_IN_USE);
    let text = error.description.unwrap();
    assert!(text.contains("'other'") && text.contains("'link'"), "{text}");
    assert_eq!(ended(&peer.events()), Some(condition::HANDLE_IN_USE));
}

#[test]
fn a_handle_may_be_used_again_after_detach() {
    let mut peer = RawPeer::attached(Role::Sender);
    peer.send(0, &Detach { handle: 0, closed: true, error: None });
    peer.attach(0, "other", Role::Receiver);
    assert!(ended(&peer.events()).is_none());
}

#[test]
fn frames_for_an_unattached_handle_end_the_session() {
    let mut bytes = [Vec::new(), Vec::new(), Vec::new()];
    frame::write(&mut bytes[0], 0, &Transfer { handle: 9, ..RawPeer::transfer_frame(0) });
    frame::write(&mut bytes[1], 0, &Flow { handle: Some(9), ..RawPeer::credit_frame(1) });
    frame::write(&mut bytes[2], 0, &Detach { handle: 9, closed: true, error: None });
    for bytes in bytes {
        let mut peer = RawPeer::attached(Role::Sender);
        peer.send_bytes(&bytes);
        assert_eq!(ended(&peer.events()), Some(condition::UNATTACHED_HANDLE));
        assert_eq!(peer.heard_names(), ["end"]);
    }
}

#[test]
fn n12_a_sender_and_a_receiver_may_share_a_name_on_one_session() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let up = pair.client_sends(session, "same");
    let down = pair.client_receives(session, "same");
    pair.grant(up, 1);
    pair.grant(down, 1);
    assert_eq!(pair.client.outgoing(up.client).unwrap().capacity(), 1);
    assert_eq!(pair.server.outgoing(down.server).unwrap().capacity(), 1);
    pair.client.detach(up.client, true, None);
    pair.run();
    assert!(pair.client.link(down.client).unwrap().is_attached());
    assert_eq!(pair.server.link_named(Role::Sender, "same"), Some(down.server));
    assert_eq!(pair.server.link_named(Role::Receiver, "same"), None);
}

#[test]
fn an_application_cannot_attach_a_name_twice() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    pair.client_sends(session, "q");
    let error = pair.client.attach(session, sender("q")).unwrap_err();
    assert_eq!(error, Error::LinkNameInUse { name: "q".into() });
}

#[test]
fn a_link_attached_again_on_the_same_connection_is_stolen() {
    for other_session in [true, false] {
        let mut peer = RawPeer::attached(Role::Sender);
        let old = peer.engine.link_named(Role::Receiver, "link").unwrap();
        let channel = u16::from(other_session);
        if other_session {
            peer.send(1, &Begin::new(0, 10, 10));
            peer.heard();
        }
        peer.send(channel, &RawPeer::attach_frame(5, "link", Role::Sender));
        let events = peer.events();
        assert_eq!(detached(&events), [(old, true, Some(condition::STOLEN))]);
        let (new, attach) = asked(&events)[0];
        peer.engine.answer_attach(new, AttachAnswer::echo(attach));
        let heard = peer.heard();
        let detach = &detaches(&heard)[0];
        assert_eq!(detach.error.as_ref().unwrap().condition, condition::STOLEN);
        assert!(detach.closed);
        assert_eq!(peer.engine.link_named(Role::Receiver, "link"), Some(new));

        // What is under way on the old link is dropped, and the peer's detach ends it silently.
        peer.send_with(0, &RawPeer::transfer_frame(0), b"late");
        peer.send(0, &Detach { handle: 0, closed: true, error: None });
        assert!(peer.events().is_empty());
        assert_eq!(peer.engine.links().count(), 2, "the old one can be looked at");
        peer.send_bytes(&[0, 0, 0, 8, 2, 0, 0, 0]);
        assert_eq!(peer.engine.links().count(), 1);
    }
}

#[test]
fn frames_that_cross_our_detach_are_ignored_but_counted() {
    let mut peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").unwrap();
    let other = peer.attach(1, "other", Role::Sender);
    peer.engine.grant(link, 10);
    peer.engine.grant(other, 10);
    peer.engine.detach(link, true, None);
    peer.heard();
    peer.send(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) });
    peer.send(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) });
    peer.send(0, &Transfer::default());
    peer.send(0, &RawPeer::transfer_frame(1));
    peer.send(0, &RawPeer::credit_frame(1));
    assert!(peer.events().is_empty());
    peer.send(0, &Transfer { handle: 1, ..RawPeer::transfer_frame(2) });
    let events = peer.events();
    assert!(matches!(&events[0].event, Event::Transfer(t) if t.delivery_id == 2), "{events:?}");
}

#[test]
fn a_link_that_was_detached_keeps_its_unsettled_deliveries_for_the_application_to_take() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    let other = pair.client_sends(session, "other");
    pair.grant(road, 10);
    pair.grant(other, 10);
    for token in 0..3 {
        pair.client.outgoing(road.client).unwrap().send(100 + token, false, 0, &[b"m"]);
        pair.client.outgoing(other.client).unwrap().send(200 + token, false, 0, &[b"m"]);
    }
    assert_eq!(pair.client.link(road.client).unwrap().unsettled(), 3);
    pair.client.detach(road.client, false, None);
    pair.run_once();
    assert_eq!(detached(&pair.client_events()), [(road.client, false, None)]);
    let unsettled: Vec<(u64, u32)> = pair.client.unsettled(road.client).collect();
    assert_eq!(unsettled, [(100, 0), (101, 2), (102, 4)]);

    pair.advance(40_000);
    assert_eq!(pair.client.unsettled(road.client).count(), 0);
    assert_eq!(pair.client.unsettled(other.client).count(), 3);
    let mut tokens = Vec::new();
    pair.client.resolve_outgoing(session, 0, 5, true, &mut |_, token, _| tokens.push(token));
    assert_eq!(tokens, [200, 201, 202]);
    assert_eq!(pair.client.link(other.client).unwrap().unsettled(), 0);
}

#[test]
fn the_unsettled_map_and_resumed_deliveries_are_carried() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let unsettled = Map::new().with("not-really-a-tag", true);
    let request = AttachRequest {
        unsettled: Some(unsettled.clone()),
        incomplete_unsettled: true,
        ..sender("q")
    };
    let link = pair.client.attach(session, request).unwrap();
    pair.run();
    let events = pair.server_events();
    let (theirs, peer) = asked(&events)[0];
    assert_eq!((&peer.unsettled, peer.incomplete_unsettled), (&Some(unsettled.clone()), true));
    let answer = AttachAnswer { unsettled: Some(unsettled), ..AttachAnswer::echo(peer) };
    pair.server.answer_attach(theirs, answer);
    pair.server.grant(theirs, 1);
    pair.run();
    pair.client_events();
    let delivery = mochila_engine::Delivery {
        tag: Some(b"old"),
        resume: true,
        ..mochila_engine::Delivery::default()
    };
    pair.client.outgoing(link).unwrap().deliver(&delivery, &[b"rest"]);
    pair.run();
    let events = pair.server_events();
    let Event::Transfer(transfer) = &events[0].event else { panic!("{events:?}") };
    assert!(transfer.resume);
    assert_eq!(events[0].tag, b"old");
}

#[test]
fn an_attach_that_does_not_fit_the_peers_frames_closes_the_connection() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { max_frame_size: 512, ..Open::new("small") });
    peer.send(0, &Begin::new(0, 10, 10));
    peer.send(0, &RawPeer::attach_frame(0, "link", Role::Sender));
    peer.heard();
    let events = peer.events();
    let (link, attach) = asked(&events)[0];
    let mut answer = AttachAnswer::echo(attach);
    answer.properties = Some(Map::new().with("large", "x".repeat(600)));
    peer.engine.answer_attach(link, answer);
    let heard = peer.heard();
    let Some(Performative::Close(close)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!(close.error.unwrap().condition, condition::FRAME_SIZE_TOO_SMALL);
}

#[test]
fn churning_links_leave_nothing_behind() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    for round in 0..500 {
        let road = match round % 2 {
            0 => pair.client_sends(session, "q"),
            _ => pair.client_receives(session, "q"),
        };
        pair.client.detach(road.client, true, None);
        pair.run();
    }
    pair.run();
    pair.client_receives(session, "last");
    assert_eq!((pair.client.links().count(), pair.server.links().count()), (1, 1));
}
