//! Link credit: grant, drain, echo, overrun (part 2, 2.6.7).

use mochila_engine::pair::{Pair, RawPeer, Road, Said, Seen};
use mochila_engine::{Event, LinkId, SessionId};
use mochila_wire::performative::{Detach, Flow, Role, Transfer};
use mochila_wire::{Map, Performative, condition};

fn receiving_client() -> (Pair, SessionId, Road) {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let road = pair.client_receives(session, "q");
    (pair, session, road)
}

fn receiving_engine() -> (RawPeer, LinkId) {
    let peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").expect("it is attached");
    (peer, link)
}

fn sending_engine() -> (RawPeer, LinkId) {
    let peer = RawPeer::attached(Role::Receiver);
    let link = peer.engine.link_named(Role::Sender, "link").expect("it is attached");
    (peer, link)
}

fn send(pair: &mut Pair, link: LinkId, count: usize) {
    for token in 0..count {
        pair.server.outgoing(link).expect("it is attached").send(token as u64, true, 0, &[b"m"]);
    }
}

fn transfers(events: &[Seen]) -> usize {
    events.iter().filter(|seen| matches!(seen.event, Event::Transfer(_))).count()
}

fn flows(heard: &[Said]) -> Vec<Flow> {
    let flows = heard.iter().filter_map(|said| match said.performative() {
        Some(Performative::Flow(flow)) => Some(flow),
        _ => None,
    });
    flows.collect()
}

fn detach(heard: &[Said]) -> Option<Detach> {
    heard.iter().find_map(|said| match said.performative() {
        Some(Performative::Detach(detach)) => Some(*detach),
        _ => None,
    })
}

#[test]
fn credit_is_announced_used_and_replenished() {
    let (mut pair, _, road) = receiving_client();
    assert_eq!(pair.server.outgoing(road.server).unwrap().capacity(), 0);
    pair.client.grant(road.client, 3);
    pair.run();
    assert_eq!(pair.server_events()[0].event, Event::Credit { link: road.server });
    send(&mut pair, road.server, 2);
    pair.run();
    assert_eq!(transfers(&pair.client_events()), 2);
    assert_eq!(pair.client.link(road.client).unwrap().credit(), 1);
    pair.client.grant(road.client, 10);
    pair.run();
    assert_eq!(pair.server.outgoing(road.server).unwrap().capacity(), 10);
}

#[test]
fn granting_what_is_there_already_says_nothing() {
    let (mut peer, link) = receiving_engine();
    peer.engine.grant(link, 10);
    assert_eq!(flows(&peer.heard()).len(), 1);
    peer.engine.grant(link, 10);
    assert!(peer.heard().is_empty());
}

#[test]
fn grants_between_two_outputs_make_one_flow() {
    let (mut peer, link) = receiving_engine();
    for credit in 1..=10 {
        peer.engine.grant(link, credit);
    }
    let flows = flows(&peer.heard());
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].link_credit, flows[0].delivery_count), (Some(10), Some(0)));
    assert_eq!((flows[0].handle, flows[0].drain, flows[0].echo), (Some(0), false, false));
}

#[test]
fn b4_a_sender_without_credit_is_detached_with_the_reason() {
    let (mut peer, link) = receiving_engine();
    peer.engine.grant(link, 2);
    peer.heard();
    for id in 0..3 {
        peer.send(0, &RawPeer::transfer_frame(id));
    }
    let detach = detach(&peer.heard()).unwrap();
    let error = detach.error.unwrap();
    assert!(detach.closed);
    assert_eq!(error.condition, condition::TRANSFER_LIMIT_EXCEEDED);
    assert!(error.description.unwrap().contains("'link'"));
    let events = peer.events();
    assert_eq!(transfers(&events), 2);
    assert!(matches!(&events[2].event, Event::Detached { link: gone, .. } if *gone == link));

    for id in 3..100 {
        peer.send(0, &RawPeer::transfer_frame(id));
    }
    assert!(peer.events().is_empty(), "what follows is dropped, the session goes on");
}

#[test]
fn a_sender_may_not_send_before_its_attach_was_answered() {
    let mut peer = RawPeer::begun();
    peer.send(0, &RawPeer::attach_frame(0, "eager", Role::Sender));
    peer.send(0, &RawPeer::transfer_frame(0));
    let heard = peer.heard();
    assert_eq!(heard.iter().map(Said::name).collect::<Vec<_>>(), ["attach", "detach"]);
    assert_eq!(
        detach(&heard).unwrap().error.unwrap().condition,
        condition::TRANSFER_LIMIT_EXCEEDED
    );
}

