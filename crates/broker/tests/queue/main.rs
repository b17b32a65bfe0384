//! Stories of queues and those who use them, on a bench.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod browsing;
mod groups;
mod groups_property;
mod lifetime;
mod limits;
mod memory;
mod outcomes;
mod property;
mod registry;
mod selecting;
mod selecting_model;
mod sharing;
mod stamps;
mod time;
mod transactions;
