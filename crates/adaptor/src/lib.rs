//! Engine events to broker commands and back.
//!
//! One [`Connection`] is one AMQP peer: an engine, and for every link the node at our end. It is a
//! pure machine: bytes and wake-ups in, bytes and wake-ups out.

mod arrival;
mod connection;
mod coordinator;
mod credit;
mod in_force;
mod incoming;
mod inspection;
mod large;
mod leeway;
mod link_bindings;
mod links;
mod lost_groups;
mod node;
mod open;
mod outgoing;
mod partial;
mod pledging;
mod refusal;
mod relay;
mod requests;
mod scratch;
mod settlement;
mod subscription;
mod tap;
mod telling;
mod terminus;
mod transactions;
mod wanted;

pub use connection::{Connection, Peer};
pub use large::{LargeFile, LargeFiles};
pub use node::{Node, Settings};
pub use scratch::Scratch;

/// The wake-up key that means the connection itself, not one of its links.
pub const WHOLE_CONNECTION: u32 = u32::MAX;
