use std::fmt;

use crate::types::{Symbol, Type};
use crate::{AmqpError, condition};

/// Why bytes are not what they should be. The peer is to blame for every one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a value.
    UnexpectedEnd,
    /// A size field claims more bytes than there are.
    SizeExceedsBytes {
        /// The size claimed.
        size: u32,
    },
    /// A count field claims more elements than the bytes can hold.
    CountExceedsBytes {
        /// The count claimed.
        count: u32,
    },
    /// A list, map or array holds more bytes than its elements take.
    SizeMismatch,
    /// A map has a key without a value.
    OddMap,
    /// A format code that AMQP 1.0 does not define.
    UnknownCode(u8),
    /// A value of another type than the one that belongs here.
    UnexpectedType {
        /// What belongs here.
        expected: Type,
        /// The format code found.
        code: u8,
    },
    /// A boolean that is neither 0 nor 1.
    InvalidBoolean(u8),
    /// A char that is no Unicode scalar value.
    InvalidChar(u32),
    /// A string that is not UTF-8.
    InvalidUtf8,
    /// A symbol that is not ASCII.
    InvalidSymbol,
    /// A mandatory field is null or missing.
    MissingField {
        /// The field, as `composite.field`.
        field: &'static str,
    },
    /// A field has a value outside its choices.
    InvalidField {
        /// The field or restricted type.
        field: &'static str,
    },
    /// A descriptor that means nothing here.
    UnknownDescriptor(Box<str>),
    /// Values nest deeper than [`Limits::max_depth`](crate::Limits::max_depth).
    TooDeep,
    /// More elements than [`Limits::max_elements`](crate::Limits::max_elements).
    TooManyElements,
    /// More array elements without bytes than
    /// [`Limits::max_zero_width`](crate::Limits::max_zero_width).
    TooManyZeroWidth,
    /// More sections than [`Limits::max_sections`](crate::Limits::max_sections).
    TooManySections,
    /// More bytes than [`Limits::max_size`](crate::Limits::max_size).
    TooLarge,
    /// A section stands where it may not: out of order, twice, or next to another kind of body.
    MisplacedSection {
        /// The section's name in the specification.
        section: &'static str,
    },
}

impl DecodeError {
    /// The error condition that tells the peer.
    pub fn condition(&self) -> Symbol {
        match self {
            DecodeError::MissingField { .. } | DecodeError::InvalidField { .. } => {
                condition::INVALID_FIELD
            }
            DecodeError::TooDeep
            | DecodeError::TooManyElements
            | DecodeError::TooManyZeroWidth
            | DecodeError::TooManySections => condition::RESOURCE_LIMIT_EXCEEDED,
            DecodeError::TooLarge => condition::MESSAGE_SIZE_EXCEEDED,
            _ => condition::DECODE_ERROR,
        }
    }

    /// Whether the bytes may become valid when more of them arrive.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, DecodeError::UnexpectedEnd | DecodeError::SizeExceedsBytes { .. })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnexpectedEnd => f.write_str("the bytes end inside a value"),
            DecodeError::SizeExceedsBytes { size } => {
                write!(f, "a value claims {size} bytes, and there are fewer")
            }
            DecodeError::CountExceedsBytes { count } => {
                write!(f, "{count} elements are claimed, and there are bytes for fewer")
            }
            DecodeError::SizeMismatch => {
                f.write_str("the size of a list, map or array does not match its elements")
            }
            DecodeError::OddMap => f.write_str("a map has a key without a value"),
            DecodeError::UnknownCode(code) => write!(f, "unknown format code 0x{code:02x}"),
            DecodeError::UnexpectedType { expected, code } => {
                write!(f, "a value of type {expected} belongs where format code 0x{code:02x} is")
            }
            DecodeError::InvalidBoolean(byte) => write!(f, "0x{byte:02x} is no boolean"),
            DecodeError::InvalidChar(number) => write!(f, "0x{number:x} is no character"),
            DecodeError::InvalidUtf8 => f.write_str("a string is not UTF-8"),
            DecodeError::InvalidSymbol => f.write_str("a symbol is not ASCII"),
            DecodeError::MissingField { field } => {
                write!(f, "the mandatory {} is missing", spelled(field))
            }
            DecodeError::InvalidField { field } => {
                write!(f, "{} has an invalid value", spelled(field))
            }
            DecodeError::UnknownDescriptor(name) => write!(f, "unknown descriptor {name}"),
            DecodeError::TooDeep => f.write_str("values nest too deep"),
            DecodeError::TooManyElements => f.write_str("too many elements"),
            DecodeError::TooManyZeroWidth => f.write_str("too many array elements without bytes"),
            DecodeError::TooManySections => f.write_str("too many sections"),
            DecodeError::TooLarge => f.write_str("the message is too large"),
            DecodeError::MisplacedSection { section } => {
                write!(f, "section {section} may not stand where it does")
            }
        }
    }
}

/// A field as the specification spells it.
fn spelled(field: &str) -> String {
    field.replace('_', "-")
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for AmqpError {
    fn from(error: DecodeError) -> AmqpError {
        AmqpError::new(error.condition(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_tells_the_peer_a_fitting_condition() {
        assert_eq!(DecodeError::UnexpectedEnd.condition(), condition::DECODE_ERROR);
        assert_eq!(DecodeError::TooDeep.condition(), condition::RESOURCE_LIMIT_EXCEEDED);
        assert_eq!(DecodeError::TooLarge.condition(), condition::MESSAGE_SIZE_EXCEEDED);
        let missing = DecodeError::MissingField { field: "open.container-id" };
        assert_eq!(AmqpError::from(missing).condition, condition::INVALID_FIELD);
    }

    #[test]
    fn an_error_is_small_enough_to_return_on_the_hot_path() {
        assert!(size_of::<DecodeError>() <= 24);
    }
}
