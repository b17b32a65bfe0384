//! The threads that do all the work.

use crate::acceptor::{Acceptor, Again};
use crate::desk::Desk;
use crate::housekeeping::Housekeeping;
use crate::site::Site;
use crate::task::{
    Eviction, Home, News, Posted, Task, TaskTurn, become_worker, has_turns, next_turn,
    retire_worker, run_soon,
};
use mochila_broker::Remark;
use mochila_net::{Key, Reactor, Ready};
use std::io;
use std::sync::Arc;
use tracing::{error, warn};

/// One thread: waits for its sockets, and runs the turns that it gets hold of.
///
/// A turn that it took because of something that it did for another connection (a publisher's batch
/// wakes a consumer) is run on this thread as well, soon after: nobody else has to be woken for it.
pub(crate) struct Worker {
    site: Arc<Site>,
    home: Arc<Home>,
    reactor: Reactor<Watched>,
    desk: Desk,
    /// Changes places with the news of the connection that is visited.
    spare: Posted,
    commands: Vec<Command>,
    ready: Vec<Ready>,
    acceptor: Option<(Acceptor, Key)>,
    accept_again: bool,
    housekeeping: Option<(Housekeeping, Key)>,
    rest: Rest,
    stop: Option<Stop>,
}

/// The moment of rest after work, when memory that is not needed any more is given back.
struct Rest {
    key: Key,
    /// Whether it is to come.
    is_due: bool,
}

/// What a reactor's entry is.
pub(crate) enum Watched {
    /// A connection.
    Task(Arc<Task>),
    /// The listener with this number.
    Listener(usize),
    /// When the acceptor wants to go on.
    Acceptor,
    /// When there is housekeeping to do.
    Housekeeping,
    /// When there has been work for a while, and memory may be given back.
    Rest,
    /// When those that have not closed have had their time.
    Stop,
}

/// What a worker is asked to do by other threads.
pub(crate) enum Command {
    /// Watch a new connection.
    Adopt(Arc<Task>),
    /// Run a turn that another thread took but should not run, or not any longer.
    Run(TaskTurn),
    /// Set the deadline of a connection.
    Deadline(Key, u64),
    /// Forget a connection that has ended.
    Remove(Key),
    /// Close all connections in an orderly way, and end.
    Stop,
}

/// An end that is under way.
struct Stop {
    key: Key,
    /// When connections that have not closed yet are dropped.
    evict_ms: u64,
    /// When the worker ends whatever else happens.
    give_up_ms: u64,
}

impl Worker {
    pub(crate) fn new(site: Arc<Site>, home: Arc<Home>, mut reactor: Reactor<Watched>) -> Self {
        let rest = Rest { key: reactor.insert(Watched::Rest), is_due: false };
        let desk = Desk::new(home.worker, reactor.now(), site.config.max_frame_size);
        Self {
            site,
            home,
            reactor,
            desk,
            spare: Posted::default(),
            commands: Vec::new(),
            ready: Vec::new(),
            acceptor: None,
            housekeeping: None,
            rest,
            accept_again: false,
            stop: None,
        }
    }

    /// Makes this worker the one that accepts connections.
    pub(crate) fn accept_with(&mut self, mut acceptor: Acceptor) -> io::Result<()> {
        for (number, socket) in acceptor.sockets().enumerate() {
            let key = self.reactor.insert(Watched::Listener(number));
            self.reactor.watch_listener(key, socket)?;
        }
        let key = self.reactor.insert(Watched::Acceptor);
        self.acceptor = Some((acceptor, key));
        Ok(())
    }

    /// Makes this worker the one that does the housekeeping.
    pub(crate) fn keep_house_with(&mut self, housekeeping: Housekeeping) {
        let key = self.reactor.insert(Watched::Housekeeping);
        self.housekeeping = Some((housekeeping, key));
        self.keep_house();
    }

