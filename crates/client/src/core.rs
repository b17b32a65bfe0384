//! What one connection knows, apart from its socket: the engine, and what the handles asked for.
//!
//! Sessions and links are kept under keys of our own, so that they outlive a connection: after a
//! loss, [`Core::disconnected`] forgets what the engine knew, and the next open makes everything
//! anew under the same keys.

mod incoming;
mod links;
mod outgoing;
mod sessions;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use mochila_engine::{
    AttachRequest, Connection, ConnectionConfig, Credentials, Event, LinkId, SessionId,
};
use mochila_wire::performative::Attach;
use mochila_wire::{AmqpError, Now, TargetArchetype};

use crate::command::{Attached, Command, DeliveryRef, LinkKey, Reply, SessionKey};
use crate::error::Error;
use crate::link_options::LinkSettings;
use crate::lost_groups::LostGroups;
use crate::shared::TaskState;
use incoming::ReceiverEnd;
use outgoing::SenderEnd;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Core {
    engine: Connection,
    config: Arc<ConnectionConfig>,
    credentials: Credentials,
    shared: Arc<TaskState>,
    /// Whether a lost connection is made again, so that what is unsettled has to be kept.
    reconnects: bool,
    epoch: u32,
    open: bool,
    sessions: BTreeMap<SessionKey, SessionRecord>,
    links: BTreeMap<LinkKey, LinkRecord>,
    session_keys: HashMap<SessionId, SessionKey>,
    link_keys: HashMap<LinkId, LinkKey>,
    /// Links that have something to send but found the output full.
    held_back: Vec<LinkKey>,
    closing: Vec<Reply<()>>,
    /// Why the connection is over, once it is.
    end: Option<Error>,
}

#[derive(Debug)]
struct SessionRecord {
    id: Option<SessionId>,
    reply: Option<Reply<()>>,
    ending: Option<Option<Reply<()>>>,
}

#[derive(Debug)]
struct LinkRecord {
    session: SessionKey,
    id: Option<LinkId>,
    request: AttachRequest,
    reply: Option<Reply<()>>,
    /// What the peer's last attach said; the handle looks here.
    attached: SharedAttached,
    detaching: Option<Option<Reply<()>>>,
    end: LinkEnd,
}

#[derive(Debug)]
enum LinkEnd {
    Sender(SenderEnd),
    Receiver(ReceiverEnd),
}

/// What the peer's attach said, as handle and task share it.
#[derive(Clone, Debug)]
pub(crate) struct SharedAttached(Arc<Mutex<Arc<Attached>>>);

impl Core {
    pub(crate) fn new(
        config: Arc<ConnectionConfig>,
        credentials: Credentials,
        shared: Arc<TaskState>,
        reconnects: bool,
        now: Now,
    ) -> Self {
        Self {
            engine: Connection::client(config.clone(), credentials.clone(), now),
            config,
            credentials,
            shared,
            reconnects,
            epoch: 0,
            open: false,
            sessions: BTreeMap::new(),
            links: BTreeMap::new(),
            session_keys: HashMap::new(),
            link_keys: HashMap::new(),
            held_back: Vec::new(),
            closing: Vec::new(),
            end: None,
        }
    }

    /// Handles whole frames; returns how many bytes they took.
    pub(crate) fn handle_bytes(&mut self, now: Now, bytes: &[u8]) -> usize {
        let consumed = self.engine.handle_bytes(now, bytes);
        self.handle_events(bytes);
        consumed
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.engine.handle_timeout(now);
        self.handle_events(&[]);
    }

