//! What strangers leave in the log.

#![allow(clippy::unwrap_used, reason = "test code")]

mod harness;

use harness::{Client, socket, start, wait_until};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

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
    fn about(&self, what: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(what)).map(Into::into).collect()
    }
}

/// The only test of this file: a subscriber is for the whole process.
#[test]
fn a_port_scanner_leaves_one_line_for_those_who_want_to_debug_and_none_for_others() {
    let lines = Lines::default();
    let writer = lines.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let server = start();
    let scanners: Vec<String> =
        (0..10).map(|_| socket(&server).local_addr().unwrap().to_string()).collect();
    let mut babbler = socket(&server);
    let babbler_address = babbler.local_addr().unwrap().to_string();
    babbler.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    drop(babbler);
    // Whoever is served now came after them.
    Client::connect(&server).close();
    wait_until("they are gone", || server.connections() == 0);
    for scanner in scanners.iter().chain([&babbler_address]) {
        let about = lines.about(scanner);
        assert_eq!(about.len(), 1, "{about:?}");
        assert!(about[0].contains("DEBUG"), "{about:?}");
    }

    let mut client = Client::connect(&server);
    let to = client.sender("q");
    (0..100).for_each(|n| client.send(to, &n.to_string()));
    client.wait_for_outcomes(to);
    let address = client.socket.local_addr().unwrap().to_string();
    client.close();
    assert!(lines.about(&address).len() <= 4, "never a line per message");
}
