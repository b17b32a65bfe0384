//! Receiving from an exchange: the queue that stands between it and a link.

use std::sync::Arc;

use mochila_broker::exchange::SubscriberId;
use mochila_broker::settings::Subscribed;
use mochila_broker::{
    Adoption, ConsumerId, ConsumerOptions, DeleteIf, Exchange, ExchangeKind, Filters, Pick,
    QueueError, QueueSettings, SharedQueue, Waker, Wakeups,
};
use mochila_wire::performative::Attach;
use mochila_wire::terminus::{
    DIRECT_BINDING, Filter, HEADERS_BINDING, LifetimePolicy, TOPIC_BINDING, TerminusDurability,
    TerminusExpiryPolicy,
};
use mochila_wire::{AmqpError, Map, Now, Source, Value, condition};

use crate::connection::Connection;
use crate::wanted::{ExchangeAt, MOST_TRIES, Wanted};
use crate::{Node, refusal};

/// What a link from an exchange has there, beside its queue.
pub(crate) struct Subscription {
    /// Nothing if that has been deleted, and the link has come to end the subscription.
    exchange: Option<(Arc<Exchange>, SubscriberId)>,
    /// The exchange was made for this link.
    owns_exchange: bool,
}

/// A subscription that is to end.
pub(crate) struct Ending {
    /// The name of its exchange.
    pub(crate) address: String,
    /// The exchange, if that is there.
    pub(crate) exchange: Option<Arc<Exchange>>,
}

/// How a queue is to be bound for a link, and which of its filters say so.
struct WantedBinding {
    key: String,
    arguments: Map,
    /// The filters in force.
    filters: Map,
}

/// Who shares a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody: it is for one link.
    Sole,
    /// Links of one container.
    InContainer,
    /// Links of all containers.
    Global,
}

impl Sharing {
    pub(crate) fn of(wanted: &Wanted<'_>) -> Sharing {
        match (wanted.has("shared"), wanted.has(GLOBAL)) {
            (false, _) => Sharing::Sole,
            (true, false) => Sharing::InContainer,
            (true, true) => Sharing::Global,
        }
    }
}

/// A subscription that a link asks for.
pub(crate) struct WantedSubscription<'a> {
    /// The name of its queue.
    name: String,
    wanted: &'a Wanted<'a>,
    source: &'a Source,
    at: &'a ExchangeAt<'a>,
    subscribed: Arc<Subscribed>,
}

impl<'a> WantedSubscription<'a> {
    /// What the source of a link with these filters asks for, and which filters bind.
    pub(crate) fn new(
        name: String,
        (wanted, source): (&'a Wanted<'a>, &'a Source),
        at: &'a ExchangeAt<'a>,
        filters: Option<&Arc<Filters>>,
    ) -> Result<(WantedSubscription<'a>, Map), AmqpError> {
        let binding = WantedBinding::of(at, source.filter.as_ref(), &name)?;
        let subscribed = Arc::new(Subscribed {
            exchange: at.exchange.name().into(),
            key: binding.key.into(),
            arguments: binding.arguments,
            filters: filters.cloned().unwrap_or_default(),
            is_shared: wanted.has("shared"),
        });
        Ok((WantedSubscription { name, wanted, source, at, subscribed }, binding.filters))
    }

    /// The settings of its queue.
    fn settings(&self) -> Result<QueueSettings, AmqpError> {
        let mut settings = self.wanted.subscription_settings()?;
        settings.durable = self.source.durable != TerminusDurability::None;
        settings.exclusive = !self.subscribed.is_shared;
        if let Some(keeps_ms) = self.keeps_ms() {
            settings.lifetime = Some(LifetimePolicy::DeleteOnNoLinks);
            settings.auto_delete_delay_ms = keeps_ms;
        }
        settings.subscribed = Some(Arc::clone(&self.subscribed));
        Ok(settings)
    }

    /// How long it stays without links; `None` if it does until somebody ends it.
    fn keeps_ms(&self) -> Option<u64> {
        let lasts = self.source.expiry_policy == TerminusExpiryPolicy::Never;
        (!lasts).then(|| u64::from(self.source.timeout) * 1_000)
    }

    /// What is still to be asked of the messages that are in a queue with these settings.
    fn filters_of_link(
        &self,
        settings: &QueueSettings,
        options: &ConsumerOptions,
    ) -> Option<Arc<Filters>> {
        let is_screened = settings.filters_of_subscriber().is_some();
        // What is local to one of those who share a subscription is not for another.
        let depends_on_link =
            self.subscribed.is_shared && self.subscribed.filters.depend_on_connection();
        options.filters.clone().filter(|_| !is_screened || depends_on_link)
    }

    /// Whether what comes over the connection of its one link is not for it.
    fn is_of_one_connection(&self) -> bool {
        !self.subscribed.is_shared && self.subscribed.filters.depend_on_connection()
    }
}

impl Subscription {
    /// A link takes from an exchange.
    pub(crate) fn new(at: &ExchangeAt<'_>, waker: Waker) -> Subscription {
        let subscription = Subscription::to_end(Some(Arc::clone(&at.exchange)), waker);
        Subscription { owns_exchange: at.is_own, ..subscription }
    }

