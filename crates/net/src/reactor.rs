//! One thread's event loop: readiness of sockets, deadlines and wake-ups.

use crate::clock::Clock;
use crate::deadlines::Deadlines;
use mio::event::{Event, Source};
use mio::{Events, Interest, Poll, Token, Waker};
use mochila_wire::Now;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Sockets, each with a value `T` that says what it is, and a deadline for each.
///
/// A socket is registered once, edge-triggered and for both directions, and never again: the reader
/// remembers that there may be more to read until a read comes back short, the writer that the
/// socket is full until it is reported writable. So a visit to a connection costs one read and one
/// write, and no call to change an interest.
pub struct Reactor<T> {
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    deadlines: Deadlines,
    clock: Clock,
    now: Now,
}

/// Names an entry of a reactor; the key of a removed entry names nothing, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    slot: u32,
    generation: u32,
}

/// What happened to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The entry.
    pub key: Key,
    /// There is something to read, or the end of it.
    pub readable: bool,
    /// The peer will send no more: read until the end is met, even after a short read.
    pub read_closed: bool,
    /// There is room to write.
    pub writable: bool,
    /// The deadline has come; it is cleared.
    pub due: bool,
}

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Reactor<T> {
    /// Creates a reactor that takes the time from `clock`.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS_PER_WAIT),
            waker,
            entries: Vec::new(),
            free: Vec::new(),
            deadlines: Deadlines::default(),
            clock,
            now: clock.now(),
        })
    }

    /// What ends a [`Reactor::wait`] from another thread.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The time of the last wait's end: one clock read serves all that came of it.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Adds an entry that has a deadline but no socket (yet).
    pub fn insert(&mut self, value: T) -> Key {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, value: None });
            u32::try_from(self.entries.len() - 1).expect("descriptors run out before slots do")
        });
        let entry = &mut self.entries[slot as usize];
        entry.value = Some(value);
        Key { slot, generation: entry.generation }
    }

    /// Starts to watch the socket of an entry, for both directions.
    ///
    /// # Errors
    /// If the system refuses to watch it.
    pub fn watch(&self, key: Key, socket: &mut impl Source) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(socket, key.token(), both)
    }

    /// Starts to watch the listening socket of an entry.
    ///
    /// # Errors
    /// If the system refuses to watch it.
    pub fn watch_listener(&self, key: Key, listener: &mut impl Source) -> io::Result<()> {
        self.poll.registry().register(listener, key.token(), Interest::READABLE)
    }

    /// Removes an entry with its deadline. Its socket is forgotten when it is closed.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.deadlines.clear(key.slot);
        self.free.push(key.slot);
        Some(value)
    }

    /// The value of an entry.
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.slot as usize)?;
        entry.value.as_ref().filter(|_| entry.generation == key.generation)
    }

    /// All entries.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets or moves (`Some`) or clears (`None`) the deadline of an entry.
    pub fn set_deadline(&mut self, key: Key, at_ms: Option<u64>) {
        if self.get(key).is_none() {
            return;
        }
        match at_ms {
            Some(at_ms) => self.deadlines.set(key.slot, at_ms),
            None => self.deadlines.clear(key.slot),
        }
    }

    /// Waits until something happens, at most until the next deadline or until `latest_ms`, whichever
    /// is sooner; a time that has passed (0) means not to wait at all.
    ///
    /// What happened is appended to `ready`; a wake-up just ends the wait. The wait is measured from
    /// the last clock read, so it may be too long by the time that was spent working since.
    ///
    /// # Errors
    /// If the system cannot wait, which it always can unless something is very wrong.
    pub fn wait(&mut self, latest_ms: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<()> {
        let until_ms = match (self.deadlines.next_ms(), latest_ms) {
            (Some(deadline_ms), Some(latest_ms)) => Some(deadline_ms.min(latest_ms)),
            (deadline_ms, latest_ms) => deadline_ms.or(latest_ms),
        };
        let now_ms = self.now.mono_ms;
        let timeout =
            until_ms.map(|until_ms| Duration::from_millis(until_ms.saturating_sub(now_ms)));
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.now = self.clock.now();
        for event in self.events.iter().filter(|event| event.token() != WAKER) {
            ready.push(Ready::from_event(event));
        }
        while let Some(slot) = self.deadlines.pop_due(self.now.mono_ms) {
            let generation = self.entries[slot as usize].generation;
            ready.push(Ready::deadline(Key { slot, generation }));
        }
        Ok(())
    }
}

impl Key {
    fn token(self) -> Token {
        Token(self.slot as usize | (self.generation as usize) << 32)
    }

    fn from_token(token: Token) -> Self {
        Self { slot: token.0 as u32, generation: (token.0 >> 32) as u32 }
    }
}

impl Ready {
    fn from_event(event: &Event) -> Self {
        let failed = event.is_error();
        Self {
            key: Key::from_token(event.token()),
            readable: event.is_readable() || failed,
            read_closed: event.is_read_closed() || failed,
            writable: event.is_writable() || failed,
            due: false,
        }
    }

    fn deadline(key: Key) -> Self {
        Self { key, readable: false, read_closed: false, writable: false, due: true }
    }
}

/// No slot has this number: descriptors run out long before.
const WAKER: Token = Token(usize::MAX);

/// How many sockets one wait reports; those beyond are reported by the next one.
const EVENTS_PER_WAIT: usize = 1024;

const _: () = assert!(usize::BITS >= 64, "a token holds a slot and a generation");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_entry_names_nothing_even_after_its_slot_is_used_again() {
        let mut reactor = Reactor::new(Clock::new()).unwrap();
        let old = reactor.insert("old");
        assert_eq!(reactor.remove(old), Some("old"));
        let new = reactor.insert("new");
        assert_eq!((new.slot, reactor.get(old), reactor.get(new)), (old.slot, None, Some(&"new")));
        reactor.set_deadline(old, Some(0));
        assert_eq!(reactor.deadlines.next_ms(), None);
        assert_eq!(reactor.remove(old), None);
        assert_eq!(reactor.len(), 1);
    }

    #[test]
    fn a_deadline_ends_a_wait_and_is_reported_once() {
        let mut reactor = Reactor::new(Clock::new()).unwrap();
        let key = reactor.insert(());
        reactor.set_deadline(key, Some(reactor.now().mono_ms + 5));
        let mut ready = Vec::new();
        while ready.is_empty() {
            reactor.wait(None, &mut ready).unwrap();
        }
        assert_eq!(ready, [Ready::deadline(key)]);
        ready.clear();
        reactor.wait(Some(0), &mut ready).unwrap();
        assert_eq!(ready, []);
    }

    #[test]
    fn a_wake_up_that_came_before_the_wait_ends_it() {
        let mut reactor = Reactor::<()>::new(Clock::new()).unwrap();
        reactor.waker().wake().unwrap();
        reactor.wait(None, &mut Vec::new()).unwrap();
    }

    #[test]
    fn a_token_carries_slot_and_generation() {
        let key = Key { slot: 0xFFFF_FFFE, generation: 7 };
        assert_eq!(Key::from_token(key.token()), key);
    }
}
