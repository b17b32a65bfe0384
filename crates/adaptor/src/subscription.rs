//! Receiving from an exchange: the queue that stands between it and a link.

use std::sync::Arc;

use mochila_broker::exchange::SubscriberId;
use mochila_broker::{DeleteIf, Exchange, ExchangeKind, QueueError, SharedQueue, Waker, Wakeups};
use mochila_wire::performative::Attach;
use mochila_wire::terminus::{
    DIRECT_BINDING, Filter, HEADERS_BINDING, LifetimePolicy, TOPIC_BINDING, TerminusDurability,
    TerminusExpiryPolicy,
};
use mochila_wire::{AmqpError, Map, Now, Source, Value, condition};

use crate::connection::Connection;
use crate::wanted::{ExchangeAt, Wanted};
use crate::{Node, refusal};

/// What a link from an exchange has there, beside its queue.
pub(crate) struct Subscription {
    pub(crate) exchange: Arc<Exchange>,
    id: SubscriberId,
    /// The exchange was made for this link.
    owns_exchange: bool,
}

/// How a queue is to be bound for a link, and which of its filters say so.
pub(crate) struct WantedBinding {
    pub(crate) key: String,
    pub(crate) arguments: Map,
    /// The filters in force.
    pub(crate) filters: Map,
}

impl Subscription {
    pub(crate) fn new(at: &ExchangeAt<'_>, waker: Waker) -> Subscription {
        let id = at.exchange.attach_subscriber(waker);
        Subscription { exchange: Arc::clone(&at.exchange), id, owns_exchange: at.is_own }
    }

    /// The link is gone; if its peer has closed it, the subscription ends unless others share it.
    pub(crate) fn leave(self, queue: &SharedQueue, closed: bool, wakeups: &mut Wakeups) {
        self.exchange.detach_subscriber(self.id);
        if closed || self.exchange.is_deleted() {
            let unused = DeleteIf { unused: true, empty: false };
            wakeups.merge(queue.delete(unused).unwrap_or_default());
        }
        if self.owns_exchange {
            wakeups.merge(self.exchange.delete(<_>::default()).unwrap_or_default());
        }
    }
}

impl WantedBinding {
    /// What a source asks for: by a filter, by the key in its address, or everything.
    pub(crate) fn of(
        at: &ExchangeAt<'_>,
        filters: Option<&Map>,
        name: &str,
    ) -> Result<WantedBinding, AmqpError> {
        match at.exchange.settings().kind {
            ExchangeKind::Headers => WantedBinding::by_headers(filters, name),
            ExchangeKind::Fanout => {
                let (key, arguments, filters) = (String::new(), Map::new(), Map::new());
                Ok(WantedBinding { key, arguments, filters })
            }
            kind @ (ExchangeKind::Direct | ExchangeKind::Topic) => {
                let all = if kind == ExchangeKind::Topic { "#" } else { "" };
                WantedBinding::by_key(filters, at.key.unwrap_or(all))
            }
        }
    }

    fn by_key(filters: Option<&Map>, usual: &str) -> Result<WantedBinding, AmqpError> {
        let found = filters.and_then(|set| {
            DIRECT_BINDING
                .find(set)
                .map(|it| (DIRECT_BINDING, it))
                .or_else(|| TOPIC_BINDING.find(set).map(|it| (TOPIC_BINDING, it)))
        });
        let Some((filter, (name, key))) = found else {
            let (arguments, filters) = (Map::new(), Map::new());
            return Ok(WantedBinding { key: usual.to_owned(), arguments, filters });
        };
        let key = key.as_str().ok_or_else(|| wrong(filter, "it has to be text"))?;
        let filters = in_force(filters, name);
        Ok(WantedBinding { key: key.to_owned(), arguments: Map::new(), filters })
    }

    /// The key is only the name of the binding.
    fn by_headers(filters: Option<&Map>, key: &str) -> Result<WantedBinding, AmqpError> {
        let Some((name, value)) = filters.and_then(|set| HEADERS_BINDING.find(set)) else {
            let arguments = Map::new().with("x-match", "all");
            return Ok(WantedBinding { key: key.to_owned(), arguments, filters: Map::new() });
        };
        let arguments =
            value.as_map().ok_or_else(|| wrong(HEADERS_BINDING, "it has to be a map"))?.clone();
        let filters = in_force(filters, name);
        Ok(WantedBinding { key: key.to_owned(), arguments, filters })
    }
}

