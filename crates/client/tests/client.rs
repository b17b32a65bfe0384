//! What an application sees of the library, against an engine at the other end of a pipe.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::time::Duration;

use mochila_client::{
    Backoff, Connection, DeliveryState, Error, Map, Message, Modification, Options,
    ReceiverOptions, SenderOptions, Symbol, Value,
};
use support::{Broker, SECOND, text};
use tokio::time::timeout;

async fn connected(broker: &Broker) -> Connection {
    Connection::over(broker.pipe(), Options::default()).await.unwrap()
}

fn body(delivery: &mochila_client::Delivery) -> String {
    let message = delivery.message().unwrap();
    message.body.as_value().and_then(Value::as_str).unwrap().to_owned()
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), future).await.expect("this does not take ten seconds")
}

#[tokio::test]
async fn a_message_goes_to_a_queue_and_comes_back() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender("q").await.unwrap();
    assert_eq!(soon(sender.send("hello")).await.unwrap(), DeliveryState::Accepted);
    let mut receiver = session.receiver("q").await.unwrap();
    let delivery = soon(receiver.recv()).await.unwrap();
    assert_eq!(body(&delivery), "hello");
    assert!(!delivery.is_settled());
    delivery.accept().unwrap();
    soon(receiver.close()).await.unwrap();
    assert_eq!(broker.depth("q"), 0);
}

#[tokio::test]
async fn many_messages_are_under_way_at_the_same_time_and_keep_their_order() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender(SenderOptions::to("q").capacity(20)).await.unwrap();
    let messages = (0..500).map(|n| Message::of_value(n.to_string()));
    let outcomes = soon(sender.send_all(messages)).await.unwrap();
    assert_eq!(outcomes.len(), 500);
    let mut receiver = session.receiver(ReceiverOptions::from("q").window(7)).await.unwrap();
    for n in 0..500 {
        let delivery = soon(receiver.recv()).await.unwrap();
        assert_eq!(body(&delivery), n.to_string());
        delivery.accept().unwrap();
    }
}

#[tokio::test]
async fn outcomes_that_are_not_acceptance_are_told() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let rejected = session.sender("rejected").await.unwrap();
    let DeliveryState::Rejected { error } = soon(rejected.send("x")).await.unwrap() else {
        panic!("not rejected")
    };
    assert_eq!(error.unwrap().description.as_deref(), Some("I do not like it"));
    let released = session.sender("released").await.unwrap();
    assert_eq!(soon(released.send("x")).await.unwrap(), DeliveryState::Released);
}

#[tokio::test]
async fn a_message_sent_settled_waits_for_nobody() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender(SenderOptions::to("silent").capacity(1)).await.unwrap();
    for _ in 0..10 {
        soon(sender.send_settled("x")).await.unwrap();
    }
    let settled = session.sender(SenderOptions::to("silent").settled()).await.unwrap();
    assert_eq!(soon(settled.send("x")).await.unwrap(), DeliveryState::Accepted);
}

#[tokio::test]
async fn a_full_sender_waits_until_an_outcome_makes_room() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender(SenderOptions::to("silent").capacity(2)).await.unwrap();
    let _first = soon(sender.post("a")).await.unwrap();
    let _second = soon(sender.post("b")).await.unwrap();
    let third = timeout(Duration::from_millis(50), sender.post("c")).await;
    assert!(third.is_err(), "there was room for a third message");
}

#[tokio::test]
async fn a_large_message_is_cut_into_frames_and_put_together_again() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender("q").await.unwrap();
    let large = "x".repeat(3_000_000);
    soon(sender.send(Message::of_value(large.clone()))).await.unwrap();
    let mut receiver = session.receiver("q").await.unwrap();
    let delivery = soon(receiver.recv()).await.unwrap();
    assert_eq!(body(&delivery), large);
}

