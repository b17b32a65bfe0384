//! The logging options of the older tools.

use clap::{ArgAction, Args};

use crate::yes_no::yes_no;

/// Accepted so that existing scripts run unchanged, and ignored: these tools write their errors to
/// standard error and log nothing.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Logging (accepted and ignored)")]
pub(crate) struct LogOptions {
    /// Ignored
    #[arg(short = 't', long = "trace", value_name = "yes|no", require_equals = true,
          action = ArgAction::Set, value_parser = yes_no, default_value = "no",
          hide_default_value = true)]
    trace: bool,
    /// Ignored
    #[arg(long, value_name = "RULE")]
    log_enable: Vec<String>,
    /// Ignored
    #[arg(long, value_name = "RULE")]
    log_disable: Vec<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_time: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_level: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_source: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_thread: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_function: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_hires_timestamp: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_category: Option<String>,
    /// Ignored
    #[arg(long, value_name = "STRING")]
    log_prefix: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_to_stderr: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_to_stdout: Option<String>,
    /// Ignored
    #[arg(long, value_name = "FILE")]
    log_to_file: Option<String>,
    /// Ignored
    #[arg(long, value_name = "yes|no")]
    log_to_syslog: Option<String>,
    /// Ignored
    #[arg(long, value_name = "NAME")]
    syslog_name: Option<String>,
    /// Ignored
    #[arg(long, value_name = "LOG_XXX")]
    syslog_facility: Option<String>,
}
