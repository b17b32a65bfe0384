//! Bindings that a link brings along, and that go with it.
//!
//! The property `x-bindings` of an attach is a list of maps, each with `exchange`, `queue`, `key` and
//! `arguments` of one binding, as in the address strings of the older clients; what it does not name
//! is the node of the link. The answer lists those that are in force.

use std::sync::Arc;

use mochila_broker::exchange::ScopedBinding;
use mochila_broker::{Exchange, ExchangeError, SharedQueue, Wakeups};
use mochila_wire::performative::Attach;
use mochila_wire::{AmqpError, Encode, Map, Now, Symbol, Value, condition};

use crate::links::End;
use crate::{Node, refusal};

/// The bindings that a peer wants with a link.
pub(crate) struct LinkBindings<'a>(Vec<LinkBinding<'a>>);

/// One of them.
#[derive(Default)]
struct LinkBinding<'a> {
    exchange: Option<&'a str>,
    queue: Option<&'a str>,
    key: &'a str,
    arguments: Map,
}

impl<'a> LinkBindings<'a> {
    /// Reads what an attach asks for.
    pub(crate) fn of(peer: &'a Attach) -> Result<LinkBindings<'a>, AmqpError> {
        let asked = peer.properties.as_ref().and_then(|map| map.get(BINDINGS.as_str()));
        let bindings = match asked {
            None => return Ok(LinkBindings(Vec::new())),
            Some(Value::List(bindings)) => bindings,
            Some(_) => return Err(wrong("it has to be a list of maps")),
        };
        if bindings.len() > MOST_BINDINGS {
            let text =
                format!("a link may have {MOST_BINDINGS} bindings, and not {}", bindings.len());
            return Err(refusal::refusal(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        bindings.iter().map(LinkBinding::of).collect::<Result<_, _>>().map(LinkBindings)
    }

    /// Looks whether the bindings can be made, as far as can be seen before the link has its node.
    pub(crate) fn verify(&self, node: &Node, own: Option<&Arc<Exchange>>) -> Result<(), AmqpError> {
        self.0.iter().try_for_each(|binding| {
            let exchange = match binding.exchange {
                Some(_) => Some(binding.named_exchange(node)?),
                None => own.cloned(),
            };
            binding.named_queue(node)?;
            let verified = exchange.map_or(Ok(()), |it| it.verify_binding(&binding.arguments));
            verified.map_err(|error| error.to_amqp())
        })
    }

    /// Binds; if one of the bindings cannot be made, none of them is.
    pub(crate) fn bind(
        self,
        now: Now,
        node: &Node,
        end: &End,
        wakeups: &mut Wakeups,
    ) -> Result<Vec<ScopedBinding>, AmqpError> {
        let mut bound = Vec::with_capacity(self.0.len());
        for binding in self.0 {
            match binding.bind(now, node, end) {
                Ok((made, woken)) => {
                    wakeups.merge(woken);
                    bound.push(made);
                }
                Err(error) => {
                    end_all(bound, wakeups);
                    return Err(error);
                }
            }
        }
        Ok(bound)
    }
}

impl<'a> LinkBinding<'a> {
    fn of(value: &'a Value) -> Result<LinkBinding<'a>, AmqpError> {
        let map = value.as_map().ok_or_else(|| wrong("it has to be a list of maps"))?;
        let mut binding = LinkBinding::default();
        for (key, value) in map.iter() {
            let name = key.as_str().unwrap_or_default();
            let text = || value.as_str().ok_or_else(|| wrong(&format!("{name} has to be text")));
            match name {
                "exchange" => binding.exchange = Some(text()?),
                "queue" => binding.queue = Some(text()?),
                "key" => binding.key = text()?,
                "arguments" => {
                    let map = value.as_map().ok_or_else(|| wrong("arguments have to be a map"))?;
                    binding.arguments = map.clone();
                }
                _ => {
                    let key = key.as_str().map_or_else(|| key.to_string(), quoted);
                    let text =
                        format!("a binding has exchange, queue, key and arguments, not {key}");
                    return Err(wrong(&text));
                }
            }
        }
        Ok(binding)
    }

    fn bind(self, now: Now, node: &Node, end: &End) -> Result<(ScopedBinding, Wakeups), AmqpError> {
        let exchange = self.exchange_of(node, end)?;
        let queue = self.queue_of(node, end)?;
        let bound = exchange.bind_scoped(now, &queue, self.key, self.arguments);
        bound.map_err(|error| error.to_amqp())
    }

    fn exchange_of(&self, node: &Node, end: &End) -> Result<Arc<Exchange>, AmqpError> {
        if self.exchange.is_none() {
            let own = end.exchange().cloned();
            return own.ok_or_else(|| wrong("no exchange is named, and the node is none"));
        }
        self.named_exchange(node)
    }

    fn named_exchange(&self, node: &Node) -> Result<Arc<Exchange>, AmqpError> {
        let name = self.exchange.unwrap_or_default();
        let exchange = node.broker.exchange(name);
        exchange.ok_or_else(|| ExchangeError::NotFound { name: name.to_owned() }.to_amqp())
    }

    fn queue_of(&self, node: &Node, end: &End) -> Result<Arc<SharedQueue>, AmqpError> {
        if let Some(named) = self.named_queue(node)? {
            return Ok(named);
        }
        let own = end.queue().filter(|queue| !queue.is_private()).cloned();
        own.ok_or_else(|| wrong("no queue is named, and the node is none"))
    }

    fn named_queue(&self, node: &Node) -> Result<Option<Arc<SharedQueue>>, AmqpError> {
        let Some(name) = self.queue else { return Ok(None) };
        let queue = node.broker.queue(name);
        let queue = queue.ok_or_else(|| ExchangeError::NoQueue { name: name.to_owned() }.to_amqp());
        queue.map(Some)
    }
}

/// The link is gone, and its bindings with it.
pub(crate) fn end_all(bound: Vec<ScopedBinding>, wakeups: &mut Wakeups) {
    for binding in bound {
        wakeups.merge(binding.end());
    }
}

/// The properties of an answer, which say what has been bound.
pub(crate) fn in_force(bound: &[ScopedBinding]) -> Option<Map> {
    let shown: Vec<Value> = bound.iter().filter_map(shown).collect();
    let mut properties = Map::new();
    properties.insert(BINDINGS, Value::List(shown));
    (!bound.is_empty()).then_some(properties)
}

/// The bindings again, if an answer that lists them fits a frame of the peer's beside what else there
/// is in it; otherwise they are ended.
pub(crate) fn expect_to_fit(
    bound: Vec<ScopedBinding>,
    frame_bytes: usize,
    wakeups: &mut Wakeups,
) -> Result<Vec<ScopedBinding>, AmqpError> {
    let bytes = in_force(&bound).map_or(0, |properties| properties.to_bytes().len());
    if bytes <= frame_bytes / 2 {
        return Ok(bound);
    }
    end_all(bound, wakeups);
    let text = format!("{bytes} bytes of bindings are too many for your frames of {frame_bytes}");
    Err(refusal::refusal(condition::RESOURCE_LIMIT_EXCEEDED, text))
}

fn shown(bound: &ScopedBinding) -> Option<Value> {
    let (exchange, binding) = (bound.exchange()?, bound.binding()?);
    let map = Map::new()
        .with("exchange", exchange.name())
        .with("queue", binding.queue().name())
        .with("key", binding.key())
        .with("arguments", binding.arguments().clone());
    Some(map.into())
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.escape_debug())
}

fn wrong(reason: &str) -> AmqpError {
    refusal::invalid(format!("the link property {BINDINGS} is wrong: {reason}"))
}

const BINDINGS: Symbol = Symbol::from_static("x-bindings");
/// The most bindings of one link.
const MOST_BINDINGS: usize = 64;
