//! What may stand between the braces of an address string.

use mochila_wire::performative::Role;
use mochila_wire::terminus::LifetimePolicy;
use mochila_wire::{Described, Map, Symbol, Value};

use super::{Address, Binding};
use crate::failure::{Failure, Outcome};
use crate::text::value_text;

/// When `create`, `assert` or `delete` applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Always,
    Sender,
    Receiver,
    Never,
}

/// What kind of node is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Queue,
    Topic,
}

/// What delivery is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reliability {
    AtMostOnce,
    AtLeastOnce,
}

/// The options under `node`.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Option<NodeKind>,
    pub(super) durable: bool,
    pub(super) capabilities: Vec<Symbol>,
    properties: Map,
    pub(super) bindings: Vec<Binding>,
}

/// The options under `link`.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    pub(super) name: Option<String>,
    pub(super) durable: bool,
    pub(super) reliability: Option<Reliability>,
    timeout_s: Option<u32>,
    pub(super) selector: Option<Value>,
    pub(super) filters: Vec<(Symbol, Value)>,
    pub(super) sender_source: Option<String>,
    pub(super) receiver_target: Option<String>,
    pub(super) bindings: Vec<Binding>,
}

impl Address {
    /// Refuses options that do not exist, or that AMQP 1.0 has nothing for.
    pub(super) fn verify(&self) -> Outcome {
        known_keys(&self.options, &["create", "assert", "delete", "mode", "node", "link"])?;
        for key in ["node", "link"] {
            if self.options.get(key).is_some_and(|value| value.as_map().is_none()) {
                return Err(Failure::address(format!("{key} must be a map")));
            }
        }
        match self.options.get("delete").map(|value| Policy::read("delete", value)).transpose()? {
            None | Some(Policy::Never) => Ok(()),
            Some(_) => Err(Failure::address("Delete policies not supported over AMQP 1.0.")),
        }
    }
}

impl Policy {
    pub(super) fn read(key: &str, value: &Value) -> Outcome<Self> {
        match value.as_str() {
            Some("always") => Ok(Policy::Always),
            Some("sender") => Ok(Policy::Sender),
            Some("receiver") => Ok(Policy::Receiver),
            Some("never") => Ok(Policy::Never),
            _ => Err(Failure::address(format!(
                "Invalid value for {key}; must be 'always', 'sender', 'receiver' or 'never'."
            ))),
        }
    }

    pub(super) fn holds_for(self, role: Role) -> bool {
        match self {
            Policy::Always => true,
            Policy::Never => false,
            Policy::Sender => role == Role::Sender,
            Policy::Receiver => role == Role::Receiver,
        }
    }
}

impl NodeKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            NodeKind::Queue => "queue",
            NodeKind::Topic => "topic",
        }
    }
}

impl Node {
    pub(super) fn read(map: &Map) -> Outcome<Self> {
        const KEYS: [&str; 6] =
            ["type", "durable", "properties", "capabilities", "x-declare", "x-bindings"];
        known_keys(map, &KEYS)?;
        let mut properties = submap(map, "properties")?;
        let mut declare = submap(map, "x-declare")?;
        if let Some(kind) = declare.remove("type") {
            declare.insert("exchange-type", kind);
        }
        if let Some(arguments) = declare.remove("arguments") {
            let Value::Map(arguments) = arguments else {
                return Err(Failure::address("arguments must be a map"));
            };
            declare.0.extend(arguments);
        }
        for (key, value) in declare {
            properties.insert(key, value);
        }
        Ok(Self {
            kind: match map.get("type").map(|kind| kind.as_str()) {
                None => None,
                Some(Some("queue")) => Some(NodeKind::Queue),
                Some(Some("topic")) => Some(NodeKind::Topic),
                Some(_) => return Err(invalid("type", "'queue' or 'topic'")),
            },
            durable: flag(map, "durable")?,
            capabilities: match map.get("capabilities") {
                None => Vec::new(),
                Some(Value::List(items)) => items.iter().map(symbol).collect::<Outcome<_>>()?,
                Some(one) => vec![symbol(one)?],
            },
            properties,
            bindings: Binding::of_node(map)?,
        })
    }

    /// Whether it says what the node is like, beyond what kind of node it is.
    pub(super) fn is_described(&self) -> bool {
        !self.properties.is_empty()
    }

    /// The node properties of the terminus.
    pub(super) fn all_properties(&self) -> Map {
        let mut all = Map::new();
        if let Some(kind) = self.kind {
            let mode = if kind == NodeKind::Topic { "copy" } else { "move" };
            all.insert(Symbol::from_static("supported-dist-modes"), mode);
        }
        if self.durable {
            all.insert(Symbol::from_static("durable"), true);
        }
        for (key, value) in self.properties.iter() {
            // Keys come from a command line; what is not ASCII cannot be a symbol.
            let Ok(key) = Symbol::new(key.as_str().unwrap_or_default()) else { continue };
            let value = match key.as_str() {
                LifetimePolicy::KEY => lifetime_policy(value),
                _ => value.clone(),
            };
            all.insert(key, value);
        }
        all
    }
}

