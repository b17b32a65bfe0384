//! What is answered to a peer that attaches: its terminus, as it is in force.

use mochila_broker::settings::Argument;
use mochila_broker::{ExchangeKind, SharedQueue};
use mochila_engine::AttachAnswer;
use mochila_wire::performative::Attach;
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, DISTRIBUTION_MOVE, LifetimePolicy, TerminusDurability, TerminusExpiryPolicy,
};
use mochila_wire::{DeliveryState, Map, Source, Symbol, Target, Value};

use crate::wanted::{ExchangeAt, is_for_subscriptions};

/// An answer that grants what was asked for. Nothing is kept of a link that is suspended: of
/// deliveries that the peer has kept we have none (part 2, 2.6.13).
pub(crate) fn answer_to(peer: &Attach) -> AttachAnswer {
    let unsettled = peer.unsettled.as_ref().map(|_| Map::new());
    AttachAnswer { unsettled, ..AttachAnswer::echo(peer) }
}

/// The source as it is in force.
pub(crate) fn source_in_force(asked: &Source, queue: &SharedQueue, browsing: bool) -> Source {
    Source {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        // Nothing is kept of a link that is only detached.
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        distribution_mode: Some(if browsing { DISTRIBUTION_COPY } else { DISTRIBUTION_MOVE }),
        // No filter is in force that was not understood: those that are follow.
        filter: None,
        default_outcome: Some(asked.default_outcome.clone().unwrap_or(DeliveryState::Released)),
        outcomes: OUTCOMES.to_vec(),
        capabilities: capabilities_of(&asked.capabilities, &QUEUE_CAPABILITIES),
        ..asked.clone()
    }
}

/// The source of a subscription as it is in force. Each receiver gets a copy of its own.
pub(crate) fn subscription_in_force(
    asked: &Source,
    at: &ExchangeAt<'_>,
    queue: &SharedQueue,
) -> Source {
    let properties = asked.dynamic_node_properties.as_ref();
    Source {
        address: address_in_force(asked.dynamic, asked.address.as_deref(), at),
        // It outlives its links, and does not survive a restart.
        durable: TerminusDurability::None,
        dynamic_node_properties: properties.map(|asked| subscription_properties(asked, at, queue)),
        distribution_mode: Some(DISTRIBUTION_COPY),
        filter: None,
        default_outcome: Some(asked.default_outcome.clone().unwrap_or(DeliveryState::Released)),
        outcomes: OUTCOMES.to_vec(),
        capabilities: exchange_capabilities(&asked.capabilities, at),
        ..asked.clone()
    }
}

/// The target of a link to an exchange as it is in force.
pub(crate) fn publishing_in_force(asked: &Target, at: &ExchangeAt<'_>) -> Target {
    let properties = asked.dynamic_node_properties.as_ref();
    Target {
        address: address_in_force(asked.dynamic, asked.address.as_deref(), at),
        durable: TerminusDurability::None,
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: properties.map(|_| exchange_properties(at)),
        capabilities: exchange_capabilities(&asked.capabilities, at),
        ..asked.clone()
    }
}

fn address_in_force(dynamic: bool, asked: Option<&str>, at: &ExchangeAt<'_>) -> Option<String> {
    match dynamic {
        true => Some(at.exchange.name().to_owned()),
        false => asked.map(str::to_owned),
    }
}

/// The properties of an exchange.
fn exchange_properties(at: &ExchangeAt<'_>) -> Map {
    let mut properties = named_by_symbols(at.exchange.settings().to_arguments());
    if at.is_own {
        let policy = LifetimePolicy::DeleteOnClose.to_value();
        properties.insert(Symbol::from_static(LifetimePolicy::KEY), policy);
    }
    properties
}

/// The properties of an exchange, and what was asked for of a queue behind it.
fn subscription_properties(asked: &Map, at: &ExchangeAt<'_>, queue: &SharedQueue) -> Map {
    let mut properties = exchange_properties(at);
    for (name, value) in asked_of(queue, asked).filter(|(name, _)| is_for_subscriptions(name)) {
        properties.insert(Symbol::from_static(name), value);
    }
    properties
}

pub(crate) fn target_in_force(asked: &Target, queue: &SharedQueue) -> Target {
    Target {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        // Nothing is kept of a link that is only detached.
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        capabilities: capabilities_of(&asked.capabilities, &QUEUE_CAPABILITIES),
        ..asked.clone()
    }
}

/// The properties in force, where any were asked for: what is not as usual, and what was asked for.
fn node_properties(asked: Option<&Map>, queue: &SharedQueue) -> Option<Map> {
    let settings = queue.settings();
    let mut properties = named_by_symbols(settings.to_arguments());
    for (name, value) in asked_of(queue, asked?) {
        properties.insert(Symbol::from_static(name), value);
    }
    if let Some(lifetime) = settings.lifetime {
        properties.insert(Symbol::from_static(LifetimePolicy::KEY), lifetime.to_value());
    }
    Some(properties)
}

/// What was asked for of a queue, by its first name and as it is in force, defaults included.
fn asked_of(queue: &SharedQueue, asked: &Map) -> impl Iterator<Item = (&'static str, Value)> {
    let settings = queue.settings_in_force();
    asked.iter().filter_map(move |(key, _)| {
        let argument = Argument::named(key.as_str()?)?;
        Some((argument.name, argument.in_force(&settings)?))
    })
}

/// The keys of node properties are symbols (part 3, 3.5.9).
fn named_by_symbols(arguments: Map) -> Map {
    let named =
        |(key, value): (Value, Value)| Some((Symbol::new(key.as_str()?).ok()?.into(), value));
    arguments.0.into_iter().filter_map(named).collect()
}

/// What of the capabilities asked for a node has.
fn capabilities_of(asked: &[Symbol], has: &[&str]) -> Vec<Symbol> {
    asked.iter().filter(|symbol| has.contains(&symbol.as_str())).cloned().collect()
}

/// The same of an exchange: a binding of the older protocol is one that its kind understands.
fn exchange_capabilities(asked: &[Symbol], at: &ExchangeAt<'_>) -> Vec<Symbol> {
    let binding = match at.exchange.settings().kind {
        ExchangeKind::Direct => Some(LEGACY_DIRECT),
        ExchangeKind::Topic => Some(LEGACY_TOPIC),
        ExchangeKind::Fanout | ExchangeKind::Headers => None,
    };
    let has: Vec<&str> = EXCHANGE_CAPABILITIES.into_iter().chain(binding).collect();
    capabilities_of(asked, &has)
}

const LEGACY_DIRECT: &str = "legacy-amqp-direct-binding";
const LEGACY_TOPIC: &str = "legacy-amqp-topic-binding";
/// A queue selects by subject as if it were bound, in either way.
const QUEUE_CAPABILITIES: [&str; 5] =
    ["queue", "temporary-queue", "create-on-demand", LEGACY_DIRECT, LEGACY_TOPIC];
const EXCHANGE_CAPABILITIES: [&str; 5] =
    ["topic", "temporary-topic", "create-on-demand", "shared", "global"];

/// What a receiver may say of a delivery (part 3, 3.4).
const OUTCOMES: [Symbol; 4] = [
    Symbol::from_static("amqp:accepted:list"),
    Symbol::from_static("amqp:rejected:list"),
    Symbol::from_static("amqp:released:list"),
    Symbol::from_static("amqp:modified:list"),
];
