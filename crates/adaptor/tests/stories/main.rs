//! What a broker's peers see on the wire, told with raw frames and with engines as clients.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod annotations;
mod arguments;
mod attaching;
mod bench;
mod browsing;
mod cases;
mod coordinator;
mod credit;
mod dead_letters;
mod dynamic_nodes;
mod events;
mod exchanges;
mod heads;
mod holding_back;
mod jms;
mod kills;
mod kinds;
mod large_messages;
mod lifetimes;
mod limits;
mod link_bindings;
mod log;
mod malformed;
mod management;
mod opening;
mod outcomes;
mod qpid;
mod relay;
mod selecting;
mod settlement;
mod stamping;
mod stealing;
mod subscription_ends;
mod subscriptions;
mod transacting_clients;
mod transactions;
mod transactions_without_room;
mod unfinished_messages;
mod windows;
