//! What an application hears of message groups that go from its receiver to others.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::time::Duration;

use mochila_client::{
    Backoff, Connection, Options, Received, Receiver, ReceiverOptions, Sender, Session, Symbol,
    Value,
};
use support::{Broker, text};
use tokio::time::timeout;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), future).await.expect("this does not take ten seconds")
}

/// A session, and a sender that has the broker say which group somebody else has now.
async fn session(broker: &Broker) -> (Session, Sender) {
    let connection = Connection::over(broker.pipe(), Options::default()).await.unwrap();
    let session = connection.session().await.unwrap();
    let lost = session.sender("lost").await.unwrap();
    (session, lost)
}

/// What comes next, in words.
async fn next(receiver: &mut Receiver) -> String {
    match soon(receiver.recv_any()).await.unwrap() {
        Received::Delivery(delivery) => {
            let message = delivery.message().unwrap();
            delivery.accept().unwrap();
            message.body.as_value().and_then(Value::as_str).unwrap().to_owned()
        }
        Received::LostGroups(lost) => {
            format!("lost {}", lost.names().map_or("some".into(), |names| names.join(", ")))
        }
    }
}

#[tokio::test]
async fn c4_a_receiver_hears_of_groups_it_has_lost_before_what_comes_later() {
    let broker = Broker::default();
    let (session, lost) = session(&broker).await;
    let mut receiver = session.receiver(ReceiverOptions::from("q").lost_groups()).await.unwrap();
    let offered = receiver.settings().offered_capabilities;
    assert_eq!(offered, [Symbol::from_static("lost-groups")]);
    let sender = session.sender("q").await.unwrap();
    soon(sender.send("first")).await.unwrap();
    assert_eq!(next(&mut receiver).await, "first");
    soon(lost.send("x")).await.unwrap();
    soon(lost.send("y")).await.unwrap();
    soon(sender.send("second")).await.unwrap();
    soon(lost.send("x")).await.unwrap();
    assert_eq!(next(&mut receiver).await, "lost x, y");
    assert_eq!(next(&mut receiver).await, "second");
    assert_eq!(next(&mut receiver).await, "lost x");
}

#[tokio::test]
async fn who_only_wants_messages_or_has_not_asked_hears_nothing_of_lost_groups() {
    let broker = Broker::default();
    let (session, lost) = session(&broker).await;
    let mut asked = session.receiver(ReceiverOptions::from("a").lost_groups()).await.unwrap();
    let mut other = session.receiver("b").await.unwrap();
    soon(lost.send("x")).await.unwrap();
    for queue in ["a", "b"] {
        broker.put(queue, &text(queue));
    }
    let delivery = soon(asked.recv()).await.unwrap();
    assert!(delivery.message().is_ok());
    assert_eq!(next(&mut other).await, "b");
}

#[tokio::test]
async fn after_a_reconnection_any_group_may_be_somebody_elses() {
    let broker = Broker::default();
    let port = broker.listen().await;
    let options = Options {
        reconnect: Some(Backoff { min_ms: 1, ..Backoff::default() }),
        ..Options::default()
    };
    let url = format!("amqp://127.0.0.1:{port}");
    let connection = soon(Connection::open(url.as_str(), options)).await.unwrap();
    let session = connection.session().await.unwrap();
    let mut receiver = session.receiver(ReceiverOptions::from("q").lost_groups()).await.unwrap();
    let sender = session.sender("elsewhere").await.unwrap();
    broker.cut_after(1);
    soon(sender.send("cut")).await.unwrap();
    broker.put("q", &text("hello"));
    assert_eq!(next(&mut receiver).await, "lost some");
    assert_eq!(next(&mut receiver).await, "hello");
}
