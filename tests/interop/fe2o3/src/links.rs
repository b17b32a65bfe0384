//! What a link does: settlement, credit, outcomes, termini.

use crate::harness::{Client, Result, expect, expect_nothing, fresh, send, soon, take, value};
use fe2o3_amqp::link::delivery::Sendable;
use fe2o3_amqp::types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    DistributionMode, Message, MessageAnnotations, Modified, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use fe2o3_amqp::{Receiver, Sender, Session};

crate::cases! {
    "presettled in and out" => presettled,
    "settle mode second, receiving" => second_receiving,
    "settle mode second, sending" => second_sending,
    "credit is kept to, one at a time and in lots" => credit,
    "a drained link is empty, and credit works afterwards" => drain,
    "released messages come again in their old place" => released,
    "modified counts as failed and merges annotations" => modified,
    "modified with undeliverable-here goes to another consumer" => undeliverable_here,
    "rejected messages do not come again" => rejected,
    "browsing copies and takes nothing" => browse,
    "anonymous relay" => anonymous_relay,
    "request and response over a dynamic reply queue" => request_response,
    "sender and receiver with the same link name" => same_name,
    "session windows of 1, 2, 7 and 2048 frames" => windows,
    "200 links on one session" => many_links,
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("message {number}")).collect()
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

async fn presettled() -> Result {
    let mut client = Client::new().await?;
    let (queue, texts) = (fresh(), texts(50));
    let sender = Sender::builder()
        .name(fresh())
        .target(queue.as_str())
        .sender_settle_mode(SenderSettleMode::Settled)
        .attach(&mut client.session);
    let mut sender = soon("attach", sender).await?;
    for text in &texts {
        let message = Sendable::builder().message(text.clone()).settled(true).build();
        soon("send", sender.send(message)).await?;
    }
    let receiver = Receiver::builder()
        .name(fresh())
        .source(queue.as_str())
        .sender_settle_mode(SenderSettleMode::Settled)
        .attach(&mut client.session);
    let mut receiver = soon("attach", receiver).await?;
    for text in &texts {
        assert_eq!(value(&take(&mut receiver).await?), &Value::from(text.as_str()));
    }
    soon("close", receiver.close()).await?;
    client.expect_empty(&queue).await?;
    client.close().await
}

async fn second_receiving() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a", "b"]).await?;
    let receiver = Receiver::builder()
        .name(fresh())
        .source(queue.as_str())
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .attach(&mut client.session);
    let mut receiver = soon("attach", receiver).await?;
    expect(&mut receiver, &["a", "b"]).await?;
    soon("close", receiver.close()).await?;
    client.expect_empty(&queue).await?;
    client.close().await
}

async fn second_sending() -> Result {
    let mut client = Client::new().await?;
    let queue = fresh();
    let sender = Sender::builder()
        .name(fresh())
        .target(queue.as_str())
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .attach(&mut client.session);
    let mut sender = soon("attach", sender).await?;
    send(&mut sender, Message::from("a".to_string())).await?;
    send(&mut sender, Message::from("b".to_string())).await?;
    expect(&mut client.receiver(queue, 10).await?, &["a", "b"]).await?;
    client.close().await
}

async fn credit() -> Result {
    let mut client = Client::new().await?;
    let texts = texts(20);
    let queue = client.filled(&refs(&texts)).await?;
    let mut receiver = client.manual(queue.as_str()).await?;
    let mut got = 0;
    for lot in [1, 1, 3, 10] {
        receiver.set_credit(lot as u32).await?;
        expect(&mut receiver, &refs(&texts[got..got + lot])).await?;
        got += lot;
        expect_nothing(&mut receiver).await?;
    }
    client.close().await
}

async fn drain() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a", "b"]).await?;
    let mut receiver = client.manual(queue.as_str()).await?;
    receiver.set_credit(10).await?;
    soon("drain", receiver.drain()).await?;
    expect(&mut receiver, &["a", "b"]).await?;
    let mut sender = client.sender(&queue).await?;
    send(&mut sender, Message::from("late".to_string())).await?;
    expect_nothing(&mut receiver).await?;
    receiver.set_credit(1).await?;
    expect(&mut receiver, &["late"]).await?;
    client.close().await
}

