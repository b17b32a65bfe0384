//! Filters that name fields and what they have to be (AMQP Filter Expressions 1.0, 4.2).

use super::expression::Comparison;
use super::name::PROPERTIES;
use super::operand::Operand;
use super::truth::Truth;
use super::{FilterError, SelectorInput};
use mochila_wire::terminus::{APPLICATION_PROPERTIES_FILTER, PROPERTIES_FILTER};
use mochila_wire::{Map, RawValue, Type, Value};

/// Fields of a section, and what each has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter<Key> {
    /// Each key once, in order.
    fields: Box<[(Key, Reference)]>,
}

/// What a field has to be.
#[derive(Clone, Debug, PartialEq)]
enum Reference {
    /// Anything.
    Any,
    Text(Box<[u8]>),
    Prefix(Box<[u8]>),
    Suffix(Box<[u8]>),
    Binary(Box<[u8]>),
    Uuid([u8; 16]),
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl FieldFilter<u8> {
    /// A filter for fields of the properties, by their places in the list.
    pub(super) fn of_properties(argument: &Value) -> Result<FieldFilter<u8>, FilterError> {
        let error = |reason: String| FilterError::new(PROPERTIES_FILTER.symbol, reason);
        FieldFilter::new(argument, error, |key| {
            let field = key.replace('-', "_");
            let place = PROPERTIES.iter().position(|name| *name == field);
            place.map(|place| place as u8).ok_or_else(|| format!("there is no field '{key}'"))
        })
    }

    /// Whether the properties of a message are as they have to be.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        let properties = message.sections.raw_properties(message.bytes);
        let mut values = properties.into_iter().flatten();
        let mut next = 0;
        self.fields.iter().all(|(place, reference)| {
            let value = values.nth(usize::from(*place - next));
            next = place + 1;
            match value.filter(|value| !value.is_null()) {
                Some(value) => reference.is_met(value),
                None => *reference == Reference::Any,
            }
        })
    }
}

impl FieldFilter<Box<str>> {
    /// A filter for application properties.
    pub(super) fn of_application_properties(
        argument: &Value,
    ) -> Result<FieldFilter<Box<str>>, FilterError> {
        let error = |reason: String| FilterError::new(APPLICATION_PROPERTIES_FILTER.symbol, reason);
        FieldFilter::new(argument, error, |key| Ok(key.into()))
    }

    /// Whether a message has all the application properties, as they have to be.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        let Some(map) = message.sections.application_properties(message.bytes) else {
            return false;
        };
        // One bit for each field: a key that comes twice is met once, by its first value.
        let mut missing = u64::MAX >> (u64::BITS as usize - self.fields.len());
        for (key, value) in map {
            let Some(key) = key.text() else { continue };
            let found = self.fields.binary_search_by(|(name, _)| name.as_bytes().cmp(key));
            let Some(place) = found.ok().filter(|place| missing & 1 << place != 0) else {
                continue;
            };
            if !self.fields[place].1.is_met(value) {
                return false;
            }
            missing &= !(1 << place);
            if missing == 0 {
                return true;
            }
        }
        false
    }
}

impl<Key: Ord> FieldFilter<Key> {
    fn new(
        argument: &Value,
        error: impl Fn(String) -> FilterError,
        key_of: impl Fn(&str) -> Result<Key, String>,
    ) -> Result<FieldFilter<Key>, FilterError> {
        let map = argument.as_map().ok_or_else(|| error("it has to be a map".into()))?;
        if map.is_empty() {
            return Err(error("it names no field".into()));
        }
        if map.len() > MOST_FIELDS {
            return Err(error(format!("it may name {MOST_FIELDS} fields, not {}", map.len())));
        }
        let mut fields = fields_of(map, key_of).map_err(error)?;
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields.dedup_by(|(a, _), (b, _)| a == b);
        Ok(FieldFilter { fields: fields.into() })
    }
}

