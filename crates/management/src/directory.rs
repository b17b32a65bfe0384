//! Who is connected, and over which links: what connections tell management about themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mochila_broker::{Waker, Wakeups};
use mochila_wire::AmqpError;

/// The connections of a node.
#[derive(Debug, Default)]
pub struct Directory {
    connections: Mutex<Connections>,
    next_id: AtomicU64,
    /// Connections refused or lost before they were open, such as port scans.
    failed_handshakes: Counter,
}

#[derive(Debug, Default)]
struct Connections {
    by_id: BTreeMap<u64, Arc<ConnectionRecord>>,
    /// Those that are open, by the container at their other end.
    by_container: HashMap<String, Vec<u64>>,
}

/// How a container wants its connection to be: the only one of its kind, or one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// One of any number.
    Shared,
    /// The only one; refused while there is another.
    Sole,
    /// The only one; others are closed.
    Takeover,
}

/// The container has a connection already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerTaken;

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
    links: Mutex<Links>,
    sessions: Mutex<BTreeMap<u32, i64>>,
    close_requested: AtomicBool,
    /// Why its end was requested, if not by an operator.
    close_reason: OnceLock<AmqpError>,
    /// Links that were attached again on another connection of the same container.
    stolen: Mutex<Vec<Arc<LinkRecord>>>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Links {
    by_number: BTreeMap<u32, Arc<LinkRecord>>,
    by_name: HashMap<(Direction, String), u32>,
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
    /// Bytes of memory that a message takes of which only a part has come.
    pub unfinished_bytes: Counter,
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
            unfinished_bytes: Counter::default(),
            without_credit_since_ms: Counter::default(),
        }
    }
}

