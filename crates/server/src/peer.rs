//! One connection's socket, and the protocol behind it.

mod linger;
mod unsent;

use crate::desk::Desk;
use crate::handshake::Handshake;
use crate::site::{Seat, Verdict};
use crate::task::{Eviction, Home, Posted, Task};
use crate::verifier::Guest;
use crate::worker::{Command, Watched};
use linger::Linger;
use mochila_adaptor::Connection;
use mochila_broker::Remark;
use mochila_net::{Key, Reactor, TcpStream, Visit};
use mochila_wire::{AmqpError, condition};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use tracing::{debug, error};
use unsent::Unsent;

/// The state of a connection, worked on by whichever thread has its turn.
///
/// A visit costs one read and one write: it reads what the socket holds into the desk's buffer, lets
/// the protocol handle it, takes what queues have for the peer, and writes all output at once. An
/// idle connection owns no buffer.
///
/// ```text
///  Talking ──closed, all sent──▶ Lingering ──peer is gone, or time is up──▶ Gone
///     └──────── socket failed, evicted, or this server's fault ─────────────▲
/// ```
pub(crate) struct Peer {
    phase: Phase,
    address: SocketAddr,
    task: Weak<Task>,
    seat: Seat,
    /// Its place in the home worker's reactor, once it is there.
    key: Option<Key>,
    /// When the reactor will report the deadline; that may be before it is due.
    scheduled_ms: Option<u64>,
    /// There may be something to read.
    readable: bool,
    /// The peer sends no more: what there is to read has an end.
    read_closed: bool,
    /// What was read but not handled: the beginning of a frame whose end has not arrived.
    unhandled: Vec<u8>,
    unsent: Unsent,
    /// Present until the handshake is over.
    handshake: Option<Arc<Handshake>>,
    /// The peer's password is being verified; nothing is read until the answer is there.
    is_judged: bool,
    /// How long a socket that is full is waited for although the connection is over.
    last_words_until_ms: Option<u64>,
}

enum Phase {
    Talking { socket: TcpStream, connection: Box<Connection> },
    Lingering { socket: TcpStream, linger: Linger },
    Gone,
}

/// What came of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// The connection goes on.
    Open,
    /// The peer has hung up, or the network has failed.
    Lost,
}

/// What came of an exchange with the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    /// Everything that could be sent was.
    Complete,
    /// There is more to send than one visit may.
    More,
    /// The peer has hung up, or the network has failed.
    Lost,
}

impl Peer {
    pub(crate) fn new(
        socket: TcpStream,
        address: SocketAddr,
        connection: Connection,
        task: &Weak<Task>,
        seat: Seat,
    ) -> Self {
        Self {
            phase: Phase::Talking { socket, connection: Box::new(connection) },
            address,
            handshake: Some(Handshake::begin(seat.site(), task)),
            task: Weak::clone(task),
            seat,
            key: None,
            scheduled_ms: None,
            readable: false,
            read_closed: false,
            unhandled: Vec::new(),
            unsent: Unsent::default(),
            is_judged: false,
            last_words_until_ms: None,
        }
    }

    /// The worker that the socket reports to.
    pub(crate) fn home(&self) -> &Arc<Home> {
        self.seat.home()
    }

    /// The handshake, if it is not over.
    pub(crate) fn handshake(&self) -> Option<&Arc<Handshake>> {
        self.handshake.as_ref()
    }

    /// Lets the home worker's reactor watch the socket.
    pub(crate) fn settle_in(&mut self, key: Key, reactor: &Reactor<Watched>) -> io::Result<()> {
        self.key = Some(key);
        match &mut self.phase {
            Phase::Talking { socket, .. } | Phase::Lingering { socket, .. } => {
                reactor.watch(key, socket)
            }
            Phase::Gone => Ok(()),
        }
    }

    /// Does what there is to do; a fault of this program ends this connection and no other.
    pub(crate) fn visit(
        &mut self,
        posted: &mut Posted,
        desk: &mut Desk,
        reactor: &mut Reactor<Watched>,
    ) -> Visit {
        let attempt = panic::catch_unwind(AssertUnwindSafe(|| self.work(posted, desk)));
        let visit = attempt.unwrap_or_else(|_| {
            let rations = self.seat.site().node.broker.rations();
            if let Some(more) = rations.take(Remark::Fault, desk.now) {
                error!(peer = %self.address, "a fault of the broker ends this connection{more}");
            }
            desk.reset();
            self.abandon(desk);
            Visit::Done
        });
        self.schedule(desk, reactor);
        visit
    }

