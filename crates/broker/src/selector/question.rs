//! One message, and many who want to know whether it is for them.

use super::expression::{Comparison, Expression, Literal};
use super::name::Source;
use super::operand::Operand;
use super::{Filters, SelectorInput};

/// What an application property has to be for a selector to be true, whatever else it says.
///
/// Most selectors that share out the messages of a queue begin with that, so most of those that do
/// not match a message are known by one look at one property, which serves all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    name: Box<str>,
    /// One of these.
    texts: Vec<Box<[u8]>>,
    /// The selector says nothing else.
    is_all: bool,
}

impl Requirement {
    /// What a selector requires.
    pub(super) fn of(tree: &Expression) -> Option<Requirement> {
        match tree {
            Expression::Compare(Comparison::Equal, parts) => match &**parts {
                [Expression::Name(name), value] | [value, Expression::Name(name)] => {
                    Requirement::new(name, std::slice::from_ref(value))
                }
                _ => None,
            },
            Expression::In(value, list) => match &**value {
                Expression::Name(name) => Requirement::new(name, list),
                _ => None,
            },
            Expression::All(parts) => {
                let required = parts.iter().find_map(Requirement::of)?;
                Some(Requirement { is_all: false, ..required })
            }
            Expression::Any(parts) => {
                let mut parts = parts.iter().map(Requirement::of);
                let first = parts.next()??;
                parts.try_fold(first, |mut all, part| {
                    let part = part.filter(|part| part.name == all.name)?;
                    all.texts.extend(part.texts);
                    all.is_all &= part.is_all;
                    Some(all)
                })
            }
            _ => None,
        }
    }

    fn new(name: &Source, values: &[Expression]) -> Option<Requirement> {
        let Source::Application(name) = name else { return None };
        let text = |value: &Expression| match value {
            Expression::Literal(Literal::Text(text)) => Some(text.as_bytes().into()),
            _ => None,
        };
        let texts = values.iter().map(text).collect::<Option<Vec<_>>>()?;
        Some(Requirement { name: name.clone(), texts, is_all: true })
    }

    /// The name, and the digest of the text that it has to be, if it is one text.
    pub(super) fn digest(&self) -> Option<(&str, u64)> {
        match &self.texts[..] {
            [text] => Some((&self.name, digest(text))),
            _ => None,
        }
    }

    #[inline]
    fn is_met(&self, value: Operand<'_>) -> bool {
        match value {
            Operand::Text(value) => self.texts.iter().any(|text| **text == *value),
            _ => false,
        }
    }
}

/// A message that many filters are asked about, one after another.
pub(crate) struct Question<'m, 'f> {
    pub(crate) input: SelectorInput<'m>,
    /// The application property that was looked at last.
    known: Option<(&'f str, Operand<'m>)>,
}

impl<'m, 'f> Question<'m, 'f> {
    pub(crate) fn new(input: SelectorInput<'m>) -> Question<'m, 'f> {
        Question { input, known: None }
    }

    /// Whether the message passes: the same as [`Filters::matches`].
    #[inline]
    pub(crate) fn passes(&mut self, filters: &'f Filters) -> bool {
        let Some(required) = filters.requirement() else { return filters.matches(&self.input) };
        let value = self.property(&required.name);
        required.is_met(value)
            && (required.is_all && filters.len() == 1 || filters.matches(&self.input))
    }

    /// The digest of an application property, if it is text.
    pub(crate) fn digest(&mut self, name: &'f str) -> Option<u64> {
        match self.property(name) {
            Operand::Text(text) => Some(digest(text)),
            _ => None,
        }
    }

    #[inline]
    fn property(&mut self, name: &'f str) -> Operand<'m> {
        match self.known {
            Some((known, value)) if known == name => value,
            _ => {
                let input = &self.input;
                let raw = input.sections.application_property(input.bytes, name);
                let value = raw.map_or(Operand::Unknown, Operand::of_raw);
                self.known = Some((name, value));
                value
            }
        }
    }
}

/// FNV-1a. Texts that have the same one are compared all the same.
fn digest(text: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::terminus::{JMS_SELECTOR, NO_LOCAL};
    use mochila_wire::{Encode, Limits, Map, Message, Value, section};

    const SELECTORS: [&str; 16] = [
        "kind = 'a'",
        "'a' = kind",
        "kind IN ('a', 'b')",
        "kind = 'a' OR kind = 'b' OR kind IN ('c')",
        "kind = 'a' OR weight = 'a'",
        "kind = 'a' OR weight > 5",
        "kind = 'a' AND weight > 5",
        "weight > 5 AND (kind = 'a' OR kind = 'b')",
        "(kind = 'a' AND weight > 5) OR (kind = 'b' AND weight < 5)",
        "NOT kind = 'a'",
        "NOT (kind = 'a' AND weight > 5)",
        "kind <> 'a'",
        "kind = 'a' AND kind = 'b'",
        "kind NOT IN ('a')",
        "kind = 5",
        "weight IN ('7', 'a')",
    ];

    fn messages() -> Vec<Message> {
        let kinds: [Option<Value>; 7] = [
            None,
            Some("a".into()),
            Some("b".into()),
            Some(Value::Symbol("a".into())),
            Some(Value::Binary(b"c".to_vec())),
            Some(5u32.into()),
            Some(Value::Null),
        ];
        let weights: [Option<Value>; 3] = [None, Some(7u8.into()), Some("a".into())];
        let mut messages = Vec::new();
        for kind in &kinds {
            for weight in &weights {
                let mut message = Message::of_value("body");
                for (name, value) in [("kind", kind), ("weight", weight)] {
                    if let Some(value) = value {
                        message.set_application_property(name, value.clone());
                    }
                }
                messages.push(message);
            }
        }
        messages
    }

    #[test]
    fn many_filters_are_answered_as_each_of_them_alone() {
        let alone = |text: &str| Map::new().with("s", JMS_SELECTOR.with(text));
        let with_more = |text| alone(text).with("n", NO_LOCAL.with(Value::Null));
        let sets = SELECTORS.map(alone).into_iter().chain(SELECTORS.map(with_more));
        let filters: Vec<Filters> = sets.map(|set| Filters::new(&set).unwrap()).collect();
        for message in messages() {
            let bytes = message.to_bytes();
            let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
            for is_local in [false, true] {
                let input = SelectorInput { is_local, ..SelectorInput::of(&bytes, &sections) };
                let mut question = Question::new(input);
                for filters in &filters {
                    assert_eq!(
                        question.passes(filters),
                        filters.matches(&input),
                        "{filters:?} of {message:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_selector_requires_is_found_where_it_is_certain() {
        let required = |text: &str| {
            let set = Map::new().with("s", JMS_SELECTOR.with(text));
            Filters::new(&set).unwrap().requirement().is_some()
        };
        let found = SELECTORS.map(required);
        let expected = [
            true, true, true, true, false, false, true, true, true, false, false, false, true,
            false, false, true,
        ];
        assert_eq!(found, expected);
    }
}
