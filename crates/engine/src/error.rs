use std::fmt;

/// Why a session or a link could not be started; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The connection is not open, or not any more.
    NotOpen,
    /// Every channel both peers allow is in use (part 2, 2.7.1).
    ChannelsExhausted {
        /// The highest channel number that both allow.
        channel_max: u16,
    },
    /// The session is unknown or ended.
    NoSuchSession,
    /// Every handle that the peer allows on this session is in use (part 2, 2.7.2).
    HandlesExhausted {
        /// The highest handle that the peer allows.
        handle_max: u32,
    },
    /// A link of this name and role is attached on this connection already.
    LinkNameInUse {
        /// The name that both want.
        name: String,
    },
    /// The connection carries as many links as its configuration allows.
    TooManyLinks {
        /// The configured limit.
        max_links: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotOpen => f.write_str("the connection is not open"),
            Error::ChannelsExhausted { channel_max } => {
                write!(
                    f,
                    "all {} channels of the connection are in use",
                    u32::from(*channel_max) + 1
                )
            }
            Error::NoSuchSession => f.write_str("the session has ended"),
            Error::HandlesExhausted { handle_max } => {
                write!(f, "all {} handles of the session are in use", u64::from(*handle_max) + 1)
            }
            Error::LinkNameInUse { name } => {
                write!(f, "a link named '{name}' is attached in this direction already")
            }
            Error::TooManyLinks { max_links } => {
                write!(f, "the connection has its {max_links} links already")
            }
        }
    }
}

impl std::error::Error for Error {}
