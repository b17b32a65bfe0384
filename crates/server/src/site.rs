//! What all workers of a server share.

use crate::admission::Admission;
use crate::config::Config;
use crate::counter::Counter;
use crate::data_directory::DataDirectory;
use crate::large_files::Spill;
use crate::memory::Memory;
use crate::patterns;
use crate::server::ServerError;
use crate::task::{Home, Task, TaskWaker};
use crate::users::{Presence, Users, UsersError};
use crate::verifier::{Guest, Verifier};
use mochila_adaptor::{Connection, Node, Peer, Settings};
use mochila_broker::settings::Defaults;
use mochila_broker::{Broker, BrokerSettings, TransactionSettings};
use mochila_engine::ConnectionConfig;
use mochila_management::{Management, NodeFacts};
use mochila_store::SpillDirectory;
use mochila_wire::{Map, Now};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::{env, fs};
use tracing::{info, warn};

/// A server without its threads.
pub(crate) struct Site {
    pub(crate) config: Config,
    /// Queues, management, and how links are served.
    pub(crate) node: Arc<Node>,
    pub(crate) admission: Admission,
    pub(crate) verifier: Verifier,
    /// Connections that exist, in whatever state.
    pub(crate) connections: Counter,
    /// Connections whose handshake is not over.
    pub(crate) half_open: Counter,
    /// Handshakes that were ended to make room for others.
    pub(crate) evicted_handshakes: Counter,
}

/// Who a peer is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is this user.
    Is(String),
    /// It is not who it says.
    Wrong,
}

impl Site {
    pub(crate) fn new(
        config: Config,
        data_directory: Option<&DataDirectory>,
        now: Now,
    ) -> Result<Self, ServerError> {
        let users = users(&config)?.map(Arc::new);
        let name = format!("mochila-{:016x}", random());
        let admission = Admission::new(&config, users.clone(), engine(&config, &name));
        admission.log();
        let node = Arc::new(node(&config, data_directory, name, now)?);
        Ok(Self {
            verifier: Verifier::start(config.auth, users, Arc::clone(node.broker.rations()))?,
            node,
            admission,
            connections: Counter::default(),
            half_open: Counter::default(),
            evicted_handshakes: Counter::default(),
            config,
        })
    }

    /// The protocol's side of a connection that was just accepted.
    pub(crate) fn open(&self, address: SocketAddr, waker: Arc<TaskWaker>, now: Now) -> Connection {
        let engine = self.admission.for_peer(address.ip());
        let peer = Peer { address: address.to_string() };
        Connection::new(Arc::clone(&self.node), engine, peer, waker, now)
    }

    /// Finds out who a peer is, and tells the connection.
    pub(crate) fn judge(&self, now: Now, guest: Guest, task: &Weak<Task>) {
        self.verifier.judge(now, guest, task);
    }
}

/// The users, if it matters who they are and there is a place for their file.
fn users(config: &Config) -> Result<Option<Users>, UsersError> {
    let Some(path) = config.users_file().filter(|_| config.auth) else { return Ok(None) };
    let is_named = config.users_file.is_some();
    let presence = if is_named { Presence::Required } else { Presence::Optional };
    Users::new(path).remembered_by(config.users_mark()).open(presence).map(Some)
}

/// What every connection's engine is told.
fn engine(config: &Config, name: &str) -> ConnectionConfig {
    ConnectionConfig {
        max_frame_size: config.max_frame_size,
        idle_timeout_ms: u32::try_from(config.idle_timeout_ms).unwrap_or(u32::MAX),
        handshake_timeout_ms: config.max_negotiate_time_ms,
        incoming_window: config.session_window,
        properties: Map::new().with("product", "mochila").with("version", VERSION),
        ..ConnectionConfig::new(name)
    }
}

/// Queues, management, and how links are served.
fn node(
    config: &Config,
    data_directory: Option<&DataDirectory>,
    name: String,
    now: Now,
) -> Result<Node, ServerError> {
    let memory = Memory::read();
    let memory_limit_bytes = config.memory_limit_bytes.unwrap_or(memory.for_messages_bytes());
    let Memory { machine_bytes, group_bytes } = memory;
    info!(machine_bytes, group_bytes, "messages may take {memory_limit_bytes} bytes of memory");
    let there_is = group_bytes.unwrap_or(machine_bytes);
    if memory_limit_bytes > there_is {
        warn!(
            "memory-limit is more than the {there_is} bytes that there are: the system may end this broker"
        );
    }
    let patterns = patterns::of(config)?;
    let broker = Broker::new(BrokerSettings {
        memory_limit_bytes,
        defaults: Defaults {
            max_bytes: config.default_queue_limit_bytes,
            flow_stop_percent: config.default_flow_stop_threshold_percent.into(),
            flow_resume_percent: config.default_flow_resume_threshold_percent.into(),
            alert_percent: config.default_event_threshold_ratio_percent.into(),
            ingress_timestamp: config.enable_timestamp,
        },
        patterns: patterns.clone(),
        transactions: TransactionSettings {
            max_operations: config.max_transaction_operations,
            max_bytes: config.max_transaction_bytes,
            max_per_session: config.max_transactions,
            timeout_ms: config.transaction_timeout_ms,
        },
        max_queues: config.max_queues,
        max_exchanges: config.max_exchanges,
        seed: u128::from(random()) << 64 | u128::from(random()),
    });
    patterns::verify(&patterns, &broker)?;
    let facts = NodeFacts { name, version: VERSION.into(), worker_threads: config.worker_threads };
    Ok(Node {
        management: Management::new(Arc::clone(&broker), facts, now),
        broker,
        settings: settings(config),
        large_files: Arc::new(Spill(spill_directory(data_directory)?)),
    })
}

/// How links are served.
fn settings(config: &Config) -> Settings {
    Settings {
        max_unsettled: config.max_unsettled,
        unfinished_message_timeout_ms: config.unfinished_message_timeout_ms,
        steal_across_connections: config.steal_across_connections,
        strict_messages: config.strict_messages,
        verify_bodies: config.verify_bodies,
        // Without authentication nobody's name is known for certain.
        verify_user_id: config.auth && config.verify_user_id,
        ..Settings::default()
    }
}

/// Where large messages are kept: in the data directory, or in the system's temporary directory if
/// there is none. That one is not ours to make: a wrong `TMPDIR` is somebody's mistake.
fn spill_directory(data_directory: Option<&DataDirectory>) -> Result<SpillDirectory, ServerError> {
    let (path, whose) = match data_directory {
        Some(directory) => (directory.join("spill"), ""),
        None => (env::temp_dir(), ", the temporary directory (TMPDIR): there is no data directory"),
    };
    let made = if data_directory.is_some() { fs::create_dir_all(&path) } else { Ok(()) };
    made.and_then(|()| SpillDirectory::open(&path)).map_err(|error| {
        let place = format!("{}{whose}", path.display());
        ServerError::LargeMessages { place, error }
    })
}

/// A number that nobody can guess: the standard library seeds its hash maps with such.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A place among the connections of a server and of a worker; dropping it gives the place back.
pub(crate) struct Seat {
    site: Arc<Site>,
    home: Arc<Home>,
}

impl Seat {
    pub(crate) fn take(site: &Arc<Site>, home: &Arc<Home>) -> Self {
        site.connections.add(1);
        home.load.add(1);
        Self { site: Arc::clone(site), home: Arc::clone(home) }
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.site.connections.subtract(1);
        self.home.load.subtract(1);
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
