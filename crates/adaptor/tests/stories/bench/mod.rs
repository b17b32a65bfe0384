//! A node and its peers in virtual time: frames written by hand, and engines as clients.

mod client;
pub(crate) mod control;
mod files;
mod heard;
pub(crate) mod raw;
mod seat;

use mochila_adaptor::{Connection, Node, Peer, Scratch, Settings};
use mochila_broker::settings::QueueSettings;
use mochila_broker::{Broker, BrokerSettings, SharedQueue, Statistics};
use mochila_engine::{ConnectionConfig, Credentials};
use mochila_management::{Management, NodeFacts};
use mochila_wire::{Encode, Map, Message, Now};
use std::sync::Arc;

pub(crate) use client::{Got, Link};
pub(crate) use files::MemoryFiles;
pub(crate) use heard::Heard;
use seat::{End, Seat};

/// One node, the connections to it, and the time.
pub(crate) struct Bench {
    pub(crate) node: Arc<Node>,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) now: Now,
    engine: Arc<ConnectionConfig>,
    scratch: Scratch,
    seats: Vec<Seat>,
}

/// What a node is like.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) broker: BrokerSettings,
    pub(crate) engine: ConnectionConfig,
}

/// A peer whose frames the test writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw(usize);

/// A peer that is an engine, with one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client(usize);

impl Bench {
    /// A node as it comes.
    pub(crate) fn new() -> Bench {
        Bench::with(|_| {})
    }

    /// A node with a difference.
    pub(crate) fn with(change: impl FnOnce(&mut Setup)) -> Bench {
        let now = Now::new(1_000_000, 1_700_000_000_000);
        let mut setup = Setup {
            settings: Settings::default(),
            broker: BrokerSettings { seed: 4711, ..BrokerSettings::default() },
            engine: ConnectionConfig {
                properties: Map::new().with("product", "mochila"),
                ..ConnectionConfig::new("node")
            },
        };
        change(&mut setup);
        let broker = Broker::new(setup.broker);
        let facts = NodeFacts { name: "node".into(), version: "1".into(), worker_threads: 1 };
        let files = Arc::new(MemoryFiles::default());
        let node = Node {
            management: Management::new(Arc::clone(&broker), facts, now),
            broker,
            settings: setup.settings,
            large_files: Arc::clone(&files) as _,
        };
        Bench {
            node: Arc::new(node),
            files,
            now,
            engine: Arc::new(setup.engine),
            scratch: Scratch::new(),
            seats: Vec::new(),
        }
    }

    /// Somebody connects, and has said nothing yet.
    pub(crate) fn raw(&mut self) -> Raw {
        Raw(self.sit(End::Raw(Vec::new())))
    }

    /// A client connects anonymously, opens and begins a session.
    pub(crate) fn client(&mut self) -> Client {
        let name = format!("client-{}", self.seats.len());
        self.client_with(ConnectionConfig::new(name))
    }

    /// A client of this kind connects anonymously, opens and begins a session.
    pub(crate) fn client_with(&mut self, config: ConnectionConfig) -> Client {
        let end = client::ClientEnd::new(config, Credentials::Anonymous, self.now);
        let client = Client(self.sit(End::Client(Box::new(end))));
        self.run();
        self.begin(client);
        client
    }

    fn sit(&mut self, end: End) -> usize {
        let bell = Arc::new(seat::Bell::default());
        let peer = Peer { address: format!("10.0.0.1:{}", 40_000 + self.seats.len()) };
        let (node, engine) = (Arc::clone(&self.node), Arc::clone(&self.engine));
        let connection = Connection::new(node, engine, peer, Arc::clone(&bell) as _, self.now);
        self.seats.push(Seat::new(connection, bell, end));
        self.seats.len() - 1
    }

    /// Moves bytes and wakes until nothing moves any more.
    pub(crate) fn run(&mut self) {
        while self.run_once() {}
    }

