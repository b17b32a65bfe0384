//! A blocking driver for programs that want the most out of one thread.
//!
//! The engine is driven in place over a non-blocking socket: one large read, all its events, one
//! large write. There are no tasks, no channels and no allocation per message; what happens is told
//! to a closure, which has the engine at hand.
//!
//! ```no_run
//! use mochila_client::driver::{Driver, Wait};
//! use mochila_client::{Options, Source, Target};
//! use mochila_engine::{AttachRequest, Event};
//!
//! # fn example() -> Result<(), mochila_client::Error> {
//! let mut driver = Driver::connect(&"localhost".parse()?, &Options::default())?;
//! let session = driver.begin()?;
//! let request = AttachRequest::receiver("mine", Source::at("queue"), Target::default().into());
//! let (link, _) = driver.attach(session, request)?;
//! driver.engine().grant(link, 100);
//! let mut bytes_received = 0;
//! while bytes_received < 1_000_000 {
//!     driver.turn(Wait::Forever, |engine, event, bytes| {
//!         if let Event::Transfer(transfer) = event {
//!             bytes_received += bytes[transfer.payload()].len();
//!             engine.grant(link, 100);
//!         }
//!         Ok(())
//!     })?;
//! }
//! driver.close()
//! # }
//! ```

mod transport;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Waker;

use mochila_engine::{AttachRequest, Connection, Event, LinkId, SessionId};
use mochila_wire::performative::{Attach, Role};
use mochila_wire::{AmqpError, Now};

use crate::clock::Clock;
use crate::error::Error;
use crate::options::Options;
use crate::task::config;
use crate::url::{Endpoint, Url};
use transport::Transport;

/// One connection, driven by whoever calls.
#[derive(Debug)]
pub struct Driver {
    transport: Transport,
    engine: Connection,
    clock: Clock,
    /// Bytes of frames that are not complete yet are at the front.
    input: Vec<u8>,
    filled: usize,
    closed: Option<Error>,
}

/// How long a [`Driver::turn`] waits for something to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: handles what is there.
    Poll,
    /// Until something happens or this moment has come.
    Until(Instant),
    /// Until something happens.
    Forever,
}

impl Wait {
    /// The same, but no longer than this.
    #[must_use]
    pub fn at_most(self, limit: Duration) -> Wait {
        match self {
            Wait::Poll => Wait::Poll,
            Wait::Until(moment) => Wait::Until(moment.min(Instant::now() + limit)),
            Wait::Forever => Wait::Until(Instant::now() + limit),
        }
    }
}

