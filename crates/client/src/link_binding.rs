use mochila_wire::{Map, Symbol, Value};

/// A binding of a queue to an exchange that a broker makes for a link, and that goes with the link.
///
/// What it does not name is the node of the link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkBinding {
    /// The exchange.
    pub exchange: Option<String>,
    /// The queue.
    pub queue: Option<String>,
    /// The binding key.
    pub key: String,
    /// What the exchange goes by beside the key.
    pub arguments: Map,
}

impl LinkBinding {
    /// The link property that asks for bindings, and says in the answer which there are.
    pub const PROPERTY: &str = "x-bindings";

    /// Binds the queue that the link is to.
    pub fn to_exchange(exchange: impl Into<String>, key: impl Into<String>) -> Self {
        Self { exchange: Some(exchange.into()), key: key.into(), ..Self::default() }
    }

    /// Binds to the exchange that the link is to.
    pub fn of_queue(queue: impl Into<String>, key: impl Into<String>) -> Self {
        Self { queue: Some(queue.into()), key: key.into(), ..Self::default() }
    }

    /// Asks for it, with those that the properties of a link ask for already.
    pub fn add_to(self, properties: &mut Map) {
        let binding = Value::Map(self.into_map());
        match properties.get_mut(Self::PROPERTY) {
            Some(Value::List(bindings)) => bindings.push(binding),
            _ => {
                let key = Symbol::from_static(Self::PROPERTY);
                properties.insert(key, Value::List(vec![binding]));
            }
        }
    }

    fn into_map(self) -> Map {
        let mut map = Map::new();
        for (end, name) in [("exchange", self.exchange), ("queue", self.queue)] {
            if let Some(name) = name {
                map.insert(Symbol::from_static(end), name);
            }
        }
        map.with("key", self.key).with("arguments", self.arguments)
    }
}