#[tokio::test]
async fn a_delivery_may_be_released_rejected_or_modified() {
    let broker = Broker::default();
    for n in ["release", "reject", "modify"] {
        broker.put("q", &text(n));
    }
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").window(3)).await.unwrap();
    let released = soon(receiver.recv()).await.unwrap();
    let rejected = soon(receiver.recv()).await.unwrap();
    let modified = soon(receiver.recv()).await.unwrap();
    released.release().unwrap();
    rejected.reject(None).unwrap();
    let annotations = Map::new().with("x-opt-why", "later");
    let modification = Modification {
        delivery_failed: true,
        message_annotations: Some(annotations),
        ..Modification::default()
    };
    modified.modify(modification).unwrap();
    let again = soon(receiver.recv()).await.unwrap();
    assert_eq!(body(&again), "release");
    let again = soon(receiver.recv()).await.unwrap().message().unwrap();
    assert_eq!(again.header.unwrap().delivery_count, 1);
    assert_eq!(again.message_annotation("x-opt-why"), Some(&Value::from("later")));
}

#[tokio::test]
async fn in_mode_second_the_sender_settles_after_the_outcome() {
    let broker = Broker::default();
    broker.put("q", &text("twice"));
    let session = connected(&broker).await.session().await.unwrap();
    let mut options = ReceiverOptions::from("q");
    options.link.rcv_settle_mode = SECOND;
    let mut receiver = session.receiver(options).await.unwrap();
    assert_eq!(receiver.settings().rcv_settle_mode, SECOND);
    soon(receiver.recv()).await.unwrap().accept().unwrap();
    soon(receiver.close()).await.unwrap();
    assert_eq!(broker.depth("q"), 0);
}

#[tokio::test]
async fn credit_given_by_hand_is_all_that_the_sender_has() {
    let broker = Broker::default();
    for n in 0..5 {
        broker.put("q", &text(&n.to_string()));
    }
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").manual_credit()).await.unwrap();
    receiver.grant(2).unwrap();
    for _ in 0..2 {
        soon(receiver.recv()).await.unwrap().accept().unwrap();
    }
    let third = timeout(Duration::from_millis(50), receiver.recv()).await;
    assert!(third.is_err(), "a third message came without credit");
    receiver.grant(1).unwrap();
    assert_eq!(body(&soon(receiver.recv()).await.unwrap()), "2");
}

#[tokio::test]
async fn draining_brings_what_there_is_and_takes_the_credit_back() {
    let broker = Broker::default();
    for n in 0..3 {
        broker.put("q", &text(&n.to_string()));
    }
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").manual_credit()).await.unwrap();
    receiver.grant(10).unwrap();
    soon(receiver.drain()).await.unwrap();
    let mut received = 0;
    while let Some(delivery) = receiver.try_recv().unwrap() {
        delivery.accept().unwrap();
        received += 1;
    }
    assert_eq!(received, 3);
    broker.put("q", &text("later"));
    assert!(timeout(Duration::from_millis(50), receiver.recv()).await.is_err());
    receiver.grant(1).unwrap();
    assert_eq!(body(&soon(receiver.recv()).await.unwrap()), "later");
    soon(receiver.drain()).await.unwrap();
}

#[tokio::test]
async fn after_a_drain_receiving_goes_on_as_before() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").window(10)).await.unwrap();
    soon(receiver.drain()).await.unwrap();
    assert!(receiver.try_recv().unwrap().is_none());
    broker.put("q", &text("later"));
    assert_eq!(body(&soon(receiver.recv()).await.unwrap()), "later");
}

#[tokio::test]
async fn credit_given_by_hand_outlives_a_lost_connection() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let options = Options { reconnect: Some(Backoff::default()), ..Options::default() };
    let connection = Connection::open(&format!("127.0.0.1:{port}"), options).await.unwrap();
    let session = connection.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").manual_credit()).await.unwrap();
    receiver.grant(2).unwrap();
    broker.cut_after(1);
    let sender = session.sender("elsewhere").await.unwrap();
    soon(sender.send("the last straw")).await.unwrap();
    for n in 0..3 {
        broker.put("q", &text(&n.to_string()));
    }
    for _ in 0..2 {
        soon(receiver.recv()).await.unwrap().accept().unwrap();
    }
    let third = timeout(Duration::from_millis(50), receiver.recv()).await;
    assert!(third.is_err(), "more came than there was credit for");
}

#[tokio::test]
async fn a_browser_says_so() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let receiver = session.receiver(ReceiverOptions::from("q").browse()).await.unwrap();
    assert!(receiver.source().unwrap().is_browsing());
}

