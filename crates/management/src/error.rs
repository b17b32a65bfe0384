//! Why a request is not carried out.

use std::fmt;

/// The requester's mistake, with a sentence for it; each variant has a status code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The request itself is wrong.
    BadRequest(String),
    /// What it is about does not exist.
    NotFound(String),
    /// What it is about is not in the state for it.
    Conflict(String),
    /// What it is about cannot do that.
    NotImplemented(String),
    /// The node has no room for it.
    Unavailable(String),
}

impl Error {
    pub(crate) fn bad_request(description: impl Into<String>) -> Error {
        Error::BadRequest(description.into())
    }

    /// There is no memory for an answer of so many bytes.
    pub(crate) fn no_room_for(bytes: usize) -> Error {
        Error::Unavailable(format!("the node has no memory for an answer of {bytes} bytes"))
    }

    /// The status code of the response, as in HTTP.
    pub(crate) fn status_code(&self) -> i32 {
        match self {
            Error::BadRequest(_) => 400,
            Error::NotFound(_) => 404,
            Error::Conflict(_) => 409,
            Error::NotImplemented(_) => 501,
            Error::Unavailable(_) => 503,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadRequest(description)
            | Error::NotFound(description)
            | Error::Conflict(description)
            | Error::NotImplemented(description)
            | Error::Unavailable(description) => f.write_str(description),
        }
    }
}

impl std::error::Error for Error {}

/// Text from a request as it may stand in a sentence: cut short when it is long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MOST_QUOTED) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

/// How many characters of a request a sentence repeats.
const MOST_QUOTED: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_repeats_only_the_beginning_of_long_text() {
        assert_eq!(quoted("orders"), "'orders'");
        let long = quoted(&"ä".repeat(1000));
        assert_eq!(long.chars().count(), MOST_QUOTED + 3);
        assert!(long.ends_with("ä…'"));
    }
}
