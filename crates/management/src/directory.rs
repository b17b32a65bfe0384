//! Who is connected, and over which links: what connections tell management about themselves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mochila_broker::{Waker, Wakeups};

/// The connections of a node.
#[derive(Debug, Default)]
pub struct Directory {
    connections: Mutex<BTreeMap<u64, Arc<ConnectionRecord>>>,
    next_id: AtomicU64,
    /// Connections refused or lost before they were open, such as port scans.
    failed_handshakes: Counter,
}

/// One connection. Its own task is the only writer of the counters; anyone may read them.
#[derive(Debug)]
pub struct ConnectionRecord {
    /// The number of the connection, unique in this node's life.
    pub id: u64,
    /// The peer's address and port.
    pub peer_address: String,
    /// When it was accepted, in milliseconds of the Unix epoch.
    pub created_ms: i64,
    /// What the peer said when it opened the connection; unset before.
    pub opened: OnceLock<PeerIdentity>,
    /// Messages from the peer.
    pub messages_in: Counter,
    /// Messages to the peer.
    pub messages_out: Counter,
    /// Bytes from the peer.
    pub bytes_in: Counter,
    /// Bytes to the peer.
    pub bytes_out: Counter,
    /// When bytes last arrived, in milliseconds of the monotonic clock.
    pub last_input_ms: Counter,
    links: Mutex<BTreeMap<u32, Arc<LinkRecord>>>,
    sessions: Mutex<BTreeMap<u32, i64>>,
    close_requested: AtomicBool,
    waker: Waker,
}

/// Who a peer says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The peer's container id.
    pub container: String,
    /// The authenticated user; `anonymous` without one.
    pub user: String,
    /// The SASL mechanism; empty without SASL.
    pub mechanism: String,
    /// The name of the peer's program, from the properties of its open.
    pub process: String,
    /// Its process id, likewise.
    pub process_id: String,
}

/// One link of a connection.
#[derive(Debug)]
pub struct LinkRecord {
    /// The link's name.
    pub name: String,
    /// The number of its session.
    pub session: u32,
    /// Which way messages go.
    pub direction: Direction,
    /// The address of the node at our end.
    pub address: String,
    /// Whether it only reads, leaving messages in place.
    pub browsing: bool,
    /// Whether its queue is kept for it alone.
    pub exclusive: bool,
    /// Whether the receiver settles, as against messages sent settled.
    pub acknowledged: bool,
    /// Messages that went over it.
    pub messages: Counter,
    /// Link credit at the end of the last visit.
    pub credit: Counter,
    /// Deliveries that were not settled at the end of the last visit.
    pub unsettled: Counter,
    /// When credit fell to nothing, in milliseconds of the monotonic clock; 0 while there is some.
    pub without_credit_since_ms: Counter,
}

impl LinkRecord {
    /// A link that reads and takes, settles, is not alone, and over which nothing went yet.
    pub fn new(name: String, session: u32, direction: Direction, address: String) -> LinkRecord {
        LinkRecord {
            name,
            session,
            direction,
            address,
            browsing: false,
            exclusive: false,
            acknowledged: true,
            messages: Counter::default(),
            credit: Counter::default(),
            unsettled: Counter::default(),
            without_credit_since_ms: Counter::default(),
        }
    }
}

/// Which way messages go over a link, seen from the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// A number with one writer and any readers.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Directory {
    /// Enters a connection that was just accepted.
    pub fn enter(
        &self,
        peer_address: String,
        created_ms: i64,
        waker: Waker,
    ) -> Arc<ConnectionRecord> {
        // Relaxed: the number only has to be unique.
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let record = Arc::new(ConnectionRecord {
            id,
            peer_address,
            created_ms,
            opened: OnceLock::new(),
            messages_in: Counter::default(),
            messages_out: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            last_input_ms: Counter::default(),
            links: Mutex::default(),
            sessions: Mutex::default(),
            close_requested: AtomicBool::new(false),
            waker,
        });
        lock(&self.connections).insert(id, Arc::clone(&record));
        record
    }

    /// Takes a connection out.
    pub fn leave(&self, record: &ConnectionRecord) {
        lock(&self.connections).remove(&record.id);
        if record.opened.get().is_none() {
            self.failed_handshakes.add_shared(1);
        }
    }

    /// All connections, oldest first.
    pub fn connections(&self) -> Vec<Arc<ConnectionRecord>> {
        lock(&self.connections).values().cloned().collect()
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        lock(&self.connections).len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another open connection has this container id.
    pub fn is_container_taken(&self, container: &str, by_other_than: u64) -> bool {
        lock(&self.connections).values().any(|record| {
            record.id != by_other_than
                && record.opened.get().is_some_and(|peer| peer.container == container)
        })
    }

    /// The connection with this number.
    pub fn connection(&self, id: u64) -> Option<Arc<ConnectionRecord>> {
        lock(&self.connections).get(&id).cloned()
    }

    /// How many connections there have ever been.
    pub fn total(&self) -> u64 {
        // Relaxed: the number guards nothing.
        self.next_id.load(Ordering::Relaxed)
    }

    /// How many connections ended before they were open.
    pub fn failed_handshakes(&self) -> u64 {
        self.failed_handshakes.get()
    }
}