    /// Works until the server stops.
    pub(crate) fn run(mut self) {
        become_worker(self.home.server);
        loop {
            self.obey();
            self.run_turns();
            if self.accept_again {
                self.accept();
            }
            if self.is_finished() {
                break;
            }
            if let Err(error) = self.reactor.wait(self.latest_ms(), &mut self.ready) {
                error!("a worker cannot wait for its sockets any longer: {error}");
                break;
            }
            self.desk.now = self.reactor.now();
            self.keep_time();
            self.serve_ready();
        }
        retire_worker();
        // Turns that others sent here when it was too late.
        self.commands.clear();
        self.home.mailbox.take(&mut self.commands);
    }

    /// When the next wait has to end at the latest: at once, if there is work that no socket
    /// reports.
    fn latest_ms(&self) -> Option<u64> {
        if has_turns() || self.accept_again {
            return Some(0);
        }
        self.site.node.broker.next_timeout_ms()
    }

    /// Does what is due by time in queues: any worker does, whoever wakes up first.
    fn keep_time(&self) {
        let now = self.desk.now;
        let broker = &self.site.node.broker;
        if broker.next_timeout_ms().is_some_and(|at_ms| at_ms <= now.mono_ms) {
            broker.handle_timeout(now).perform();
        }
    }

    /// Does what other threads asked for.
    fn obey(&mut self) {
        let mut commands = std::mem::take(&mut self.commands);
        self.home.mailbox.take(&mut commands);
        for command in commands.drain(..) {
            match command {
                Command::Adopt(task) => self.adopt(&task),
                Command::Run(turn) => run_soon(turn, &self.home),
                Command::Deadline(key, at_ms) => self.reactor.set_deadline(key, Some(at_ms)),
                Command::Remove(key) => drop(self.reactor.remove(key)),
                Command::Stop => self.begin_stop(),
            }
        }
        self.commands = commands;
    }

    fn adopt(&mut self, task: &Arc<Task>) {
        let key = self.reactor.insert(Watched::Task(Arc::clone(task)));
        if let Err(error) = task.inbox.with_state(|peer| peer.settle_in(key, &self.reactor)) {
            let rations = self.site.node.broker.rations();
            if let Some(more) = rations.take(Remark::ConnectionUnwatched, self.desk.now) {
                warn!("a connection cannot be watched: {error}{more}");
            }
            task.post(News::Evict(Eviction::Unwatched));
        }
        // A visit sets the deadline, or notices that the connection is gone already.
        task.post(News::Adopted);
        if self.stop.is_some() {
            task.post(News::Stop);
        }
    }

