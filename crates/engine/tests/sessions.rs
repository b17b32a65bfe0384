//! Sessions, their windows and their ids (part 2, 2.5).

use mochila_engine::pair::{Pair, RawPeer, Seen};
use mochila_engine::{AttachRequest, ConnectionConfig, Error, Event};
use mochila_wire::performative::{Attach, Begin, End, Flow, Open, Role, Transfer};
use mochila_wire::{
    AmqpError, DeliveryState, Performative, Source, Symbol, Target, condition, frame,
};

fn windows(incoming_window: u32, initial_outgoing_id: u32) -> ConnectionConfig {
    ConnectionConfig { incoming_window, initial_outgoing_id, ..ConnectionConfig::new("peer") }
}

fn ended(events: &[Seen]) -> Option<Symbol> {
    events.iter().find_map(|seen| match &seen.event {
        Event::Ended { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}

fn closed(events: &[Seen]) -> Option<Symbol> {
    events.iter().find_map(|seen| match &seen.event {
        Event::Closed { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}

fn transfers(events: &[Seen]) -> usize {
    events.iter().filter(|seen| matches!(seen.event, Event::Transfer(_))).count()
}

#[test]
fn a_session_is_begun_answered_and_ended() {
    let mut pair = Pair::opened();
    let session = pair.client.begin().unwrap();
    pair.run();
    assert_eq!(pair.client_events()[0].event, Event::Begun { session });
    let events = pair.server_events();
    let Event::Begun { session: theirs } = events[0].event else { panic!("{events:?}") };

    pair.client.end(session, None);
    pair.run();
    assert_eq!(pair.server_events()[0].event, Event::Ended { session: theirs, error: None });
    assert_eq!(pair.client_events()[0].event, Event::Ended { session, error: None });
    pair.client.begin().unwrap();
    pair.run();
    assert_eq!((pair.client.session_count(), pair.server.session_count()), (1, 1));
}

#[test]
fn both_sides_may_end_a_session_at_the_same_time() {
    let mut pair = Pair::opened();
    let (ours, theirs) = pair.session();
    pair.client.end(ours, None);
    pair.server.end(theirs, None);
    pair.run();
    assert_eq!(pair.client_events().len(), 1);
    assert_eq!(pair.server_events().len(), 1);
    pair.session();
}

#[test]
fn a_session_may_be_ended_before_it_was_answered() {
    let mut pair = Pair::opened();
    let session = pair.client.begin().unwrap();
    pair.client.end(session, None);
    pair.run();
    let events = pair.client_events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].event, Event::Ended { session, error: None });
}

#[test]
fn a_server_may_begin_a_session_too() {
    let mut pair = Pair::opened();
    let session = pair.server.begin().unwrap();
    pair.run();
    assert_eq!(pair.server_events()[0].event, Event::Begun { session });
    assert!(matches!(pair.client_events()[0].event, Event::Begun { .. }));
}

#[test]
fn an_end_carries_its_error() {
    let mut pair = Pair::opened();
    let (_, theirs) = pair.session();
    pair.server.end(theirs, Some(AmqpError::new(condition::RESOURCE_DELETED, "gone")));
    pair.run();
    assert_eq!(ended(&pair.client_events()), Some(condition::RESOURCE_DELETED));
}

#[test]
fn no_more_sessions_than_channels_that_both_allow() {
    let mut pair = Pair::opened_with(
        ConnectionConfig::new("client"),
        ConnectionConfig { channel_max: 2, ..ConnectionConfig::new("server") },
    );
    for _ in 0..3 {
        pair.client.begin().unwrap();
    }
    assert_eq!(pair.client.begin(), Err(Error::ChannelsExhausted { channel_max: 2 }));
    pair.run();
    assert_eq!(pair.server.session_count(), 3);
}

#[test]
fn a_channel_above_channel_max_closes_the_connection() {
    let config = ConnectionConfig { channel_max: 9, ..ConnectionConfig::new("server") };
    let mut peer = RawPeer::opened_with(config);
    peer.send(10, &Begin::new(0, 1, 1));
    assert_eq!(peer.heard_names(), ["close"]);
    assert_eq!(closed(&peer.events()), Some(condition::FRAMING_ERROR));
}

#[test]
fn any_channel_up_to_channel_max_may_be_used() {
    let mut peer = RawPeer::opened();
    peer.send(1023, &Begin::new(0, 1, 1));
    let heard = peer.heard();
    let Some(Performative::Begin(begin)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!(begin.remote_channel, Some(1023));
}

#[test]
fn a_peer_that_takes_one_channel_cannot_begin_two_sessions() {
    let mut peer = RawPeer::new(ConnectionConfig::new("server"));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { channel_max: 0, ..Open::new("raw") });
    peer.send(0, &Begin::new(0, 1, 1));
    peer.send(1, &Begin::new(0, 1, 1));
    assert_eq!(closed(&peer.events()), Some(condition::RESOURCE_LIMIT_EXCEEDED));
}

#[test]
fn a_channel_in_use_cannot_be_begun_again() {
    let mut peer = RawPeer::begun();
    peer.send(0, &Begin::new(0, 1, 1));
    assert_eq!(closed(&peer.events()), Some(condition::ILLEGAL_STATE));
}

#[test]
fn a_begin_that_answers_nothing_closes_the_connection() {
    let mut peer = RawPeer::opened();
    peer.send(0, &Begin { remote_channel: Some(3), ..Begin::new(0, 1, 1) });
    assert_eq!(closed(&peer.events()), Some(condition::INVALID_FIELD));
}

#[test]
fn frames_on_a_channel_without_session_close_the_connection() {
    let mut peer = RawPeer::opened();
    peer.send(5, &RawPeer::credit_frame(1));
    let heard = peer.heard();
    let Some(Performative::Close(close)) = heard[0].performative() else { panic!("{heard:?}") };
    let error = close.error.unwrap();
    assert_eq!(error.condition, condition::ILLEGAL_STATE);
    assert!(error.description.unwrap().contains("channel 5"));
}

#[test]
fn frames_that_cross_our_end_are_ignored() {
    let mut peer = RawPeer::begun();
    let session = peer.engine.begin().unwrap();
    peer.send(1, &Begin { remote_channel: Some(1), ..Begin::new(0, 10, 10) });
    peer.heard();
    peer.events();
    peer.engine.end(session, None);
    peer.send(1, &RawPeer::attach_frame(0, "late", Role::Sender));
    peer.send_with(1, &RawPeer::transfer_frame(0), b"late");
    peer.send(1, &RawPeer::credit_frame(1));
    assert_eq!(peer.heard_names(), ["end"]);
    assert!(peer.events().is_empty());
    peer.send(1, &End::default());
    assert_eq!(peer.events()[0].event, Event::Ended { session, error: None });
}

#[test]
fn b1_ids_may_start_anywhere_and_wrap_around() {
    for start in [0, 1, 0x7fff_fffe, u32::MAX - 3, u32::MAX] {
        let mut pair = Pair::opened_with(windows(16, start), windows(16, start.wrapping_add(5)));
        let (session, _) = pair.session();
        let up = pair.client_sends(session, "up");
        let down = pair.client_receives(session, "down");
        pair.grant(up, 1_000);
        pair.grant(down, 1_000);
        let mut received = (0, 0);
        let mut settled = 0;
        for token in 0..200 {
            for (end, link) in [(&mut pair.client, up.client), (&mut pair.server, down.server)] {
                let mut outgoing = end.outgoing(link).unwrap();
                assert!(outgoing.capacity() > 0, "start {start}, message {token}");
                outgoing.send(token, false, 0, &[b"message"]);
            }
            pair.run();
            for seen in pair.server_events() {
                if let Event::Transfer(transfer) = seen.event {
                    received.0 += 1;
                    let id = transfer.delivery_id;
                    let state = DeliveryState::Accepted;
                    pair.server.settle_incoming(transfer.session, id, id, state, true);
                }
            }
            received.1 += transfers(&pair.client_events());
            pair.run();
            for seen in pair.client_events() {
                if let Event::Disposition { session, first, last, .. } = seen.event {
                    pair.client.resolve_outgoing(session, first, last, true, &mut |_, t, _| {
                        assert_eq!(t, settled);
                        settled += 1;
                    });
                }
            }
        }
        assert_eq!((received, settled), ((200, 200), 200), "start {start}");
    }
}

#[test]
fn b1_a_flow_sent_before_our_begin_was_seen_opens_the_window_all_the_same() {
    for guess in [None, Some(0), Some(5)] {
        let mut peer = RawPeer::opened_with(windows(100, 4_294_967_292));
        let mut bytes = Vec::new();
        frame::write(&mut bytes, 0, &Begin::new(0, 2048, 2048));
        frame::write(&mut bytes, 0, &RawPeer::attach_frame(0, "link", Role::Receiver));
        let flow = Flow {
            next_incoming_id: guess,
            incoming_window: 2048,
            delivery_count: None,
            ..RawPeer::credit_frame(10)
        };
        frame::write(&mut bytes, 0, &flow);
        peer.send_bytes(&bytes);
        let events = peer.events();
        let (link, attach) = events
            .iter()
            .find_map(|seen| match &seen.event {
                Event::Attached { link, peer } => Some((*link, peer)),
                _ => None,
            })
            .unwrap();
        peer.engine.answer_attach(link, mochila_engine::AttachAnswer::echo(attach));
        assert_eq!(peer.engine.outgoing(link).unwrap().capacity(), 10, "guess {guess:?}");
        assert_eq!(peer.heard_names(), ["begin", "attach"]);
        assert!(ended(&events).is_none());
    }
}

#[test]
fn b2_a_receiver_goes_on_beyond_its_window_and_beyond_65536_messages() {
    let mut pair = Pair::opened_with(windows(65_535, 0), windows(100, 0));
    let (session, _) = pair.session();
    let road = pair.client_receives(session, "q");
    pair.grant(road, u32::MAX);
    let mut received = 0;
    while received < 140_000 {
        let mut outgoing = pair.server.outgoing(road.server).unwrap();
        assert!(outgoing.capacity() > 0, "stopped after {received}");
        for _ in 0..outgoing.capacity().min(10_000) {
            outgoing.send(0, true, 0, &[b"x"]);
        }
        pair.run();
        received += transfers(&pair.client_events());
    }
}

#[test]
fn a_window_of_one_does_not_stall() {
    let mut pair = Pair::opened_with(windows(1, 0), windows(1, 0));
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    pair.grant(road, 100);
    for token in 0..100 {
        let mut outgoing = pair.client.outgoing(road.client).unwrap();
        assert_eq!(outgoing.capacity(), 1);
        outgoing.send(token, true, 0, &[b"x"]);
        assert_eq!(outgoing.capacity(), 0);
        pair.run();
        assert_eq!(transfers(&pair.server_events()), 1);
        assert!(
            pair.client_events().iter().any(|seen| seen.event == Event::Window { session }),
            "the sender is told that it may go on"
        );
    }
}

#[test]
fn a_transfer_beyond_the_window_ends_the_session() {
    let mut peer = RawPeer::opened_with(windows(3, 0));
    peer.send(0, &Begin::new(0, 10, 10));
    peer.events();
    let link = peer.attach(0, "link", Role::Sender);
    peer.engine.grant(link, 100);
    peer.heard();
    // All in one go: the peer does not wait for a flow.
    let mut bytes = Vec::new();
    for id in 0..5 {
        frame::write(&mut bytes, 0, &RawPeer::transfer_frame(id));
    }
    peer.send_bytes(&bytes);
    let heard = peer.heard();
    let Some(Performative::End(end)) = heard.last().unwrap().performative() else {
        panic!("{heard:?}")
    };
    assert_eq!(end.error.unwrap().condition, condition::WINDOW_VIOLATION);
    let events = peer.events();
    assert_eq!(transfers(&events), 3);
    assert_eq!(ended(&events), Some(condition::WINDOW_VIOLATION));
    assert!(peer.engine.is_open(), "the connection goes on");
}

#[test]
fn the_window_is_renewed_when_half_of_it_is_used() {
    let mut peer = RawPeer::opened_with(windows(10, 0));
    peer.send(0, &Begin::new(77, 10, 10));
    peer.events();
    let link = peer.attach(0, "link", Role::Sender);
    peer.engine.grant(link, 100);
    peer.heard();
    for id in 0..4 {
        peer.send(0, &RawPeer::transfer_frame(id));
    }
    assert!(peer.heard().is_empty());
    peer.send(0, &RawPeer::transfer_frame(4));
    let heard = peer.heard();
    let Some(Performative::Flow(flow)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!((flow.next_incoming_id, flow.incoming_window), (Some(82), 10));
    assert_eq!(flow.handle, None);
}

#[test]
fn a_session_flow_with_echo_is_answered_with_the_windows() {
    let mut peer = RawPeer::begun();
    let flow = Flow { incoming_window: 5, outgoing_window: 5, echo: true, ..Flow::default() };
    peer.send(0, &flow);
    let heard = peer.heard();
    let Some(Performative::Flow(flow)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!((flow.next_incoming_id, flow.next_outgoing_id), (Some(0), 0));
    assert_eq!((flow.incoming_window, flow.echo), (8_192, false));
}

#[test]
fn the_peers_closed_window_stops_us_and_its_flow_lets_us_go_on() {
    let mut peer = RawPeer::opened();
    peer.send(0, &Begin::new(0, 2, 10));
    peer.events();
    let link = peer.attach(0, "link", Role::Receiver);
    peer.send(0, &Flow { incoming_window: 2, ..RawPeer::credit_frame(10) });
    peer.events();
    let mut outgoing = peer.engine.outgoing(link).unwrap();
    assert_eq!(outgoing.capacity(), 2);
    outgoing.send(0, true, 0, &[b"a"]);
    outgoing.send(1, true, 0, &[b"b"]);
    assert_eq!(outgoing.capacity(), 0);
    peer.send(
        0,
        &Flow {
            next_incoming_id: Some(1),
            incoming_window: 2,
            outgoing_window: 10,
            ..Flow::default()
        },
    );
    assert!(matches!(peer.events()[0].event, Event::Window { .. }));
    assert_eq!(peer.engine.outgoing(link).unwrap().capacity(), 1);
}

#[test]
fn delivery_ids_out_of_sequence_end_the_session() {
    let mut peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").unwrap();
    peer.engine.grant(link, 10);
    peer.heard();
    peer.send(0, &RawPeer::transfer_frame(9));
    peer.send(0, &RawPeer::transfer_frame(9));
    assert_eq!(ended(&peer.events()), Some(condition::INVALID_FIELD));
}

#[test]
fn delivery_ids_that_count_frames_are_accepted() {
    let mut peer = RawPeer::attached(Role::Sender);
    let link = peer.engine.link_named(Role::Receiver, "link").unwrap();
    peer.engine.grant(link, 10);
    let more = |id| Transfer { more: true, ..RawPeer::transfer_frame(id) };
    peer.send(0, &more(0));
    peer.send(0, &Transfer { more: true, ..Transfer::default() });
    peer.send(0, &Transfer::default());
    peer.send(0, &RawPeer::transfer_frame(3));
    let events = peer.events();
    assert_eq!(transfers(&events), 4);
    assert!(ended(&events).is_none());
}

#[test]
fn links_end_with_their_session_and_can_be_looked_at_until_the_next_input() {
    let mut pair = Pair::opened();
    let (session, theirs) = pair.session();
    let road = pair.client_sends(session, "q");
    pair.client.end(session, None);
    pair.run_once();
    let events = pair.server_events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].event, Event::Ended { session: theirs, error: None });
    assert_eq!(pair.server.link(road.server).map(|link| link.name()), Some("q"));
    pair.run();
    pair.session();
    assert!(pair.server.link(road.server).is_none());
    assert!(pair.client.link(road.client).is_none());
}

#[test]
fn the_peers_handle_max_is_kept() {
    let mut pair = Pair::opened_with(
        ConnectionConfig::new("client"),
        ConnectionConfig { handle_max: 0, ..ConnectionConfig::new("server") },
    );
    let (session, _) = pair.session();
    pair.client_sends(session, "one");
    let second = AttachRequest::sender("two", Source::default(), Target::at("two").into());
    let refused = pair.client.attach(session, second);
    assert_eq!(refused, Err(Error::HandlesExhausted { handle_max: 0 }));
}

#[test]
fn a_handle_above_handle_max_closes_the_connection() {
    let mut peer = RawPeer::begun();
    peer.send(0, &Attach::new("far", 4096, Role::Sender));
    assert_eq!(closed(&peer.events()), Some(condition::FRAMING_ERROR));
}

#[test]
fn a_connection_carries_no_more_links_than_it_is_configured_for() {
    let mut peer =
        RawPeer::opened_with(ConnectionConfig { max_links: 2, ..ConnectionConfig::new("server") });
    peer.send(0, &Begin::new(0, 10, 10));
    for handle in 0..3 {
        let name = format!("link {handle}");
        peer.send(0, &RawPeer::attach_frame(handle, &name, Role::Sender));
    }
    assert_eq!(ended(&peer.events()), Some(condition::RESOURCE_LIMIT_EXCEEDED));
}
