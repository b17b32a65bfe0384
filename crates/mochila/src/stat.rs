//! `stat`: shows a broker's statistics.

mod options;
mod views;

use mochila_wire::Value;

use crate::failure::{Failure, Outcome};
use crate::management::{Management, Subject};
use crate::output::{show, terminal_width};
use crate::table::{NoSuchColumn, Table};
pub(crate) use options::Options;

/// Shows what the options ask for.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut management = Management::connect(&options.management)?;
    let tables = tables(options, &mut management);
    management.close();
    let width = terminal_width();
    let texts: Vec<String> = tables?.iter().map(|table| table.text(width)).collect();
    show(&texts.join("\n"))
}

fn tables(options: &Options, management: &mut Management) -> Outcome<Vec<Table>> {
    if options.general {
        return general(management);
    }
    if let (true, Some(name)) = (options.queues, &options.name) {
        let subject = Subject { kind: "queue", name };
        let queue = management.read(subject)?;
        let queue =
            queue.ok_or_else(|| Failure::new("NotFound", format!("Queue '{name}' not found")))?;
        return Ok(views::queue(&queue));
    }
    if options.memory {
        let broker = management.query("broker")?;
        return Ok(broker.first().map(views::memory).into_iter().collect());
    }
    let mut table = if options.connections {
        views::connections(&management.query("connection")?)
    } else if options.queues {
        views::queues(&management.query("queue")?)
    } else if options.subscriptions {
        views::subscriptions(&management.query("link")?, &management.query("session")?)
    } else if options.events {
        views::events(&management.query("event")?)
    } else if options.exchanges {
        // A broker without exchanges does not know the type; it has none of them.
        views::exchanges(&management.query("exchange").unwrap_or_default())
    } else {
        return acl(management);
    };
    if let Some(column) = &options.sort_by {
        table.sort(column, options.increasing, options.limit).map_err(|NoSuchColumn(column)| {
            Failure::option(format!("there is no column '{column}' to sort by"))
        })?;
    }
    Ok(vec![table])
}

fn general(management: &mut Management) -> Outcome<Vec<Table>> {
    let brokers = management.query("broker")?;
    let Some(broker) = brokers.first() else { return Ok(Vec::new()) };
    // A broker without exchanges does not know the type; it has none of them.
    let exchanges = management.query("exchange").map_or(0, |exchanges| exchanges.len());
    Ok(vec![views::summary(broker, exchanges), views::totals(broker)])
}

fn acl(management: &mut Management) -> Outcome<Vec<Table>> {
    let acl = management.query("acl").unwrap_or_default();
    match acl.first() {
        Some(acl) => Ok(vec![views::acl(acl)]),
        None => {
            let mut nothing = Table::new("ACL Policy Module is not installed", &[]);
            nothing.rows.clear();
            Ok(vec![nothing])
        }
    }
}

/// A cell that may be missing.
fn or_dash(value: Value) -> Value {
    match value {
        Value::Null => Value::from("-"),
        Value::String(text) if text.is_empty() => Value::from("-"),
        value => value,
    }
}
