//! Processes that send and receive for a benchmark.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::{Failure, Outcome};
use crate::output::remark;
use crate::usage::Usage;

/// Which program a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Send,
    Receive,
}

/// How to run clients.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Launcher<'a> {
    /// A directory with programs to use instead of this one.
    pub(super) directory: Option<&'a Path>,
    /// A machine to run them on, by ssh.
    pub(super) host: Option<&'a str>,
    pub(super) verbose: bool,
}

/// A running client. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    shown: String,
}

/// What a client printed as its total: throughput and, with time stamps, latencies in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Total {
    pub(super) per_second: f64,
    pub(super) latency_ms: Option<Latency>,
}

/// The latencies of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) avg: f64,
}

impl Launcher<'_> {
    pub(super) fn start(self, program: Program, args: &[String]) -> Outcome<Client> {
        let (name, old_name) = match program {
            Program::Send => ("send", "qpid-send"),
            Program::Receive => ("receive", "qpid-receive"),
        };
        let mut words: Vec<OsString> = match (self.directory, self.host) {
            (Some(directory), _) => vec![directory.join(old_name).into()],
            // The other machine has its own installation.
            (None, Some(_)) => vec![old_name.into()],
            (None, None) => vec![std::env::current_exe()?.into(), name.into()],
        };
        words.extend(args.iter().map(OsString::from));
        let words = match self.host {
            None => words,
            Some(host) => {
                let quoted = words.iter().map(|word| quoted(&word.to_string_lossy()).into());
                ["ssh".into(), host.into()].into_iter().chain(quoted).collect()
            }
        };
        let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        if self.verbose {
            remark(&shown);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Client { child: command.spawn()?, shown })
    }
}

impl Client {
    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end and reads its total.
    pub(super) fn total(mut self) -> Outcome<Total> {
        let text = self.output()?;
        let line = text.lines().next().unwrap_or_default();
        Total::parse(line)
            .ok_or_else(|| Failure::new("ClientError", format!("{}: no total: {text}", self.shown)))
    }

    /// Waits for its end; an error unless it was a good one.
    fn output(&mut self) -> Outcome<String> {
        let read = |stream: Option<Box<dyn std::io::Read>>| {
            stream.map_or_else(|| Ok(String::new()), std::io::read_to_string)
        };
        // What clients print fits into a pipe, so that one after the other will do.
        let stdout = self.child.stdout.take().map(|stream| Box::new(stream) as Box<_>);
        let stderr = self.child.stderr.take().map(|stream| Box::new(stream) as Box<_>);
        let (out, err) = (read(stdout)?, read(stderr)?);
        let status = self.child.wait()?;
        if status.success() {
            return Ok(out);
        }
        let said: Vec<&str> = err.lines().chain(out.lines()).collect();
        let detail = format!("{}: {status}: {}", self.shown, said.join("; "));
        Err(Failure::new("ClientError", detail))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Total {
    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<f64> =
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let latency_ms = match numbers[..] {
            [_, min, max, avg] => Some(Latency { min, max, avg }),
            _ => None,
        };
        Some(Self { per_second: *numbers.first()?, latency_ms })
    }
}

/// Files into which clients write what they have used; gone when this is dropped.
#[derive(Debug, Default)]
pub(super) struct UsageFiles(Vec<PathBuf>);

impl UsageFiles {
    /// A file for one more client.
    pub(super) fn next(&mut self) -> String {
        let name = format!("mochila-usage-{}-{}", std::process::id(), self.0.len());
        let path = std::env::temp_dir().join(name);
        self.0.push(path.clone());
        path.to_string_lossy().into_owned()
    }

    /// What all of them together have used.
    pub(super) fn cpu_ns(&self) -> Outcome<u64> {
        let mut total = 0;
        for path in &self.0 {
            let usage: Usage =
                serde_json::from_slice(&std::fs::read(path)?).map_err(std::io::Error::from)?;
            total += usage.cpu_ns;
        }
        Ok(total)
    }
}

impl Drop for UsageFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // A client that failed has written none.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_have_latencies_or_not() {
        assert_eq!(Total::parse("43892"), Some(Total { per_second: 43_892.0, latency_ms: None }));
        let latency = Latency { min: 0.5, max: 12.25, avg: 3.0 };
        let expected = Total { per_second: 100.0, latency_ms: Some(latency) };
        assert_eq!(Total::parse("100\t0.50\t12.25\t3.00"), Some(expected));
        assert_eq!(Total::parse(""), None);
        assert_eq!(Total::parse("tp(m/s)"), None);
    }

    #[test]
    fn words_are_quoted_for_the_other_machines_shell() {
        assert_eq!(quoted("q;{a:'b'}"), r"'q;{a:'\''b'\''}'");
    }
}
