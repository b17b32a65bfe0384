//! Configuration, workers and wiring of a Mochila node.

pub mod config;
mod memory;
mod users;

pub use config::{Config, ConfigError};
pub use memory::Memory;
pub use users::{Users, UsersError};