#[test]
fn b7_b19_a_drain_of_an_empty_source_is_answered_at_once() {
    let (mut pair, _, road) = receiving_client();
    pair.client.grant_drain(road.client, 100);
    pair.run();
    assert_eq!(pair.server_events()[0].event, Event::Credit { link: road.server });
    assert!(pair.server.link(road.server).unwrap().is_draining());
    assert!(pair.client.link(road.client).unwrap().is_draining());
    pair.server.drained(road.server);
    pair.run();
    assert_eq!(pair.client_events()[0].event, Event::PeerFlow { link: road.client });
    let link = pair.client.link(road.client).unwrap();
    assert_eq!((link.credit(), link.delivery_count(), link.is_draining()), (0, 100, false));
    assert!(!pair.server.link(road.server).unwrap().is_draining());
}

#[test]
fn b7_the_answer_to_a_drain_advances_the_delivery_count_on_the_wire() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &Flow { drain: true, echo: true, ..RawPeer::credit_frame(10) });
    assert!(peer.heard().is_empty(), "the application has to say whether there is something");
    peer.engine.outgoing(link).unwrap().send(0, true, 0, &[b"m"]);
    peer.engine.drained(link);
    let heard = peer.heard();
    assert_eq!(heard.iter().map(Said::name).collect::<Vec<_>>(), ["transfer", "flow"]);
    let flow = &flows(&heard)[0];
    assert_eq!((flow.delivery_count, flow.link_credit, flow.drain), (Some(10), Some(0), true));
    peer.engine.drained(link);
    assert!(peer.heard().is_empty(), "it is answered once");
}

#[test]
fn a_drain_without_any_credit_is_answered_too() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &Flow { drain: true, ..RawPeer::credit_frame(0) });
    assert_eq!(peer.events()[0].event, Event::Credit { link });
    peer.engine.drained(link);
    assert_eq!(flows(&peer.heard()).len(), 1);
}

#[test]
fn a_drain_that_ends_with_the_last_credit_needs_no_word_of_the_application() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &Flow { drain: true, ..RawPeer::credit_frame(2) });
    let mut outgoing = peer.engine.outgoing(link).unwrap();
    outgoing.send(0, true, 0, &[b"a"]);
    outgoing.send(1, true, 0, &[b"b"]);
    let heard = peer.heard();
    assert_eq!(heard.iter().map(Said::name).collect::<Vec<_>>(), ["transfer", "transfer", "flow"]);
    assert_eq!(flows(&heard)[0].link_credit, Some(0));
}

#[test]
fn b8_credit_works_again_after_a_drain() {
    let (mut pair, _, road) = receiving_client();
    for round in 0..5 {
        pair.client.grant_drain(road.client, 10);
        pair.run();
        send(&mut pair, road.server, 3);
        pair.server.drained(road.server);
        pair.run();
        assert_eq!(transfers(&pair.client_events()), 3, "round {round}");

        // Much later, credit without drain.
        pair.advance(50_000);
        pair.client.grant(road.client, 4);
        pair.run();
        let link = pair.server.link(road.server).unwrap();
        assert_eq!((link.credit(), link.drain()), (4, false), "round {round}");
        send(&mut pair, road.server, 4);
        pair.run();
        assert_eq!(transfers(&pair.client_events()), 4, "round {round}");
    }
}

#[test]
fn nothing_is_drained_where_nobody_asked_for_it() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &RawPeer::credit_frame(10));
    peer.engine.drained(link);
    assert!(peer.heard().is_empty());
    assert_eq!(peer.engine.link(link).unwrap().credit(), 10);
}

#[test]
fn b10_credit_may_be_lowered_at_any_time() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &RawPeer::credit_frame(10));
    peer.engine.outgoing(link).unwrap().send(0, true, 0, &[b"m"]);
    peer.send(0, &Flow { drain: false, ..RawPeer::credit_frame(0) });
    assert_eq!(peer.engine.outgoing(link).unwrap().capacity(), 0);
    let state = peer.engine.link(link).unwrap();
    assert_eq!((state.credit(), state.delivery_count()), (0, 1), "it is no drain");
    assert!(!state.is_draining());
    peer.heard();
    peer.engine.drained(link);
    assert!(peer.heard().is_empty());
}

#[test]
fn b10_messages_in_flight_when_we_lower_credit_are_taken_and_no_more() {
    let (mut peer, link) = receiving_engine();
    peer.engine.grant(link, 5);
    peer.heard();
    peer.send(0, &RawPeer::transfer_frame(0));
    peer.engine.grant(link, 0);
    assert_eq!(flows(&peer.heard())[0].link_credit, Some(0));
    for id in 1..6 {
        peer.send(0, &RawPeer::transfer_frame(id));
    }
    assert_eq!(transfers(&peer.events()), 5);
    assert!(detach(&peer.heard()).is_some());
}

