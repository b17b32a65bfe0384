//! The options of `send`.

use clap::{ArgAction, Parser};

use super::content::content_size;
use crate::connection_options::ConnectionFlags;
use crate::log_options::LogOptions;
use crate::yes_no::yes_no;

/// Sends messages to the specified address.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    /// Address to send to
    #[arg(short, long, value_name = "ADDRESS")]
    pub(crate) address: String,
    /// Stop after N messages have been sent, 0 means no limit
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) messages: u64,
    /// Use the supplied id as the messages' message-id
    #[arg(short, long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Specify reply-to address
    #[arg(long, value_name = "REPLY-TO")]
    pub(crate) reply_to: Option<String>,
    /// Send N EOS messages to mark end of input
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) send_eos: u32,
    /// Mark messages as durable (this version of the broker keeps them in memory only)
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "no")]
    pub(crate) durable: bool,
    /// Time-to-live for messages, in milliseconds
    #[arg(long, value_name = "msecs", default_value_t = 0)]
    pub(crate) ttl: u32,
    /// Priority for messages (higher value implies higher priority); without it they say none, which
    /// means 4
    #[arg(long, value_name = "PRIORITY")]
    pub(crate) priority: Option<u8>,
    /// Specify message property; numbers and true or false get the type that they look like
    #[arg(short = 'P', long, value_name = "NAME=VALUE")]
    pub(crate) property: Vec<String>,
    /// Correlation-id for messages
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// Userid for messages
    #[arg(long, value_name = "USERID")]
    pub(crate) user_id: Option<String>,
    /// Set userid for messages based on authenticated identity
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "no")]
    pub(crate) auto_user_id: bool,
    /// Use CONTENT as message content
    #[arg(long, value_name = "CONTENT")]
    pub(crate) content_string: Option<String>,
    /// Create an N-byte message content
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = content_size)]
    pub(crate) content_size: usize,
    /// Specify entry for map content
    #[arg(short = 'M', long, value_name = "NAME=VALUE")]
    pub(crate) content_map: Vec<String>,
    /// Read message content from stdin, one line per message
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) content_stdin: bool,
    /// How many messages may be under way, not yet settled
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) capacity: u32,
    /// Batch size for transactions (0 implies transactions are not used)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) tx: u32,
    /// Rollback frequency (0 implies no transaction will be rolled back)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rollback_frequency: u32,
    /// Accepted and ignored: use reconnect-urls in the connection options
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) failover_updates: bool,
    /// Report total throughput statistics
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) report_total: bool,
    /// Report throughput statistics every N messages
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) report_every: u64,
    /// Headers on report
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "yes")]
    pub(crate) report_header: bool,
    /// Send at rate of N messages/second. 0 means send as fast as possible
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) send_rate: u64,
    /// Add a sequence number message property `sn` (required for duplicate/lost message detection)
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "yes")]
    pub(crate) sequence: bool,
    /// Add a time stamp message property `ts` (required for latency measurement)
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "yes")]
    pub(crate) timestamp: bool,
    /// Generate groups of messages using message property KEY to hold the group identifier
    #[arg(long, value_name = "KEY")]
    pub(crate) group_key: Option<String>,
    /// Generate group identifiers with STRING prefix (if group-key specified)
    #[arg(long, value_name = "STRING", default_value = "GROUP-")]
    pub(crate) group_prefix: String,
    /// Number of messages per group (if group-key specified)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) group_size: u32,
    /// Randomize the number of messages per group to 1...group-size (if group-key specified)
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) group_randomize_size: bool,
    /// Simultaneously interleave messages from N different groups (if group-key specified)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) group_interleave: u32,
    /// Writes processor time and memory used to FILE at the end
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) report_usage: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}
