//! What `send` and `receive` do with messages.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::broker::{Broker, finished, scratch};

#[test]
fn messages_of_a_receiver_that_was_killed_are_marked_as_delivered_before() {
    let broker = Broker::start();
    broker.ok("send -a marked -m 3");
    let mut killed = broker.start_tool("receive -a marked -f --ack-frequency 0");
    lines(&mut killed)();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let received = broker.ok("receive -a marked -m 3 --timeout 10 --print-headers yes");
    assert_eq!(received.matches("Redelivered").count(), 3, "{received}");
}

/// The lines that a tool prints, one at each call.
fn lines(tool: &mut Child) -> impl FnMut() -> String + use<> {
    let mut out = BufReader::new(tool.stdout.take().unwrap());
    move || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    }
}

#[test]
fn a_receiver_that_has_come_back_may_have_lost_any_group() {
    let broker = Broker::start();
    let port = broker.server.port();
    let reconnect = "--connection-options '{reconnect: true, reconnect-interval-max: 0.05}'";
    let mut receiver =
        broker.start_tool(&format!("receive -a q -f --print-lost-groups {reconnect}"));
    let mut line = lines(&mut receiver);
    broker.ok("send -a q --content-string before");
    assert_eq!(line(), "before\n");
    broker.server.stop();
    let again = Broker::start_on(port);
    assert_eq!(line(), "Lost groups, which are not named\n");
    again.ok("send -a q --content-string after");
    assert_eq!(line(), "after\n");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn a_receiver_prints_which_of_its_groups_have_gone_to_others() {
    let broker = Broker::start();
    broker.ok(
        "config add queue q --group-header=g --shared-groups --argument qpid.group_rebalance=1",
    );
    let mut first = broker.start_tool("receive -a q -f --print-lost-groups");
    let mut line = lines(&mut first);
    broker.ok("send -a q -P g=x --content-string one");
    assert_eq!(line(), "one\n");
    let mut second = broker.start_tool("receive -a q -f");
    // Groups are shared out again, so the other one gets it sooner or later. Of each message this
    // one prints a line: what is in it, or that the other one has got it.
    let mut heard = String::from("more\n");
    for _ in 0..1_000 {
        if heard != "more\n" {
            break;
        }
        broker.ok("send -a q -P g=x --content-string more");
        heard = line();
    }
    assert_eq!(heard, "Lost groups: x\n");
    for tool in [&mut first, &mut second] {
        tool.kill().unwrap();
        tool.wait().unwrap();
    }
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