fn fields_of<Key>(
    map: &Map,
    key_of: impl Fn(&str) -> Result<Key, String>,
) -> Result<Vec<(Key, Reference)>, String> {
    let field = |(key, value): (&Value, &Value)| {
        let key = key.as_str().ok_or("the name of a field has to be text")?;
        let reference = Reference::new(value).map_err(|reason| format!("'{key}' {reason}"))?;
        Ok((key_of(key)?, reference))
    };
    map.iter().map(field).collect()
}

impl Reference {
    fn new(value: &Value) -> Result<Reference, &'static str> {
        Ok(match value {
            Value::Null => Reference::Any,
            Value::String(text) => Reference::of_text(text)?,
            Value::Symbol(symbol) => Reference::of_text(symbol.as_str())?,
            Value::Binary(bytes) => Reference::Binary(bytes.as_slice().into()),
            Value::Uuid(bytes) => Reference::Uuid(*bytes),
            value => match Operand::of_value(value) {
                Operand::Bool(value) => Reference::Bool(value),
                Operand::Int(value) => Reference::Int(value),
                Operand::Float(value) => Reference::Float(value),
                Operand::Text(_) | Operand::Unknown => return Err("cannot be of this type"),
            },
        })
    }

    /// Text begins with what is to be done with it, or with `&&` for one `&`.
    fn of_text(text: &str) -> Result<Reference, &'static str> {
        let bytes = |text: &str| text.as_bytes().into();
        if let Some(prefix) = text.strip_prefix("&p:") {
            return Ok(Reference::Prefix(bytes(prefix)));
        }
        if let Some(suffix) = text.strip_prefix("&s:") {
            return Ok(Reference::Suffix(bytes(suffix)));
        }
        match text.strip_prefix('&') {
            Some(escaped) if escaped.starts_with('&') => Ok(Reference::Text(bytes(escaped))),
            Some(_) => Err("begins with a '&' that is none of '&p:', '&s:' and '&&'"),
            None => Ok(Reference::Text(bytes(text))),
        }
    }

    fn is_met(&self, value: RawValue<'_>) -> bool {
        let text = || value.text();
        let number = |number: Operand<'_>| {
            Operand::of_raw(value).compare(Comparison::Equal, number) == Truth::True
        };
        match self {
            Reference::Any => true,
            Reference::Text(exactly) => text() == Some(exactly),
            Reference::Prefix(prefix) => text().is_some_and(|text| text.starts_with(prefix)),
            Reference::Suffix(suffix) => text().is_some_and(|text| text.ends_with(suffix)),
            Reference::Binary(bytes) => value.as_binary() == Some(bytes),
            Reference::Uuid(uuid) => {
                value.type_of() == Type::Uuid && value.bytes().get(1..) == Some(uuid)
            }
            Reference::Bool(value) => number(Operand::Bool(*value)),
            Reference::Int(value) => number(Operand::Int(*value)),
            Reference::Float(value) => number(Operand::Float(*value)),
        }
    }
}

