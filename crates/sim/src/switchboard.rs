//! What is posted to connections, and which of them want a worker.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mochila_broker::Wake;
use mochila_engine::pair::Random;

use crate::number::ConnectionNo;

/// The inboxes of all connections: a virtual version of the shell's.
///
/// Whatever is posted for a connection that nobody works on puts it on the list of those that want
/// a worker; what is posted while somebody works on it is looked at before the turn is given up.
#[derive(Debug, Default)]
pub(crate) struct Switchboard {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    boxes: Vec<Inbox>,
    ready: Vec<ConnectionNo>,
}

#[derive(Debug, Default)]
struct Inbox {
    posted: Posted,
    any: bool,
    taken: bool,
}

/// News for a connection since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct Posted {
    pub(crate) readable: bool,
    pub(crate) due: bool,
    /// Whether the password is right, once that is known.
    pub(crate) verdict: Option<bool>,
    pub(crate) wakes: BTreeSet<u32>,
}

/// What queues wake.
#[derive(Debug)]
pub(crate) struct SimWaker {
    pub(crate) board: Arc<Switchboard>,
    pub(crate) no: ConnectionNo,
}

impl Wake for SimWaker {
    fn wake(&self, key: u32) {
        self.board.post(self.no, |posted| {
            posted.wakes.insert(key);
        });
    }
}

impl Switchboard {
    /// Makes an inbox for the next connection.
    pub(crate) fn add(&self) {
        self.with(|state| state.boxes.push(Inbox::default()));
    }

    /// Posts something.
    pub(crate) fn post(&self, no: ConnectionNo, what: impl FnOnce(&mut Posted)) {
        self.with(|state| {
            let inbox = &mut state.boxes[no.0];
            what(&mut inbox.posted);
            inbox.any = true;
            if !std::mem::replace(&mut inbox.taken, true) {
                state.ready.push(no);
            }
        });
    }

    /// Whether a connection wants a worker.
    pub(crate) fn is_any_ready(&self) -> bool {
        self.with(|state| !state.ready.is_empty())
    }

    /// Whether a connection has been told that its time has come.
    pub(crate) fn is_due(&self, no: ConnectionNo) -> bool {
        self.with(|state| state.boxes[no.0].posted.due)
    }

    /// Takes one of the connections that want a worker.
    pub(crate) fn take(&self, random: &mut Random) -> Option<ConnectionNo> {
        self.with(|state| {
            let ready = &mut state.ready;
            (!ready.is_empty()).then(|| ready.swap_remove(random.below(ready.len())))
        })
    }

    /// The news for a connection that is being worked on.
    pub(crate) fn news(&self, no: ConnectionNo) -> Posted {
        self.with(|state| {
            let inbox = &mut state.boxes[no.0];
            inbox.any = false;
            std::mem::take(&mut inbox.posted)
        })
    }

    /// Gives the turn up, or puts it on the list again if there is more to do.
    pub(crate) fn give_up(&self, no: ConnectionNo, again: bool) {
        self.with(|state| {
            let inbox = &mut state.boxes[no.0];
            if inbox.any || again {
                state.ready.push(no);
            } else {
                inbox.taken = false;
            }
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
