//! What the queue of a subscription was made for.

use super::QueueSettings;
use crate::message::{INGRESS_TIMESTAMP, SEQUENCE};
use crate::selector::Filters;
use mochila_wire::Map;
use std::sync::Arc;

/// What those who share the queue of a subscription have asked for. Whoever asks for something else
/// means another subscription.
#[derive(Clone, Debug)]
pub struct Subscribed {
    /// The exchange that the messages come from.
    pub exchange: Box<str>,
    /// The key that the queue is bound with.
    pub key: Box<str>,
    /// The arguments that it is bound with, in any order.
    pub arguments: Map,
    /// What they ask of a message that comes through the binding.
    pub filters: Arc<Filters>,
    /// Several links may consume, of several connections.
    pub is_shared: bool,
}

impl PartialEq for Subscribed {
    fn eq(&self, other: &Subscribed) -> bool {
        let has_all = |map: &Map, of: &Map| of.iter().all(|pair| map.iter().any(|it| it == pair));
        let (mine, others) = (&self.arguments, &other.arguments);
        (&self.exchange, &self.key) == (&other.exchange, &other.key)
            && self.is_shared == other.is_shared
            && has_all(mine, others)
            && has_all(others, mine)
            && self.filters.ask_the_same(&other.filters)
    }
}

impl QueueSettings {
    /// The filters that messages have to pass to get in, of a queue that is a subscription.
    ///
    /// Filters that ask for what is added to a message only when it is in can only be asked when it
    /// goes out.
    pub fn filters_of_subscriber(&self) -> Option<&Arc<Filters>> {
        let filters = &self.subscribed.as_ref()?.filters;
        let added = [SEQUENCE.as_str(), INGRESS_TIMESTAMP.as_str()];
        let mut added = added.into_iter().chain(self.sequence_key.as_deref());
        let asks_for_added = added.any(|name| filters.read_annotation(name));
        Some(filters).filter(|_| !asks_for_added)
    }
}
