//! The end of connections, and signs of life (part 2, 2.4).

use mochila_engine::pair::{Pair, RawPeer, Said, Seen};
use mochila_engine::{ConnectionConfig, Event};
use mochila_wire::performative::{Begin, Close, Open};
use mochila_wire::{AmqpError, Performative, condition, frame};

fn closed(events: &[Seen]) -> Vec<(Option<&AmqpError>, bool)> {
    let closed = events.iter().filter_map(|seen| match &seen.event {
        Event::Closed { error, by_peer } => Some((error.as_deref(), *by_peer)),
        _ => None,
    });
    closed.collect()
}

fn idle(idle_timeout_ms: u32) -> ConnectionConfig {
    ConnectionConfig { idle_timeout_ms, ..ConnectionConfig::new("peer") }
}

#[test]
fn a_close_is_answered_and_both_sides_are_told_once() {
    let mut pair = Pair::opened();
    pair.client.close(None);
    assert!(!pair.client.is_closed(), "the answer is waited for");
    pair.run();
    assert_eq!(closed(&pair.server_events()), [(None, true)]);
    assert_eq!(closed(&pair.client_events()), [(None, false)]);
    assert!(pair.client.is_closed() && pair.server.is_closed());
    pair.cut();
    assert!(pair.client_events().is_empty() && pair.server_events().is_empty());
}

#[test]
fn a_close_carries_its_error() {
    let mut pair = Pair::opened();
    let error = AmqpError::new(condition::CONNECTION_FORCED, "the operator said so");
    pair.server.close(Some(error.clone()));
    pair.run();
    assert_eq!(closed(&pair.client_events()), [(Some(&error), true)]);
}

#[test]
fn both_sides_may_close_at_the_same_time() {
    let mut pair = Pair::opened();
    pair.client.close(None);
    pair.server.close(None);
    pair.run();
    assert!(pair.client.is_closed() && pair.server.is_closed());
    assert_eq!(closed(&pair.client_events()).len(), 1);
    assert_eq!(closed(&pair.server_events()).len(), 1);
}

#[test]
fn frames_that_cross_a_close_are_ignored() {
    let mut peer = RawPeer::begun();
    peer.engine.close(None);
    peer.send(7, &Begin::new(0, 1, 1));
    peer.send_bytes(&[0, 0, 0, 9, 2, 0, 0, 0, 0xff]);
    assert_eq!(peer.heard_names(), ["close"]);
    assert!(!peer.engine.is_closed());
    peer.send(0, &Close::default());
    assert!(peer.engine.is_closed());
    assert!(peer.heard().is_empty());
}

#[test]
fn a_close_that_is_not_answered_is_not_waited_for_for_ever() {
    let mut peer = RawPeer::opened();
    peer.engine.close(None);
    peer.advance(2_000);
    assert!(peer.engine.is_closed());
    assert_eq!(closed(&peer.events()), [(None, false)]);
}

#[test]
fn a_peer_that_hangs_up_without_close_is_reported_as_gone() {
    let mut peer = RawPeer::begun();
    peer.engine.handle_eof(peer.now);
    assert!(peer.engine.is_closed());
    let events = peer.events();
    let (Some(error), true) = closed(&events)[0] else { panic!("{events:?}") };
    assert_eq!(error.condition, condition::CONNECTION_FORCED);
    assert!(peer.heard().is_empty(), "there is nobody to tell");
}

#[test]
fn nothing_can_be_begun_on_a_closed_connection() {
    let mut pair = Pair::opened();
    pair.client.close(None);
    assert_eq!(pair.client.begin(), Err(mochila_engine::Error::NotOpen));
}

#[test]
fn heartbeats_keep_an_idle_connection_open_for_ever() {
    let mut pair = Pair::opened_with(idle(8_000), idle(1_000));
    pair.advance(3_600_000);
    assert!(pair.client.is_open() && pair.server.is_open());
}

#[test]
fn a_heartbeat_goes_out_at_half_of_what_the_peer_asks_for() {
    let mut peer = RawPeer::new(idle(0));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { idle_time_out: Some(10_000), ..Open::new("raw") });
    peer.heard();
    peer.advance(4_999);
    assert!(peer.heard().is_empty());
    peer.advance(1);
    assert_eq!(peer.heard(), [Said::Heartbeat]);
    peer.advance(20_000);
    assert_eq!(peer.heard().len(), 4);
}

#[test]
fn a_peer_that_asks_for_no_heartbeats_gets_none() {
    let mut peer = RawPeer::opened_with(idle(0));
    assert_eq!(peer.engine.next_timeout_ms(), None);
    peer.advance(1_000_000);
    assert!(peer.heard().is_empty());
    assert!(peer.engine.is_open());
}

#[test]
fn a_peer_that_is_silent_too_long_is_closed_with_a_reason() {
    let mut peer = RawPeer::opened_with(idle(10_000));
    peer.advance(9_999);
    assert!(peer.engine.is_open());
    peer.advance(1);
    let heard = peer.heard();
    let Some(Performative::Close(close)) = heard[0].performative() else { panic!("{heard:?}") };
    assert_eq!(close.error.unwrap().condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!(closed(&peer.events()).len(), 1);
    peer.advance(2_000);
    assert!(peer.engine.is_closed());
}

#[test]
fn any_frame_counts_as_a_sign_of_life() {
    let mut peer = RawPeer::opened_with(idle(10_000));
    for _ in 0..10 {
        peer.advance(9_000);
        peer.send_bytes(&[0, 0, 0, 8, 2, 0, 0, 0]);
    }
    assert!(peer.engine.is_open());
    assert!(peer.events().is_empty(), "a heartbeat is nothing to tell");
}

#[test]
fn heartbeats_do_not_depend_on_the_data_path() {
    // The peer's session window is closed and its links have no credit: time goes on all the same.
    let mut peer = RawPeer::new(idle(0));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { idle_time_out: Some(1_000), ..Open::new("raw") });
    peer.send(0, &Begin::new(0, 0, 0));
    peer.heard();
    peer.advance(5_000);
    assert_eq!(peer.heard().iter().filter(|said| **said == Said::Heartbeat).count(), 10);
}

#[test]
fn a_frozen_peer_is_noticed_and_a_working_one_is_not() {
    let mut pair = Pair::opened_with(idle(0), idle(4_000));
    pair.advance(100_000);
    assert!(pair.server.is_open());
    pair.advance_server(4_000);
    assert!(!pair.server.is_open());
}

#[test]
fn an_idle_time_out_that_cannot_be_kept_is_refused() {
    let mut peer = RawPeer::new(idle(0));
    peer.send_bytes(&frame::PROTOCOL_AMQP);
    peer.send(0, &Open { idle_time_out: Some(1), ..Open::new("hasty") });
    let events = peer.events();
    assert_eq!(closed(&events)[0].0.map(|e| &e.condition), Some(&condition::NOT_ALLOWED));
}

#[test]
fn an_idle_connection_owns_no_buffers() {
    let mut pair = Pair::opened();
    let (session, _) = pair.session();
    let road = pair.client_sends(session, "q");
    pair.grant(road, 5_000);
    for token in 0..5_000 {
        pair.client.outgoing(road.client).unwrap().send(token, false, 0, &[b"m"]);
    }
    pair.run();
    pair.server_events();
    let output = std::mem::take(pair.server.output());
    assert!(output.is_empty());
    pair.advance(120_000);
    assert_eq!(pair.server.output().capacity(), 8, "only the last heartbeat");
}