    /// Visits every connection once; true if anything moved.
    pub(crate) fn run_once(&mut self) -> bool {
        let mut moved = false;
        for seat in &mut self.seats {
            moved |= seat.visit(self.now, &mut self.scratch);
        }
        moved
    }

    /// Lets time pass: deadlines are met when they come.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        let (mut at_ms, mut rounds) = (self.now.mono_ms, 0);
        loop {
            self.run();
            rounds = if self.now.mono_ms > at_ms { 0 } else { rounds + 1 };
            assert!(rounds < 1_000, "a deadline that has come stays where it is");
            at_ms = self.now.mono_ms;
            let own = self.node.broker.next_timeout_ms();
            let next = self.seats.iter().filter_map(Seat::next_timeout_ms).chain(own).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.after(next.saturating_sub(self.now.mono_ms));
            self.node.broker.handle_timeout(self.now).perform();
            for seat in &mut self.seats {
                seat.handle_timeout(self.now, &mut self.scratch);
            }
        }
        self.now = self.now.after(end - self.now.mono_ms);
    }

    /// The queue of this name.
    pub(crate) fn queue(&self, name: &str) -> Arc<SharedQueue> {
        self.node.broker.queue(name).unwrap_or_else(|| panic!("no queue '{name}'"))
    }

    /// Makes a queue.
    pub(crate) fn create(&self, name: &str, change: impl FnOnce(&mut QueueSettings)) {
        let mut settings = QueueSettings::default();
        change(&mut settings);
        self.node.broker.create(name, settings).expect("the settings make sense");
    }

    /// The numbers of a queue.
    pub(crate) fn numbers(&self, name: &str) -> Statistics {
        self.queue(name).statistics()
    }

    /// How many messages a queue holds.
    pub(crate) fn depth(&self, name: &str) -> u64 {
        self.numbers(name).msg_depth
    }

    /// The names of all queues, in order.
    pub(crate) fn queue_names(&self) -> Vec<String> {
        let queues = self.node.broker.queues();
        let mut names: Vec<_> = queues.iter().map(|queue| queue.name().to_owned()).collect();
        names.sort();
        names
    }

    /// Everybody hangs up.
    pub(crate) fn cut_all(&mut self) {
        for index in 0..self.seats.len() {
            self.cut_seat(index);
        }
        self.run();
    }

    /// Checks that nothing is left of anybody: no connection, no message, no memory, no file.
    pub(crate) fn expect_nothing_left(&mut self) {
        self.cut_all();
        assert_eq!(self.node.management.directory().len(), 0, "a connection is left");
        for queue in self.node.broker.queues() {
            let numbers = queue.statistics();
            let links = numbers.consumer_count + numbers.producer_count;
            assert_eq!(links, 0, "links of '{}' are left", queue.name());
            queue.purge(self.now, u64::MAX).1.perform();
            assert_eq!(queue.statistics().msg_depth, 0, "'{}' holds messages", queue.name());
            self.node.broker.delete(queue.name(), <_>::default()).expect("it is there").perform();
        }
        drop(std::mem::take(&mut self.scratch));
        assert_eq!(self.node.broker.budget().used(), 0, "memory is left");
        assert_eq!(self.files.count(), 0, "a file is left");
    }

    /// Frees what the bench itself keeps of peers that are gone; their places stay taken.
    pub(crate) fn forget_the_gone(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| seat.is_cut) {
            seat.end = End::Raw(Vec::new());
            seat.to_node = Vec::new();
        }
    }

    fn cut_seat(&mut self, index: usize) {
        self.seats[index].cut(self.now, &mut self.scratch);
    }
}

/// A message whose body is text.
pub(crate) fn text(body: &str) -> Message {
    Message::of_value(body)
}

/// An encoded message whose body is so many bytes, none of them like its neighbours.
pub(crate) fn bytes_of(len: usize) -> Vec<u8> {
    Message::of_data(pattern(len)).to_bytes()
}

/// So many bytes without a period that a frame could have.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}
