//! Messages on their way in, and the outcomes of those that went out.

use mochila_engine::{AttachRequest, LinkId, SessionId, TransferEvent};
use mochila_wire::DeliveryState;
use tokio::sync::mpsc;

use super::{Core, LinkEnd, answer};
use crate::command::{DeliveryRef, LinkKey, Reply};
use crate::delivery::{Arrival, Incoming};
use crate::error::Error;
use crate::link_options::CreditMode;
use crate::lost_groups::{LostGroups, Pending};

/// The receiving end of a link.
#[derive(Debug)]
pub(super) struct ReceiverEnd {
    arrivals: mpsc::UnboundedSender<Result<Incoming, Error>>,
    credit: CreditMode,
    wants_lost_groups: bool,
    /// Lost groups that no message has followed.
    lost: Option<Pending>,
    /// The delivery of which the last frame is still to come.
    partial: Option<Arrival>,
    /// Deliveries that were put into the handle's buffer, ever.
    arrived: u64,
    /// Of those, how many the application has taken out.
    taken: u64,
    /// Credit that the application gave and that has not reached the engine yet.
    ungranted: u32,
    draining: Vec<Reply<()>>,
}

/// One transfer frame with its bytes.
pub(super) struct Part<'a> {
    pub(super) epoch: u32,
    pub(super) payload: &'a [u8],
    pub(super) tag: &'a [u8],
    pub(super) transfer: &'a TransferEvent,
}

/// What the receiver of our deliveries said about a range of them.
pub(super) struct Resolution {
    pub(super) session: SessionId,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) settled: bool,
    pub(super) state: Option<DeliveryState>,
}

impl ReceiverEnd {
    pub(super) fn new(
        arrivals: mpsc::UnboundedSender<Result<Incoming, Error>>,
        credit: CreditMode,
        request: &AttachRequest,
    ) -> Self {
        Self {
            arrivals,
            credit,
            wants_lost_groups: request.desired_capabilities.contains(&LostGroups::CAPABILITY),
            lost: None,
            partial: None,
            arrived: 0,
            taken: 0,
            ungranted: 0,
            draining: Vec::new(),
        }
    }

    pub(super) fn arrived(&mut self, part: &Part<'_>) {
        let Part { epoch, payload, tag, transfer } = part;
        if transfer.start {
            self.partial = Some(Arrival {
                reference: DeliveryRef { id: transfer.delivery_id, epoch: *epoch },
                bytes: Vec::new(),
                format: transfer.message_format,
                settled: false,
                tag: tag.to_vec(),
            });
        }
        let Some(arrival) = &mut self.partial else { return };
        arrival.bytes.extend_from_slice(payload);
        arrival.settled |= transfer.settled;
        if transfer.aborted {
            self.partial = None;
        } else if !transfer.more
            && let Some(arrival) = self.partial.take()
        {
            self.arrived += 1;
            self.lost = None;
            // A handle that is gone detaches the link; until then its messages are not settled.
            let _ = self.arrivals.send(Ok(Incoming::Message(arrival)));
        }
    }

    /// Groups have gone to others.
    pub(super) fn lost(&mut self, lost: LostGroups) {
        if !self.wants_lost_groups {
            return;
        }
        let rest = match &self.lost {
            Some(pending) => pending.add(lost),
            None => Some(lost),
        };
        if let Some(lost) = rest {
            let pending = self.lost.insert(Pending::new(lost)).clone();
            let _ = self.arrivals.send(Ok(Incoming::LostGroups(pending)));
        }
    }

    pub(super) fn taken(&mut self, total: u64) {
        self.taken = self.taken.max(total);
    }

    pub(super) fn grant(&mut self, more: u32) {
        self.ungranted = self.ungranted.saturating_add(more);
    }

    /// A new connection: what was half received comes again, and `credit` that the sender had has
    /// to be given to its successor.
    pub(super) fn rewind(&mut self, credit: u32) {
        self.partial = None;
        let drains = std::mem::take(&mut self.draining);
        if drains.is_empty() {
            self.grant(credit);
        }
        for reply in drains {
            answer(Some(reply), Err(Error::Stale));
        }
    }

    pub(super) fn finish(self, error: &Error) {
        for reply in self.draining {
            answer(Some(reply), Err(error.clone()));
        }
        let _ = self.arrivals.send(Err(error.clone()));
    }
}

impl Core {
    /// Brings the credit of a receiving link to what it should be.
    pub(super) fn grant(&mut self, key: LinkKey) {
        let Some(record) = self.links.get_mut(&key) else { return };
        let (LinkEnd::Receiver(receiver), Some(id)) = (&mut record.end, record.id) else { return };
        let Some(link) = self.engine.link(id) else { return };
        if record.detaching.is_some() || !link.is_attached() || !receiver.draining.is_empty() {
            return;
        }
        let credit = match receiver.credit {
            CreditMode::Window(window) => {
                let waiting = u32::try_from(receiver.arrived - receiver.taken).unwrap_or(u32::MAX);
                window.saturating_sub(waiting)
            }
            CreditMode::Manual => {
                link.credit().saturating_add(std::mem::take(&mut receiver.ungranted))
            }
        };
        self.engine.grant(id, credit);
    }

    pub(super) fn drain(&mut self, key: LinkKey, reply: Reply<()>) {
        let Some(record) = self.links.get_mut(&key) else {
            answer(Some(reply), Err(Error::Link(None)));
            return;
        };
        let (LinkEnd::Receiver(receiver), Some(id)) = (&mut record.end, record.id) else {
            // Not attached now: there is nothing to be had.
            answer(Some(reply), Ok(()));
            return;
        };
        let credit = self.engine.link(id).map_or(0, |link| link.credit());
        if credit == 0 {
            answer(Some(reply), Ok(()));
            return;
        }
        receiver.draining.push(reply);
        self.engine.grant_drain(id, credit);
    }

    /// The sender told its state; a drain may have come to its end.
    pub(super) fn peer_flow(&mut self, id: LinkId) {
        let Some(key) = self.link_keys.get(&id).copied() else { return };
        let drained = self.engine.link(id).is_some_and(|link| !link.is_draining());
        let Some(receiver) = self.receiver(key) else { return };
        if drained {
            for reply in std::mem::take(&mut receiver.draining) {
                answer(Some(reply), Ok(()));
            }
        }
    }

    pub(super) fn resolve(&mut self, resolution: Resolution) {
        let Resolution { session, first, last, settled, state } = resolution;
        // Within a transaction, too.
        let is_outcome = state.as_ref().is_some_and(|state| state.outcome().is_some());
        if !settled && !is_outcome {
            return;
        }
        let (links, keys) = (&mut self.links, &self.link_keys);
        self.engine.resolve_outgoing(session, first, last, true, &mut |link, number, _| {
            let record = keys.get(&link).and_then(|key| links.get_mut(key));
            if let Some(LinkEnd::Sender(sender)) = record.map(|record| &mut record.end) {
                let outcome = state.clone().unwrap_or_else(|| sender.silent_outcome());
                sender.settle(number, outcome);
            }
        });
        if !settled {
            // The receiver is in mode second: it forgets when we have settled.
            self.engine.settle_outgoing(session, first, last, None);
        }
    }
}
