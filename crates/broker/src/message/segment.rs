//! The bytes of the messages that came together.

use super::{LargeBody, Numbers, Origin};
use crate::budget::Reservation;
use std::fmt;
use std::sync::Arc;

/// Encoded messages of one publisher, copied once out of the read buffer and never changed.
///
/// A segment is shared by the queue and by whoever is sending its messages; its memory goes back
/// to the budget with its last user.
pub struct Segment {
    bytes: Box<[u8]>,
    large: Option<Arc<dyn LargeBody>>,
    /// The message-format of all messages in it: it is the same for almost all messages there are.
    message_format: u32,
    origin: Origin,
    /// What an exchange has numbered its messages with.
    numbers: Option<Numbers>,
    reservation: Reservation,
}

impl Segment {
    pub(crate) fn new(
        bytes: Box<[u8]>,
        message_format: u32,
        origin: Origin,
        reservation: Reservation,
    ) -> Segment {
        Segment { bytes, large: None, message_format, origin, numbers: None, reservation }
    }

    /// A segment of one message whose bytes are `large`, and whose first bytes are `head`.
    pub(crate) fn large(
        head: Box<[u8]>,
        large: Arc<dyn LargeBody>,
        message_format: u32,
        origin: Origin,
        reservation: Reservation,
    ) -> Segment {
        let large = Some(large);
        Segment { bytes: head, large, message_format, origin, numbers: None, reservation }
    }

    /// The bytes in memory.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The message that is too large for memory, if this is one.
    pub fn large_body(&self) -> Option<&Arc<dyn LargeBody>> {
        self.large.as_ref()
    }

    /// The message-format of its messages (part 2, section 2.7.5).
    pub fn message_format(&self) -> u32 {
        self.message_format
    }

    /// Where its messages came from, and when.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn numbers(&self) -> Option<&Numbers> {
        self.numbers.as_ref()
    }

    /// Its messages have these numbers from now on. They are charged whatever the limit, as the
    /// messages are in already.
    pub(crate) fn set_numbers(&mut self, numbers: Numbers) {
        if let Some(before) = self.numbers.take() {
            self.reservation.shrink_to(self.reservation.bytes() - before.memory_bytes());
        }
        let bytes = numbers.memory_bytes();
        if bytes > 0 {
            self.reservation.merge(self.reservation.budget().charge(bytes));
        }
        self.numbers = Some(numbers);
    }

    /// What it costs the budget.
    pub fn reserved_bytes(&self) -> u64 {
        self.reservation.bytes()
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("bytes", &self.bytes.len())
            .field("large", &self.large.as_ref().map(|body| body.len()))
            .finish()
    }
}
