//! Stories of queues and those who use them, on a bench.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod alarms;
mod bench;
mod browsing;
mod groups;
mod groups_property;
mod kinds;
mod kinds_property;
mod last_value;
mod lifetime;
mod limits;
mod memory;
mod moving;
mod outcomes;
mod priorities;
mod property;
mod redirect;
mod registry;
mod rerouting;
mod ring;
mod screening;
mod selecting;
mod selecting_model;
mod self_destruct;
mod self_destruct_property;
mod sharing;
mod stamps;
mod time;
mod transacted_kinds_property;
mod transacting;
mod transactions;
mod transactions_of_kinds;
mod transactions_property;
