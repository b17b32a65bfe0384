use mochila_wire::{AmqpError, DecodeError, FrameError, Symbol, condition};

use crate::{LinkId, SessionId};

/// A rule that the peer broke, and what ends because of it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The link is detached.
    Link(LinkId, AmqpError),
    /// The session is ended.
    Session(SessionId, AmqpError),
    /// The connection is closed.
    Connection(AmqpError),
    /// The connection is closed, and what follows in the stream cannot be read any more.
    Stream(AmqpError),
}

/// What handling a frame comes to. Boxed, because it is almost never a fault.
pub(crate) type Verdict = Result<(), Box<Fault>>;

impl Fault {
    pub(crate) fn link(
        link: LinkId,
        condition: Symbol,
        description: impl Into<String>,
    ) -> Box<Fault> {
        Box::new(Fault::Link(link, AmqpError::new(condition, description)))
    }

    pub(crate) fn session(
        session: SessionId,
        condition: Symbol,
        description: impl Into<String>,
    ) -> Box<Fault> {
        Box::new(Fault::Session(session, AmqpError::new(condition, description)))
    }

    pub(crate) fn connection(condition: Symbol, description: impl Into<String>) -> Box<Fault> {
        Box::new(Fault::Connection(AmqpError::new(condition, description)))
    }

    /// A frame header that cannot be right (part 2, 2.3).
    pub(crate) fn framing(description: impl Into<String>) -> Box<Fault> {
        Box::new(Fault::Stream(AmqpError::new(condition::FRAMING_ERROR, description)))
    }
}

/// The frame's bounds are known, so that the stream can be followed further.
impl From<DecodeError> for Box<Fault> {
    fn from(error: DecodeError) -> Box<Fault> {
        Fault::connection(error.condition(), format!("a frame could not be decoded: {error}"))
    }
}

impl From<FrameError> for Box<Fault> {
    fn from(error: FrameError) -> Box<Fault> {
        Fault::framing(error.to_string())
    }
}

/// Cuts a peer's text so that a description that quotes it stays short.
pub(crate) fn brief(text: &str) -> &str {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

const BRIEF_CHARS: usize = 48;
