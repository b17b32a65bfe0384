//! The tools as processes, against a broker in this one.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod bench;
mod broker;
mod flow;
mod links;
mod management;
mod messages;
mod output;
mod user;
