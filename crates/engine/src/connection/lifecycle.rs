use mochila_wire::performative::Close;
use mochila_wire::{AmqpError, Now, condition, frame};

use super::state::{Input, State};
use super::timers::Due;
use super::{Connection, OpenAnswer};
use crate::fault::{Fault, Verdict};
use crate::link;
use crate::session;
use crate::{Event, LinkId, SessionId};

impl Connection {
    /// Closes the connection, with an error where there is one to tell. The peer's close is
    /// waited for, though not for long; [`Event::Closed`] says when it is over.
    pub fn close(&mut self, error: Option<AmqpError>) {
        match self.state {
            State::Opening | State::Open => {
                self.write_close(error);
                self.step(Input::Close);
                self.timers.closing(self.config.close_timeout_ms);
            }
            State::Hello | State::Sasl | State::Header => {
                self.tell_closed(error, false);
                self.give_up();
            }
            State::Closing | State::Discarding | State::Closed => {}
        }
    }

    /// The peer has closed its side of the socket.
    pub fn handle_eof(&mut self, now: Now) {
        self.bury();
        self.timers.tick(now);
        let error = match self.state {
            State::Closed => return,
            State::Closing | State::Discarding => None,
            State::Hello => Some("the peer hung up without a word"),
            State::Sasl | State::Header | State::Opening => {
                Some("the peer hung up before the connection was open")
            }
            State::Open => Some("the peer hung up without closing the connection"),
        };
        let error = error.map(|text| AmqpError::new(condition::CONNECTION_FORCED, text));
        self.tell_closed(error, true);
        self.step(Input::HangUp);
        self.timers.stop();
    }

    /// Does what time asks for: heartbeats, and an end to waiting.
    pub fn handle_timeout(&mut self, now: Now) {
        self.bury();
        self.timers.tick(now);
        while let Some(due) = self.timers.due() {
            match due {
                Due::Heartbeat => self.write_heartbeat(),
                Due::Silence => self.fail(Fault::Connection(AmqpError::new(
                    condition::RESOURCE_LIMIT_EXCEEDED,
                    format!(
                        "the idle time-out expired: nothing was received for {} ms",
                        self.config.idle_timeout_ms
                    ),
                ))),
                Due::Patience if self.state.is_handshake() => {
                    self.fail(Fault::Connection(AmqpError::new(
                        condition::RESOURCE_LIMIT_EXCEEDED,
                        format!(
                            "the connection was not open after {} ms",
                            self.config.handshake_timeout_ms
                        ),
                    )));
                    // Who was that slow is not waited for again.
                    self.hang_up();
                }
                Due::Patience => {
                    self.tell_closed(None, false);
                    self.hang_up();
                }
            }
        }
        self.shrink();
    }

    /// When [`handle_timeout`](Connection::handle_timeout) has something to do, on the monotonic
    /// clock.
    pub fn next_timeout_ms(&self) -> Option<u64> {
        self.timers.next_ms()
    }

    pub(super) fn handle_close(&mut self, close: Close) -> Verdict {
        if self.state != State::Closing {
            self.write_close(None);
        }
        let by_peer = self.state != State::Closing;
        self.step(Input::Closed);
        self.timers.stop();
        self.tell_closed(close.error, by_peer);
        Ok(())
    }

    /// Ends what a fault ends, tells the peer, and tells the application.
    pub(super) fn fail(&mut self, fault: Fault) {
        match fault {
            Fault::Link(link, error) => self.expel_link(link, error),
            Fault::Session(session, error) => self.expel_session(session, error),
            Fault::Connection(error) => match self.state {
                State::Opening | State::Open => {
                    self.tell_closed(Some(error.clone()), false);
                    self.write_close(Some(error));
                    self.step(Input::Close);
                    self.timers.closing(self.config.close_timeout_ms);
                }
                State::Closing | State::Discarding | State::Closed => self.give_up(),
                State::Hello | State::Sasl | State::Header => {
                    self.tell_closed(Some(error), false);
                    self.give_up();
                }
            },
            Fault::Stream(error) => {
                self.tell_closed(Some(error.clone()), false);
                if matches!(self.state, State::Opening | State::Open) {
                    self.write_close(Some(error));
                }
                self.give_up();
            }
        }
    }

