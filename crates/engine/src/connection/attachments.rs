use mochila_wire::performative::{Attach, Detach, Role};
use mochila_wire::{AmqpError, condition};

use super::{Connection, channel_of, side_index};
use crate::fault::{Fault, Verdict, brief};
use crate::link::state::{Input, State};
use crate::link::{AttachAnswer, AttachRequest, End, Link};
use crate::{Error, Event, LinkId, SessionId};

impl Connection {
    /// Asks for a link; [`Event::AttachConfirmed`] says when the peer has answered. A receiver may
    /// be granted credit before.
    pub fn attach(&mut self, session: SessionId, request: AttachRequest) -> Result<LinkId, Error> {
        if !self.is_usable(session) {
            return Err(Error::NoSuchSession);
        }
        if self.link_named(request.role, &request.name).is_some() {
            return Err(Error::LinkNameInUse { name: request.name });
        }
        let max_links = self.config.max_links;
        if self.links.len() >= max_links as usize {
            return Err(Error::TooManyLinks { max_links });
        }
        let link = self.add_requested(session, &request)?;
        let handle = self.links.get(link.0).map_or(0, |entry| entry.local_handle);
        let attach = Attach {
            name: request.name,
            handle,
            role: request.role,
            snd_settle_mode: request.snd_settle_mode,
            rcv_settle_mode: request.rcv_settle_mode,
            source: request.source,
            target: request.target,
            unsettled: request.unsettled,
            incomplete_unsettled: request.incomplete_unsettled,
            initial_delivery_count: (request.role == Role::Sender)
                .then_some(request.initial_delivery_count),
            max_message_size: (request.max_message_size > 0).then_some(request.max_message_size),
            offered_capabilities: request.offered_capabilities,
            desired_capabilities: request.desired_capabilities,
            properties: request.properties,
        };
        self.write(channel_of(session), &attach);
        Ok(link)
    }

    /// Grants a link that the peer asked for ([`Event::Attached`]).
    pub fn answer_attach(&mut self, link: LinkId, answer: AttachAnswer) {
        let Some(entry) = self.links.get_mut(link.0) else { return };
        let state = entry.state;
        if !matches!(state, State::Asked | State::Leaving { .. }) {
            return;
        }
        entry.snd_settle_mode = answer.snd_settle_mode;
        entry.rcv_settle_mode = answer.rcv_settle_mode;
        entry.max_message_size = answer.max_message_size;
        entry.source = answer.source.clone().map(Box::new);
        entry.target = answer.target.clone().map(Box::new);
        if let End::Sender(sender) = &mut entry.end {
            sender.credit.start(answer.initial_delivery_count);
        }
        let role = entry.role();
        let is_flow_due = std::mem::take(&mut entry.flow_due);
        let attach = Attach {
            name: entry.name.to_string(),
            handle: entry.local_handle,
            role,
            snd_settle_mode: answer.snd_settle_mode,
            rcv_settle_mode: answer.rcv_settle_mode,
            source: answer.source,
            target: answer.target,
            unsettled: answer.unsettled,
            incomplete_unsettled: answer.incomplete_unsettled,
            initial_delivery_count: (role == Role::Sender).then_some(answer.initial_delivery_count),
            max_message_size: (answer.max_message_size > 0).then_some(answer.max_message_size),
            offered_capabilities: answer.offered_capabilities,
            desired_capabilities: answer.desired_capabilities,
            properties: answer.properties,
        };
        let channel = channel_of(entry.session);
        self.write(channel, &attach);
        self.step_link(link, Input::Answer);
        if let State::Leaving { closed } = state {
            self.write_detach(link, closed, None);
            self.finish_link(link);
        } else if is_flow_due {
            self.list_link(link);
        }
    }

    /// Refuses a link that the peer asked for ([`Event::Attached`]): attach without our terminus,
    /// then detach with the error (part 2, 2.6.3). No event follows.
    pub fn refuse_attach(&mut self, link: LinkId, error: AmqpError) {
        match self.links.get(link.0).map(|entry| entry.state) {
            Some(State::Asked) => {
                self.write_refusal(link);
                self.send_detach(link, true, Some(error), false);
            }
            Some(State::Leaving { .. }) => {
                self.write_refusal(link);
                self.write_detach(link, true, Some(error));
                self.finish_link(link);
            }
            _ => {}
        }
    }

