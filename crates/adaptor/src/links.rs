use std::sync::Arc;

use mochila_broker::exchange::ScopedBinding;
use mochila_broker::{Exchange, ExchangeError, QueueError, SharedQueue};
use mochila_engine::{LinkId, SessionId};
use mochila_management::LinkRecord;
use mochila_wire::AmqpError;

use crate::incoming::{Destination, Incoming};
use crate::outgoing::Outgoing;
use crate::subscription::Subscription;

/// The links of a connection, each with what is at our end of it.
#[derive(Default)]
pub(crate) struct Links {
    slots: Vec<Option<Slot>>,
}

/// One link and our end of it.
pub(crate) struct Slot {
    pub(crate) id: LinkId,
    pub(crate) session: SessionId,
    pub(crate) end: End,
    /// What is bound as long as the link is there.
    pub(crate) bindings: Vec<ScopedBinding>,
    pub(crate) record: Arc<LinkRecord>,
}

/// Which end of a link we are.
pub(crate) enum End {
    /// The peer sends, we receive.
    Incoming(Incoming),
    /// We send, the peer receives.
    Outgoing(Outgoing),
}

impl End {
    /// The queue at our end, if there is one.
    pub(crate) fn queue(&self) -> Option<&Arc<SharedQueue>> {
        match self {
            End::Incoming(incoming) => match &incoming.destination {
                Destination::Queue { queue, .. } => Some(queue),
                Destination::Exchange(_)
                | Destination::Anonymous(_)
                | Destination::Management
                | Destination::Coordinator { .. } => None,
            },
            End::Outgoing(outgoing) => Some(&outgoing.queue),
        }
    }

    /// The exchange at our end, if there is one: that messages are published to, or that its queue
    /// subscribes to.
    pub(crate) fn exchange(&self) -> Option<&Arc<Exchange>> {
        match self {
            End::Incoming(incoming) => match &incoming.destination {
                Destination::Exchange(publisher) => Some(publisher.exchange()),
                Destination::Queue { .. }
                | Destination::Anonymous(_)
                | Destination::Management
                | Destination::Coordinator { .. } => None,
            },
            End::Outgoing(outgoing) => {
                outgoing.subscription.as_ref().and_then(Subscription::exchange)
            }
        }
    }

    /// Why the link cannot go on, if the node at our end is gone.
    pub(crate) fn gone(&self) -> Option<AmqpError> {
        let exchange = self.exchange().filter(|exchange| exchange.is_deleted());
        if let Some(exchange) = exchange {
            return Some(ExchangeError::Deleted { name: exchange.name().to_owned() }.to_amqp());
        }
        let queue = self.queue().filter(|queue| queue.is_deleted())?;
        Some(QueueError::Deleted { name: queue.name().to_owned() }.to_amqp())
    }
}

impl Links {
    pub(crate) fn insert(&mut self, slot: Slot) {
        let index = slot.id.index();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(slot);
    }

    pub(crate) fn get(&self, id: LinkId) -> Option<&Slot> {
        self.slots.get(id.index())?.as_ref().filter(|slot| slot.id == id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: LinkId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index())?.as_mut().filter(|slot| slot.id == id)
    }

    /// The link whose queue or producer woke us under this key; it may be a newer one.
    pub(crate) fn by_key(&self, key: u32) -> Option<&Slot> {
        self.slots.get(key as usize)?.as_ref()
    }

    pub(crate) fn remove(&mut self, id: LinkId) -> Option<Slot> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.as_ref()?.id == id { slot.take() } else { None }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten()
    }

    /// All links, for the end of the connection.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Slot> + use<> {
        std::mem::take(&mut self.slots).into_iter().flatten()
    }

    #[inline]
    pub(crate) fn incoming(&mut self, id: LinkId) -> Option<&mut Incoming> {
        match &mut self.get_mut(id)?.end {
            End::Incoming(incoming) => Some(incoming),
            End::Outgoing(_) => None,
        }
    }

    /// The same with what operators see of the link.
    pub(crate) fn incoming_recorded(
        &mut self,
        id: LinkId,
    ) -> Option<(&mut Incoming, &Arc<LinkRecord>)> {
        let slot = self.get_mut(id)?;
        match &mut slot.end {
            End::Incoming(incoming) => Some((incoming, &slot.record)),
            End::Outgoing(_) => None,
        }
    }

    #[inline]
    pub(crate) fn outgoing(&mut self, id: LinkId) -> Option<&mut Outgoing> {
        match &mut self.get_mut(id)?.end {
            End::Outgoing(outgoing) => Some(outgoing),
            End::Incoming(_) => None,
        }
    }
}
