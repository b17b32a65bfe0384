//! A broker, and clients that do exactly what a test tells them.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use mochila_adaptor::{Connection, LargeFile, LargeFiles, Node, Peer, Scratch, Settings};
use mochila_broker::{Broker, BrokerSettings, LargeBody, Wake};
use mochila_engine::pair::Seen;
use mochila_engine::{
    AttachRequest, ConnectionConfig, Credentials, Delivery, Event, LinkId, SessionId,
};
use mochila_management::{Management, NodeFacts};
use mochila_wire::{Limits, Message, Now, Source, Target};

/// A broker, and who is connected.
pub(crate) struct Hall {
    pub(crate) node: Arc<Node>,
    pub(crate) now: Now,
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
    /// Whether the client reads what it is sent.
    reads: bool,
    /// Whether the socket takes more although the client does not read.
    has_room: bool,
    heard: Vec<Seen>,
}

/// The links that queues have called.
#[derive(Default)]
struct Woken(Mutex<BTreeSet<u32>>);

impl Wake for Woken {
    fn wake(&self, key: u32) {
        self.0.lock().unwrap().insert(key);
    }
}

impl Hall {
    /// A broker with settings of its own.
    pub(crate) fn with(adjust: impl FnOnce(&mut Settings)) -> Hall {
        let broker = Broker::new(BrokerSettings::default());
        let now = Now::new(1_000_000, 1_700_000_000_000);
        let management = Management::new(Arc::clone(&broker), NodeFacts::default(), now);
        let mut settings = Settings { limits: Limits::default(), ..Settings::default() };
        adjust(&mut settings);
        let large_files = Arc::new(Files);
        Hall {
            node: Arc::new(Node { broker, management, settings, large_files }),
            now,
            config: Arc::new(ConnectionConfig::new("broker")),
            scratch: Scratch::new(),
            guests: Vec::new(),
        }
    }

    /// A broker like any other.
    pub(crate) fn new() -> Hall {
        Hall::with(|_| {})
    }

    /// A client that has opened its connection.
    pub(crate) fn guest(&mut self) -> usize {
        self.guest_with(ConnectionConfig::new("guest"))
    }

    /// A client with a configuration of its own, that has opened its connection.
    pub(crate) fn guest_with(&mut self, config: ConnectionConfig) -> usize {
        let woken = Arc::<Woken>::default();
        let peer = Peer { address: "guest".to_owned() };
        let node = Arc::clone(&self.node);
        let wake = Arc::clone(&woken) as Arc<dyn Wake>;
        let broker = Connection::new(node, Arc::clone(&self.config), peer, wake, self.now);
        let client = mochila_engine::Connection::client(config, Credentials::NoSasl, self.now);
        self.guests.push(Guest {
            client,
            broker,
            woken,
            to_client: Vec::new(),
            to_broker: Vec::new(),
            reads: true,
            has_room: true,
            heard: Vec::new(),
        });
        self.run();
        self.guests.len() - 1
    }

    /// The client's end of a connection.
    pub(crate) fn client(&mut self, guest: usize) -> &mut mochila_engine::Connection {
        &mut self.guests[guest].client
    }

    /// A client stops to read; its socket has room for as much as it likes.
    pub(crate) fn looks_away(&mut self, guest: usize) {
        self.guests[guest].reads = false;
    }

    /// A client stops to read, and its socket takes only what it is given at once.
    pub(crate) fn chokes(&mut self, guest: usize) {
        self.guests[guest].reads = false;
        self.guests[guest].has_room = false;
    }

    /// A client reads again.
    pub(crate) fn reads(&mut self, guest: usize) {
        self.guests[guest].reads = true;
        self.guests[guest].has_room = true;
        self.run();
    }

    /// Begins a session.
    pub(crate) fn session(&mut self, guest: usize) -> SessionId {
        let session = self.guests[guest].client.begin().unwrap();
        self.run();
        session
    }

