//! Where the broker's log lines go.
//!
//! A line that cannot be written (nobody reads standard error any more, the disk is full) is lost and
//! changes nothing else.

use std::fs::OpenOptions;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use mochila_server::Config;
use tracing_subscriber::EnvFilter;

use super::daemon;
use crate::failure::{Failure, Outcome};

/// Sends log lines to standard error, or to the configured file.
pub(super) fn start(config: &Config) -> Outcome {
    let filter = EnvFilter::try_new(&config.log_level)
        .map_err(|error| Failure::option(format!("--log-level {}: {error}", config.log_level)))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        // It would complain on standard error, and panic if that is what cannot be written to.
        .log_internal_errors(false);
    match &config.log_to_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| {
                Failure::new("IOError", format_args!("{}: {error}", path.display()))
            })?;
            lines.with_ansi(false).with_writer(Arc::new(file)).init();
        }
        // The terminal that started it is somebody else's by now.
        None if daemon::is_child() => lines.with_writer(std::io::sink).init(),
        None => lines.with_ansi(stderr().is_terminal()).with_writer(stderr).init(),
    }
    Ok(())
}
