//! Bindings that an address string asks for: `x-bindings` of its node and of its link.

use mochila_client::LinkBinding;
use mochila_wire::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::management::{Management, Subject};
use crate::text::value_text;

/// One binding; what it does not name is the node of the address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Binding {
    exchange: Option<String>,
    queue: Option<String>,
    key: String,
    arguments: Map,
}

impl Binding {
    /// The bindings in the section `node` of an address string. A node is a queue or an exchange, and
    /// not bound to itself.
    pub(super) fn of_node(section: &Map) -> Outcome<Vec<Self>> {
        let bindings = Self::of_link(section)?;
        if bindings.iter().any(|binding| binding.exchange.is_none() && binding.queue.is_none()) {
            return Err(Failure::address("A binding must specify exchange or queue"));
        }
        Ok(bindings)
    }

    /// Those in the section `link`. A link from an exchange has a queue too, so that a key is enough;
    /// what else has to be named says the broker.
    pub(super) fn of_link(section: &Map) -> Outcome<Vec<Self>> {
        match section.get("x-bindings") {
            None => Ok(Vec::new()),
            Some(Value::List(bindings)) => bindings.iter().map(Self::read).collect(),
            Some(_) => Err(Failure::address("x-bindings must be a list")),
        }
    }

    fn read(value: &Value) -> Outcome<Self> {
        let Value::Map(map) = value else {
            return Err(Failure::address("Each element of x-bindings must be a map"));
        };
        let mut binding = Self::default();
        for (name, value) in map.iter() {
            match (name.as_str().unwrap_or_default(), value) {
                ("exchange", value) => binding.exchange = Some(value_text(value)),
                ("queue", value) => binding.queue = Some(value_text(value)),
                ("key", value) => binding.key = value_text(value),
                ("arguments", Value::Map(arguments)) => binding.arguments = arguments.clone(),
                ("arguments", _) => return Err(Failure::address("arguments must be a map")),
                (name, _) => {
                    return Err(Failure::address(format!("Unrecognised option: {name}")));
                }
            }
        }
        Ok(binding)
    }

    /// Binds through management; what is bound already stays so.
    pub(crate) fn bind(&self, management: &mut Management, node: &str) -> Outcome {
        let or_node = |name: &Option<String>| name.as_deref().unwrap_or(node).to_owned();
        let (exchange, queue) = (or_node(&self.exchange), or_node(&self.queue));
        let name = format!("{exchange}/{queue}/{}", self.key);
        let body = Map::new()
            .with("exchange", exchange)
            .with("queue", queue)
            .with("key", self.key.as_str())
            .with("arguments", self.arguments.clone());
        management.create(Subject { kind: "binding", name: &name }, body)
    }

    /// The same for the broker to make for a link; its node is left out.
    pub(crate) fn for_link(&self) -> LinkBinding {
        let Self { exchange, queue, key, arguments } = self.clone();
        LinkBinding { exchange, queue, key, arguments }
    }
}
