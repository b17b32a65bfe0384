//! Errors as peers tell them to each other: the error type and its conditions (part 2, 2.8.14).

use std::fmt;

use crate::descriptor;
use crate::types::{Map, Symbol};

composite! {
    /// What went wrong, for the peer to read (part 2, 2.8.14).
    #[derive(Clone, Debug, PartialEq)]
    pub struct AmqpError("error", descriptor::ERROR) {
        /// What went wrong, for programs.
        mandatory condition: Symbol,
        /// What went wrong, for people.
        optional description: String,
        /// More, depending on the condition.
        optional info: Map,
    }
}

impl AmqpError {
    /// An error with a sentence for people.
    pub fn new(condition: Symbol, description: impl Into<String>) -> AmqpError {
        AmqpError { condition, description: Some(description.into()), info: None }
    }

    /// The same error with a map that says more.
    #[must_use]
    pub fn with_info(mut self, info: Map) -> AmqpError {
        self.info = Some(info);
        self
    }
}

impl From<Symbol> for AmqpError {
    fn from(condition: Symbol) -> AmqpError {
        AmqpError { condition, description: None, info: None }
    }
}

impl fmt::Display for AmqpError {
    /// The condition, then the description; control characters are escaped, so that a peer cannot
    /// write lines of its own into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.condition.as_str().escape_debug())?;
        if let Some(description) = &self.description {
            f.write_str(": ")?;
            for c in description.chars() {
                if c.is_control() {
                    write!(f, "{}", c.escape_default())?
                } else {
                    write!(f, "{c}")?
                }
            }
        }
        Ok(())
    }
}

impl std::error::Error for AmqpError {}

macro_rules! conditions {
    ($($(#[$meta:meta])* $constant:ident = $name:literal;)*) => {$(
        $(#[$meta])*
        #[doc = concat!("`", $name, "`")]
        pub const $constant: Symbol = Symbol::from_static($name);
    )*};
}

// Part 2, 2.8.15: amqp-error.
conditions! {
    /// An internal error occurred: operator intervention may be needed.
    INTERNAL_ERROR = "amqp:internal-error";
    /// A peer asked for something that does not exist.
    NOT_FOUND = "amqp:not-found";
    /// A peer asked for something that it may not have.
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access";
    /// Bytes could not be decoded.
    DECODE_ERROR = "amqp:decode-error";
    /// A peer exceeded its allocation.
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded";
    /// A peer did something that is not allowed in this state or by these terms.
    NOT_ALLOWED = "amqp:not-allowed";
    /// A field of a frame was invalid.
    INVALID_FIELD = "amqp:invalid-field";
    /// A peer asked for something that is not implemented.
    NOT_IMPLEMENTED = "amqp:not-implemented";
    /// Somebody else holds what a peer asked for.
    RESOURCE_LOCKED = "amqp:resource-locked";
    /// A condition that a peer asked for does not hold.
    PRECONDITION_FAILED = "amqp:precondition-failed";
    /// What a peer works with has been deleted.
    RESOURCE_DELETED = "amqp:resource-deleted";
    /// A frame is not permitted in the current state.
    ILLEGAL_STATE = "amqp:illegal-state";
    /// Something does not fit the largest frame that was agreed.
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small";
}

// Part 2, 2.8.16: connection-error.
conditions! {
    /// An operator intervened to close the connection.
    CONNECTION_FORCED = "amqp:connection:forced";
    /// A frame could not be understood.
    FRAMING_ERROR = "amqp:connection:framing-error";
    /// The container is somewhere else now.
    CONNECTION_REDIRECT = "amqp:connection:redirect";
}

// Part 2, 2.8.17: session-error.
conditions! {
    /// The peer sent more transfers than the incoming window allows.
    WINDOW_VIOLATION = "amqp:session:window-violation";
    /// Input was received for a link that was detached with an error.
    ERRANT_LINK = "amqp:session:errant-link";
    /// An attach used a handle that is in use.
    HANDLE_IN_USE = "amqp:session:handle-in-use";
    /// A frame used a handle that no link is attached to.
    UNATTACHED_HANDLE = "amqp:session:unattached-handle";
}

// Part 2, 2.8.18: link-error.
conditions! {
    /// An operator intervened to detach the link.
    DETACH_FORCED = "amqp:link:detach-forced";
    /// The peer sent more messages than there was credit for.
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded";
    /// The peer sent a larger message than the link allows.
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded";
    /// The address is somewhere else now.
    REDIRECT = "amqp:link:redirect";
    /// The link was attached elsewhere.
    STOLEN = "amqp:link:stolen";
}

// Part 4, 4.5.8: transaction-error.
conditions! {
    /// The transaction does not exist.
    TRANSACTION_UNKNOWN_ID = "amqp:transaction:unknown-id";
    /// The transaction was rolled back.
    TRANSACTION_ROLLBACK = "amqp:transaction:rollback";
    /// The transaction took too long.
    TRANSACTION_TIMEOUT = "amqp:transaction:timeout";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, DecodeError, Encode};

    #[test]
    fn an_error_survives_the_wire() {
        let error = AmqpError::new(NOT_FOUND, "no queue q")
            .with_info(Map::new().with("queue", "q".to_owned()));
        assert_eq!(AmqpError::from_bytes(&error.to_bytes()), Ok(error));
    }

    #[test]
    fn an_error_without_a_condition_is_refused() {
        let bytes = [0x00, 0x53, 0x1d, 0x45];
        let missing = DecodeError::MissingField { field: "error.condition" };
        assert_eq!(AmqpError::from_bytes(&bytes), Err(missing));
    }

    #[test]
    fn a_peer_cannot_write_lines_into_a_log() {
        let error = AmqpError::new(NOT_FOUND, "gone\nERROR all is lost");
        assert_eq!(error.to_string(), "amqp:not-found: gone\\nERROR all is lost");
    }
}
