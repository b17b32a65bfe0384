//! Where the messages of a batch come from.

use mochila_wire::Now;

/// Who sent messages, and when they came: the same for all messages of a batch, so that it is kept
/// once for each segment and not for each message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The connection that they came over, by the number that its consumers have as their owner; 0
    /// if they were made here.
    pub connection: u64,
    /// When they came, in milliseconds of the Unix epoch; 0 if nobody knows.
    pub time_ms: i64,
}

impl Origin {
    /// What comes over a connection now.
    pub fn new(connection: u64, now: Now) -> Origin {
        Origin { connection, time_ms: now.wall_ms }
    }
}
