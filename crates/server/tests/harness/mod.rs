//! A server on a port of its own, and clients that talk to it over real sockets.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test code of which each test file uses its own part"
)]

use mochila_engine::{
    AttachRequest, Connection, ConnectionConfig, Credentials, Event, LinkId, Secret, SessionId,
};
use mochila_net::Clock;
use mochila_server::{Config, Server};
use mochila_wire::{AmqpError, DeliveryState, Encode, Message, Source, Target};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// A configuration that needs nothing from the machine: any port, loopback, no directory.
pub fn config() -> Config {
    Config {
        port: 0,
        interfaces: vec!["127.0.0.1".into()],
        no_data_dir: true,
        worker_threads: 3,
        ..Config::default()
    }
}

pub fn start() -> Server {
    start_with(config())
}

pub fn start_with(config: Config) -> Server {
    Server::start(config).unwrap()
}

/// A bare socket to a server.
pub fn socket(server: &Server) -> TcpStream {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Waits until something becomes true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not come true");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An AMQP client that does one thing at a time.
pub struct Client {
    pub socket: TcpStream,
    pub engine: Connection,
    clock: Clock,
    received: Vec<u8>,
    /// Bytes of the delivery that is arriving.
    arriving: Vec<u8>,
    /// What has arrived and was not asked for yet.
    pub deliveries: Vec<Delivery>,
    pub events: Vec<Event>,
    is_hung_up: bool,
}

pub struct Delivery {
    pub link: LinkId,
    pub session: SessionId,
    pub id: u32,
    pub settled: bool,
    pub bytes: Vec<u8>,
}

impl Delivery {
    pub fn text(&self) -> String {
        let message = Message::decode(&self.bytes).unwrap();
        String::from_utf8(message.body.content().unwrap()).unwrap()
    }
}

impl Client {
    /// Connects without SASL, and waits for the server's open.
    pub fn connect(server: &Server) -> Self {
        Self::connect_as(server, Credentials::NoSasl).expect("everybody on this machine is let in")
    }

    /// Connects and waits for the server's open, or for its refusal.
    pub fn connect_as(server: &Server, credentials: Credentials) -> Result<Self, String> {
        let mut client = Self::greet(server, credentials);
        client.run_until(|client| client.engine.is_open() || client.closed().is_some());
        match client.closed() {
            None => Ok(client),
            Some(error) => Err(error.map_or_else(String::new, |error| error.to_string())),
        }
    }

    /// Connects, and waits for nothing.
    pub fn greet(server: &Server, credentials: Credentials) -> Self {
        let clock = Clock::new();
        let config = ConnectionConfig::new("client");
        Self {
            socket: socket(server),
            engine: Connection::client(config, credentials, clock.now()),
            clock,
            received: Vec::new(),
            arriving: Vec::new(),
            deliveries: Vec::new(),
            events: Vec::new(),
            is_hung_up: false,
        }
    }

    pub fn plain(user: &str, password: &str) -> Credentials {
        Credentials::Plain { user: user.into(), password: Secret::new(password) }
    }

    /// Begins a session and waits for it.
    pub fn begin(&mut self) -> SessionId {
        let session = self.engine.begin().unwrap();
        self.run_until(|client| {
            client.saw(|event| matches!(event, Event::Begun { session: s } if *s == session))
        });
        session
    }

    /// Attaches a sender to an address and waits for credit.
    pub fn sender(&mut self, address: &str) -> LinkId {
        let session = self.begin();
        let request = AttachRequest::sender(
            format!("to-{address}"),
            Source::default(),
            Target::at(address).into(),
        );
        let link = self.engine.attach(session, request).unwrap();
        self.run_until(|client| client.engine.link(link).is_some_and(|link| link.credit() > 0));
        link
    }

    /// Attaches a receiver to an address, waits for the answer, and grants credit.
    pub fn receiver(&mut self, address: &str, credit: u32) -> LinkId {
        let session = self.begin();
        let request = AttachRequest::receiver(
            format!("from-{address}"),
            Source::at(address),
            Target::default().into(),
        );
        let link = self.engine.attach(session, request).unwrap();
        self.run_until(|client| {
            client
                .saw(|event| matches!(event, Event::AttachConfirmed { link: l, .. } if *l == link))
        });
        self.engine.grant(link, credit);
        self.flush();
        link
    }

    /// Sends a text as soon as there is credit; does not wait for its outcome.
    pub fn send(&mut self, link: LinkId, text: &str) {
        let mut bytes = Vec::new();
        Message::of_data(text.as_bytes()).encode(&mut bytes);
        self.send_bytes(link, &bytes);
    }

    pub fn send_bytes(&mut self, link: LinkId, message: &[u8]) {
        self.run_until(|client| {
            client.engine.outgoing(link).is_some_and(|mut out| out.capacity() > 0)
        });
        self.engine.outgoing(link).unwrap().send(0, false, 0, &[message]);
        self.flush();
    }

    /// Waits until all that was sent is accepted.
    pub fn wait_for_outcomes(&mut self, link: LinkId) {
        self.run_until(|client| client.engine.link(link).is_some_and(|link| link.unsettled() == 0));
    }

    /// Waits for a delivery and accepts it.
    pub fn receive(&mut self) -> Delivery {
        self.run_until(|client| !client.deliveries.is_empty());
        let delivery = self.deliveries.remove(0);
        if !delivery.settled {
            let Delivery { session, id, .. } = delivery;
            self.engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
            self.flush();
        }
        delivery
    }

    /// How the connection ended, once it has.
    pub fn closed(&self) -> Option<Option<AmqpError>> {
        self.events.iter().find_map(|event| match event {
            Event::Closed { error, .. } => Some(error.as_deref().cloned()),
            _ => None,
        })
    }

    /// Closes the connection and waits for the server's close.
    pub fn close(mut self) {
        self.engine.close(None);
        self.run_until(|client| client.closed().is_some());
    }

    pub fn saw(&self, what: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(what)
    }

    /// Reads and writes until something is true.
    pub fn run_until(&mut self, is_true: impl Fn(&mut Self) -> bool) {
        let begin = Instant::now();
        self.flush();
        while !is_true(self) {
            assert!(begin.elapsed() < PATIENCE, "waited in vain; events: {:?}", self.events);
            assert!(!self.is_hung_up, "the server hung up; events: {:?}", self.events);
            self.read();
            self.flush();
        }
    }

    /// Reads and writes for some time, whatever happens.
    pub fn run_for(&mut self, time: Duration) {
        let begin = Instant::now();
        self.socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        while begin.elapsed() < time && !self.is_hung_up {
            self.read();
            self.flush();
        }
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }

    pub fn flush(&mut self) {
        let output = std::mem::take(self.engine.output());
        // A server that has hung up is noticed by reading.
        let _ = self.socket.write_all(&output);
    }

    fn read(&mut self) {
        let mut buffer = vec![0; 256 << 10];
        match self.socket.read(&mut buffer) {
            Ok(0) => {
                self.is_hung_up = true;
                self.engine.handle_eof(self.clock.now());
            }
            Ok(read) => self.received.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => {
                self.is_hung_up = true;
                self.engine.handle_eof(self.clock.now());
            }
        }
        let received = std::mem::take(&mut self.received);
        let mut used = 0;
        loop {
            let bytes = &received[used..];
            let handled = self.engine.handle_bytes(self.clock.now(), bytes);
            while let Some(event) = self.engine.poll_event() {
                self.note(event, bytes);
            }
            used += handled;
            if handled == 0 {
                break;
            }
        }
        self.received = received[used..].to_vec();
    }

    fn note(&mut self, event: Event, bytes: &[u8]) {
        if let Event::Disposition { session, first, last, .. } = &event {
            self.engine.resolve_outgoing(*session, *first, *last, true, &mut |_, _, _| {});
        }
        let Event::Transfer(transfer) = event else {
            self.events.push(event);
            return;
        };
        self.arriving.extend_from_slice(&bytes[transfer.payload()]);
        if !transfer.more {
            self.deliveries.push(Delivery {
                link: transfer.link,
                session: transfer.session,
                id: transfer.delivery_id,
                settled: transfer.settled,
                bytes: std::mem::take(&mut self.arriving),
            });
        }
    }
}

/// How long anything may take, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(20);
