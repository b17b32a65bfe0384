//! What a link asks of the node at our end, and the node that it gets.

use std::sync::Arc;

use mochila_broker::exchange::ExchangeArgument;
use mochila_broker::settings::Argument;
use mochila_broker::{
    Exchange, ExchangeError, ExchangeSettings, QueueError, QueueSettings, SharedQueue, Wakeups,
};
use mochila_wire::terminus::LifetimePolicy;
use mochila_wire::{AmqpError, Map, Now, Source, Symbol, Target, Value};

use crate::{Node, refusal};

/// What a source or a target asks for, where the two are alike.
pub(crate) struct Wanted<'a> {
    pub(crate) address: Option<&'a str>,
    /// Who asks.
    pub(crate) user: &'a str,
    dynamic: bool,
    properties: Option<&'a Map>,
    capabilities: &'a [Symbol],
}

impl<'a> Wanted<'a> {
    pub(crate) fn of_source(source: &'a Source, user: &'a str) -> Wanted<'a> {
        Wanted {
            address: source.address.as_deref(),
            user,
            dynamic: source.dynamic,
            properties: source.dynamic_node_properties.as_ref(),
            capabilities: &source.capabilities,
        }
    }

    pub(crate) fn of_target(target: &'a Target, user: &'a str) -> Wanted<'a> {
        Wanted {
            address: target.address.as_deref(),
            user,
            dynamic: target.dynamic,
            properties: target.dynamic_node_properties.as_ref(),
            capabilities: &target.capabilities,
        }
    }

    pub(crate) fn exclusive(&self) -> bool {
        self.properties.and_then(|map| map.get("exclusive")) == Some(&Value::Bool(true))
    }

    /// The settings that its node properties ask for; those that say nothing about a queue's
    /// settings (part 3, 3.5.9) are left out.
    fn settings(&self) -> Result<QueueSettings, AmqpError> {
        self.settings_upon(QueueSettings::default())
    }

    /// The same where everything else is as usual for the address.
    fn settings_upon(&self, usual: QueueSettings) -> Result<QueueSettings, AmqpError> {
        let arguments = self.properties_where(|name| name != DIST_MODES);
        usual.with_arguments(&arguments).map_err(|error| refusal::invalid(error.to_string()))
    }

    /// Whether a dynamic node is to go with the link that made it: the usual thing.
    fn goes_with_link(&self) -> bool {
        let policy = self.properties.and_then(LifetimePolicy::among);
        policy.is_none_or(|policy| policy == LifetimePolicy::DeleteOnClose)
    }

    pub(crate) fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|symbol| symbol.as_str() == capability)
    }
}

/// An exchange that a link is to.
pub(crate) struct ExchangeAt<'a> {
    pub(crate) exchange: Arc<Exchange>,
    /// The routing key in the address.
    pub(crate) key: Option<&'a str>,
    /// It was made for this link alone, and goes with it.
    pub(crate) is_own: bool,
}

