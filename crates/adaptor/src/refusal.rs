//! Why a link is refused or detached, in words for the peer's operator.

use mochila_wire::{AmqpError, condition};

/// Builds the error of a refused or detached link.
pub(crate) fn refusal(
    condition: mochila_wire::Symbol,
    description: impl Into<String>,
) -> AmqpError {
    AmqpError { condition, description: Some(description.into()), info: None }
}

/// A subscription that is to end and is not there.
pub(crate) fn no_subscription(name: &str) -> AmqpError {
    refusal(condition::NOT_FOUND, format!("there is no subscription '{name}'"))
}

/// Something that is to happen within a transaction that is not there.
pub(crate) fn no_transaction() -> AmqpError {
    let text = "there is no such transaction on this connection, or not any more";
    refusal(condition::TRANSACTION_UNKNOWN_ID, text)
}

/// A transaction that is to end by another link to a coordinator than has declared it.
pub(crate) fn not_this_control_link() -> AmqpError {
    let text =
        "the transaction belongs to another link of this connection: the one that declared it";
    refusal(condition::TRANSACTION_UNKNOWN_ID, text)
}

/// A message in the name of somebody else.
pub(crate) fn not_this_user(user: &str) -> AmqpError {
    let text = format!("the message has the user id of another user than '{user}', who sends it");
    refusal(condition::NOT_ALLOWED, text)
}

/// A field of an attach that we cannot work with.
pub(crate) fn invalid(description: impl Into<String>) -> AmqpError {
    refusal(condition::INVALID_FIELD, description)
}

/// Something that this version does not do.
pub(crate) fn not_implemented(description: impl Into<String>) -> AmqpError {
    refusal(condition::NOT_IMPLEMENTED, description)
}
