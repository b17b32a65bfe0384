//! `config` and `stat`.

use crate::broker::{Broker, Ran, finished};

#[test]
fn queues_are_added_listed_counted_and_deleted() {
    let broker = Broker::start();
    broker.ok("config add queue q1 --max-queue-count=1000");
    broker.ok("config add queue q2");
    assert!(broker.fails("config add queue q1").starts_with("Failed: Conflict: "));
    let listed = broker.ok("config queues");
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], "Queue Name  Attributes");
    assert_eq!(lines[2], "q1          --max-queue-count=1000");
    assert_eq!(lines[3], "q2");
    assert_eq!(
        broker.ok("config"),
        "Total Exchanges: 5\n         direct: 2\n         fanout: 1\n        headers: 1\n          \
         topic: 1\n\n   Total Queues: 2\n        durable: 0\n    non-durable: 2\n"
    );
    broker.ok("send -a q2 -m 3");
    assert!(broker.fails("config del queue q2").contains("not empty"));
    assert_eq!(broker.ok("config purge q2 2"), "Purged 2 messages\n");
    assert_eq!(broker.ok("config purge q2"), "Purged 1 message\n");
    assert_eq!(broker.ok("config purge q2"), "Purged 0 messages\n");
    broker.ok("config del queue q2");
    broker.ok("send -a q1");
    broker.ok("config del queue q1 --force");
    assert_eq!(broker.fails("config queues"), "Failed: NotFound: there is no queue\n");
    let none = "Failed: NotFound: there is no exchange with 'nowhere' in its name\n";
    assert_eq!(broker.fails("config exchanges nowhere"), none);
}

#[test]
fn whoever_makes_a_queue_with_a_special_name_is_told_how_to_write_it() {
    let broker = Broker::start();
    let add = |name| broker.tool("config add queue").arg(name).output().map(Ran::from).unwrap();
    let made = add("a b/c;{}");
    assert!(made.success);
    assert_eq!(made.stderr, "Note: in addresses this name is written 'a b/c;{}'\n");
    let send = |address| broker.tool("send --content-string x -a").arg(address).status().unwrap();
    assert!(send("'a b/c;{}'").success());
    assert!(broker.ok("stat -q").contains("a b/c;{}"));
    let made = add("#1");
    assert!(made.success && made.stderr.contains("no address"), "{}", made.stderr);
}

#[test]
fn what_a_broker_cannot_do_is_said_in_a_sentence() {
    let broker = Broker::start();
    for (line, words) in [
        ("config reload-acl", "no access control list"),
        ("config add queue q --start-replica 127.0.0.1", "not replicated"),
        ("config shutdown", "stopped where it runs"),
        // This one is part of the test, and its log is not its own.
        ("config log", "does not say what it logs"),
        ("config log debug", "the log is not the node's own"),
    ] {
        let failure = broker.fails(line);
        assert!(failure.starts_with("Failed: NotImplemented: "), "{line}: {failure}");
        assert!(failure.contains(words), "{line}: {failure}");
    }
    let help = broker.ok("config --help");
    assert!(help.contains("reload-acl, shutdown                      not implemented"), "{help}");
}

#[test]
fn the_limits_of_a_queue_are_changed_while_it_is_in_use() {
    let broker = Broker::start();
    broker.ok("send -a q -m 3");
    broker.ok("config update queue q --max-queue-count=4 --flow-stop-count=0 --flow-stop-size=0");
    assert!(broker.ok("config queues").contains("--max-queue-count=4"));
    broker.ok("send -a q");
    assert!(broker.fails("send -a q").starts_with("Failed: MessageRejected: "));
    broker.ok("config update queue q --max-queue-count=5");
    broker.ok("send -a q");
    let failure = broker.fails("config update queue q --lvq-key=id");
    assert!(failure.contains("is not empty"), "{failure}");
    let failure = broker.fails("config update queue none --max-queue-count=5");
    assert!(failure.starts_with("Failed: NotFound: "), "{failure}");
    let failure = broker.fails("config update queue q");
    assert!(failure.starts_with("Failed: OptionError: "), "{failure}");
}

