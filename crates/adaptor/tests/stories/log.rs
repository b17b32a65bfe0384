//! What peers leave in the log.

use crate::bench::raw::{receiving, sending};
use crate::bench::{Bench, Raw, bytes_of, text};
use mochila_broker::DeleteIf;
use mochila_wire::Symbol;
use mochila_wire::performative::{Attach, Open};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::subscriber::DefaultGuard;

/// The log of this thread, from informative lines on.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn collect() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .with_writer(move || writer.clone());
        (lines, tracing::subscriber::set_default(subscriber.finish()))
    }

    /// The lines since the last time.
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

/// A peer is refused or cut off, again and again: what the log says of it.
fn expect_bounded(what: &str, mut offend: impl FnMut(&mut Bench)) {
    let (lines, _guard) = Lines::collect();
    let mut bench = Bench::new();
    let mut offend_often = |bench: &mut Bench| {
        for _ in 0..200 {
            offend(bench);
            bench.cut_all();
            bench.forget_the_gone();
        }
        let lines = lines.take();
        lines.into_iter().filter(|line| line.contains(what)).collect::<Vec<_>>()
    };
    let first = offend_often(&mut bench);
    assert_eq!(first.len(), 120, "{what}");
    assert!(first[119].contains("more like it are only counted for a while"), "{}", first[119]);
    assert_eq!(offend_often(&mut bench), Vec::<String>::new());
    bench.advance(60_000);
    let next = offend_often(&mut bench);
    assert!(next[0].contains(" (280 more like it were not logged)"), "{}", next[0]);
    assert_eq!(next.len(), 120);
}

#[test]
fn links_that_are_refused_without_end_leave_some_lines_and_their_number() {
    expect_bounded("refusing a link", |bench| {
        let raw = bench.raw_begun();
        bench.say(raw, 0, &Attach { target: None, ..sending(0, "q") });
    });
}

#[test]
fn links_that_are_detached_without_end_leave_some_lines_and_their_number() {
    expect_bounded("detaching a link", |bench| {
        bench.raw_receiver("q", 0);
        bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
        bench.run();
    });
}

#[test]
fn malformed_frames_without_end_leave_some_lines_and_their_number() {
    expect_bounded("a connection ended", |bench| {
        let raw = bench.raw_opened();
        bench.say_bytes(raw, b"\0\0\0\x09\x02\0\0\0\xff");
    });
}

#[test]
fn sessions_that_end_for_a_fault_leave_some_lines_and_their_number() {
    expect_bounded("a session ended", |bench| {
        let raw = bench.raw_begun();
        let link = receiving(0, "q");
        bench.say(raw, 0, &link);
        bench.say(raw, 0, &Attach { name: "another".into(), ..link });
    });
}

#[test]
fn containers_that_come_a_second_time_leave_some_lines_and_their_number() {
    let alone = || Open {
        desired_capabilities: vec![Symbol::from_static("sole-connection-for-container")],
        ..Open::new("alone")
    };
    expect_bounded("the container is connected already", |bench| {
        let _: [Raw; 2] = [bench.raw_open(alone()), bench.raw_open(alone())];
    });
}

#[test]
fn answers_of_management_that_nobody_can_get_leave_one_line_a_minute() {
    let (lines, _guard) = Lines::collect();
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let ask = |bench: &mut Bench| {
        for _ in 0..3 {
            let mut request = text("");
            request.set_application_property("operation", "QUERY");
            request.properties_mut().reply_to = Some("no\nbody".into());
            bench.send(requests, &request);
        }
        lines.take().into_iter().filter(|line| line.contains("answer")).collect::<Vec<_>>()
    };
    let first = ask(&mut bench);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains("WARN") && first[0].contains("no\\nbody"), "{first:?}");
    bench.advance(60_000);
    let next = ask(&mut bench);
    assert!(next.len() == 1 && next[0].contains("(2 more like it"), "{next:?}");
}

#[test]
fn large_messages_that_there_is_no_file_for_leave_one_line_a_minute() {
    let (lines, _guard) = Lines::collect();
    let mut bench = Bench::new();
    bench.files.fill_up();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let send_some = |bench: &mut Bench| {
        for _ in 0..3 {
            bench.send_bytes(sender, &bytes_of(2 << 20), false);
        }
        lines.take().into_iter().filter(|line| line.contains("no file for it")).collect::<Vec<_>>()
    };
    let first = send_some(&mut bench);
    assert!(first.len() == 1 && first[0].contains("WARN"), "{first:?}");
    bench.advance(60_000);
    let next = send_some(&mut bench);
    assert!(next.len() == 1 && next[0].contains("(2 more like it"), "{next:?}");
}
