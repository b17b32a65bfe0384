//! Configuration, workers and wiring of a Mochila node.

mod acceptor;
mod admission;
pub mod config;
mod counter;
mod data_directory;
mod desk;
mod handshake;
mod housekeeping;
mod interface;
mod large_files;
mod memory;
mod patterns;
mod peer;
mod server;
mod site;
mod task;
mod users;
mod verifier;
mod worker;

pub use config::{Config, ConfigError};
pub use data_directory::DataDirectoryError;
pub use memory::Memory;
pub use mochila_management::Logging;
pub use server::{Server, ServerError, Stopper};
pub use users::{Presence, Users, UsersError, UsersMark};
