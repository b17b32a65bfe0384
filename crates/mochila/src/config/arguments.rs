//! Queue arguments as flags, and flags as queue arguments.

use mochila_wire::{Map, Value};

use super::options::{Options, QueueFlags};
use crate::address::guess;
use crate::failure::Outcome;
use crate::management::Entity;
use crate::text::value_text;

/// A flag with a number, and the queue argument that it sets.
struct NumberFlag {
    flag: &'static str,
    argument: &'static str,
    given: fn(&QueueFlags) -> Option<u64>,
    /// Whether it only means something for durable queues.
    journal: bool,
}

/// In the order in which they are listed.
const NUMBERS: [NumberFlag; 12] = [
    NumberFlag {
        flag: "file-size",
        argument: "qpid.file_size",
        given: |flags| flags.file_size,
        journal: true,
    },
    NumberFlag {
        flag: "file-count",
        argument: "qpid.file_count",
        given: |flags| flags.file_count,
        journal: true,
    },
    NumberFlag {
        flag: "efp-partition-num",
        argument: "qpid.efp_partition_num",
        given: |flags| flags.efp_partition_num,
        journal: true,
    },
    NumberFlag {
        flag: "efp-pool-file-size",
        argument: "qpid.efp_pool_file_size",
        given: |flags| flags.efp_pool_file_size,
        journal: true,
    },
    NumberFlag {
        flag: "wcache-page-size",
        argument: "qpid.wcache-page-size",
        given: |flags| flags.wcache_page_size,
        journal: true,
    },
    NumberFlag {
        flag: "wcache-num-pages",
        argument: "qpid.wcache-num-pages",
        given: |flags| flags.wcache_num_pages,
        journal: true,
    },
    NumberFlag {
        flag: "max-queue-size",
        argument: "qpid.max_size",
        given: |flags| flags.max_queue_size,
        journal: false,
    },
    NumberFlag {
        flag: "max-queue-count",
        argument: "qpid.max_count",
        given: |flags| flags.max_queue_count,
        journal: false,
    },
    NumberFlag {
        flag: "flow-stop-size",
        argument: "qpid.flow_stop_size",
        given: |flags| flags.flow_stop_size,
        journal: false,
    },
    NumberFlag {
        flag: "flow-resume-size",
        argument: "qpid.flow_resume_size",
        given: |flags| flags.flow_resume_size,
        journal: false,
    },
    NumberFlag {
        flag: "flow-stop-count",
        argument: "qpid.flow_stop_count",
        given: |flags| flags.flow_stop_count,
        journal: false,
    },
    NumberFlag {
        flag: "flow-resume-count",
        argument: "qpid.flow_resume_count",
        given: |flags| flags.flow_resume_count,
        journal: false,
    },
];
const POLICY: &str = "qpid.policy_type";
const LVQ_KEY: &str = "qpid.last_value_queue_key";
const GROUP_HEADER: &str = "qpid.group_header_key";
const SHARED_GROUPS: &str = "qpid.shared_msg_group";
const REPLICATE: &str = "qpid.replicate";
const MSG_SEQUENCE: &str = "qpid.msg_sequence";
const IVE: &str = "qpid.ive";

/// The attributes of the queue that the flags ask for.
pub(super) fn declared_arguments(options: &Options) -> Outcome<Map> {
    let flags = &options.queue;
    let mut attributes = Map::new();
    for argument in &flags.argument {
        let (name, value) = value_of(argument);
        attributes.insert(name, value);
    }
    for number in &NUMBERS {
        if let Some(value) = (number.given)(flags)
            && (options.durable || !number.journal)
        {
            attributes.insert(number.argument, value);
        }
    }
    match flags.limit_policy.as_deref() {
        None => {}
        // As if none had been given, which an update takes back.
        Some("none") => drop(attributes.insert(POLICY, Value::Null)),
        Some(policy) => drop(attributes.insert(POLICY, policy.replace('-', "_"))),
    }
    let texts = [
        (LVQ_KEY, flags.lvq_key.clone()),
        (GROUP_HEADER, flags.group_header.clone()),
        ("alternate-exchange", options.alternate_exchange.clone()),
        (REPLICATE, options.replicate.clone()),
    ];
    for (argument, value) in texts {
        if let Some(value) = value {
            attributes.insert(argument, value);
        }
    }
    if flags.shared_groups {
        attributes.insert(SHARED_GROUPS, 1_i64);
    }
    if options.durable {
        attributes.insert("durable", true);
    }
    Ok(attributes)
}