#[tokio::test]
async fn a_refused_link_says_why() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let error = soon(session.sender("forbidden")).await.unwrap_err();
    let condition = error.condition().unwrap().condition.as_str().to_owned();
    assert_eq!(condition, "amqp:unauthorized-access");
    assert!(error.to_string().contains("you may not"), "{error}");
    let error = soon(session.receiver("forbidden")).await.unwrap_err();
    assert!(matches!(error, Error::Link(Some(_))));
    // The session is none the worse for it.
    soon(session.sender("q")).await.unwrap();
}

#[tokio::test]
async fn a_dynamic_node_has_a_name_of_the_brokers_choice() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::dynamic()).await.unwrap();
    let address = receiver.address().unwrap();
    let sender = session.sender(address.as_str()).await.unwrap();
    soon(sender.send("to the temporary node")).await.unwrap();
    assert_eq!(body(&soon(receiver.recv()).await.unwrap()), "to the temporary node");
    let dynamic = session.sender(SenderOptions::dynamic()).await.unwrap();
    assert!(dynamic.address().unwrap().starts_with("temporary-"));
}

#[tokio::test]
async fn a_message_to_the_anonymous_terminus_says_itself_where_it_goes() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender(SenderOptions::anonymous()).await.unwrap();
    let mut message = text("by itself");
    message.properties_mut().to = Some("q".into());
    soon(sender.send(&message)).await.unwrap();
    assert_eq!(broker.depth("q"), 1);
}

#[tokio::test]
async fn a_request_gets_its_response() {
    let broker = Broker::default();
    let connection = connected(&broker).await;
    let mut requester = connection.requester("echo").await.unwrap();
    for question in ["a", "b", "c"] {
        let response = soon(requester.request(Message::of_value(question))).await.unwrap();
        assert_eq!(response.body.as_value(), Some(&Value::from(question)));
    }
}

#[tokio::test]
async fn closing_waits_for_the_peer_and_ends_everything() {
    let broker = Broker::default();
    let connection = connected(&broker).await;
    let session = connection.session().await.unwrap();
    let mut receiver = session.receiver("q").await.unwrap();
    soon(connection.clone().close()).await.unwrap();
    assert!(matches!(soon(receiver.recv()).await, Err(Error::Connection(None))));
    assert!(soon(session.sender("q")).await.is_err());
    assert!(soon(connection.session()).await.is_err());
}

#[tokio::test]
async fn a_session_that_ends_takes_its_links_with_it_and_leaves_the_others() {
    let broker = Broker::default();
    let connection = connected(&broker).await;
    let (first, second) =
        (connection.session().await.unwrap(), connection.session().await.unwrap());
    let doomed = first.sender("q").await.unwrap();
    let safe = second.sender("q").await.unwrap();
    soon(first.end()).await.unwrap();
    assert!(soon(doomed.send("x")).await.is_err());
    soon(safe.send("x")).await.unwrap();
}

#[tokio::test]
async fn a_link_that_is_dropped_gives_its_messages_back() {
    let broker = Broker::default();
    broker.put("q", &text("mine"));
    let session = connected(&broker).await.session().await.unwrap();
    let mut receiver = session.receiver("q").await.unwrap();
    let delivery = soon(receiver.recv()).await.unwrap();
    drop((receiver, delivery));
    let mut other = session.receiver("q").await.unwrap();
    assert_eq!(body(&soon(other.recv()).await.unwrap()), "mine");
}

#[tokio::test]
async fn the_peer_introduces_itself() {
    let broker = Broker::default();
    let connection = connected(&broker).await;
    let peer = connection.peer().unwrap();
    assert_eq!((peer.container_id.as_str(), peer.max_frame_size), ("test-broker", 4096));
    let options = Options { properties: Map::new().with("product", "x"), ..Options::default() };
    soon(Connection::over(broker.pipe(), options)).await.unwrap();
}

#[tokio::test]
async fn wrong_credentials_are_refused_and_right_ones_accepted() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let open = |password: &str| {
        let url = format!("amqp://me:{password}@127.0.0.1:{port}");
        async move { Connection::open(&url, Options::default()).await }
    };
    assert!(matches!(soon(open("guess")).await, Err(Error::Refused)));
    soon(open("secret")).await.unwrap();
}

