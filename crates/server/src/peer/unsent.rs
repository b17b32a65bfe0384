//! Output that the socket did not take yet.

use super::Traffic;
use std::io::{self, Write};

/// What was encoded but not written, because the socket was full.
///
/// While there is any, nothing more is taken from queues for this peer, so it stays small; when it
/// has gone, its memory goes too.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Writes `output` behind what is unsent, and keeps what the socket does not take.
    pub(super) fn send(&mut self, socket: &mut impl Write, output: &[u8]) -> Traffic {
        if output.is_empty() {
            return Traffic::Open;
        }
        if !self.is_empty() {
            // The socket is full, and will say so when it no longer is.
            self.bytes.extend_from_slice(output);
            return Traffic::Open;
        }
        match write(socket, output) {
            Ok(written) => {
                self.bytes.extend_from_slice(&output[written..]);
                Traffic::Open
            }
            Err(_) => Traffic::Lost,
        }
    }

    /// Writes what is unsent, as far as the socket takes it.
    pub(super) fn flush(&mut self, socket: &mut impl Write) -> Traffic {
        match write(socket, &self.bytes[self.written..]) {
            Ok(written) => {
                self.written += written;
                if self.written == self.bytes.len() {
                    *self = Self::default();
                }
                Traffic::Open
            }
            Err(_) => Traffic::Lost,
        }
    }
}

/// Writes once. A socket that takes less than it is given is full: asking again would only cost a
/// system call, and the reactor reports when there is room.
fn write(socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket with room for so many bytes.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = self.room.min(bytes.len());
            self.taken.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_socket_does_not_take_follows_in_order_when_there_is_room() {
        let mut socket = Narrow { room: 3, taken: Vec::new() };
        let mut unsent = Unsent::default();
        assert!(matches!(unsent.send(&mut socket, b"hello"), Traffic::Open));
        assert!(matches!(unsent.send(&mut socket, b" world"), Traffic::Open));
        assert_eq!((unsent.len(), socket.taken.as_slice()), (8, &b"hel"[..]));

        socket.room = 4;
        assert!(matches!(unsent.flush(&mut socket), Traffic::Open));
        assert!(!unsent.is_empty());
        socket.room = 100;
        assert!(matches!(unsent.flush(&mut socket), Traffic::Open));
        assert_eq!(socket.taken, b"hello world");
        assert!(unsent.is_empty());
        assert_eq!(unsent.bytes.capacity(), 0, "the memory is given back");
    }

    #[test]
    fn a_socket_with_room_is_written_to_at_once_and_nothing_is_kept() {
        let mut socket = Narrow { room: 100, taken: Vec::new() };
        let mut unsent = Unsent::default();
        assert!(matches!(unsent.send(&mut socket, b"hello"), Traffic::Open));
        assert!(unsent.is_empty());
        assert_eq!(unsent.bytes.capacity(), 0);
    }
}
