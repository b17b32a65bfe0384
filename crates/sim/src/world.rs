//! A broker and its clients, in one thread and in virtual time.

mod actor;
mod finish;
mod rest;

use std::sync::Arc;

use mochila_adaptor::{Connection, Node, Peer as Origin, Settings};
use mochila_broker::settings::{Defaults, LimitPolicy};
use mochila_broker::{Broker, BrokerSettings, QueueSettings, TransactionSettings};
use mochila_engine::pair::Random;
use mochila_engine::{ConnectionConfig, Mechanism};
use mochila_management::{Management, NodeFacts};
use mochila_wire::{Now, Symbol};

use crate::cable::Cable;
use crate::client::{Client, ClientPlan, Scene, TRANSACTION_TIMEOUT_MS};
use crate::disk::Disk;
use crate::ledger::{Ledger, Tally};
use crate::number::ConnectionNo;
use crate::peer::Peer;
use crate::switchboard::{SimWaker, Switchboard};
use crate::weather::Weather;
use crate::worker::Worker;

/// Everything that there is, made from one seed: the same seed gives the same run.
pub struct World {
    now: Now,
    random: Random,
    node: Arc<Node>,
    config: Arc<ConnectionConfig>,
    disk: Arc<Disk>,
    board: Arc<Switchboard>,
    workers: Vec<Worker>,
    peers: Vec<Option<Peer>>,
    cables: Vec<Cable>,
    /// The connections of which at least one end is there.
    live: Vec<ConnectionNo>,
    clients: Vec<Client>,
    ledger: Ledger,
    /// Queues at which somebody looks whenever they have changed.
    watched: Vec<String>,
    /// Passwords that are being verified: until when, whose, and whether it is right.
    verdicts: Vec<(u64, ConnectionNo, bool)>,
    /// Who could go on when somebody last did; kept for its memory.
    actors: Vec<actor::Actor>,
    steps: u64,
    /// A digest of all that happened.
    digest: u64,
    is_traced: bool,
}

/// What a broker is like.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    /// Threads that serve connections.
    pub workers: usize,
    /// What all messages together may take; 0 for anything.
    pub memory_bytes: u64,
    /// The credit that senders get.
    pub credit_window: u32,
    /// From this size on messages go to files.
    pub large_message_bytes: usize,
    /// The largest message that is taken; 0 for any.
    pub max_message_bytes: u64,
    /// So many of a hundred operations on files fail.
    pub disk_failures: u32,
    /// What queues are like whose settings do not say.
    pub defaults: Defaults,
}

impl WorldPlan {
    /// A broker of any kind.
    pub fn any(random: &mut Random) -> WorldPlan {
        WorldPlan {
            workers: random.between(1, 4) as usize,
            memory_bytes: 0,
            credit_window: *random.pick(&[2, 10, 1_000]),
            large_message_bytes: *random.pick(&[2_000, 10_000, 1 << 20]),
            max_message_bytes: 0,
            disk_failures: 0,
            defaults: Defaults::default(),
        }
    }
}

impl World {
    /// A broker of any kind, and nobody who uses it.
    pub fn new(seed: u64) -> World {
        World::with(seed, |_| {})
    }

    /// A broker that is partly determined.
    pub fn with(seed: u64, adjust: impl FnOnce(&mut WorldPlan)) -> World {
        let mut random = Random::new(seed);
        let mut plan = WorldPlan::any(&mut random);
        adjust(&mut plan);
        let now = Now::new(1_000_000, 1_700_000_000_000);
        let disk = Disk::new(seed, plan.disk_failures);
        let node = node(seed, &plan, &disk, now, &mut random);
        let config = ConnectionConfig {
            max_frame_size: *random.pick(&[512, 4_096, 65_536]),
            incoming_window: *random.pick(&[1, 5, 8_192]),
            initial_outgoing_id: *random.pick(&[0, u32::MAX - 5]),
            idle_timeout_ms: 30_000,
            sasl_mechanisms: vec![Mechanism::Anonymous, Mechanism::Plain],
            ..ConnectionConfig::new("broker")
        };
        World {
            now,
            workers: (0..plan.workers).map(|_| Worker::default()).collect(),
            node,
            config: Arc::new(config),
            disk,
            board: Arc::default(),
            peers: Vec::new(),
            cables: Vec::new(),
            live: Vec::new(),
            clients: Vec::new(),
            ledger: Ledger::new(plan.memory_bytes > 0),
            watched: Vec::new(),
            verdicts: Vec::new(),
            actors: Vec::new(),
            steps: 0,
            digest: seed,
            is_traced: std::env::var_os("SIM_TRACE").is_some(),
            random,
        }
    }