    /// Reads nothing more; the peer gets a moment to read what we said.
    pub(super) fn give_up(&mut self) {
        if self.state != State::Closed {
            self.step(Input::GiveUp);
            self.timers.closing(self.config.close_timeout_ms);
        }
    }

    fn hang_up(&mut self) {
        if self.state != State::Closed {
            self.step(Input::HangUp);
        }
        self.timers.stop();
    }

    pub(super) fn step(&mut self, input: Input) {
        self.state = match self.state.after(input) {
            Some(state) => state,
            None => panic!("{input:?} does not apply to a connection in state {:?}", self.state),
        };
    }

    /// Tells the application once that everything is over.
    pub(super) fn tell_closed(&mut self, error: Option<AmqpError>, by_peer: bool) {
        if !self.is_close_told {
            self.is_close_told = true;
            self.events.push_back(Event::Closed { error: error.map(Box::new), by_peer });
        }
    }

    fn write_close(&mut self, error: Option<AmqpError>) {
        if matches!(self.open, OpenAnswer::Waiting) {
            // There is no close without an open (part 2, 2.4.3).
            self.open = OpenAnswer::Due(None);
        }
        self.flush();
        let error = error.map(|error| self.fitting(error));
        frame::write(&mut self.output, 0, &Close { error });
    }

    /// Frees what was over before this input.
    #[inline]
    pub(super) fn bury(&mut self) {
        if !self.past_links.is_empty() || !self.past_sessions.is_empty() {
            for id in self.past_links.drain(..) {
                let Some(link) = self.links.remove(id.0) else { continue };
                if link.unsettled() > 0
                    && let Some(session) = self.sessions.get_mut(link.session.0)
                {
                    session.unsettled.remove_link(id);
                }
            }
            for session in self.past_sessions.drain(..) {
                self.sessions.remove(session.0);
            }
        }
    }

    /// Ends a session because of a fault of the peer's.
    fn expel_session(&mut self, session: SessionId, error: AmqpError) {
        let notify = false;
        if self.end_session(session, Some(error.clone()), notify) {
            self.events.push_back(Event::Ended { session, error: Some(Box::new(error)) });
        }
    }

    /// Detaches a link because of a fault of the peer's.
    pub(super) fn expel_link(&mut self, link: LinkId, error: AmqpError) {
        let Some(state) = self.links.get(link.0).map(|link| link.state) else { return };
        match state {
            link::state::State::Asked => self.write_refusal(link),
            link::state::State::Asking | link::state::State::Attached => {}
            _ => return,
        }
        self.send_detach(link, true, Some(error.clone()), false);
        self.events.push_back(Event::Detached { link, closed: true, error: Some(Box::new(error)) });
    }

    /// Whether a session is there and can be used.
    pub(super) fn is_usable(&self, session: SessionId) -> bool {
        self.state == State::Open
            && self.sessions.get(session.0).is_some_and(|s| s.state.is_usable())
    }

    pub(super) fn step_session(&mut self, session: SessionId, input: session::state::Input) {
        if let Some(session) = self.sessions.get_mut(session.0) {
            session.state = match session.state.after(input) {
                Some(state) => state,
                None => {
                    panic!("{input:?} does not apply to a session in state {:?}", session.state)
                }
            };
        }
    }

    pub(super) fn step_link(&mut self, link: LinkId, input: link::state::Input) {
        if let Some(link) = self.links.get_mut(link.0) {
            link.state = match link.state.after(input) {
                Some(state) => state,
                None => panic!("{input:?} does not apply to a link in state {:?}", link.state),
            };
        }
    }
}
