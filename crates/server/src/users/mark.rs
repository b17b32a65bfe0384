//! That there have been users, for when their file is gone.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A file in the data directory that stays when the users file goes: a broker that finds it alone
/// knows that something is missing, and lets nobody in.
#[derive(Clone, Debug)]
pub struct UsersMark(PathBuf);

impl UsersMark {
    /// Names the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Whether there have been users. What cannot be looked at may be there.
    pub(super) fn is_there(&self) -> bool {
        self.0.try_exists().unwrap_or(true)
    }

    /// Remembers that there are users.
    pub(super) fn leave(&self) -> io::Result<()> {
        if self.0.try_exists()? {
            return Ok(());
        }
        if let Some(directory) = self.0.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&self.0, TEXT)
    }
}

impl fmt::Display for UsersMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

const TEXT: &str = "\
This broker has had users. As long as this file is here it lets nobody in without a name, also if
the users file is gone.
";
