//! Bindings of queues to exchanges.

use super::exchange::{ExchangeAt, exchange_error};
use crate::attribute::Attribute;
use crate::error::{Error, quoted};
use crate::kind::Object;
use crate::request::Request;
use crate::response::{Answer, Success};
use crate::scope::Scope;
use mochila_broker::exchange::Binding;
use mochila_broker::{Broker, ExchangeError, SharedQueue};
use mochila_wire::{Map, Value};
use std::sync::Arc;

/// A binding and where it is.
#[derive(Clone, Debug)]
pub(crate) struct BindingAt {
    exchange: ExchangeAt,
    queue: Arc<SharedQueue>,
    key: Box<str>,
    arguments: Map,
    links: Option<u64>,
}

pub(crate) const ATTRIBUTES: &[Attribute<BindingAt>] = &[
    Attribute::new("name", "string", "`exchange/queue/key`.", |at, _| at.name().into()),
    Attribute::new("identity", "string", "`binding/` and its name.", |at, _| {
        format!("binding/{}", at.name()).into()
    }),
    Attribute::new("type", "string", "`binding`.", |_, _| "binding".into()),
    Attribute::new("exchange", "string", "The name of the exchange.", |at, _| {
        at.exchange.name().into()
    }),
    Attribute::new("queue", "string", "The name of the queue.", |at, _| at.queue.name().into()),
    Attribute::new(
        "key",
        "string",
        "The binding key, as the exchange writes it: patterns that mean the same are one, and a \
         fanout exchange has none.",
        |at, _| (*at.key).into(),
    ),
    Attribute::new(
        "arguments",
        "map",
        "Its arguments: what the headers of a message have to be.",
        |at, _| at.arguments.clone().into(),
    ),
    Attribute::new(
        "links",
        "ulong",
        "How many links have brought it along (`x-bindings` of an attach): it goes with the last of \
         them. Null if it stays until somebody unbinds it.",
        |at, _| at.links.map_or(Value::Null, Value::Ulong),
    ),
];

/// All bindings, by exchange, queue and key. Every queue is bound to the nameless exchange with its
/// own name.
pub(crate) fn list(broker: &Broker) -> Vec<Object> {
    let mut all: Vec<BindingAt> = broker.queues().into_iter().map(BindingAt::nameless).collect();
    for exchange in broker.exchanges() {
        let at = ExchangeAt::Named(Arc::clone(&exchange));
        all.extend(exchange.bindings().iter().map(|it| BindingAt::of(at.clone(), it)));
    }
    all.sort_by(|a, b| a.order().cmp(&b.order()));
    all.into_iter().map(Object::Binding).collect()
}

/// The binding of this name.
pub(crate) fn named(broker: &Broker, name: &str) -> Option<BindingAt> {
    let (exchange, rest) = name.split_once('/')?;
    if exchange.is_empty() {
        let queue = broker.queue(rest.get(..rest.len() / 2)?)?;
        let found = BindingAt::nameless(queue);
        return Some(found).filter(|found| found.name() == name);
    }
    let exchange = broker.exchange(exchange)?;
    // Names of queues may have slashes in them, and so may keys.
    splits(rest).find_map(|(queue, key)| {
        let binding = exchange.binding(&broker.queue(queue)?, key)?;
        Some(BindingAt::of(ExchangeAt::Named(Arc::clone(&exchange)), &binding))
    })
}

/// Binds a queue.
pub(crate) fn create(scope: &Scope<'_>, request: &Request) -> Result<Answer, Error> {
    let wanted = Wanted::of(scope.broker(), request)?;
    let exchange = scope.broker().exchange(&wanted.exchange);
    let exchange = exchange.ok_or_else(|| match wanted.exchange.as_str() {
        "" => exchange_error(&ExchangeError::Predeclared { name: String::new() }),
        name => exchange_error(&ExchangeError::NotFound { name: name.to_owned() }),
    })?;
    let queue = scope.broker().queue(&wanted.queue);
    let queue = queue
        .ok_or_else(|| Error::NotFound(format!("there is no queue {}", quoted(&wanted.queue))))?;
    let bound = exchange.bind(scope.now, &queue, &wanted.key, wanted.arguments);
    let (_, wakeups) = bound.map_err(|error| exchange_error(&error))?;
    let Some(binding) = exchange.binding(&queue, &wanted.key) else {
        wakeups.perform();
        return Err(Error::NotFound("it has been unbound again".into()));
    };
    let object = Object::Binding(BindingAt::of(ExchangeAt::Named(exchange), &binding));
    Ok(Answer { wakeups, ..Answer::new(Success::Created, object.attributes(scope)) })
}

/// Ends a binding.
pub(crate) fn delete(at: &BindingAt, request: &Request) -> Result<Answer, Error> {
    request.expect_only(&[])?;
    match &at.exchange {
        ExchangeAt::Nameless => {
            Err(exchange_error(&ExchangeError::Predeclared { name: String::new() }))
        }
        ExchangeAt::Named(exchange) => {
            let wakeups = exchange.unbind(&at.queue, &at.key);
            Ok(Answer::deleted(wakeups.map_err(|error| exchange_error(&error))?))
        }
    }
}

