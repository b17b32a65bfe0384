//! Lists and totals as the older tool prints them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::listed_flags;
use crate::management::Entity;
use crate::text::value_text;
use mochila_wire::Value;

/// How many exchanges and queues of which kind there are.
pub(super) fn totals(exchanges: &[Entity], queues: &[Entity]) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for exchange in exchanges {
        *kinds.entry(exchange.text("exchangeType")).or_default() += 1;
    }
    let mut text = format!("Total Exchanges: {}\n", exchanges.len());
    for (kind, count) in kinds {
        let _ = writeln!(text, "{kind:>15}: {count}");
    }
    let durable = queues.iter().filter(|queue| queue.flag("durable")).count();
    let _ = writeln!(text, "\n   Total Queues: {}", queues.len());
    let _ = writeln!(text, "        durable: {durable}");
    let _ = writeln!(text, "    non-durable: {}", queues.len() - durable);
    text
}

/// Queues and the flags that would make them.
pub(super) fn queues(queues: &[Entity]) -> String {
    const CAPTION: &str = "Queue Name";
    let names = queues.iter().map(|queue| queue.text("name"));
    let width = names.map(|name| name.chars().count()).max().unwrap_or(0).max(CAPTION.len());
    let mut text = format!("{CAPTION:<width$}  Attributes\n{}\n", rule(width));
    for queue in queues {
        let line = format!("{:<width$}  {}", queue.text("name"), listed_flags(queue));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Exchanges, their types and flags.
pub(super) fn exchanges(exchanges: &[Entity]) -> String {
    const CAPTION: &str = "Exchange Name";
    let names = exchanges.iter().map(|exchange| exchange.text("name"));
    let width = names.map(|name| name.chars().count()).max().unwrap_or(0).max(CAPTION.len());
    let mut text = format!("{:<10}{CAPTION:<width$}  Attributes\n{}\n", "Type", rule(width + 10));
    for exchange in exchanges {
        let line = format!(
            "{:<10}{:<width$}  {}",
            exchange.text("exchangeType"),
            exchange.text("name"),
            exchange_flags(exchange)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Queues and what binds them.
pub(super) fn queues_with_bindings(queues: &[Entity], bindings: &[Entity]) -> String {
    let mut text = String::new();
    for queue in queues {
        let name = queue.text("name");
        let _ = writeln!(text, "Queue '{name}'");
        for binding in bindings.iter().filter(|binding| binding.text("queue") == name) {
            let exchange = match binding.text("exchange") {
                name if name.is_empty() => "''".to_owned(),
                name => name,
            };
            write_binding(&mut text, binding, &exchange);
        }
    }
    text
}

/// Exchanges and what is bound to them.
pub(super) fn exchanges_with_bindings(exchanges: &[Entity], bindings: &[Entity]) -> String {
    let mut text = String::new();
    for exchange in exchanges {
        let name = exchange.text("name");
        let _ = writeln!(text, "Exchange '{name}' ({})", exchange.text("exchangeType"));
        for binding in bindings.iter().filter(|binding| binding.text("exchange") == name) {
            write_binding(&mut text, binding, &binding.text("queue"));
        }
    }
    text
}

fn write_binding(text: &mut String, binding: &Entity, other: &str) {
    let _ = write!(text, "    bind [{}] => {other}", binding.text("key"));
    let arguments = binding.map("arguments");
    if !arguments.is_empty() {
        let _ = write!(text, " {}", value_text(&Value::Map(arguments)));
    }
    text.push('\n');
}

fn exchange_flags(exchange: &Entity) -> String {
    let arguments = exchange.map("arguments");
    let set = |argument: &str| arguments.get(argument).is_some_and(crate::table::truth);
    let mut flags = Vec::new();
    if exchange.flag("durable") {
        flags.push("--durable".to_owned());
    }
    if let Some(level) = arguments.get("qpid.replicate") {
        flags.push(format!("--replicate={}", value_text(level)));
    }
    if set("qpid.msg_sequence") {
        flags.push("--sequence".to_owned());
    }
    if set("qpid.ive") {
        flags.push("--ive".to_owned());
    }
    let alternate = exchange.text("altExchange");
    if !alternate.is_empty() {
        flags.push(format!("--alternate-exchange={alternate}"));
    }
    flags.join(" ")
}

/// The line under a heading, of whole groups of five.
fn rule(width: usize) -> String {
    "=====".repeat(width / 5 + 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::Map;

    fn entity(pairs: &[(&'static str, Value)]) -> Entity {
        let pairs = pairs.iter().map(|(name, value)| (Value::from(*name), value.clone()));
        Entity::from(pairs.collect::<Map>())
    }

    #[test]
    fn queues_are_listed_with_their_flags() {
        let mut arguments = Map::new();
        arguments.insert("qpid.max_count", 1_000_u64);
        arguments.insert("qpid.policy_type", "ring");
        arguments.insert("qpid.flow_stop_size", 0_u64);
        let list = queues(&[
            entity(&[("name", "q1".into()), ("arguments", arguments.into())]),
            entity(&[("name", "plain".into())]),
        ]);
        assert_eq!(
            list,
            "Queue Name  Attributes\n===================================\n\
             q1          --max-queue-count=1000 --limit-policy=ring --flow-stop-size=0\nplain\n"
        );
    }

    #[test]
    fn totals_count_exchanges_by_type_and_queues_by_durability() {
        let exchanges = [entity(&[("exchangeType", "direct".into())])];
        let queues = [entity(&[("durable", true.into())]), entity(&[])];
        assert_eq!(
            totals(&exchanges, &queues),
            "Total Exchanges: 1\n         direct: 1\n\n   Total Queues: 2\n        durable: 1\n    \
             non-durable: 1\n"
        );
    }

    #[test]
    fn bindings_are_shown_under_their_queue() {
        let queue = entity(&[("name", "q".into())]);
        let binding = |queue: &'static str| {
            entity(&[("queue", queue.into()), ("exchange", "e".into()), ("key", "k".into())])
        };
        let text = queues_with_bindings(&[queue], &[binding("q"), binding("other")]);
        assert_eq!(text, "Queue 'q'\n    bind [k] => e\n");
    }
}
