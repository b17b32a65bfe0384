use mochila_wire::performative::{Begin, End as EndFrame};
use mochila_wire::{AmqpError, condition};

use super::state::State;
use super::{Connection, channel_of};
use crate::fault::{Fault, Verdict};
use crate::session::{Session, state};
use crate::{Error, Event, LinkId, SessionId};

impl Connection {
    /// Begins a session; [`Event::Begun`] says when the peer has answered. Links may be attached
    /// before.
    pub fn begin(&mut self) -> Result<SessionId, Error> {
        if self.state != State::Open {
            return Err(Error::NotOpen);
        }
        let session = self.add_session(state::State::Beginning)?;
        self.write_begin(session);
        Ok(session)
    }

    /// Ends a session and all its links; [`Event::Ended`] says when the peer has answered.
    pub fn end(&mut self, session: SessionId, error: Option<AmqpError>) {
        if self.is_usable(session) {
            self.end_session(session, error, true);
        }
    }

    pub(super) fn handle_begin(&mut self, channel: u16, begin: &Begin) -> Verdict {
        if channel > self.config.channel_max {
            return Err(Fault::connection(
                condition::FRAMING_ERROR,
                format!(
                    "channel {channel} is above the channel-max of {}",
                    self.config.channel_max
                ),
            ));
        }
        if self.session_on(channel).is_some() {
            return Err(Fault::connection(
                condition::ILLEGAL_STATE,
                format!("channel {channel} carries a session already"),
            ));
        }
        let session = match begin.remote_channel {
            None => self.answer_begin()?,
            Some(ours) => self.confirm_begin(ours)?,
        };
        self.set_channel(channel, Some(session));
        let entry = self.sessions.get_mut(session.0).expect("the session was just found");
        entry.remote_channel = Some(channel);
        entry.incoming.resume_at(begin.next_outgoing_id);
        entry.outgoing.open(begin.incoming_window);
        entry.peer_handle_max = begin.handle_max;
        let usable = entry.state.is_usable();
        if begin.remote_channel.is_none() {
            self.write_begin(session);
        }
        if usable {
            self.events.push_back(Event::Begun { session });
        }
        Ok(())
    }

    pub(super) fn handle_end(&mut self, channel: u16, end: EndFrame) -> Verdict {
        let session = self.expect_session(channel, "end")?;
        let was = self.sessions.get(session.0).map(|entry| entry.state);
        let notify = match was {
            Some(state::State::Ending { notify }) => notify,
            _ => {
                self.drop_links(session);
                self.write(channel_of(session), &EndFrame { error: None });
                true
            }
        };
        self.step_session(session, state::Input::Ended);
        self.set_channel(channel, None);
        self.past_sessions.push(session);
        if notify {
            self.events.push_back(Event::Ended { session, error: end.error.map(Box::new) });
        }
        Ok(())
    }

    /// Sends end; false if the session has ended on our side before.
    pub(super) fn end_session(
        &mut self,
        session: SessionId,
        error: Option<AmqpError>,
        notify: bool,
    ) -> bool {
        let Some(entry) = self.sessions.get(session.0) else { return false };
        if !entry.state.is_usable() {
            return false;
        }
        self.flush();
        self.drop_links(session);
        let error = error.map(|error| self.fitting(error));
        self.write(channel_of(session), &EndFrame { error });
        self.step_session(session, state::Input::End { notify });
        true
    }

    /// The session on a channel of the peer's.
    #[inline]
    pub(super) fn session_on(&self, channel: u16) -> Option<SessionId> {
        self.channels.get(usize::from(channel)).copied().flatten()
    }

    #[inline]
    pub(super) fn expect_session(
        &self,
        channel: u16,
        frame: &str,
    ) -> Result<SessionId, Box<Fault>> {
        self.session_on(channel).ok_or_else(|| {
            Fault::connection(
                condition::ILLEGAL_STATE,
                format!("{frame} arrived on channel {channel}, which carries no session"),
            )
        })
    }

    fn add_session(&mut self, state: state::State) -> Result<SessionId, Error> {
        let peer_max = self.peer.as_ref().map_or(0, |peer| peer.channel_max);
        let channel_max = peer_max.min(self.config.channel_max);
        if self.sessions.next_index() > u32::from(channel_max) {
            return Err(Error::ChannelsExhausted { channel_max });
        }
        let session =
            Session::new(state, self.config.incoming_window, self.config.initial_outgoing_id);
        Ok(SessionId(self.sessions.insert(session)))
    }

    fn answer_begin(&mut self) -> Result<SessionId, Box<Fault>> {
        self.add_session(state::State::Mapped).map_err(|error| {
            Fault::connection(
                condition::RESOURCE_LIMIT_EXCEEDED,
                format!("no session can be begun: {error}"),
            )
        })
    }

    fn confirm_begin(&mut self, ours: u16) -> Result<SessionId, Box<Fault>> {
        let waiting = self.sessions.key_at(u32::from(ours)).filter(|key| {
            self.sessions.get(*key).is_some_and(|session| session.remote_channel.is_none())
        });
        let Some(key) = waiting else {
            return Err(Fault::connection(
                condition::INVALID_FIELD,
                format!("begin answers channel {ours}, on which no session was begun"),
            ));
        };
        let session = SessionId(key);
        self.step_session(session, state::Input::Begun);
        Ok(session)
    }

    fn write_begin(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get(session.0) else { return };
        let begin = Begin {
            remote_channel: entry.remote_channel,
            next_outgoing_id: entry.outgoing.next_id(),
            incoming_window: entry.incoming.size(),
            outgoing_window: self.config.outgoing_window,
            handle_max: self.config.handle_max,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        self.write(channel_of(session), &begin);
    }

    fn set_channel(&mut self, channel: u16, session: Option<SessionId>) {
        let index = usize::from(channel);
        if self.channels.len() <= index {
            self.channels.resize(index + 1, None);
        }
        self.channels[index] = session;
    }

    /// The links of a session end with it.
    fn drop_links(&mut self, session: SessionId) {
        let Some(entry) = self.sessions.get(session.0) else { return };
        let links: Vec<LinkId> = entry.local_handles.iter().collect();
        for link in links {
            self.finish_link(link);
        }
    }
}
