use mochila_wire::performative::{Disposition, Flow, Role};
use mochila_wire::{AmqpError, DeliveryState, Encode, Map, condition, frame};

use super::state::State;
use super::{Connection, channel_of};
use crate::fault::Fault;
use crate::link::End;
use crate::{LinkId, SessionId};

impl Connection {
    /// The frames to send; take what is there. Flows and dispositions that have been put together
    /// since the last time are added first.
    ///
    /// Swap a buffer in around a visit (`std::mem::swap`), and an idle connection owns none.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.flush();
        if !self.output.is_empty() {
            self.timers.sent();
        }
        &mut self.output
    }

    /// Writes what was held back to be put together.
    pub(super) fn flush(&mut self) {
        self.write_open_if_due();
        if self.due_sessions.is_empty() && self.due_links.is_empty() {
            return;
        }
        let mut sessions = std::mem::take(&mut self.due_sessions);
        let mut links = std::mem::take(&mut self.due_links);
        if self.state == State::Open {
            for session in &sessions {
                self.write_outcomes(*session);
            }
            for link in &links {
                self.write_link_flow(*link, None);
            }
            for session in &sessions {
                self.write_session_flow(*session);
            }
        }
        sessions.clear();
        links.clear();
        self.due_sessions = sessions;
        self.due_links = links;
    }

    /// Puts a session on the list of those that have something to write.
    #[inline]
    pub(super) fn list_session(&mut self, session: SessionId) {
        if let Some(entry) = self.sessions.get_mut(session.0)
            && !entry.is_listed
        {
            entry.is_listed = true;
            self.due_sessions.push(session);
        }
    }

    /// Puts a link on the list of those whose flow has to be written.
    pub(super) fn list_link(&mut self, link: LinkId) {
        if let Some(entry) = self.links.get_mut(link.0)
            && !entry.flow_due
        {
            entry.flow_due = true;
            self.due_links.push(link);
        }
    }

    /// Writes one frame; one that the peer has no room for closes the connection. Nothing follows
    /// a close.
    pub(super) fn write(&mut self, channel: u16, performative: &impl Encode) {
        if !matches!(self.state, State::Opening | State::Open) {
            return;
        }
        self.write_open_if_due();
        let start = self.output.len();
        frame::write(&mut self.output, channel, performative);
        let size = self.output.len() - start;
        if size > self.frame_limit {
            self.output.truncate(start);
            self.fail(Fault::Connection(AmqpError::new(
                condition::FRAME_SIZE_TOO_SMALL,
                format!(
                    "a frame of {size} bytes does not fit the peer's max-frame-size of {}",
                    self.frame_limit
                ),
            )));
        }
    }

    pub(super) fn write_heartbeat(&mut self) {
        // What waits to be sent is a sign of life too, and must not pile up behind a slow socket.
        if self.output.is_empty() {
            frame::write_empty(&mut self.output);
        }
        self.timers.sent();
    }

    /// Cuts an error so that its frame fits every peer's smallest frame.
    pub(super) fn fitting(&self, mut error: AmqpError) -> AmqpError {
        if error.to_bytes().len() + ERROR_FRAME_BYTES > self.frame_limit {
            error.info = None;
        }
        if error.to_bytes().len() + ERROR_FRAME_BYTES > self.frame_limit
            && let Some(description) = &mut error.description
        {
            let end = (0..=SHORT_DESCRIPTION.min(description.len()))
                .rev()
                .find(|end| description.is_char_boundary(*end));
            description.truncate(end.unwrap_or(0));
        }
        error
    }

    fn write_outcomes(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(session.0) else { return };
        if entry.outcomes.is_empty() {
            return;
        }
        let is_usable = entry.state.is_usable();
        let mut outcomes = std::mem::take(&mut entry.outcomes);
        for run in outcomes.take().filter(|_| is_usable) {
            let disposition = Disposition {
                role: Role::Receiver,
                first: run.first,
                last: (run.last != run.first).then_some(run.last),
                settled: run.settled,
                state: Some(self.fitting_state(run.state)),
                batchable: false,
            };
            frame::write(&mut self.output, channel_of(session), &disposition);
        }
        if let Some(entry) = self.sessions.get_mut(session.0) {
            entry.outcomes = outcomes;
        }
    }

    /// Cuts what an outcome says besides, if its frame would not fit the peer's largest frame.
    fn fitting_state(&self, state: DeliveryState) -> DeliveryState {
        match state {
            DeliveryState::Rejected { error: Some(error) } => {
                DeliveryState::Rejected { error: Some(Box::new(self.fitting(*error))) }
            }
            DeliveryState::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations: Some(annotations),
            } => {
                let fits = annotations.to_bytes().len() + ERROR_FRAME_BYTES <= self.frame_limit;
                let message_annotations = fits.then_some(annotations);
                DeliveryState::Modified { delivery_failed, undeliverable_here, message_annotations }
            }
            other => other,
        }
    }

    pub(super) fn write_link_flow(&mut self, link: LinkId, properties: Option<Map>) {
        let Some(entry) = self.links.get_mut(link.0) else { return };
        // A link that is not answered yet keeps its flow until it is.
        if !entry.flow_due || !entry.state.is_announced() {
            return;
        }
        let fit = |map: &Map| map.to_bytes().len() + FLOW_FRAME_BYTES <= self.frame_limit;
        let properties = properties.filter(fit);
        entry.flow_due = false;
        let echo = std::mem::take(&mut entry.echo_due);
        let session = entry.session;
        let handle = Some(entry.local_handle);
        if let End::Receiver(receiver) = &mut entry.end
            && let Some(session) = self.sessions.get(session.0)
        {
            receiver.credit.told(session.incoming.edge());
        }
        let link = match &entry.end {
            End::Sender(sender) => Flow {
                properties,
                handle,
                delivery_count: Some(sender.credit.delivery_count.0),
                link_credit: Some(sender.credit.credit),
                available: Some(sender.credit.available),
                drain: sender.credit.drain,
                echo,
                ..Flow::default()
            },
            End::Receiver(receiver) => Flow {
                properties,
                handle,
                delivery_count: receiver.credit.counted.then_some(receiver.credit.delivery_count.0),
                link_credit: Some(receiver.credit.credit),
                drain: receiver.credit.drain,
                echo,
                ..Flow::default()
            },
        };
        self.write_flow(session, link);
    }

    fn write_session_flow(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get_mut(session.0) else { return };
        entry.is_listed = false;
        if entry.flow_due && entry.state.is_usable() {
            self.write_flow(session, Flow::default());
        }
    }

    /// Writes a flow for a link or none, together with the state of the session's windows.
    fn write_flow(&mut self, session: SessionId, link: Flow) {
        let Some(entry) = self.sessions.get_mut(session.0) else { return };
        entry.flow_due = false;
        let next_incoming_id = entry.remote_channel.map(|_| entry.incoming.next_id());
        let flow = Flow {
            next_incoming_id,
            incoming_window: entry.incoming.renew(),
            next_outgoing_id: entry.outgoing.next_id(),
            outgoing_window: self.config.outgoing_window,
            ..link
        };
        frame::write(&mut self.output, channel_of(session), &flow);
    }
}

/// What surrounds an error in a detach, end or close frame.
const ERROR_FRAME_BYTES: usize = 40;
/// A description that fits in any case.
const SHORT_DESCRIPTION: usize = 200;
/// What surrounds the properties in a flow.
const FLOW_FRAME_BYTES: usize = 80;
