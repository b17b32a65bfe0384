//! The users that a broker knows.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use mochila_server::{Config, Users};

use crate::failure::{Failure, Outcome};
use crate::output::{remark, show};

/// Manages the users that may connect to a broker that asks for authentication.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// Adds a user, or changes the password of one; the password is asked for, or read from
    /// standard input
    Add(Named),
    /// Removes a user
    Del(Named),
    /// Lists the users
    List(File),
}

#[derive(Args, Clone, Debug)]
struct Named {
    /// The user's name
    name: String,
    #[command(flatten)]
    file: File,
}

#[derive(Args, Clone, Debug)]
struct File {
    /// The users file, if it is not the one in the data directory
    #[arg(long, value_name = "FILE")]
    users_file: Option<PathBuf>,
    /// The broker's data directory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    match &options.action {
        Action::Add(named) => {
            let users = named.file.users()?;
            let password = password(&named.name)?;
            users.add(&named.name, &password).map_err(failure)
        }
        Action::Del(named) => {
            let users = named.file.users()?;
            users.remove(&named.name).map_err(failure)?;
            if users.names().map_err(failure)?.is_empty() {
                let name = &named.name;
                remark(format_args!("{name} was the last user: nobody is let in now"));
            }
            Ok(())
        }
        Action::List(file) => {
            let names = file.users()?.names().map_err(failure)?;
            let lines = names.iter().map(|name| format!("{name}\n"));
            show(&lines.collect::<String>())
        }
    }
}

impl File {
    fn users(&self) -> Outcome<Users> {
        let config = Config {
            users_file: self.users_file.clone(),
            data_dir: self.data_dir.clone(),
            ..Config::default()
        };
        let path = config.users_file().ok_or_else(|| {
            Failure::option("there is no home directory: say --users-file or --data-dir")
        })?;
        // A named file may be that of a broker whose data directory is another one.
        let mark = config.users_mark().filter(|_| self.users_file.is_none());
        Ok(Users::new(path).remembered_by(mark))
    }
}

fn password(name: &str) -> Outcome<String> {
    if std::io::stdin().is_terminal() {
        write!(std::io::stderr(), "Password of {name}: ")?;
    }
    let mut line = String::new();
    let _echo = Echo::off();
    std::io::stdin().lock().read_line(&mut line)?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Failure::new("UsersError", "the password is empty"));
    }
    Ok(password.to_owned())
}

/// While this lives, what is typed on the terminal does not show.
struct Echo {
    was_on: bool,
}

impl Echo {
    fn off() -> Self {
        let was_on = std::io::stdin().is_terminal() && stty("-echo");
        Self { was_on }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if self.was_on {
            stty("echo");
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// The terminal's settings belong to `stty`, which every system has.
fn stty(setting: &str) -> bool {
    std::process::Command::new("stty").arg(setting).status().is_ok_and(|status| status.success())
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new("UsersError", error)
}