#[test]
fn what_was_set_is_taken_back() {
    let broker = Broker::start();
    let arguments = || {
        let listed = broker.ok("config queues q");
        let row = listed.lines().nth(2).unwrap_or_default();
        row.strip_prefix('q').unwrap_or(row).trim().to_owned()
    };
    broker.ok("config add queue q --limit-policy=ring --max-queue-count=5 --flow-stop-count=4");
    broker.ok("config update queue q --limit-policy=none");
    assert_eq!(arguments(), "--max-queue-count=5 --flow-stop-count=4");
    let failure = broker.fails("config update queue q --max-queue-count=3");
    assert!(failure.contains("must not be larger"), "{failure}");
    broker.ok("config update queue q --max-queue-count=3 --argument qpid.flow_stop_count");
    assert_eq!(arguments(), "--max-queue-count=3");
    broker.ok("config update queue q --argument max-count --lvq-key=");
    assert_eq!(arguments(), "");
    broker.ok("config update queue q --shared-groups --group-header=colour");
    broker.ok("config update queue q --argument qpid.shared_msg_group=0");
    assert_eq!(arguments(), "");
}

#[test]
fn a_queue_is_not_made_with_a_key_or_a_value_that_is_nothing() {
    let broker = Broker::start();
    for (line, words) in [
        ("--lvq-key=", "qpid.last_value_queue_key takes the name of a property, not ''"),
        ("--argument sequence-key=", "qpid.queue_msg_sequence takes a name in ASCII, not ''"),
        ("--argument sequence-key", "--argument sequence-key has no value"),
    ] {
        let failure = broker.fails(&format!("config add queue q {line}"));
        assert!(failure.contains(words), "{failure}");
    }
}

#[test]
fn the_groups_of_a_queue_are_shown_with_it() {
    let broker = Broker::start();
    broker.ok("config add queue q --group-header=colour --shared-groups");
    broker.ok("send -a q -P colour=red -m 2");
    broker.ok("send -a q -P colour=blue");
    let shown = broker.ok("stat -q q");
    let groups = shown.split("Message Groups:\n").nth(1).unwrap_or_default();
    let rows: Vec<Vec<&str>> =
        groups.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [["red", "2", "0", "-"], ["blue", "1", "0", "-"]], "{shown}");
    assert!(shown.contains("not-moving     nobody consumes"), "{shown}");
}

#[test]
fn messages_are_picked_by_a_selector_to_be_purged_or_moved() {
    let broker = Broker::start();
    broker.ok("config add queue small --max-queue-count 2");
    broker.ok("config add queue other");
    for properties in ["-P red=1", "", "-P red=2", "", "-P red=3"] {
        broker.ok(&format!("send -a q {properties}"));
    }
    broker.ok("config purge q 1 --filter 'red IS NOT NULL'");
    assert_eq!(broker.ok("config move q other 1 --filter 'red IS NULL'"), "Moved 1 message\n");
    assert_eq!(
        broker.fails("config move q small"),
        "Failed: NotMoved: queue 'small' took 2 messages and no more: the queue holds as many \
         messages as it may\n"
    );
    broker.ok("config add queue blue --argument 'qpid.filter=blue IS NOT NULL'");
    assert_eq!(
        broker.fails("config move q blue"),
        "Failed: NotMoved: queue 'blue' took 0 messages and no more: a filter or no-local of the \
         queue keeps the message out\n"
    );
    broker.ok("config redirect other small");
    assert!(broker.ok("stat -q other").contains("redirect-peer  small"));
    broker.ok("config redirect other");
    broker.ok("config move q other");
    let shown = broker.ok("receive -a other --print-content no --print-headers yes");
    assert_eq!(shown.matches("Properties:").count(), 2, "{shown}");
    assert!(shown.contains("red:3"), "{shown}");
    assert!(broker.fails("config purge q --filter 'red ='").contains("the selector is wrong"));
}