async fn released() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a", "b", "c"]).await?;
    let mut receiver = client.receiver(queue.as_str(), 2).await?;
    let taken = [take(&mut receiver).await?, take(&mut receiver).await?];
    soon("release", receiver.release_all(&taken)).await?;
    soon("close", receiver.close()).await?;
    let mut receiver = client.receiver(queue.as_str(), 10).await?;
    for text in ["a", "b", "c"] {
        let delivery = take(&mut receiver).await?;
        assert_eq!(value(&delivery), &Value::from(text));
        let header = delivery.message().header.clone().unwrap_or_default();
        assert_eq!(header.delivery_count, 0, "delivery-count");
        soon("accept", receiver.accept(&delivery)).await?;
    }
    client.close().await
}

async fn modified() -> Result {
    let mut client = Client::new().await?;
    let queue = fresh();
    let annotations = |pairs: &[(&str, i32)]| -> MessageAnnotations {
        let mut annotations = MessageAnnotations::default();
        for (key, value) in pairs {
            annotations.insert(Symbol::from(*key).into(), Value::Int(*value));
        }
        annotations
    };
    let message = Message::builder()
        .message_annotations(annotations(&[("x-opt-kept", 1), ("x-opt-old", 1)]))
        .value("a".to_string())
        .build();
    send(&mut client.sender(&queue).await?, message).await?;
    let mut receiver = client.receiver(queue.as_str(), 1).await?;
    let changes = [("x-opt-old", 2), ("x-opt-new", 3)]
        .map(|(key, value)| (Symbol::from(key), Value::Int(value)))
        .into_iter()
        .collect();
    let delivery = take(&mut receiver).await?;
    let outcome = Modified {
        delivery_failed: Some(true),
        undeliverable_here: None,
        message_annotations: Some(changes),
    };
    soon("modify", receiver.modify(&delivery, outcome)).await?;
    let delivery = take(&mut receiver).await?;
    assert_eq!(delivery.message().header.clone().unwrap_or_default().delivery_count, 1);
    let received = delivery.message().message_annotations.clone().unwrap_or_default();
    let expected = annotations(&[("x-opt-kept", 1), ("x-opt-old", 2), ("x-opt-new", 3)]);
    assert_eq!(received, expected);
    client.close().await
}

async fn undeliverable_here() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a"]).await?;
    let mut picky = client.manual(queue.as_str()).await?;
    picky.set_credit(1).await?;
    let delivery = take(&mut picky).await?;
    let outcome = Modified {
        delivery_failed: None,
        undeliverable_here: Some(true),
        message_annotations: None,
    };
    soon("modify", picky.modify(&delivery, outcome)).await?;
    picky.set_credit(1).await?;
    expect_nothing(&mut picky).await?;
    expect(&mut client.receiver(queue.as_str(), 1).await?, &["a"]).await?;
    client.close().await
}

async fn rejected() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["bad", "good"]).await?;
    let mut receiver = client.receiver(queue.as_str(), 1).await?;
    let delivery = take(&mut receiver).await?;
    soon("reject", receiver.reject(&delivery, None)).await?;
    expect(&mut receiver, &["good"]).await?;
    soon("close", receiver.close()).await?;
    client.expect_empty(&queue).await?;
    client.close().await
}

async fn browse() -> Result {
    let mut client = Client::new().await?;
    let queue = client.filled(&["a", "b", "c"]).await?;
    for _ in 0..2 {
        let source = Source::builder()
            .address(queue.as_str())
            .distribution_mode(DistributionMode::Copy)
            .build();
        let mut browser = client.receiver(source, 10).await?;
        expect(&mut browser, &["a", "b", "c"]).await?;
        soon("close", browser.close()).await?;
    }
    expect(&mut client.receiver(queue.as_str(), 10).await?, &["a", "b", "c"]).await?;
    client.close().await
}

