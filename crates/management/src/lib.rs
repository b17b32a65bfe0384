//! The node `$management`: one table of everything that a node manages, and the requests that read
//! and change it.
//!
//! [`Management::handle`] takes the encoded message of a request and gives that of the response
//! (AMQP Management 1.0, working draft). [`Directory`] is where connections say who they are. The
//! table of types, attributes and operations is in `kind.rs`; what can be asked, what answers
//! `GET-ATTRIBUTES`, and the reference in `docs/management.md` all come from it.

mod attribute;
mod describe;
mod directory;
mod entity;
mod error;
mod kind;
mod logging;
mod management;
mod query;
mod request;
mod response;
mod scope;

pub use directory::{
    Claim, ConnectionRecord, ContainerTaken, Counter, Direction, Directory, LinkRecord,
    PeerIdentity,
};
pub use logging::Logging;
pub use management::{Management, NodeFacts};
pub use response::Response;
