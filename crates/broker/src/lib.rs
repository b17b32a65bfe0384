//! Messages, queues and the memory budget: pure machines and the locks around them.
//!
//! * [`BatchBuilder`] puts the messages of a publisher's visit into a [`Batch`]: their bytes,
//!   copied once and paid for from the [`Budget`], and what a queue has to know about each.
//! * [`SharedQueue`] takes batches in and hands messages out as [`Taken`], by reference. Every
//!   change returns [`Wakeups`], to be performed after the lock has been released.
//! * [`Transaction`] keeps what is to be done at several queues, and does all of it or nothing.
//! * [`Selector`] and [`Filters`] say which messages a consumer wants, from their bytes: see [`selector`].
//! * [`Exchange`] hands messages on to the queues that are bound to it: see [`exchange`].
//! * [`Broker`] finds queues by name, makes them when they are first used, and keeps their timers.
//!
//! No clock, socket, thread or file: `now` is an argument, and large messages are a trait
//! ([`LargeBody`]) that the shell implements.

mod budget;
mod error;
mod events;
pub mod exchange;
mod line;
mod message;
mod messages;
mod node;
mod queue;
mod ration;
pub mod selector;
pub mod settings;
mod slab;
mod sync;
mod transaction;
mod wake;
mod wheel;

pub use budget::{Budget, Claim, OverLimit, Reservation};
pub use error::QueueError;
pub use events::{Event, EventKind, Feed, Severity, ToldEvent};
pub use exchange::{
    Exchange, ExchangeDeleteIf, ExchangeError, ExchangeKind, ExchangeSettings, Published,
    Publisher, Routing,
};
pub use message::{
    Added, Batch, BatchBuilder, Content, Delivery, Front, LargeBody, MessageMeta, Origin, Overlay,
    Segment, Taken,
};
pub use node::{AbandonedTotals, Broker, BrokerSettings, Pattern};
pub use queue::{
    Adoption, ConsumerId, ConsumerOptions, ConsumerReport, DeleteIf, Enqueued, GroupReport, Leeway,
    LostGroups, Mode, Moved, Outcome, Pick, ProducerId, Refusal, Rejected, Settlement, SharedQueue,
    Statistics, TakeLimit, Taking, Want,
};
pub use ration::{Grant, Rations, Remark};
pub use selector::{
    BindingFilter, FieldFilter, Filter, FilterError, Filters, Selector, SelectorError,
    SelectorInput,
};
pub use settings::QueueSettings;
pub use transaction::{
    Fault, Held, PATIENCE_MS, Transaction, TransactionSettings, TransactionTotals, Wait, Waiter,
    Waiting,
};
pub use wake::{Wake, Waker, Wakeups};
