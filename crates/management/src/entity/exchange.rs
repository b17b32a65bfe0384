//! Exchanges.

use crate::attribute::{Access, Attribute, Column, Row};
use crate::error::{Error, quoted};
use crate::kind::Object;
use crate::request::Request;
use crate::response::{Answer, Success};
use crate::scope::Scope;
use mochila_broker::exchange::{EXCHANGE_ARGUMENTS, ExchangeArgument, ExchangeStatistics};
use mochila_broker::{
    Broker, Exchange, ExchangeDeleteIf, ExchangeError, ExchangeKind, ExchangeSettings,
};
use mochila_wire::{Map, Value};
use std::sync::Arc;

/// An exchange. The nameless one is there for every queue, and is nothing but its name.
#[derive(Clone, Debug)]
pub(crate) enum ExchangeAt {
    Nameless,
    Named(Arc<Exchange>),
}

/// An exchange, and what it was like when it was looked at.
pub(crate) struct ExchangeReading {
    at: ExchangeAt,
    settings: ExchangeSettings,
    statistics: ExchangeStatistics,
}

const ATTRIBUTES: &[Attribute<ExchangeReading>] = &[
    Attribute::new("name", "string", "Its name, with which addresses begin.", |e, _| {
        e.at.name().into()
    }),
    Attribute::new("identity", "string", "`exchange/` and its name.", |e, _| {
        format!("exchange/{}", e.at.name()).into()
    }),
    Attribute::new("type", "string", "`exchange`.", |_, _| "exchange".into()),
    said(
        "exchangeType",
        "string",
        "`direct`, `topic`, `fanout` or `headers`; topic unless given. Also under `exchange-type`.",
        |e, _| e.settings.kind.name().into(),
    ),
    said(
        "durable",
        "boolean",
        "Asks for an exchange that survives a restart. There is none yet: it stays false, with a \
         warning in the log.",
        |e, _| e.settings.durable.into(),
    ),
    said(
        "autoDelete",
        "boolean",
        "It is deleted when nothing is bound to it and nobody sends to it any more. Also under \
         `auto-delete`.",
        |e, _| e.settings.auto_delete.into(),
    ),
    said(
        "altExchange",
        "string",
        "The exchange that gets the messages which no queue is bound for; null if there is none. \
         Also under `alternate-exchange`.",
        |e, _| e.settings.alternate_exchange.as_deref().map(str::to_owned).into(),
    ),
    said(
        "arguments",
        "map",
        "What else was asked for when it was made, without what is as usual: `qpid.msg_sequence` \
         (each message gets its number in the exchange, a long, as the annotation of that name), \
         `qpid.ive` (the last message is kept for queues that are bound later) and \
         `qpid.unroutable` (`discard`, `release` or `reject`: what senders are told of a message \
         that no queue is bound for).",
        |e, _| e.arguments().into(),
    ),
];