#[test]
fn messages_are_sent_on_to_an_exchange() {
    let broker = Broker::start();
    broker.ok("config add queue q --alternate-exchange amq.direct");
    broker.ok("config add queue red");
    broker.ok("config bind amq.direct red red");
    for (number, subject) in ["red", "blue", "red", "red"].into_iter().enumerate() {
        broker.ok(&format!("send -a q/{subject} -P n={number}"));
    }
    assert_eq!(broker.ok("config reroute q 1"), "Rerouted 1 message\n");
    // The blue one is passed by.
    assert_eq!(broker.ok("config reroute q 1 --exchange amq.direct"), "Rerouted 1 message\n");
    assert_eq!(
        broker.fails("config reroute q"),
        "Failed: NotRouted: only 1 message left queue 'q', others stay: no queue is bound for the \
         message\n"
    );
    let shown = broker.ok("stat -q q");
    let line = shown.lines().find(|line| line.contains("reroutes")).unwrap_or_default();
    assert_eq!(line.split_whitespace().nth(1), Some("3"), "{shown}");
    assert_eq!(
        broker
            .ok("receive -a red --print-content no --print-headers yes")
            .matches("Subject: red")
            .count(),
        3
    );
    let events = broker.ok("stat --events");
    assert!(events.contains("exchange=amq.direct"), "{events}");
}

#[test]
fn what_has_happened_is_shown_afterwards_and_heard_when_it_happens() {
    let broker = Broker::start();
    broker.ok("config add queue small --max-queue-count 10");
    let mut listener = broker.start_tool("receive -a $events -m 2 --timeout 60");
    broker.ok("send -a small -m 8");
    let shown = broker.ok("stat --events");
    let lines: Vec<&str> = shown.lines().collect();
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words, ["number", "time", "severity", "event", "details"]);
    let has = |event: &str, details: &str| {
        lines.iter().any(|line| line.contains(event) && line.contains(details))
    };
    assert!(has("queueDeclare", "queue=small"), "{shown}");
    assert!(has("queueThresholdCrossedUpward", "queue=small count=8"), "{shown}");
    while listener.try_wait().unwrap().is_none() {
        // Whoever connects is an event, so the listener hears something in the end.
        broker.ok("stat -g");
    }
    let heard = finished(listener);
    assert!(heard.success && heard.stdout.contains("event:"), "{}", heard.stdout);
}

#[test]
fn statistics_are_shown_of_the_broker_its_queues_connections_and_links() {
    let broker = Broker::start();
    broker.ok("send -a q -m 1500 --content-size 100");
    broker.ok("receive -a q -m 500 --print-content no");
    let mut waiting = broker.start_tool("receive -a other -f --ready-address ready");
    broker.ok("receive -a ready -m 1 --timeout 10");
    let queues = broker.ok("stat -q");
    let row = queues.lines().find(|line| line.trim_start().starts_with("q ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..4], ["q", "1.00k", "1.50k", "500"], "{queues}");
    let sorted = broker.ok("stat -q -S msg -L 1");
    assert_eq!(sorted.lines().count(), 4, "{sorted}");
    let connections = broker.ok("stat -c");
    assert!(connections.contains("ANONYMOUS"), "{connections}");
    assert!(connections.contains("mochila  "), "the program's name is shown: {connections}");
    let subscriptions = broker.ok("stat -u");
    assert!(subscriptions.contains(" other "), "{subscriptions}");
    let general = broker.ok("stat -g");
    assert!(general.starts_with("Broker Summary:\n"), "{general}");
    assert!(general.contains("total-enqueues"), "{general}");
    let queue = broker.ok("stat -q q");
    assert!(queue.contains("queue-depth                 1,000"), "{queue}");
    assert!(broker.ok("stat -m").contains("memoryUsedBytes"));
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
