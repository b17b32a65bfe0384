use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use mochila_wire::performative::Open;
use tokio::sync::mpsc;

use crate::command::{Command, LinkKey, SessionKey};
use crate::error::Error;

/// What the handles of one connection share with its task.
#[derive(Debug)]
pub(crate) struct Shared {
    commands: mpsc::UnboundedSender<Command>,
    state: std::sync::Arc<TaskState>,
    next_key: AtomicU64,
}

/// What the task tells its handles without being asked.
#[derive(Debug, Default)]
pub(crate) struct TaskState {
    /// Why the connection ended.
    end: Mutex<Option<Error>>,
    peer: Mutex<Option<Box<Open>>>,
    epoch: AtomicU32,
}

impl Shared {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<Command>,
        state: std::sync::Arc<TaskState>,
    ) -> Self {
        Self { commands, state, next_key: AtomicU64::new(0) }
    }

    pub(crate) fn command(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).map_err(|_| self.end())
    }

    /// Why nothing more can be done; for a handle whose request was dropped.
    pub(crate) fn end(&self) -> Error {
        lock(&self.state.end).clone().unwrap_or(Error::Connection(None))
    }

    pub(crate) fn peer(&self) -> Option<Box<Open>> {
        lock(&self.state.peer).clone()
    }

    pub(crate) fn epoch(&self) -> u32 {
        // Relaxed: the task checks again; this only saves telling it.
        self.state.epoch.load(Ordering::Relaxed)
    }

    pub(crate) fn session_key(&self) -> SessionKey {
        SessionKey(self.key())
    }

    pub(crate) fn link_key(&self) -> LinkKey {
        LinkKey(self.key())
    }

    fn key(&self) -> u64 {
        // Relaxed: keys only have to differ.
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }
}

impl TaskState {
    pub(crate) fn ended(&self, error: Error) {
        *lock(&self.end) = Some(error);
    }

    pub(crate) fn opened(&self, peer: Option<Box<Open>>) {
        *lock(&self.peer) = peer;
    }

    pub(crate) fn set_epoch(&self, epoch: u32) {
        // Relaxed: see `Shared::epoch`.
        self.epoch.store(epoch, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The values behind these locks are replaced whole, so a panic cannot leave one half made.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
