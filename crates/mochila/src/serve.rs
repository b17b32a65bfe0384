//! `serve`: the broker.

mod backlog;
mod daemon;
mod descriptors;
mod levels;
mod log;
mod pidfile;
mod signals;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use mochila_server::{Config, Server, config};
use tracing::{info, warn};

use log::Log;
use pidfile::Pidfile;
use signals::Signals;

use crate::failure::{Failure, Outcome};

/// The broker's configuration, from the flags that its own table defines.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    action: Action,
    config: Result<Config, String>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// To be a broker.
    Serve,
    /// To say whether there is one.
    Check,
    /// To end the one that there is.
    Quit,
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        let action = |name, short, help| {
            Arg::new(name)
                .long(name)
                .short(short)
                .action(ArgAction::SetTrue)
                .help_heading("Process")
                .help(help)
        };
        command
            .about("Runs the broker")
            .args(config::arguments())
            .arg(action(
                CHECK,
                'c',
                "Print the process id of the running broker that has this pidfile, or was started in \
                 the background on this port, or fail",
            ))
            .arg(
                action(
                    QUIT,
                    'q',
                    "End the running broker that has this pidfile, or was started in the background \
                     on this port",
                )
                .conflicts_with(CHECK),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // Not an error of the command line alone: the file may be wrong too.
        let config = config::from_matches(matches).map_err(|error| error.to_string());
        let action = match (matches.get_flag(CHECK), matches.get_flag(QUIT)) {
            (true, _) => Action::Check,
            (_, true) => Action::Quit,
            _ => Action::Serve,
        };
        Ok(Self { action, config })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs the broker until a signal ends it.
pub(crate) fn run(options: Options) -> Outcome {
    let config = options.config.map_err(Failure::option)?;
    match options.action {
        Action::Check => return show_running(&pidfile::of_running(&config)?),
        Action::Quit => return Pidfile::quit(&pidfile::of_running(&config)?),
        Action::Serve => Pidfile::check(&config)?,
    }
    if config.daemon && !daemon::is_child() {
        return daemon::start(config.port == 0);
    }
    let log = Log::start(&config)?;
    if !config.ignored.is_empty() {
        warn!("these options mean nothing here and are ignored: {}", config.ignored.join(", "));
    }
    if let Some(path) = config.log_to_file.as_ref().and_then(|path| path.to_str()) {
        info!("logging to {path}");
    }
    descriptors::raise_limit();
    let chooses_port = config.port == 0;
    let signals = Signals::receive()?;
    let server =
        Server::start(config.clone()).map_err(|error| Failure::new("ServerError", error))?;
    let _pidfile = Pidfile::take(&config, server.port())?;
    if chooses_port || daemon::is_child() {
        // Whoever started us reads one line: where to connect, and that it is possible now.
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", server.port()).and_then(|()| out.flush())?;
    }
    server.log_with(log.levels());
    signals.obey(log.reopening(), server.stopper())?;
    let broker = Arc::clone(server.broker());
    server.wait();
    match broker.statistics().msg_depth {
        0 => info!("stopped"),
        lost => warn!("stopped; {lost} messages that were in queues, in memory only, are lost"),
    }
    Ok(())
}

/// Prints the process id of a running broker.
fn show_running(pidfile: &Path) -> Outcome {
    let id = Pidfile::holder(pidfile)?.ok_or_else(|| pidfile::nobody(pidfile))?;
    crate::output::show(&format!("{}\n", id.as_raw_nonzero()))
}

const CHECK: &str = "check";
const QUIT: &str = "quit";
