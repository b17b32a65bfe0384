//! `serve`: the broker.

mod daemon;
mod descriptors;
mod log;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use mochila_server::{Config, Server, Stopper, config};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{info, warn};

use crate::failure::{Failure, Outcome};

/// The broker's configuration, from the flags that its own table defines.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    config: Result<Config, String>,
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        command.about("Runs the broker").args(config::arguments())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // Not an error of the command line alone: the file may be wrong too.
        let config = config::from_matches(matches).map_err(|error| error.to_string());
        Ok(Self { config })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs the broker until a signal ends it.
pub(crate) fn run(options: Options) -> Outcome {
    let config = options.config.map_err(Failure::option)?;
    if config.daemon && !daemon::is_child() {
        return daemon::start(config.port == 0);
    }
    log::start(&config)?;
    if !config.ignored.is_empty() {
        warn!("these options mean nothing here and are ignored: {}", config.ignored.join(", "));
    }
    if let Some(path) = config.log_to_file.as_ref().and_then(|path| path.to_str()) {
        info!("logging to {path}");
    }
    descriptors::raise_limit();
    let (chooses_port, pidfile) = (config.port == 0, config.pidfile.clone());
    // Before there are other threads, so that all of them leave these signals to this one.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let server = Server::start(config).map_err(|error| Failure::new("ServerError", error))?;
    let _pidfile = pidfile.map(Pidfile::write).transpose()?;
    if chooses_port || daemon::is_child() {
        // Whoever started us reads one line: where to connect, and that it is possible now.
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", server.port()).and_then(|()| out.flush())?;
    }
    stop_on_signal(signals, server.stopper())?;
    server.wait();
    info!("stopped");
    Ok(())
}

/// The first signal lets connections end in order, the second ends the process.
fn stop_on_signal(mut signals: Signals, stopper: Stopper) -> Outcome {
    static ASKED: AtomicBool = AtomicBool::new(false);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            // A terminal that closes does not end a broker that runs in the background.
            if signal == SIGHUP && daemon::is_child() {
                continue;
            }
            // Relaxed: only this thread reads and writes it.
            if ASKED.swap(true, Ordering::Relaxed) {
                warn!("stopping at once");
                std::process::exit(1);
            }
            info!("stopping; a second signal stops at once");
            stopper.stop();
        }
    })?;
    Ok(())
}

/// A file with the process id, gone when the broker is.
struct Pidfile(PathBuf);

impl Pidfile {
    fn write(path: PathBuf) -> Outcome<Self> {
        std::fs::write(&path, format!("{}\n", std::process::id()))?;
        Ok(Self(path))
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(&self.0);
    }
}
