use mochila_wire::performative::{Disposition, Role};
use mochila_wire::{DeliveryState, SequenceNo, condition, frame};

use super::state::State;
use super::{Connection, channel_of};
use crate::fault::{Fault, Verdict};
use crate::link::End;
use crate::session::outcomes::Run;
use crate::{Event, LinkId, SessionId};

impl Connection {
    /// Visits those of the deliveries `first..=last` that we sent and that are not settled, in
    /// order, as (link, token, delivery id); with `remove` they are settled and forgotten.
    pub fn resolve_outgoing(
        &mut self,
        session: SessionId,
        first: u32,
        last: u32,
        remove: bool,
        f: &mut impl FnMut(LinkId, u64, u32),
    ) {
        let Some(entry) = self.sessions.get_mut(session.0) else { return };
        let links = &mut self.links;
        entry.unsettled.visit(first, last, remove, &mut |delivery, id| {
            if remove
                && let Some(link) = links.get_mut(delivery.link.0)
                && let End::Sender(sender) = &mut link.end
            {
                sender.unsettled -= 1;
            }
            f(delivery.link, delivery.token, id);
        });
    }

    /// Settles deliveries that we sent, on our own initiative or in answer to a receiver that
    /// waits for it (rcv-settle-mode second), and tells the receiver.
    pub fn settle_outgoing(
        &mut self,
        session: SessionId,
        first: u32,
        last: u32,
        state: Option<DeliveryState>,
    ) {
        if !self.is_usable(session) {
            return;
        }
        self.resolve_outgoing(session, first, last, true, &mut |_, _, _| {});
        let disposition = Disposition {
            role: Role::Sender,
            first,
            last: (last != first).then_some(last),
            settled: true,
            state,
            batchable: false,
        };
        self.write_open_if_due();
        frame::write(&mut self.output, channel_of(session), &disposition);
    }

    /// Tells the outcome of deliveries `first..=last` to us. Neighbours with the same outcome
    /// share a frame, written with the next output.
    #[inline]
    pub fn settle_incoming(
        &mut self,
        session: SessionId,
        first: u32,
        last: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        let Some(entry) = self.sessions.get_mut(session.0) else { return };
        if !entry.state.is_usable() {
            return;
        }
        entry.outcomes.add(Run { first, last, settled, state });
        let is_full = entry.outcomes.is_full();
        if !entry.is_listed {
            entry.is_listed = true;
            self.due_sessions.push(session);
        }
        if is_full && self.state == State::Open {
            self.flush();
        }
    }

    #[inline]
    pub(super) fn handle_disposition(&mut self, channel: u16, disposition: Disposition) -> Verdict {
        let session = self.expect_session(channel, "disposition")?;
        let Some(entry) = self.sessions.get(session.0) else { return Ok(()) };
        if !entry.state.is_usable() {
            return Ok(());
        }
        let (first, last, settled) = (disposition.first, disposition.last(), disposition.settled);
        if SequenceNo(first).is_after(SequenceNo(last)) {
            return Err(Fault::session(
                session,
                condition::INVALID_FIELD,
                format!("a disposition goes from delivery {first} back to {last}"),
            ));
        }
        match disposition.role {
            Role::Receiver => {
                if let Some((first, last)) = entry.unsettled.clamp(first, last) {
                    let state = disposition.state;
                    let event = Event::Disposition { session, first, last, settled, state };
                    self.events.push_back(event);
                }
            }
            Role::Sender => {
                if settled && let Some((first, last)) = entry.deliveries.clamp(first, last) {
                    self.events.push_back(Event::IncomingSettled { session, first, last });
                }
            }
        }
        Ok(())
    }
}