#[test]
fn an_echo_is_answered_with_the_links_state() {
    let (mut peer, link) = sending_engine();
    peer.engine.set_available(link, 42);
    peer.send(0, &Flow { echo: true, ..RawPeer::credit_frame(10) });
    let flow = &flows(&peer.heard())[0];
    assert_eq!((flow.handle, flow.available), (Some(0), Some(42)));
    assert_eq!((flow.link_credit, flow.delivery_count), (Some(10), Some(0)));
    assert!(!flow.echo, "an echo is not echoed");
}

#[test]
fn an_application_can_ask_for_an_echo() {
    let (mut pair, _, road) = receiving_client();
    pair.grant(road, 10);
    pair.server.set_available(road.server, 7);
    pair.client.echo(road.client);
    pair.run();
    assert_eq!(pair.client_events()[0].event, Event::PeerFlow { link: road.client });
    assert_eq!(pair.client.link(road.client).unwrap().available(), 7);
}

#[test]
fn a_flow_that_changes_nothing_wakes_nobody() {
    let (mut peer, _) = sending_engine();
    peer.send(0, &RawPeer::credit_frame(10));
    assert_eq!(peer.events().len(), 1);
    peer.send(0, &RawPeer::credit_frame(10));
    assert!(peer.events().is_empty());
}

#[test]
fn unlimited_credit_is_unlimited() {
    let (mut peer, link) = sending_engine();
    peer.send(0, &RawPeer::credit_frame(u32::MAX));
    let mut outgoing = peer.engine.outgoing(link).unwrap();
    outgoing.send(0, true, 0, &[b"m"]);
    peer.send(0, &RawPeer::credit_frame(u32::MAX));
    assert_eq!(peer.engine.link(link).unwrap().credit(), u32::MAX - 1);
}

#[test]
fn a_message_of_many_frames_takes_one_credit() {
    let (mut peer, link) = receiving_engine();
    peer.engine.grant(link, 2);
    peer.heard();
    for _ in 0..3 {
        peer.send_with(0, &Transfer { more: true, ..RawPeer::transfer_frame(0) }, b"part");
    }
    peer.send(0, &Transfer::default());
    assert_eq!(peer.engine.link(link).unwrap().credit(), 1);
    peer.send(0, &RawPeer::transfer_frame(1));
    assert_eq!(peer.engine.link(link).unwrap().credit(), 0);
    assert!(detach(&peer.heard()).is_none());
}

#[test]
fn a_transfer_on_a_link_on_which_we_send_detaches_it() {
    let (mut peer, _) = sending_engine();
    peer.send(0, &RawPeer::transfer_frame(0));
    let error = detach(&peer.heard()).unwrap().error.unwrap();
    assert_eq!(error.condition, condition::NOT_ALLOWED);
}

#[test]
fn no_flow_goes_out_for_a_link_that_was_not_answered_yet() {
    let mut peer = RawPeer::begun();
    peer.send(0, &RawPeer::attach_frame(0, "slow", Role::Sender));
    let events = peer.events();
    let Event::Attached { link, peer: attach } = &events[0].event else { panic!("{events:?}") };
    peer.engine.grant(*link, 5);
    peer.send(0, &Flow { handle: Some(0), echo: true, ..Flow::default() });
    assert!(peer.heard().is_empty());
    peer.engine.answer_attach(*link, mochila_engine::AttachAnswer::echo(attach));
    assert_eq!(peer.heard_names(), ["attach", "flow"]);
}

#[test]
fn what_a_flow_says_besides_the_state_of_its_link_is_passed_on() {
    let (mut peer, link) = sending_engine();
    let properties = Map::new().with("txn-id", "t");
    let flow = Flow { properties: Some(properties.clone()), ..RawPeer::credit_frame(1) };
    peer.send(0, &flow);
    let told = peer.events().into_iter().map(|seen| seen.event);
    let properties = Box::new(properties);
    let expected = [Event::FlowProperties { link, properties }, Event::Credit { link }];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_told_of_a_link_is_a_flow_ahead_of_what_is_sent_next() {
    let (mut pair, _, road) = receiving_client();
    pair.client.grant(road.client, 5);
    pair.run();
    pair.client_events();
    let properties = Map::new().with("lost-groups", "x");
    pair.server.tell(road.server, properties.clone());
    pair.server.outgoing(road.server).unwrap().send(1, true, 0, &[b"later"]);
    pair.run();
    let events: Vec<Event> = pair.client_events().into_iter().map(|seen| seen.event).collect();
    let told = Event::FlowProperties { link: road.client, properties: Box::new(properties) };
    assert_eq!(events[0], told);
    assert!(matches!(events.last(), Some(Event::Transfer(_))), "{events:?}");
    assert_eq!(pair.client.link(road.client).unwrap().credit(), 4);
    // What does not fit a frame is left out.
    pair.server.tell(road.server, Map::new().with("much", "x".repeat(100_000)));
    pair.run();
    let events: Vec<Event> = pair.client_events().into_iter().map(|seen| seen.event).collect();
    assert_eq!(events, [Event::PeerFlow { link: road.client }]);
}
