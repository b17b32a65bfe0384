//! How fast messages move, when they wait, and when they end.

use crate::broker::{Broker, Ran, finished};

#[test]
fn a_queue_smaller_than_the_acknowledgement_frequency_does_not_stall() {
    let broker = Broker::start();
    broker.ok("config add queue small --max-queue-count=50");
    let sender = broker.start_tool("send -a small -m 500");
    let received = broker.ok("receive -a small -m 500 --timeout 30 --print-content yes");
    assert_eq!(received.lines().count(), 500);
    assert!(Ran::from(sender.wait_with_output().unwrap()).success);
}

#[test]
fn large_messages_are_held_back_and_not_rejected() {
    let broker = Broker::start();
    // A queue takes 100 MiB by default, and holds senders back above 80.
    let sender = broker.start_tool("send -a wide -m 15 --content-size 10000000");
    std::thread::sleep(std::time::Duration::from_millis(300));
    broker
        .ok("receive -a wide -m 15 --timeout 30 --print-content no --capacity 1 --ack-frequency 1");
    let sent = Ran::from(sender.wait_with_output().unwrap());
    assert!(sent.success, "{}", sent.stderr);
}

#[test]
fn a_receiver_that_outruns_the_broker_does_not_take_a_pause_for_the_end() {
    let broker = Broker::start();
    broker.ok("send -a long -m 50000 --content-size 8");
    // Each time the receiver has nothing left it asks whether that was all.
    for _ in 0..5 {
        let received = broker.ok("receive -a long -m 10000 --capacity 7 --print-content yes");
        assert_eq!(received.lines().count(), 10_000);
    }
    assert_eq!(broker.ok("receive -a long"), "");
}

#[test]
fn the_end_of_the_stream_stops_a_receiver_that_waits_for_ever() {
    let broker = Broker::start();
    let receiver = broker.start_tool("receive -a q --forever --verify-sequence");
    broker.ok("send -a q -m 3 --content-string x --send-eos 1");
    let received = finished(receiver);
    assert!(received.success, "{}", received.stderr);
    assert_eq!(received.stdout, "x\nx\nx\n");
}

#[test]
fn a_receiver_says_when_it_is_ready_and_answers_where_replies_are_wanted() {
    let broker = Broker::start();
    let echo =
        broker.start_tool("receive -a requests -m 3 -f --ready-address ready --print-content no");
    broker.ok("receive -a ready -m 1 --timeout 10");
    broker.ok("send -a requests -m 3 --reply-to answers --content-string ping");
    assert!(finished(echo).success);
    assert_eq!(broker.ok("receive -a answers -m 3 --timeout 10"), "ping\nping\nping\n");
}

#[test]
fn a_small_window_and_a_credit_of_one_do_not_stall() {
    let broker = Broker::start();
    let receiver = broker.start_tool("receive -a q -m 500 -f --capacity 1 --ack-frequency 1");
    broker.ok("send -a q -m 500 --capacity 1 --content-string x");
    let received = finished(receiver);
    assert!(received.success, "{}", received.stderr);
    assert_eq!(received.stdout.lines().count(), 500);
}

#[test]
fn both_tools_go_on_when_the_broker_comes_back() {
    let broker = Broker::start();
    let port = broker.server.port();
    let reconnect = "--connection-options '{reconnect: true, reconnect-interval-max: 0.05}'";
    let receiver = broker.start_tool(&format!("receive -a q -f --print-content no {reconnect}"));
    let sender =
        broker.start_tool(&format!("send -a q -m 150 --send-rate 300 --send-eos 1 {reconnect}"));
    std::thread::sleep(std::time::Duration::from_millis(150));
    broker.server.stop();
    let again = Broker::start_on(port);
    for tool in [sender, receiver] {
        let ran = finished(tool);
        assert!(ran.success, "{}", ran.stderr);
    }
    drop(again);
}

#[test]
fn rates_hold_messages_back_on_both_sides() {
    let broker = Broker::start();
    let start = std::time::Instant::now();
    broker.ok("send -a q -m 21 --send-rate 200 --content-string x");
    assert!(start.elapsed().as_millis() >= 100);
    let start = std::time::Instant::now();
    let printed = broker.ok("receive -a q -m 21 --receive-rate 200");
    assert_eq!(printed.lines().count(), 21);
    assert!(start.elapsed().as_millis() >= 100);
}
