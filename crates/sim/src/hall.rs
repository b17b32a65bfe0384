//! A broker, and clients that do exactly what they are told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::Disk;
use mochila_adaptor::{Connection, Node, Peer, Scratch, Settings};
use mochila_broker::{Broker, BrokerSettings, Wake};
use mochila_engine::pair::Seen;
use mochila_engine::{
    AttachRequest, ConnectionConfig, Credentials, Delivery, Event, LinkId, Mechanism, Outgoing,
    SessionId,
};
use mochila_management::{Management, NodeFacts};
use mochila_wire::{Limits, Message, Now, Source, Target};

/// A broker, and who is connected: for stories that need no chance.
pub struct Hall {
    /// What all connections share.
    pub node: Arc<Node>,
    /// The virtual time.
    pub now: Now,
    config: Arc<ConnectionConfig>,
    scratch: Scratch,
    guests: Vec<Guest>,
}

/// One client, and the broker's end of its connection.
struct Guest {
    client: mochila_engine::Connection,
    broker: Connection,
    woken: Arc<Woken>,
    to_client: Vec<u8>,
    to_broker: Vec<u8>,
    /// Everything that the client has ever said.
    said: Vec<u8>,
    /// Whether the client reads what it is sent.
    reads: bool,
    /// Whether the socket takes more although the client does not read.
    has_room: bool,
    is_gone: bool,
    heard: Vec<Seen>,
}

/// The links that queues have called.
#[derive(Default)]
struct Woken(Mutex<BTreeSet<u32>>);

impl Woken {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Woken {
    fn wake(&self, key: u32) {
        self.lock().insert(key);
    }
}

impl Hall {
    /// A broker with settings of its own.
    pub fn with(adjust: impl FnOnce(&mut Settings)) -> Hall {
        let broker = Broker::new(BrokerSettings::default());
        let now = Now::new(1_000_000, 1_700_000_000_000);
        let management = Management::new(Arc::clone(&broker), NodeFacts::default(), now);
        let mut settings = Settings { limits: Limits::default(), ..Settings::default() };
        adjust(&mut settings);
        let large_files = Disk::new(0, 0);
        Hall {
            node: Arc::new(Node { broker, management, settings, large_files }),
            now,
            config: Arc::new(ConnectionConfig {
                sasl_mechanisms: vec![Mechanism::Anonymous, Mechanism::Plain],
                ..ConnectionConfig::new("broker")
            }),
            scratch: Scratch::new(),
            guests: Vec::new(),
        }
    }

    /// A broker like any other.
    pub fn new() -> Hall {
        Hall::default()
    }

    /// A client that has opened its connection.
    pub fn guest(&mut self) -> usize {
        self.guest_with(ConnectionConfig::new("guest"))
    }

    /// A client with a configuration of its own, that has opened its connection.
    pub fn guest_with(&mut self, config: ConnectionConfig) -> usize {
        self.guest_as(config, Credentials::NoSasl)
    }

    /// A client that has shown credentials, which are right, and opened its connection.
    pub fn guest_as(&mut self, config: ConnectionConfig, credentials: Credentials) -> usize {
        let guest = self.add(config, credentials);
        self.run();
        guest
    }

    fn add(&mut self, config: ConnectionConfig, credentials: Credentials) -> usize {
        let woken = Arc::<Woken>::default();
        let peer = Peer { address: "guest".to_owned() };
        let node = Arc::clone(&self.node);
        let wake = Arc::clone(&woken) as Arc<dyn Wake>;
        let broker = Connection::new(node, Arc::clone(&self.config), peer, wake, self.now);
        let client = mochila_engine::Connection::client(config, credentials, self.now);
        self.guests.push(Guest {
            client,
            broker,
            woken,
            to_client: Vec::new(),
            to_broker: Vec::new(),
            said: Vec::new(),
            reads: true,
            has_room: true,
            is_gone: false,
            heard: Vec::new(),
        });
        self.guests.len() - 1
    }

