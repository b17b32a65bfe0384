//! A broker in this process, and tools as processes.

use std::io::PipeWriter;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use mochila_server::{Config, Server};

/// A broker on a port of the system's choice.
pub(crate) struct Broker {
    pub(crate) server: Server,
}

impl Broker {
    pub(crate) fn start() -> Self {
        Self::start_on(0)
    }

    pub(crate) fn start_on(port: u16) -> Self {
        let config = Config {
            port,
            interfaces: vec!["127.0.0.1".into()],
            auth: false,
            no_data_dir: true,
            worker_threads: 2,
            ..Config::default()
        };
        Self { server: Server::start(config).unwrap() }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    /// A tool, told where this broker is.
    pub(crate) fn tool(&self, line: &str) -> Command {
        let mut words = words(line).into_iter();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mochila"));
        command.arg(words.next().unwrap()).args(["-b", &self.address()]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start_tool(&self, line: &str) -> Child {
        self.tool(line).spawn().unwrap()
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::from(self.tool(line).output().unwrap())
    }

    /// Runs a tool that has to succeed; what it printed.
    pub(crate) fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert!(ran.success, "{line}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    }

    /// Runs a tool that has to fail; what it complained about.
    pub(crate) fn fails(&self, line: &str) -> String {
        let ran = self.run(line);
        assert!(!ran.success, "{line} did not fail: {}", ran.stdout);
        ran.stderr
    }
}

/// What a process did.
pub(crate) struct Ran {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            success: output.status.code() == Some(0),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The words of a command line, some of them between single quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A pipe that nobody reads any more.
pub(crate) fn unread() -> PipeWriter {
    let (_, writer) = std::io::pipe().unwrap();
    writer
}

pub(crate) fn finished(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

/// A directory of this test's own.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mochila-tools-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}
