//! Configuration, workers and wiring of a Mochila node.

pub mod config;

pub use config::{Config, ConfigError};
