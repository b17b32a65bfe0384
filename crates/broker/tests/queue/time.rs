//! Messages expire wherever they stand.

use crate::bench::{QueueBench, message};

fn with_ttl(text: &str, ttl_ms: u32) -> mochila_wire::Message {
    let mut message = message(text);
    message.header_mut().ttl = Some(ttl_ms);
    message
}

#[test]
fn a_message_with_a_short_ttl_expires_behind_one_with_a_long_one() {
    let mut bench = QueueBench::default();
    bench.send_messages(vec![message("first"), with_ttl("long", 60_000), with_ttl("short", 100)]);
    bench.pass(200);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_ttl), (2, 1));
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["first", "long"]);
}

#[test]
fn messages_expire_by_themselves_although_nobody_comes() {
    let mut bench = QueueBench::default();
    bench.send_messages((0..10_000).map(|n| with_ttl("x", 1_000 + n % 500)).collect());
    let due = bench.broker.next_timeout_ms().unwrap();
    assert!(due >= bench.now.mono_ms + 900 && due <= bench.now.mono_ms + 1_008, "{due}");
    for _ in 0..20 {
        bench.pass(100);
    }
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_ttl), (0, 10_000));
    assert_eq!(bench.broker.next_timeout_ms(), None);
}

#[test]
fn an_expired_message_is_neither_delivered_nor_counted_as_acquired() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send_messages(vec![with_ttl("a", 10), message("b"), with_ttl("c", 10)]);
    // Time has passed, but the timer has not fired yet.
    bench.now = bench.now.after(11);
    assert_eq!(bench.take(consumer, 10).texts, ["b"]);
    let statistics = bench.statistics();
    assert_eq!((statistics.acquires, statistics.discards_ttl), (1, 2));
    assert_eq!((statistics.msg_depth, statistics.unacked_messages), (1, 1));
}

#[test]
fn a_browser_does_not_see_expired_messages() {
    let mut bench = QueueBench::default();
    let browser = bench.browser();
    bench.send_messages(vec![with_ttl("a", 10), message("b")]);
    bench.now = bench.now.after(11);
    assert_eq!(bench.take(browser, 10).texts, ["b"]);
}

#[test]
fn a_message_that_is_being_dealt_with_expires_only_when_it_comes_back() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send_messages(vec![with_ttl("a", 100), with_ttl("b", 100), with_ttl("c", 10_000)]);
    let positions = bench.take(consumer, 3).positions();
    bench.pass(200);
    assert_eq!(bench.statistics().msg_depth, 3);
    bench.accept(consumer, &positions[..1]);
    bench.release(consumer, &positions[1..]);
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_ttl, statistics.releases), (1, 1, 2));
    bench.pass(10_000);
    assert_eq!(bench.statistics().discards_ttl, 2);
}

#[test]
fn the_ttl_that_goes_out_is_what_is_left() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    bench.send_messages(vec![with_ttl("a", 1_000)]);
    bench.pass(300);
    let (_, message) = bench.receive(consumer);
    assert_eq!(message.header.unwrap().ttl, Some(700));
}

#[test]
fn a_message_expires_at_its_absolute_time_too() {
    let mut bench = QueueBench::default();
    let mut message = message("a");
    let expiry = bench.now.wall_ms + 500;
    message.properties_mut().absolute_expiry_time = Some(mochila_wire::Timestamp(expiry));
    bench.send_messages(vec![message]);
    bench.pass(400);
    assert_eq!(bench.statistics().msg_depth, 1);
    bench.pass(120);
    assert_eq!(bench.statistics().discards_ttl, 1);
}
