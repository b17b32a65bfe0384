//! The memory of the node: reserved before it is used, given back by `Drop`.

use crate::line::{Line, Place};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use crate::wake::{Waker, Wakeups};
use mochila_wire::{AmqpError, condition};
use std::fmt;
use std::sync::Arc;

/// What the node may spend on messages.
///
/// One compare-and-swap checks the hard limit and charges, so that no number of producers that
/// come at once gets past it. Above the soft limit producers get no further credit; they wait in a
/// line, and go on in its order when enough memory has come back.
pub struct Budget {
    // Relaxed, all three: each is a number of its own, and a moment more or less of the old one
    // does no harm.
    limit: AtomicU64,
    soft_limit: AtomicU64,
    resume: AtomicU64,
    /// Bytes in use, and in the top bit whether anybody stands in the line. One word, so that
    /// whoever gives back the decisive byte and whoever joins the line cannot miss each other.
    used: AtomicU64,
    peak: AtomicU64,
    refused: AtomicU64,
    /// Memory has come back for those who wait.
    resume_due: AtomicBool,
    waiting: Mutex<Line<Waker>>,
}

/// The reservation would have passed the hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// Bytes asked for.
    pub bytes: u64,
    /// The limit of the node.
    pub limit: u64,
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes more would exceed the node's {} bytes of memory",
            self.bytes, self.limit
        )
    }
}

impl std::error::Error for OverLimit {}

impl OverLimit {
    /// The condition and sentence for the peer.
    pub fn to_amqp(&self) -> AmqpError {
        AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, self.to_string())
    }
}

impl Budget {
    /// A budget whose soft limit is seven eighths of `limit_bytes`; 0 means without limit.
    pub fn new(limit_bytes: u64) -> Arc<Budget> {
        Budget::with_soft_limit(limit_bytes, limit_bytes - limit_bytes / 8)
    }

    /// A budget with its own soft limit; 0 means without limit.
    pub fn with_soft_limit(limit_bytes: u64, soft_limit_bytes: u64) -> Arc<Budget> {
        let budget = Budget {
            limit: AtomicU64::new(MOST),
            soft_limit: AtomicU64::new(MOST),
            resume: AtomicU64::new(MOST),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            resume_due: AtomicBool::new(false),
            waiting: Mutex::new(Line::default()),
        };
        budget.set(limit_bytes, soft_limit_bytes);
        Arc::new(budget)
    }

    /// Changes the limit, as when a container is given more or less memory; 0 means without limit.
    ///
    /// What is in use stays, even if it is more: then nothing is reserved until enough has gone.
    pub fn set_limit(&self, limit_bytes: u64) {
        self.set(limit_bytes, limit_bytes - limit_bytes / 8);
        // Those who wait may have room now; if they have not, they are left in the line.
        self.resume_due.store(true, Ordering::Release);
    }

    fn set(&self, limit_bytes: u64, soft_limit_bytes: u64) {
        let limit = if limit_bytes == 0 { MOST } else { limit_bytes.min(MOST) };
        let soft_limit = if soft_limit_bytes == 0 { limit } else { soft_limit_bytes.min(limit) };
        self.limit.store(limit, Ordering::Relaxed);
        self.soft_limit.store(soft_limit, Ordering::Relaxed);
        self.resume.store(soft_limit - soft_limit / 16, Ordering::Relaxed);
    }