    fn work(&mut self, posted: &mut Posted, desk: &mut Desk) -> Visit {
        self.readable |= posted.readable;
        self.read_closed |= posted.read_closed;
        if posted.due {
            self.scheduled_ms = None;
        }
        if let Some(why) = posted.evict {
            self.evict(why, desk);
        }
        match &mut self.phase {
            Phase::Talking { .. } => {
                let exchange = self.exchange(posted, desk);
                self.after_exchange(exchange, desk)
            }
            Phase::Lingering { socket, linger } => {
                if linger.is_over(socket, desk) {
                    self.leave();
                }
                Visit::Done
            }
            Phase::Gone => Visit::Done,
        }
    }

    /// Handles the news and whatever the socket holds, and answers.
    fn exchange(&mut self, posted: &mut Posted, desk: &mut Desk) -> Exchange {
        let can_read = self.can_read();
        let Phase::Talking { socket, connection } = &mut self.phase else { return Exchange::Lost };
        let now = desk.now;
        std::mem::swap(connection.output(), &mut desk.output);
        if posted.stop {
            let text = "the broker is being stopped";
            connection.close(Some(AmqpError::new(condition::CONNECTION_FORCED, text)));
        }
        if posted.due && connection.next_timeout_ms().is_some_and(|at_ms| at_ms <= now.mono_ms) {
            connection.handle_timeout(now, &mut desk.scratch);
        }
        for key in posted.wakes.drain(..) {
            connection.handle_wake(now, key, &mut desk.scratch);
        }
        let mut traffic = Traffic::Open;
        if posted.writable && !self.unsent.is_empty() {
            traffic = self.unsent.flush(socket);
        }
        if let Some(verdict) = posted.verdict.take() {
            self.is_judged = false;
            verdict.tell(connection);
            handle(connection, &mut self.unhandled, 0, desk);
        } else if can_read && traffic == Traffic::Open {
            let end = read(socket, connection, &mut self.unhandled, desk);
            self.readable = end == ReadEnd::Full || self.read_closed;
            if end == ReadEnd::Lost {
                traffic = Traffic::Lost;
            }
        }
        let more = self.unsent.is_empty() && connection.pump(now, &mut desk.scratch);
        std::mem::swap(connection.output(), &mut desk.output);
        if traffic == Traffic::Open {
            traffic = self.unsent.send(socket, &desk.output);
        }
        desk.clear_output();
        if !self.unsent.is_empty() {
            connection.stand_back(now, &mut desk.scratch);
        }
        connection.finish_visit(&mut desk.scratch);
        match traffic {
            Traffic::Lost => Exchange::Lost,
            Traffic::Open if more => Exchange::More,
            Traffic::Open => Exchange::Complete,
        }
    }

    /// Notices what an exchange has made of the connection.
    fn after_exchange(&mut self, exchange: Exchange, desk: &mut Desk) -> Visit {
        if exchange == Exchange::Lost {
            self.lose(desk);
        }
        let Phase::Talking { connection, .. } = &mut self.phase else { return Visit::Done };
        if let Some(credentials) = connection.take_credentials() {
            self.is_judged = true;
            let guest = Guest { peer: self.address, credentials: *credentials };
            self.seat.site().judge(desk.now, guest, &self.task);
        }
        if self.handshake.is_some() && connection.is_open() {
            self.handshake = None;
        }
        if connection.has_said_all() {
            if self.unsent.is_empty() {
                self.linger(desk);
                return Visit::Again;
            }
            let now_ms = desk.now.mono_ms;
            let until_ms = *self.last_words_until_ms.get_or_insert(now_ms + LAST_WORDS_MS);
            if now_ms >= until_ms {
                debug!(peer = %self.address, "the peer does not read how the connection ended");
                self.lose(desk);
                return Visit::Done;
            }
        }
        let can_pump = exchange == Exchange::More && self.unsent.is_empty();
        if self.can_read() || can_pump { Visit::Again } else { Visit::Done }
    }

    fn can_read(&self) -> bool {
        self.readable && !self.is_judged && self.unsent.len() < MAX_UNSENT_BYTES
    }

    /// Ends the connection because nothing can be read or written any more.
    fn lose(&mut self, desk: &mut Desk) {
        if let Phase::Talking { connection, .. } = &mut self.phase {
            connection.handle_eof(desk.now, &mut desk.scratch);
            connection.finish_visit(&mut desk.scratch);
        }
        self.leave();
    }

    /// Ends the connection in the middle of whatever it does.
    fn evict(&mut self, why: Eviction, desk: &mut Desk) {
        if why == Eviction::HalfOpen && self.handshake.is_none() {
            // It has finished its handshake in the meantime.
            return;
        }
        debug!(peer = %self.address, ?why, "connection evicted");
        self.lose(desk);
    }

