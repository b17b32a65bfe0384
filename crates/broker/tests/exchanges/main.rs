//! Stories of exchanges, and of the queues behind them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod last_messages;
mod numbers;
mod routing;
mod scoped;
mod senders;
mod senders_property;
mod transactions;
