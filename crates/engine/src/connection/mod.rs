//! One end of a connection (part 2, 2.4).

mod attachments;
mod flows;
mod handshake;
mod input;
mod lifecycle;
mod output;
mod sessions;
mod settlement;
mod state;
mod timers;
mod transfers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mochila_wire::frame::MIN_MAX_FRAME_SIZE;
use mochila_wire::performative::{Open, Role};
use mochila_wire::{Map, Now, Symbol};

use crate::link::End;
use crate::session::Session;
use crate::slots::Slots;
use crate::{ConnectionConfig, Credentials, Event, Link, LinkId, Outgoing, SessionId};
use handshake::SaslStep;
use state::State;
use timers::Timers;

/// One end of a connection, with its sessions and links.
#[derive(Debug)]
pub struct Connection {
    config: Arc<ConnectionConfig>,
    side: Side,
    state: State,
    sasl: SaslStep,
    /// Input is left unread until the application has answered the event before it.
    is_paused: bool,
    open: OpenAnswer,
    identity: Option<String>,
    peer: Option<Box<Open>>,
    /// The largest frame that we take now.
    incoming_limit: u32,
    /// The largest frame that we send.
    frame_limit: usize,
    timers: Timers,
    /// The sessions, by the peer's channel.
    channels: Vec<Option<SessionId>>,
    sessions: Slots<Session>,
    links: Slots<Link>,
    /// Links by name, senders and receivers apart.
    names: [BTreeMap<Arc<str>, LinkId>; 2],
    /// What has something to write when the output is looked at.
    due_sessions: Vec<SessionId>,
    due_links: Vec<LinkId>,
    /// What is over, and can be looked at until the next input.
    past_sessions: Vec<SessionId>,
    past_links: Vec<LinkId>,
    events: VecDeque<Event>,
    output: Vec<u8>,
    is_close_told: bool,
}

/// Who started the connection.
#[derive(Debug)]
enum Side {
    Server,
    Client(Credentials),
}

/// Whether our open has been sent, and what it says beyond the configuration.
#[derive(Debug)]
enum OpenAnswer {
    /// It has to wait for the headers.
    Waiting,
    /// It goes out with the next output.
    Due(Option<Box<(Vec<Symbol>, Map)>>),
    /// It is sent.
    Sent,
}

impl Connection {
    /// The accepting end of a new connection.
    pub fn server(config: impl Into<Arc<ConnectionConfig>>, now: Now) -> Connection {
        Connection::new(config.into(), Side::Server, now)
    }

    /// The connecting end of a new connection; its protocol header is in the output at once.
    pub fn client(
        config: impl Into<Arc<ConnectionConfig>>,
        credentials: Credentials,
        now: Now,
    ) -> Connection {
        let mut connection = Connection::new(config.into(), Side::Client(credentials), now);
        connection.greet();
        connection
    }

    fn new(config: Arc<ConnectionConfig>, side: Side, now: Now) -> Connection {
        Connection {
            side,
            state: State::Hello,
            sasl: SaslStep::Start,
            is_paused: false,
            open: OpenAnswer::Waiting,
            identity: None,
            peer: None,
            incoming_limit: config.handshake_frame_size.max(MIN_MAX_FRAME_SIZE),
            frame_limit: MIN_MAX_FRAME_SIZE as usize,
            timers: Timers::new(now, config.handshake_timeout_ms),
            channels: Vec::new(),
            sessions: Slots::new(),
            links: Slots::new(),
            names: [BTreeMap::new(), BTreeMap::new()],
            due_sessions: Vec::new(),
            due_links: Vec::new(),
            past_sessions: Vec::new(),
            past_links: Vec::new(),
            events: VecDeque::new(),
            output: Vec::new(),
            is_close_told: false,
            config,
        }
    }

    /// The next thing that happened. Take them all before handling more bytes.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() && self.events.capacity() > KEPT_EVENTS {
            self.events = VecDeque::new();
        }
        event
    }

    /// The peer's open, once it has arrived.
    pub fn peer(&self) -> Option<&Open> {
        self.peer.as_deref()
    }

    /// Who the peer is: the user it authenticated as, or "anonymous" after SASL ANONYMOUS; none
    /// without SASL.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// What this end was configured with.
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// Whether both sides have opened and neither has closed.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether nothing more will happen: send what is in the output, then drop the socket.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether nothing more will be sent: send what is in the output, close that side of the socket,
    /// and throw away what still arrives.
    pub fn has_said_all(&self) -> bool {
        matches!(self.state, State::Discarding | State::Closed)
    }

    /// A link, also one that is over until the next input.
    #[inline]
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(link.0)
    }

    /// The link of a name and role, if one is attached.
    pub fn link_named(&self, role: Role, name: &str) -> Option<LinkId> {
        self.names[side_index(role)].get(name).copied()
    }

    /// All links, in no particular order.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().map(|(key, link)| (LinkId(key), link))
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The number of the channel on which we send for a session.
    pub fn channel(&self, session: SessionId) -> Option<u16> {
        self.sessions.get(session.0).map(|_| channel_of(session))
    }

    /// The sending end of an attached link, ready for a batch of deliveries.
    #[inline]
    pub fn outgoing(&mut self, link: LinkId) -> Option<Outgoing<'_>> {
        let state = self.links.get_mut(link.0)?;
        let End::Sender(sender) = &mut state.end else { return None };
        if !state.state.is_attached() || self.state != State::Open {
            return None;
        }
        Some(Outgoing {
            session: self.sessions.get_mut(state.session.0)?,
            sender,
            output: &mut self.output,
            flow_due: &mut state.flow_due,
            due_links: &mut self.due_links,
            link,
            channel: channel_of(state.session),
            handle: state.local_handle,
            frame_limit: self.frame_limit,
        })
    }

    /// Returns the memory that a burst has left behind.
    fn shrink(&mut self) {
        for (_, session) in self.sessions.iter_mut() {
            session.unsettled.shrink();
            session.outcomes.shrink();
        }
        if self.events.is_empty() {
            self.events = VecDeque::new();
        }
        self.due_sessions.shrink_to(4);
        self.due_links.shrink_to(4);
    }
}

/// Our channel numbers are the slots of the sessions.
fn channel_of(session: SessionId) -> u16 {
    session.0.index as u16
}

fn side_index(role: Role) -> usize {
    match role {
        Role::Sender => 0,
        Role::Receiver => 1,
    }
}

/// A queue that has grown beyond this is given back when it is empty.
const KEPT_EVENTS: usize = 1024;
