//! The ends of a link: sources, targets and coordinators (part 3, 3.5 and part 4, 4.5.1).

mod filter;
mod lifetime;
mod source;
mod target;

pub use filter::{
    APPLICATION_PROPERTIES_FILTER, DIRECT_BINDING, Filter, HEADERS_BINDING, JMS_SELECTOR, NO_LOCAL,
    PROPERTIES_FILTER, TOPIC_BINDING,
};
pub use lifetime::LifetimePolicy;
pub use source::Source;
pub use target::{Coordinator, Target, TargetArchetype};

use crate::decode::{Decode, DecodeError, Decoder};
use crate::encode::Encode;
use crate::types::Symbol;

restricted! {
    /// What of a terminus survives a restart (part 3, 3.5.5).
    #[derive(Default)]
    pub enum TerminusDurability("terminus-durability", u32) {
        /// Nothing.
        #[default]
        None = 0,
        /// That the terminus exists, and its configuration.
        Configuration = 1,
        /// The state of its unsettled deliveries too.
        UnsettledState = 2,
    }
}

/// When a terminus begins to expire (part 3, 3.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TerminusExpiryPolicy {
    /// When the link is detached.
    LinkDetach,
    /// When the session ends.
    #[default]
    SessionEnd,
    /// When the connection closes.
    ConnectionClose,
    /// Never.
    Never,
}

impl TerminusExpiryPolicy {
    /// The name in the specification.
    pub const fn as_str(self) -> &'static str {
        match self {
            TerminusExpiryPolicy::LinkDetach => "link-detach",
            TerminusExpiryPolicy::SessionEnd => "session-end",
            TerminusExpiryPolicy::ConnectionClose => "connection-close",
            TerminusExpiryPolicy::Never => "never",
        }
    }
}

impl Decode for TerminusExpiryPolicy {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TerminusExpiryPolicy, DecodeError> {
        Ok(match decoder.symbol()? {
            "link-detach" => TerminusExpiryPolicy::LinkDetach,
            "session-end" => TerminusExpiryPolicy::SessionEnd,
            "connection-close" => TerminusExpiryPolicy::ConnectionClose,
            "never" => TerminusExpiryPolicy::Never,
            _ => return Err(DecodeError::InvalidField { field: "terminus-expiry-policy" }),
        })
    }
}

impl Encode for TerminusExpiryPolicy {
    fn encode(&self, out: &mut Vec<u8>) {
        Symbol::from_static(self.as_str()).encode(out);
    }
}

/// How a source gives its messages away: each to one link (part 3, 3.5.7).
pub const DISTRIBUTION_MOVE: Symbol = Symbol::from_static("move");
/// How a source gives its messages away: each to every link, which is browsing (part 3, 3.5.7).
pub const DISTRIBUTION_COPY: Symbol = Symbol::from_static("copy");
