//! A link of a client, attached or not.

use mochila_engine::{AttachRequest, LinkId, SessionId};

use super::controller::Controller;
use super::manager::{Asker, Listener};
use super::receiver::Receiver;
use super::sender::Sender;

/// What a link does, and where it stands.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) actor: Actor,
    pub(super) place: Place,
    /// The session it is in; several links may share one.
    pub(super) session: usize,
    /// It had an error, or has nothing to do any more: it is not attached again.
    pub(super) is_over: bool,
}

/// What a link does.
#[derive(Debug)]
pub(super) enum Actor {
    Sender(Sender),
    Receiver(Receiver),
    Asker(Asker),
    Listener(Listener),
    Controller(Controller),
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It may be attached from this time on.
    Apart { from_ms: u64 },
    /// We have asked for it, or have it.
    Attached { id: LinkId, session: SessionId },
    /// We have detached it; the answer is on its way.
    Leaving { id: LinkId },
}

impl Link {
    pub(super) fn id(&self) -> Option<LinkId> {
        match self.place {
            Place::Apart { .. } => None,
            Place::Attached { id, .. } | Place::Leaving { id } => Some(id),
        }
    }

    pub(super) fn request(&self, initial_delivery_count: u32) -> AttachRequest {
        match &self.actor {
            Actor::Sender(sender) => sender.request(&self.name, initial_delivery_count),
            Actor::Receiver(receiver) => receiver.request(&self.name),
            Actor::Asker(asker) => asker.request(&self.name),
            Actor::Listener(listener) => listener.request(&self.name),
            Actor::Controller(controller) => controller.request(&self.name),
        }
    }

    pub(super) fn stop(&mut self) {
        match &mut self.actor {
            Actor::Sender(sender) => sender.stop(),
            Actor::Receiver(receiver) => receiver.stop(),
            Actor::Asker(asker) => asker.stop(),
            Actor::Listener(_) => {}
            Actor::Controller(controller) => controller.stop(),
        }
    }
}
