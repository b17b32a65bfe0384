//! The options of `bench`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::send::content_size;

/// Measures a broker. Without a scenario it starts senders and receivers against a running broker;
/// with one it starts the broker too.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Options {
    /// What to measure with a broker of its own
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<Scenario>,
    /// URL of broker(s) to connect to, round robin on multiple brokers
    #[arg(short, long, value_name = "BROKER")]
    pub(crate) broker: Vec<String>,
    /// Host(s) to run clients on via ssh, round robin on multiple hosts
    #[arg(short, long, value_name = "CLIENT_HOST")]
    pub(crate) client_host: Vec<String>,
    /// Create N queues
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) queues: u64,
    /// Start N senders per queue
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) senders: u64,
    /// Start N receivers per queue
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) receivers: u64,
    /// Send N messages per sender [default: 100000; 1000000 in scenarios]
    #[arg(short, long, value_name = "N")]
    messages: Option<u64>,
    /// Base name for queues
    #[arg(long, value_name = "NAME", default_value = "benchmark")]
    pub(crate) queue_name: String,
    /// Send rate limited to N messages/second, 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) send_rate: u64,
    /// Receive rate limited to N messages/second, 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) receive_rate: u64,
    /// Message size in bytes [default: 1024; 300 in scenarios]
    #[arg(long, value_name = "BYTES", value_parser = content_size)]
    content_size: Option<usize>,
    /// Receivers acknowledge every N messages, 0 means unconfirmed [default: 100; 1000 in scenarios]
    #[arg(long, value_name = "N")]
    ack_frequency: Option<u64>,
    /// Transaction batch size, 0 means no transactions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) tx: u32,
    /// Don't print header on report
    #[arg(long)]
    pub(crate) no_report_header: bool,
    /// Print summary statistics for multiple senders/receivers: total throughput, average latency
    #[arg(long)]
    pub(crate) summarize: bool,
    /// Repeat N times [default: 1; 3 in scenarios]
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Additional option for sending addresses
    #[arg(long)]
    pub(crate) send_option: Vec<String>,
    /// Additional option for receiving addresses
    #[arg(long)]
    pub(crate) receive_option: Vec<String>,
    /// Additional option for creating addresses
    #[arg(long)]
    pub(crate) create_option: Vec<String>,
    /// Additional argument for send
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) send_arg: Vec<String>,
    /// Additional argument for receive
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) receive_arg: Vec<String>,
    /// Don't add a timestamp, no latency results
    #[arg(long)]
    pub(crate) no_timestamp: bool,
    /// Add a sequence number to each message
    #[arg(long)]
    pub(crate) sequence: bool,
    /// Connection options for senders & receivers
    #[arg(long)]
    pub(crate) connection_options: Option<String>,
    /// Use durable queues and messages
    #[arg(long)]
    pub(crate) durable: bool,
    /// Timeout for fetch operations
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) timeout: f64,
    /// Save received message content to files <queuename>-receiver-<n>.msg
    #[arg(long)]
    pub(crate) save_received: bool,
    /// Show commands executed
    #[arg(long)]
    pub(crate) verbose: bool,
    /// First fill the queues, then drain them
    #[arg(long)]
    pub(crate) fill_drain: bool,
    /// Directory of a qpid-send to use instead of this program
    #[arg(long, value_name = "PATH")]
    pub(crate) qpid_send_path: Option<PathBuf>,
    /// Directory of a qpid-receive to use instead of this program
    #[arg(long, value_name = "PATH")]
    pub(crate) qpid_receive_path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scenario_flags: ScenarioFlags,
}

impl Options {
    pub(crate) fn messages(&self) -> u64 {
        self.messages.unwrap_or(self.or_scenario(100_000, 1_000_000))
    }

    pub(crate) fn content_size(&self) -> usize {
        self.content_size.unwrap_or(self.or_scenario(1024, 300))
    }

    pub(crate) fn ack_frequency(&self) -> u64 {
        self.ack_frequency.unwrap_or(self.or_scenario(100, 1000))
    }

    pub(crate) fn repeat(&self) -> u32 {
        self.repeat.unwrap_or(self.or_scenario(1, 3))
    }

    /// Scenarios have defaults of their own.
    fn or_scenario<T>(&self, plain: T, scenario: T) -> T {
        if self.scenario.is_some() { scenario } else { plain }
    }
}

/// Options that only scenarios have.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Scenarios")]
pub(crate) struct ScenarioFlags {
    /// Write every figure to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Worker threads of the broker
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) worker_threads: usize,
    /// Measure the broker that runs as this process at --broker, instead of starting one
    #[arg(long, value_name = "PID")]
    pub(crate) broker_pid: Option<u32>,
    /// How many messages may be unsettled per sender and unread per receiver
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) capacity: u32,
    /// Connections of the scenario `idle`
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) connections: usize,
    /// Messages in flight of the scenario `window`
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 10, 100])]
    pub(crate) in_flight: Vec<u32>,
    /// Messages in the queue beforehand in the scenario `scaling`
    #[arg(long, value_name = "N", value_delimiter = ',',
          default_values_t = [1_000, 100_000, 1_000_000])]
    pub(crate) backlogs: Vec<u64>,
    /// Messages that somebody else has acquired in the scenario `scaling`
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 10_000])]
    pub(crate) unsettled: Vec<u32>,
    /// Message groups in the scenario `scaling`, all in use, and all but one blocked
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 1_000, 100_000])]
    pub(crate) groups: Vec<u32>,
    /// Bindings of the queue in the scenario `scaling`, to the exchange that is sent to
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 1_000])]
    pub(crate) bindings: Vec<u32>,
}

/// What the broker is put through.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Two senders and one receiver share a queue
    Funnel,
    /// Two senders and two receivers share a queue
    Quad,
    /// A closed loop with 1, 10 and 100 messages in flight: round trip times
    Window,
    /// Many connections that do nothing: memory per connection
    Idle,
    /// A queue is filled and drained: memory per message, and what is given back
    Backlog,
    /// Message groups, beside the plain queue
    Groups,
    /// Sequence numbers and times that the queue adds, beside the plain queue
    Sequence,
    /// Ten consumers with selectors, beside ten without
    Selectors,
    /// A queue with priorities, beside the plain one
    Priority,
    /// A last-value queue, beside the plain one
    Lvq,
    /// A ring queue, beside the plain one
    Ring,
    /// Transactions of a hundred messages, beside none
    Tx,
    /// What a message costs as backlog, unsettled messages, groups and bindings grow
    Scaling,
}