impl ConnectionRecord {
    /// Enters a link under the number that its connection gives it.
    pub fn enter_link(&self, number: u32, link: LinkRecord) -> Arc<LinkRecord> {
        let link = Arc::new(link);
        lock(&self.links).insert(number, Arc::clone(&link));
        link
    }

    /// Takes a link out.
    pub fn leave_link(&self, number: u32) {
        lock(&self.links).remove(&number);
    }

    /// The links with their numbers.
    pub fn links(&self) -> Vec<(u32, Arc<LinkRecord>)> {
        lock(&self.links).iter().map(|(number, link)| (*number, Arc::clone(link))).collect()
    }

    /// The link with this number.
    pub fn link(&self, number: u32) -> Option<Arc<LinkRecord>> {
        lock(&self.links).get(&number).cloned()
    }

    /// How many links there are.
    pub fn link_count(&self) -> usize {
        lock(&self.links).len()
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        lock(&self.sessions).len()
    }

    /// Enters a session, and when it began in milliseconds of the Unix epoch.
    pub fn enter_session(&self, number: u32, began_ms: i64) {
        lock(&self.sessions).insert(number, began_ms);
    }

    /// Takes a session out.
    pub fn leave_session(&self, number: u32) {
        lock(&self.sessions).remove(&number);
    }

    /// The sessions: number, and when each began in milliseconds of the Unix epoch.
    pub fn sessions(&self) -> Vec<(u32, i64)> {
        lock(&self.sessions).iter().map(|(number, began)| (*number, *began)).collect()
    }

    /// When a session began, in milliseconds of the Unix epoch.
    pub fn session_began_ms(&self, number: u32) -> Option<i64> {
        lock(&self.sessions).get(&number).copied()
    }

    /// Asks the connection to close itself, which it does when it is woken.
    pub fn request_close(&self) -> Wakeups {
        // Release: whoever is woken sees the request.
        self.close_requested.store(true, Ordering::Release);
        let mut wakeups = Wakeups::new();
        wakeups.push(self.waker.clone());
        wakeups
    }

    /// Whether somebody asked for the connection's end.
    pub fn is_close_requested(&self) -> bool {
        self.close_requested.load(Ordering::Acquire)
    }
}

impl Counter {
    /// The number.
    pub fn get(&self) -> u64 {
        // Relaxed: the counter guards no other memory; only its own value matters.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it; for its one writer.
    pub fn set(&self, value: u64) {
        // Relaxed: as above.
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to it; for its one writer, which needs no read-modify-write.
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    fn add_shared(&self, value: u64) {
        // Relaxed: as above.
        self.0.fetch_add(value, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held cannot have left a map half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_broker::Wake;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self, _key: u32) {}
    }

    fn enter(directory: &Directory) -> Arc<ConnectionRecord> {
        directory.enter("127.0.0.1:1".into(), 0, Waker::new(Arc::new(Nobody), 0))
    }

    #[test]
    fn a_container_id_is_taken_as_long_as_another_connection_that_uses_it_is_open() {
        let directory = Directory::default();
        let (first, second) = (enter(&directory), enter(&directory));
        assert!(!directory.is_container_taken("c", second.id));
        let peer = PeerIdentity { container: "c".into(), ..PeerIdentity::default() };
        first.opened.set(peer).unwrap();
        assert!(directory.is_container_taken("c", second.id));
        assert!(!directory.is_container_taken("c", first.id), "it is its own");
        directory.leave(&first);
        assert!(!directory.is_container_taken("c", second.id));
    }

    #[test]
    fn a_number_is_never_used_for_two_connections() {
        let directory = Directory::default();
        let first = enter(&directory);
        directory.leave(&first);
        assert_ne!(enter(&directory).id, first.id);
        assert_eq!((directory.len(), directory.total()), (1, 2));
    }
}