    /// A link has come to end it; its exchange may have gone.
    pub(crate) fn to_end(exchange: Option<Arc<Exchange>>, waker: Waker) -> Subscription {
        let exchange = exchange.map(|exchange| {
            let id = exchange.attach_subscriber(waker);
            (exchange, id)
        });
        Subscription { exchange, owns_exchange: false }
    }

    /// Its exchange, if that is there.
    pub(crate) fn exchange(&self) -> Option<&Arc<Exchange>> {
        self.exchange.as_ref().map(|(exchange, _)| exchange)
    }

    /// The link is gone; if its peer has closed it, the subscription ends unless others share it.
    pub(crate) fn leave(self, queue: &Arc<SharedQueue>, closed: bool, wakeups: &mut Wakeups) {
        if let Some((exchange, id)) = &self.exchange {
            exchange.detach_subscriber(*id);
        }
        if closed && is_subscription(queue) {
            wakeups.merge(queue.delete(UNUSED).unwrap_or_default());
        } else if closed && queue.statistics().consumer_count == 0 {
            // It stays with what it has, and gets no more.
            wakeups.merge(queue.end_adoption());
        }
        if let Some((exchange, _)) = self.exchange.filter(|_| self.owns_exchange) {
            wakeups.merge(exchange.delete(<_>::default()).unwrap_or_default());
        }
    }
}

impl WantedBinding {
    /// What a source asks for: by a filter, by the key in its address, or everything.
    fn of(
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
    /// The name of the queue of a subscription.
    ///
    /// JMS clients write behind a bar what they add to the name that their user has given: a number
    /// for further links of one subscription, and a word if it is not to last, which is another
    /// subscription than one of this name that is.
    pub(crate) fn subscription_name(&self, link: &str, sharing: Sharing) -> String {
        let container = self.record.opened.get().map_or("", |peer| &peer.container);
        if sharing == Sharing::Sole {
            return format!("{container}_{link}");
        }
        let (name, addition) = link.split_once('|').unwrap_or((link, ""));
        let kind = if addition.contains("volatile") { "|volatile" } else { "" };
        match sharing {
            Sharing::Global => format!("{name}{kind}"),
            Sharing::Sole | Sharing::InContainer => format!("{container}_{name}{kind}"),
        }
    }

    /// The subscription that a link without source means, which is how JMS clients end one, and its
    /// queue. One that containers share is meant only if that is said: by a
    /// capability, or behind the name, as those clients write it.
    pub(crate) fn subscription_to_end(&self, peer: &Attach) -> Option<(Ending, Arc<SharedQueue>)> {
        let addition = peer.name.split_once('|').map_or("", |(_, addition)| addition);
        let is_global = addition.contains(GLOBAL)
            || peer.desired_capabilities.iter().any(|symbol| symbol.as_str() == GLOBAL);
        let scopes = match is_global {
            true => &[Sharing::Global][..],
            false => &[Sharing::Sole, Sharing::InContainer],
        };
        scopes.iter().find_map(|sharing| {
            let name = self.subscription_name(&peer.name, *sharing);
            let queue = self.node.broker.queue(&name)?;
            let (address, exchange, is_shared) = match &queue.settings().subscribed {
                Some(subscribed) => {
                    let address = subscribed.exchange.to_string();
                    let exchange = self.node.broker.exchange(&address);
                    (address, exchange, subscribed.is_shared)
                }
                None => {
                    let (exchange, _, is_shared) = queue.adopted()?;
                    (exchange.name().to_owned(), Some(exchange), is_shared)
                }
            };
            let is_meant = is_shared || *sharing != Sharing::Global;
            is_meant.then_some((Ending { address, exchange }, queue))
        })
    }
}

impl Node {
    /// Consumes from the queue of a subscription, which is made and bound if need be: the queue, the
    /// consumer, and whether it has been made just now.
    pub(crate) fn subscribe(
        &self,
        now: Now,
        wish: &WantedSubscription<'_>,
        options: &ConsumerOptions,
        wakeups: &mut Wakeups,
    ) -> Result<(Arc<SharedQueue>, ConsumerId, bool), AmqpError> {
        for _ in 0..MOST_TRIES {
            let Some((queue, is_new)) = self.subscription_queue(wish, wakeups)? else { continue };
            let filters = wish.filters_of_link(&queue.settings(), options);
            match queue.subscribe(now, ConsumerOptions { filters, ..options.clone() }) {
                Ok(consumer) => {
                    // Whoever wants nothing local is known before the exchange brings anything.
                    if let Err(error) = self.bind_subscription(now, &queue, wish, wakeups) {
                        wakeups.merge(queue.unsubscribe(now, consumer));
                        if is_new {
                            wakeups.merge(queue.delete(UNUSED).unwrap_or_default());
                        }
                        return Err(error);
                    }
                    if !is_new && wish.is_of_one_connection() {
                        // It came over this connection when the subscription was not here yet.
                        let local = Pick { connection: Some(options.owner), ..u64::MAX.into() };
                        wakeups.merge(queue.purge(now, local).1);
                    }
                    return Ok((queue, consumer, is_new));
                }
                // It went just then, because nobody used it: somebody does now.
                Err(QueueError::Deleted { .. }) => {}
                Err(error) => return Err(error.to_amqp()),
            }
        }
        Err(QueueError::Deleted { name: wish.name.clone() }.to_amqp())
    }

