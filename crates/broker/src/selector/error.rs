//! What is wrong with a selector, and where.

use mochila_wire::{AmqpError, condition};
use std::fmt;

/// Why a selector is refused: the place, what was expected there, and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    offset: usize,
    reason: String,
}

impl SelectorError {
    pub(super) fn new(offset: usize, reason: impl Into<String>) -> SelectorError {
        SelectorError { offset, reason: reason.into() }
    }

    /// Something was expected, and something else was found; nothing is found at the end.
    pub(super) fn expected(offset: usize, expected: &str, found: &str) -> SelectorError {
        let found = found.trim();
        if found.is_empty() {
            return SelectorError::new(offset, format!("expected {expected}, found the end"));
        }
        let mut shown: String = found.chars().take(SHOWN).collect();
        if shown.len() < found.len() {
            shown.push('…');
        }
        let shown = shown.escape_debug();
        SelectorError::new(offset, format!("expected {expected}, found \"{shown}\""))
    }

    /// How many bytes of the selector are in front of the place.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong there.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The condition and sentence for the peer: the filter is a field of the source.
    pub fn to_amqp(&self) -> AmqpError {
        AmqpError::new(condition::INVALID_FIELD, self.to_string())
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the selector is wrong at byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for SelectorError {}

/// How much of what was found is shown.
const SHOWN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_what_was_expected_and_what_is_there() {
        let error = SelectorError::expected(4, "a value", "= 5");
        let sentence = "the selector is wrong at byte 4: expected a value, found \"= 5\"";
        assert_eq!(error.to_string(), sentence);
        assert_eq!((error.offset(), error.to_amqp().condition), (4, condition::INVALID_FIELD));
    }

    #[test]
    fn what_was_found_is_shown_without_its_control_characters_and_not_at_length() {
        let error = SelectorError::expected(0, "a value", &"\n\u{1b}x".repeat(50));
        assert!(!error.reason().chars().any(char::is_control));
        assert!(error.reason().len() < 200);
        assert!(SelectorError::expected(9, "a value", " ").reason().ends_with("found the end"));
    }
}
