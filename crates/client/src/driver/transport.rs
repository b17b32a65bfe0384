//! A non-blocking TCP socket and the wait for it.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token, Waker};

use crate::error::Error;
use crate::options::Options;
use crate::task::describe;
use crate::url::Endpoint;

/// Readiness is edge-triggered: it holds until a call has shown that it does not.
#[derive(Debug)]
pub(super) struct Transport {
    socket: mio::net::TcpStream,
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    readable: bool,
    writable: bool,
    /// How much of the output has been written already.
    written: usize,
}

impl Transport {
    pub(super) fn connect(endpoint: &Endpoint, options: &Options) -> Result<Self, Error> {
        let describe = |error: io::Error| describe(endpoint, &error);
        let addresses =
            (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(describe)?;
        let timeout = Duration::from_millis(options.connect_timeout_ms.max(1));
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut connected = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(socket) => {
                    connected = Some(socket);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let socket = connected.ok_or_else(|| describe(last))?;
        socket.set_nodelay(options.nodelay)?;
        socket.set_nonblocking(true)?;
        let mut socket = mio::net::TcpStream::from_std(socket);
        let poll = Poll::new()?;
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE | Interest::WRITABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let events = Events::with_capacity(2);
        Ok(Self { socket, poll, events, waker, readable: false, writable: true, written: 0 })
    }

    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Waits until the socket can be read or written, or the time is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            if event.token() == WAKER {
                continue;
            }
            self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
            self.writable |= event.is_writable() || event.is_error();
        }
        Ok(())
    }

    /// Reads once. `None`: nothing is there; `Some(0)`: the peer has hung up.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            match self.socket.read(buffer) {
                Ok(bytes) => {
                    // A short read has emptied the socket; what comes later is a new edge.
                    self.readable = bytes == buffer.len() || bytes == 0;
                    return Ok(Some(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes as much of the output as the socket takes; clears it when all is written.
    pub(super) fn write(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        while self.writable && self.written < output.len() {
            match self.socket.write(&output[self.written..]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.written == output.len() {
            output.clear();
            self.written = 0;
        } else if self.written > COMPACT_ABOVE {
            output.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);
/// Output that was written is dropped when it is this much, so that a slow socket does not keep it.
const COMPACT_ABOVE: usize = 1 << 20;
