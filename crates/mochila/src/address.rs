//! Address strings: `name[/subject][; {create: always, node: {…}, link: {…}}]`.

mod bindings;
mod options;
mod parser;
mod terminus;

use mochila_wire::{Map, Value};

pub(crate) use bindings::Binding;
pub(crate) use parser::{Malformed, guess, parse_options};
pub(crate) use terminus::{Answer, AttachPlan};

/// Where to send to or receive from, and how, as the older messaging tools write it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Address {
    /// The node's name; empty with only a temporary node wanted.
    pub(crate) name: String,
    /// A routing key or message subject.
    pub(crate) subject: Option<String>,
    /// What stands between the braces.
    pub(crate) options: Map,
}

impl Address {
    /// Whether the broker is to make up the name and delete the node afterwards.
    pub(crate) fn is_temporary(&self) -> bool {
        self.name.starts_with('#')
    }

    /// The map below `key`, empty if there is none.
    fn section(&self, key: &str) -> Map {
        match self.options.get(key) {
            Some(Value::Map(map)) => map.clone(),
            _ => Map::new(),
        }
    }

    /// The address as a message's reply-to: without options.
    pub(crate) fn plain(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}/{subject}", self.name),
            None => self.name.clone(),
        }
    }
}

impl std::str::FromStr for Address {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        parser::parse(text)
    }
}
