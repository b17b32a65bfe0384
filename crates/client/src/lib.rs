//! An async AMQP 1.0 client library on the Mochila engine.
//!
//! ```no_run
//! use mochila_client::{Connection, Options};
//!
//! # async fn example() -> Result<(), mochila_client::Error> {
//! let connection = Connection::open("amqp://localhost:5672", Options::default()).await?;
//! let session = connection.session().await?;
//!
//! let sender = session.sender("greetings").await?;
//! sender.send("hello").await?;
//!
//! let mut receiver = session.receiver("greetings").await?;
//! let delivery = receiver.recv().await?;
//! println!("{:?}", delivery.message()?.body);
//! delivery.accept()?;
//! connection.close().await
//! # }
//! ```
//!
//! [`Connection`], [`Session`], [`Sender`] and [`Receiver`] are handles; one task per connection
//! drives the protocol and reconnects if [`Options::reconnect`] says so. Messages are
//! [`Message`] values, or [`Encoded`] bytes for those who make their own.
//!
//! [`driver`] is for programs that want the most out of one thread: it drives the engine in place
//! over a blocking loop, without tasks and without an allocation per message.

mod clock;
mod command;
mod connection;
mod coordinator;
mod core;
mod credentials;
mod delivery;
pub mod driver;
mod error;
mod link;
mod link_binding;
mod link_options;
mod lost_groups;
mod options;
mod receiver;
mod requester;
mod sender;
mod session;
mod shared;
mod task;
mod unique;
pub mod url;

pub use connection::Connection;
pub use coordinator::{Coordinator, Transaction};
pub use delivery::{Delivery, Modification};
pub use error::Error;
pub use link_binding::LinkBinding;
pub use link_options::{CreditMode, LinkSettings, ReceiverOptions, SenderOptions};
pub use lost_groups::LostGroups;
pub use mochila_wire::message::{Body, Header, Message, MessageId, Properties};
pub use mochila_wire::{AmqpError, DeliveryState, Map, Source, Symbol, Target, Value};
pub use options::{Backoff, Options};
pub use receiver::{Received, Receiver};
pub use requester::Requester;
pub use sender::{Confirmation, Encoded, Sender};
pub use session::Session;
pub use unique::unique_name;
