//! Where the broker's log lines go.
//!
//! A line that cannot be written (nobody reads standard error any more, or too slowly, or the disk is
//! full) is lost and changes nothing else.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mochila_server::Config;
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

use super::backlog::Backlog;
use super::daemon;
use super::levels::Levels;
use crate::failure::{Failure, Outcome};

/// The log; when it is dropped, what waits is written, if that is possible soon.
pub(super) struct Log {
    backlog: Arc<Backlog>,
    reopening: Reopening,
    levels: Arc<Levels>,
}

/// Lets whoever moves log files away have a new one begun.
#[derive(Clone, Default)]
pub(super) struct Reopening {
    path: Option<PathBuf>,
    is_due: Arc<AtomicBool>,
}

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
            .log_internal_errors(false)
            .with_filter_reloading();
        let handle = lines.reload_handle();
        let install = move |filter| handle.reload(filter).map_err(|error| error.to_string());
        let levels = Arc::new(Levels::new(config.log_level.clone(), Box::new(install)));
        let reopening = Reopening { path: config.log_to_file.clone(), ..Reopening::default() };
        let place = place(reopening.path.as_deref())?;
        lines.init();
        let (written, due) = (Arc::clone(&backlog), reopening.clone());
        let writing = move || write_all(&written, place, &due);
        thread::Builder::new().name("log".into()).spawn(writing)?;
        // By default a thread that panics says so on standard error.
        panic::set_hook(Box::new(tell));
        Ok(Self { backlog, reopening, levels })
    }

    pub(super) fn reopening(&self) -> Reopening {
        self.reopening.clone()
    }

    pub(super) fn levels(&self) -> Arc<Levels> {
        Arc::clone(&self.levels)
    }
}

impl Reopening {
    /// Lines go to a file that is opened anew from now on.
    pub(super) fn reopen(&self) {
        if self.path.is_none() {
            info!("SIGHUP opens the log file anew, and there is none");
            return;
        }
        // Release: with the line that follows, whoever writes it sees this.
        self.is_due.store(true, Ordering::Release);
        info!("the log file has been opened anew");
    }

    /// What lines are written to from now on, if that is to be something else.
    fn poll(&self) -> Option<Place> {
        let path = self.path.as_deref().filter(|_| self.is_due.swap(false, Ordering::Acquire));
        place(Some(path?)).map_err(|failure| warn!("the log goes on where it was: {failure}")).ok()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.backlog.flush(PATIENCE);
    }
}

/// What the lines are written to.
type Place = Box<dyn Write + Send>;

fn place(file: Option<&Path>) -> Outcome<Place> {
    Ok(match file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Box::new(file.map_err(|error| {
                Failure::new("IOError", format_args!("the log file {}: {error}", path.display()))
            })?)
        }
        // The terminal that started it is somebody else's by now.
        None if daemon::is_child() => Box::new(io::sink()),
        // A descriptor of our own: whoever waits for it does not hold the lock of standard error.
        None => Box::new(File::from(stderr().as_fd().try_clone_to_owned()?)),
    })
}

/// Writes lines as they come.
fn write_all(backlog: &Backlog, mut place: Place, reopening: &Reopening) {
    let mut batch = Vec::new();
    loop {
        backlog.take(&mut batch);
        if let Some(new) = reopening.poll() {
            place = new;
        }
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
