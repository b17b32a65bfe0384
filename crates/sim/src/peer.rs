//! A connection as the broker's shell has it.

use std::collections::VecDeque;

use mochila_adaptor::{Connection, Scratch};
use mochila_engine::pair::Random;
use mochila_wire::Now;

use crate::cable::Cable;
use crate::client::WRONG_PASSWORD;
use crate::pipe::Read;
use crate::switchboard::Posted;

/// The protocol of one connection, and what of its bytes is in between.
///
/// A visit is cut into [stages](Stage), so that other workers get in between wherever threads would.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    /// The beginning of a frame whose end has not arrived.
    unhandled: Vec<u8>,
    /// Output that the socket had no room for.
    unsent: VecDeque<u8>,
    /// There may be something to read.
    readable: bool,
    lost: bool,
    /// The password is being verified; nothing is read until the answer is there.
    pub(crate) is_judged: bool,
    was_open: bool,
    /// How long it tries to say its last words.
    patience_until_ms: Option<u64>,
    due_ms: u64,
    /// How many of the client's bytes have been handled.
    pub(crate) handled: u64,
    /// How much output may wait for the socket before nothing more is read.
    most_unsent: usize,
    /// The most output that ever waited.
    pub(crate) most_ever_unsent: usize,
}

/// What is done next in a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Time,
    Wakes,
    Write,
    Read,
    Pump,
    Send,
    Wake,
    Look,
}

/// A visit that is under way.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) stage: Stage,
    posted: Posted,
    more: bool,
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing to do until something is posted.
    Done,
    /// Visit it again.
    Again,
    /// The peer has credentials to be verified; whether they are right is known in a while.
    Judge(bool),
    /// The connection is over.
    Gone,
}

impl Visit {
    pub(crate) fn new(posted: Posted) -> Visit {
        Visit { stage: Stage::Time, posted, more: false }
    }
}

impl Peer {
    pub(crate) fn new(connection: Connection, most_unsent: usize) -> Peer {
        let due_ms = connection.next_timeout_ms().unwrap_or(NEVER);
        Peer {
            connection,
            due_ms,
            unhandled: Vec::new(),
            unsent: VecDeque::new(),
            readable: false,
            lost: false,
            is_judged: false,
            was_open: false,
            patience_until_ms: None,
            handled: 0,
            most_unsent,
            most_ever_unsent: 0,
        }
    }

    /// Whether it waits for room in the socket.
    pub(crate) fn wants_to_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Does one stage of a visit, and passes over those in which there is nothing to do; `Some` when
    /// it was the last one.
    pub(crate) fn step(
        &mut self,
        now: Now,
        visit: &mut Visit,
        cable: &mut Cable,
        scratch: &mut Scratch,
        random: &mut Random,
    ) -> Option<Ending> {
        visit.stage = match visit.stage {
            Stage::Time => {
                self.readable |= visit.posted.readable;
                let due = self.connection.next_timeout_ms().is_some_and(|ms| ms <= now.mono_ms);
                if due {
                    self.connection.handle_timeout(now, scratch);
                }
                Stage::Wakes
            }
            Stage::Wakes => match visit.posted.wakes.pop_first() {
                Some(key) => {
                    self.connection.handle_wake(now, key, scratch);
                    Stage::Wakes
                }
                None => Stage::Write,
            },
            Stage::Write => {
                self.write(now, cable, random);
                Stage::Read
            }
            Stage::Read => {
                self.read(now, visit, cable, scratch, random);
                Stage::Pump
            }
            Stage::Pump => {
                visit.more = self.unsent.is_empty() && self.connection.pump(now, scratch);
                Stage::Send
            }
            Stage::Send => {
                self.unsent.extend(std::mem::take(self.connection.output()));
                self.write(now, cable, random);
                if !self.unsent.is_empty() {
                    self.connection.stand_back(now, scratch);
                }
                self.most_ever_unsent = self.most_ever_unsent.max(self.unsent.len());
                Stage::Wake
            }
            Stage::Wake => {
                self.connection.finish_visit(scratch);
                Stage::Look
            }
            Stage::Look => {
                let ending = self.look(now, visit, scratch);
                self.note_deadline();
                return Some(ending);
            }
        };
        self.pass_over(visit);
        self.note_deadline();
        None
    }

