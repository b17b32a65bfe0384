//! Where the bytes of a message are.

use std::fmt;
use std::io;
use std::sync::Arc;

/// An encoded message that is too large to be kept in memory: a file that the shell keeps.
pub trait LargeBody: Send + Sync {
    /// Bytes of the whole encoded message, from its first section to its last.
    fn len(&self) -> u64;

    /// True if there is nothing; no message is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads from `offset` into `buffer` and returns how many bytes it read; 0 is the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// The encoded message.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// All of it, in memory.
    Slice(&'a [u8]),
    /// Too large for memory.
    Large {
        /// The sections before the body, in memory; `body` begins with the same bytes.
        head: &'a [u8],
        /// The whole message.
        body: &'a Arc<dyn LargeBody>,
    },
}

impl Content<'_> {
    /// Bytes of the whole encoded message.
    pub fn len(&self) -> u64 {
        match self {
            Content::Slice(bytes) => bytes.len() as u64,
            Content::Large { body, .. } => body.len(),
        }
    }

    /// True if there is nothing; no message is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Content::Slice(_) => "Slice",
            Content::Large { .. } => "Large",
        };
        write!(f, "{name}({} bytes)", self.len())
    }
}
