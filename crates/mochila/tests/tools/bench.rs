//! `bench`.

use std::process::Command;

use crate::broker::{Broker, Ran, scratch};

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
fn the_benchmark_measures_the_queue_that_it_was_asked_for() {
    let broker = Broker::start();
    let grouped = "node:{x-declare:{arguments:{qpid.group_header_key:g,qpid.shared_msg_group:1}}}";
    broker.ok(&format!("bench -m 100 --send-arg=--group-key=g --receive-option {grouped}"));
    assert!(broker.ok("config queues").contains("--group-header=g --shared-groups"));
    let numbered = "node:{x-declare:{arguments:{qpid.queue_msg_sequence:seqno}}}";
    broker.ok(&format!("bench -m 100 --create-option {numbered}"));
    let queues = broker.ok("config queues");
    assert!(!queues.contains("--group-header"), "{queues}");
    assert_eq!(queues.matches("seqno").count(), 1, "{queues}");
    assert!(!queues.contains("benchmark-ready"), "what only the benchmark needs goes with it");
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
    let small = "--backlogs 10,50 --unsettled 1,20 --groups 1,20 --bindings 1,20";
    let scaling = bench(&format!("scaling -m 200 --repeat 1 --no-timestamp {small}"));
    for ratio in ["backlog 50 / backlog 10", "unsettled 20 / unsettled 1", "groups 20 / groups 1"] {
        assert!(scaling.contains(ratio), "{scaling}");
    }
    assert!(scaling.contains("bindings 20 / bindings 1"), "{scaling}");
    assert!(scaling.contains("blocked groups 20 / blocked groups 1"), "{scaling}");
}
