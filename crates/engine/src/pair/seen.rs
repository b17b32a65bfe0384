use std::collections::VecDeque;

use mochila_wire::Now;

use crate::{Connection, Event};

/// An event, together with the bytes that it points to.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The event.
    pub event: Event,
    /// The payload, if it is a transfer.
    pub payload: Vec<u8>,
    /// The delivery tag, if it is a transfer that says it.
    pub tag: Vec<u8>,
}

/// The bytes on their way to one end, and what it has made of those before.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) bytes: Vec<u8>,
    pub(super) seen: VecDeque<Seen>,
}

impl Inbox {
    /// Lets the connection handle the first `limit` of the bytes; true if that moved anything.
    pub(super) fn deliver(&mut self, to: &mut Connection, now: Now, limit: usize) -> bool {
        let end = limit.min(self.bytes.len());
        let mut used = 0;
        let mut moved = false;
        loop {
            let handled = to.handle_bytes(now, &self.bytes[used..end]);
            moved |= self.take_events(to, used);
            used += handled;
            if handled == 0 {
                break;
            }
        }
        self.bytes.drain(..used);
        moved || used > 0
    }

    /// Takes the events of a connection that has handled the bytes from `at` on.
    pub(super) fn take_events(&mut self, of: &mut Connection, at: usize) -> bool {
        let before = self.seen.len();
        while let Some(event) = of.poll_event() {
            let (payload, tag) = match &event {
                Event::Transfer(transfer) => {
                    let bytes = &self.bytes[at..];
                    (bytes[transfer.payload()].to_vec(), bytes[transfer.tag()].to_vec())
                }
                _ => (Vec::new(), Vec::new()),
            };
            self.seen.push_back(Seen { event, payload, tag });
        }
        self.seen.len() > before
    }
}
