//! Commands for one particular thread.

use crate::sync::{Arc, Mutex, lock};

/// A list of commands for one thread, and the means to wake it.
///
/// Only the command that finds the mailbox empty wakes the thread: between that and the moment when
/// the thread empties the mailbox it knows that it has to look, so more wake-ups (a system call each,
/// and some 10 µs of the machine's time) would tell it nothing. Cloning gives another handle.
pub struct Mailbox<T>(Arc<Shared<T>>);

impl<T> Mailbox<T> {
    /// Creates an empty mailbox whose owner is woken by `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { commands: Mutex::new(Vec::new()), wake: Box::new(wake) }))
    }

    /// Leaves a command and wakes the owner if it cannot know yet that there is one.
    pub fn send(&self, command: T) {
        let was_empty = {
            let mut commands = lock(&self.0.commands);
            commands.push(command);
            commands.len() == 1
        };
        if was_empty {
            (self.0.wake)();
        }
    }

    /// Moves all commands into the empty list `into`, in the order in which they were sent.
    ///
    /// The two lists change places, so neither side allocates once both have grown.
    pub fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "commands would be lost");
        std::mem::swap(&mut *lock(&self.0.commands), into);
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Shared<T> {
    commands: Mutex<Vec<T>>,
    wake: Box<dyn Fn() + Send + Sync>,
}