    /// Reserves `bytes`, or nothing at all.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OverLimit> {
        // Relaxed: the counter guards no other memory; only its own value matters.
        let mut word = self.used.load(Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        loop {
            let used = word & MOST;
            if bytes > limit || used > limit - bytes {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(OverLimit { bytes, limit });
            }
            let charged = word + bytes;
            match self.used.compare_exchange_weak(
                word,
                charged,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.note_peak(charged & MOST);
                    return Ok(Reservation { budget: Arc::clone(self), bytes });
                }
                Err(current) => word = current,
            }
        }
    }

    /// Charges `bytes` whatever the limit: for memory that replaces more memory at once, or that
    /// something already accepted needs.
    pub fn charge(self: &Arc<Self>, bytes: u64) -> Reservation {
        let word = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.note_peak((word & MOST) + bytes);
        Reservation { budget: Arc::clone(self), bytes }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed) & MOST
    }

    /// The hard limit in bytes; `None` without limit.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != MOST)
    }

    /// Above this many bytes producers get no further credit; `None` without limit.
    pub fn soft_limit(&self) -> Option<u64> {
        Some(self.soft_limit.load(Ordering::Relaxed)).filter(|limit| *limit != MOST)
    }

    /// The most bytes that were ever in use.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// How many reservations were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How many producers wait for memory.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// True if so much is in use that producers get no further credit.
    pub fn is_tight(&self) -> bool {
        self.used() > self.soft_limit.load(Ordering::Relaxed)
    }

    /// Joins the line of those who wait for memory, unless there is enough: `None` then. Whoever
    /// stands in it already, at `old`, stays there.
    pub(crate) fn wait(&self, waker: &Waker, old: Option<Place>) -> Option<Place> {
        if !self.is_tight() && old.is_none() {
            return None;
        }
        let mut line = lock(&self.waiting);
        if old.is_some_and(|old| line.has(old)) {
            return old;
        }
        // From here on whoever brings the use down to `resume` sees the bit. Acquire and release
        // are not needed: the line itself is behind its mutex.
        let word = self.used.fetch_or(WAITING, Ordering::Relaxed);
        if word & MOST <= self.resume_bytes() {
            if line.is_empty() {
                self.used.fetch_and(MOST, Ordering::Relaxed);
            }
            return None;
        }
        Some(line.join(waker.clone()))
    }

    /// Leaves the line; nothing happens when the place is stale.
    pub(crate) fn leave(&self, place: Place) {
        let mut line = lock(&self.waiting);
        line.leave(place);
        if line.is_empty() {
            self.used.fetch_and(MOST, Ordering::Relaxed);
        }
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
        let mut line = lock(&self.waiting);
        // Acquire: whoever set it has given memory back before, and that has to be seen below.
        self.resume_due.swap(false, Ordering::Acquire);
        let used = self.used();
        if used > self.resume_bytes() {
            // It has been used up again; the drop that brings it down will say so.
            return wakeups;
        }
        let most =
            self.soft_limit.load(Ordering::Relaxed).saturating_sub(used) / PRODUCER_BYTES + 1;
        while (wakeups.len() as u64) < most {
            match line.serve() {
                Some(waker) => wakeups.push(waker),
                None => break,
            }
        }
        if line.is_empty() {
            self.used.fetch_and(MOST, Ordering::Relaxed);
        } else {
            self.resume_due.store(true, Ordering::Relaxed);
        }
        wakeups
    }

    fn resume_bytes(&self) -> u64 {
        self.resume.load(Ordering::Relaxed)
    }

    fn give_back(&self, bytes: u64) {
        let word = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(word & MOST >= bytes, "more was given back than had been reserved");
        if word & WAITING != 0 && (word & MOST) - bytes <= self.resume_bytes() {
            // Release: see `resume`.
            self.resume_due.store(true, Ordering::Release);
        }
    }

    fn note_peak(&self, used: u64) {
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("used", &self.used())
            .field("limit", &self.limit())
            .field("peak", &self.peak())
            .finish_non_exhaustive()
    }
}

/// Memory that has been reserved; it goes back when this is dropped.
#[must_use = "the memory goes back at once when the reservation is dropped"]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    /// A reservation of nothing, for others to be merged into.
    pub fn nothing(budget: &Arc<Budget>) -> Reservation {
        Reservation { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Gives back all but `bytes`; at most what is there.
    pub fn shrink_to(&mut self, bytes: u64) {
        drop(self.split(self.bytes.saturating_sub(bytes)));
    }

    /// Makes it as much as is needed, whatever the limit; not byte by byte.
    pub(crate) fn follow(&mut self, bytes: u64) {
        if bytes > self.bytes {
            let more = self.budget.charge(bytes - self.bytes + PAID_AHEAD);
            self.merge(more);
        } else if self.bytes - bytes > 2 * PAID_AHEAD || bytes == 0 && self.bytes > 0 {
            let ahead = if bytes == 0 { 0 } else { PAID_AHEAD };
            self.shrink_to(bytes + ahead);
        }
    }

    /// Where it comes from.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// How much is reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `bytes` out into a reservation of their own; at most what is there.
    pub fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { budget: Arc::clone(&self.budget), bytes }
    }

    /// Takes in another reservation of the same budget.
    pub fn merge(&mut self, mut other: Reservation) {
        assert!(Arc::ptr_eq(&self.budget, &other.budget), "reservations of two budgets");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.bytes);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.bytes).finish()
    }
}

/// The bit of `used` that says that somebody waits.
const WAITING: u64 = 1 << 63;
/// The bits of `used` that count bytes.
const MOST: u64 = WAITING - 1;
/// So much is paid at a time by whoever needs a little more again and again.
const PAID_AHEAD: u64 = 8 * 1024;
/// What one producer that goes on is expected to bring: one full visit to its socket.
const PRODUCER_BYTES: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_lowered_below_what_is_in_use_lets_nothing_in_until_that_has_gone() {
        let budget = Budget::new(1_000);
        let reservation = budget.reserve(800).unwrap();
        budget.set_limit(500);
        assert_eq!(budget.reserve(1).err(), Some(OverLimit { bytes: 1, limit: 500 }));
        drop(reservation);
        assert!(budget.reserve(500).is_ok());
    }

    #[test]
    fn a_limit_that_is_raised_lets_those_go_on_who_wait() {
        struct Nobody;
        impl crate::wake::Wake for Nobody {
            fn wake(&self, _: u32) {}
        }
        let budget = Budget::new(1_000);
        let _reservation = budget.reserve(900).unwrap();
        let waker = Waker::new(Arc::new(Nobody), 0);
        assert!(budget.wait(&waker, None).is_some());
        budget.set_limit(100_000);
        assert!(budget.is_resume_due());
        assert_eq!((budget.resume().len(), budget.waiting()), (1, 0));
        assert!(!budget.is_resume_due());
    }
}
