//! Messages that are too large for memory, on their way in and on their way out.

use std::io;
use std::sync::Arc;

use mochila_broker::{LargeBody, Outcome, Settlement};
use mochila_engine::Delivery;

/// Makes files for messages that are too large for memory; the shell has them.
pub trait LargeFiles: Send + Sync {
    /// Makes an empty one.
    fn create(&self) -> io::Result<Box<dyn LargeFile>>;
}

/// A message that is still arriving.
pub trait LargeFile: Send {
    /// Adds what has arrived.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends the message: it is all there.
    fn finish(self: Box<Self>) -> Arc<dyn LargeBody>;
}

/// A delivery that is being sent piece by piece, because it does not fit one frame.
pub(crate) struct Departure {
    /// The patched head, and what of the message was in memory.
    memory: Vec<u8>,
    sent_of_memory: usize,
    /// The file and where to go on in it.
    file: Option<(Arc<dyn LargeBody>, u64)>,
    /// How the engine is told of it; its token is its position in the queue.
    pub(crate) delivery: Delivery<'static>,
    /// Its first frame is out.
    pub(crate) begun: bool,
}

impl Departure {
    /// A delivery that is all in memory: a copy, since the segment may not outlive the visit.
    pub(crate) fn in_memory(memory: Vec<u8>, delivery: Delivery<'static>) -> Departure {
        Departure { memory, sent_of_memory: 0, file: None, delivery, begun: false }
    }

    /// A delivery that begins with `head` and goes on with `file` from `offset`.
    pub(crate) fn from_file(
        head: Vec<u8>,
        file: Arc<dyn LargeBody>,
        offset: u64,
        delivery: Delivery<'static>,
    ) -> Departure {
        let file = Some((file, offset));
        Departure { memory: head, sent_of_memory: 0, file, delivery, begun: false }
    }

    /// What its queue is told of it.
    pub(crate) fn ending(&self, outcome: Outcome) -> Settlement {
        Settlement { position: self.delivery.token, outcome }
    }

    /// Fills `piece` with the next bytes, at most `room` of them; true if more follow.
    pub(crate) fn read(&mut self, piece: &mut Vec<u8>, room: usize) -> io::Result<bool> {
        piece.clear();
        let rest = &self.memory[self.sent_of_memory..];
        let from_memory = rest.len().min(room);
        piece.extend_from_slice(&rest[..from_memory]);
        self.sent_of_memory += from_memory;
        if self.sent_of_memory < self.memory.len() {
            return Ok(true);
        }
        let Some((file, offset)) = &mut self.file else { return Ok(false) };
        let left = file.len().saturating_sub(*offset);
        let wanted = left.min((room - from_memory) as u64) as usize;
        piece.resize(from_memory + wanted, 0);
        let mut filled = from_memory;
        while filled < piece.len() {
            let read = file.read_at(*offset, &mut piece[filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            *offset += read as u64;
        }
        Ok(*offset < file.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(&'static [u8]);

    impl LargeBody for Fixed {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let rest = &self.0[offset as usize..];
            // One byte at a time: readers have to cope with short reads.
            let read = rest.len().min(buffer.len()).min(1);
            buffer[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }
    }

    #[test]
    fn a_large_message_leaves_in_pieces_with_its_new_head_first() {
        let file = Arc::new(Fixed(b"..body"));
        let mut departure = Departure::from_file(b"head".to_vec(), file, 2, Delivery::default());
        let (mut piece, mut all) = (Vec::new(), Vec::new());
        while departure.read(&mut piece, 3).unwrap() {
            assert!(piece.len() <= 3);
            all.extend_from_slice(&piece);
        }
        all.extend_from_slice(&piece);
        assert_eq!(all, b"headbody");
    }

    #[test]
    fn a_message_that_ends_exactly_with_a_piece_says_so() {
        let mut departure = Departure::in_memory(b"abcdef".to_vec(), Delivery::default());
        let mut piece = Vec::new();
        assert!(departure.read(&mut piece, 3).unwrap());
        assert!(!departure.read(&mut piece, 3).unwrap());
        assert_eq!(piece, b"def");
    }

    #[test]
    fn a_file_that_got_shorter_is_an_error_not_a_short_message() {
        struct Lost;
        impl LargeBody for Lost {
            fn len(&self) -> u64 {
                10
            }

            fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
                Ok(0)
            }
        }
        let mut departure =
            Departure::from_file(Vec::new(), Arc::new(Lost), 0, Delivery::default());
        assert!(departure.read(&mut Vec::new(), 4).is_err());
    }
}
