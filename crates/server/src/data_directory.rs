//! The directory for everything that is kept in files.

use crate::config::Config;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tracing::warn;

/// A data directory, for as long as this broker has it to itself.
///
/// The broker holds a lock on a file in it, which the system gives back however the process ends.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirectoryError {
    /// The system refuses.
    #[error("the data directory cannot be used: {}: {error}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A broker that runs has it.
    #[error(
        "{}: a running broker has this data directory{}; another one needs --data-dir or \
         --no-data-dir", path.display(), process(*id)
    )]
    Taken {
        /// The directory.
        path: PathBuf,
        /// The process of that broker, if it has said so.
        id: Option<u32>,
    },
}

impl DataDirectory {
    /// The configured directory, made if it does not exist. There is none if none is wanted, or if
    /// nobody has asked for one and it cannot be used.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, DataDirectoryError> {
        let Some(path) = config.data_dir() else { return Ok(None) };
        match Self::claim(path) {
            Err(DataDirectoryError::Unusable { path, error }) if config.data_dir.is_none() => {
                warn!("there is no data directory: {}: {error}", path.display());
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    fn claim(path: PathBuf) -> Result<Self, DataDirectoryError> {
        let unusable = |path: &Path| {
            let path = path.to_path_buf();
            |error| DataDirectoryError::Unusable { path, error }
        };
        fs::create_dir_all(&path).map_err(unusable(&path))?;
        let lock_path = path.join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(&lock_path).map_err(unusable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let id = fs::read_to_string(&lock_path).ok();
                let id = id.and_then(|id| id.trim().parse().ok());
                return Err(DataDirectoryError::Taken { path, id });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&lock_path)(error)),
        }
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(unusable(&lock_path))?;
        Ok(Self { path, _lock: lock })
    }

    /// A directory or file in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

fn process(id: Option<u32>) -> String {
    id.map_or_else(String::new, |id| format!(", process {id}"))
}

const LOCK: &str = "lock";
