//! The node itself.

use crate::attribute::{Access, Attribute, Column, Row, count, timestamp};
use crate::directory::Direction;
use crate::entity::link;
use crate::error::Error;
use crate::kind::Object;
use crate::management::NodeFacts;
use crate::request::Request;
use crate::response::Answer;
use crate::scope::{Scope, all_links};
use mochila_broker::Statistics;
use mochila_wire::Value;

/// The attributes of the node that are not totals of queues.
const ATTRIBUTES: &[Attribute<()>] = &[
    Attribute::new("name", "string", "Its container id.", |(), scope| {
        facts(scope).name.as_str().into()
    }),
    Attribute::new("identity", "string", "`broker/` and its name.", |(), scope| {
        identity(facts(scope)).into()
    }),
    Attribute::new("type", "string", "`broker`.", |(), _| "broker".into()),
    Attribute::new("product", "string", "`mochila`.", |(), _| "mochila".into()),
    Attribute::new("version", "string", "The version of the software.", |(), scope| {
        facts(scope).version.as_str().into()
    }),
    Attribute::new("workerThreads", "ulong", "Threads that serve connections.", |(), scope| {
        count(facts(scope).worker_threads)
    }),
    Attribute::new("startedAt", "timestamp", "When it was started.", |(), scope| {
        timestamp(scope.management.started().wall_ms)
    }),
    Attribute::new("uptimeMs", "ulong", "How long it has been running.", |(), scope| {
        scope.since_ms(scope.management.started().mono_ms).into()
    }),
    Attribute {
        column: Column {
            name: "logLevel",
            of: "string",
            doc: "What is logged: a level, or the levels of parts, as `log-level` in the \
                  configuration says it. A change lasts until the node ends. Null if the log is not \
                  the node's own.",
            access: Access::Update,
        },
        read: |(), scope| scope.management.logging().map(|logging| logging.level()).into(),
    },
    Attribute::new("connectionCount", "ulong", "Connections there are.", |(), scope| {
        count(scope.management.directory().len())
    }),
    Attribute::new("connectionTotal", "ulong", "Connections there have been.", |(), scope| {
        scope.management.directory().total().into()
    }),
    Attribute::new(
        "failedHandshakes",
        "ulong",
        "Connections that ended before they were open: wrong protocol, wrong credentials, or too \
         slow.",
        |(), scope| scope.management.directory().failed_handshakes().into(),
    ),
    Attribute::new(
        "responsesLost",
        "ulong",
        "Answers of `$management` that nobody has got: no queue, and no link of whoever asked, had \
         the address they were for, or there was no room for them.",
        |(), scope| scope.management.responses_lost().into(),
    ),
    Attribute::new("sessionCount", "ulong", "Sessions there are.", |(), scope| {
        let connections = scope.management.directory().connections();
        count(connections.iter().map(|connection| connection.session_count()).sum())
    }),
    Attribute::new("linkCount", "ulong", "Links there are.", |(), scope| {
        let connections = scope.management.directory().connections();
        count(connections.iter().map(|connection| connection.link_count()).sum())
    }),
    Attribute::new(
        "linksBlocked",
        "ulong",
        "Links to consumers that have had no credit for 10 seconds or more.",
        |(), scope| {
            let blocked = all_links(scope.management).filter(|at| {
                at.link.direction == Direction::Out
                    && link::without_credit_ms(at, scope) >= BLOCKED_AFTER_MS
            });
            count(blocked.count())
        },
    ),
    Attribute::new("queueCount", "ulong", "Queues there are.", |(), scope| {
        count(scope.broker().queue_count())
    }),
    Attribute::new("exchangeCount", "ulong", "Exchanges there are.", |(), scope| {
        // The nameless one is among them.
        count(scope.broker().exchanges().len() + 1)
    }),
    Attribute::new(
        "discardsNoRoute",
        "ulong",
        "Messages that no queue was bound for at their exchange.",
        |(), scope| scope.broker().discards_no_route().into(),
    ),
    Attribute::new(
        "abandoned",
        "ulong",
        "Messages that were left when their queue was deleted, and had nowhere to go.",
        |(), scope| scope.broker().abandoned().lost.into(),
    ),
    Attribute::new(
        "abandonedViaAlt",
        "ulong",
        "Messages that were left when their queue was deleted, and went to its alternate exchange.",
        |(), scope| scope.broker().abandoned().buried.into(),
    ),
    Attribute::new(
        "memoryUsedBytes",
        "ulong",
        "Memory that messages take, and queues: 1 KiB each, also an empty one.",
        |(), scope| scope.broker().budget().used().into(),
    ),
    Attribute::new("memoryPeakBytes", "ulong", "The most that they have taken.", |(), scope| {
        scope.broker().budget().peak().into()
    }),
    Attribute::new(
        "memoryClaimedBytes",
        "ulong",
        "Memory that is kept for messages for which senders have credit.",
        |(), scope| scope.broker().budget().claimed().into(),
    ),
    Attribute::new("memoryLimitBytes", "ulong", "The most they may take; null for any.", {
        |(), scope| scope.broker().budget().limit().into()
    }),
    Attribute::new(
        "memorySoftLimitBytes",
        "ulong",
        "Above this, no producer gets further credit; null for never.",
        |(), scope| scope.broker().budget().soft_limit().into(),
    ),
    Attribute::new(
        "memoryUnfinishedBytes",
        "ulong",
        "Memory that messages take of which only a part has come; `unfinishedBytes` of connections \
         and links says whose.",
        |(), scope| {
            let connections = scope.management.directory().connections();
            connections.iter().map(|connection| connection.unfinished_bytes()).sum::<u64>().into()
        },
    ),
    Attribute::new(
        "memoryRefused",
        "ulong",
        "Messages that were rejected because there was not enough.",
        |(), scope| scope.broker().budget().refused().into(),
    ),
    Attribute::new("memoryWaiting", "ulong", "Producers that wait for memory.", |(), scope| {
        count(scope.broker().budget().waiting())
    }),
    Attribute::new(
        "memoryStoppedQueues",
        "ulong",
        "Queues whose producers get no credit because they have their share of the memory.",
        |(), scope| scope.totals().memory_stopped.into(),
    ),
    Attribute::new("transactionsOpen", "ulong", "Transactions that are open.", |(), scope| {
        scope.broker().transaction_totals().open.into()
    }),
    Attribute::new(
        "transactionsCommitted",
        "ulong",
        "Transactions that succeeded.",
        |(), scope| scope.broker().transaction_totals().committed.into(),
    ),
    Attribute::new(
        "transactionsRolledBack",
        "ulong",
        "Transactions that did not; those in which nothing was done are not counted.",
        |(), scope| scope.broker().transaction_totals().rolled_back.into(),
    ),
    Attribute::new("queuesFlowStopped", "ulong", "Queues whose producers get no credit.", {
        |(), scope| scope.totals().flow_stopped.into()
    }),
];