/// A sender to the anonymous terminus: each message says where it goes.
async fn relay(client: &mut Client) -> Result<Sender> {
    let sender =
        Sender::builder().name(fresh()).target(Target::default()).attach(&mut client.session);
    soon("attach", sender).await
}

fn addressed(to: &str, text: &str) -> Message<fe2o3_amqp::types::messaging::AmqpValue<String>> {
    Message::builder()
        .properties(Properties { to: Some(to.to_string()), ..Default::default() })
        .value(text.to_string())
        .build()
}

async fn anonymous_relay() -> Result {
    let mut client = Client::new().await?;
    let (one, two) = (fresh(), fresh());
    let mut sender = relay(&mut client).await?;
    for text in ["a", "b"] {
        send(&mut sender, addressed(&one, text)).await?;
        send(&mut sender, addressed(&two, text)).await?;
    }
    expect(&mut client.receiver(one, 1).await?, &["a", "b"]).await?;
    expect(&mut client.receiver(two, 1).await?, &["a", "b"]).await?;
    client.close().await
}

async fn request_response() -> Result {
    let (mut client, mut server) = (Client::new().await?, Client::new().await?);
    let requests = fresh();
    let mut serving = server.receiver(requests.as_str(), 10).await?;
    let mut answers = relay(&mut server).await?;
    let mut replies = client.receiver(Source::builder().dynamic(true).build(), 10).await?;
    let reply_to = replies.source().as_ref().and_then(|source| source.address.clone());
    let reply_to = reply_to.expect("the address of the dynamic source");
    let mut sender = client.sender(&requests).await?;
    for number in 0..10u64 {
        let properties = Properties {
            reply_to: Some(reply_to.clone()),
            correlation_id: Some(number.into()),
            ..Default::default()
        };
        let request = Message::builder().properties(properties).value("request".to_string());
        send(&mut sender, request.build()).await?;
        let request = take(&mut serving).await?;
        soon("accept", serving.accept(&request)).await?;
        let asked = request.message().properties.clone().expect("properties");
        let mut answer = addressed(&asked.reply_to.expect("reply-to"), "answer");
        answer.properties.get_or_insert_default().correlation_id = asked.correlation_id;
        send(&mut answers, answer).await?;
        let reply = take(&mut replies).await?;
        soon("accept", replies.accept(&reply)).await?;
        let got = reply.message().properties.clone().expect("properties");
        assert_eq!(got.correlation_id, Some(number.into()));
    }
    server.close().await?;
    client.close().await
}

async fn same_name() -> Result {
    let mut client = Client::new().await?;
    let queue = fresh();
    // In another session: fe2o3-amqp itself refuses one name twice in one session.
    let mut session = soon("begin", Session::begin(&mut client.connection)).await?;
    let receiver = Receiver::attach(&mut session, "same", queue.as_str());
    let mut receiver = soon("attach", receiver).await?;
    let sender = Sender::attach(&mut client.session, "same", queue.as_str());
    send(&mut soon("attach", sender).await?, Message::from("x".to_string())).await?;
    expect(&mut receiver, &["x"]).await?;
    soon("end", session.end()).await?;
    client.close().await
}

async fn windows() -> Result {
    let mut client = Client::new().await?;
    let texts = texts(40);
    for window in [1, 2, 7, 2048] {
        let queue = client.filled(&refs(&texts)).await?;
        let begin = Session::builder().incoming_window(window).begin(&mut client.connection);
        let mut session = soon("begin", begin).await?;
        let receiver = Receiver::attach(&mut session, fresh(), queue.as_str());
        let mut receiver = soon("attach", receiver).await?;
        expect(&mut receiver, &refs(&texts)).await?;
        soon("close", receiver.close()).await?;
        soon("end", session.end()).await?;
    }
    client.close().await
}

async fn many_links() -> Result {
    let mut client = Client::new().await?;
    let mut links = Vec::new();
    for _ in 0..100 {
        let queue = fresh();
        links.push((client.receiver(queue.as_str(), 1).await?, client.sender(&queue).await?));
    }
    for (receiver, sender) in &mut links {
        send(sender, Message::from("x".to_string())).await?;
        expect(receiver, &["x"]).await?;
    }
    client.close().await
}