    /// The source of everything that is left to chance.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Makes a queue. If it is of a kind of its own, somebody looks at it all the time, or nobody.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn queue(&mut self, name: &str, settings: QueueSettings) {
        self.ledger.rules(name).arrange(&settings);
        let is_special = settings.arranges() || settings.limit_policy == LimitPolicy::Ring;
        if is_special && self.random.chance(50) {
            self.watched.push(name.to_owned());
        }
        let made = self.node.broker.create(name, settings);
        made.unwrap_or_else(|error| panic!("queue {name} cannot be made: {error}"));
    }

    /// The queue may refuse messages: it has limits, or the node has.
    pub fn may_refuse(&mut self, queue: &str) {
        self.ledger.rules(queue).let_refuse();
    }

    /// The queue may forget messages: it is purged or deleted.
    pub fn may_forget(&mut self, queue: &str) {
        let rules = self.ledger.rules(queue);
        rules.forgets = true;
        rules.let_refuse();
    }

    /// The queue may be deleted when nothing is in it, and made again.
    pub fn may_restart(&mut self, queue: &str) {
        self.ledger.rules(queue).restarts = true;
    }

    /// Links may get errors of this condition.
    pub fn forgive(&mut self, condition: Symbol) {
        self.ledger.forgive(condition);
    }

    /// Adds a client, which connects soon.
    pub fn client(&mut self, plan: ClientPlan) {
        for receiver in &plan.receivers {
            let Some(queue) = &receiver.queue else { continue };
            if receiver.settled && plan.mishaps.lose_what_is_under_way() {
                self.ledger.settled_deliveries_may_be_lost(queue);
            }
            let rules = self.ledger.rules(queue);
            rules.counts_unseen |= receiver.fails_by_default;
            rules.is_choosy |= receiver.is_choosy();
        }
        let name = format!("c{}", self.clients.len());
        self.clients.push(Client::new(&name, plan, self.now, &mut self.random));
    }

    /// How much has happened.
    pub fn tally(&self) -> Tally {
        Tally { digest: self.digest, ..self.ledger.tally }
    }

    /// How many messages each browser has been shown.
    pub fn browsed(&self) -> Vec<usize> {
        self.clients.iter().flat_map(Client::browsed).collect()
    }

    /// How many senders have messages left to send.
    pub fn unfinished(&self) -> usize {
        self.clients.iter().map(Client::unfinished).sum()
    }

    /// The broker's numbers of a queue.
    pub fn statistics(&self, queue: &str) -> Option<mochila_broker::Statistics> {
        self.node.broker.queue(queue).map(|queue| queue.statistics())
    }

    /// Lays a cable to the broker, which accepts the connection.
    fn lay_cable(&mut self) -> ConnectionNo {
        let no = ConnectionNo(self.cables.len());
        let weather = Weather::any(&mut self.random);
        self.cables.push(Cable::new(weather));
        self.board.add();
        self.ledger.open_account();
        let waker = Arc::new(SimWaker { board: Arc::clone(&self.board), no });
        let origin = Origin { address: format!("client:{}", no.0) };
        let node = Arc::clone(&self.node);
        let connection = Connection::new(node, Arc::clone(&self.config), origin, waker, self.now);
        self.peers.push(Some(Peer::new(connection, MOST_UNSENT)));
        self.live.push(no);
        no
    }

    /// A client does something.
    fn with_client(&mut self, index: usize, act: impl FnOnce(&mut Client, &mut Scene<'_>)) {
        self.ledger.clock(self.now.mono_ms);
        let mut scene = Scene {
            now: self.now,
            random: &mut self.random,
            ledger: &mut self.ledger,
            cables: &mut self.cables,
        };
        act(&mut self.clients[index], &mut scene);
    }
}

fn node(seed: u64, plan: &WorldPlan, disk: &Arc<Disk>, now: Now, random: &mut Random) -> Arc<Node> {
    let settings = BrokerSettings {
        memory_limit_bytes: plan.memory_bytes,
        defaults: plan.defaults,
        seed: u128::from(seed),
        transactions: TransactionSettings {
            timeout_ms: TRANSACTION_TIMEOUT_MS,
            ..TransactionSettings::default()
        },
        ..BrokerSettings::default()
    };
    let broker = Broker::new(settings);
    let management = Management::new(Arc::clone(&broker), NodeFacts::default(), now);
    let settings = Settings {
        credit_window: plan.credit_window,
        output_limit: *random.pick(&[600, 4_096, 65_536]),
        large_message_bytes: plan.large_message_bytes,
        max_unsettled: *random.pick(&[1, 10, 1_000_000]),
        steal_across_connections: random.chance(50),
        ..Settings::default()
    };
    let large_files = Arc::clone(disk) as Arc<dyn mochila_adaptor::LargeFiles>;
    Arc::new(Node { broker, management, settings, large_files })
}

/// How much output may wait for a socket before nothing more is read.
const MOST_UNSENT: usize = 16 * 1024;
