//! The tools as processes, against a broker in this one.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::io::{PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use mochila_server::{Config, Server};

/// A broker on a port of the system's choice.
struct Broker {
    server: Server,
}

impl Broker {
    fn start() -> Self {
        Self::start_on(0)
    }

    fn start_on(port: u16) -> Self {
        let config = Config {
            port,
            interfaces: vec!["127.0.0.1".into()],
            auth: false,
            no_data_dir: true,
            worker_threads: 2,
            ..Config::default()
        };
        Self { server: Server::start(config).unwrap() }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    /// A tool, told where this broker is.
    fn tool(&self, line: &str) -> Command {
        let mut words = words(line).into_iter();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
        command.arg(words.next().unwrap()).args(["-b", &self.address()]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start_tool(&self, line: &str) -> Child {
        self.tool(line).spawn().unwrap()
    }

    fn run(&self, line: &str) -> Ran {
        Ran::from(self.tool(line).output().unwrap())
    }

    /// Runs a tool that has to succeed; what it printed.
    fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert!(ran.success, "{line}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    }

    /// Runs a tool that has to fail; what it complained about.
    fn fails(&self, line: &str) -> String {
        let ran = self.run(line);
        assert!(!ran.success, "{line} did not fail: {}", ran.stdout);
        ran.stderr
    }
}

/// What a process did.
struct Ran {
    success: bool,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            success: output.status.code() == Some(0),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The words of a command line, some of them between single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A pipe that nobody reads any more.
fn unread() -> PipeWriter {
    let (_, writer) = std::io::pipe().unwrap();
    writer
}

fn finished(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

/// A directory of this test's own.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mochila-tools-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

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
fn the_lines_of_an_existing_script_run_unchanged_through_the_links() {
    let broker = Broker::start();
    let address = broker.address();
    let directory = scratch("links");
    let linking = Command::new(env!("CARGO_BIN_EXE_mochila"))
        .args([Path::new("link-tools"), &directory])
        .status();
    assert!(linking.unwrap().success());
    let start = |line: &str| {
        let words = words(&line.replace("localhost:8888", &address));
        Command::new(directory.join(&words[0]))
            .args(&words[1..])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let added = finished(start(
        "qpid-config -b localhost:8888 add queue srcQ1 --max-queue-size=1200000000 \
         --max-queue-count=4000000 --flow-stop-size=0 --flow-stop-count=0",
    ));
    assert!(added.success && added.stdout.is_empty(), "{}", added.stderr);
    let receiver = start(
        "qpid-receive -b localhost:8888 -a srcQ1 -f -m 4000 --capacity 2000 --ack-frequency 1000 \
         --print-content no --report-total",
    );
    let sender = "qpid-send -b localhost:8888 -a srcQ1 -m 2000 --content-size 300 --capacity 2000 \
                  --report-total --sequence no --timestamp no";
    let senders = [start(sender), start(sender)];
    for sender in senders {
        let ran = finished(sender);
        assert!(ran.success, "{}", ran.stderr);
        assert!(ran.stdout.starts_with("tp(m/s)\n"), "{}", ran.stdout);
    }
    let received = finished(receiver);
    assert!(received.success, "{}", received.stderr);
    let lines: Vec<&str> = received.stdout.lines().collect();
    assert_eq!(lines[0], "tp(m/s)\tl-min\tl-max\tl-avg");
    assert!(lines[1].parse::<u64>().unwrap() > 0);
    let listed = finished(start("qpid-config -b localhost:8888 queues"));
    assert!(listed.stdout.contains(
        "srcQ1       --max-queue-size=1200000000 --max-queue-count=4000000 --flow-stop-size=0 \
         --flow-stop-count=0\n"
    ));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn content_is_printed_in_the_order_in_which_it_was_sent() {
    let broker = Broker::start();
    broker.ok("send -a q -m 2 --content-string first");
    broker.ok("send -a q --content-string second");
    assert_eq!(broker.ok("receive -a q"), "first\nfirst\nsecond\n");
    assert_eq!(broker.ok("receive -a q"), "", "nothing was left");
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
fn the_end_of_the_stream_stops_a_receiver_that_waits_for_ever() {
    let broker = Broker::start();
    let receiver = broker.start_tool("receive -a q --forever --verify-sequence");
    broker.ok("send -a q -m 3 --content-string x --send-eos 1");
    let received = finished(receiver);
    assert!(received.success, "{}", received.stderr);
    assert_eq!(received.stdout, "x\nx\nx\n");
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

#[test]
fn reports_come_in_between_and_in_the_end() {
    let broker = Broker::start();
    let report = broker.ok("send -a q -m 10 --report-every 4 --report-total");
    assert_eq!(report.lines().count(), 4);
    let report = broker.ok("receive -a q --print-content no --report-total --report-header no");
    assert_eq!(report.trim_end().split('\t').count(), 4, "{report}");
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

#[test]
fn failures_name_what_and_why_on_standard_error() {
    let broker = Broker::start();
    for (line, expected) in [
        ("send -a 'q; {oops'", "Failed: AddressError: Bad key-value pair, expected ':'"),
        ("send -a 'q; {delete: always}'", "Failed: AddressError: Delete policies not supported"),
        ("send -a q --tx 5", "Failed: OptionError: --tx: transactions are not supported"),
        ("send -a q --connection-options {shoe:9}", "Failed: OptionError: Invalid option: shoe"),
        ("receive -a 'q; {assert: always, node: {type: topic}}'", "Failed: "),
        ("config del queue nowhere", "Failed: NotFound: "),
        ("stat -q nowhere", "Failed: NotFound: "),
        ("config dance", "Failed: OptionError: 'dance' is not a command"),
    ] {
        let failure = broker.fails(line);
        assert!(failure.starts_with(expected), "{line}: {failure}");
    }
    let nobody = Command::new(env!("CARGO_BIN_EXE_mochila"))
        .args(["send", "-b", "127.0.0.1:1", "-a", "q"])
        .output();
    let nobody = Ran::from(nobody.unwrap());
    assert!(
        nobody.stderr.starts_with("Failed: ConnectionError: 127.0.0.1:1: "),
        "{}",
        nobody.stderr
    );
}

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
    broker.ok("config purge q2 2");
    broker.ok("config purge q2");
    broker.ok("config del queue q2");
    broker.ok("send -a q1");
    broker.ok("config del queue q1 --force");
    let none = broker.run("config queues");
    assert!(!none.success && none.stdout.is_empty() && none.stderr.is_empty());
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
    broker.ok("config move q other 1 --filter 'red IS NULL'");
    assert_eq!(
        broker.fails("config move q small"),
        "Failed: LimitExceeded: queue 'small' took 2 messages and no more: the queue holds as many \
         messages as it may\n"
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

#[test]
fn the_benchmark_prints_its_table_and_a_summary_of_several_clients() {
    let broker = Broker::start();
    let table = broker.ok("bench -m 200 -s 2 -r 2 -q 2 --content-size 50");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "send-tp\trecv-tp\tl-min\tl-max\tl-avg\ttotal-tp");
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[1].split('\t').count(), 6);
    assert_eq!(lines[2].split('\t').count(), 5);
    let summary = broker.ok("bench -m 100 -s 2 --summarize --no-report-header --repeat 2");
    assert_eq!(summary.lines().count(), 2);
    let drained = broker.ok("bench -m 100 --fill-drain --no-timestamp");
    assert_eq!(drained.lines().next(), Some("send-tp\trecv-tp"));
}

#[test]
fn a_scenario_starts_a_broker_of_its_own_and_writes_figures() {
    let directory = scratch("bench");
    let path = directory.join("funnel.json");
    let output = Command::new(env!("CARGO_BIN_EXE_mochila"))
        .args(["bench", "funnel", "-m", "500", "--repeat", "2", "--worker-threads", "2", "--json"])
        .arg(&path)
        .output();
    let ran = Ran::from(output.unwrap());
    assert!(ran.success, "{}", ran.stderr);
    assert!(ran.stdout.contains("broker CPU us/msg"), "{}", ran.stdout);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["scenario"], "funnel");
    assert_eq!(report["figures"]["end to end msg/s"]["runs"].as_array().unwrap().len(), 2);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_kind_of_queue_is_measured_beside_the_plain_one() {
    let bench = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
        let ran = Ran::from(command.arg("bench").args(line.split(' ')).output().unwrap());
        assert!(ran.success, "{line}: {}", ran.stderr);
        ran.stdout
    };
    let groups = bench("groups -m 300 --repeat 1 --no-timestamp");
    assert!(groups.contains("groups / plain"), "{groups}");
    let selectors = bench("selectors -m 300 --repeat 1 --no-timestamp");
    assert!(selectors.contains("ten selectors / plain"), "{selectors}");
    let small = "--backlogs 10,50 --unsettled 1,20 --groups 1,20";
    let scaling = bench(&format!("scaling -m 200 --repeat 1 --no-timestamp {small}"));
    for ratio in ["backlog 50 / backlog 10", "unsettled 20 / unsettled 1", "groups 20 / groups 1"] {
        assert!(scaling.contains(ratio), "{scaling}");
    }
    assert!(scaling.contains("blocked groups 20 / blocked groups 1"), "{scaling}");
}

#[test]
fn a_user_is_added_with_the_password_from_standard_input() {
    let directory = scratch("users");
    let users = directory.join("users");
    let run = |args: &[&str], input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mochila"))
            .arg("user")
            .args(args)
            .arg("--users-file")
            .arg(&users)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        finished(child)
    };
    let added = run(&["add", "ann"], "secret\n");
    assert!(added.success, "{}", added.stderr);
    assert!(!std::fs::read_to_string(&users).unwrap().contains("secret"));
    assert!(!run(&["add", "bob"], "\n").success, "an empty password is none");
    assert_eq!(run(&["list"], "").stdout, "ann\n");
    let config = Config {
        port: 0,
        interfaces: vec!["127.0.0.1".into()],
        auth: true,
        users_file: Some(users.clone()),
        no_data_dir: true,
        worker_threads: 1,
        ..Config::default()
    };
    let server = Server::start(config).unwrap();
    let send = |user: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_mochila"))
            .args(["send", "-a", "q", "-b", &format!("{user}@127.0.0.1:{}", server.port())])
            .output();
        Ran::from(output.unwrap())
    };
    let right = send("ann/secret");
    assert!(right.success, "{}", right.stderr);
    let wrong = send("ann/guess");
    assert_eq!(
        wrong.stderr,
        "Failed: AuthenticationFailure: the broker wants a user name and password, or refused those given\n"
    );
    assert!(run(&["del", "ann"], "").success);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_tool_whose_output_nobody_reads_ends_quietly_and_fails() {
    let broker = Broker::start();
    broker.ok("config add queue q");
    broker.ok("send -a q -m 3 --content-string x");
    for line in [
        "receive -a q -m 1",
        "receive -a q --report-total --print-content no",
        "send -a q --report-total",
        "send -a q -m 2 --report-every 1",
        "config",
        "config queues",
        "config list queue",
        "stat -q",
        "stat -g",
        "stat --help",
        "bench -m 1",
    ] {
        let ran = broker.tool(line).stdout(unread()).output().unwrap();
        assert_eq!(ran.status.code(), Some(1), "{line}");
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{line}");
    }
}

#[test]
fn a_tool_whose_complaints_nobody_reads_fails_all_the_same() {
    let broker = Broker::start();
    broker.ok("config add queue full --max-queue-count=1 --limit-policy=reject");
    for (line, status) in [
        ("config del queue none", 1),
        ("stat", 1),
        ("receive -a 'none; {assert: always, node: {type: topic}}'", 1),
        ("send -a full -m 2 --connection-options {raise-rejected:False}", 0),
        ("bench -m 1 --verbose", 0),
    ] {
        let ran = broker.tool(line).stderr(unread()).output().unwrap();
        assert_eq!(ran.status.code(), Some(status), "{line}");
    }
}
