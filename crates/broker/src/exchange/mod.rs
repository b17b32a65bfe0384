//! Exchanges: which queues a message goes to that is not for one queue alone.
//!
//! An [`Exchange`] is a name that messages are published to. It keeps none: queues are bound to it,
//! and each message goes to those whose bindings match, once to each.
//!
//! * `matcher` has the tables, one for each kind of exchange: pure, and tested against the slowest
//!   thing that could be right. Publishers read them without a lock; whoever binds changes the table
//!   in place if nobody is reading it, and a copy otherwise.
//! * [`Routing`] is the way of a batch: *route* finds the queues, *deliver* puts the messages into
//!   them. The bytes are shared by all of them. What happens to a transaction in between is not
//!   known to either.
//! * [`Publisher`] is a link that sends to an exchange, and what its credit depends on.
//!
//! # What the sender is told
//!
//! A message is accepted if at least one queue has it, or if no queue is bound for it (unless the
//! exchange says otherwise: see [`Unroutable`]). A queue that is full refuses it for itself alone and
//! counts it (`discardsOverflow`); if it were reported, the sender would send again, and those
//! that have it would get it twice. A message that *every* queue refused is rejected, with the reason
//! of one of them: nobody has it, so it may be sent again.

mod alternate;
mod binding;
mod bindings;
mod cache;
mod counts;
mod direct;
mod error;
#[allow(clippy::module_inception, reason = "the exchange is what the room is about")]
mod exchange;
mod headers;
mod last;
mod matcher;
mod publisher;
mod publishing;
mod routing;
mod scoped;
mod settings;
mod topic;

pub use binding::Binding;
pub use counts::ExchangeStatistics;
pub use error::ExchangeError;
pub use exchange::{Exchange, ExchangeDeleteIf};
pub use publisher::{Publisher, SubscriberId};
pub use routing::{Published, Routing};
pub use scoped::ScopedBinding;
pub use settings::{
    EXCHANGE_ARGUMENTS, ExchangeArgument, ExchangeKind, ExchangeSettings, Unroutable,
};

pub(crate) use alternate::Alternate;
pub(crate) use exchange::Parts as ExchangeParts;
pub(crate) use headers::Conditions;
pub(crate) use last::LastToBe;
pub(crate) use topic::{Topic, normalised};
