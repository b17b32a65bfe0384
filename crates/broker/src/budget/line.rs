//! The line of those who wait for the node's memory.

use super::debt::Debtors;
use super::{Budget, MOST, WAITING};
use crate::sync::{Ordering, lock};
use crate::wake::{Waker, Wakeups};
use std::collections::BTreeMap;

/// Those who wait for memory, in the order in which they go on.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) line: BTreeMap<MemoryPlace, Waker>,
    came: u64,
    pub(super) debtors: Debtors,
}

/// Where somebody waits for memory. It goes stale when they are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemoryPlace {
    /// What their queue held when they came.
    pub(crate) held: u64,
    number: u64,
}

impl Budget {
    /// Joins the line behind those who wait already, whatever is free.
    pub(super) fn queue_up(&self, waker: &Waker, held: u64) -> MemoryPlace {
        let mut waiting = lock(&self.waiting);
        let place = waiting.join(waker.clone(), held);
        self.note_resume(&waiting);
        self.taken.fetch_or(WAITING, Ordering::Release);
        self.resume_due.store(true, Ordering::Release);
        place
    }

    /// Joins the line of those who wait for memory, because their queue holds so much, unless they
    /// may go on: `None` then. Whoever stands in it already, at `old`, stays there, or goes ahead if
    /// the queue holds less.
    pub(crate) fn wait(
        &self,
        waker: &Waker,
        old: Option<MemoryPlace>,
        held: u64,
    ) -> Option<MemoryPlace> {
        let mut waiting = lock(&self.waiting);
        if let Some(old) = old {
            if old.held <= held && waiting.line.contains_key(&old) {
                return Some(old);
            }
            waiting.line.remove(&old);
        }
        let place = waiting.join(waker.clone(), held);
        self.note_resume(&waiting);
        // From here on whoever brings the use down to the level sees the bit, and with it the
        // level, which was written before (release here, acquire in `give_back`).
        let word = self.taken.fetch_or(WAITING, Ordering::Release);
        if word & MOST > self.level(held) {
            return Some(place);
        }
        waiting.line.remove(&place);
        self.tidy(&waiting);
        None
    }

    /// Leaves the line; nothing happens when the place is stale.
    pub(crate) fn leave(&self, place: MemoryPlace) {
        let mut waiting = lock(&self.waiting);
        waiting.line.remove(&place);
        self.tidy(&waiting);
    }

    /// True if [`Budget::resume`] has something to do now.
    pub(crate) fn is_resume_due(&self) -> bool {
        self.resume_due.load(Ordering::Relaxed)
    }

    /// Those who may go on, in order; no more at a time than what is free is likely to serve.
    ///
    /// While some are left and memory is free it stays due, so that the next call goes on.
    pub fn resume(&self) -> Wakeups {
        let mut wakeups = Wakeups::new();
        if !self.is_resume_due() {
            return wakeups;
        }
        let mut waiting = lock(&self.waiting);
        // Acquire: whoever set it has given memory back before, and that has to be seen below.
        self.resume_due.swap(false, Ordering::Acquire);
        let taken = self.taken();
        self.recall(&mut waiting, &mut wakeups);
        let called = wakeups.len() as u64;
        let most = self.free() / PRODUCER_BYTES + 1;
        while (wakeups.len() as u64) - called < most {
            let first = waiting.line.first_entry();
            let Some(first) = first.filter(|it| taken <= self.level(it.key().held)) else { break };
            wakeups.push(first.remove());
        }
        self.tidy(&waiting);
        if waiting.least_held().is_some_and(|held| taken <= self.level(held)) {
            self.resume_due.store(true, Ordering::Relaxed);
        }
        wakeups
    }

    /// Notes whether anybody waits, and for how much.
    pub(super) fn tidy(&self, waiting: &Waiting) {
        self.note_resume(waiting);
        if waiting.line.is_empty() {
            self.taken.fetch_and(MOST, Ordering::Relaxed);
        }
    }

    fn note_resume(&self, waiting: &Waiting) {
        let level = waiting.least_held().map_or(0, |held| self.level(held));
        self.resume.store(level, Ordering::Relaxed);
    }
}

impl Waiting {
    fn join(&mut self, waker: Waker, held: u64) -> MemoryPlace {
        self.came += 1;
        let place = MemoryPlace { held, number: self.came };
        self.line.insert(place, waker);
        place
    }

    /// What the queue of the first holds.
    fn least_held(&self) -> Option<u64> {
        self.line.first_key_value().map(|(place, _)| place.held)
    }
}

/// What one producer that goes on is expected to bring: one full visit to its socket.
const PRODUCER_BYTES: u64 = 256 * 1024;
