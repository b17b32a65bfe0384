use super::client::ClientEnd;
use mochila_adaptor::{Connection, Scratch};
use mochila_broker::Wake;
use mochila_wire::Now;
use std::sync::{Arc, Mutex};

/// A connection of the node, and who is at the other end.
pub(super) struct Seat {
    pub(super) connection: Connection,
    pub(super) end: End,
    /// What the peer has sent and the node has not handled.
    pub(super) to_node: Vec<u8>,
    /// The peer reads nothing.
    pub(super) is_stalled: bool,
    bell: Arc<Bell>,
    pub(super) is_cut: bool,
}

pub(super) enum End {
    /// A test, and what it has not looked at yet.
    Raw(Vec<u8>),
    Client(Box<ClientEnd>),
}

/// The keys that were woken.
#[derive(Default)]
pub(super) struct Bell(Mutex<Vec<u32>>);

impl Wake for Bell {
    fn wake(&self, key: u32) {
        self.0.lock().unwrap().push(key);
    }
}

impl Seat {
    pub(super) fn new(connection: Connection, bell: Arc<Bell>, end: End) -> Seat {
        let to_node = Vec::new();
        Seat { connection, end, to_node, is_stalled: false, bell, is_cut: false }
    }

    /// One visit as a worker makes it; true if anything moved.
    pub(super) fn visit(&mut self, now: Now, scratch: &mut Scratch) -> bool {
        if self.is_cut {
            return false;
        }
        if let End::Client(client) = &mut self.end {
            client.speak(&mut self.to_node);
        }
        let mut moved = self.read(now, scratch);
        let keys = std::mem::take(&mut *self.bell.0.lock().unwrap());
        moved |= !keys.is_empty();
        for key in keys {
            self.connection.handle_wake(now, key, scratch);
        }
        loop {
            let is_more = self.connection.pump(now, scratch);
            moved |= self.write(now);
            if !is_more || self.is_stalled {
                break;
            }
        }
        self.connection.finish_visit(scratch);
        moved
    }

    pub(super) fn handle_timeout(&mut self, now: Now, scratch: &mut Scratch) {
        if self.is_cut {
            return;
        }
        self.connection.handle_timeout(now, scratch);
        self.connection.finish_visit(scratch);
        if let End::Client(client) = &mut self.end {
            client.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout_ms(&self) -> Option<u64> {
        if self.is_cut {
            return None;
        }
        let client = match &self.end {
            End::Client(client) => client.next_timeout_ms(),
            End::Raw(_) => None,
        };
        [self.connection.next_timeout_ms(), client].into_iter().flatten().min()
    }

    /// The peer is gone; what it had sent has been handled.
    pub(super) fn cut(&mut self, now: Now, scratch: &mut Scratch) {
        if !self.is_cut {
            self.connection.handle_eof(now, scratch);
            self.connection.finish_visit(scratch);
            self.is_cut = true;
        }
    }

    fn read(&mut self, now: Now, scratch: &mut Scratch) -> bool {
        let mut used = 0;
        loop {
            let handled = self.connection.handle_bytes(now, &self.to_node[used..], scratch);
            used += handled;
            if handled == 0 {
                break;
            }
        }
        self.to_node.drain(..used);
        used > 0
    }

    fn write(&mut self, now: Now) -> bool {
        if self.is_stalled {
            return false;
        }
        let output = std::mem::take(self.connection.output());
        match &mut self.end {
            End::Raw(heard) => heard.extend_from_slice(&output),
            End::Client(client) => client.hear(now, &output),
        }
        !output.is_empty()
    }
}