/// An attribute that whoever creates the exchange may say.
const fn said(
    name: &'static str,
    of: &'static str,
    doc: &'static str,
    read: fn(&ExchangeReading, &Scope<'_>) -> Value,
) -> Attribute<ExchangeReading> {
    Attribute { column: Column { name, of, doc, access: Access::Create }, read }
}

/// All columns: the attributes, and the statistics.
pub(crate) fn columns() -> Vec<Column> {
    let statistics = ExchangeStatistics::NAMES.iter().zip(ExchangeStatistics::DOCS);
    let statistics = statistics.map(|(name, doc)| Column {
        name,
        of: "ulong",
        doc: doc.trim_start(),
        access: Access::Read,
    });
    crate::attribute::columns(ATTRIBUTES).into_iter().chain(statistics).collect()
}

/// All exchanges by name.
pub(crate) fn list(broker: &Broker) -> Vec<Object> {
    let mut exchanges = broker.exchanges();
    exchanges.sort_by(|a, b| a.name().cmp(b.name()));
    let named = exchanges.into_iter().map(ExchangeAt::Named);
    [ExchangeAt::Nameless].into_iter().chain(named).map(Object::Exchange).collect()
}

/// The exchange of this name.
pub(crate) fn named(broker: &Broker, name: &str) -> Option<ExchangeAt> {
    match name {
        "" => Some(ExchangeAt::Nameless),
        name => broker.exchange(name).map(ExchangeAt::Named),
    }
}

/// Makes an exchange.
pub(crate) fn create(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    let name = request.new_name("an exchange")?;
    let mut arguments = Map::new();
    for (key, value) in request.body() {
        match (key, value) {
            ("name" | "type" | "identity", _) | ("arguments", Value::Null) => {}
            (key, Value::Null) if ExchangeArgument::named(key).is_some() => {}
            ("arguments", Value::Map(nested)) => {
                arguments.0.extend(nested.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            ("arguments", _) => return Err(Error::bad_request("'arguments' has to be a map")),
            // Not instead of one that has been said before: they have to say the same.
            (key, value) => arguments.0.push((key.into(), value.clone())),
        }
    }
    let settings = ExchangeSettings::from_arguments(&arguments)
        .map_err(|error| exchange_error(&error.into()))?;
    let exchange = scope.broker().create_exchange(name, settings);
    let exchange = exchange.map_err(|error| exchange_error(&error))?;
    let object = Object::Exchange(ExchangeAt::Named(exchange));
    Ok(Answer::new(Success::Created, object.attributes(scope)))
}

/// Deletes an exchange.
pub(crate) fn delete(at: &ExchangeAt, request: &Request) -> Result<Answer, Error> {
    request.expect_only(&["if_unused"])?;
    let condition = ExchangeDeleteIf { unused: request.flag("if_unused")? };
    match at {
        ExchangeAt::Nameless => {
            Err(exchange_error(&ExchangeError::Predeclared { name: String::new() }))
        }
        ExchangeAt::Named(exchange) => {
            let deleted = exchange.delete(condition);
            Ok(Answer::deleted(deleted.map_err(|error| exchange_error(&error))?))
        }
    }
}

impl ExchangeAt {
    pub(crate) fn name(&self) -> &str {
        match self {
            ExchangeAt::Nameless => "",
            ExchangeAt::Named(exchange) => exchange.name(),
        }
    }
}

impl ExchangeReading {
    pub(crate) fn new(at: ExchangeAt, queues: u64) -> ExchangeReading {
        let (settings, statistics) = match &at {
            ExchangeAt::Nameless => {
                let statistics = ExchangeStatistics { binding_count: queues, ..<_>::default() };
                (ExchangeSettings::of(ExchangeKind::Direct), statistics)
            }
            ExchangeAt::Named(exchange) => (exchange.settings().clone(), exchange.statistics()),
        };
        ExchangeReading { at, settings, statistics }
    }

    /// What is not as usual, except what has an attribute of its own.
    fn arguments(&self) -> Map {
        let usual = ExchangeSettings::default();
        let unusual = EXCHANGE_ARGUMENTS.iter().filter(|argument| {
            argument.name.starts_with("qpid.")
                && argument.get(&self.settings) != argument.get(&usual)
        });
        unusual.map(|argument| (argument.name.into(), argument.get(&self.settings))).collect()
    }
}

impl Row for ExchangeReading {
    fn read(&self, column: usize, scope: &Scope<'_>) -> Value {
        if let Some(attribute) = ATTRIBUTES.get(column) {
            return (attribute.read)(self, scope);
        }
        self.statistics.iter().nth(column - ATTRIBUTES.len()).map(|(_, number)| number).into()
    }
}

/// What is answered when something about an exchange does not work.
pub(crate) fn exchange_error(error: &ExchangeError) -> Error {
    let description = match error {
        ExchangeError::NotFound { name } => format!("there is no exchange {}", quoted(name)),
        error => error.to_string(),
    };
    match error {
        ExchangeError::NotFound { .. }
        | ExchangeError::Deleted { .. }
        | ExchangeError::NoQueue { .. }
        | ExchangeError::NotBound { .. } => Error::NotFound(description),
        ExchangeError::Exists { .. }
        | ExchangeError::InUse { .. }
        | ExchangeError::Predeclared { .. }
        | ExchangeError::Duplicate { .. } => Error::Conflict(description),
        ExchangeError::TooMany { .. } | ExchangeError::NoMemory(_) => {
            Error::Unavailable(description)
        }
        ExchangeError::InvalidName { .. }
        | ExchangeError::Settings(_)
        | ExchangeError::InvalidBinding { .. } => Error::BadRequest(description),
    }
}
