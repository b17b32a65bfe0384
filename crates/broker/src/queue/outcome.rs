//! What a consumer says about the messages that it was given.

use mochila_wire::{DeliveryState, Map};

/// The outcome of a delivery (part 3, section 3.4).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Outcome {
    /// It has been dealt with.
    Accept,
    /// It is invalid and cannot be dealt with by anybody.
    Reject,
    /// It has not been and will not be dealt with; somebody else may.
    #[default]
    Release,
    /// It has not been dealt with, and something about it has changed.
    Modify {
        /// The delivery counts as one in vain.
        failed: bool,
        /// This consumer must not get it again.
        undeliverable_here: bool,
        /// To be added to the message's annotations.
        annotations: Option<Box<Map>>,
    },
}

impl Outcome {
    /// The outcome in a delivery state; `None` if it is not terminal (part 3, section 3.4).
    pub fn of(state: &DeliveryState) -> Option<Outcome> {
        match state {
            DeliveryState::Accepted => Some(Outcome::Accept),
            DeliveryState::Rejected { .. } => Some(Outcome::Reject),
            DeliveryState::Released => Some(Outcome::Release),
            DeliveryState::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations,
            } => Some(Outcome::Modify {
                failed: *delivery_failed,
                undeliverable_here: *undeliverable_here,
                annotations: message_annotations.clone().map(Box::new),
            }),
            _ => None,
        }
    }
}

/// The outcome of one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// Where the message stands in its queue: [`Delivery::position`].
    ///
    /// [`Delivery::position`]: crate::Delivery
    pub position: u64,
    /// What became of it.
    pub outcome: Outcome,
}