    /// Ends the connection after a fault, and tries to give back what it holds of queues. If that
    /// fails too, it is better to lose the memory than the worker.
    fn abandon(&mut self, desk: &mut Desk) {
        let attempt = panic::catch_unwind(AssertUnwindSafe(|| self.lose(desk)));
        if attempt.is_err() {
            desk.reset();
            std::mem::forget(std::mem::replace(&mut self.phase, Phase::Gone));
            self.leave();
        }
    }

    /// Everything is said: waits for the peer to hang up.
    fn linger(&mut self, desk: &mut Desk) {
        let Phase::Talking { socket, mut connection } =
            std::mem::replace(&mut self.phase, Phase::Gone)
        else {
            return;
        };
        connection.handle_eof(desk.now, &mut desk.scratch);
        connection.finish_visit(&mut desk.scratch);
        let linger = Linger::begin(&socket, desk.now.mono_ms);
        self.phase = Phase::Lingering { socket, linger };
        self.handshake = None;
    }

    /// Gives back everything that the connection has.
    fn leave(&mut self) {
        self.phase = Phase::Gone;
        self.unhandled = Vec::new();
        self.unsent = Unsent::default();
        self.handshake = None;
    }

    /// Tells the home worker when to look again, or that there is nothing left to look at.
    fn schedule(&mut self, desk: &Desk, reactor: &mut Reactor<Watched>) {
        let Some(key) = self.key else { return };
        let at_home = desk.worker == self.home().worker;
        let due_ms = match &self.phase {
            Phase::Talking { connection, .. } => {
                connection.next_timeout_ms().into_iter().chain(self.last_words_until_ms).min()
            }
            Phase::Lingering { linger, .. } => Some(linger.until_ms()),
            Phase::Gone => {
                self.key = None;
                if at_home {
                    reactor.remove(key);
                } else {
                    self.home().mailbox.send(Command::Remove(key));
                }
                return;
            }
        };
        // A deadline that has moved back is left alone: when it is reported it is not due yet, and is
        // set anew. So a busy connection does not touch it.
        let Some(due_ms) = due_ms else { return };
        if self.scheduled_ms.is_some_and(|scheduled_ms| scheduled_ms <= due_ms) {
            return;
        }
        self.scheduled_ms = Some(due_ms);
        if at_home {
            reactor.set_deadline(key, Some(due_ms));
        } else {
            self.home().mailbox.send(Command::Deadline(key, due_ms));
        }
    }
}

impl Verdict {
    fn tell(self, connection: &mut Connection) {
        match self {
            Self::Is(identity) => connection.authenticated(identity),
            Self::Wrong => connection.refuse_credentials(),
        }
    }
}

/// How far a read came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadEnd {
    /// The buffer was filled: there may be more.
    Full,
    /// The socket has nothing more for now.
    Drained,
    /// The peer has hung up, or the network has failed.
    Lost,
}

/// Reads once, behind what was left unhandled, and handles it.
fn read(
    socket: &mut TcpStream,
    connection: &mut Connection,
    unhandled: &mut Vec<u8>,
    desk: &mut Desk,
) -> ReadEnd {
    let room = &mut desk.input[unhandled.len()..];
    let read = loop {
        match socket.read(room) {
            Ok(0) => return ReadEnd::Lost,
            Ok(read) => break read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadEnd::Drained,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return ReadEnd::Lost,
        }
    };
    let end = if read == room.len() { ReadEnd::Full } else { ReadEnd::Drained };
    handle(connection, unhandled, read, desk);
    end
}

/// Handles the whole frames of what was left unhandled, and of the `read` bytes that follow it in the
/// desk's input; keeps the rest.
fn handle(connection: &mut Connection, unhandled: &mut Vec<u8>, read: usize, desk: &mut Desk) {
    let kept = unhandled.len();
    desk.input[..kept].copy_from_slice(unhandled);
    let bytes = &desk.input[..kept + read];
    let mut handled = 0;
    while handled < bytes.len() {
        match connection.handle_bytes(desk.now, &bytes[handled..], &mut desk.scratch) {
            0 => break,
            more => handled += more,
        }
    }
    unhandled.clear();
    unhandled.extend_from_slice(&bytes[handled..]);
    if unhandled.is_empty() && unhandled.capacity() > 0 {
        *unhandled = Vec::new();
    }
}

/// What a peer gets for reading the rest of a connection that is over.
const LAST_WORDS_MS: u64 = 2_000;

/// Output that may wait for a slow peer before no more is read from it: its flows and dispositions
/// would only make for more answers.
const MAX_UNSENT_BYTES: usize = 1 << 20;
