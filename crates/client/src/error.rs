use std::fmt;
use std::sync::Arc;

use mochila_wire::AmqpError;

use crate::url::InvalidUrl;

/// Why something could not be done, and what ended with it.
#[derive(Clone, Debug)]
pub enum Error {
    /// The broker's address cannot be read.
    Url(InvalidUrl),
    /// No endpoint could be connected to, or the connection was lost and is not made again.
    Io(Arc<std::io::Error>),
    /// The peer did not answer in time.
    TimedOut(&'static str),
    /// The peer did not accept who we say we are.
    Refused,
    /// The connection is over; with the peer's reason, if it gave one.
    Connection(Option<Box<AmqpError>>),
    /// The session is over.
    Session(Option<Box<AmqpError>>),
    /// The link is over, or was never granted.
    Link(Option<Box<AmqpError>>),
    /// A delivery belongs to a link or connection that has been replaced since; it will be
    /// delivered again.
    Stale,
    /// The transaction could not be begun, or was rolled back instead of committed.
    Transaction(Option<Box<AmqpError>>),
    /// The engine cannot do this now.
    Engine(mochila_engine::Error),
    /// A received message breaks the rules of part 3.
    Malformed(mochila_wire::DecodeError),
    /// The response of a request says that it failed.
    Response {
        /// The status code, in the manner of HTTP.
        status: u32,
        /// What went wrong, in words.
        description: String,
    },
}

impl Error {
    /// The peer's error, if it is what ended the connection, session or link.
    pub fn condition(&self) -> Option<&AmqpError> {
        match self {
            Error::Connection(error)
            | Error::Session(error)
            | Error::Link(error)
            | Error::Transaction(error) => error.as_deref(),
            _ => None,
        }
    }

    /// Whether the connection itself is lost, so that connecting again may help.
    pub(crate) fn is_disconnection(&self) -> bool {
        matches!(self, Error::Io(_) | Error::TimedOut(_) | Error::Connection(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended =
            |f: &mut fmt::Formatter<'_>, what: &str, error: &Option<Box<AmqpError>>| match error {
                None => write!(f, "the {what} is closed"),
                Some(error) => {
                    write!(f, "the {what} was closed by the peer: {}", error.condition.as_str())?;
                    match &error.description {
                        Some(description) => write!(f, ": {description}"),
                        None => Ok(()),
                    }
                }
            };
        match self {
            Error::Url(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
            Error::TimedOut(what) => write!(f, "timed out: {what}"),
            Error::Refused => {
                f.write_str("the broker wants a user name and password, or refused those given")
            }
            Error::Connection(error) => ended(f, "connection", error),
            Error::Session(error) => ended(f, "session", error),
            Error::Link(error) => ended(f, "link", error),
            Error::Transaction(None) => f.write_str("the transaction failed"),
            Error::Transaction(Some(error)) => write!(f, "the transaction failed: {error}"),
            Error::Stale => f.write_str("the delivery belongs to a connection that is gone"),
            Error::Engine(error) => error.fmt(f),
            Error::Malformed(error) => write!(f, "a message cannot be read: {error}"),
            Error::Response { status, description } => write!(f, "{status}: {description}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io(Arc::new(error))
    }
}

impl From<InvalidUrl> for Error {
    fn from(error: InvalidUrl) -> Self {
        Error::Url(error)
    }
}

impl From<mochila_engine::Error> for Error {
    fn from(error: mochila_engine::Error) -> Self {
        Error::Engine(error)
    }
}

impl From<mochila_wire::DecodeError> for Error {
    fn from(error: mochila_wire::DecodeError) -> Self {
        Error::Malformed(error)
    }
}
