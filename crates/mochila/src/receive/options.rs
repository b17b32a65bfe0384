//! The options of `receive`.

use clap::{ArgAction, Parser};

use crate::connection_options::ConnectionFlags;
use crate::log_options::LogOptions;
use crate::yes_no::yes_no;

/// Drains messages from the specified address.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    /// Address to receive from
    #[arg(short, long, value_name = "ADDRESS")]
    pub(crate) address: String,
    /// Timeout in seconds to wait for a message before exiting
    #[arg(long, value_name = "TIMEOUT", default_value_t = 0)]
    pub(crate) timeout: u64,
    /// Ignore timeout and wait forever
    #[arg(short, long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) forever: bool,
    /// Number of messages to receive; 0 means receive indefinitely
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(crate) messages: u64,
    /// Detect and ignore duplicates (by checking the `sn` property)
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) ignore_duplicates: bool,
    /// Verify there are no gaps in the message sequence (by checking the `sn` property)
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) verify_sequence: bool,
    /// Fail if a duplicate is not marked as redelivered (only relevant with ignore-duplicates)
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) check_redelivered: bool,
    /// Pre-fetch window (0 implies no pre-fetch)
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) capacity: u32,
    /// Ack frequency (0 implies none of the messages will get accepted)
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) ack_frequency: u64,
    /// Batch size for transactions (0 implies transactions are not used)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) tx: u32,
    /// Rollback frequency (0 implies no transaction will be rolled back)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rollback_frequency: u32,
    /// Print out message content
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "yes")]
    pub(crate) print_content: bool,
    /// Print a description of the content's object type if relevant
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "no")]
    pub(crate) print_object_type: bool,
    /// Print out message headers
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "no")]
    pub(crate) print_headers: bool,
    /// Print a line when message groups go from this receiver to others
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) print_lost_groups: bool,
    /// Accepted and ignored: use reconnect-urls in the connection options
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) failover_updates: bool,
    /// Report total throughput and latency statistics
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) report_total: bool,
    /// Report throughput and latency statistics every N messages
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) report_every: u64,
    /// Headers on report
    #[arg(long, value_name = "yes|no", action = ArgAction::Set, value_parser = yes_no,
          default_value = "yes")]
    pub(crate) report_header: bool,
    /// Send a message to this address when ready to receive
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) ready_address: Option<String>,
    /// Receive at rate of N messages/second. 0 means receive as fast as possible
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) receive_rate: u64,
    /// Specify reply-to address on response messages
    #[arg(long, value_name = "REPLY-TO")]
    pub(crate) reply_to: Option<String>,
    /// Do not send replies even if reply-to is set
    #[arg(long, value_name = "yes|no", require_equals = true, action = ArgAction::Set,
          value_parser = yes_no, default_value = "no", hide_default_value = true)]
    pub(crate) ignore_reply_to: bool,
    /// Also write the received contents to FILE, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) save_content: Option<std::path::PathBuf>,
    /// Writes processor time and memory used to FILE at the end
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) report_usage: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}