    /// Somebody who has just connected, and says bytes of his own.
    pub fn stranger(&mut self) -> usize {
        let config = ConnectionConfig::new("stranger");
        let stranger = self.add(config, Credentials::NoSasl);
        let guest = &mut self.guests[stranger];
        guest.client.output().clear();
        guest.reads = false;
        stranger
    }

    /// A stranger says something.
    pub fn say(&mut self, guest: usize, bytes: &[u8]) {
        self.guests[guest].to_broker.extend_from_slice(bytes);
    }

    /// What a stranger has been told since the last time.
    pub fn hear_raw(&mut self, guest: usize) -> Vec<u8> {
        std::mem::take(&mut self.guests[guest].to_client)
    }

    /// A client, or a stranger, is gone.
    pub fn hang_up(&mut self, guest: usize) {
        let Hall { guests, scratch, now, .. } = self;
        guests[guest].broker.handle_eof(*now, scratch);
        guests[guest].broker.finish_visit(scratch);
        guests[guest].is_gone = true;
    }

    /// Does what time asks for.
    pub fn tick(&mut self) {
        let Hall { guests, scratch, now, .. } = self;
        for guest in guests.iter_mut().filter(|guest| !guest.is_gone) {
            if guest.broker.next_timeout_ms().is_some_and(|at_ms| at_ms <= now.mono_ms) {
                guest.broker.handle_timeout(*now, scratch);
                guest.broker.finish_visit(scratch);
            }
        }
        self.node.broker.handle_timeout(self.now).perform();
    }

    /// The client's end of a connection.
    pub fn client(&mut self, guest: usize) -> &mut mochila_engine::Connection {
        &mut self.guests[guest].client
    }

    /// A client stops to read; its socket has room for as much as it likes.
    pub fn looks_away(&mut self, guest: usize) {
        self.guests[guest].reads = false;
    }

    /// A client stops to read, and its socket takes only what it is given at once.
    pub fn chokes(&mut self, guest: usize) {
        self.guests[guest].reads = false;
        self.guests[guest].has_room = false;
    }

    /// A client reads again.
    pub fn reads(&mut self, guest: usize) {
        self.guests[guest].reads = true;
        self.guests[guest].has_room = true;
        self.run();
    }

    /// Begins a session.
    pub fn session(&mut self, guest: usize) -> SessionId {
        let session = self.guests[guest].client.begin().expect("the connection is open");
        self.run();
        session
    }

    /// Attaches a sender to a queue.
    pub fn sender(&mut self, guest: usize, session: SessionId, queue: &str) -> LinkId {
        let target = Target::at(queue).into();
        self.attach(guest, session, AttachRequest::sender("sender", Source::default(), target))
    }

    /// Attaches a receiver to a queue.
    pub fn receiver(&mut self, guest: usize, session: SessionId, queue: &str) -> LinkId {
        let target = Target::default().into();
        let name = format!("receiver of {queue}");
        self.attach(guest, session, AttachRequest::receiver(name, Source::at(queue), target))
    }

    /// Attaches a link.
    pub fn attach(&mut self, guest: usize, session: SessionId, request: AttachRequest) -> LinkId {
        let link =
            self.guests[guest].client.attach(session, request).expect("the session takes a link");
        self.run();
        link
    }

    /// Gives credit.
    pub fn grant(&mut self, guest: usize, link: LinkId, credit: u32) {
        self.guests[guest].client.grant(link, credit);
        self.run();
    }

    /// Everything that a client has ever said.
    pub fn said(&self, guest: usize) -> &[u8] {
        &self.guests[guest].said
    }

    fn outgoing(&mut self, guest: usize, link: LinkId) -> Outgoing<'_> {
        self.guests[guest].client.outgoing(link).expect("the link is there")
    }

