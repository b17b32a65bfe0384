//! How a tool says that it could not do what it was asked.

use std::fmt;

/// What went wrong: `Failed: <what>: <detail>` on standard error and exit status 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The kind of failure, in one word that scripts can look for.
    what: &'static str,
    detail: String,
}

/// What a tool's `run` returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(what: &'static str, detail: impl fmt::Display) -> Self {
        Self { what, detail: detail.to_string() }
    }

    /// Nothing to say beyond the exit status.
    pub(crate) fn silent() -> Self {
        Self { what: "", detail: String::new() }
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.what.is_empty()
    }

    /// Whether this is the kind of failure.
    pub(crate) fn is(&self, what: &str) -> bool {
        self.what == what
    }

    /// The command line asks for something that is not possible.
    pub(crate) fn option(detail: impl fmt::Display) -> Self {
        Self::new("OptionError", detail)
    }

    /// The command line cannot be read: what is wrong with it, without the lines about usage around it.
    pub(crate) fn command_line(error: &clap::Error) -> Self {
        let text = error.to_string();
        let lines = text.lines().map(str::trim);
        let about = lines.take_while(|line| !FOOTERS.iter().any(|footer| line.starts_with(footer)));
        let words: Vec<&str> = about.flat_map(str::split_whitespace).collect();
        let detail = words.join(" ").replace(" tip: ", "; ");
        let detail = detail.strip_prefix("error: ").unwrap_or(&detail);
        Self::option(format!("{detail}; --help lists what there is"))
    }

    /// An address string that cannot be read, or asks for what AMQP 1.0 does not have.
    pub(crate) fn address(detail: impl fmt::Display) -> Self {
        Self::new("AddressError", detail)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failed: {}: {}", self.what, self.detail)
    }
}

/// What begins the lines that follow on what is wrong with a command line.
const FOOTERS: [&str; 2] = ["Usage: ", "For more information"];

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // Whoever reads our output has had enough of it; that is not worth a word.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::silent();
        }
        Self::new("IOError", error)
    }
}
