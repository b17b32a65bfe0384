//! Why a link is refused or detached, in words for the peer's operator.

use mochila_wire::{AmqpError, condition};

/// Builds the error of a refused or detached link.
pub(crate) fn refusal(
    condition: mochila_wire::Symbol,
    description: impl Into<String>,
) -> AmqpError {
    AmqpError { condition, description: Some(description.into()), info: None }
}

/// An address that is not there, or that this peer may not know about: both sound the same.
pub(crate) fn not_found(address: &str) -> AmqpError {
    refusal(condition::NOT_FOUND, format!("there is no node named '{address}'"))
}

/// A field of an attach that we cannot work with.
pub(crate) fn invalid(description: impl Into<String>) -> AmqpError {
    refusal(condition::INVALID_FIELD, description)
}

/// Something that this version does not do.
pub(crate) fn not_implemented(description: impl Into<String>) -> AmqpError {
    refusal(condition::NOT_IMPLEMENTED, description)
}