    /// Attaches a sender to a queue.
    pub(crate) fn sender(&mut self, guest: usize, session: SessionId, queue: &str) -> LinkId {
        let target = Target::at(queue).into();
        self.attach(guest, session, AttachRequest::sender("sender", Source::default(), target))
    }

    /// Attaches a receiver to a queue.
    pub(crate) fn receiver(&mut self, guest: usize, session: SessionId, queue: &str) -> LinkId {
        let target = Target::default().into();
        let name = format!("receiver of {queue}");
        self.attach(guest, session, AttachRequest::receiver(name, Source::at(queue), target))
    }

    /// Attaches a link.
    pub(crate) fn attach(
        &mut self,
        guest: usize,
        session: SessionId,
        request: AttachRequest,
    ) -> LinkId {
        let link = self.guests[guest].client.attach(session, request).unwrap();
        self.run();
        link
    }

    /// Gives credit.
    pub(crate) fn grant(&mut self, guest: usize, link: LinkId, credit: u32) {
        self.guests[guest].client.grant(link, credit);
        self.run();
    }

    /// Sends a message as a whole.
    pub(crate) fn send(&mut self, guest: usize, link: LinkId, message: &[u8]) {
        let mut wire = self.guests[guest].client.outgoing(link).unwrap();
        assert!(wire.fits(message.len()), "there is no credit or no window");
        wire.send(0, false, 0, &[message]);
        self.run();
    }

    /// Sends a message in two frames at least.
    pub(crate) fn send_in_pieces(&mut self, guest: usize, link: LinkId, message: &[u8]) {
        let mut wire = self.guests[guest].client.outgoing(link).unwrap();
        let (first, rest) = message.split_at(message.len() / 2);
        wire.start_large(&Delivery::default(), first);
        wire.continue_large(rest, true);
        self.run();
    }

    /// Begins a message and gives it up.
    pub(crate) fn abort(&mut self, guest: usize, link: LinkId, beginning: &[u8]) {
        let mut wire = self.guests[guest].client.outgoing(link).unwrap();
        assert!(wire.capacity() > 0, "there is no credit or no window");
        wire.start_large(&Delivery::default(), beginning);
        assert!(wire.abort_large());
        self.run();
    }

    /// What has happened at a client since the last time.
    pub(crate) fn heard(&mut self, guest: usize) -> Vec<Event> {
        self.guests[guest].heard.drain(..).map(|seen| seen.event).collect()
    }

    /// The messages that have arrived at a client since the last time.
    pub(crate) fn received(&mut self, guest: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut bytes = Vec::new();
        for seen in self.guests[guest].heard.drain(..) {
            let Event::Transfer(transfer) = seen.event else { continue };
            bytes.extend_from_slice(&seen.payload);
            if !transfer.more {
                messages.push(Message::decode(&bytes).unwrap());
                bytes.clear();
            }
        }
        messages
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = self.now.after(ms);
        self.node.broker.handle_timeout(self.now).perform();
        self.run();
    }

    /// Moves bytes and serves those who are woken, until nothing moves any more.
    pub(crate) fn run(&mut self) {
        let mut moves = true;
        while moves {
            moves = false;
            for guest in &mut self.guests {
                moves |= guest.run(self.now, &mut self.scratch);
            }
        }
    }
}

impl Guest {
    fn run(&mut self, now: Now, scratch: &mut Scratch) -> bool {
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
        for key in std::mem::take(&mut *self.woken.0.lock().unwrap()) {
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

/// Large messages, kept in memory.
struct Files;

struct File(Vec<u8>);

impl LargeFiles for Files {
    fn create(&self) -> io::Result<Box<dyn LargeFile>> {
        Ok(Box::new(File(Vec::new())))
    }
}

impl LargeFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Arc<dyn LargeBody> {
        Arc::new(*self)
    }
}

impl LargeBody for File {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[offset as usize..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}