    /// Detaches a link, for good if `closed`; [`Event::Detached`] says when the peer has answered.
    pub fn detach(&mut self, link: LinkId, closed: bool, error: Option<AmqpError>) {
        match self.links.get(link.0).map(|entry| entry.state) {
            Some(State::Asked) => {
                self.write_refusal(link);
                self.send_detach(link, closed, error, true);
            }
            Some(State::Asking | State::Attached) => self.send_detach(link, closed, error, true),
            _ => {}
        }
    }

    /// Visits the deliveries that we sent on a link and that are not settled, as (token, delivery
    /// id): what an application keeps of a link that is to be attached again.
    pub fn unsettled(&self, link: LinkId) -> impl Iterator<Item = (u64, u32)> {
        let session = self.links.get(link.0).and_then(|entry| self.sessions.get(entry.session.0));
        session.into_iter().flat_map(move |session| session.unsettled.of_link(link))
    }

    pub(super) fn handle_attach(&mut self, channel: u16, peer: Box<Attach>) -> Verdict {
        let session = self.expect_session(channel, "attach")?;
        if !self.is_usable(session) {
            return Ok(());
        }
        if peer.handle > self.config.handle_max {
            return Err(Fault::connection(
                condition::FRAMING_ERROR,
                format!(
                    "handle {} is above the handle-max of {}",
                    peer.handle, self.config.handle_max
                ),
            ));
        }
        if let Some(user) = self.link_on(session, peer.handle) {
            let name = self.links.get(user.0).map_or("", |user| brief(&user.name)).to_owned();
            return Err(Fault::session(
                session,
                condition::HANDLE_IN_USE,
                format!(
                    "handle {} for link '{}' is in use by link '{name}'",
                    peer.handle,
                    brief(&peer.name)
                ),
            ));
        }
        if let Some(existing) = self.link_named(peer.role.other(), &peer.name) {
            let is_answer = self
                .links
                .get(existing.0)
                .is_some_and(|entry| entry.remote_handle.is_none() && entry.session == session);
            if is_answer {
                self.confirm_attach(existing, session, peer);
                return Ok(());
            }
            self.steal(existing);
        }
        self.add_asked(session, peer)
    }

    pub(super) fn handle_detach(&mut self, channel: u16, detach: Detach) -> Verdict {
        let session = self.expect_session(channel, "detach")?;
        if !self.is_usable(session) {
            return Ok(());
        }
        let link = self.expect_link(session, detach.handle, "detach")?;
        let closed = detach.closed;
        let state = self.links.get(link.0).map(|entry| entry.state);
        if let Some(session) = self.sessions.get_mut(session.0) {
            session.remote_handles.clear(detach.handle);
        }
        let notify = match state {
            Some(State::Attached) => {
                self.flush();
                self.write_detach(link, closed, None);
                true
            }
            Some(State::Detaching { notify }) => notify,
            _ => true,
        };
        self.step_link(link, Input::Detached { closed });
        if let Some(State::Asked) = state {
            // The application answers first; our detach follows its answer.
            self.forget_name(link);
        } else {
            self.finish_link(link);
        }
        if notify {
            let error = detach.error.map(Box::new);
            self.events.push_back(Event::Detached { link, closed, error });
        }
        Ok(())
    }

    /// The link under a handle of the peer's.
    #[inline]
    pub(super) fn link_on(&self, session: SessionId, handle: u32) -> Option<LinkId> {
        self.sessions.get(session.0)?.remote_handles.get(handle)
    }

    pub(super) fn expect_link(
        &self,
        session: SessionId,
        handle: u32,
        frame: &str,
    ) -> Result<LinkId, Box<Fault>> {
        self.link_on(session, handle).ok_or_else(|| unattached(session, handle, frame))
    }

    /// Writes the attach that says no: our terminus is null.
    pub(super) fn write_refusal(&mut self, link: LinkId) {
        let Some(entry) = self.links.get(link.0) else { return };
        let role = entry.role();
        let mut attach = Attach::new(&*entry.name, entry.local_handle, role);
        attach.snd_settle_mode = entry.snd_settle_mode;
        attach.rcv_settle_mode = entry.rcv_settle_mode;
        match role {
            Role::Sender => {
                attach.target = entry.target.as_deref().cloned();
                attach.initial_delivery_count = Some(0);
            }
            Role::Receiver => attach.source = entry.source.as_deref().cloned(),
        }
        self.write(channel_of(entry.session), &attach);
        self.step_link(link, Input::Answer);
    }