impl Link {
    pub(super) fn read(map: &Map) -> Outcome<Self> {
        const KEYS: [&str; 11] = [
            "name",
            "durable",
            "reliability",
            "timeout",
            "sender-source",
            "receiver-target",
            "x-subscribe",
            "x-declare",
            "x-bindings",
            "selector",
            "filter",
        ];
        known_keys(map, &KEYS)?;
        for key in ["x-subscribe", "x-declare"] {
            if map.contains(key) {
                return Err(unsupported("Link", key));
            }
        }
        let text = |key: &str| map.get(key).map(value_text);
        Ok(Self {
            name: text("name"),
            durable: flag(map, "durable")?,
            reliability: match map.get("reliability").map(|value| value.as_str()) {
                None => None,
                Some(Some("unreliable" | "at-most-once")) => Some(Reliability::AtMostOnce),
                // Twice is avoided by the receiver, which at-least-once lets it do.
                Some(Some("at-least-once" | "exactly-once")) => Some(Reliability::AtLeastOnce),
                Some(_) => {
                    let known = "'unreliable', 'at-most-once', 'at-least-once' or 'exactly-once'";
                    return Err(invalid("reliability", known));
                }
            },
            timeout_s: match map.get("timeout") {
                None => None,
                Some(value) => {
                    let seconds = value.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
                    Some(seconds.ok_or_else(|| invalid("timeout", "a number of seconds"))?)
                }
            },
            selector: map.get("selector").cloned(),
            filters: match map.get("filter") {
                None => Vec::new(),
                Some(Value::List(items)) => items.iter().map(filter).collect::<Outcome<_>>()?,
                Some(one) => vec![filter(one)?],
            },
            sender_source: text("sender-source"),
            receiver_target: text("receiver-target"),
            bindings: Binding::of_link(map)?,
        })
    }

    /// How long the peer keeps the link's end after the link was lost.
    pub(super) fn timeout_s(&self) -> u32 {
        let waits = self.durable && self.reliability != Some(Reliability::AtLeastOnce);
        self.timeout_s.unwrap_or(if waits { DURABLE_TIMEOUT_S } else { 0 })
    }
}

fn known_keys(map: &Map, known: &[&str]) -> Outcome {
    for (key, _) in map.iter() {
        let key = key.as_str().unwrap_or_default();
        if !known.contains(&key) {
            return Err(Failure::address(format!("Unrecognised option: {key}")));
        }
    }
    Ok(())
}

fn submap(map: &Map, key: &str) -> Outcome<Map> {
    match map.get(key) {
        None => Ok(Map::new()),
        Some(Value::Map(map)) => Ok(map.clone()),
        Some(_) => Err(Failure::address(format!("{key} must be a map"))),
    }
}

fn flag(map: &Map, key: &str) -> Outcome<bool> {
    match map.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::Long(number)) => Ok(*number != 0),
        Some(_) => Err(invalid(key, "true or false")),
    }
}

fn symbol(value: &Value) -> Outcome<Symbol> {
    Symbol::new(value_text(value)).map_err(|error| Failure::address(format!("{value}: {error}")))
}

fn filter(value: &Value) -> Outcome<(Symbol, Value)> {
    let Value::Map(map) = value else {
        return Err(Failure::address(
            "Filter must be a map or a list of maps, each containing name, descriptor and value.",
        ));
    };
    let part = |key: &str| {
        map.get(key).ok_or_else(|| Failure::address(format!("Filter entry must specify {key}")))
    };
    let (name, descriptor, value) = (part("name")?, part("descriptor")?, part("value")?);
    let descriptor = match descriptor.as_u64() {
        Some(code) => Value::Ulong(code),
        None => Value::Symbol(symbol(descriptor)?),
    };
    Ok((symbol(name)?, Described { descriptor, value: value.clone() }.into()))
}

fn lifetime_policy(value: &Value) -> Value {
    let policy = match value.as_str() {
        Some("delete-on-close") => LifetimePolicy::DeleteOnClose,
        Some("delete-if-unused") => LifetimePolicy::DeleteOnNoLinks,
        Some("delete-if-empty") => LifetimePolicy::DeleteOnNoMessages,
        Some("delete-if-unused-and-empty") => LifetimePolicy::DeleteOnNoLinksOrMessages,
        _ => return value.clone(),
    };
    policy.to_value()
}

fn unsupported(scope: &str, element: &str) -> Failure {
    Failure::address(format!("{scope} scoped {element} element not supported over AMQP 1.0."))
}

fn invalid(key: &str, expected: &str) -> Failure {
    Failure::address(format!("Invalid value for {key}; must be {expected}."))
}

/// How long a durable subscription outlives its connection if the address does not say.
const DURABLE_TIMEOUT_S: u32 = 120;