/// The flags that would make a queue like this one.
pub(super) fn listed_flags(queue: &Entity) -> String {
    let arguments = queue.map("arguments");
    let mut flags = Vec::new();
    let text = |argument: &str| arguments.get(argument).map(value_text);
    let mut flag = |present: bool, text: &str| {
        if present {
            flags.push(text.to_owned());
        }
    };
    flag(queue.flag("durable"), "--durable");
    if let Some(level) = text(REPLICATE) {
        flag(true, &format!("--replicate={level}"));
    }
    flag(queue.flag("autoDelete"), "auto-del");
    flag(queue.flag("exclusive"), "excl");
    for (place, number) in NUMBERS.iter().enumerate() {
        if place == NUMBERS.iter().position(|n| n.flag == "flow-stop-size").unwrap_or(0) {
            if let Some(policy) = text(POLICY) {
                flag(true, &format!("--limit-policy={}", policy.replace('_', "-")));
            }
            if let Some(key) = text(LVQ_KEY) {
                flag(true, &format!("--lvq-key={key}"));
            }
            let alternate = queue.text("altExchange");
            flag(!alternate.is_empty(), &format!("--alternate-exchange={alternate}"));
        }
        if let Some(value) = text(number.argument) {
            flag(true, &format!("--{}={value}", number.flag));
        }
    }
    if let Some(header) = text(GROUP_HEADER) {
        flag(true, &format!("--group-header={header}"));
    }
    flag(arguments.get(SHARED_GROUPS).is_some_and(crate::table::truth), "--shared-groups");
    for (name, value) in arguments.iter() {
        let name = name.as_str().unwrap_or_default();
        if !is_special(name) {
            flag(true, &format!("--argument {name}={}", value_text(value)));
        }
    }
    flags.join(" ")
}

/// Splits `NAME=VALUE`; a value that is a whole number is one.
pub(super) fn value_of(argument: &str) -> (&str, Value) {
    match argument.split_once('=') {
        None => (argument, Value::Null),
        Some((name, text)) => match text.parse::<i64>() {
            Ok(number) => (name, Value::Long(number)),
            Err(_) => (name, Value::from(text)),
        },
    }
}

/// The same of a binding: a value has the type that `send -P` gives it, so that both match.
pub(super) fn typed_value_of(argument: &str) -> (&str, Value) {
    match argument.split_once('=') {
        None => (argument, Value::Null),
        Some((name, text)) => (name, guess(text)),
    }
}

fn is_special(argument: &str) -> bool {
    const TEXTS: [&str; 7] =
        [POLICY, LVQ_KEY, GROUP_HEADER, SHARED_GROUPS, REPLICATE, MSG_SEQUENCE, IVE];
    TEXTS.contains(&argument) || NUMBERS.iter().any(|number| number.argument == argument)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(line: &str) -> Options {
        Options::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn flags_become_arguments_of_the_queue() {
        let options = options(
            "config add queue q --max-queue-size=1200000000 --flow-stop-count=0 --limit-policy ring \
             --group-header g --shared-groups --argument x=5 --argument y=z --file-count 3",
        );
        let expected = [
            ("x", Value::Long(5)),
            ("y", Value::from("z")),
            ("qpid.max_size", Value::Ulong(1_200_000_000)),
            ("qpid.flow_stop_count", Value::Ulong(0)),
            ("qpid.policy_type", Value::from("ring")),
            ("qpid.group_header_key", Value::from("g")),
            ("qpid.shared_msg_group", Value::Long(1)),
        ];
        let expected: Map =
            expected.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
        assert_eq!(declared_arguments(&options).unwrap(), expected);
    }

    #[test]
    fn journal_settings_are_only_for_durable_queues() {
        let attributes =
            declared_arguments(&options("config add queue q --durable --file-count 3")).unwrap();
        assert_eq!(attributes.get("qpid.file_count"), Some(&Value::Ulong(3)));
        assert_eq!(attributes.get("durable"), Some(&Value::Bool(true)));
    }

    #[test]
    fn no_policy_is_as_if_none_had_been_given() {
        let line = "config update queue q --argument qpid.policy_type=ring --limit-policy=none";
        let attributes = declared_arguments(&options(line)).unwrap();
        assert_eq!(attributes, Map([(POLICY.into(), Value::Null)].into_iter().collect()));
    }

    #[test]
    fn arguments_are_listed_as_the_flags_that_set_them() {
        let mut arguments = Map::new();
        arguments.insert("qpid.max_count", 1_000_u64);
        arguments.insert("qpid.flow_stop_size", 0_u64);
        arguments.insert("qpid.policy_type", "ring_strict");
        arguments.insert("custom", "yes");
        let mut attributes = Map::new();
        attributes.insert("durable", true);
        attributes.insert("autoDelete", true);
        attributes.insert("arguments", arguments);
        assert_eq!(
            listed_flags(&Entity::from(attributes)),
            "--durable auto-del --max-queue-count=1000 --limit-policy=ring-strict \
             --flow-stop-size=0 --argument custom=yes"
        );
    }
}