/// The node, looked at.
pub(crate) struct NodeReading;

/// All columns: the attributes, and the sums of the statistics of all queues.
pub(crate) fn columns() -> Vec<Column> {
    let totals = Statistics::NAMES.iter().zip(Statistics::DOCS).filter(|(name, _)| is_total(name));
    let totals = totals.map(|(name, doc)| Column {
        name,
        of: "ulong",
        doc: doc.trim_start(),
        access: Access::Read,
    });
    crate::attribute::columns(ATTRIBUTES).into_iter().chain(totals).collect()
}

impl Row for NodeReading {
    fn read(&self, column: usize, scope: &Scope<'_>) -> Value {
        if let Some(attribute) = ATTRIBUTES.get(column) {
            return (attribute.read)(&(), scope);
        }
        let mut totals = scope.totals().iter().filter(|(name, _)| is_total(name));
        totals.nth(column - ATTRIBUTES.len()).map(|(_, number)| number).into()
    }
}

/// Changes what is logged.
pub(crate) fn update(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    request.expect_only(&["logLevel"])?;
    let level = request.text("logLevel")?;
    let level = level.ok_or_else(|| Error::bad_request("UPDATE needs a level: 'logLevel'"))?;
    let logging = scope.management.logging().ok_or_else(|| {
        Error::NotImplemented("the log is not the node's own, and its level cannot be set".into())
    })?;
    logging.set_level(level).map_err(Error::BadRequest)?;
    Ok(Answer::done(Object::Node.attributes(scope)))
}

/// What tells the node from every other entity.
pub(crate) fn identity(facts: &NodeFacts) -> String {
    format!("broker/{}", facts.name)
}

/// Whether the sum over all queues means something.
fn is_total(statistic: &str) -> bool {
    !matches!(statistic, "flowStopped" | "memoryStopped" | "consumerCountHigh")
}

fn facts<'a>(scope: &Scope<'a>) -> &'a NodeFacts {
    scope.management.facts()
}

/// A link without credit for so long is blocked.
const BLOCKED_AFTER_MS: u64 = 10_000;
