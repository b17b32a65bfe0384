//! AMQP 1.0 connections, sessions, links and SASL as pure state machines: bytes in, events out,
//! bytes out.
//!
//! A [`Connection`] is one end of a connection, the accepting or the connecting one. It is driven
//! by whoever owns the socket, and knows no clock, no socket and no queue:
//!
//! ```
//! # use mochila_engine::{Connection, ConnectionConfig, Event};
//! # use mochila_wire::Now;
//! # let (now, received) = (Now::default(), Vec::<u8>::new());
//! let mut connection = Connection::server(ConnectionConfig::new("here"), now);
//! let mut used = 0;
//! loop {
//!     let handled = connection.handle_bytes(now, &received[used..]);
//!     while let Some(event) = connection.poll_event() {
//!         if let Event::Attached { link, peer } = event {
//!             connection.answer_attach(link, mochila_engine::AttachAnswer::echo(&peer));
//!         }
//!     }
//!     used += handled;
//!     if handled == 0 {
//!         break; // the rest is part of a frame, or waits for an answer of ours
//!     }
//! }
//! let to_send = std::mem::take(connection.output());
//! # assert!(to_send.is_empty() && connection.next_timeout_ms().is_some());
//! ```
//!
//! Ranges in events index into the bytes of the call that made them. Peers' mistakes never come
//! back as errors: they become a detach, end or close in the output, and an event.

mod config;
mod connection;
mod error;
mod event;
mod fault;
mod id;
mod link;
pub mod pair;
mod sasl;
mod secret;
mod session;
mod slots;

pub use config::ConnectionConfig;
pub use connection::Connection;
pub use error::Error;
pub use event::{Event, PeerCredentials, TransferEvent};
pub use id::{LinkId, SessionId};
pub use link::{AttachAnswer, AttachRequest, Delivery, Link, Outgoing, Progress};
pub use sasl::{Credentials, Mechanism};
pub use secret::Secret;
