use std::sync::Arc;

use mochila_wire::{AmqpError, DecodeError, DeliveryState, Map, Message};

use crate::command::{Command, DeliveryRef};
use crate::error::Error;
use crate::link::Link;
use crate::lost_groups::Pending;

/// What comes over a link on which we receive, as the connection's task hands it over.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Arrival),
    LostGroups(Pending),
}

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) reference: DeliveryRef,
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    pub(crate) tag: Vec<u8>,
}

/// A message that has arrived and waits to be settled.
///
/// A delivery that is dropped stays unsettled: the broker gives the message to somebody else when
/// the link ends.
#[derive(Debug)]
pub struct Delivery {
    link: Arc<Link>,
    arrival: Arrival,
}

/// What a message that could not be processed is to be marked with (part 3, section 3.4.5).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modification {
    /// The attempt counts as a failed one.
    pub delivery_failed: bool,
    /// The message is not to come here again.
    pub undeliverable_here: bool,
    /// Annotations to add to the message's.
    pub message_annotations: Option<Map>,
}

impl Delivery {
    pub(crate) fn new(link: Arc<Link>, arrival: Arrival) -> Self {
        Self { link, arrival }
    }

    /// The message, decoded.
    pub fn message(&self) -> Result<Message, DecodeError> {
        Message::decode(&self.arrival.bytes)
    }

    /// The message as it was encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.arrival.bytes
    }

    /// The message format; 0 is the format of AMQP 1.0 (part 2, section 2.8.11).
    pub fn message_format(&self) -> u32 {
        self.arrival.format
    }

    /// The sender's name for this delivery.
    pub fn tag(&self) -> &[u8] {
        &self.arrival.tag
    }

    /// Whether the sender has settled it already, so that no outcome is wanted.
    pub fn is_settled(&self) -> bool {
        self.arrival.settled
    }

    /// Tells the sender that the message was processed (section 3.4.2).
    pub fn accept(self) -> Result<(), Error> {
        self.settle(DeliveryState::Accepted)
    }

    /// Tells the sender that the message is invalid (section 3.4.3).
    pub fn reject(self, error: Option<AmqpError>) -> Result<(), Error> {
        self.settle(DeliveryState::Rejected { error: error.map(Box::new) })
    }

    /// Gives the message back as if it had never been here (section 3.4.4).
    pub fn release(self) -> Result<(), Error> {
        self.settle(DeliveryState::Released)
    }

    /// Gives the message back changed (section 3.4.5).
    pub fn modify(self, modification: Modification) -> Result<(), Error> {
        let Modification { delivery_failed, undeliverable_here, message_annotations } =
            modification;
        self.settle(DeliveryState::Modified {
            delivery_failed,
            undeliverable_here,
            message_annotations,
        })
    }

    /// Settles with any state, such as one of a transaction (part 4).
    pub fn settle(self, state: DeliveryState) -> Result<(), Error> {
        if self.arrival.settled {
            return Ok(());
        }
        let delivery = self.arrival.reference;
        if delivery.epoch != self.link.shared().epoch() {
            return Err(Error::Stale);
        }
        self.link.shared().command(Command::Settle { link: self.link.key(), delivery, state })
    }

    /// The encoded message, taken out of an unsettled delivery that somebody else settles.
    pub fn into_bytes(self) -> Vec<u8> {
        self.arrival.bytes
    }
}
