//! What an operator can choose.

mod documentation;
mod file;
mod flags;
mod ignored;
mod log_level;
mod table;
mod value;

pub use documentation::documentation;
pub use flags::{arguments, from_matches};
pub use log_level::log_rules;

use crate::patterns;
use crate::users::UsersMark;
use std::path::PathBuf;
use std::thread;

/// The configuration of a node; [`Config::default`] is a broker on port 5672.
///
/// One table (`config/table.rs`) makes the command-line flags, the keys of the configuration file
/// and `docs/configuration.md` from the same lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Port to listen on; 0 lets the system choose.
    pub port: u16,
    /// Addresses or names of network interfaces to listen on; empty means all.
    pub interfaces: Vec<String>,
    /// Connections that may wait to be accepted.
    pub connection_backlog: u32,
    /// Connections that may be open at the same time; 0 means any number.
    pub max_connections: usize,
    /// Connections that may be in the middle of their handshake at the same time.
    pub max_half_open: usize,
    /// How long a handshake may take.
    pub max_negotiate_time_ms: u64,
    /// Largest frame that is accepted.
    pub max_frame_size: u32,
    /// Silence after which a peer is given up; 0 means never.
    pub idle_timeout_ms: u64,
    /// Transfer frames that a peer may send on a session before it has to wait for the window.
    pub session_window: u32,
    /// Whether clients have to say who they are, and prove it.
    pub auth: bool,
    /// File with the users and the hashes of their passwords.
    pub users_file: Option<PathBuf>,
    /// Whether the messages of users may have no other user id than theirs.
    pub verify_user_id: bool,
    /// Directory for everything that is kept in files.
    pub data_dir: Option<PathBuf>,
    /// Keep nothing in a data directory.
    pub no_data_dir: bool,
    /// Threads that serve connections.
    pub worker_threads: usize,
    /// Memory for messages; `None` derives it from the control group or the machine.
    pub memory_limit_bytes: Option<u64>,
    /// Size limit of queues that do not choose their own; 0 means none.
    pub default_queue_limit_bytes: u64,
    /// Filling, in percent of a queue's limit, at which producers are stopped; 0 means never.
    pub default_flow_stop_threshold_percent: u8,
    /// Filling, in percent of a queue's limit, at which stopped producers may go on.
    pub default_flow_resume_threshold_percent: u8,
    /// Filling, in percent of a queue's limit, at which operators are told of it; 0 means never.
    pub default_event_threshold_ratio_percent: u8,
    /// Whether attaching to an address that does not exist makes a queue of that name.
    pub auto_create: bool,
    /// Whether messages get an annotation that says when they came, where a queue does not say.
    pub enable_timestamp: bool,
    /// Deliveries of one link that a client has not settled: then it gets no more.
    pub max_unsettled: u32,
    /// Whether messages that the specification does not allow and many clients send are rejected.
    pub strict_messages: bool,
    /// Whether every value of a message is looked at before it is taken in.
    pub verify_bodies: bool,
    /// Whether a link that its container attaches on another connection is taken from the first one.
    pub steal_across_connections: bool,
    /// Names that may be auto-created; empty means all.
    pub queue_patterns: Vec<String>,
    /// Queues that there may be at the same time.
    pub max_queues: usize,
    /// Exchanges that there may be at the same time.
    pub max_exchanges: usize,
    /// How long a transaction may be open; 0 means for ever.
    pub transaction_timeout_ms: u64,
    /// How long the rest of a message may be in coming; 0 means for ever.
    pub unfinished_message_timeout_ms: u64,
    /// Transactions that may be open on a session at the same time.
    pub max_transactions: usize,
    /// Messages sent and outcomes told in one transaction.
    pub max_transaction_operations: u64,
    /// Size of all messages sent in one transaction; 0 means no limit.
    pub max_transaction_bytes: u64,
    /// What is logged: a level, or a filter as `tracing` writes it.
    pub log_level: String,
    /// File that log lines go to, instead of standard error.
    pub log_to_file: Option<PathBuf>,
    /// Whether to go on in the background once everything is set up.
    pub daemon: bool,
    /// File that the process id is written to.
    pub pidfile: Option<PathBuf>,
    /// Directory for the process id of a broker in the background.
    pub pid_dir: Option<PathBuf>,
    /// Options of other brokers that were given but mean nothing here.
    pub ignored: Vec<String>,
}

