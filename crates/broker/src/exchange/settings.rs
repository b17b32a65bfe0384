//! What an exchange is like, and the arguments that say so.

use crate::settings::{SettingsError, is_passed_over};
use mochila_wire::{Map, Value};
use std::fmt;

/// How an exchange decides which queues a message goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// The routing key is the binding key.
    Direct,
    /// The routing key is of the pattern of words that is the binding key.
    #[default]
    Topic,
    /// All queues that are bound get all messages.
    Fanout,
    /// The application properties are as the arguments of the binding say.
    Headers,
}

impl ExchangeKind {
    /// All there are.
    pub const ALL: [ExchangeKind; 4] =
        [ExchangeKind::Direct, ExchangeKind::Topic, ExchangeKind::Fanout, ExchangeKind::Headers];

    /// As it is written in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            ExchangeKind::Direct => "direct",
            ExchangeKind::Topic => "topic",
            ExchangeKind::Fanout => "fanout",
            ExchangeKind::Headers => "headers",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<ExchangeKind> {
        ExchangeKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What becomes of a message that no binding and no alternate exchange has a queue for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unroutable {
    /// It is accepted and dropped: nobody wants it.
    #[default]
    Discard,
    /// It is released: its sender may try again later.
    Release,
    /// It is rejected.
    Reject,
}

impl Unroutable {
    const ALL: [Unroutable; 3] = [Unroutable::Discard, Unroutable::Release, Unroutable::Reject];

    /// As it is written in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Unroutable::Discard => "discard",
            Unroutable::Release => "release",
            Unroutable::Reject => "reject",
        }
    }
}

/// What is asked of an exchange when it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSettings {
    /// How it decides.
    pub kind: ExchangeKind,
    /// It is to survive a restart. No exchange does so yet: one that is there says false.
    pub durable: bool,
    /// It is deleted when nothing is bound to it and nobody sends to it any more.
    pub auto_delete: bool,
    /// The exchange that messages go to which no queue is bound for.
    pub alternate_exchange: Option<Box<str>>,
    /// Each message gets its number in the exchange as the annotation `qpid.msg_sequence`.
    pub sequences: bool,
    /// The last message is kept for queues that are bound later.
    pub keeps_last: bool,
    /// What becomes of messages that no queue is bound for.
    pub unroutable: Unroutable,
}

/// One argument of an exchange.
#[derive(Debug)]
pub struct ExchangeArgument {
    /// Its name in the Qpid tools and in the properties of nodes.
    pub name: &'static str,
    /// Other names under which it is understood.
    pub aliases: &'static [&'static str],
    /// The AMQP type of its values.
    pub of: &'static str,
    /// What it means, in a sentence.
    pub doc: &'static str,
    expected: &'static str,
    write: fn(&mut ExchangeSettings, &Value) -> Option<()>,
    read: fn(&ExchangeSettings) -> Value,
}

/// Every argument that an exchange has.
pub static EXCHANGE_ARGUMENTS: &[ExchangeArgument] = &[
    ExchangeArgument {
        name: "exchange-type",
        aliases: &["exchangeType", "exchange_type"],
        of: "string",
        doc: "`direct`, `topic`, `fanout` or `headers`; topic unless given.",
        expected: "one of direct, topic, fanout, headers",
        write: |settings, value| {
            settings.kind = ExchangeKind::named(value.as_str()?)?;
            Some(())
        },
        read: |settings| settings.kind.name().into(),
    },
    ExchangeArgument {
        name: "durable",
        aliases: &[],
        of: "boolean",
        doc: "Asks for an exchange that survives a restart. There is none yet: it stays false.",
        expected: FLAG,
        write: |settings, value| {
            settings.durable = flag(value)?;
            Some(())
        },
        read: |settings| settings.durable.into(),
    },
    ExchangeArgument {
        name: "auto-delete",
        aliases: &["autoDelete", "auto_delete", "lifetime-policy"],
        of: "boolean",
        doc: "The exchange is deleted when nothing is bound to it and nobody sends to it any more.",
        expected: FLAG,
        write: |settings, value| {
            settings.auto_delete = is_described(value) || flag(value)?;
            Some(())
        },
        read: |settings| settings.auto_delete.into(),
    },
    ExchangeArgument {
        name: "alternate-exchange",
        aliases: &["altExchange", "alternate_exchange"],
        of: "string",
        doc: "The exchange that gets the messages which no queue is bound for.",
        expected: "the name of an exchange",
        write: |settings, value| {
            settings.alternate_exchange = name(value)?;
            Some(())
        },
        read: |settings| settings.alternate_exchange.as_deref().map_or(Value::Null, Value::from),
    },
    ExchangeArgument {
        name: "qpid.msg_sequence",
        aliases: &["sequence"],
        of: "boolean",
        doc: "Each message gets its number in the exchange as the annotation `qpid.msg_sequence` \
              (long).",
        expected: FLAG,
        write: |settings, value| {
            settings.sequences = present(value);
            Some(())
        },
        read: |settings| settings.sequences.into(),
    },
    ExchangeArgument {
        name: "qpid.ive",
        aliases: &["initial-value"],
        of: "boolean",
        doc: "The last message is kept, and a queue that is bound later gets it if it matches.",
        expected: FLAG,
        write: |settings, value| {
            settings.keeps_last = present(value);
            Some(())
        },
        read: |settings| settings.keeps_last.into(),
    },
    ExchangeArgument {
        name: "qpid.unroutable",
        aliases: &["unroutable"],
        of: "string",
        doc: "What the sender is told of a message that no queue is bound for: `discard` accepts \
              and drops it, as usual; `release` and `reject` say that it went nowhere.",
        expected: "one of discard, release, reject",
        write: |settings, value| {
            let word = value.as_str()?;
            settings.unroutable = Unroutable::ALL.into_iter().find(|it| it.name() == word)?;
            Some(())
        },
        read: |settings| settings.unroutable.name().into(),
    },
];

