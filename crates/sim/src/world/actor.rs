//! Who is next, and what he does.

use super::World;
use crate::client::Client;
use crate::number::ConnectionNo;
use crate::peer::{Ending, Peer, READ_AT_ONCE};
use crate::worker::Workplace;

/// Somebody, or something, that can go on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Actor {
    /// Bytes arrive.
    Network(ConnectionNo),
    /// A thread of the broker.
    Worker(usize),
    /// A client.
    Client(usize),
    /// A client that connects.
    Connect(usize),
    /// The broker's timers.
    Timers,
    /// The timer of a connection.
    Deadline(ConnectionNo),
    /// A password has been verified.
    Verdict(usize),
}

impl World {
    /// Lets one of those act that can; false if nobody can, before time passes.
    pub(super) fn step(&mut self) -> bool {
        let mut actors = std::mem::take(&mut self.actors);
        actors.clear();
        self.find_actors(&mut actors);
        let actor = (!actors.is_empty()).then(|| *self.random.pick(&actors));
        self.actors = actors;
        let Some(actor) = actor else { return false };
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "nothing ever comes to rest");
        if self.is_traced {
            eprintln!("{:8} {} ms: {actor:?}", self.steps, self.now.mono_ms);
        }
        self.note(actor);
        match actor {
            Actor::Network(no) => self.arrive(no),
            Actor::Worker(index) => self.work(index),
            Actor::Client(index) => {
                let connection = self.clients[index].connection();
                self.with_client(index, |client, scene| client.step(scene));
                if let Some(no) = connection {
                    self.look_at_cable(no);
                }
            }
            Actor::Connect(index) => {
                let no = self.lay_cable();
                self.with_client(index, |client, scene| client.connect(no, scene));
            }
            Actor::Timers => self.node.broker.handle_timeout(self.now).perform(),
            Actor::Deadline(no) => self.board.post(no, |posted| posted.due = true),
            Actor::Verdict(index) => {
                let (_, no, right) = self.verdicts.swap_remove(index);
                self.board.post(no, |posted| posted.verdict = Some(right));
            }
        }
        self.check_always();
        self.look_around();
        if self.random.below(SLOWNESS) == 0 {
            // Time passes although there is something to do: threads are slow now and then.
            self.now = self.now.after(1);
        }
        true
    }

    /// When something happens that is not a timer of the protocol's or the broker's: those go on
    /// for ever.
    pub(super) fn next_active_ms(&self) -> Option<u64> {
        let arrivals = self.live.iter().filter_map(|no| self.cables[no.0].next_arrival_ms());
        let clients = self.clients.iter().filter_map(|client| client.next_own_ms(self.now));
        let verdicts = self.verdicts.iter().map(|(at, ..)| *at);
        arrivals.chain(clients).chain(verdicts).min()
    }

    /// When the next timer is due.
    pub(super) fn next_timer_ms(&self) -> Option<u64> {
        let peers = self
            .live
            .iter()
            .filter_map(|no| self.peers[no.0].as_ref().and_then(|peer| peer.next_timeout_ms()));
        let clients = self.clients.iter().filter_map(Client::next_timeout_ms);
        peers.chain(clients).chain(self.node.broker.next_timeout_ms()).min()
    }

    /// Finds all that can go on now.
    fn find_actors(&self, actors: &mut Vec<Actor>) {
        let now_ms = self.now.mono_ms;
        let is_any_ready = self.board.is_any_ready();
        let workers = self.workers.iter().enumerate();
        let working = workers.filter(|(_, worker)| worker.is_busy() || is_any_ready);
        actors.extend(working.map(|(index, _)| Actor::Worker(index)));
        for no in &self.live {
            if self.cables[no.0].is_due(now_ms) {
                actors.push(Actor::Network(*no));
            }
            let due_ms = self.peers[no.0].as_ref().map_or(u64::MAX, Peer::due_ms);
            if due_ms <= now_ms && !self.board.is_due(*no) {
                actors.push(Actor::Deadline(*no));
            }
        }
        for (index, client) in self.clients.iter().enumerate() {
            if client.wants_line(self.now) {
                actors.push(Actor::Connect(index));
            } else if client.is_runnable(self.now, &self.cables) {
                actors.push(Actor::Client(index));
            }
        }
        if self.node.broker.next_timeout_ms().is_some_and(|at| at <= now_ms) {
            actors.push(Actor::Timers);
        }
        for (index, (at, ..)) in self.verdicts.iter().enumerate() {
            if *at <= now_ms {
                actors.push(Actor::Verdict(index));
            }
        }
    }

    fn arrive(&mut self, no: ConnectionNo) {
        let cable = &mut self.cables[no.0];
        cable.down.arrive(self.now.mono_ms);
        if cable.up.arrive(self.now.mono_ms) {
            self.board.post(no, |posted| posted.readable = true);
        }
    }

    /// Somebody has touched a cable: tells the broker's end what it has to know.
    pub(super) fn look_at_cable(&mut self, no: ConnectionNo) {
        let cable = &self.cables[no.0];
        let Some(peer) = &self.peers[no.0] else { return self.forget_if_over(no) };
        let can_write = peer.wants_to_write() && (cable.down.room() > 0 || cable.down.is_lost());
        let readable = cable.up.is_ended();
        if readable || can_write {
            self.board.post(no, |posted| posted.readable |= readable);
        }
    }

    /// A connection that has no ends any more is not looked at.
    fn forget_if_over(&mut self, no: ConnectionNo) {
        let has_client = self.clients.iter().any(|client| client.connection() == Some(no));
        if self.peers[no.0].is_none() && !has_client {
            self.live.retain(|live| *live != no);
        }
    }

    fn work(&mut self, index: usize) {
        let mut place = Workplace {
            now: self.now,
            board: &self.board,
            peers: &mut self.peers,
            cables: &mut self.cables,
            random: &mut self.random,
        };
        let Some(done) = self.workers[index].step(&mut place) else { return };
        let no = done.no;
        self.ledger.clock(self.now.mono_ms);
        if let Some(peer) = &mut self.peers[no.0] {
            self.ledger.handled(no, peer.handled);
            if peer.has_ended() {
                self.ledger.over(no);
            }
            let most = peer.most_ever_unsent;
            assert!(most < MOST_OUTPUT, "{most} bytes wait for {no:?}");
        }
        match done.ending {
            Some(Ending::Gone) => {
                self.ledger.over(no);
                self.peers[no.0] = None;
                self.cables[no.0].close_broker_end();
                self.forget_if_over(no);
            }
            Some(Ending::Judge(right)) => {
                let at_ms = self.now.mono_ms + self.random.between(0, 100);
                self.verdicts.push((at_ms, no, right));
            }
            Some(Ending::Done | Ending::Again) | None => {}
        }
    }

    fn note(&mut self, actor: Actor) {
        let (kind, number) = match actor {
            Actor::Network(no) => (1, no.0),
            Actor::Worker(index) => (2, index),
            Actor::Client(index) => (3, index),
            Actor::Connect(index) => (4, index),
            Actor::Timers => (5, 0),
            Actor::Deadline(no) => (6, no.0),
            Actor::Verdict(index) => (7, index),
        };
        let what = self.now.mono_ms << 16 | kind << 12 | number as u64;
        self.digest = (self.digest ^ what).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

/// In so many steps a millisecond passes.
const SLOWNESS: usize = 200;
const MOST_STEPS: u64 = 4_000_000;
/// What may wait for a socket: what is read at once can be answered at some length, and one visit
/// adds what the settings allow, and a frame.
const MOST_OUTPUT: usize = super::MOST_UNSENT + 16 * READ_AT_ONCE + 128 * 1024;
