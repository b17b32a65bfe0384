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

    /// How an address has to be written that means the node of this name; nothing if none does.
    pub(crate) fn naming(name: &str) -> Option<String> {
        let means_it = |text: &String| {
            let address = text.parse::<Address>().unwrap_or_default();
            let is_plain = address.subject.is_none() && address.options.is_empty();
            address.name == name && is_plain && !address.is_temporary()
        };
        [name.to_owned(), format!("'{name}'"), format!("\"{name}\"")].into_iter().find(means_it)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_special_characters_is_written_between_quotes() {
        for (name, text) in [
            ("orders", Some("orders")),
            ("a/b", Some("'a/b'")),
            ("a b/c;{}", Some("'a b/c;{}'")),
            ("it's; here", Some("\"it's; here\"")),
            ("'a\"", None),
            ("#q", None),
        ] {
            assert_eq!(Address::naming(name).as_deref(), text, "{name}");
        }
    }
}
