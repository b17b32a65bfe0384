//! The options of `stat`.

use clap::{ArgGroup, Parser};

use crate::management::ManagementFlags;

/// Shows a broker's statistics.
#[derive(Parser, Clone, Debug)]
#[command(group(ArgGroup::new("show").required(true).args([
    "general", "connections", "exchanges", "queues", "subscriptions", "memory", "acl", "events",
])))]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) management: ManagementFlags,
    /// Show general broker statistics
    #[arg(short, long)]
    pub(crate) general: bool,
    /// Show connections
    #[arg(short, long)]
    pub(crate) connections: bool,
    /// Show exchanges
    #[arg(short, long)]
    pub(crate) exchanges: bool,
    /// Show queues, or everything about the queue named
    #[arg(short, long)]
    pub(crate) queues: bool,
    /// Show subscriptions
    #[arg(short = 'u', long)]
    pub(crate) subscriptions: bool,
    /// Show broker memory statistics
    #[arg(short, long)]
    pub(crate) memory: bool,
    /// Show access control list statistics
    #[arg(long)]
    pub(crate) acl: bool,
    /// Show what has happened lately
    #[arg(long)]
    pub(crate) events: bool,
    /// Sort by column name
    #[arg(short = 'S', long, value_name = "colname")]
    pub(crate) sort_by: Option<String>,
    /// Sort by increasing value (default = decreasing)
    #[arg(short = 'I', long)]
    pub(crate) increasing: bool,
    /// Limit output to n rows (with --sort-by)
    #[arg(short = 'L', long, value_name = "n", default_value_t = 50)]
    pub(crate) limit: usize,
    /// A queue's name (with -q)
    pub(crate) name: Option<String>,
}
