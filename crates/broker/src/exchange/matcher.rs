//! Which queues a message goes to: the four kinds of exchanges in one.

use super::ExchangeKind;
use super::cache::RouteCache;
use super::direct::Direct;
use super::headers::{Conditions, Headers};
use super::topic::Topic;
use mochila_wire::RawMap;
use std::hash::Hash;

/// The table of an exchange: a value, copied only where somebody still reads the one before.
#[derive(Clone, Debug)]
pub(crate) enum Matcher<T> {
    Direct(Direct<T>),
    Topic(Topic<T>, RouteCache<T>),
    Fanout(Vec<T>),
    Headers(Headers<T>),
}

/// What a binding goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Its key.
    Key,
    /// The application properties; its key is only a name.
    Conditions(Conditions),
}

impl<T: Clone + Eq + Hash> Matcher<T> {
    pub(crate) fn new(kind: ExchangeKind) -> Matcher<T> {
        match kind {
            ExchangeKind::Direct => Matcher::Direct(Direct::default()),
            ExchangeKind::Topic => Matcher::Topic(Topic::default(), RouteCache::default()),
            ExchangeKind::Fanout => Matcher::Fanout(Vec::new()),
            ExchangeKind::Headers => Matcher::Headers(Headers::default()),
        }
    }

    /// Adds a binding that is not there yet; its key is as the kind of exchange writes it.
    pub(crate) fn bind(&mut self, key: &[u8], queue: T, rule: &Rule) {
        match self {
            Matcher::Direct(direct) => direct.bind(key, queue),
            Matcher::Topic(topic, cache) => {
                cache.clear();
                topic.bind(key, queue);
            }
            Matcher::Fanout(queues) => queues.push(queue),
            Matcher::Headers(headers) => {
                let conditions = match rule {
                    Rule::Conditions(conditions) => conditions.clone(),
                    Rule::Key => Conditions::none(),
                };
                headers.bind(key, queue, conditions);
            }
        }
    }

    /// Removes a binding.
    pub(crate) fn unbind(&mut self, key: &[u8], queue: &T) {
        match self {
            Matcher::Direct(direct) => direct.unbind(key, queue),
            Matcher::Topic(topic, cache) => {
                cache.clear();
                topic.unbind(key, queue);
            }
            Matcher::Fanout(queues) => queues.retain(|bound| bound != queue),
            Matcher::Headers(headers) => headers.unbind(key, queue),
        }
    }

    /// Hands the queues of a routing key to `visit`, each once. Not for [`Matcher::Headers`], which
    /// knows no keys.
    pub(crate) fn by_key(&self, key: &[u8], visit: impl FnOnce(&[T])) {
        match self {
            Matcher::Direct(direct) => visit(direct.matching(key)),
            Matcher::Fanout(queues) => visit(queues),
            Matcher::Headers(_) => visit(&[]),
            Matcher::Topic(topic, cache) => {
                if let Some(route) = cache.get(key) {
                    return visit(route.as_ref().map_or(&[], |route| &route.queues));
                }
                let mut found = Vec::new();
                topic.matching(key, &mut found);
                cache.put(key, &found);
                visit(&found);
            }
        }
    }

    /// Adds the queues of a message with these application properties, each once.
    pub(crate) fn by_properties(&self, properties: Option<RawMap<'_>>, found: &mut Vec<T>) {
        if let Matcher::Headers(headers) = self {
            headers.matching(properties, found);
        }
    }
}
