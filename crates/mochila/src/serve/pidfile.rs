//! The file with the broker's process id.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mochila_server::Config;
use rustix::process::{Pid, Signal, kill_process};

use tracing::warn;

use crate::failure::{Failure, Outcome};

/// A file with the process id, gone when the broker is.
///
/// The broker holds a lock on it, which the system gives back however the process ends: so a file
/// that was left behind is told from one whose broker lives, also when its number is somebody
/// else's by now.
pub(super) struct Pidfile {
    path: PathBuf,
    file: File,
}

impl Pidfile {
    /// Fails if the file of the broker that is to start is that of one that lives.
    pub(super) fn check(config: &Config) -> Outcome {
        let Some(path) = wanted(config, config.port) else { return Ok(()) };
        match Self::holder(&path) {
            Ok(Some(id)) => Err(taken(&path, Some(id))),
            // Whether it is needed is seen when it is written.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Writes the process id where it is wanted. Where nobody has named a place, and the usual one
    /// cannot be written to, there is no file.
    pub(super) fn take(config: &Config, port: u16) -> Outcome<Option<Self>> {
        let Some(path) = wanted(config, port) else { return Ok(None) };
        if let Some(directory) = path.parent().filter(|_| config.pidfile.is_none()) {
            // If that fails, so does writing the file.
            let _ = fs::create_dir_all(directory);
        }
        match Self::write(path) {
            Err(failure) if !is_named(config) && failure.is(IO_ERROR) => {
                warn!("there is no pidfile: {failure}");
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Writes the process id, unless the file is that of a broker that lives.
    fn write(path: PathBuf) -> Outcome<Self> {
        let failed = |error| failure(&path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        // Somebody who only looks holds the lock for a moment.
        let begin = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::Error(error) => return Err(failed(error)),
                TryLockError::WouldBlock if begin.elapsed() < LOOK => std::thread::sleep(PAUSE),
                TryLockError::WouldBlock => return Err(taken(&path, read_id(&path))),
            }
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        let pidfile = Self { path, file };
        if pidfile.is_in_place() {
            return Ok(pidfile);
        }
        // Its last owner has removed it in the meantime.
        Self::write(pidfile.path.clone())
    }

    /// The process that holds the file, if there is one.
    pub(super) fn holder(path: &Path) -> Outcome<Option<Pid>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failure(path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failure(path, error)),
            Err(TryLockError::WouldBlock) => match read_id(path) {
                Some(id) => Ok(Some(id)),
                None => Err(Failure::new(
                    "ServerError",
                    format_args!("{}: no process id can be read there", path.display()),
                )),
            },
        }
    }

    /// Asks the process that holds the file to end, and waits until it has.
    pub(super) fn quit(path: &Path) -> Outcome {
        let id = Self::holder(path)?.ok_or_else(|| nobody(path))?;
        kill_process(id, Signal::TERM).map_err(|error| failure(path, error.into()))?;
        let begin = Instant::now();
        while Self::holder(path)? == Some(id) {
            if begin.elapsed() > PATIENCE {
                let id = id.as_raw_nonzero();
                return Err(Failure::new("Timeout", format_args!("process {id} does not end")));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether the file under the name is still this one.
    fn is_in_place(&self) -> bool {
        let key = |found: fs::Metadata| (found.dev(), found.ino());
        let (named, own) = (fs::metadata(&self.path), self.file.metadata());
        named.is_ok_and(|named| own.is_ok_and(|own| key(named) == key(own)))
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // The lock ends after that, with the file.
        if self.is_in_place() {
            // Somebody may have removed it already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of the running broker that the configuration describes.
pub(super) fn of_running(config: &Config) -> Outcome<PathBuf> {
    config
        .pidfile_on(config.port)
        .ok_or_else(|| Failure::option("there is no home directory: say --pidfile or --pid-dir"))
}

/// The file of a broker that is to start: in the background each has one, by which it is found again.
fn wanted(config: &Config, port: u16) -> Option<PathBuf> {
    let path = config.pidfile_on(port);
    if path.is_none() && config.daemon {
        warn!("there is no pidfile, because there is no home directory");
    }
    path.filter(|_| config.daemon || config.pidfile.is_some())
}

fn is_named(config: &Config) -> bool {
    config.pidfile.is_some() || config.pid_dir.is_some()
}

/// What to say if no broker holds the file.
pub(super) fn nobody(path: &Path) -> Failure {
    let path = path.display();
    Failure::new("ServerError", format_args!("{path}: no broker with this pidfile is running"))
}

fn read_id(path: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(path).ok()?.trim().parse().ok()?)
}

fn taken(path: &Path, id: Option<Pid>) -> Failure {
    let id = id.map_or_else(String::new, |id| format!(", process {}", id.as_raw_nonzero()));
    let path = path.display();
    Failure::new("ServerError", format_args!("{path}: this is the pidfile of a running broker{id}"))
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure::new(IO_ERROR, format_args!("{}: {error}", path.display()))
}

const IO_ERROR: &str = "IOError";

/// How long somebody who only looks may keep the file locked.
const LOOK: Duration = Duration::from_millis(200);

const PAUSE: Duration = Duration::from_millis(10);

/// More than a broker gives its clients for closing.
const PATIENCE: Duration = Duration::from_secs(15);