    /// The queue that is there under the name of a subscription, or is made now, which is `true`
    /// then. One that was made for something else goes if nobody uses it: `None`, to be looked for
    /// again.
    fn subscription_queue(
        &self,
        wish: &WantedSubscription<'_>,
        wakeups: &mut Wakeups,
    ) -> Result<Option<(Arc<SharedQueue>, bool)>, AmqpError> {
        let Some(queue) = self.broker.queue(&wish.name) else {
            return match self.broker.create(&wish.name, wish.settings()?) {
                Ok(queue) => {
                    queue.set_creator(wish.wanted.user);
                    Ok(Some((queue, true)))
                }
                // Somebody else was faster.
                Err(QueueError::Exists { .. }) => Ok(None),
                Err(error) => Err(error.to_amqp()),
            };
        };
        let is_wanted = match &queue.settings().subscribed {
            Some(subscribed) if subscribed.is_shared != wish.subscribed.is_shared => {
                let is_shared = if subscribed.is_shared { "is shared" } else { "is not shared" };
                let text = format!("the subscription '{}' {is_shared}; end it first", wish.name);
                return Err(AmqpError::new(condition::NOT_ALLOWED, text));
            }
            Some(subscribed) => **subscribed == *wish.subscribed,
            // It has been made by somebody who wants it for this.
            None => true,
        };
        if is_wanted {
            return Ok(Some((queue, false)));
        }
        match queue.delete(UNUSED) {
            Ok(woken) => wakeups.merge(woken),
            Err(QueueError::InUse { .. }) => return Err(in_use(&queue)),
            Err(_) => {}
        }
        Ok(None)
    }

    /// Binds the queue of a subscription as is wanted, and for as long. One that has not been made for it keeps what it
    /// was bound for otherwise than by a subscription.
    fn bind_subscription(
        &self,
        now: Now,
        queue: &Arc<SharedQueue>,
        wish: &WantedSubscription<'_>,
        wakeups: &mut Wakeups,
    ) -> Result<(), AmqpError> {
        let Subscribed { key, arguments, .. } = &*wish.subscribed;
        let exchange = &wish.at.exchange;
        if is_subscription(queue) {
            let settings = wish.settings()?;
            let bound = exchange.bind(now, queue, key, arguments.clone());
            wakeups.merge(bound.map_err(|error| error.to_amqp())?.1);
            wakeups.merge(queue.set_lifetime(now, &settings));
            return Ok(());
        }
        let before = queue.adopted();
        if let (Some((_, before, _)), Some(there)) = (&before, exchange.binding(queue, key))
            && Arc::ptr_eq(before, &there)
            && (arguments.is_empty() || there.arguments() == arguments)
        {
            queue.renew_adoption(wish.keeps_ms());
            return Ok(());
        }
        if before.is_some() && queue.statistics().consumer_count > 1 {
            return Err(in_use(queue));
        }
        let bound = exchange.bind_scoped(now, queue, key, arguments.clone());
        let (bound, woken) = bound.map_err(|error| error.to_amqp())?;
        wakeups.merge(woken);
        let adoption = Adoption::new(bound, wish.subscribed.is_shared, wish.keeps_ms());
        wakeups.merge(queue.adopt(adoption));
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

/// Whether a queue was made as a subscription, and so goes with it.
fn is_subscription(queue: &SharedQueue) -> bool {
    queue.settings().subscribed.is_some()
}

fn in_use(queue: &SharedQueue) -> AmqpError {
    let text = format!("'{}' is in use as another subscription", queue.name());
    AmqpError::new(condition::RESOURCE_LOCKED, text)
}

/// The capability of a subscription that links of all containers share.
const GLOBAL: &str = "global";
const UNUSED: DeleteIf = DeleteIf { unused: true, empty: false };
