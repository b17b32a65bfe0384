//! Queues.

mod operations;
mod picking;
mod standing;

pub(crate) use operations::{create, delete, move_messages, purge, redirect, reroute, update};

use crate::attribute::{Access, Attribute, Column, Row, count};
use crate::entity::binding;
use crate::kind::Object;
use crate::scope::Scope;
use mochila_broker::settings::{ARGUMENTS, Argument, ArgumentKind, Limits};
use mochila_broker::{Broker, GroupReport, QueueSettings, SharedQueue, Statistics};
use mochila_wire::{Map, Value};
use std::sync::Arc;

/// A queue, and what it was like when it was looked at.
pub(crate) struct QueueReading {
    queue: Arc<SharedQueue>,
    settings: QueueSettings,
    limits: Limits,
    statistics: Statistics,
}

/// The attributes of a queue that are neither settings nor statistics.
const ATTRIBUTES: &[Attribute<QueueReading>] = &[
    Attribute::new("name", "string", "Its address.", |q, _| q.queue.name().into()),
    Attribute::new("identity", "string", "`queue/` and its name.", |q, _| {
        format!("queue/{}", q.queue.name()).into()
    }),
    Attribute::new("type", "string", "`queue`.", |_, _| "queue".into()),
    Attribute::new("autoDelete", "boolean", "Whether it is deleted by itself.", |q, _| {
        q.settings.lifetime.is_some().into()
    }),
    Attribute::new(
        "arguments",
        "map",
        "What was asked for when it was made or changed, under the `qpid.` names, without what is \
         as usual.",
        |q, _| q.arguments().into(),
    ),
    Attribute::new(
        "creator",
        "string",
        "The user who has made it, `anonymous` if that was somebody without a name; null if nobody \
         has asked for it.",
        |q, _| q.queue.creator().map(|user| user.to_string()).into(),
    ),
    Attribute::new(
        "redirectPeer",
        "string",
        "The queue that gets what is sent to this one, and the other way round; null as a rule.",
        |q, _| q.queue.redirect_peer().into(),
    ),
    Attribute::new(
        "altExchange",
        "string",
        "The exchange that gets its dead letters; null if there is none.",
        |q, _| q.settings.alternate_exchange.as_deref().map(str::to_owned).into(),
    ),
    Attribute::new(
        "bindingCount",
        "ulong",
        "How often it is bound to exchanges; to the nameless one every queue is.",
        |q, scope| binding::count_of(scope.broker(), &q.queue).into(),
    ),
    Attribute::new(
        "holders",
        "list",
        "The links that take messages from it, those that hold most first, at most 100: maps with \
         `link` (its identity), `address`, `container`, `process`, `browsing`, `unsettled`, \
         `credit` and `withoutCreditMs`.",
        |q, scope| standing::holders(q.queue.name(), scope),
    ),
    Attribute::new(
        "groups",
        "list",
        "The message groups of which it has messages, at most 1000: maps with `id`, `messages`, \
         `acquired` and `connection` (the identity of the owner's connection, null while the group \
         is free). Empty unless its messages are grouped.",
        |q, _| Value::List(q.queue.groups(MOST_GROUPS).into_iter().map(group).collect()),
    ),
    Attribute::new("groupCount", "ulong", "How many message groups it has messages of.", |q, _| {
        count(q.queue.group_count())
    }),
    Attribute::new(
        "notMoving",
        "string",
        "Why its messages stay: nobody consumes, nobody has credit, or all messages are with \
         consumers that do not settle them or in transactions that do not end; and which link is to \
         blame. Null while it moves, and where only the filters of consumers, or message groups, can \
         be the reason.",
        |q, scope| standing::reason(q.queue.name(), &q.statistics, scope).into(),
    ),
];

/// All columns: the attributes, the arguments, the statistics.
pub(crate) fn columns() -> Vec<Column> {
    let arguments = ARGUMENTS.iter().map(|argument| Column {
        name: argument.plain,
        of: value_type(argument.kind),
        doc: argument.doc,
        access: if is_changeable(argument) { Access::Update } else { Access::Create },
    });
    let statistics = Statistics::NAMES.iter().zip(Statistics::DOCS).map(|(name, doc)| Column {
        name,
        of: "ulong",
        doc: doc.trim_start(),
        access: Access::Read,
    });
    let statistics = statistics.map(|column| match column.name {
        "memoryStopped" => Column { of: "boolean", doc: MEMORY_STOPPED, ..column },
        "flowStopped" => {
            Column { of: "boolean", doc: "Whether producers get no credit.", ..column }
        }
        _ => column,
    });
    crate::attribute::columns(ATTRIBUTES).into_iter().chain(arguments).chain(statistics).collect()
}

