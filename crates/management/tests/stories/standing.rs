//! Why is this queue not moving?

use crate::desk::{Desk, ask, consumer};
use mochila_broker::{BatchBuilder, MessageMeta};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Message, Value};

/// Puts messages into a queue.
pub(crate) fn fill(desk: &Desk, name: &str, messages: u32) {
    let queue = desk.broker.queue(name).unwrap();
    let mut builder = BatchBuilder::new();
    for number in 0..messages {
        let bytes = Message::of_value(number).to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        builder.push_owned(bytes, &sections, MessageMeta::default());
    }
    let batch = builder.finish(&[], desk.broker.budget()).unwrap();
    let (enqueued, wakeups) = queue.enqueue(desk.now, batch);
    assert_eq!(enqueued.accepted, messages);
    wakeups.perform();
}

fn not_moving(desk: &mut Desk) -> Option<String> {
    desk.read("queue", "q", "notMoving").as_str().map(str::to_owned)
}

#[test]
fn an_empty_queue_raises_no_question() {
    let mut desk = Desk::new();
    desk.create("q");
    assert_eq!(not_moving(&mut desk), None);
    assert_eq!(desk.read("queue", "q", "holders"), Value::List(Vec::new()));
}

#[test]
fn nobody_consumes_and_somebody_who_only_browses_does_not_count() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 1);
    let (record, _) = desk.connect("viewer");
    let mut browser = consumer("b", "q");
    browser.browsing = true;
    record.enter_link(0, browser).credit.set(10);
    assert_eq!(not_moving(&mut desk).as_deref(), Some("nobody consumes from it"));
}

#[test]
fn the_consumer_that_grants_no_credit_is_named() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 3);
    let (record, _) = desk.connect("slow");
    let link = record.enter_link(5, consumer("l", "q"));
    link.without_credit_since_ms.set(desk.now.mono_ms);
    link.unsettled.set(2);
    desk.pass(12_000);
    assert_eq!(
        not_moving(&mut desk).as_deref(),
        Some(
            "no consumer has credit; link/1.5 at 127.0.0.1:40001 has had none for 12000 ms and \
             holds 2 messages unsettled"
        )
    );
    link.credit.set(1);
    assert_eq!(not_moving(&mut desk), None, "it will be served any moment");
}

#[test]
fn the_consumer_that_settles_nothing_is_named_with_what_it_holds() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 3);
    let (record, bell) = desk.connect("stuck");
    let queue = desk.broker.queue("q").unwrap();
    let id = desk.subscribe(&queue, &bell, 1);
    assert_eq!(desk.take(&queue, id, 10), 3);
    let link = record.enter_link(1, consumer("l", "q"));
    link.credit.set(7);
    link.unsettled.set(3);
    assert_eq!(
        not_moving(&mut desk).as_deref(),
        Some(
            "all 3 messages are with consumers that have not settled them; link/1.1 at \
             127.0.0.1:40001 holds 3"
        )
    );
    assert_eq!(desk.read("queue", "q", "unackedMessages"), Value::Ulong(3));
    link.unsettled.set(2);
    assert_eq!(
        not_moving(&mut desk).as_deref(),
        Some(
            "all 3 messages are with consumers that have not settled them, or in transactions that \
             have not ended (1); link/1.1 at 127.0.0.1:40001 holds 2"
        )
    );
    link.unsettled.set(0);
    let transacted = "all 3 messages are in transactions that have not ended";
    assert_eq!(not_moving(&mut desk).as_deref(), Some(transacted), "nobody is blamed");
    link.unsettled.set(3);
    let told = desk.tell(ask("READ").kind("queue").name("q"));
    let holders = told.map().get("holders").and_then(Value::as_list).unwrap().to_vec();
    let holder = holders[0].as_map().unwrap();
    assert_eq!(holder.get("link"), Some(&"link/1.1".into()));
    assert_eq!(holder.get("process"), Some(&"stuck".into()));
    assert_eq!(holder.get("unsettled"), Some(&Value::Ulong(3)));
}
