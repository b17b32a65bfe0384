//! Letting peers in.

use crate::handshake::{Handshakes, RetryAt};
use crate::peer::Peer;
use crate::site::{Seat, Site};
use crate::task::{Home, Task, TaskWaker};
use crate::worker::Command;
use mochila_broker::Remark;
use mochila_net::{Inbox, TcpListener, TcpStream, socket};
use mochila_wire::Now;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::warn;

/// Accepts connections and gives each to the worker with the fewest.
pub(crate) struct Acceptor {
    site: Arc<Site>,
    homes: Vec<Arc<Home>>,
    listeners: Vec<Listener>,
    handshakes: Handshakes,
}

struct Listener {
    socket: TcpListener,
    /// There may be connections to accept.
    ready: bool,
}

/// When the acceptor has to be asked again, although no listener became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Not before a listener becomes ready.
    WhenReady,
    /// As soon as others have had their turn.
    Soon,
    /// At this time.
    At(u64),
}

impl Acceptor {
    pub(crate) fn new(site: Arc<Site>, homes: Vec<Arc<Home>>, listeners: Vec<TcpListener>) -> Self {
        let listeners =
            listeners.into_iter().map(|socket| Listener { socket, ready: false }).collect();
        Self { site, homes, listeners, handshakes: Handshakes::default() }
    }

    /// The sockets to watch, in the order of their numbers.
    pub(crate) fn sockets(&mut self) -> impl Iterator<Item = &mut TcpListener> {
        self.listeners.iter_mut().map(|listener| &mut listener.socket)
    }

    /// A listener has become ready.
    pub(crate) fn handle_ready(&mut self, number: usize) {
        if let Some(listener) = self.listeners.get_mut(number) {
            listener.ready = true;
        }
    }

    /// Stops listening, and asks all workers to stop: no connection will come after that.
    pub(crate) fn close(&mut self) {
        self.listeners.clear();
        for home in &self.homes {
            home.mailbox.send(Command::Stop);
        }
    }

    /// Accepts what waits, but not so many that other connections wait for long.
    pub(crate) fn accept(&mut self, now: Now) -> Again {
        for _ in 0..BATCH {
            let Some(number) = self.listeners.iter().position(|listener| listener.ready) else {
                return Again::WhenReady;
            };
            if let Err(RetryAt(at_ms)) = self.handshakes.make_room(now.mono_ms, &self.site) {
                return Again::At(at_ms);
            }
            match socket::accept(&self.listeners[number].socket) {
                Ok(Some((stream, peer))) => self.admit(now, stream, peer),
                Ok(None) => self.listeners[number].ready = false,
                // The peer has hung up before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.complain(now, &format!("no connection can be accepted: {error}"));
                    return Again::At(now.mono_ms + PAUSE_MS);
                }
            }
        }
        Again::Soon
    }

    fn admit(&mut self, now: Now, stream: TcpStream, peer: SocketAddr) {
        let most = self.site.config.max_connections;
        if most > 0 && self.site.connections.value() >= most {
            self.complain(now, &format!("the limit of {most} connections is reached"));
            return;
        }
        let least = self.homes.iter().min_by_key(|home| home.load.value());
        let home = Arc::clone(least.expect("a server has workers"));
        let task = Arc::new_cyclic(|task| {
            let waker = Arc::new(TaskWaker(task.clone()));
            let connection = self.site.open(peer, waker, now);
            let seat = Seat::take(&self.site, &home);
            Task {
                inbox: Inbox::new(Peer::new(stream, peer, connection, task, seat)),
                home: Arc::clone(&home),
            }
        });
        task.inbox.with_state(|peer| self.handshakes.add(now.mono_ms, peer.handshake()));
        home.mailbox.send(Command::Adopt(task));
    }

    fn complain(&self, now: Now, what: &str) {
        if let Some(more) = self.site.node.broker.rations().take(Remark::ConnectionRefused, now) {
            warn!("{what}{more}");
        }
    }
}

/// Connections accepted in one go.
const BATCH: usize = 64;

/// How long to wait when the system has no descriptor left.
const PAUSE_MS: u64 = 100;
