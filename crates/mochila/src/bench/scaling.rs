//! Scenario: does what a message costs depend on what else is there?

use std::fmt::Display;

use super::Options;
use super::comparison::Comparison;
use super::figures::Figures;
use super::flow::{Before, Flow};
use crate::failure::Outcome;

/// Measures each table; every row is compared with the first of its table.
pub(super) fn run(options: &Options) -> Outcome<Figures> {
    let flags = &options.scenario_flags;
    let tables = [
        Comparison::all(
            flags.backlogs.iter().map(|count| (name("backlog", *count), backlog(*count))),
        ),
        Comparison::all(
            flags.unsettled.iter().map(|count| (name("unsettled", *count), unsettled(*count))),
        ),
        Comparison::all(flags.groups.iter().map(|count| (name("groups", *count), groups(*count)))),
        Comparison::all(
            flags
                .groups
                .iter()
                .map(|count| (name("blocked groups", *count), blocked_groups(*count))),
        ),
        Comparison::all(
            flags.bindings.iter().map(|count| (name("bindings", *count), bindings(*count))),
        ),
    ];
    let mut figures = Figures::default();
    for table in tables {
        table.run(options, &mut figures)?;
    }
    Ok(figures)
}

fn name(what: &str, count: impl Display) -> String {
    format!("{what} {count}")
}

/// Messages that are always there.
fn backlog(messages: u64) -> Flow {
    Flow::new(2, 1).after(Before { messages, send: vec![], held: 0 })
}

/// Messages that somebody has acquired and does not settle.
fn unsettled(held: u32) -> Flow {
    Flow::new(2, 1).after(Before { messages: held.into(), send: vec![], held })
}

/// Groups that all are free now and then.
fn groups(count: u32) -> Flow {
    let flow = Flow::new(1, 1).send("--group-key=g").send(endless());
    flow.send(format!("--group-interleave={count}")).through(GROUPED)
}

/// Groups of which all but one are with somebody who does not let go, and have more messages.
fn blocked_groups(count: u32) -> Flow {
    let names = ["--group-key=g", "--group-prefix=blocked-"].map(str::to_owned);
    let interleave = format!("--group-interleave={count}");
    let send = names.into_iter().chain([endless(), interleave]).collect();
    let before = Before { messages: 2 * u64::from(count), send, held: count };
    groups(1).after(before)
}

/// Bindings of the queue to the exchange that messages come through, all but one for others.
fn bindings(count: u32) -> Flow {
    Flow::new(2, 1).bound(count)
}

/// Groups never end.
fn endless() -> String {
    format!("--group-size={}", u32::MAX)
}

const GROUPED: &str = "'qpid.group_header_key':'g','qpid.shared_msg_group':1";
