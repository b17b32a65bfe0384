//! The tools under their old names.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::broker::{Broker, finished, scratch, words};

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
