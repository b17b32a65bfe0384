//! AMQP 1.0 types, performatives, frames, section scanner and annotation writer.
//!
//! This crate turns bytes into values and values into bytes, and knows nothing else: no sockets,
//! no clock, no sessions. Three layers, each usable alone:
//!
//! * [`types`], [`decode`] and [`encode`]: the type system of part 1, eager ([`Value`]) or lazy
//!   ([`RawValue`]).
//! * [`frame`], [`performative`], [`sasl`], [`terminus`], [`outcome`], [`condition`] and
//!   [`transaction`]: what travels on a connection (parts 2, 4 and 5).
//! * [`section`], [`annotation`] and [`message`]: messages as offsets into untouched bytes, the
//!   writer that puts annotations in front of them, and owned messages for clients (part 3).
//!
//! Every decoder is bounded by [`Limits`] and never panics, whatever the bytes.

mod clock;
#[macro_use]
mod composite;
pub mod annotation;
pub mod condition;
pub mod decode;
pub mod descriptor;
pub mod encode;
pub mod form;
pub mod frame;
pub mod message;
pub mod outcome;
pub mod performative;
pub mod probe;
pub mod sasl;
pub mod section;
mod sequence;
pub mod terminus;
pub mod transaction;
pub mod types;

pub use annotation::HeadPatch;
pub use clock::Now;
pub use composite::Composite;
pub use condition::AmqpError;
pub use decode::{Decode, DecodeError, Decoder, Limits, RawList, RawMap, RawValue};
pub use encode::Encode;
pub use form::Form;
pub use frame::FrameError;
pub use message::Message;
pub use outcome::DeliveryState;
pub use performative::Performative;
pub use section::Sections;
pub use sequence::SequenceNo;
pub use terminus::{Coordinator, Source, Target, TargetArchetype};
pub use types::{Array, Described, Map, Symbol, Timestamp, Type, Uuid, Value};
