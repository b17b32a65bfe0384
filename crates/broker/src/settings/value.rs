//! Values of arguments, in whatever form they come.

use super::LifetimePolicy;
use super::argument::lifetime_name;
use mochila_wire::{Map, Value};
use std::fmt;

/// What values an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A number.
    Number,
    /// A number of messages.
    Count,
    /// A number of bytes.
    Bytes,
    /// A number of seconds.
    Seconds,
    /// Yes or no.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of an annotation of messages, in ASCII.
    Annotation,
    /// The name of an application property of messages.
    Property,
    /// Any text.
    Text,
}

/// The value of an argument, of the type that its kind says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argued {
    Number(u64),
    Flag(bool),
    Choice(&'static str),
    Name(Box<str>),
}

impl ArgumentKind {
    pub(super) fn parse(self, value: &Value) -> Option<Argued> {
        match self {
            ArgumentKind::Number | ArgumentKind::Count | ArgumentKind::Bytes => {
                number(value).map(Argued::Number)
            }
            ArgumentKind::Seconds => {
                number(value).filter(|n| *n <= u64::from(u32::MAX)).map(Argued::Number)
            }
            ArgumentKind::Flag => flag(value).map(Argued::Flag),
            ArgumentKind::Choice(words) => {
                let word = lifetime_of(value).or_else(|| value.as_str())?;
                let known = |known: &&&str| same_word(known, word);
                words.iter().find(known).map(|word| Argued::Choice(word))
            }
            ArgumentKind::Annotation => name(value).map(Argued::Name),
            ArgumentKind::Property | ArgumentKind::Text => {
                value.as_str().map(|text| Argued::Name(text.into()))
            }
        }
    }

    /// Whether it is the name of something that messages have.
    pub const fn is_of_messages(self) -> bool {
        matches!(self, ArgumentKind::Annotation | ArgumentKind::Property)
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentKind::Number => f.write_str("a number"),
            ArgumentKind::Count => f.write_str("a number of messages"),
            ArgumentKind::Bytes => f.write_str("a number of bytes"),
            ArgumentKind::Seconds => f.write_str("a number of seconds"),
            ArgumentKind::Flag => f.write_str("true or false"),
            ArgumentKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            ArgumentKind::Annotation => f.write_str("a name in ASCII"),
            ArgumentKind::Property => f.write_str("the name of a property"),
            ArgumentKind::Text => f.write_str("text"),
        }
    }
}

impl Argued {
    // The kind of an argument decides of which type its value is, so these never fall through.

    pub(super) fn number(self) -> u64 {
        match self {
            Argued::Number(number) => number,
            Argued::Flag(_) | Argued::Choice(_) | Argued::Name(_) => 0,
        }
    }

    /// A number that is never so large that it matters how large it is.
    pub(super) fn small_number(self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Argued::Name(name) if name.is_empty())
    }

    pub(super) fn flag(self) -> bool {
        self == Argued::Flag(true)
    }

    pub(super) fn choice(self) -> &'static str {
        match self {
            Argued::Choice(word) => word,
            Argued::Number(_) | Argued::Flag(_) | Argued::Name(_) => "",
        }
    }

    /// `None` for an empty name.
    pub(super) fn name(self) -> Option<Box<str>> {
        match self {
            Argued::Name(name) => Some(name).filter(|name| !name.is_empty()),
            Argued::Number(_) | Argued::Flag(_) | Argued::Choice(_) => None,
        }
    }

    pub(super) fn text(self) -> Box<str> {
        match self {
            Argued::Name(text) => text,
            Argued::Number(_) | Argued::Flag(_) | Argued::Choice(_) => Box::default(),
        }
    }
}

/// Numbers come as any type that holds them; tools send them as text too.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Old tools send numbers where a name is meant.
fn name(value: &Value) -> Option<Box<str>> {
    let name = match value.as_str() {
        Some(name) => name.to_owned(),
        None => value.as_u64()?.to_string(),
    };
    name.is_ascii().then(|| name.into())
}

/// What a value says as an answer of yes or no.
pub(crate) fn flag(value: &Value) -> Option<bool> {
    if let Some(flag) = value.as_bool() {
        return Some(flag);
    }
    match (value.as_u64(), value.as_str()) {
        (Some(1), _) | (_, Some("true" | "True" | "yes" | "1")) => Some(true),
        (Some(0), _) | (_, Some("false" | "False" | "no" | "0")) => Some(false),
        _ => None,
    }
}

/// A lifetime policy as the specification writes it: an empty list with a descriptor.
fn lifetime_of(value: &Value) -> Option<&'static str> {
    if !matches!(value, Value::Described(_)) {
        return None;
    }
    let properties = Map::new().with(LifetimePolicy::KEY, value.clone());
    LifetimePolicy::among(&properties).map(lifetime_name)
}

/// Tools write words with hyphens as with underscores.
fn same_word(known: &str, word: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    known.bytes().map(plain).eq(word.bytes().map(plain))
}

pub(super) fn describe(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{}'", text.escape_debug()))
}