    /// Writes detach and waits for the peer's.
    pub(super) fn send_detach(
        &mut self,
        link: LinkId,
        closed: bool,
        error: Option<AmqpError>,
        notify: bool,
    ) {
        self.flush();
        self.write_detach(link, closed, error);
        self.step_link(link, Input::Detach { notify });
        let confirmed = self.links.get(link.0).is_some_and(|link| link.remote_handle.is_some());
        // The name of an unanswered attach is needed to recognise the answer.
        if confirmed {
            self.forget_name(link);
        }
    }

    /// The link is over: nothing leads to it any more, though it can be looked at until the next
    /// input.
    pub(super) fn finish_link(&mut self, link: LinkId) {
        self.forget_name(link);
        let Some(entry) = self.links.get_mut(link.0) else { return };
        if entry.state != State::Detached {
            // Its session or connection takes it along.
            entry.state = State::Detached;
        }
        if let Some(session) = self.sessions.get_mut(entry.session.0) {
            session.local_handles.clear(entry.local_handle);
        }
        self.past_links.push(link);
    }

    fn write_detach(&mut self, link: LinkId, closed: bool, error: Option<AmqpError>) {
        let error = error.map(|error| self.fitting(error));
        let Some(entry) = self.links.get(link.0) else { return };
        let detach = Detach { handle: entry.local_handle, closed, error };
        self.write(channel_of(entry.session), &detach);
    }

    fn forget_name(&mut self, link: LinkId) {
        let Some(entry) = self.links.get(link.0) else { return };
        let names = &mut self.names[side_index(entry.role())];
        if names.get(&*entry.name) == Some(&link) {
            names.remove(&*entry.name);
        }
    }

    fn add_requested(
        &mut self,
        session: SessionId,
        request: &AttachRequest,
    ) -> Result<LinkId, Error> {
        let handle_max = self.sessions.get(session.0).map_or(0, |entry| entry.peer_handle_max);
        let free = self.sessions.get(session.0).and_then(|s| s.local_handles.free(handle_max));
        let Some(handle) = free else { return Err(Error::HandlesExhausted { handle_max }) };
        Ok(self.add_link(Link::asking(session, handle, request)))
    }

    fn add_asked(&mut self, session: SessionId, peer: Box<Attach>) -> Verdict {
        let max_links = self.config.max_links as usize;
        let handle_max = self.sessions.get(session.0).map_or(0, |entry| entry.peer_handle_max);
        let free = self.sessions.get(session.0).and_then(|s| s.local_handles.free(handle_max));
        let handle = free.filter(|_| self.links.len() < max_links).ok_or_else(|| {
            Fault::session(
                session,
                condition::RESOURCE_LIMIT_EXCEEDED,
                format!("there is no room for link '{}'", brief(&peer.name)),
            )
        })?;
        let link = self.add_link(Link::asked(session, handle, &peer));
        self.map_remote_handle(link, session, peer.handle);
        self.events.push_back(Event::Attached { link, peer });
        Ok(())
    }

    fn add_link(&mut self, link: Link) -> LinkId {
        let (session, handle) = (link.session, link.local_handle);
        let (name, side) = (link.name.clone(), side_index(link.role()));
        let id = LinkId(self.links.insert(link));
        self.names[side].insert(name, id);
        if let Some(session) = self.sessions.get_mut(session.0) {
            session.local_handles.set(handle, id);
        }
        id
    }

    fn confirm_attach(&mut self, link: LinkId, session: SessionId, peer: Box<Attach>) {
        let Some(entry) = self.links.get_mut(link.0) else { return };
        entry.confirm(&peer);
        self.map_remote_handle(link, session, peer.handle);
        self.step_link(link, Input::Confirmed);
        if self.link(link).is_some_and(Link::is_attached) {
            self.events.push_back(Event::AttachConfirmed { link, peer });
        } else {
            self.forget_name(link);
        }
    }

    /// The peer attaches a link of the same name and role again: the old one has lost its end
    /// (part 2, 2.6.1).
    fn steal(&mut self, link: LinkId) {
        let name = self.links.get(link.0).map_or("", |entry| brief(&entry.name));
        let text = format!("link '{name}' was attached again");
        self.expel_link(link, AmqpError::new(condition::STOLEN, text));
        self.forget_name(link);
    }

    fn map_remote_handle(&mut self, link: LinkId, session: SessionId, handle: u32) {
        if let Some(session) = self.sessions.get_mut(session.0) {
            session.remote_handles.set(handle, link);
        }
    }
}

#[cold]
pub(super) fn unattached(session: SessionId, handle: u32, frame: &str) -> Box<Fault> {
    Fault::session(
        session,
        condition::UNATTACHED_HANDLE,
        format!("{frame} uses handle {handle}, to which no link is attached"),
    )
}