impl ExchangeArgument {
    /// The argument with this name, whichever of its names it is.
    pub fn named(name: &str) -> Option<&'static ExchangeArgument> {
        EXCHANGE_ARGUMENTS
            .iter()
            .find(|argument| argument.name == name || argument.aliases.contains(&name))
    }

    /// The value that settings have.
    pub fn get(&self, settings: &ExchangeSettings) -> Value {
        (self.read)(settings)
    }
}

impl ExchangeSettings {
    /// An exchange of this kind, everything else as usual.
    pub fn of(kind: ExchangeKind) -> ExchangeSettings {
        ExchangeSettings { kind, ..ExchangeSettings::default() }
    }

    /// Settings as arguments say, everything else by default.
    pub fn from_arguments(arguments: &Map) -> Result<ExchangeSettings, SettingsError> {
        let mut settings = ExchangeSettings::default();
        let mut said: Vec<(&str, &str, Value)> = Vec::new();
        for (key, value) in arguments.iter() {
            let name = key.as_str().unwrap_or_default();
            let Some(argument) = ExchangeArgument::named(name) else {
                if is_passed_over(name) {
                    continue;
                }
                return Err(SettingsError::UnknownExchangeArgument { name: key.to_string() });
            };
            (argument.write)(&mut settings, value).ok_or_else(|| SettingsError::InvalidValue {
                name: argument.name,
                expected: argument.expected.to_owned(),
                found: value.to_string(),
            })?;
            let in_force = argument.get(&settings);
            let before = said.iter().find(|(of, ..)| *of == argument.name);
            if let Some((_, other, _)) = before.filter(|(.., before)| *before != in_force) {
                return Err(SettingsError::Twice {
                    name: name.to_owned(),
                    other: (*other).to_owned(),
                });
            }
            said.push((argument.name, name, in_force));
        }
        Ok(settings)
    }

    /// The arguments in force.
    pub fn to_arguments(&self) -> Map {
        let arguments = EXCHANGE_ARGUMENTS.iter();
        arguments
            .map(|argument| (argument.name.into(), argument.get(self)))
            .filter(|(_, value)| *value != Value::Null)
            .collect()
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn flag(value: &Value) -> Option<bool> {
    match (value.as_bool(), value.as_u64(), value.as_str()) {
        (Some(flag), ..) => Some(flag),
        (_, Some(1), _) | (.., Some("true" | "True" | "yes" | "1")) => Some(true),
        (_, Some(0), _) | (.., Some("false" | "False" | "no" | "0")) => Some(false),
        _ => None,
    }
}

/// Some arguments of the Qpid broker are on if they are there, whatever they say, unless that is no.
fn present(value: &Value) -> bool {
    flag(value) != Some(false)
}

/// A lifetime policy (part 3, 3.5.10 to 3.5.13): each of them means that it goes by itself.
fn is_described(value: &Value) -> bool {
    matches!(value, Value::Described(_))
        || value.as_str().is_some_and(|text| text.starts_with("delete-"))
}

/// A name, or nothing if it is empty.
fn name(value: &Value) -> Option<Option<Box<str>>> {
    match value {
        Value::Null => Some(None),
        value => value.as_str().map(|name| Some(name.into()).filter(|_| !name.is_empty())),
    }
}

const FLAG: &str = "true or false";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_can_be_told_and_understood_again() {
        let arguments = Map::new()
            .with("exchange-type", "headers")
            .with("auto-delete", true)
            .with("alternate-exchange", "amq.fanout")
            .with("qpid.msg_sequence", 1)
            .with("qpid.ive", 1)
            .with("qpid.unroutable", "release");
        let settings = ExchangeSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings.kind, ExchangeKind::Headers);
        assert!(settings.auto_delete && settings.sequences && settings.keeps_last);
        assert_eq!(settings.unroutable, Unroutable::Release);
        assert_eq!(ExchangeSettings::from_arguments(&settings.to_arguments()), Ok(settings));
    }

    #[test]
    fn what_makes_no_sense_is_a_clear_error() {
        let of = |name: &'static str, value: Value| {
            let arguments = Map::new().with(name, value);
            ExchangeSettings::from_arguments(&arguments).unwrap_err().to_string()
        };
        assert_eq!(
            of("qpid.max_count", 1.into()),
            "'qpid.max_count' is not an argument of an exchange"
        );
        let sentence = "exchange-type takes one of direct, topic, fanout, headers, not ";
        assert!(of("exchange-type", "xml".into()).starts_with(sentence));
    }

    #[test]
    fn a_name_that_is_no_text_is_told_too() {
        let arguments = Map([(Value::Uint(7), Value::Null)].into_iter().collect());
        let error = ExchangeSettings::from_arguments(&arguments).unwrap_err().to_string();
        assert_eq!(error, "'7' is not an argument of an exchange");
    }

    #[test]
    fn what_only_concerns_an_older_broker_and_what_is_marked_is_passed_over() {
        let arguments = Map::new()
            .with("exchange-type", "fanout")
            .with("qpid.replicate", "all")
            .with("x-opt-colour", "red");
        let settings = ExchangeSettings::from_arguments(&arguments).unwrap();
        assert_eq!(settings, ExchangeSettings::of(ExchangeKind::Fanout));
    }

    #[test]
    fn no_name_means_two_arguments() {
        for argument in EXCHANGE_ARGUMENTS {
            assert!(argument.doc.ends_with('.'));
            for name in [argument.name].iter().chain(argument.aliases) {
                assert!(std::ptr::eq(ExchangeArgument::named(name).unwrap(), argument), "{name}");
            }
        }
    }
}
