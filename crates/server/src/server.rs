//! A broker in this process.

use crate::acceptor::Acceptor;
use crate::config::{Config, ConfigError};
use crate::counter::Counter;
use crate::data_directory::{DataDirectory, DataDirectoryError};
use crate::housekeeping::Housekeeping;
use crate::interface;
use crate::site::Site;
use crate::task::{Home, ServerId};
use crate::users::UsersError;
use crate::worker::{Command, Worker};
use mochila_broker::Broker;
use mochila_management::Logging;
use mochila_net::{Clock, Mailbox, Reactor, TcpListener, socket};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use tracing::info;

/// A running broker: listening sockets and worker threads.
///
/// ```
/// use mochila_server::{Config, Server};
///
/// let config = Config { port: 0, interfaces: vec!["127.0.0.1".into()], ..Config::default() };
/// let server = Server::start(config)?;
/// println!("connect to port {}", server.port());
/// server.stop();
/// # Ok::<(), mochila_server::ServerError>(())
/// ```
///
/// Dropping it stops it like [`Server::stop`].
pub struct Server {
    site: Arc<Site>,
    addresses: Vec<SocketAddr>,
    stopper: Stopper,
    workers: Vec<JoinHandle<()>>,
    /// Ours until the last worker has ended.
    _data_directory: Option<DataDirectory>,
}

/// Stops a server from anywhere, for example from a signal handler's thread.
#[derive(Clone)]
pub struct Stopper {
    /// The worker that accepts connections; it tells the others.
    first: Arc<Home>,
}

/// Why a broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
    /// The users file cannot be used.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// An address cannot be listened on.
    #[error("cannot listen on {what}: {}", of_listening(error))]
    Listen {
        /// The address, or the name of the interface.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no place for large messages.
    #[error("large messages cannot be kept in {place}: {error}")]
    LargeMessages {
        /// The directory, and whose it is.
        place: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system has no threads or descriptors left.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl Server {
    /// Starts a broker, which accepts connections when this returns.
    ///
    /// # Errors
    /// If the configuration is wrong, an address is in use, or the system refuses.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        config.check()?;
        let clock = Clock::new();
        let listeners = listen(&config)?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let server = ServerId(SERVERS.fetch_add(1, Ordering::Relaxed));
        let reactors = (0..config.worker_threads.max(1))
            .map(|_| Reactor::new(clock))
            .collect::<io::Result<Vec<_>>>()?;
        let data_directory = DataDirectory::of(&config)?;
        let site = Arc::new(Site::new(config, data_directory.as_ref(), clock.now())?);
        let homes: Vec<Arc<Home>> = reactors
            .iter()
            .enumerate()
            .map(|(worker, reactor)| {
                let waker = reactor.waker();
                // A wake-up fails only if the descriptor is gone, and with it the worker.
                let mailbox = Mailbox::new(move || drop(waker.wake()));
                Arc::new(Home { server, worker, mailbox, load: Counter::default() })
            })
            .collect();
        let mut acceptor = Some(Acceptor::new(Arc::clone(&site), homes.clone(), listeners));
        let mut workers = Vec::new();
        for (reactor, home) in reactors.into_iter().zip(&homes) {
            let mut worker = Worker::new(Arc::clone(&site), Arc::clone(home), reactor);
            if let Some(acceptor) = acceptor.take() {
                worker.accept_with(acceptor)?;
                Housekeeping::of(&site).into_iter().for_each(|it| worker.keep_house_with(it));
            }
            let name = format!("mochila-{}", home.worker);
            workers.push(thread::Builder::new().name(name).spawn(move || worker.run())?);
        }
        for address in &addresses {
            info!("listening on {address}");
        }
        let stopper = Stopper { first: Arc::clone(&homes[0]) };
        Ok(Self { site, addresses, stopper, workers, _data_directory: data_directory })
    }

    /// The addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.addresses[0].port()
    }

    /// Connections that exist, in whatever state.
    pub fn connections(&self) -> usize {
        self.site.connections.value()
    }

    /// The broker: its queues, and the memory that they share.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.site.node.broker
    }

    /// Lets operators ask what is logged, and change it.
    pub fn log_with(&self, logging: Arc<dyn Logging>) {
        self.site.node.management.log_with(logging);
    }

    /// What stops it from anywhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Closes all connections in an orderly way and returns when that is done.
    ///
    /// Peers are told with `amqp:connection:forced`; those that do not answer within some seconds are
    /// dropped.
    pub fn stop(self) {
        self.stopper.stop();
        self.wait();
    }

    /// Waits until somebody stops it.
    pub fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so already.
            let _ = worker.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper.stop();
        self.join();
    }
}

impl Stopper {
    /// Begins to stop the server, and returns at once.
    pub fn stop(&self) {
        self.first.mailbox.send(Command::Stop);
    }
}

/// Opens the listening sockets. If the system chooses the port it is the same on all interfaces.
fn listen(config: &Config) -> Result<Vec<TcpListener>, ServerError> {
    let backlog = config.connection_backlog;
    let failed = |what: &dyn std::fmt::Display| {
        let what = what.to_string();
        move |error| ServerError::Listen { what, error }
    };
    if config.interfaces.is_empty() {
        let listener = socket::listen_everywhere(config.port, backlog)
            .map_err(failed(&format_args!("port {}", config.port)))?;
        return Ok(vec![listener]);
    }
    let mut listeners: Vec<TcpListener> = Vec::new();
    for name in &config.interfaces {
        for mut address in interface::addresses(name, config.port).map_err(failed(name))? {
            if let (0, Some(first)) = (config.port, listeners.first()) {
                address.set_port(first.local_addr()?.port());
            }
            listeners.push(socket::listen(address, backlog).map_err(failed(&address))?);
        }
    }
    Ok(listeners)
}

/// What the system says, and what it means where that is always the same.
fn of_listening(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program, perhaps another broker, listens there; --port chooses another port"
                .into()
        }
        _ => error.to_string(),
    }
}

static SERVERS: AtomicUsize = AtomicUsize::new(0);
