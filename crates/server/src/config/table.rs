//! The table of all settings.

use super::value::{Bytes, Value};
use super::{Config, log_level};

/// One setting: a flag `--name`, a key `name` in the file, and a row of the documentation.
pub(super) struct Setting {
    pub(super) group: Group,
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    pub(super) takes: Takes,
    pub(super) help: &'static str,
    /// Gives the setting its value, or the values of a list.
    pub(super) set: fn(&mut Config, &[String]) -> Result<(), String>,
    /// Its value as `set` would accept it; empty for "not set".
    pub(super) show: fn(&Config) -> String,
}

/// What follows the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing: the flag alone means yes.
    Nothing,
    /// One value, described by this word.
    One(&'static str),
    /// One value each time the flag is given.
    Many(&'static str),
}

/// A heading of the help text and of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Network,
    Security,
    Links,
    Queues,
    Process,
}

impl Group {
    pub(super) const ALL: [Self; 5] =
        [Self::Network, Self::Security, Self::Links, Self::Queues, Self::Process];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Security => "Security",
            Self::Links => "Links and messages",
            Self::Queues => "Queues and memory",
            Self::Process => "Process",
        }
    }
}

impl Setting {
    /// The setting of a name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

/// Makes one line of the table; `$field` is the field of [`Config`], read and written as `$type`.
macro_rules! setting {
    ($group:ident, $name:literal $(/ $short:literal)?, $takes:expr, $field:ident, $help:literal) => {
        setting!(@ $group, $name $(/ $short)?, $takes, $help,
            |config, values| { config.$field = Value::read(only(values)?)?; Ok(()) },
            |config| config.$field.write())
    };
    ($group:ident, $name:literal $(/ $short:literal)?, $takes:expr, [$field:ident], $help:literal) => {
        setting!(@ $group, $name $(/ $short)?, $takes, $help,
            |config, values| {
                config.$field =
                    values.iter().map(|text| Value::read(text)).collect::<Result<_, String>>()?;
                Ok(())
            },
            |config| config.$field.iter().map(Value::write).collect::<Vec<_>>().join(", "))
    };
    ($group:ident, $name:literal $(/ $short:literal)?, $takes:expr, bytes $field:ident,
        $help:literal) => {
        setting!(@ $group, $name $(/ $short)?, $takes, $help,
            |config, values| {
                let Bytes(bytes) = Bytes::read(only(values)?)?;
                config.$field = bytes.try_into().map_err(|_| "is out of range".to_string())?;
                Ok(())
            },
            |config| config.$field.write())
    };
    ($group:ident, $name:literal $(/ $short:literal)?, $takes:expr, bytes $field:ident from
        $least:expr, $help:literal) => {
        setting!(@ $group, $name $(/ $short)?, $takes, $help,
            |config, values| {
                let Bytes(bytes) = Bytes::read(only(values)?)?;
                if bytes < $least {
                    return Err(format!("{bytes} bytes are less than {}", $least));
                }
                config.$field = Some(bytes);
                Ok(())
            },
            |config| config.$field.write())
    };
    ($group:ident, $name:literal $(/ $short:literal)?, $takes:expr, bounded $field:ident
        $least:literal ..= $most:literal, $help:literal) => {
        setting!(@ $group, $name $(/ $short)?, $takes, $help,
            |config, values| {
                config.$field = within(Value::read(only(values)?)?, $least, $most)?;
                Ok(())
            },
            |config| config.$field.write())
    };
    (@ $group:ident, $name:literal $(/ $short:literal)?, $takes:expr, $help:literal, $set:expr,
        $show:expr) => {
        Setting {
            group: Group::$group,
            name: $name,
            short: setting!(@short $($short)?),
            takes: $takes,
            help: $help,
            set: $set,
            show: $show,
        }
    };
    (@short $short:literal) => { Some($short) };
    (@short) => { None };
}

const YES_NO: Takes = Takes::One("yes|no");
const BYTES: Takes = Takes::One("BYTES");
const MS: Takes = Takes::One("MILLISECONDS");
const PERCENT: Takes = Takes::One("PERCENT");
const N: Takes = Takes::One("N");
const FILE: Takes = Takes::One("FILE");
/// With less memory for messages there would be no room for those that are under way.
const LEAST_MEMORY_BYTES: u64 = 8 << 20;

pub(super) static SETTINGS: &[Setting] = &[
    setting!(
        Network,
        "port" / 'p',
        Takes::One("PORT"),
        port,
        "Port to listen on. 0 lets the system choose; the chosen port is printed on standard output"
    ),
    setting!(
        Network,
        "interface",
        Takes::Many("NAME|ADDRESS"),
        [interfaces],
        "Address or name of a network interface to listen on; can be repeated. Without it the broker \
         listens on all interfaces"
    ),
    setting!(
        Network,
        "connection-backlog",
        N,
        bounded connection_backlog 1..=65_535,
        "Connections that may wait to be accepted"
    ),
    setting!(
        Network,
        "max-connections",
        N,
        max_connections,
        "Connections that may be open at the same time; a new one beyond that is closed at once. 0 \
         means any number"
    ),
    setting!(
        Network,
        "max-half-open",
        N,
        bounded max_half_open 1..=1_000_000,
        "Connections that may be in the middle of their handshake at the same time; beyond that the \
         oldest one has to go, or new ones wait"
    ),
    setting!(
        Network,
        "max-negotiate-time",
        MS,
        bounded max_negotiate_time_ms 1..=3_600_000,
        "How long a client may take for its handshake, from connecting until its open frame"
    ),
    setting!(
        Network,
        "max-frame-size",
        BYTES,
        bounded max_frame_size 512..=16_777_216,
        "Largest frame that is accepted. Larger messages come in several frames"
    ),
    setting!(
        Network,
        "idle-timeout",
        MS,
        bounded idle_timeout_ms 0..=86_400_000,
        "Silence after which a client is given up. Clients are told half of it and keep the \
         connection alive with empty frames. 0 means never"
    ),
    setting!(
        Network,
        "session-window",
        Takes::One("FRAMES"),
        bounded session_window 1..=1_000_000,
        "Transfer frames that a client may send on a session before it has to wait for the window to \
         be renewed"
    ),
    setting!(
        Security,
        "auth",
        YES_NO,
        auth,
        "Whether clients have to prove who they are. With `yes` they use PLAIN with a name and password \
         from the users file; as long as there has never been one, clients on the broker's own machine \
         are let in with ANONYMOUS. With `no` everybody is let in, with ANONYMOUS or any name and password"
    ),
    setting!(
        Security,
        "users-file",
        FILE,
        users_file,
        "Names of the users and hashes of their passwords, written by `mochila user`. It has to exist. A \
         changed file is noticed at once. Without this setting it is `users` in the data directory, \
         where it need not exist"
    ),
    setting!(
        Security,
        "verify-user-id",
        YES_NO,
        verify_user_id,
        "Whether a message is rejected if its property user-id is not the name of the user who sends it. It \
         is for users who have shown a password; a message without user-id is not looked at"
    ),
    setting!(
        Links,
        "max-unsettled",
        N,
        bounded max_unsettled 1..=100_000_000,
        "Deliveries of one link that a client has received and not settled; then it gets no more"
    ),
    setting!(
        Links,
        "steal-across-connections",
        YES_NO,
        steal_across_connections,
        "Whether a link that a container attaches again on another connection is taken from the first one, \
         as the specification says. Some clients give links on two connections the same name by accident"
    ),
    setting!(
        Links,
        "strict-messages",
        YES_NO,
        strict_messages,
        "Whether messages that the specification does not allow and many clients send are rejected: those \
         without body, and with annotations under other keys than symbols that begin with x-"
    ),
    setting!(
        Links,
        "verify-bodies",
        YES_NO,
        verify_bodies,
        "Whether every value of a message is looked at before it is taken in, so that what is malformed or \
         nested too deep does not reach a consumer"
    ),
    setting!(
        Links,
        "unfinished-message-timeout",
        MS,
        unfinished_message_timeout_ms,
        "How long nothing more may come of a message that a client has begun to send: then its link is \
         detached. 0 means for ever"
    ),
    setting!(
        Queues,
        "memory-limit",
        BYTES,
        bytes memory_limit_bytes from LEAST_MEMORY_BYTES,
        "Memory for messages; when it is short, publishers are held back, first those to queues that \
         hold much. At least 8 MiB. Without this setting it is three quarters of the control group's \
         limit, or half of the machine's memory. The process takes more than that: about 20 MB when \
         empty, buffers of sockets and connections, and what the allocator has not given back yet. \
         With hundreds of large messages coming in parts at once it took up to 135 MB at a limit of \
         32M, 170 MB at 64M and 390 MB at 256M"
    ),
    setting!(
        Queues,
        "default-queue-limit",
        BYTES,
        bytes default_queue_limit_bytes,
        "Size limit of queues that do not choose their own. 0 means none"
    ),
    setting!(
        Queues,
        "default-flow-stop-threshold",
        PERCENT,
        bounded default_flow_stop_threshold_percent 0..=100,
        "Filling, in percent of a queue's limit, at which its publishers are stopped. 0 means never"
    ),
    setting!(
        Queues,
        "default-flow-resume-threshold",
        PERCENT,
        bounded default_flow_resume_threshold_percent 0..=100,
        "Filling, in percent of a queue's limit, below which stopped publishers may go on"
    ),
    setting!(
        Queues,
        "default-event-threshold-ratio",
        PERCENT,
        bounded default_event_threshold_ratio_percent 0..=100,
        "Filling, in percent of a queue's limit, at which an event tells of it. 0 means never"
    ),
    setting!(
        Queues,
        "auto-create",
        YES_NO,
        auto_create,
        "Whether a client that attaches to an address that does not exist gets a queue of that name"
    ),
    setting!(
        Queues,
        "enable-timestamp",
        YES_NO,
        enable_timestamp,
        "Whether messages get the annotation x-opt-ingress-timestamp, in nanoseconds of the Unix epoch, \
         where their queue does not say"
    ),
    setting!(
        Queues,
        "queue-patterns",
        Takes::Many("PATTERN"),
        [queue_patterns],
        "Names of queues that are made when a client first attaches to them, with `*` for any text; can \
         be repeated. What these queues are like may follow: `recent.*;max-count=100,limit-policy=ring`; \
         a comma that no `NAME=` follows is part of a value, and sizes have no unit. An alternate exchange has to be there when \
         the first client attaches. Of patterns that match a name the longest counts, and of those as \
         long the first. Without it all names are, and become ordinary queues. Queues of subscriptions \
         and dynamic ones are not meant"
    ),
    setting!(
        Queues,
        "max-queues",
        N,
        bounded max_queues 1..=100_000_000,
        "Queues that there may be at the same time, those of subscriptions and dynamic ones included; \
         beyond that none is made"
    ),
    setting!(
        Queues,
        "max-exchanges",
        N,
        bounded max_exchanges 1..=10_000_000,
        "Exchanges that there may be at the same time, those that are always there included; beyond that \
         none is made"
    ),
    setting!(
        Queues,
        "transaction-timeout",
        MS,
        transaction_timeout_ms,
        "How long a transaction may take, from what is done in it first, before it is rolled back. 0 \
         means for ever"
    ),
    setting!(
        Queues,
        "max-transactions",
        N,
        bounded max_transactions 1..=65_535,
        "Transactions that may be open on a session at the same time"
    ),
    setting!(
        Queues,
        "max-transaction-operations",
        N,
        bounded max_transaction_operations 1..=1_000_000_000,
        "Messages sent and outcomes told in one transaction"
    ),
    setting!(
        Queues,
        "max-transaction-size",
        BYTES,
        bytes max_transaction_bytes,
        "Size of all messages sent in one transaction. 0 means that only memory and the limits of queues \
         bound it"
    ),
    setting!(
        Process,
        "worker-threads",
        N,
        bounded worker_threads 1..=1024,
        "Threads that serve connections. Without this setting, one for each processor"
    ),
    setting!(
        Process,
        "data-dir",
        Takes::One("DIR"),
        data_dir,
        "Directory for everything that is kept in files, of one broker at a time. Without it, `.mochila` in \
         the home directory"
    ),
    setting!(
        Process,
        "no-data-dir",
        Takes::Nothing,
        no_data_dir,
        "Use no data directory. Large messages then pass through files in the system's temporary \
         directory (TMPDIR), which has to exist"
    ),
    setting!(
        @ Process,
        "log-level",
        Takes::One("LEVEL"),
        "What is logged: error, warn, info, debug, trace or off, also for parts: \
         `info,mochila_engine=debug`",
        |config, values| {
            config.log_level = log_level::read(only(values)?)?;
            Ok(())
        },
        |config| config.log_level.clone()
    ),
    setting!(
        Process,
        "log-to-file",
        FILE,
        log_to_file,
        "File that log lines are added to, instead of standard error; SIGHUP opens it anew"
    ),
    setting!(
        Process,
        "daemon" / 'd',
        Takes::Nothing,
        daemon,
        "Go on in the background; the command ends when the broker accepts connections"
    ),
    setting!(
        Process,
        "pidfile",
        FILE,
        pidfile,
        "File that the process id is written to while the broker runs. That of another running broker is an \
         error. `--check` shows the id of the broker that has this file, `--quit` ends it. Without this \
         setting a broker in the background has a file in `pid-dir`, and is found by its port"
    ),
    setting!(
        Process,
        "pid-dir",
        Takes::One("DIR"),
        pid_dir,
        "Directory of the files PORT.pid with the process ids of brokers in the background. Without it, \
         `.mochila` in the home directory"
    ),
];

fn only(values: &[String]) -> Result<&str, String> {
    match values {
        [value] => Ok(value),
        _ => Err(format!("takes one value, not {}", values.len())),
    }
}

fn within<T: PartialOrd + std::fmt::Display>(value: T, least: T, most: T) -> Result<T, String> {
    if value < least || value > most {
        return Err(format!("{value} is not between {least} and {most}"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_there_once() {
        let names: HashSet<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
    }

    #[test]
    fn every_default_can_be_set_again_and_changes_nothing() {
        for setting in SETTINGS {
            let default = Config::default();
            let mut config = default.clone();
            let shown = (setting.show)(&config);
            let values = if shown.is_empty() { Vec::new() } else { vec![shown] };
            if values.is_empty() && !matches!(setting.takes, Takes::Many(_)) {
                continue;
            }
            (setting.set)(&mut config, &values).unwrap();
            assert_eq!(config, default, "{}", setting.name);
        }
    }

    #[test]
    fn a_node_without_memory_for_messages_is_refused() {
        let setting = Setting::find("memory-limit").unwrap();
        for text in ["0", "1K", "8388607"] {
            let error = (setting.set)(&mut Config::default(), &[text.into()]).unwrap_err();
            assert!(error.ends_with("bytes are less than 8388608"), "{error}");
        }
        let mut config = Config::default();
        (setting.set)(&mut config, &["8MiB".into()]).unwrap();
        assert_eq!(config.memory_limit_bytes, Some(8 << 20));
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_bounds() {
        let setting = Setting::find("worker-threads").unwrap();
        let error = (setting.set)(&mut Config::default(), &["0".into()]).unwrap_err();
        assert_eq!(error, "0 is not between 1 and 1024");
    }
}
