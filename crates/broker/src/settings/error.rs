//! What can be wrong with settings.

use std::fmt;

/// Why settings are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// No argument has this name.
    UnknownArgument {
        /// The name.
        name: String,
    },
    /// No argument of an exchange has this name.
    UnknownExchangeArgument {
        /// The name.
        name: String,
    },
    /// The argument does not take this value.
    InvalidValue {
        /// The argument.
        name: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        found: String,
    },
    /// One argument is given twice, and each time says something else.
    Twice {
        /// The name it is given under.
        name: String,
        /// The name it is given under the other time.
        other: String,
    },
    /// One argument means nothing without the other.
    Incomplete {
        /// The one that is there.
        name: &'static str,
        /// What has to be there too.
        needs: &'static str,
    },
    /// Two arguments that cannot both be had.
    Contradiction {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A turn for a level of priority that is not there.
    NoSuchLevel {
        /// The level.
        level: usize,
        /// How many there are.
        levels: usize,
    },
    /// One argument must not be larger than the other.
    Conflict {
        /// The one that is larger, and its value.
        larger: (&'static str, u64),
        /// The other one.
        smaller: (&'static str, u64),
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::UnknownArgument { name } => {
                write!(f, "'{}' is not an argument of a queue", name.escape_debug())
            }
            SettingsError::UnknownExchangeArgument { name } => {
                write!(f, "'{}' is not an argument of an exchange", name.escape_debug())
            }
            SettingsError::InvalidValue { name, expected, found } => {
                write!(f, "{name} takes {expected}, not {found}")
            }
            SettingsError::Twice { name, other } if name == other => {
                write!(f, "{name} is given twice, with different values")
            }
            SettingsError::Twice { name, other } => {
                write!(f, "{name} and {other} are the same argument, and have different values")
            }
            SettingsError::Incomplete { name, needs } => {
                write!(f, "{name} means nothing without {needs}")
            }
            SettingsError::Contradiction { one, other } => {
                write!(f, "{one} and {other} do not go together")
            }
            SettingsError::NoSuchLevel { level, levels } => write!(
                f,
                "qpid.fairshare-{level} is for a level that is not there: there are {levels} levels"
            ),
            SettingsError::Conflict { larger, smaller } => write!(
                f,
                "{} ({}) must not be larger than {} ({})",
                larger.0, larger.1, smaller.0, smaller.1
            ),
        }
    }
}

impl std::error::Error for SettingsError {}
