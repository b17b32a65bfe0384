//! Why a transaction fails.

use crate::budget::OverLimit;
use crate::queue::Refusal;
use mochila_wire::{AmqpError, condition};
use std::fmt;

/// Why a transaction can only be rolled back.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A queue did not take one of its messages.
    Refused(Refusal),
    /// One of its messages was rejected before it came to a queue.
    Rejected(Box<AmqpError>),
    /// There was no memory for it.
    NoMemory(OverLimit),
    /// It would have done more than a transaction may.
    TooManyOperations {
        /// How much that is.
        limit: u64,
    },
    /// It would have brought more than a transaction may.
    TooManyBytes {
        /// How much that is.
        limit: u64,
    },
    /// It would have been about more queues than a transaction may.
    TooManyQueues {
        /// How many that is.
        limit: usize,
    },
    /// A queue to which it has brought messages is gone.
    QueueDeleted {
        /// Its name.
        name: String,
    },
    /// It took too long.
    TimedOut {
        /// How long it may take.
        timeout_ms: u64,
    },
}

impl Fault {
    /// The condition and sentence for the peer (part 4, section 4.5.8).
    pub fn to_amqp(&self) -> AmqpError {
        let condition = match self {
            Fault::TimedOut { .. } => condition::TRANSACTION_TIMEOUT,
            _ => condition::TRANSACTION_ROLLBACK,
        };
        AmqpError::new(condition, self.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the transaction was rolled back: ")?;
        match self {
            Fault::Refused(refusal) => write!(f, "a message was refused: {refusal}"),
            Fault::Rejected(error) => write!(f, "a message was rejected: {error}"),
            Fault::NoMemory(over) => over.fmt(f),
            Fault::TooManyOperations { limit } => {
                write!(f, "it would have had more than the {limit} operations allowed")
            }
            Fault::TooManyBytes { limit } => {
                write!(f, "its messages would have had more than the {limit} bytes allowed")
            }
            Fault::TooManyQueues { limit } => {
                write!(f, "it would have been about more than the {limit} queues allowed")
            }
            Fault::QueueDeleted { name } => write!(f, "queue '{name}' has been deleted"),
            Fault::TimedOut { timeout_ms } => {
                write!(f, "it was not discharged within {timeout_ms} ms")
            }
        }
    }
}

impl std::error::Error for Fault {}
