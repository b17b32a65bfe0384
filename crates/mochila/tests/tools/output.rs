//! What the tools print, and where nobody reads it.

use std::process::Command;

use crate::broker::{Broker, Ran, unread, words};

#[test]
fn reports_come_in_between_and_in_the_end() {
    let broker = Broker::start();
    let report = broker.ok("send -a q -m 10 --report-every 4 --report-total");
    assert_eq!(report.lines().count(), 4);
    let report = broker.ok("receive -a q --print-content no --report-total --report-header no");
    assert_eq!(report.trim_end().split('\t').count(), 4, "{report}");
}

#[test]
fn failures_name_what_and_why_on_standard_error() {
    let broker = Broker::start();
    for (line, expected) in [
        ("send -a 'q; {oops'", "Failed: AddressError: Bad key-value pair, expected ':'"),
        ("send -a 'q; {delete: always}'", "Failed: AddressError: Delete policies not supported"),
        ("send -a q --connection-options {shoe:9}", "Failed: OptionError: Invalid option: shoe"),
        ("receive -a 'q; {assert: always, node: {type: topic}}'", "Failed: "),
        ("config del queue nowhere", "Failed: NotFound: "),
        ("stat -q nowhere", "Failed: NotFound: "),
        ("config del queue 'a\nb'", r"Failed: NotFound: "),
        ("config dance", "Failed: OptionError: 'dance' is not a command"),
    ] {
        let failure = broker.fails(line);
        assert!(failure.starts_with(expected), "{line}: {failure}");
        assert_eq!(failure.lines().count(), 1, "{line}: {failure}");
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
fn what_is_wrong_with_a_command_line_is_one_line_too() {
    for (line, expected) in [
        ("send", "the following required arguments were not provided: --address <ADDRESS>"),
        ("send -a q --oops", "unexpected argument '--oops' found"),
        ("receive -a q --forver", "a similar argument exists: '--forever'"),
        ("send -a q --ttl soon", "invalid value 'soon' for '--ttl <msecs>'"),
        ("config --limit-policy hope", "[possible values: none, reject, block, "),
        ("stat", "the following required arguments were not provided: <--general|"),
        ("stat -q -c", "cannot be used with"),
        ("bench funel", "invalid value 'funel'"),
        ("serve --prto 3", "a similar argument exists: '--port'"),
        ("dance", "unrecognized subcommand 'dance'"),
        ("send -a q --ttl 'a\n\nb'", r"invalid value 'a b' for '--ttl"),
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_mochila")).args(words(line)).output().unwrap();
        assert_eq!(ran.status.code(), Some(1), "{line}");
        let failure = String::from_utf8(ran.stderr).unwrap();
        assert!(failure.starts_with("Failed: OptionError: "), "{line}: {failure}");
        assert!(failure.contains(expected), "{line}: {failure}");
        assert_eq!(failure.lines().count(), 1, "{line}: {failure}");
    }
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
    broker.ok("config add queue full --max-queue-count=1 --flow-stop-count=0");
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