impl Wanted<'_> {
    /// The settings of an exchange among its node properties.
    fn exchange_settings(&self) -> Result<ExchangeSettings, AmqpError> {
        let arguments =
            self.properties_where(|name| name != DIST_MODES && !is_for_subscriptions(name));
        ExchangeSettings::from_arguments(&arguments)
            .map_err(|error| refusal::invalid(error.to_string()))
    }

    /// The settings of a queue among its node properties that are not those of an exchange.
    pub(crate) fn subscription_settings(&self) -> Result<QueueSettings, AmqpError> {
        QueueSettings::from_arguments(&self.properties_where(is_for_subscriptions))
            .map_err(|error| refusal::invalid(error.to_string()))
    }

    fn properties_where(&self, is_wanted: impl Fn(&str) -> bool) -> Map {
        let pairs = self.properties.into_iter().flat_map(Map::iter);
        pairs
            .filter(|(key, _)| is_wanted(key.as_str().unwrap_or_default()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn wants_topic(&self) -> bool {
        self.has("topic") || self.has("temporary-topic")
    }

    fn wants_queue(&self) -> bool {
        self.has("queue") || self.has("temporary-queue")
    }
}

/// Whether a property of an exchange's node is meant for the queues of those who subscribe: queues
/// understand it, and exchanges do not.
pub(crate) fn is_for_subscriptions(name: &str) -> bool {
    ExchangeArgument::named(name).is_none() && Argument::named(name).is_some()
}

impl Node {
    /// The exchange that a link asks for; `None` if it asks for a queue.
    ///
    /// The capabilities `queue` and `topic` choose; with both or neither, a queue of that name comes
    /// first, then an exchange, then what a pattern makes.
    pub(crate) fn exchange_for<'a>(
        &self,
        wanted: &Wanted<'a>,
    ) -> Result<Option<ExchangeAt<'a>>, AmqpError> {
        let is_topic_only = wanted.wants_topic() && !wanted.wants_queue();
        if wanted.dynamic {
            if !is_topic_only {
                return Ok(None);
            }
            let settings = self.exchange_settings(wanted)?;
            let exchange = self.broker.create_dynamic_exchange(settings);
            let exchange = exchange.map_err(|error| error.to_amqp())?;
            return Ok(Some(ExchangeAt { exchange, key: None, is_own: wanted.goes_with_link() }));
        }
        let Some(address) = wanted.address.filter(|address| !address.is_empty()) else {
            return Ok(None);
        };
        let is_queue_only = wanted.wants_queue() && !wanted.wants_topic();
        if is_queue_only || (!is_topic_only && self.broker.queue(address).is_some()) {
            return Ok(None);
        }
        if let Some((exchange, key)) = self.broker.exchange_at(address) {
            // It is used as it is, if what is asked for makes sense.
            self.exchange_settings(wanted)?;
            return Ok(Some(ExchangeAt { exchange, key, is_own: false }));
        }
        match is_topic_only {
            true => self.make_exchange(address, wanted).map(Some),
            false => Ok(None),
        }
    }

    /// The settings of an exchange that a link asks for, if those of its subscriptions make sense too.
    fn exchange_settings(&self, wanted: &Wanted<'_>) -> Result<ExchangeSettings, AmqpError> {
        let subscriptions = wanted.subscription_settings()?;
        self.broker.verify(&subscriptions).map_err(|error| error.to_amqp())?;
        wanted.exchange_settings()
    }

    /// The exchange of an address that is not there yet, if it may be made.
    fn make_exchange<'a>(
        &self,
        address: &'a str,
        wanted: &Wanted<'_>,
    ) -> Result<ExchangeAt<'a>, AmqpError> {
        let (name, key) = match address.split_once('/') {
            Some((name, key)) => (name, Some(key)),
            None => (address, None),
        };
        let not_found = || ExchangeError::NotFound { name: name.to_owned() };
        if !wanted.has("create-on-demand") {
            return Err(not_found().to_amqp());
        }
        let made = match self.broker.create_exchange(name, self.exchange_settings(wanted)?) {
            // Somebody else was faster.
            Err(ExchangeError::Exists { .. }) => self.broker.exchange(name).ok_or_else(not_found),
            made => made,
        };
        let exchange = made.map_err(|error| error.to_amqp())?;
        Ok(ExchangeAt { exchange, key, is_own: false })
    }

    /// Arranges the messages of a queue that is there and has none yet as a link asks for: whoever
    /// declares an address need not be the first to use it. What neither such a queue could be made
    /// with nor this one could have is an error; what is only otherwise leaves it as it is.
    pub(crate) fn arrange(
        &self,
        now: Now,
        wanted: &Wanted<'_>,
        wakeups: &mut Wakeups,
    ) -> Result<(), AmqpError> {
        let queue = wanted.address.filter(|_| !wanted.dynamic && wanted.properties.is_some());
        let Some(queue) = queue.and_then(|address| self.broker.queue(address)) else {
            return Ok(());
        };
        let described = wanted.settings_upon(self.usual_for(queue.name()))?;
        if let Err(error) = self.broker.verify(&described) {
            let changed = wanted.settings_upon(queue.settings())?;
            self.broker.verify(&changed).map_err(|_| error.to_amqp())?;
        }
        match queue.arrange(now, &wanted.settings()?) {
            Ok(woken) => wakeups.merge(woken),
            Err(error) => {
                tracing::debug!(queue = queue.name(), %error, "the queue stays what it is");
            }
        }
        Ok(())
    }

    /// What a queue is like that is made for a link, where its properties do not say.
    fn usual_for(&self, address: &str) -> QueueSettings {
        let usual = self.broker.settings_for(address);
        usual.map(|usual| QueueSettings::clone(usual)).unwrap_or_default()
    }

    /// Links to the queue that is asked for: the queue, whether it was made for this link alone, and
    /// what linking to it gave.
    pub(crate) fn link_to<T>(
        &self,
        wanted: &Wanted<'_>,
        link: impl Fn(&SharedQueue) -> Result<T, QueueError>,
    ) -> Result<(Arc<SharedQueue>, bool, T), AmqpError> {
        for _ in 0..MOST_TRIES {
            let (queue, is_own) = self.queue_for(wanted)?;
            match link(&queue) {
                Ok(linked) => return Ok((queue, is_own, linked)),
                // It went just then, because nobody used it: somebody does now.
                Err(QueueError::Deleted { .. }) => {}
                Err(error) => return Err(error.to_amqp()),
            }
        }
        let name = wanted.address.unwrap_or_default().to_owned();
        Err(QueueError::Deleted { name }.to_amqp())
    }

    /// The queue that a link asks for, and whether this link has made it.
    fn queue_for(&self, wanted: &Wanted<'_>) -> Result<(Arc<SharedQueue>, bool), AmqpError> {
        if wanted.dynamic {
            let mut settings = wanted.settings()?;
            settings.lifetime.get_or_insert(LifetimePolicy::DeleteOnClose);
            let queue = self.broker.create_dynamic(settings).map_err(|error| error.to_amqp())?;
            queue.set_creator(wanted.user);
            return Ok((queue, true));
        }
        let address = wanted
            .address
            .filter(|address| !address.is_empty())
            .ok_or_else(|| refusal::invalid("a terminus needs an address, or has to be dynamic"))?;
        if let Some(queue) = self.broker.queue(address) {
            return Ok((queue, false));
        }
        let describes = wanted.properties.is_some() && self.broker.settings_for(address).is_some();
        if wanted.has("create-on-demand") || describes {
            let settings = wanted.settings_upon(self.usual_for(address))?;
            return self.create(address, settings, wanted.user);
        }
        Ok((self.open(address, wanted.user)?, false))
    }

    /// The queue at an address, made for this user if a pattern says so.
    pub(crate) fn open(&self, address: &str, user: &str) -> Result<Arc<SharedQueue>, AmqpError> {
        let opened = self.broker.open_for(address, Some(user));
        opened.map_err(|error| match error {
            // What is not there sounds the same as what this peer may not know about.
            QueueError::InvalidName { .. } if address.starts_with('$') => {
                QueueError::NotFound { name: address.to_owned() }.to_amqp()
            }
            error => error.to_amqp(),
        })
    }

    fn create(
        &self,
        address: &str,
        settings: QueueSettings,
        user: &str,
    ) -> Result<(Arc<SharedQueue>, bool), AmqpError> {
        match self.broker.create(address, settings) {
            Ok(queue) => {
                queue.set_creator(user);
                Ok((queue, true))
            }
            // Somebody else was faster.
            Err(QueueError::Exists { .. }) => {
                let opened = self.broker.open_for(address, Some(user));
                opened.map(|queue| (queue, false)).map_err(|error| error.to_amqp())
            }
            Err(error) => Err(error.to_amqp()),
        }
    }
}

/// A queue that is deleted so often while somebody attaches to it is not worth another try.
pub(crate) const MOST_TRIES: usize = 8;
/// A property of nodes that says nothing about settings (part 3, 3.5.9).
const DIST_MODES: &str = "supported-dist-modes";
