//! A client's connection.

use std::collections::BTreeMap;

use mochila_engine::pair::Random;
use mochila_engine::{Connection, ConnectionConfig, Credentials, LinkId, SessionId};
use mochila_wire::{AmqpError, Now, condition};

use super::hand::Hand;
use super::{Outbox, Scene};
use crate::cable::Cable;
use crate::number::ConnectionNo;
use crate::pipe::Read;

/// An engine and its end of a cable.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) no: ConnectionNo,
    pub(super) engine: Connection,
    pub(super) inbox: Vec<u8>,
    outbox: Outbox,
    /// All bytes ever put into the outbox.
    written: u64,
    /// The sessions by the number that links call them by.
    pub(super) sessions: BTreeMap<usize, SessionId>,
    /// When the engine has something to do, as of the end of the last step.
    pub(super) due_ms: u64,
    /// The broker must not let us in.
    has_wrong_password: bool,
}

impl Line {
    pub(super) fn new(
        no: ConnectionNo,
        window: u32,
        wrong_password: bool,
        now: Now,
        random: &mut Random,
    ) -> Line {
        let credentials = match random.below(3) {
            _ if wrong_password => plain(WRONG_PASSWORD),
            0 => Credentials::NoSasl,
            1 => Credentials::Anonymous,
            _ => plain("right"),
        };
        let config = ConnectionConfig {
            max_frame_size: *random.pick(&[512, 700, 4_096, 65_536]),
            incoming_window: if window > 0 { window } else { *random.pick(&[1, 2, 7, 100, 2048]) },
            initial_outgoing_id: *random.pick(&[0, 1, u32::MAX - 3, 0x7fff_fffe]),
            idle_timeout_ms: *random.pick(&[0, 20_000, 60_000]),
            ..ConnectionConfig::new(format!("client-{}", no.0))
        };
        Line {
            no,
            engine: Connection::client(config, credentials, now),
            inbox: Vec::new(),
            outbox: Outbox::new(),
            written: 0,
            sessions: BTreeMap::new(),
            due_ms: 0,
            has_wrong_password: wrong_password,
        }
    }

    /// Notes when the engine has something to do.
    pub(super) fn note_deadline(&mut self) {
        self.due_ms = self.engine.next_timeout_ms().unwrap_or(u64::MAX);
    }

    /// Reads some of what has arrived; false if nothing will any more.
    pub(super) fn read(&mut self, scene: &mut Scene<'_>) -> bool {
        let most = scene.random.between(1, 8_000) as usize;
        let down = &mut scene.cables[self.no.0].down;
        down.read(scene.random, most, &mut self.inbox) != Read::End
    }

    /// Writes what there is, as far as the socket takes it.
    pub(super) fn flush(&mut self, scene: &mut Scene<'_>) {
        let output = std::mem::take(self.engine.output());
        self.written += output.len() as u64;
        self.outbox.extend(output);
        scene.ledger.flushed(self.no, self.written);
        let up = &mut scene.cables[self.no.0].up;
        up.write(scene.now.mono_ms, scene.random, &mut self.outbox);
        if up.is_lost() {
            self.outbox.clear();
        }
    }

    /// Closes the connection.
    pub(super) fn leave(&mut self, scene: &mut Scene<'_>) {
        self.engine.close(None);
        scene.ledger.leaves(self.no);
    }

    /// Whether there is something to write, and room for it.
    pub(super) fn can_write(&self, cable: &Cable) -> bool {
        !self.outbox.is_empty() && (cable.up.room() > 0 || cable.up.is_lost())
    }

    /// Whether nothing waits to be written.
    pub(super) fn has_written_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// What a link acts with.
    pub(super) fn hand<'a>(
        &'a mut self,
        scene: &'a mut Scene<'_>,
        link: LinkId,
        session: SessionId,
    ) -> Hand<'a> {
        Hand {
            now: scene.now,
            engine: &mut self.engine,
            link,
            session,
            connection: self.no,
            random: scene.random,
            ledger: scene.ledger,
        }
    }

    /// The connection may end like this.
    pub(super) fn check_end(&self, error: &AmqpError, cable: &Cable) {
        let is_cut = cable.is_silent() || cable.down.is_lost();
        let is_refused = self.has_wrong_password;
        let is_stopped = error.condition == condition::CONNECTION_FORCED;
        assert!(is_cut || is_refused || is_stopped, "{:?} was closed: {error}", self.no);
    }
}

/// The password that the broker does not take.
pub(crate) const WRONG_PASSWORD: &str = "wrong";

fn plain(password: &str) -> Credentials {
    Credentials::Plain { user: "somebody".to_owned(), password: password.into() }
}