    /// Nobody can get in between where nothing is done.
    fn pass_over(&self, visit: &mut Visit) {
        if visit.stage == Stage::Wakes && visit.posted.wakes.is_empty() {
            visit.stage = Stage::Write;
        }
        if visit.stage == Stage::Write && self.unsent.is_empty() {
            visit.stage = Stage::Read;
        }
        if visit.stage == Stage::Read && visit.posted.verdict.is_none() && !self.can_read() {
            visit.stage = Stage::Pump;
        }
    }

    /// When it has something to do because of time, as of the end of the last stage.
    pub(crate) fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// The same; none if that is never.
    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        Some(self.due_ms).filter(|due_ms| *due_ms != NEVER)
    }

    fn note_deadline(&mut self) {
        let connection_ms = self.connection.next_timeout_ms().unwrap_or(NEVER);
        self.due_ms = connection_ms.min(self.patience_until_ms.unwrap_or(NEVER));
    }

    /// Whether the connection was open and is not any more: what its client holds is void.
    pub(crate) fn has_ended(&mut self) -> bool {
        let is_open = self.connection.is_open();
        let ended = self.was_open && !is_open;
        self.was_open = is_open;
        ended
    }

    fn can_read(&self) -> bool {
        self.readable && !self.is_judged && self.unsent.len() < self.most_unsent
    }

    fn write(&mut self, now: Now, cable: &mut Cable, random: &mut Random) {
        if cable.down.is_lost() {
            self.lost = true;
            self.unsent.clear();
        }
        cable.down.write(now.mono_ms, random, &mut self.unsent);
    }

    fn read(
        &mut self,
        now: Now,
        visit: &mut Visit,
        cable: &mut Cable,
        scratch: &mut Scratch,
        random: &mut Random,
    ) {
        if let Some(right) = visit.posted.verdict.take() {
            self.is_judged = false;
            match right {
                true => self.connection.authenticated("somebody".to_owned()),
                false => self.connection.refuse_credentials(),
            }
            self.handle(now, scratch);
            return;
        }
        if !self.can_read() {
            return;
        }
        match cable.up.read(random, READ_AT_ONCE, &mut self.unhandled) {
            Read::Some => self.handle(now, scratch),
            Read::Nothing => self.readable = false,
            Read::End => self.lost = true,
        }
    }

    fn handle(&mut self, now: Now, scratch: &mut Scratch) {
        let mut used = 0;
        while used < self.unhandled.len() {
            match self.connection.handle_bytes(now, &self.unhandled[used..], scratch) {
                0 => break,
                more => used += more,
            }
        }
        self.unhandled.drain(..used);
        self.handled += used as u64;
    }

    fn look(&mut self, now: Now, visit: &Visit, scratch: &mut Scratch) -> Ending {
        let is_over = self.connection.has_said_all();
        if is_over {
            self.patience_until_ms.get_or_insert(now.mono_ms + PATIENCE_MS);
        }
        let is_impatient = self.patience_until_ms.is_some_and(|until_ms| until_ms <= now.mono_ms);
        if self.lost || (is_over && self.unsent.is_empty()) || is_impatient {
            self.connection.handle_eof(now, scratch);
            self.connection.finish_visit(scratch);
            return Ending::Gone;
        }
        if let Some(credentials) = self.connection.take_credentials() {
            self.is_judged = true;
            return Ending::Judge(credentials.password.reveal() != WRONG_PASSWORD);
        }
        let can_pump = visit.more && self.unsent.is_empty();
        if self.can_read() || can_pump { Ending::Again } else { Ending::Done }
    }
}

/// How long a connection that is over waits for its socket to take what is left.
const PATIENCE_MS: u64 = 2_000;
const NEVER: u64 = u64::MAX;
/// The most that one visit reads.
pub(crate) const READ_AT_ONCE: usize = 8 * 1024;
