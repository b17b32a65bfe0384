//! The options of `config`.

use std::path::PathBuf;

use clap::Parser;

use crate::management::ManagementFlags;

/// Shows and changes a broker's queues and exchanges; without a command it prints totals.
#[derive(Parser, Clone, Debug)]
#[command(after_help = COMMANDS)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) management: ManagementFlags,
    /// The broker's address (the older name of --broker)
    #[arg(short = 'a', long, value_name = "address")]
    pub(crate) broker_addr: Option<String>,
    /// Show bindings in queue or exchange list
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Ignore the default exchange in exchange or queue list
    #[arg(long)]
    pub(crate) ignore_default: bool,
    /// Where a new queue or exchange sends what it cannot deliver
    #[arg(long, value_name = "aexname")]
    pub(crate) alternate_exchange: Option<String>,
    /// The new queue or exchange is durable (this version keeps everything in memory only)
    #[arg(long)]
    pub(crate) durable: bool,
    /// Replication in a cluster: none, configuration or all; accepted and passed over
    #[arg(long, value_name = "level", value_parser = ["none", "configuration", "all"])]
    pub(crate) replicate: Option<String>,
    #[command(flatten)]
    pub(crate) queue: QueueFlags,
    /// Start replication from the same-named queue at <broker-url>: refused, no queue is replicated
    #[arg(long, value_name = "broker-url")]
    pub(crate) start_replica: Option<String>,
    /// The exchange inserts a 'qpid.msg_sequence' field in the message header
    #[arg(long, help_heading = "Adding exchanges")]
    pub(crate) sequence: bool,
    /// The exchange keeps the last message and sends it to newly bound queues
    #[arg(long, help_heading = "Adding exchanges")]
    pub(crate) ive: bool,
    /// Delete a queue even if it is in use or not empty
    #[arg(long, help_heading = "Deleting queues")]
    pub(crate) force: bool,
    /// Delete a queue even if it is not empty
    #[arg(long, help_heading = "Deleting queues")]
    pub(crate) force_if_not_empty: bool,
    /// Delete a queue even if it is in use
    #[arg(long, help_heading = "Deleting queues")]
    pub(crate) force_if_used: bool,
    /// For XML exchange bindings: the file that holds the XQuery, - for standard input
    #[arg(short, long, value_name = "file.xq", help_heading = "Bindings")]
    pub(crate) file: Option<PathBuf>,
    /// A property that `list` shows
    #[arg(long, value_name = "property-name", help_heading = "Listing")]
    pub(crate) show_property: Vec<String>,
    /// The exchange that `reroute` publishes to; without it the queue's alternate exchange
    #[arg(long, value_name = "name", help_heading = "Purging and moving messages")]
    pub(crate) exchange: Option<String>,
    /// Only messages that this selector is true for
    #[arg(long, value_name = "selector", help_heading = "Purging and moving messages")]
    pub(crate) filter: Option<String>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What a new queue is to be like; each becomes an argument of the queue.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Adding queues")]
pub(crate) struct QueueFlags {
    /// Number of files in the queue's journal
    #[arg(long, value_name = "n")]
    pub(crate) file_count: Option<u64>,
    /// Size of a journal file in pages of 64 KiB
    #[arg(long, value_name = "n")]
    pub(crate) file_size: Option<u64>,
    /// Journal file pool partition number
    #[arg(long, value_name = "n")]
    pub(crate) efp_partition_num: Option<u64>,
    /// Journal file pool file size in KiB
    #[arg(long, value_name = "n")]
    pub(crate) efp_pool_file_size: Option<u64>,
    /// Journal buffer page size in KiB
    #[arg(long, value_name = "n")]
    pub(crate) wcache_page_size: Option<u64>,
    /// Number of journal buffer pages
    #[arg(long, value_name = "n")]
    pub(crate) wcache_num_pages: Option<u64>,
    /// Maximum in-memory queue size as bytes
    #[arg(long, value_name = "n")]
    pub(crate) max_queue_size: Option<u64>,
    /// Maximum in-memory queue size as a number of messages
    #[arg(long, value_name = "n")]
    pub(crate) max_queue_count: Option<u64>,
    /// What happens when the queue's limit is reached; ring never drops what is being consumed, so
    /// ring-strict is the same, and none is reject, which is the usual thing
    #[arg(long, value_name = "policy", value_parser = ["none", "reject", "block", "ring", "ring-strict", "self-destruct"])]
    pub(crate) limit_policy: Option<String>,
    /// Last value queue key
    #[arg(long, value_name = "key")]
    pub(crate) lvq_key: Option<String>,
    /// Turn on sender flow control when the number of queued bytes exceeds this value
    #[arg(long, value_name = "n")]
    pub(crate) flow_stop_size: Option<u64>,
    /// Turn off sender flow control when the number of queued bytes drops below this value
    #[arg(long, value_name = "n")]
    pub(crate) flow_resume_size: Option<u64>,
    /// Turn on sender flow control when the number of queued messages exceeds this value
    #[arg(long, value_name = "n")]
    pub(crate) flow_stop_count: Option<u64>,
    /// Turn off sender flow control when the number of queued messages drops below this value
    #[arg(long, value_name = "n")]
    pub(crate) flow_resume_count: Option<u64>,
    /// Enable message groups: the property that holds the group identifier; needs --shared-groups
    #[arg(long, value_name = "header-name")]
    pub(crate) group_header: Option<String>,
    /// Allow message group consumption across multiple consumers
    #[arg(long)]
    pub(crate) shared_groups: bool,
    /// A key-value pair to add to the arguments; NAME alone, in an update, takes back what was set
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) argument: Vec<String>,
}

/// How the commands that begin with a word are written.
pub(super) fn usages(word: &str) -> Vec<&'static str> {
    let usages = COMMANDS.lines().skip(1).filter_map(|line| line.trim_start().split("  ").next());
    usages.filter(|usage| usage.split(' ').next() == Some(word)).collect()
}

const COMMANDS: &str = "\
Commands:
  (none)                                    print totals
  exchanges [FILTER]                        list exchanges
  queues [FILTER]                           list queues
  add exchange TYPE NAME                    add an exchange (direct, fanout, topic, headers)
  del exchange NAME                         delete an exchange
  add queue NAME                            add a queue
  update queue NAME                         change limits of a queue: the options are those of add
  del queue NAME                            delete a queue that is empty and not in use
  bind EXCHANGE QUEUE [KEY] [all|any K=V…]  bind a queue to an exchange
  unbind EXCHANGE QUEUE [KEY]               remove a binding
  add TYPE NAME [--argument K=V]            add an object of any type
  del TYPE NAME                             delete an object of any type
  list TYPE [--show-property P]             list the objects of a type
  purge QUEUE [COUNT]                       remove a queue's messages
  move QUEUE DESTINATION [COUNT]            move a queue's messages to another queue
  reroute QUEUE [COUNT] [--exchange NAME]   publish a queue's messages to an exchange; without its
                                            name, to the queue's alternate exchange
  redirect QUEUE [TARGET]                   send what comes for QUEUE to TARGET, and back; without
                                            TARGET, end that
  log [LEVELS]                              show what the broker logs, or change it until it ends:
                                            error, warn, info, debug, trace, off, or several for parts
  reload-acl, shutdown                      not implemented: there is no access control list, and a
                                            broker is stopped where it runs (serve --quit)";
