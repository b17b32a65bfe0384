//! What an operator can say about links and messages.

mod harness;

use harness::{Client, config, start_with};
use mochila_engine::{AttachRequest, Event};
use mochila_server::{Config, Users};
use mochila_wire::{DeliveryState, Encode, Message, Source, Symbol, Target, Value};
use std::time::Duration;

/// How a message is answered, by the state that its disposition has.
fn answer(config: Config, message: &[u8]) -> DeliveryState {
    answer_to(&mut Client::connect(&start_with(config)), message)
}

fn answer_to(client: &mut Client, message: &[u8]) -> DeliveryState {
    client.events.clear();
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
fn nobody_sends_messages_in_the_name_of_somebody_else() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("users");
    Users::new(&path).add("ann", "s3cret").unwrap();
    let named = Config { users_file: Some(path), ..config() };
    let message = |user: Option<&[u8]>| {
        let mut message = Message::of_data("x");
        message.properties_mut().user_id = user.map(<[u8]>::to_vec);
        message.to_bytes()
    };
    let ann = || Client::plain("ann", "s3cret");
    let rejects = |config: Config, user: Option<&[u8]>| {
        let server = start_with(config);
        let mut client = Client::connect_as(&server, ann()).unwrap();
        match answer_to(&mut client, &message(user)) {
            DeliveryState::Rejected { error } => {
                assert_eq!(error.unwrap().condition.as_str(), "amqp:not-allowed");
                true
            }
            _ => false,
        }
    };
    for user in [None, Some(&b""[..]), Some(b"ann")] {
        assert!(!rejects(named.clone(), user), "{user:?}");
    }
    for user in [&b"bob"[..], b"an", b"ann\0", &[0xff; 300]] {
        assert!(rejects(named.clone(), Some(user)), "{user:?}");
        assert!(!rejects(Config { verify_user_id: false, ..named.clone() }, Some(user)));
        // Who only says who they are may say who somebody else is.
        assert!(!rejects(Config { auth: false, ..config() }, Some(user)));
    }
    assert!(!is_rejected(&answer(config(), &message(Some(b"bob")))), "nobody in particular");
    // The user id as a text, where the specification has bytes.
    let server = start_with(named);
    let mut client = Client::connect_as(&server, ann()).unwrap();
    let text = [0x00, 0x53, 0x73, 0xc0, 7, 2, 0x40, 0xa1, 3, b'b', b'o', b'b', 0, 0x53, 0x77, 0x40];
    assert!(is_rejected(&answer_to(&mut client, &text)));
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

/// Why the node refuses to make what a sender's target asks for; `None` if it is made.
fn refusal(client: &mut Client, address: &str, capabilities: &[Symbol]) -> Option<String> {
    client.events.clear();
    let session = client.begin();
    let target = Target { capabilities: capabilities.to_vec(), ..Target::at(address) };
    let request = AttachRequest::sender(address, Source::default(), target.into());
    let link = client.engine.attach(session, request).expect("the session has handles left");
    client.run_until(|client| {
        let has_credit = client.engine.link(link).is_some_and(|link| link.credit() > 0);
        has_credit || client.saw(|event| matches!(event, Event::Detached { .. }))
    });
    client.events.iter().find_map(|event| match event {
        Event::Detached { error, .. } => error.as_ref().map(|error| error.to_string()),
        _ => None,
    })
}

#[test]
fn no_more_queues_and_exchanges_are_made_than_the_operator_allows() {
    let server = start_with(Config { max_queues: 2, max_exchanges: 5, ..config() });
    let mut client = Client::connect(&server);
    assert_eq!(["a", "b"].map(|name| refusal(&mut client, name, &[])), [None, None]);
    let text = refusal(&mut client, "c", &[]).unwrap();
    assert!(text.contains("there are 2 queues, the most allowed"), "{text}");
    // Four exchanges are always there.
    let topic = ["topic", "create-on-demand"].map(Symbol::from_static);
    assert_eq!(refusal(&mut client, "x", &topic), None);
    let text = refusal(&mut client, "y", &topic).unwrap();
    assert!(text.contains("there are 5 exchanges, the most allowed"), "{text}");
}
