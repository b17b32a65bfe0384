//! Where the broker's log lines go.
//!
//! A line that cannot be written (nobody reads standard error any more, or too slowly, or the disk is
//! full) is lost and changes nothing else.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mochila_server::Config;
use tracing::{error, warn};
use tracing_subscriber::EnvFilter;

use super::backlog::Backlog;
use super::daemon;
use crate::failure::{Failure, Outcome};

/// The log; when it is dropped, what waits is written, if that is possible soon.
pub(super) struct Log(Arc<Backlog>);

impl Log {
    /// Sends log lines to standard error, or to the configured file.
    pub(super) fn start(config: &Config) -> Outcome<Self> {
        let filter = EnvFilter::try_new(&config.log_level).map_err(|error| {
            Failure::option(format!("--log-level {}: {error}", config.log_level))
        })?;
        let backlog = Arc::<Backlog>::default();
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_target(false)
            .with_ansi(config.log_to_file.is_none() && stderr().is_terminal())
            .with_writer(Arc::clone(&backlog))
            // It would complain on standard error, which may be full.
            .log_internal_errors(false);
        let place = place(config)?;
        lines.init();
        let written = Arc::clone(&backlog);
        thread::Builder::new().name("log".into()).spawn(move || write_all(&written, place))?;
        // By default a thread that panics says so on standard error.
        panic::set_hook(Box::new(tell));
        Ok(Self(backlog))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush(PATIENCE);
    }
}

/// What the lines are written to.
fn place(config: &Config) -> Outcome<Box<dyn Write + Send>> {
    Ok(match &config.log_to_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.map_err(|error| {
                Failure::new("IOError", format_args!("{}: {error}", path.display()))
            })?)
        }
        // The terminal that started it is somebody else's by now.
        None if daemon::is_child() => Box::new(io::sink()),
        // A descriptor of our own: whoever waits for it does not hold the lock of standard error.
        None => Box::new(File::from(stderr().as_fd().try_clone_to_owned()?)),
    })
}

/// Writes lines as they come.
fn write_all(backlog: &Backlog, mut place: impl Write) {
    let mut batch = Vec::new();
    loop {
        backlog.take(&mut batch);
        match place.write_all(&batch) {
            Ok(()) => {
                let lost = backlog.written();
                if lost > 0 {
                    warn!("{lost} lines of this log are lost: they could not be written in time");
                }
            }
            Err(_) => backlog.lose(&batch),
        }
        batch.clear();
        backlog.rest();
    }
}

/// Logs a panic.
fn tell(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(ToString::to_string);
    error!(at, reason = panic.payload_as_str(), "a fault of this program");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        error!("{trace}");
    }
}

/// How long the end of the broker may wait for whoever reads the log.
const PATIENCE: Duration = Duration::from_secs(3);