/// All queues by name.
pub(crate) fn list(broker: &Broker) -> Vec<Object> {
    let mut queues = broker.queues();
    queues.sort_by(|a, b| a.name().cmp(b.name()));
    queues.into_iter().map(Object::Queue).collect()
}

impl QueueReading {
    pub(crate) fn new(queue: Arc<SharedQueue>) -> QueueReading {
        QueueReading {
            settings: queue.settings(),
            limits: queue.limits(),
            statistics: queue.statistics(),
            queue,
        }
    }

    /// What is not as usual, except what has an attribute of its own in the Qpid tools.
    fn arguments(&self) -> Map {
        let usual = QueueSettings::default();
        let unusual = ARGUMENTS.iter().filter(|argument| {
            !OWN_ATTRIBUTES.contains(&argument.name)
                && argument.get(&self.settings) != argument.get(&usual)
        });
        unusual
            .filter_map(|argument| Some((argument.name.into(), argument.get(&self.settings)?)))
            .collect()
    }

    /// The value of an argument that is in force, whoever has chosen it.
    fn in_force(&self, argument: &Argument) -> Value {
        let limits = &self.limits;
        let limit = match argument.name {
            "qpid.max_count" => limits.max_count,
            "qpid.max_size" => limits.max_bytes,
            "qpid.flow_stop_count" => limits.stop_count,
            "qpid.flow_resume_count" => limits.resume_count,
            "qpid.flow_stop_size" => limits.stop_bytes,
            "qpid.flow_resume_size" => limits.resume_bytes,
            _ => return argument.get(&self.settings).unwrap_or(Value::Null),
        };
        Value::Ulong(if limit == Limits::NONE { 0 } else { limit })
    }
}

impl Row for QueueReading {
    fn read(&self, column: usize, scope: &Scope<'_>) -> Value {
        if let Some(attribute) = ATTRIBUTES.get(column) {
            return (attribute.read)(self, scope);
        }
        if let Some(argument) = ARGUMENTS.get(column - ATTRIBUTES.len()) {
            return self.in_force(argument);
        }
        match self.statistics.iter().nth(column - ATTRIBUTES.len() - ARGUMENTS.len()) {
            Some((name, flag)) if FLAGS.contains(&name) => (flag != 0).into(),
            Some((_, number)) => number.into(),
            None => Value::Null,
        }
    }
}

fn group(group: GroupReport) -> Value {
    let connection = group.connection.map(|id| format!("connection/{id}"));
    let mut map = Map::new();
    map.insert("id", group.id);
    map.insert("messages", group.messages);
    map.insert("acquired", group.acquired);
    map.insert("connection", connection.map_or(Value::Null, Value::from));
    Value::Map(map)
}

/// Whether an argument may change while the queue exists.
fn is_changeable(argument: &Argument) -> bool {
    !FIXED.contains(&argument.name)
}

fn value_type(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Number
        | ArgumentKind::Count
        | ArgumentKind::Bytes
        | ArgumentKind::Seconds => "ulong",
        ArgumentKind::Flag => "boolean",
        ArgumentKind::Choice(_)
        | ArgumentKind::Annotation
        | ArgumentKind::Property
        | ArgumentKind::Text => "string",
    }
}

/// So many groups are told at once.
const MOST_GROUPS: usize = 1_000;
/// Arguments that say what a queue is; the others may change.
const FIXED: &[&str] = &["durable", "exclusive"];
/// Arguments that are attributes of their own in the Qpid tools.
const OWN_ATTRIBUTES: &[&str] = &["durable", "exclusive", "auto-delete", "alternate-exchange"];
const MEMORY_STOPPED: &str = "Whether they get none because the node's memory is short, and the queue \
                              has its share of it; if not, because of the queue's own limit.";
/// The statistics that are flags.
const FLAGS: &[&str] = &["flowStopped", "memoryStopped"];