/// How many bindings a queue has, the one to the nameless exchange included.
pub(crate) fn count_of(broker: &Broker, queue: &Arc<SharedQueue>) -> u64 {
    let exchanges = broker.exchanges_of(queue);
    1 + exchanges.iter().map(|exchange| exchange.bindings_of(queue).len() as u64).sum::<u64>()
}

impl BindingAt {
    fn of(exchange: ExchangeAt, binding: &Binding) -> BindingAt {
        BindingAt {
            exchange,
            queue: Arc::clone(binding.queue()),
            key: binding.key().into(),
            arguments: binding.arguments().clone(),
            links: binding.claims(),
        }
    }

    fn nameless(queue: Arc<SharedQueue>) -> BindingAt {
        let key = queue.name().into();
        let (exchange, arguments) = (ExchangeAt::Nameless, Map::new());
        BindingAt { exchange, queue, key, arguments, links: None }
    }

    fn name(&self) -> String {
        let (exchange, queue, key) = self.order();
        format!("{exchange}/{queue}/{key}")
    }

    fn order(&self) -> (&str, &str, &str) {
        (self.exchange.name(), self.queue.name(), &self.key)
    }
}

/// What is to be bound.
struct Wanted {
    exchange: String,
    queue: String,
    key: String,
    arguments: Map,
}

impl Wanted {
    /// Reads it from the name of the binding, or from the body where it says so.
    fn of(broker: &Broker, request: &Request) -> Result<Wanted, Error> {
        let mut said = [None, None, None];
        let mut arguments = Map::new();
        for (name, value) in request.body() {
            match (PARTS.iter().position(|part| *part == name), value) {
                (Some(_), Value::Null) => {}
                (Some(part), _) => {
                    let text = value.as_str().ok_or_else(|| {
                        Error::BadRequest(format!("'{name}' has to be a string, not {value}"))
                    })?;
                    said[part] = Some(text.to_owned());
                }
                (None, Value::Map(nested)) if name == "arguments" => {
                    for (name, value) in nested.iter() {
                        add(&mut arguments, name.clone(), value)?;
                    }
                }
                (None, Value::Null) if name == "arguments" => {}
                (None, _) if name == "arguments" => {
                    return Err(Error::bad_request("'arguments' has to be a map"));
                }
                (None, _) if ["name", "type", "identity"].contains(&name) => {}
                (None, _) => add(&mut arguments, name.into(), value)?,
            }
        }
        let [exchange, queue, key] = match &said {
            [Some(exchange), Some(queue), key] if !request.has_new_name() => {
                [exchange.clone(), queue.clone(), key.clone().unwrap_or_default()]
            }
            _ => parts_of(broker, request.new_name("a binding")?, &said)?,
        };
        Ok(Wanted { exchange, queue, key, arguments })
    }
}

/// What the body of a request may say about a binding, besides its arguments.
const PARTS: [&str; 3] = ["exchange", "queue", "key"];

/// The exchange, the queue and the key that a name says, which may be said elsewhere too.
fn parts_of(broker: &Broker, name: &str, said: &[Option<String>; 3]) -> Result<[String; 3], Error> {
    let incomplete = || Error::BadRequest(format!("{} is not exchange/queue/key", quoted(name)));
    let (exchange, rest) = name.split_once('/').ok_or_else(incomplete)?;
    let is_meant = |(queue, _): &(&str, &str)| match &said[1] {
        Some(said) => queue == said,
        None => broker.queue(queue).is_some(),
    };
    let known = splits(rest).find(is_meant).or_else(|| splits(rest).next());
    let (queue, key) = known.ok_or_else(incomplete)?;
    let named = [exchange, queue, key];
    for ((part, named), said) in PARTS.iter().zip(named).zip(said) {
        if let Some(said) = said.as_ref().filter(|said| **said != named) {
            let (said, name) = (quoted(said), quoted(name));
            let text = format!("'{part}' says {said}, and the name of the binding is {name}");
            return Err(Error::BadRequest(text));
        }
    }
    Ok(named.map(str::to_owned))
}

/// Adds an argument, which may be said once more.
fn add(arguments: &mut Map, name: Value, value: &Value) -> Result<(), Error> {
    // A symbol and a string are the same name.
    let before = name.as_str().and_then(|name| arguments.remove(name));
    if let Some(other) = before.filter(|other| other != value) {
        let text = format!("the argument {name} has different values, {other} and {value}");
        return Err(Error::BadRequest(text));
    }
    arguments.insert(name, value.clone());
    Ok(())
}

/// All ways to read `queue/key`; without a key it is empty.
fn splits(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let at = text.match_indices('/').map(|(at, _)| (&text[..at], &text[at + 1..]));
    at.chain([(text, "")])
}