#[tokio::test]
async fn nobody_at_home_is_an_error_that_names_the_endpoint() {
    let error = soon(Connection::open("127.0.0.1:1", Options::default())).await.unwrap_err();
    assert!(matches!(error, Error::Io(_)));
    assert!(error.to_string().starts_with("127.0.0.1:1: "), "{error}");
}

#[tokio::test]
async fn the_next_endpoint_is_tried_when_the_first_does_not_answer() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let url = format!("amqp:tcp:127.0.0.1:1,tcp:127.0.0.1:{port}");
    soon(Connection::open(&url, Options::default())).await.unwrap();
}

#[tokio::test]
async fn after_a_cut_connection_everything_goes_on_where_it_was() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let options = Options { reconnect: Some(Backoff::default()), ..Options::default() };
    let connection = Connection::open(&format!("127.0.0.1:{port}"), options).await.unwrap();
    let session = connection.session().await.unwrap();
    let sender = session.sender("q").await.unwrap();
    let mut receiver = session.receiver("other").await.unwrap();
    broker.cut_after(40);
    let messages = (0..100).map(|n| Message::of_value(n.to_string()));
    let outcomes = soon(sender.send_all(messages)).await.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == DeliveryState::Accepted));
    assert!(broker.connections() >= 2);
    // At least once: everything is there, and what was on its way may be there twice.
    let mut consumer = session.receiver("q").await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 100 {
        let delivery = soon(consumer.recv()).await.unwrap();
        seen.insert(body(&delivery));
        delivery.accept().unwrap();
    }
    broker.put("other", &text("still attached"));
    assert_eq!(body(&soon(receiver.recv()).await.unwrap()), "still attached");
}

#[tokio::test]
async fn a_delivery_of_a_lost_connection_cannot_be_settled() {
    let broker = Broker::default();
    broker.put("q", &text("m"));
    let port = broker.listen().await;
    let options = Options { reconnect: Some(Backoff::default()), ..Options::default() };
    let connection = Connection::open(&format!("127.0.0.1:{port}"), options).await.unwrap();
    let session = connection.session().await.unwrap();
    let mut receiver = session.receiver("q").await.unwrap();
    let stale = soon(receiver.recv()).await.unwrap();
    broker.cut_after(1);
    let sender = session.sender("elsewhere").await.unwrap();
    soon(sender.send("the last straw")).await.unwrap();
    let again = soon(receiver.recv()).await.unwrap();
    assert_eq!(body(&again), "m");
    assert!(matches!(stale.accept(), Err(Error::Stale)));
    again.accept().unwrap();
}

#[tokio::test]
async fn without_reconnecting_a_cut_connection_is_the_end() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let sender = session.sender("silent").await.unwrap();
    broker.cut_after(1);
    assert!(soon(sender.send("x")).await.is_err());
    assert!(matches!(soon(session.sender("q")).await, Err(Error::Connection(_) | Error::Io(_))));
}

#[tokio::test]
async fn reconnecting_ends_when_patience_does() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let backoff = Backoff { max_attempts: Some(3), max_ms: 5, ..Backoff::default() };
    let options = Options { reconnect: Some(backoff), ..Options::default() };
    let url = format!("127.0.0.1:{port}");
    let connection = Connection::open(&url, options.clone()).await.unwrap();
    drop(connection);
    let nobody = Connection::open("127.0.0.1:1", options);
    assert!(matches!(soon(nobody).await, Err(Error::Io(_))));
}

#[tokio::test]
async fn link_names_are_kept_and_capabilities_offered() {
    let broker = Broker::default();
    let session = connected(&broker).await.session().await.unwrap();
    let mut options = SenderOptions::to("q").name("my-link");
    options.target.capabilities = vec![Symbol::from_static("queue")];
    let sender = session.sender(options).await.unwrap();
    assert_eq!(sender.settings().name.as_deref(), Some("my-link"));
    assert_eq!(sender.target().unwrap().capabilities, [Symbol::from_static("queue")]);
}
