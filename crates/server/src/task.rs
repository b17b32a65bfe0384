//! A connection as something to work on.

use crate::counter::Counter;
use crate::peer::Peer;
use crate::site::Verdict;
use crate::worker::Command;
use mochila_broker::Wake;
use mochila_net::{Inbox, Mailbox, Ready, Turn, Work};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// One connection: its state behind an inbox, and the worker that its socket reports to.
pub(crate) struct Task {
    pub(crate) inbox: Inbox<Peer, Posted>,
    pub(crate) home: Arc<Home>,
}

/// A worker, as the others see it.
pub(crate) struct Home {
    /// The server that the worker belongs to: there can be several in one process.
    pub(crate) server: ServerId,
    pub(crate) worker: usize,
    pub(crate) mailbox: Mailbox<Command>,
    /// Connections that report to this worker.
    pub(crate) load: Counter,
}

/// Tells the servers of a process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerId(pub(crate) usize);

/// The right and duty to work on a connection.
pub(crate) type TaskTurn = Turn<Peer, Posted>;

/// Something that happened to a connection.
#[derive(Debug)]
pub(crate) enum News {
    /// Its worker watches it from now on.
    Adopted,
    /// Its socket, or its deadline.
    Ready(Ready),
    /// One of its links may go on.
    Wake(u32),
    /// Who the peer is, after it was asked.
    Judged(Verdict),
    /// It has to close in an orderly way, because the server stops.
    Stop,
    /// It has to go at once.
    Evict(Eviction),
}

/// Why a connection has to go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Others wait while it does not finish its handshake.
    HalfOpen,
    /// The server does not wait for it any longer.
    Stopped,
    /// The system does not let us watch its socket.
    Unwatched,
}

/// All news since the last visit.
#[derive(Debug, Default)]
pub(crate) struct Posted {
    pub(crate) readable: bool,
    pub(crate) read_closed: bool,
    pub(crate) writable: bool,
    pub(crate) due: bool,
    pub(crate) stop: bool,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) evict: Option<Eviction>,
    /// Keys of links, each once: a link is woken again only after it was served and waits again.
    pub(crate) wakes: Vec<u32>,
    any: bool,
}

impl Task {
    /// Tells the connection what happened. If nobody is working on it, this thread does so soon, or
    /// its worker if this thread is none.
    pub(crate) fn post(&self, news: News) {
        if let Some(turn) = self.inbox.post(news) {
            run_soon(turn, &self.home);
        }
    }
}

/// What queues wake: it finds the connection for as long as it exists.
pub(crate) struct TaskWaker(pub(crate) Weak<Task>);

impl Wake for TaskWaker {
    fn wake(&self, key: u32) {
        if let Some(task) = self.0.upgrade() {
            task.post(News::Wake(key));
        }
    }
}

impl Work for Posted {
    type Item = News;

    fn add(&mut self, news: News) {
        self.any = true;
        match news {
            News::Adopted => {}
            News::Ready(ready) => {
                self.readable |= ready.readable;
                self.read_closed |= ready.read_closed;
                self.writable |= ready.writable;
                self.due |= ready.due;
            }
            News::Wake(key) => self.wakes.push(key),
            News::Judged(verdict) => self.verdict = Some(verdict),
            News::Stop => self.stop = true,
            News::Evict(why) => self.evict = Some(why),
        }
    }

    fn is_empty(&self) -> bool {
        !self.any
    }

    fn clear(&mut self) {
        let mut wakes = std::mem::take(&mut self.wakes);
        wakes.clear();
        if wakes.capacity() > KEPT_WAKES {
            wakes = Vec::new();
        }
        *self = Self { wakes, ..Self::default() };
    }
}

thread_local! {
    /// The turns that this thread took while it was busy with another one; `None` unless it is a
    /// worker.
    static RUN_LIST: RefCell<Option<RunList>> = const { RefCell::new(None) };
}

struct RunList {
    server: ServerId,
    turns: VecDeque<TaskTurn>,
}

/// Makes this thread a worker of a server: turns that it takes stay with it.
pub(crate) fn become_worker(server: ServerId) {
    RUN_LIST.set(Some(RunList { server, turns: VecDeque::new() }));
}

/// Ends what [`become_worker`] began, and gives up the turns that are left.
pub(crate) fn retire_worker() {
    // Dropped outside: that can end a connection, which can wake others.
    let left = RUN_LIST.take();
    drop(left);
}

/// Puts a turn on this thread's list if it is a worker of the same server, or sends it home.
pub(crate) fn run_soon(turn: TaskTurn, home: &Home) {
    let turn = RUN_LIST.with_borrow_mut(|list| match list {
        Some(list) if list.server == home.server => {
            list.turns.push_back(turn);
            None
        }
        _ => Some(turn),
    });
    if let Some(turn) = turn {
        home.mailbox.send(Command::Run(turn));
    }
}

/// Takes the turn that has waited longest.
pub(crate) fn next_turn() -> Option<TaskTurn> {
    RUN_LIST.with_borrow_mut(|list| list.as_mut()?.turns.pop_front())
}

/// Whether turns wait on this thread's list.
pub(crate) fn has_turns() -> bool {
    RUN_LIST.with_borrow(|list| list.as_ref().is_some_and(|list| !list.turns.is_empty()))
}

/// Room for keys that an idle connection may keep.
const KEPT_WAKES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_news_are_merged_and_wakes_are_listed() {
        let mut posted = Posted::default();
        assert!(posted.is_empty());
        posted.add(News::Wake(3));
        posted.add(News::Wake(5));
        posted.add(News::Stop);
        posted.add(News::Stop);
        assert!(!posted.is_empty());
        assert_eq!((posted.stop, posted.wakes.as_slice()), (true, &[3, 5][..]));
        posted.clear();
        assert!(posted.is_empty() && !posted.stop && posted.wakes.is_empty());
    }

    #[test]
    fn many_wakes_leave_no_memory_behind() {
        let mut posted = Posted::default();
        (0..1000).for_each(|key| posted.add(News::Wake(key)));
        posted.clear();
        assert!(posted.wakes.capacity() <= KEPT_WAKES);
    }
}
