//! What `send` and `receive` do with messages.

use std::io::Write;
use std::process::Stdio;

use crate::broker::{Broker, finished, scratch};

#[test]
fn messages_of_a_receiver_that_was_killed_are_marked_as_delivered_before() {
    let broker = Broker::start();
    broker.ok("send -a marked -m 3");
    let mut killed = broker.start_tool("receive -a marked -f --ack-frequency 0");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(killed.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let received = broker.ok("receive -a marked -m 3 --timeout 10 --print-headers yes");
    assert_eq!(received.matches("Redelivered").count(), 3, "{received}");
}

#[test]
fn content_is_printed_in_the_order_in_which_it_was_sent() {
    let broker = Broker::start();
    broker.ok("send -a q -m 2 --content-string first");
    broker.ok("send -a q --content-string second");
    assert_eq!(broker.ok("receive -a q"), "first\nfirst\nsecond\n");
    assert_eq!(broker.ok("receive -a q"), "", "nothing was left");
}

/// It is said before any of it is made.
#[test]
fn content_that_no_message_can_hold_is_refused() {
    let broker = Broker::start();
    for line in ["send -a q --content-size 5000000000", "bench --content-size 20000000000000000000"]
    {
        let failure = broker.fails(line);
        assert!(failure.starts_with("Failed: OptionError: "), "{failure}");
        assert!(failure.contains("one message has at most 4294967295 bytes"), "{failure}");
        assert_eq!(failure.lines().count(), 1, "{failure}");
    }
}

#[test]
fn headers_and_properties_arrive_as_they_were_given() {
    let broker = Broker::start();
    broker.ok("send -a q --durable yes --ttl 60000 --priority 7 --id m1 --correlation-id c1 \
         --user-id me --reply-to back -P colour=red -P size=5 -P big=true --sequence yes \
         --timestamp no --content-string x");
    let printed = broker.ok("receive -a q --print-headers yes --ignore-reply-to");
    for line in [
        "ReplyTo: back",
        "MessageId: m1",
        "CorrelationId: c1",
        "UserId: me",
        "Priority: 7",
        "Durable: true",
        "Properties: {big:True, colour:red, size:5, sn:1}",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is missing in {printed}");
    }
}

#[test]
fn content_may_be_a_map_or_the_lines_of_standard_input() {
    let broker = Broker::start();
    broker.ok("send -a q -M name=value -M empty");
    assert_eq!(
        broker.ok("receive -a q --print-object-type yes"),
        "[Object: map]\n{name:value, empty:<void>}\n"
    );
    let mut sender =
        broker.tool("send -a q --content-stdin").stdin(Stdio::piped()).spawn().unwrap();
    sender.stdin.take().unwrap().write_all("one\ntwo\n\nfour".as_bytes()).unwrap();
    assert!(finished(sender).success);
    assert_eq!(broker.ok("receive -a q"), "one\ntwo\n\nfour\n");
}

#[test]
fn a_gap_in_the_sequence_is_an_error() {
    let broker = Broker::start();
    broker.ok("send -a q -m 1");
    broker.ok("send -a q -P sn=5 --sequence no");
    let failure = broker.fails("receive -a q --verify-sequence");
    assert_eq!(failure, "Failed: SequenceError: Gap in sequence numbers 1-5\n");
}

#[test]
fn duplicates_are_left_out_where_that_is_asked_for() {
    let broker = Broker::start();
    broker.ok("send -a q -m 2 --content-string x");
    broker.ok("send -a q -m 3 --content-string y");
    assert_eq!(broker.ok("receive -a q --ignore-duplicates"), "x\nx\ny\n");
}

#[test]
fn groups_take_turns() {
    let broker = Broker::start();
    broker.ok("send -a q -m 6 --group-key g --group-size 2 --group-interleave 2 --sequence no \
         --timestamp no");
    let printed = broker.ok("receive -a q --print-headers yes --print-content no");
    let groups: Vec<&str> =
        printed.lines().filter_map(|line| line.strip_prefix("Properties: ")).collect();
    assert_eq!(
        groups,
        ["{g:GROUP-0}", "{g:GROUP-1}", "{g:GROUP-0}", "{g:GROUP-1}", "{g:GROUP-2}", "{g:GROUP-3}"]
    );
}

#[test]
fn a_browser_leaves_the_messages_where_they_are() {
    let broker = Broker::start();
    broker.ok("send -a q -m 3 --content-string x");
    for _ in 0..2 {
        assert_eq!(broker.ok("receive -a 'q; {mode: browse}'"), "x\nx\nx\n");
    }
    assert_eq!(broker.ok("receive -a q"), "x\nx\nx\n");
}

#[test]
fn messages_that_are_not_acknowledged_stay() {
    let broker = Broker::start();
    broker.ok("send -a q -m 2 --content-string x");
    broker.ok("receive -a q --ack-frequency 0");
    assert_eq!(broker.ok("receive -a q -m 1"), "x\n");
    assert_eq!(broker.ok("receive -a q"), "x\n", "only one was wanted, so only one was taken");
}

#[test]
fn a_queue_is_made_on_demand_as_the_address_describes_it() {
    let broker = Broker::start();
    broker.ok("send -a 'made; {create: always, node: {type: queue, x-declare: {arguments: \
         {qpid.max_count: 2, qpid.policy_type: reject}}}}' -m 2");
    let listed = broker.ok("config queues made");
    assert!(listed.contains("made        --max-queue-count=2\n"), "{listed}");
}

#[test]
fn a_large_message_goes_through_in_pieces() {
    let broker = Broker::start();
    broker.ok("send -a q --content-size 5000000");
    let printed = broker.ok("receive -a q");
    assert_eq!(printed.len(), 5_000_001);
}

#[test]
fn what_is_received_can_be_saved() {
    let broker = Broker::start();
    let directory = scratch("save");
    let path = directory.join("received.msg");
    broker.ok("send -a q -m 2 --content-string kept");
    broker.ok(&format!("receive -a q --print-content no --save-content {}", path.display()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept\nkept\n");
    std::fs::remove_dir_all(directory).unwrap();
}
