//! What the compiler does not check: the layer table, where `unsafe` may stand, the size of files,
//! leftovers, machine paths, and the settings every crate shares.

mod layers;
mod settings;
mod text;

use crate::tree::Tree;
use std::fmt;

/// One thing that is not as it should be, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    severity: Severity,
    place: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

impl Finding {
    fn error(place: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, place: place.into(), text: text.into() }
    }

    fn warning(place: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, place: place.into(), text: text.into() }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}", self.place, self.text)
    }
}

/// Runs every check.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let checks = [
        layers::check,
        settings::check,
        text::unsafe_code,
        text::file_sizes,
        text::leftovers,
        text::machine_paths,
    ];
    checks.iter().flat_map(|check| check(tree)).collect()
}
