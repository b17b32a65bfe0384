//! Why a queue is not moving: who holds its messages, and who has no credit for them.

use crate::entity::connection::peer;
use crate::entity::link;
use crate::scope::{LinkAt, Scope};
use mochila_broker::Statistics;
use mochila_wire::{Map, Value};

/// The links that take messages from a queue, those that hold most of them first: a list of maps.
pub(crate) fn holders(queue: &str, scope: &Scope<'_>) -> Value {
    let mut consumers: Vec<&LinkAt> = scope.consumers(queue).iter().collect();
    consumers.sort_by_key(|at| std::cmp::Reverse(at.link.unsettled.get()));
    let holders = consumers.into_iter().take(MOST_HOLDERS).map(|at| holder(at, scope));
    Value::List(holders.collect())
}

fn holder(at: &LinkAt, scope: &Scope<'_>) -> Value {
    let mut map = Map::new();
    map.insert("link", link::identity(at));
    map.insert("address", at.connection.peer_address.as_str());
    map.insert("container", peer(&at.connection, |peer| &peer.container));
    map.insert("process", peer(&at.connection, |peer| &peer.process));
    map.insert("browsing", at.link.browsing);
    map.insert("unsettled", at.link.unsettled.get());
    map.insert("credit", at.link.credit.get());
    map.insert("withoutCreditMs", link::without_credit_ms(at, scope));
    Value::Map(map)
}

/// Why messages stay in a queue although somebody may want them; `None` if there is no reason to
/// ask.
pub(crate) fn reason(queue: &str, statistics: &Statistics, scope: &Scope<'_>) -> Option<String> {
    let (depth, held) = (statistics.msg_depth, statistics.unacked_messages);
    if depth == 0 {
        return None;
    }
    let takers: Vec<&LinkAt> =
        scope.consumers(queue).iter().filter(|at| !at.link.browsing).collect();
    let (all, them) = match depth {
        1 => ("its only message is".to_owned(), "it"),
        _ => (format!("all {depth} messages are"), "them"),
    };
    // What was settled in a transaction is with no link any more.
    let with_links: u64 = takers.iter().map(|at| at.link.unsettled.get()).sum();
    let transacted = held.saturating_sub(with_links);
    if transacted >= depth {
        return Some(format!("{all} in transactions that have not ended"));
    }
    if takers.is_empty() {
        return Some("nobody consumes from it".to_owned());
    }
    if held >= depth {
        let most = takers.iter().max_by_key(|at| at.link.unsettled.get())?;
        let apart = match transacted {
            0 => String::new(),
            _ => format!(", or in transactions that have not ended ({transacted})"),
        };
        return Some(format!(
            "{all} with consumers that have not settled {them}{apart}; {} at {} holds {}",
            link::identity(most),
            most.connection.peer_address,
            most.link.unsettled.get()
        ));
    }
    if takers.iter().any(|at| at.link.credit.get() > 0) {
        return None;
    }
    let longest = takers.iter().max_by_key(|at| link::without_credit_ms(at, scope))?;
    Some(format!(
        "no consumer has credit; {} at {} has had none for {} ms and holds {} messages unsettled",
        link::identity(longest),
        longest.connection.peer_address,
        link::without_credit_ms(longest, scope),
        longest.link.unsettled.get()
    ))
}

/// How many links are named as holders of a queue's messages.
const MOST_HOLDERS: usize = 100;