impl Driver {
    /// Connects to the first endpoint that answers, and opens the connection.
    pub fn connect(url: &Url, options: &Options) -> Result<Self, Error> {
        let mut last = Error::Connection(None);
        for endpoint in url.endpoints.iter().chain(&options.failover) {
            match Self::connect_to(endpoint, url, options) {
                Ok(driver) => return Ok(driver),
                Err(error @ Error::Refused) => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The same with the options' patience: tries again with growing waits.
    pub fn connect_patiently(url: &Url, options: &Options) -> Result<Self, Error> {
        let start = Instant::now();
        let mut attempt = 0;
        loop {
            let error = match Self::connect(url, options) {
                Ok(driver) => return Ok(driver),
                Err(error) => error,
            };
            attempt += 1;
            let elapsed_ms = start.elapsed().as_millis() as u64;
            let backoff = options.reconnect.filter(|_| error.is_disconnection());
            match backoff.and_then(|backoff| backoff.wait_ms(attempt, elapsed_ms)) {
                Some(wait_ms) => std::thread::sleep(Duration::from_millis(wait_ms)),
                None => return Err(error),
            }
        }
    }

    fn connect_to(endpoint: &Endpoint, url: &Url, options: &Options) -> Result<Self, Error> {
        let transport = Transport::connect(endpoint, options)?;
        let clock = Clock::start();
        let credentials =
            crate::credentials::choose(options, url.user.clone(), url.password.clone());
        let config = config(options, Some(endpoint.host.clone()));
        let engine = Connection::client(config, credentials, clock.now());
        let mut driver =
            Self { transport, engine, clock, input: Vec::new(), filled: 0, closed: None };
        let mut opened = false;
        while !opened {
            let waited = driver.turn(Wait::Forever, |_, event, _| {
                opened |= matches!(event, Event::Opened);
                Ok(())
            });
            waited.map_err(|error| match error {
                Error::Connection(Some(error)) if is_refusal(&error) => Error::Refused,
                other => other,
            })?;
        }
        Ok(driver)
    }

    /// The engine, for everything that this does not do itself. What it puts into its output
    /// leaves with the next [`turn`](Self::turn) or [`flush`](Self::flush).
    #[inline]
    pub fn engine(&mut self) -> &mut Connection {
        &mut self.engine
    }

    /// How many bytes wait to be written.
    #[inline]
    pub fn unsent(&mut self) -> usize {
        self.engine.output().len() - self.transport.written()
    }

    /// Ends the wait of a [`turn`](Self::turn) from another thread.
    pub fn waker(&self) -> Arc<Waker> {
        self.transport.waker()
    }

    /// A reading of the clocks.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Begins a session; its first frames may follow at once.
    pub fn begin(&mut self) -> Result<SessionId, Error> {
        Ok(self.engine.begin()?)
    }

    /// Attaches a link and waits for the peer's answer. Other links must not be at work yet: what
    /// happens to them meanwhile is not told.
    pub fn attach(
        &mut self,
        session: SessionId,
        request: AttachRequest,
    ) -> Result<(LinkId, Box<Attach>), Error> {
        let role = request.role;
        let ours = self.engine.attach(session, request)?;
        let mut granted = None;
        let mut refused = None;
        while refused.is_none() {
            self.turn(Wait::Forever, |_, event, _| {
                match event {
                    Event::AttachConfirmed { link, peer } if link == ours => {
                        let terminus = match role {
                            Role::Sender => peer.target.is_some(),
                            Role::Receiver => peer.source.is_some(),
                        };
                        granted = terminus.then_some(peer);
                    }
                    Event::Detached { link, error, .. } if link == ours => {
                        refused = Some(Error::Link(error));
                    }
                    Event::Ended { session: ended, error } if ended == session => {
                        refused = Some(Error::Session(error));
                    }
                    _ => {}
                }
                Ok(())
            })?;
            if let (Some(peer), None) = (granted.take(), &refused) {
                return Ok((ours, peer));
            }
        }
        Err(refused.unwrap_or(Error::Link(None)))
    }

    /// Writes what waits to be written, reads what has arrived, and tells `handle` what happened:
    /// the event, and the bytes that its ranges refer to. Waits only if there is nothing to read.
    ///
    /// An error of `handle` ends the turn and is returned. When the connection is over, its last
    /// event has been told and the reason is returned.
    pub fn turn(
        &mut self,
        wait: Wait,
        mut handle: impl FnMut(&mut Connection, Event, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(error) = &self.closed {
            return Err(error.clone());
        }
        self.flush()?;
        if !self.transport.is_readable() {
            self.wait(wait)?;
            self.flush()?;
        }
        if self.transport.is_readable() {
            self.read()?;
        }
        let used = self.engine.handle_bytes(self.clock.now(), &self.input[..self.filled]);
        let mut result = Ok(());
        while let Some(event) = self.engine.poll_event() {
            if let Event::Closed { error, .. } = &event {
                self.closed = Some(Error::Connection(error.clone()));
            }
            if result.is_ok() {
                result = handle(&mut self.engine, event, &self.input[..self.filled]);
            }
        }
        self.keep_rest(used);
        result?;
        match &self.closed {
            Some(error) => {
                let error = error.clone();
                // The peer is owed our close; if it no longer listens, so be it.
                let _ = self.flush();
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// Writes what the socket takes now.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.transport.write(self.engine.output())
    }

    /// Closes the connection and waits until the peer has done the same, or its patience is over.
    pub fn close(mut self) -> Result<(), Error> {
        if self.closed.is_some() {
            return Ok(());
        }
        self.engine.close(None);
        loop {
            match self.turn(Wait::Forever, |_, _, _| Ok(())) {
                Ok(()) => {}
                Err(Error::Connection(None)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn wait(&mut self, wait: Wait) -> Result<(), Error> {
        let now = Instant::now();
        let limit = match wait {
            Wait::Poll => Some(Duration::ZERO),
            Wait::Until(moment) => Some(moment.saturating_duration_since(now)),
            Wait::Forever => None,
        };
        let due = self.engine.next_timeout_ms().map(|ms| self.clock.instant(ms));
        let timer = due.map(|due| due.saturating_duration_since(now));
        let timeout = match (limit, timer) {
            (Some(limit), Some(timer)) => Some(limit.min(timer)),
            (limit, timer) => limit.or(timer),
        };
        self.transport.wait(timeout)?;
        if due.is_some_and(|due| Instant::now() >= due) {
            self.engine.handle_timeout(self.clock.now());
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Error> {
        let wanted = self.engine.wanted(&self.input[..self.filled]);
        let room = self.filled + wanted.max(READ_ROOM);
        if self.input.len() < room {
            self.input.resize(room, 0);
        }
        match self.transport.read(&mut self.input[self.filled..])? {
            None => {}
            Some(0) => self.engine.handle_eof(self.clock.now()),
            Some(bytes) => self.filled += bytes,
        }
        Ok(())
    }

    fn keep_rest(&mut self, used: usize) {
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
    }
}

fn is_refusal(error: &AmqpError) -> bool {
    error.condition == mochila_wire::condition::UNAUTHORIZED_ACCESS
}

/// What one read may bring: the more, the fewer system calls per message.
const READ_ROOM: usize = 256 << 10;
