//! The end of a connection.

use crate::desk::Desk;
use mochila_net::TcpStream;
use std::io::{self, Read};
use std::net::Shutdown;

/// A connection that has said everything and waits for its peer to hang up.
///
/// Closing a socket while the peer still sends makes the system answer with a reset, and a reset can
/// overtake the close frame that says what was wrong. So only the sending side is closed; what the
/// peer still sends is read and thrown away, for a while.
#[derive(Debug)]
pub(super) struct Linger {
    until_ms: u64,
    patience_bytes: usize,
}

impl Linger {
    pub(super) fn begin(socket: &TcpStream, now_ms: u64) -> Self {
        // It fails if the peer is gone already, which the next read finds out.
        let _ = socket.shutdown(Shutdown::Write);
        Self { until_ms: now_ms + LINGER_MS, patience_bytes: LINGER_BYTES }
    }

    pub(super) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    /// Throws away what the peer has sent; true when there is nothing to wait for any more.
    pub(super) fn is_over(&mut self, socket: &mut TcpStream, desk: &mut Desk) -> bool {
        while desk.now.mono_ms < self.until_ms && self.patience_bytes > 0 {
            match socket.read(&mut desk.input) {
                Ok(0) => return true,
                Ok(read) => self.patience_bytes = self.patience_bytes.saturating_sub(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        true
    }
}

const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 4 << 20;