impl Connection {
    /// The name of the queue of a subscription: shared ones belong to whoever knows the name.
    ///
    /// JMS clients add a number to the names of further links of one subscription, behind a bar.
    pub(crate) fn subscription_name(&self, link: &str, is_shared: bool) -> String {
        if is_shared {
            return link.split('|').next().unwrap_or_default().to_owned();
        }
        let container = self.record.opened.get().map_or("", |peer| &peer.container);
        format!("{container}_{link}")
    }

    /// The subscription that a link without source means, which is how JMS clients end one: the
    /// exchange, and its queue.
    pub(crate) fn subscription_to_end(
        &self,
        peer: &Attach,
    ) -> Option<(Arc<Exchange>, Arc<SharedQueue>)> {
        let names = [false, true].map(|shared| self.subscription_name(&peer.name, shared));
        names.iter().find_map(|name| {
            let queue = self.node.broker.queue(name)?;
            let exchange = self.node.broker.exchanges_of(&queue).into_iter().next()?;
            Some((exchange, queue))
        })
    }
}

impl Node {
    /// The queue of a subscription, bound as is wanted; `true` if it has been made just now.
    pub(crate) fn subscription_queue(
        &self,
        now: Now,
        (name, is_shared): (&str, bool),
        (wanted, source): (&Wanted<'_>, &Source),
        at: &ExchangeAt<'_>,
        wakeups: &mut Wakeups,
    ) -> Result<(Arc<SharedQueue>, WantedBinding, bool), AmqpError> {
        let binding = WantedBinding::of(at, source.filter.as_ref(), name)?;
        let (queue, is_new) = match self.broker.queue(name) {
            Some(queue) => (queue, false),
            None => {
                let mut settings = wanted.subscription_settings()?;
                settings.durable = source.durable != TerminusDurability::None;
                settings.exclusive = !is_shared;
                if source.expiry_policy != TerminusExpiryPolicy::Never {
                    settings.lifetime = Some(LifetimePolicy::DeleteOnNoLinks);
                    settings.auto_delete_delay_ms = u64::from(source.timeout) * 1_000;
                }
                match self.broker.create(name, settings) {
                    Ok(queue) => {
                        queue.set_creator(wanted.user);
                        (queue, true)
                    }
                    // Somebody else was faster.
                    Err(QueueError::Exists { .. }) => {
                        (self.broker.open(name).map_err(|error| error.to_amqp())?, false)
                    }
                    Err(error) => return Err(error.to_amqp()),
                }
            }
        };
        if let Err(error) = self.bind_subscription(now, &queue, &binding, at, wakeups) {
            if is_new {
                wakeups.merge(queue.delete(DeleteIf::default()).unwrap_or_default());
            }
            return Err(error);
        }
        Ok((queue, binding, is_new))
    }

    /// Binds the queue of a subscription as is wanted now, which may be otherwise than before.
    fn bind_subscription(
        &self,
        now: Now,
        queue: &Arc<SharedQueue>,
        wanted: &WantedBinding,
        at: &ExchangeAt<'_>,
        wakeups: &mut Wakeups,
    ) -> Result<(), AmqpError> {
        let bind = || {
            let bound = at.exchange.bind(now, queue, &wanted.key, wanted.arguments.clone());
            bound.map(|(_, wakeups)| wakeups).map_err(|error| error.to_amqp())
        };
        let bound = at.exchange.binding(queue, &wanted.key);
        if bound.is_some_and(|bound| *bound.arguments() == wanted.arguments) {
            // It may be there for another link alone, and is the subscription's from now on.
            wakeups.merge(bind()?);
            return Ok(());
        }
        if queue.statistics().consumer_count > 0 {
            let text = format!("'{}' is in use as another subscription", queue.name());
            return Err(AmqpError::new(condition::RESOURCE_LOCKED, text));
        }
        for exchange in self.broker.exchanges_of(queue) {
            for binding in exchange.bindings_of(queue) {
                wakeups.merge(exchange.unbind(queue, binding.key()).unwrap_or_default());
            }
        }
        wakeups.merge(bind()?);
        Ok(())
    }
}

/// The one filter of a set that has this name.
fn in_force(filters: Option<&Map>, name: &Value) -> Map {
    let pairs = filters.into_iter().flat_map(Map::iter).filter(|(key, _)| *key == name);
    pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn wrong(filter: Filter, reason: &str) -> AmqpError {
    refusal::invalid(format!("the filter {} is wrong: {reason}", filter.symbol))
}