    /// Sends a message as a whole.
    pub fn send(&mut self, guest: usize, link: LinkId, message: &[u8]) {
        let mut wire = self.outgoing(guest, link);
        assert!(wire.fits(message.len()), "there is no credit or no window");
        wire.send(0, false, 0, &[message]);
        self.run();
    }

    /// Sends a message in two frames at least.
    pub fn send_in_pieces(&mut self, guest: usize, link: LinkId, message: &[u8]) {
        let mut wire = self.outgoing(guest, link);
        let (first, rest) = message.split_at(message.len() / 2);
        wire.start_large(&Delivery::default(), first);
        wire.continue_large(rest, true);
        self.run();
    }

    /// Begins a message and gives it up.
    pub fn abort(&mut self, guest: usize, link: LinkId, beginning: &[u8]) {
        let mut wire = self.outgoing(guest, link);
        assert!(wire.capacity() > 0, "there is no credit or no window");
        wire.start_large(&Delivery::default(), beginning);
        assert!(wire.abort_large());
        self.run();
    }

    /// What has happened at a client since the last time.
    pub fn heard(&mut self, guest: usize) -> Vec<Event> {
        self.guests[guest].heard.drain(..).map(|seen| seen.event).collect()
    }

    /// The messages that have arrived at a client since the last time.
    pub fn received(&mut self, guest: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut bytes = Vec::new();
        for seen in self.guests[guest].heard.drain(..) {
            let Event::Transfer(transfer) = seen.event else { continue };
            bytes.extend_from_slice(&seen.payload);
            if !transfer.more {
                messages.push(Message::decode(&bytes).expect("a message arrived"));
                bytes.clear();
            }
        }
        messages
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        self.now = self.now.after(ms);
        self.node.broker.handle_timeout(self.now).perform();
        self.run();
    }

    /// Moves bytes and serves those who are woken, until nothing moves any more.
    pub fn run(&mut self) {
        let mut moves = true;
        while moves {
            moves = false;
            for guest in self.guests.iter_mut().filter(|guest| !guest.is_gone) {
                moves |= guest.run(self.now, &mut self.scratch);
            }
        }
    }
}

impl Default for Hall {
    fn default() -> Hall {
        Hall::with(|_| {})
    }
}

impl Guest {
    fn run(&mut self, now: Now, scratch: &mut Scratch) -> bool {
        self.said.extend_from_slice(self.client.output());
        self.to_broker.append(self.client.output());
        let mut moves = false;
        let mut used = 0;
        while used < self.to_broker.len() {
            match self.broker.handle_bytes(now, &self.to_broker[used..], scratch) {
                0 => break,
                more => used += more,
            }
        }
        moves |= used > 0;
        self.to_broker.drain(..used);
        if self.broker.take_credentials().is_some() {
            self.broker.authenticated("guest".to_owned());
            moves = true;
        }
        for key in std::mem::take(&mut *self.woken.lock()) {
            moves = true;
            self.broker.handle_wake(now, key, scratch);
        }
        // As the shell does it: nothing more is made while something waits to be sent.
        if self.has_room || self.to_client.is_empty() {
            moves |= self.broker.pump(now, scratch);
        }
        self.to_client.append(self.broker.output());
        if !self.has_room && !self.to_client.is_empty() {
            self.broker.stand_back(now, scratch);
        }
        self.broker.finish_visit(scratch);
        if self.reads {
            moves |= self.hear(now);
        }
        moves
    }

    fn hear(&mut self, now: Now) -> bool {
        let mut used = 0;
        loop {
            let handled = self.client.handle_bytes(now, &self.to_client[used..]);
            while let Some(event) = self.client.poll_event() {
                let payload = match &event {
                    Event::Transfer(transfer) => {
                        let range = transfer.payload();
                        self.to_client[used + range.start..used + range.end].to_vec()
                    }
                    _ => Vec::new(),
                };
                self.heard.push(Seen { event, payload, tag: Vec::new() });
            }
            used += handled;
            if handled == 0 {
                break;
            }
        }
        self.to_client.drain(..used);
        used > 0
    }
}
