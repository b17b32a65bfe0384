//! What can be wrong with a request about an exchange.

use crate::budget::OverLimit;
use crate::settings::SettingsError;
use mochila_wire::{AmqpError, condition};
use std::fmt;

/// Why nothing is done with an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// There is none of that name.
    NotFound {
        /// The name.
        name: String,
    },
    /// There is one already.
    Exists {
        /// Its name.
        name: String,
    },
    /// A name that no exchange can have.
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It has been deleted.
    Deleted {
        /// Its name.
        name: String,
    },
    /// It is always there, and as it is.
    Predeclared {
        /// Its name.
        name: String,
    },
    /// Queues or exchanges have it as their alternate exchange, or it was to be deleted only if
    /// unused.
    InUse {
        /// Its name.
        name: String,
        /// What uses it.
        by: String,
    },
    /// There are as many as there may be.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// There is no memory for it.
    NoMemory(OverLimit),
    /// What it was to be like makes no sense.
    Settings(SettingsError),
    /// There is no queue to be bound.
    NoQueue {
        /// Its name.
        name: String,
    },
    /// There is no such binding.
    NotBound {
        /// The exchange.
        exchange: String,
        /// The queue.
        queue: String,
        /// The key.
        key: String,
    },
    /// The queue is bound with this key and other arguments.
    Duplicate {
        /// The key.
        key: String,
    },
    /// The arguments of a binding make no sense.
    InvalidBinding {
        /// Why.
        reason: String,
    },
}

impl ExchangeError {
    /// The condition and sentence for the peer.
    pub fn to_amqp(&self) -> AmqpError {
        let condition = match self {
            ExchangeError::NotFound { .. }
            | ExchangeError::NoQueue { .. }
            | ExchangeError::NotBound { .. } => condition::NOT_FOUND,
            ExchangeError::Deleted { .. } => condition::RESOURCE_DELETED,
            ExchangeError::Predeclared { .. } => condition::NOT_ALLOWED,
            ExchangeError::Exists { .. }
            | ExchangeError::InUse { .. }
            | ExchangeError::Duplicate { .. } => condition::PRECONDITION_FAILED,
            ExchangeError::TooMany { .. } | ExchangeError::NoMemory(_) => {
                condition::RESOURCE_LIMIT_EXCEEDED
            }
            ExchangeError::InvalidName { .. }
            | ExchangeError::Settings(_)
            | ExchangeError::InvalidBinding { .. } => condition::INVALID_FIELD,
        };
        AmqpError::new(condition, self.to_string())
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::NotFound { name } => write!(f, "no exchange is named '{name}'"),
            ExchangeError::Exists { name } => {
                write!(f, "an exchange named '{name}' exists already")
            }
            ExchangeError::InvalidName { name, reason } => {
                write!(f, "'{name}' cannot be the name of an exchange: {reason}")
            }
            ExchangeError::Deleted { name } => write!(f, "exchange '{name}' has been deleted"),
            ExchangeError::Predeclared { name } => {
                write!(f, "exchange '{name}' is always there, and cannot be changed")
            }
            ExchangeError::InUse { name, by } => write!(f, "exchange '{name}' is in use by {by}"),
            ExchangeError::TooMany { limit } => {
                write!(f, "there are {limit} exchanges, the most allowed")
            }
            ExchangeError::NoMemory(over) => over.fmt(f),
            ExchangeError::Settings(error) => error.fmt(f),
            ExchangeError::NoQueue { name } => write!(f, "no queue is named '{name}'"),
            ExchangeError::NotBound { exchange, queue, key } => {
                write!(f, "queue '{queue}' is not bound to exchange '{exchange}' with key '{key}'")
            }
            ExchangeError::Duplicate { key } => {
                write!(f, "the queue is bound with key '{key}' and other arguments already")
            }
            ExchangeError::InvalidBinding { reason } => {
                write!(f, "the arguments of the binding are wrong: {reason}")
            }
        }
    }
}

impl std::error::Error for ExchangeError {}

impl From<SettingsError> for ExchangeError {
    fn from(error: SettingsError) -> ExchangeError {
        ExchangeError::Settings(error)
    }
}
