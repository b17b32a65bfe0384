//! What an operator can say about links and messages.

mod harness;

use harness::{Client, config, start_with};
use mochila_engine::Event;
use mochila_server::Config;
use mochila_wire::{DeliveryState, Encode, Message, Value};
use std::time::Duration;

/// How a message is answered, by the state that its disposition has.
fn answer(config: Config, message: &[u8]) -> DeliveryState {
    let server = start_with(config);
    let mut client = Client::connect(&server);
    let link = client.sender("q");
    client.send_bytes(link, message);
    client.wait_for_outcomes(link);
    let state = client.events.iter().find_map(|event| match event {
        Event::Disposition { state, .. } => state.clone(),
        _ => None,
    });
    state.expect("a message that has an outcome was told it")
}

fn is_rejected(state: &DeliveryState) -> bool {
    matches!(state, DeliveryState::Rejected { .. })
}

#[test]
fn a_message_without_body_is_rejected_by_a_broker_that_is_strict() {
    let message = [0x00, 0x53, 0x73, 0x45];
    assert!(!is_rejected(&answer(config(), &message)));
    assert!(is_rejected(&answer(Config { strict_messages: true, ..config() }, &message)));
}

#[test]
fn a_body_nested_too_deep_is_rejected_by_a_broker_that_verifies() {
    let deep = (0..100).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let mut message = Vec::new();
    Message::of_value(deep).encode(&mut message);
    assert!(!is_rejected(&answer(config(), &message)));
    assert!(is_rejected(&answer(Config { verify_bodies: true, ..config() }, &message)));
}

#[test]
fn a_client_that_settles_nothing_gets_no_more_than_it_may_have() {
    let server = start_with(Config { max_unsettled: 2, ..config() });
    let mut client = Client::connect(&server);
    let to = client.sender("q");
    (0..5).for_each(|n| client.send(to, &n.to_string()));
    client.wait_for_outcomes(to);
    client.receiver("q", 5);
    client.run_until(|client| client.deliveries.len() >= 2);
    client.run_for(Duration::from_millis(50));
    assert_eq!(client.deliveries.len(), 2);
    for n in 0..5 {
        assert_eq!(client.receive().text(), n.to_string());
    }
}

#[test]
fn a_link_moves_to_another_connection_where_that_is_wanted() {
    for steal_across_connections in [false, true] {
        let server = start_with(Config { steal_across_connections, ..config() });
        let mut first = Client::connect(&server);
        first.receiver("q", 1);
        let mut second = Client::connect(&server);
        second.receiver("q", 1);
        let is_gone =
            |client: &mut Client| client.saw(|event| matches!(event, Event::Detached { .. }));
        if steal_across_connections {
            first.run_until(is_gone);
        } else {
            first.run_for(Duration::from_millis(50));
            assert!(!is_gone(&mut first));
        }
    }
}