    pub(crate) fn handle_eof(&mut self, now: Now) {
        self.engine.handle_eof(now);
        self.handle_events(&[]);
    }

    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        self.engine.next_timeout_ms()
    }

    pub(crate) fn wanted(&self, pending: &[u8]) -> usize {
        self.engine.wanted(pending)
    }

    /// What has to be sent to the peer.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        self.engine.output()
    }

    /// Sends what had to wait while the output was full.
    pub(crate) fn resume(&mut self) {
        for link in std::mem::take(&mut self.held_back) {
            self.pump(link);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Both sides have closed, or the connection has failed.
    pub(crate) fn is_closed(&self) -> bool {
        self.engine.is_closed()
    }

    /// Why the connection ended, if it has.
    pub(crate) fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// Whether a handle has asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    pub(crate) fn handle_command(&mut self, command: Command) {
        match command {
            Command::Begin { session, reply } => {
                let record = SessionRecord { id: None, reply: Some(reply), ending: None };
                self.sessions.insert(session, record);
                self.begin(session);
            }
            Command::End { session, reply } => self.end_session(session, reply),
            Command::AttachSender { link, session, request } => {
                self.attach_sender(link, session, *request);
            }
            Command::AttachReceiver { link, session, request } => {
                self.attach_receiver(link, session, *request);
            }
            Command::Detach { link, closed, reply } => self.detach(link, closed, reply),
            Command::Send { link, message } => {
                if let Some(sender) = self.sender(link) {
                    sender.push(message);
                    self.pump(link);
                }
            }
            Command::Settle { link, delivery, state } => {
                if delivery.epoch == self.epoch
                    && let Some(record) = self.links.get(&link)
                    && let Some(id) = record.id
                    && let Some(session) = self.engine.link(id).map(|link| link.session())
                {
                    // In mode second the sender settles, after it has seen the outcome.
                    let settled = record.request.rcv_settle_mode
                        == mochila_wire::performative::ReceiverSettleMode::First;
                    let DeliveryRef { id, .. } = delivery;
                    self.engine.settle_incoming(session, id, id, state, settled);
                }
            }
            Command::Taken { link, total } => {
                if let Some(receiver) = self.receiver(link) {
                    receiver.taken(total);
                    self.grant(link);
                }
            }
            Command::Grant { link, more } => {
                if let Some(receiver) = self.receiver(link) {
                    receiver.grant(more);
                    self.grant(link);
                }
            }
            Command::Drain { link, reply } => self.drain(link, reply),
            Command::Close { error, reply } => {
                self.closing.push(reply);
                if self.open {
                    self.engine.close(error);
                    self.handle_events(&[]);
                }
            }
        }
    }

    /// The connection is lost: the engine starts again, everything else waits for it to open.
    pub(crate) fn disconnected(&mut self, now: Now) {
        self.epoch = self.epoch.wrapping_add(1);
        self.shared.set_epoch(self.epoch);
        let engine = Connection::client(self.config.clone(), self.credentials.clone(), now);
        let lost = std::mem::replace(&mut self.engine, engine);
        self.open = false;
        self.end = None;
        self.session_keys.clear();
        self.link_keys.clear();
        self.held_back.clear();
        // What was to end has ended now.
        self.sessions.retain(|_, session| {
            session.id = None;
            match session.ending.take() {
                Some(reply) => answer(reply, Ok(())),
                None => return true,
            }
            false
        });
        let sessions = &self.sessions;
        self.links.retain(|_, link| {
            let id = link.id.take();
            let credit = id.and_then(|id| lost.link(id)).map_or(0, |link| link.credit());
            if let Some(reply) = link.detaching.take() {
                answer(reply, Ok(()));
                return false;
            }
            match &mut link.end {
                LinkEnd::Sender(sender) => sender.rewind(),
                LinkEnd::Receiver(receiver) => {
                    receiver.rewind(credit);
                    if id.is_some() {
                        // To the broker it is somebody else now, and others may have any group.
                        receiver.lost(LostGroups::UNNAMED);
                    }
                }
            }
            sessions.contains_key(&link.session)
        });
    }

    /// Nothing more will be possible: everybody who waits learns why.
    pub(crate) fn finish(&mut self, error: &Error) {
        self.shared.ended(error.clone());
        for reply in self.closing.drain(..) {
            let peer_error = error.condition().is_some();
            answer(Some(reply), if peer_error { Err(error.clone()) } else { Ok(()) });
        }
        for session in std::mem::take(&mut self.sessions).into_values() {
            answer(session.reply, Err(error.clone()));
            answer(session.ending.flatten(), Ok(()));
        }
        for link in std::mem::take(&mut self.links).into_values() {
            link.finish(error);
        }
    }

    fn handle_events(&mut self, bytes: &[u8]) {
        while let Some(event) = self.engine.poll_event() {
            self.handle_event(event, bytes);
        }
    }

    fn handle_event(&mut self, event: Event, bytes: &[u8]) {
        match event {
            Event::Opened => self.opened(),
            Event::Begun { session } => self.begun(session),
            Event::Ended { session, error } => self.ended(session, error),
            // A peer that attaches to us finds nothing: this is a client.
            Event::Attached { link, .. } => {
                let error = AmqpError::new(
                    mochila_wire::condition::NOT_FOUND,
                    "this container only attaches links of its own",
                );
                self.engine.refuse_attach(link, error);
            }
            Event::AttachConfirmed { link, peer } => self.attach_confirmed(link, &peer),
            Event::Credit { link } => {
                if let Some(key) = self.link_keys.get(&link).copied() {
                    self.pump(key);
                }
            }
            Event::PeerFlow { link } => self.peer_flow(link),
            Event::FlowProperties { link, properties } => {
                if let Some(key) = self.link_keys.get(&link).copied()
                    && let Some(receiver) = self.receiver(key)
                    && let Some(lost) = LostGroups::among(&properties)
                {
                    receiver.lost(lost);
                }
            }
            Event::Window { session } => self.pump_session(session),
            Event::Transfer(transfer) => {
                let epoch = self.epoch;
                let payload = &bytes[transfer.payload()];
                let tag = &bytes[transfer.tag()];
                if let Some(key) = self.link_keys.get(&transfer.link).copied()
                    && let Some(receiver) = self.receiver(key)
                {
                    let part = incoming::Part { epoch, payload, tag, transfer: &transfer };
                    receiver.arrived(&part);
                }
            }
            Event::Disposition { session, first, last, settled, state } => {
                self.resolve(incoming::Resolution { session, first, last, settled, state });
            }
            Event::Detached { link, error, .. } => self.detached(link, error),
            Event::Closed { error, .. } => self.closed(error),
            // The first is for servers; the others tell nothing that a handle waits for.
            Event::Credentials(_) | Event::IncomingSettled { .. } => {}
        }
    }

    fn opened(&mut self) {
        self.open = true;
        self.shared.opened(self.engine.peer().cloned().map(Box::new));
        if self.is_closing() {
            self.engine.close(None);
            return;
        }
        let sessions: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.begin(session);
        }
        let links: Vec<LinkKey> = self.links.keys().copied().collect();
        for link in links {
            self.attach(link);
        }
    }

    fn closed(&mut self, error: Option<Box<AmqpError>>) {
        let refused = error
            .as_ref()
            .is_some_and(|e| e.condition == mochila_wire::condition::UNAUTHORIZED_ACCESS);
        let end = if refused && !self.open { Error::Refused } else { Error::Connection(error) };
        self.open = false;
        self.end = Some(end);
    }

    fn sender(&mut self, key: LinkKey) -> Option<&mut SenderEnd> {
        match &mut self.links.get_mut(&key)?.end {
            LinkEnd::Sender(sender) => Some(sender),
            LinkEnd::Receiver(_) => None,
        }
    }

    fn receiver(&mut self, key: LinkKey) -> Option<&mut ReceiverEnd> {
        match &mut self.links.get_mut(&key)?.end {
            LinkEnd::Receiver(receiver) => Some(receiver),
            LinkEnd::Sender(_) => None,
        }
    }
}

impl SharedAttached {
    pub(crate) fn new() -> Self {
        let nothing = Attached { source: None, target: None, settings: LinkSettings::default() };
        Self(Arc::new(Mutex::new(Arc::new(nothing))))
    }

    pub(crate) fn get(&self) -> Arc<Attached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, attached: Attached) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(attached);
    }
}

impl From<&Attach> for Attached {
    fn from(peer: &Attach) -> Self {
        Self {
            source: peer.source.clone(),
            target: peer.target.as_ref().and_then(TargetArchetype::target).cloned(),
            settings: LinkSettings {
                name: Some(peer.name.clone()),
                snd_settle_mode: peer.snd_settle_mode,
                rcv_settle_mode: peer.rcv_settle_mode,
                max_message_size: peer.max_message_size.unwrap_or(0),
                offered_capabilities: peer.offered_capabilities.clone(),
                desired_capabilities: peer.desired_capabilities.clone(),
                properties: peer.properties.clone().unwrap_or_default(),
            },
        }
    }
}

fn answer<T>(reply: Option<Reply<T>>, result: Result<T, Error>) {
    if let Some(reply) = reply {
        // Whoever asked may have stopped waiting.
        let _ = reply.send(result);
    }
}
