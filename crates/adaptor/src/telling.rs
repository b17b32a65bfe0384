//! What operators are told about connections and their links, and the link over which they hear it.

use std::sync::Arc;

use mochila_broker::settings::LimitPolicy;
use mochila_broker::{Event, EventKind, QueueSettings, SharedQueue};
use mochila_wire::AmqpError;
use mochila_wire::terminus::LifetimePolicy;

use crate::connection::Connection;
use crate::links::{End, Slot};

impl Connection {
    /// A queue to which every event goes from now on. Whoever does not keep up misses the oldest
    /// ones; the numbers of the events say so.
    pub(crate) fn event_queue(&self) -> Result<Arc<SharedQueue>, AmqpError> {
        let settings = QueueSettings {
            lifetime: Some(LifetimePolicy::DeleteOnClose),
            max_count: Some(MOST_EVENTS),
            limit_policy: LimitPolicy::Ring,
            ..QueueSettings::default()
        };
        let queue = self.node.broker.create_private(settings).map_err(|error| error.to_amqp())?;
        self.node.broker.feed().listen(&queue);
        Ok(queue)
    }

    /// The connection has been opened, or has ended.
    pub(crate) fn tell_of_connection(&self, kind: EventKind) {
        let Some(peer) = self.record.opened.get() else { return };
        let event = Event::new(kind)
            .with("address", self.record.peer_address.as_str())
            .with("user", peer.user.as_str())
            .with("container", peer.container.as_str())
            .with("process", peer.process.as_str());
        self.node.broker.feed().raise(event);
    }

    /// A link takes messages from a queue, or does not any more.
    pub(crate) fn tell_of_link(&self, kind: EventKind, slot: &Slot) {
        let End::Outgoing(outgoing) = &slot.end else { return };
        if outgoing.queue.is_private() {
            return;
        }
        let user = self.record.opened.get().map_or("", |peer| peer.user.as_str());
        let event = Event::new(kind)
            .with("queue", outgoing.queue.name())
            .with("link", slot.record.name.as_str())
            .with("address", self.record.peer_address.as_str())
            .with("user", user)
            .with("browsing", slot.record.browsing)
            .with("exclusive", slot.record.exclusive);
        self.node.broker.feed().raise(event);
    }
}

/// So many events wait for whoever listens.
const MOST_EVENTS: u64 = 10_000;
