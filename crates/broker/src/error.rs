//! What can be wrong with a request to the broker.

use crate::budget::OverLimit;
use crate::exchange::ExchangeError;
use crate::settings::SettingsError;
use mochila_wire::{AmqpError, condition};
use std::fmt;

/// Why the broker does not do what it was asked to. A queue's errors end the link that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// There is no such queue, and no pattern says that it may be made.
    NotFound {
        /// The name asked for.
        name: String,
    },
    /// There is one already.
    Exists {
        /// Its name.
        name: String,
    },
    /// A name that no queue can have.
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is gone, or has just been deleted.
    Deleted {
        /// Its name.
        name: String,
    },
    /// It belongs to another connection, or somebody consumes from it exclusively.
    Locked {
        /// Its name.
        name: String,
        /// Who has it.
        reason: &'static str,
    },
    /// It was to be deleted only if unused.
    InUse {
        /// Its name.
        name: String,
        /// Links that take messages from it.
        consumers: u64,
        /// Links that send to it.
        producers: u64,
    },
    /// It was to be deleted only if empty.
    NotEmpty {
        /// Its name.
        name: String,
        /// Messages in it.
        messages: u64,
    },
    /// It has changed places with another queue, and so must stay.
    Redirected {
        /// The queue.
        name: String,
        /// The one that gets its messages.
        peer: String,
    },
    /// What is sent to it cannot go to another queue.
    CannotRedirect {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Its messages cannot be moved to where they are.
    Itself {
        /// Its name.
        name: String,
    },
    /// There are as many queues as there may be.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// There is no such exchange for its dead letters.
    NoExchange {
        /// Its name.
        name: String,
    },
    /// There is no memory for it.
    NoMemory(OverLimit),
    /// What it was to be like makes no sense.
    Settings(SettingsError),
}

impl QueueError {
    /// The condition and sentence for the peer.
    pub fn to_amqp(&self) -> AmqpError {
        let condition = match self {
            QueueError::NotFound { .. } | QueueError::NoExchange { .. } => condition::NOT_FOUND,
            QueueError::Deleted { .. } => condition::RESOURCE_DELETED,
            QueueError::Locked { .. } => condition::RESOURCE_LOCKED,
            QueueError::Exists { .. }
            | QueueError::InUse { .. }
            | QueueError::NotEmpty { .. }
            | QueueError::CannotRedirect { .. }
            | QueueError::Redirected { .. } => condition::PRECONDITION_FAILED,
            QueueError::TooMany { .. } | QueueError::NoMemory(_) => {
                condition::RESOURCE_LIMIT_EXCEEDED
            }
            QueueError::InvalidName { .. }
            | QueueError::Itself { .. }
            | QueueError::Settings(_) => condition::INVALID_FIELD,
        };
        AmqpError::new(condition, self.to_string())
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::NotFound { name } => write!(f, "no queue is named '{name}'"),
            QueueError::Exists { name } => write!(f, "a queue named '{name}' exists already"),
            QueueError::InvalidName { name, reason } => {
                write!(f, "'{name}' cannot be the name of a queue: {reason}")
            }
            QueueError::Deleted { name } => write!(f, "queue '{name}' has been deleted"),
            QueueError::Locked { name, reason } => write!(f, "queue '{name}' is locked: {reason}"),
            QueueError::InUse { name, consumers, producers } => {
                let of = |number: &u64, one: &str| match number {
                    1 => format!("1 {one}"),
                    number => format!("{number} {one}s"),
                };
                let (consumers, producers) = (of(consumers, "consumer"), of(producers, "producer"));
                write!(f, "queue '{name}' is in use by {consumers} and {producers}")
            }
            QueueError::NotEmpty { name, messages } => {
                let noun = if *messages == 1 { "message" } else { "messages" };
                write!(f, "queue '{name}' is not empty: it holds {messages} {noun}")
            }
            QueueError::Redirected { name, peer } => {
                write!(
                    f,
                    "queue '{name}' must not delete itself: its messages go to queue '{peer}'"
                )
            }
            QueueError::CannotRedirect { name, reason } => {
                write!(f, "queue '{name}' cannot be redirected: {reason}")
            }
            QueueError::Itself { name } => {
                write!(f, "the messages of queue '{name}' cannot go to where they are")
            }
            QueueError::TooMany { limit } => {
                write!(f, "there are {limit} queues, the most allowed")
            }
            QueueError::NoExchange { name } => write!(f, "no exchange is named '{name}'"),
            QueueError::NoMemory(over) => over.fmt(f),
            QueueError::Settings(error) => error.fmt(f),
        }
    }
}

/// An alternate exchange that is not there.
pub(crate) fn no_exchange(error: ExchangeError) -> QueueError {
    match error {
        ExchangeError::NotFound { name } => QueueError::NoExchange { name },
        error => QueueError::NoExchange { name: error.to_string() },
    }
}

impl std::error::Error for QueueError {}

impl From<SettingsError> for QueueError {
    fn from(error: SettingsError) -> QueueError {
        QueueError::Settings(error)
    }
}
