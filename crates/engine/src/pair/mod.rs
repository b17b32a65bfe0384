//! Two ends of a connection and the virtual world between them, for tests.
//!
//! A [`Pair`] wires a client to a server and moves their bytes under a virtual clock, in one piece
//! or torn apart at random places. A [`RawPeer`] is an engine on one side and a test that writes
//! frames by hand on the other.

mod random;
mod raw;
mod seen;

use mochila_wire::performative::Role;
use mochila_wire::{Now, Source, Target};

pub use random::Random;
pub use raw::{RawPeer, Said};
use seen::Inbox;
pub use seen::Seen;

use crate::{
    AttachAnswer, AttachRequest, Connection, ConnectionConfig, Credentials, Event, LinkId,
    SessionId,
};

/// A client and a server on one virtual connection.
#[derive(Debug)]
pub struct Pair {
    /// The connecting end.
    pub client: Connection,
    /// The accepting end.
    pub server: Connection,
    now: Now,
    to_client: Inbox,
    to_server: Inbox,
    tear: Option<Random>,
}

/// One link, seen from both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Road {
    /// The client's end.
    pub client: LinkId,
    /// The server's end.
    pub server: LinkId,
}

impl Pair {
    /// A pair that has not exchanged anything yet.
    pub fn new(
        client: ConnectionConfig,
        credentials: Credentials,
        server: ConnectionConfig,
    ) -> Self {
        let now = Now::new(1_000_000, 1_700_000_000_000);
        Pair {
            client: Connection::client(client, credentials, now),
            server: Connection::server(server, now),
            now,
            to_client: Inbox::default(),
            to_server: Inbox::default(),
            tear: None,
        }
    }

    /// A pair whose connection is open, with the usual configuration.
    pub fn opened() -> Pair {
        Pair::opened_with(ConnectionConfig::new("client"), ConnectionConfig::new("server"))
    }

    /// A pair whose connection is open, with anonymous authentication.
    pub fn opened_with(client: ConnectionConfig, server: ConnectionConfig) -> Pair {
        let mut pair = Pair::new(client, Credentials::Anonymous, server);
        pair.run();
        assert!(pair.client.is_open() && pair.server.is_open(), "the handshake did not end");
        pair.client_events();
        pair.server_events();
        pair
    }

    /// Tears the bytes apart at random places from now on.
    #[must_use]
    pub fn torn(mut self, seed: u64) -> Pair {
        self.tear = Some(Random::new(seed));
        self
    }

    /// The virtual time.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Moves bytes to and fro until nothing moves any more; events are kept for
    /// [`client_events`](Pair::client_events) and [`server_events`](Pair::server_events).
    pub fn run(&mut self) {
        while self.run_once() {}
    }

    /// Moves what there is to the other side, once in each direction; true if anything moved.
    pub fn run_once(&mut self) -> bool {
        let to_server = self.carry_to_server();
        let to_client = self.carry_to_client();
        to_server || to_client
    }

    /// Moves the client's bytes to the server; true if anything moved.
    pub fn carry_to_server(&mut self) -> bool {
        self.to_server.bytes.append(self.client.output());
        let limit = Pair::limit(&mut self.tear, self.to_server.bytes.len());
        let torn = limit < self.to_server.bytes.len();
        self.to_server.deliver(&mut self.server, self.now, limit) || torn
    }

    /// Moves the server's bytes to the client; true if anything moved.
    pub fn carry_to_client(&mut self) -> bool {
        self.to_client.bytes.append(self.server.output());
        let limit = Pair::limit(&mut self.tear, self.to_client.bytes.len());
        let torn = limit < self.to_client.bytes.len();
        self.to_client.deliver(&mut self.client, self.now, limit) || torn
    }

    /// What has happened at the client since the last time.
    pub fn client_events(&mut self) -> Vec<Seen> {
        self.to_client.take_events(&mut self.client, 0);
        self.to_client.seen.drain(..).collect()
    }

    /// What has happened at the server since the last time.
    pub fn server_events(&mut self) -> Vec<Seen> {
        self.to_server.take_events(&mut self.server, 0);
        self.to_server.seen.drain(..).collect()
    }

    /// Lets time pass: deadlines are met when they come, and bytes move.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        loop {
            self.run();
            let deadlines = [self.client.next_timeout_ms(), self.server.next_timeout_ms()];
            let next = deadlines.into_iter().flatten().min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = self.now.after(next.saturating_sub(self.now.mono_ms));
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.now = self.now.after(end - self.now.mono_ms);
    }

    /// Lets time pass at the server alone, while the client does nothing: it is as if frozen.
    pub fn advance_server(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        while let Some(next) = self.server.next_timeout_ms().filter(|next| *next <= end) {
            self.now = self.now.after(next.saturating_sub(self.now.mono_ms));
            self.server.handle_timeout(self.now);
        }
        self.now = self.now.after(end - self.now.mono_ms);
    }

    /// Cuts the wire: both ends see the other hang up.
    pub fn cut(&mut self) {
        self.client.handle_eof(self.now);
        self.server.handle_eof(self.now);
    }

    /// Begins a session from the client's side: its id there, and its id at the server.
    ///
    /// # Panics
    /// If the server does not take it; events before it are lost.
    pub fn session(&mut self) -> (SessionId, SessionId) {
        let ours = self.client.begin().expect("the connection is open");
        self.run();
        let theirs = self.server_events().into_iter().find_map(|seen| match seen.event {
            Event::Begun { session } => Some(session),
            _ => None,
        });
        self.client_events();
        (ours, theirs.expect("the server takes the session"))
    }

    /// Attaches a link on which the client sends, granted as asked.
    pub fn client_sends(&mut self, session: SessionId, name: &str) -> Road {
        let source = Source::default();
        let request = AttachRequest::sender(name, source, Target::at(name).into());
        self.attach(session, request)
    }

    /// Attaches a link on which the client receives, granted as asked.
    pub fn client_receives(&mut self, session: SessionId, name: &str) -> Road {
        let source = Source::at(name);
        let request = AttachRequest::receiver(name, source, Target::default().into());
        self.attach(session, request)
    }

    /// Attaches a link from the client's side, granted as asked.
    ///
    /// # Panics
    /// If it cannot be; events before it are lost.
    pub fn attach(&mut self, session: SessionId, request: AttachRequest) -> Road {
        let client = self.client.attach(session, request).expect("the session takes a link");
        self.run();
        let asked = self.server_events().into_iter().find_map(|seen| match seen.event {
            Event::Attached { link, peer } => Some((link, peer)),
            _ => None,
        });
        let (server, peer) = asked.expect("the server is asked for the link");
        self.server.answer_attach(server, AttachAnswer::echo(&peer));
        self.run();
        self.client_events();
        Road { client, server }
    }

    /// Grants credit from whichever end receives, and lets the other see it.
    pub fn grant(&mut self, road: Road, credit: u32) {
        let client_receives =
            self.client.link(road.client).is_some_and(|link| link.role() == Role::Receiver);
        if client_receives {
            self.client.grant(road.client, credit);
        } else {
            self.server.grant(road.server, credit);
        }
        self.run();
        self.client_events();
        self.server_events();
    }

    fn limit(tear: &mut Option<Random>, available: usize) -> usize {
        match tear {
            Some(random) => random.below(available + 1).max(available.min(1)),
            None => available,
        }
    }
}