/// How many fields a filter may name.
pub(super) const MOST_FIELDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::message::MessageId;
    use mochila_wire::{Encode, Limits, Message, Symbol, Uuid, section};

    fn map<const N: usize>(pairs: [(&'static str, Value); N]) -> Value {
        let pairs = pairs.map(|(key, value)| (Value::Symbol(Symbol::from_static(key)), value));
        Value::Map(pairs.into_iter().collect())
    }

    fn message(change: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::of_data("body");
        change(&mut message);
        message.to_bytes()
    }

    fn properties<const N: usize>(pairs: [(&'static str, Value); N], bytes: &[u8]) -> bool {
        let sections = section::scan(bytes, &Limits::DEFAULT).unwrap();
        let filter = FieldFilter::of_properties(&map(pairs)).unwrap();
        filter.matches(&SelectorInput::of(bytes, &sections))
    }

    fn application<const N: usize>(pairs: [(&'static str, Value); N], bytes: &[u8]) -> bool {
        let sections = section::scan(bytes, &Limits::DEFAULT).unwrap();
        let filter = FieldFilter::of_application_properties(&map(pairs)).unwrap();
        filter.matches(&SelectorInput::of(bytes, &sections))
    }

    #[test]
    fn all_the_properties_named_have_to_be_as_given() {
        let bytes = message(|message| {
            let properties = message.properties_mut();
            properties.message_id = Some(MessageId::Uuid(Uuid([7; 16])));
            properties.user_id = Some(b"me".to_vec());
            properties.subject = Some("orders.eu".into());
            properties.content_type = Some("text/plain".into());
            properties.group_sequence = Some(3);
        });
        let is = |pairs| properties::<1>([pairs], &bytes);
        assert!(is(("subject", "orders.eu".into())));
        assert!(!is(("subject", "orders".into())));
        assert!(is(("subject", "&p:orders.".into())) && is(("subject", "&s:.eu".into())));
        assert!(!is(("subject", "&p:eu".into())));
        assert!(is(("message-id", Value::Uuid([7; 16]))));
        assert!(!is(("message-id", Value::Uuid([8; 16]))));
        assert!(is(("user-id", Value::Binary(b"me".to_vec()))));
        assert!(is(("content-type", Value::Symbol("text/plain".into()))));
        assert!(is(("group-sequence", 3u32.into())) && is(("group-sequence", 3.0f64.into())));
        assert!(!is(("to", "a".into())) && is(("to", Value::Null)));
        let both =
            |second| properties([("group-sequence", second), ("subject", "&p:o".into())], &bytes);
        assert!(both(3u8.into()) && !both(4u8.into()));
    }

    #[test]
    fn all_the_application_properties_named_have_to_be_there() {
        let bytes = message(|message| {
            message.set_application_property("colour", "&red");
            message.set_application_property("weight", 7);
            message.set_application_property("fragile", true);
        });
        let is = |pairs| application::<1>([pairs], &bytes);
        assert!(is(("colour", "&&red".into())) && !is(("colour", "red".into())));
        assert!(is(("weight", 7u64.into())) && is(("weight", 7.0f32.into())));
        assert!(!is(("weight", "7".into())));
        assert!(is(("fragile", true.into())) && !is(("fragile", false.into())));
        assert!(is(("weight", Value::Null)) && !is(("size", Value::Null)));
        assert!(application([("weight", 7.into()), ("colour", "&s:red".into())], &bytes));
        assert!(!application([("weight", 7.into()), ("size", 7.into())], &bytes));
    }

    #[test]
    fn a_message_without_the_section_has_no_fields() {
        let bytes = message(|_| {});
        assert!(!properties([("subject", "a".into())], &bytes));
        assert!(!application([("a", 1.into())], &bytes));
    }

    #[test]
    fn what_is_no_filter_is_refused_with_a_reason() {
        let wrong = [
            (Value::from("a"), "has to be a map"),
            (map([]), "names no field"),
            (map([("colour", 1.into())]), "no field 'colour'"),
            (map([("subject", "&x:a".into())]), "'subject' begins with a '&'"),
            (map([("subject", Value::List(vec![]))]), "'subject' cannot be of this type"),
            (Value::Map([(1.into(), 1.into())].into_iter().collect()), "has to be text"),
        ];
        for (argument, reason) in wrong {
            let error = FieldFilter::of_properties(&argument).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_filter_may_name_a_limited_number_of_fields() {
        let of = |count: usize| {
            let fields = (0..count).map(|i| (Value::from(format!("f{i:02}")), Value::from(1)));
            FieldFilter::of_application_properties(&Value::Map(fields.collect()))
        };
        let error = of(MOST_FIELDS + 1).unwrap_err();
        assert!(error.to_string().contains("may name 64 fields, not 65"), "{error}");
        let bytes = message(|message| {
            for i in 0..MOST_FIELDS {
                message.set_application_property(&format!("f{i:02}"), 1);
            }
        });
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        assert!(of(MOST_FIELDS).unwrap().matches(&SelectorInput::of(&bytes, &sections)));
    }
}
