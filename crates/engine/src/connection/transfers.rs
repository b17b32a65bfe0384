use std::ops::Range;

use mochila_wire::performative::{Transfer, TransferState};
use mochila_wire::{SequenceNo, condition};

use super::Connection;
use super::attachments::unattached;
use crate::event::Places;
use crate::fault::{Fault, Verdict, brief};
use crate::link::{End, Link, Partial, Receiver, Right};
use crate::session::IncomingDeliveries;
use crate::{Event, LinkId, SessionId, TransferEvent};

impl Connection {
    /// Handles one transfer frame (part 2, 2.7.5): the hot path of everything that receives.
    #[inline]
    pub(super) fn handle_transfer(
        &mut self,
        channel: u16,
        transfer: Transfer<'_>,
        payload: Range<usize>,
        places: Places,
    ) -> Verdict {
        let session_id = self.expect_session(channel, "transfer")?;
        let Some(session) = self.sessions.get_mut(session_id.0) else { return Ok(()) };
        if !session.state.is_usable() {
            return Ok(());
        }
        if !session.incoming.take() {
            return Err(Fault::session(
                session_id,
                condition::WINDOW_VIOLATION,
                format!(
                    "transfer {} exceeds the incoming window of {}",
                    session.incoming.next_id(),
                    session.incoming.size()
                ),
            ));
        }
        if session.incoming.is_low() && !session.is_listed {
            session.is_listed = true;
            session.flow_due = true;
            self.due_sessions.push(session_id);
        }
        let Some(link_id) = session.remote_handles.get(transfer.handle) else {
            return Err(unattached(session_id, transfer.handle, "transfer"));
        };
        let Some(link) = self.links.get_mut(link_id.0) else { return Ok(()) };
        let Link { end, state, name, max_message_size, .. } = link;
        let End::Receiver(receiver) = end else {
            return Err(Fault::link(
                link_id,
                condition::NOT_ALLOWED,
                format!("a transfer arrived on link '{}', on which we send", brief(name)),
            ));
        };
        let at = session.incoming.last();
        let arrival = Arrival { session_id, link_id, name, transfer: &transfer, at };
        if !state.may_flow() {
            // We have detached; what is under way is counted and dropped.
            return arrival.pass(&mut session.deliveries);
        }
        let (mut partial, start) = match receiver.partial {
            Some(partial) => (arrival.continue_delivery(partial, &mut session.deliveries)?, false),
            None => (arrival.start_delivery(receiver, &mut session.deliveries)?, true),
        };
        partial.settled |= transfer.settled.unwrap_or(false);
        partial.bytes += payload.len() as u64;
        let more = transfer.more && !transfer.aborted;
        receiver.partial = if more { Some(partial) } else { None };
        if *max_message_size > 0 && partial.bytes > *max_message_size && !transfer.aborted {
            return Err(arrival.too_large(*max_message_size));
        }
        self.events.push_back(Event::Transfer(TransferEvent {
            link: link_id,
            session: session_id,
            delivery_id: partial.delivery_id,
            message_format: partial.message_format,
            payload_start: payload.start as u32,
            payload_end: payload.end as u32,
            places,
            start,
            more,
            aborted: transfer.aborted,
            settled: partial.settled,
            resume: partial.resume,
            without_credit: partial.without_credit,
            rcv_settle_mode: transfer.rcv_settle_mode,
            state: match transfer.state {
                Some(TransferState::Other(state)) => Some(state),
                Some(TransferState::InTransaction(_)) | None => None,
            },
        }));
        Ok(())
    }
}

/// A transfer frame and where it belongs.
struct Arrival<'a, 't> {
    session_id: SessionId,
    link_id: LinkId,
    name: &'a str,
    transfer: &'a Transfer<'t>,
    /// Which frame of the session it is.
    at: SequenceNo,
}

impl Arrival<'_, '_> {
    /// Begins the delivery that the frame is the first of.
    #[inline]
    fn start_delivery(
        &self,
        receiver: &mut Receiver,
        deliveries: &mut IncomingDeliveries,
    ) -> Result<Partial, Box<Fault>> {
        let Some(delivery_id) = self.transfer.delivery_id else {
            return Err(self.invalid("a delivery began without a delivery-id"));
        };
        self.start_id(deliveries, delivery_id)?;
        if self.transfer.delivery_tag.is_some_and(|tag| tag.len() > MAX_TAG_BYTES) {
            return Err(self.invalid("a delivery-tag is longer than 32 bytes"));
        }
        let Some(right) = receiver.credit.take(self.at) else {
            return Err(self.without_credit(receiver.credit.delivery_count.0));
        };
        Ok(Partial {
            delivery_id,
            message_format: self.transfer.message_format.unwrap_or(0),
            settled: false,
            resume: self.transfer.resume,
            without_credit: right == Right::Lapsed,
            bytes: 0,
        })
    }

    /// Goes on with the delivery that the link is in the middle of; the frame need not repeat its
    /// id, but may.
    #[inline]
    fn continue_delivery(
        &self,
        partial: Partial,
        deliveries: &mut IncomingDeliveries,
    ) -> Result<Partial, Box<Fault>> {
        match self.transfer.delivery_id {
            Some(id) if id != partial.delivery_id => Err(self.invalid(&format!(
                "delivery {id} began before delivery {} was complete",
                partial.delivery_id
            ))),
            _ => {
                deliveries.pass();
                Ok(partial)
            }
        }
    }

    /// Counts a frame of a link that is being detached.
    fn pass(&self, deliveries: &mut IncomingDeliveries) -> Verdict {
        match self.transfer.delivery_id {
            Some(id) if !deliveries.is_last(id) => self.start_id(deliveries, id),
            _ => {
                deliveries.pass();
                Ok(())
            }
        }
    }

    #[inline]
    fn start_id(&self, deliveries: &mut IncomingDeliveries, id: u32) -> Verdict {
        deliveries.start(id).map_err(|expected| {
            Fault::session(
                self.session_id,
                condition::INVALID_FIELD,
                format!(
                    "delivery-id {id} on link '{}' is out of sequence: {expected} was expected",
                    brief(self.name)
                ),
            )
        })
    }

    #[cold]
    fn invalid(&self, what: &str) -> Box<Fault> {
        let text = format!("{what} on link '{}'", brief(self.name));
        Fault::link(self.link_id, condition::INVALID_FIELD, text)
    }

    #[cold]
    fn without_credit(&self, delivery_count: u32) -> Box<Fault> {
        Fault::link(
            self.link_id,
            condition::TRANSFER_LIMIT_EXCEEDED,
            format!(
                "a message arrived on link '{}' without credit, at delivery-count {delivery_count}",
                brief(self.name)
            ),
        )
    }

    #[cold]
    fn too_large(&self, max_message_size: u64) -> Box<Fault> {
        Fault::link(
            self.link_id,
            condition::MESSAGE_SIZE_EXCEEDED,
            format!(
                "a message on link '{}' is larger than the {max_message_size} bytes allowed",
                brief(self.name)
            ),
        )
    }
}

/// The longest delivery tag (part 2, 2.8.7).
const MAX_TAG_BYTES: usize = 32;