/// Which way messages go over a link, seen from the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
            close_reason: OnceLock::new(),
            stolen: Mutex::default(),
            waker,
        });
        lock(&self.connections).by_id.insert(id, Arc::clone(&record));
        record
    }

    /// The peer of a connection has opened it and said who it is: refused if that is against the
    /// claim. With [`Claim::Takeover`] the container's other connections are asked to close, with
    /// `reason`.
    ///
    /// One step, so that of two connections that claim the same at once only one succeeds.
    pub fn open(
        &self,
        record: &ConnectionRecord,
        identity: PeerIdentity,
        claim: Claim,
        reason: &AmqpError,
    ) -> Result<Wakeups, ContainerTaken> {
        let mut connections = lock(&self.connections);
        let mut wakeups = Wakeups::new();
        let Connections { by_id, by_container } = &mut *connections;
        let others = by_container.entry(identity.container.clone()).or_default();
        match claim {
            Claim::Sole if !others.is_empty() => return Err(ContainerTaken),
            Claim::Takeover => {
                for other in others.iter().filter_map(|id| by_id.get(id)) {
                    // The first reason counts.
                    let _ = other.close_reason.set(reason.clone());
                    wakeups.merge(other.request_close());
                }
            }
            Claim::Sole | Claim::Shared => {}
        }
        // A connection is opened once; more is its engine's to refuse.
        if record.opened.set(identity).is_ok() {
            others.push(record.id);
        }
        Ok(wakeups)
    }

    /// Enters a link of a connection under the number that the connection gives it. Links of the
    /// same name and direction of the same container and user on other connections are stolen: they
    /// are told to detach (part 2, 2.6.1).
    pub fn enter_link(
        &self,
        connection: &ConnectionRecord,
        number: u32,
        link: LinkRecord,
    ) -> (Arc<LinkRecord>, Wakeups) {
        // The lock is held to the end: of two that are entered at once the later one steals.
        let connections = lock(&self.connections);
        let mut wakeups = Wakeups::new();
        if let Some(peer) = connection.opened.get() {
            let ids = connections.by_container.get(&peer.container);
            let ids = ids.into_iter().flatten().filter(|id| **id != connection.id);
            for other in ids.filter_map(|id| connections.by_id.get(id)) {
                if other.opened.get().is_some_and(|other| other.user == peer.user)
                    && let Some(stolen) = other.link_named(link.direction, &link.name)
                {
                    lock(&other.stolen).push(stolen);
                    wakeups.push(other.waker.clone());
                }
            }
        }
        (connection.enter_link(number, link), wakeups)
    }

    /// Takes a connection out.
    pub fn leave(&self, record: &ConnectionRecord) {
        let mut connections = lock(&self.connections);
        connections.by_id.remove(&record.id);
        let Some(peer) = record.opened.get() else {
            self.failed_handshakes.add_shared(1);
            return;
        };
        if let Some(ids) = connections.by_container.get_mut(&peer.container) {
            ids.retain(|id| *id != record.id);
            if ids.is_empty() {
                connections.by_container.remove(&peer.container);
            }
        }
    }

    /// All connections, oldest first.
    pub fn connections(&self) -> Vec<Arc<ConnectionRecord>> {
        lock(&self.connections).by_id.values().cloned().collect()
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        lock(&self.connections).by_id.len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The connection with this number.
    pub fn connection(&self, id: u64) -> Option<Arc<ConnectionRecord>> {
        lock(&self.connections).by_id.get(&id).cloned()
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
    /// The authenticated user; `anonymous` without one.
    pub fn user(&self) -> &str {
        self.opened.get().map_or("anonymous", |peer| &peer.user)
    }

    /// Enters a link under the number that its connection gives it.
    pub fn enter_link(&self, number: u32, link: LinkRecord) -> Arc<LinkRecord> {
        let link = Arc::new(link);
        let mut links = lock(&self.links);
        links.by_name.insert((link.direction, link.name.clone()), number);
        links.by_number.insert(number, Arc::clone(&link));
        link
    }

    /// Takes a link out.
    pub fn leave_link(&self, number: u32) {
        let mut links = lock(&self.links);
        let Some(link) = links.by_number.remove(&number) else { return };
        let name = (link.direction, link.name.clone());
        // One of the same name may have been attached since.
        if links.by_name.get(&name) == Some(&number) {
            links.by_name.remove(&name);
        }
    }

    /// Bytes of memory that messages take of which only a part has come.
    pub fn unfinished_bytes(&self) -> u64 {
        lock(&self.links).by_number.values().map(|link| link.unfinished_bytes.get()).sum()
    }

    /// The links with their numbers.
    pub fn links(&self) -> Vec<(u32, Arc<LinkRecord>)> {
        lock(&self.links)
            .by_number
            .iter()
            .map(|(number, link)| (*number, Arc::clone(link)))
            .collect()
    }

    /// The link with this number.
    pub fn link(&self, number: u32) -> Option<Arc<LinkRecord>> {
        lock(&self.links).by_number.get(&number).cloned()
    }

    fn link_named(&self, direction: Direction, name: &str) -> Option<Arc<LinkRecord>> {
        let links = lock(&self.links);
        let number = links.by_name.get(&(direction, name.to_owned()))?;
        links.by_number.get(number).cloned()
    }

    /// The links that have been attached elsewhere since the last time: they are to be detached.
    pub fn take_stolen(&self) -> Vec<Arc<LinkRecord>> {
        std::mem::take(&mut *lock(&self.stolen))
    }

    /// How many links there are.
    pub fn link_count(&self) -> usize {
        lock(&self.links).by_number.len()
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

    /// Why its end was asked for, if not by an operator.
    pub fn close_reason(&self) -> Option<&AmqpError> {
        self.close_reason.get()
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

    pub(crate) fn add_shared(&self, value: u64) {
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
    use mochila_wire::condition;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self, _key: u32) {}
    }

    fn enter(directory: &Directory) -> Arc<ConnectionRecord> {
        directory.enter("127.0.0.1:1".into(), 0, Waker::new(Arc::new(Nobody), 0))
    }

    fn open(
        directory: &Directory,
        record: &ConnectionRecord,
        container: &str,
        claim: Claim,
    ) -> Result<Wakeups, ContainerTaken> {
        let identity = PeerIdentity { container: container.into(), ..PeerIdentity::default() };
        directory.open(record, identity, claim, &AmqpError::new(condition::RESOURCE_LOCKED, "over"))
    }

    #[test]
    fn a_container_id_is_taken_as_long_as_another_connection_that_uses_it_is_open() {
        let directory = Directory::default();
        let (first, second) = (enter(&directory), enter(&directory));
        assert!(open(&directory, &first, "c", Claim::Sole).is_ok());
        assert_eq!(open(&directory, &second, "c", Claim::Sole).unwrap_err(), ContainerTaken);
        assert!(second.opened.get().is_none());
        directory.leave(&first);
        assert!(open(&directory, &second, "c", Claim::Sole).is_ok());
    }

    #[test]
    fn a_takeover_asks_the_others_to_close_and_tells_them_why() {
        let directory = Directory::default();
        let records = [enter(&directory), enter(&directory), enter(&directory)];
        for record in &records[..2] {
            assert!(open(&directory, record, "c", Claim::Shared).is_ok());
        }
        assert_eq!(open(&directory, &records[2], "c", Claim::Takeover).unwrap().len(), 2);
        assert!(records[0].is_close_requested() && records[1].is_close_requested());
        assert_eq!(records[0].close_reason().unwrap().condition, condition::RESOURCE_LOCKED);
        assert!(!records[2].is_close_requested());
    }

    #[test]
    fn a_link_is_stolen_by_its_container_and_user_and_by_nobody_else() {
        let directory = Directory::default();
        let link = |direction| LinkRecord::new("l".into(), 0, direction, "q".into());
        let records: Vec<_> = ["c", "c", "other"]
            .into_iter()
            .map(|container| {
                let record = enter(&directory);
                assert!(open(&directory, &record, container, Claim::Shared).is_ok());
                record
            })
            .collect();
        let (first, _) = directory.enter_link(&records[0], 0, link(Direction::In));
        assert!(directory.enter_link(&records[2], 0, link(Direction::In)).1.is_empty());
        assert!(directory.enter_link(&records[1], 0, link(Direction::Out)).1.is_empty());
        assert_eq!(directory.enter_link(&records[1], 1, link(Direction::In)).1.len(), 1);
        let stolen = records[0].take_stolen();
        assert!(stolen.len() == 1 && Arc::ptr_eq(&stolen[0], &first));
        records[0].leave_link(0);
        assert!(directory.enter_link(&records[1], 2, link(Direction::In)).1.is_empty());
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