    /// Handles what the reactor reported. Turns taken on the way are run after every few connections:
    /// late enough to let a consumer take from several publishers at once, early enough for what was
    /// read to be still in the cache.
    fn serve_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for chunk in ready.chunks(READY_PER_CHUNK) {
            for event in chunk {
                self.serve(event);
            }
            self.run_turns();
        }
        ready.clear();
        self.ready = ready;
    }

    fn serve(&mut self, event: &Ready) {
        match self.reactor.get(event.key) {
            Some(Watched::Task(task)) => {
                if let Some(turn) = task.inbox.post(News::Ready(*event)) {
                    self.run_turn(turn);
                }
            }
            Some(Watched::Listener(number)) => {
                let number = *number;
                if let Some((acceptor, _)) = &mut self.acceptor {
                    acceptor.handle_ready(number);
                }
                self.accept();
            }
            Some(Watched::Acceptor) => self.accept(),
            Some(Watched::Housekeeping) => self.keep_house(),
            Some(Watched::Rest) => self.rest(),
            // The wait is over, which is all that this deadline is for; or the event was reported
            // together with the end of its connection.
            Some(Watched::Stop) | None => {}
        }
    }

    /// Runs turns from this thread's list, and those that they bring about.
    fn run_turns(&mut self) {
        for _ in 0..TURNS_PER_ROUND {
            let Some(turn) = next_turn() else { return };
            self.run_turn(turn);
        }
    }

    /// Runs a turn for some visits. If the connection still has something to do after that, its own
    /// worker goes on with it, behind the others that wait there.
    fn run_turn(&mut self, turn: TaskTurn) {
        if !self.rest.is_due {
            self.rest.is_due = true;
            let at_ms = self.desk.now.mono_ms + REST_AFTER_MS;
            self.reactor.set_deadline(self.rest.key, Some(at_ms));
        }
        let Self { spare, desk, reactor, .. } = self;
        let left =
            turn.run(spare, VISITS_PER_TURN, |peer, posted| peer.visit(posted, desk, reactor));
        if let Some(turn) = left {
            let home = turn.inbox().with_state(|peer| Arc::clone(peer.home()));
            if home.worker == self.home.worker {
                run_soon(turn, &home);
            } else {
                home.mailbox.send(Command::Run(turn));
            }
        }
    }

    fn accept(&mut self) {
        let Some((acceptor, key)) = &mut self.acceptor else { return };
        let again = acceptor.accept(self.desk.now);
        self.accept_again = again == Again::Soon;
        if let Again::At(at_ms) = again {
            self.reactor.set_deadline(*key, Some(at_ms));
        }
    }

    /// Lets the allocator take back what other threads have freed of this thread's memory: it only
    /// looks for that when a thread asks for something large. Without this, the memory of a backlog
    /// stays with threads that have nothing to do any more. The room is never touched, so it costs a
    /// microsecond.
    fn rest(&mut self) {
        self.rest.is_due = false;
        drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
    }

    fn keep_house(&mut self) {
        let Some((housekeeping, key)) = &mut self.housekeeping else { return };
        let again_ms = housekeeping.look(self.desk.now.mono_ms);
        self.reactor.set_deadline(*key, Some(again_ms));
    }

    /// The worker that accepts connections is asked first, and tells the others when no more will
    /// come.
    fn begin_stop(&mut self) {
        if self.stop.is_some() {
            return;
        }
        if let Some((acceptor, _)) = &mut self.acceptor {
            acceptor.close();
        }
        self.accept_again = false;
        let now_ms = self.desk.now.mono_ms;
        let key = self.reactor.insert(Watched::Stop);
        let stop = Stop { key, evict_ms: now_ms + GRACE_MS, give_up_ms: now_ms + 2 * GRACE_MS };
        self.reactor.set_deadline(key, Some(stop.evict_ms));
        self.stop = Some(stop);
        self.tasks().iter().for_each(|task| task.post(News::Stop));
    }

    /// Whether the server stops and all connections have ended, or have had their time.
    fn is_finished(&mut self) -> bool {
        let Some(stop) = &mut self.stop else { return false };
        let now_ms = self.desk.now.mono_ms;
        if now_ms >= stop.give_up_ms {
            return true;
        }
        if now_ms >= stop.evict_ms {
            stop.evict_ms = u64::MAX;
            self.reactor.set_deadline(stop.key, Some(stop.give_up_ms));
            self.tasks().iter().for_each(|task| task.post(News::Evict(Eviction::Stopped)));
            return false;
        }
        !self.reactor.values().any(|watched| matches!(watched, Watched::Task(_)))
    }

    fn tasks(&self) -> Vec<Arc<Task>> {
        let tasks = self.reactor.values().filter_map(|watched| match watched {
            Watched::Task(task) => Some(Arc::clone(task)),
            _ => None,
        });
        tasks.collect()
    }
}

/// Visits before a connection that still has something to do is put behind the others.
const VISITS_PER_TURN: usize = 4;

/// Connections served before the turns that this brought about are run.
const READY_PER_CHUNK: usize = 16;

/// Turns run before sockets are looked at again.
const TURNS_PER_ROUND: usize = 256;

/// How long after work began the allocator may look for memory to give back.
const REST_AFTER_MS: u64 = 1_000;

/// So large that the allocator looks around before it finds room for it.
const LARGE_BYTES: usize = 1 << 20;

/// What connections get for closing in an orderly way.
const GRACE_MS: u64 = 5_000;