/// A configuration that cannot be used, and the line or flag to blame.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A line of the configuration file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A command-line flag is wrong.
    #[error("--{name}: {message}")]
    Flag {
        /// The flag, without the dashes.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// A setting makes no sense.
    #[error("{name}: {message}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Two settings contradict each other.
    #[error("{0}")]
    Contradiction(String),
}

impl Config {
    /// The directory for everything kept in files, if anything may be.
    ///
    /// Without a choice that is `.mochila` in the home directory; nothing without a home directory.
    pub fn data_dir(&self) -> Option<PathBuf> {
        if self.no_data_dir {
            return None;
        }
        self.data_dir.clone().or_else(home)
    }

    /// The file with the process id of a broker on a port: the chosen one, or one in a directory
    /// that is the same whatever else the broker is told.
    pub fn pidfile_on(&self, port: u16) -> Option<PathBuf> {
        let named_after = || Some(self.pid_dir.clone().or_else(home)?.join(format!("{port}.pid")));
        self.pidfile.clone().or_else(named_after)
    }

    /// The users file: the chosen one, or `users` in the data directory.
    pub fn users_file(&self) -> Option<PathBuf> {
        self.users_file.clone().or_else(|| self.data_dir().map(|dir| dir.join("users")))
    }

    /// What says that there have been users; nothing if there is no data directory.
    pub fn users_mark(&self) -> Option<UsersMark> {
        self.data_dir().map(|dir| UsersMark::new(dir.join("had-users")))
    }

    /// Checks what no single setting can check.
    ///
    /// # Errors
    /// If two settings contradict each other.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (stop, resume) =
            (self.default_flow_stop_threshold_percent, self.default_flow_resume_threshold_percent);
        if stop > 0 && resume > stop {
            return Err(ConfigError::Contradiction(format!(
                "default-flow-resume-threshold ({resume}) must not be above \
                 default-flow-stop-threshold ({stop})"
            )));
        }
        patterns::of(self).map(drop)
    }
}

/// The place for everything that nobody has named a place for.
fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".mochila"))
}

impl Default for Config {
    fn default() -> Self {
        Self {
            port: 5672,
            interfaces: Vec::new(),
            connection_backlog: 1024,
            max_connections: 0,
            max_half_open: 1024,
            max_negotiate_time_ms: 10_000,
            max_frame_size: 64 << 10,
            idle_timeout_ms: 120_000,
            session_window: 8192,
            auth: true,
            users_file: None,
            verify_user_id: true,
            data_dir: None,
            no_data_dir: false,
            worker_threads: thread::available_parallelism().map_or(1, usize::from),
            memory_limit_bytes: None,
            default_queue_limit_bytes: 104_857_600,
            default_flow_stop_threshold_percent: 80,
            default_flow_resume_threshold_percent: 70,
            default_event_threshold_ratio_percent: 80,
            auto_create: true,
            enable_timestamp: false,
            max_unsettled: 1_000_000,
            strict_messages: false,
            verify_bodies: false,
            steal_across_connections: false,
            queue_patterns: Vec::new(),
            max_queues: 10_000_000,
            max_exchanges: 100_000,
            transaction_timeout_ms: 60_000,
            unfinished_message_timeout_ms: 60_000,
            max_transactions: 128,
            max_transaction_operations: 1_000_000,
            max_transaction_bytes: 0,
            log_level: "info".into(),
            log_to_file: None,
            daemon: false,
            pidfile: None,
            pid_dir: None,
            ignored: Vec::new(),
        }
    }
}
