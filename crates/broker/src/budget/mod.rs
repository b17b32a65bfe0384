//! The memory of the node: reserved before it is used, given back by `Drop`.

mod alarm;
mod claim;
mod debt;
mod line;
mod node_memory;
mod reservation;

pub(crate) use line::MemoryPlace;
pub(crate) use node_memory::NodeMemory;

pub use claim::Claim;
pub use reservation::Reservation;

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use alarm::Alarm;
use line::Waiting;
use mochila_wire::{AmqpError, condition};
use std::fmt;
use std::sync::Arc;

/// What the node may spend on messages.
///
/// One compare-and-swap checks the hard limit and charges, so that no number of producers that
/// come at once gets past it. What is left up to the hard limit above the soft one is for what was
/// under way when credit ended.
///
/// Below the soft limit memory is shared by one rule: a queue may hold `SHARE` times as much as
/// is still free. The more is free, the more one queue may have; the producers of one that holds
/// more get no further credit, while there is always something left for those that hold little. So
/// a queue that nobody reads does not hold up the others. `n` queues that all take what they can
/// end with equal parts, and leave one part in `SHARE * n + 1` to the next.
///
/// That part is small where `n` is large, and what was under way takes it. So a queue may hold one
/// part in `RESERVE_SHARES` of what is free up to the hard limit besides: however many queues are
/// full, an empty one that is read goes on from what is kept back from them.
///
/// Those who wait go on when enough has come back: first those whose queue holds least.
pub struct Budget {
    // Relaxed, all three: each is a number of its own, and a moment more or less of the old one
    // does no harm.
    limit: AtomicU64,
    soft_limit: AtomicU64,
    /// At so many bytes in use the first of those who wait may go on.
    resume: AtomicU64,
    /// Bytes in use, and in the top bit whether anybody stands in the line. One word, so that
    /// whoever gives back the decisive byte and whoever joins the line cannot miss each other.
    ///
    /// What is kept for what senders have credit for is among them; see [`Claim`].
    taken: AtomicU64,
    /// How much of it is only kept.
    claimed: AtomicU64,
    peak: AtomicU64,
    refused: AtomicU64,
    alarm: Alarm,
    /// What nodes take: queues, exchanges, bindings.
    nodes: AtomicU64,
    /// When so many bytes are in use, credit for which nothing is kept is taken back.
    recall_at: AtomicU64,
    /// How often it has been.
    recalls: AtomicU64,
    /// Memory has come back for those who wait, or credit is to be taken back.
    resume_due: AtomicBool,
    waiting: Mutex<Waiting>,
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
    /// A budget whose soft limit is fifteen sixteenths of `limit_bytes`; 0 means without limit.
    pub fn new(limit_bytes: u64) -> Arc<Budget> {
        Budget::with_soft_limit(limit_bytes, limit_bytes - limit_bytes / 16)
    }

    /// A budget with its own soft limit; 0 means without limit.
    pub fn with_soft_limit(limit_bytes: u64, soft_limit_bytes: u64) -> Arc<Budget> {
        let budget = Budget {
            limit: AtomicU64::new(MOST),
            soft_limit: AtomicU64::new(MOST),
            resume: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            alarm: Alarm::default(),
            nodes: AtomicU64::new(0),
            recall_at: AtomicU64::new(MOST),
            recalls: AtomicU64::new(0),
            resume_due: AtomicBool::new(false),
            waiting: Mutex::new(Waiting::default()),
        };
        budget.set(limit_bytes, soft_limit_bytes);
        Arc::new(budget)
    }

    /// Changes the limit, as when a container is given more or less memory; 0 means without limit.
    ///
    /// What is in use stays, even if it is more: then nothing is reserved until enough has gone.
    pub fn set_limit(&self, limit_bytes: u64) {
        self.set(limit_bytes, limit_bytes - limit_bytes / 16);
        let waiting = lock(&self.waiting);
        self.tidy(&waiting);
        self.note_recall(&waiting);
        drop(waiting);
        // Those who wait may have room now; if they have not, they are left in the line.
        self.resume_due.store(true, Ordering::Release);
    }

    fn set(&self, limit_bytes: u64, soft_limit_bytes: u64) {
        let limit = if limit_bytes == 0 { MOST } else { limit_bytes.min(MOST) };
        let soft_limit = if soft_limit_bytes == 0 { limit } else { soft_limit_bytes.min(limit) };
        self.limit.store(limit, Ordering::Relaxed);
        self.soft_limit.store(soft_limit, Ordering::Relaxed);
    }

    /// Reserves `bytes`, or nothing at all.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OverLimit> {
        self.reserve_up_to(self.most(), bytes)
    }

    /// Reserves `bytes` for what serves the operator, or nothing at all.
    ///
    /// Whoever wants to look or to purge can do so also when messages have taken all that they may:
    /// a small part of the limit is kept for that.
    pub fn reserve_for_operator(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OverLimit> {
        self.reserve_up_to(self.limit.load(Ordering::Relaxed), bytes)
    }

    fn reserve_up_to(self: &Arc<Self>, most: u64, bytes: u64) -> Result<Reservation, OverLimit> {
        let Some(charged) = self.charge_up_to(most, bytes) else {
            return Err(OverLimit { bytes, limit: self.limit.load(Ordering::Relaxed) });
        };
        self.note_peak(charged.saturating_sub(self.claimed()));
        Ok(Reservation::new(self, bytes))
    }

    /// Charges `bytes` and says how much that makes, or charges nothing if it would be more than
    /// `most`.
    fn charge_up_to(&self, most: u64, bytes: u64) -> Option<u64> {
        // Relaxed: the counter guards no other memory; only its own value matters.
        let mut word = self.taken.load(Ordering::Relaxed);
        loop {
            if bytes > most || word & MOST > most - bytes {
                return None;
            }
            let charged = word + bytes;
            match self.taken.compare_exchange_weak(
                word,
                charged,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.look_for_debts(charged & MOST);
                    return Some(charged & MOST);
                }
                Err(current) => word = current,
            }
        }
    }

    /// Charges `bytes` whatever the limit: for memory that replaces more memory at once, or that
    /// something already accepted needs.
    pub fn charge(self: &Arc<Self>, bytes: u64) -> Reservation {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.look_for_debts(self.taken());
        self.note_peak(self.used());
        Reservation::new(self, bytes)
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.taken().saturating_sub(self.claimed())
    }

    /// Bytes in use, or kept for what senders have credit for.
    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed) & MOST
    }

    /// The hard limit in bytes; `None` without limit.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != MOST)
    }

    /// Above this many bytes no producer gets further credit; `None` without limit.
    pub fn soft_limit(&self) -> Option<u64> {
        Some(self.soft_limit.load(Ordering::Relaxed)).filter(|limit| *limit != MOST)
    }

    /// True above the soft limit: whoever can do with less memory should.
    pub fn is_short(&self) -> bool {
        self.taken() > self.soft_limit.load(Ordering::Relaxed)
    }

    /// The most bytes that were ever in use.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// How many messages were rejected because there was not enough.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// So many messages are rejected because there is not enough.
    pub fn note_refused(&self, messages: u64) {
        self.refused.fetch_add(messages, Ordering::Relaxed);
    }

    /// How many producers wait for memory.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).line.len()
    }

    /// True if a queue that holds so much holds more than its share, so that its producers get no
    /// further credit.
    pub(crate) fn is_beyond_share(&self, held: u64) -> bool {
        held >= self.share()
    }

    /// The same if so many bytes were given back.
    pub(crate) fn would_be_beyond_share(&self, held: u64, given_back: u64) -> bool {
        held >= self.share().saturating_add(given_back.saturating_mul(SHARE))
    }

    /// True if producers that have waited because their queue holds so much may go on.
    pub(crate) fn may_go_on(&self, held: u64) -> bool {
        self.taken() <= self.level(held)
    }

    /// How many bytes more a queue that holds so much may take before it has its share.
    pub(crate) fn room_for(&self, held: u64) -> u64 {
        // What it takes makes its share smaller, so many times as fast.
        self.share().saturating_sub(held) / (SHARE + 2)
    }

    /// What is free below the soft limit.
    fn free(&self) -> u64 {
        self.soft_limit.load(Ordering::Relaxed).saturating_sub(self.taken())
    }

    /// How much one queue may hold.
    fn share(&self) -> u64 {
        let reserve = self.reach().saturating_sub(self.taken());
        self.free().saturating_mul(SHARE).saturating_add(reserve / RESERVE_SHARES)
    }

    /// Up to here somebody gets credit: what is left above is for the message that comes on it.
    fn reach(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let reserve = limit.saturating_sub(self.soft_limit.load(Ordering::Relaxed));
        self.most() - reserve / 16
    }

    /// What messages may take, and what there is already of nodes: beyond a part of the limit that
    /// is kept for those, and another one for operators.
    fn most(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let for_nodes = kept_for_nodes(limit);
        let nodes = self.nodes.load(Ordering::Relaxed).min(for_nodes);
        limit - kept_for_operators(limit) - for_nodes + nodes
    }

    /// With less than this nobody is promised anything.
    fn least_claim(&self) -> u64 {
        (self.limit.load(Ordering::Relaxed) / LEAST_CLAIM_PART).min(LEAST_CLAIM)
    }

    /// At how many bytes in use producers may go on whose queue holds so much: somewhat less than
    /// where they were stopped, so that they do not stop and go with every message.
    fn level(&self, held: u64) -> u64 {
        let soft_limit = self.soft_limit.load(Ordering::Relaxed);
        let (reach, slack) = (self.reach(), soft_limit / 256);
        let reserve = reach.saturating_sub(soft_limit);
        let needed = (held + held / (SHARE - 1)).saturating_mul(RESERVE_SHARES);
        // Where the share is as large as that; see `share`.
        let level = match needed.checked_sub(reserve) {
            None => reach - needed,
            Some(more) => soft_limit.saturating_sub(more / (SHARE * RESERVE_SHARES + 1)),
        };
        // Whoever goes on finds something.
        level.saturating_sub(slack.min(needed)).min(reach.saturating_sub(self.least_claim()))
    }

    fn give_back(&self, bytes: u64) {
        // Acquire: see `wait`.
        let word = self.taken.fetch_sub(bytes, Ordering::Acquire);
        debug_assert!(word & MOST >= bytes, "more was given back than had been reserved");
        if word & WAITING != 0 && (word & MOST) - bytes <= self.resume.load(Ordering::Relaxed) {
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
            .field("claimed", &self.claimed())
            .field("limit", &self.limit())
            .field("peak", &self.peak())
            .finish_non_exhaustive()
    }
}

/// What messages must leave of a limit.
fn kept_for_operators(limit: u64) -> u64 {
    if limit == MOST || limit < OPERATORS_LEAST_LIMIT {
        return 0;
    }
    (limit / OPERATORS_PART).min(OPERATORS_MOST)
}

/// What messages must leave of a limit for queues, exchanges and bindings.
fn kept_for_nodes(limit: u64) -> u64 {
    if limit == MOST || limit < OPERATORS_LEAST_LIMIT {
        return 0;
    }
    (limit / NODES_PART).min(NODES_MOST)
}

/// The bit of `taken` that says that somebody waits.
const WAITING: u64 = 1 << 63;
/// The bits of `taken` that count bytes.
const MOST: u64 = WAITING - 1;
/// A queue may hold so many times as much as is free.
const SHARE: u64 = 7;
/// A queue may hold one part in so many of what is free up to the hard limit, besides.
const RESERVE_SHARES: u64 = 8;
/// Nobody is promised anything with less than one part in so many of the limit, …
const LEAST_CLAIM_PART: u64 = 8192;
/// … or this.
const LEAST_CLAIM: u64 = 1024;
/// Operators have one part in so many of the limit, …
const OPERATORS_PART: u64 = 256;
/// … and as much as this at most.
const OPERATORS_MOST: u64 = 1 << 20;
/// Nodes have one part in so many of the limit that messages do not get, …
const NODES_PART: u64 = 64;
/// … and as much as this at most; …
const NODES_MOST: u64 = 16 << 20;
/// … and neither have anything of a limit that is too small for a broker.
const OPERATORS_LEAST_LIMIT: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Waker;

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
    fn operators_find_memory_when_messages_have_taken_all_that_they_may() {
        let budget = Budget::new(64 << 20);
        let mut taken = budget.reserve(0).unwrap();
        while let Ok(more) = budget.reserve(1024) {
            taken.merge(more);
        }
        let mut looking = budget.reserve_for_operator(100 << 10).unwrap();
        assert!(budget.reserve(1).is_err());
        while let Ok(more) = budget.reserve_for_operator(1024) {
            looking.merge(more);
        }
        assert!(budget.used() <= 64 << 20, "the limit is that of all together");
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
        assert!(budget.wait(&waker, None, 900).is_some());
        budget.set_limit(100_000);
        assert!(budget.is_resume_due());
        assert_eq!((budget.resume().len(), budget.waiting()), (1, 0));
        assert!(!budget.is_resume_due());
    }

    /// Queues that all take what the rule lets them have, in any order.
    #[test]
    fn whatever_some_queues_take_the_next_one_finds_something() {
        const LIMIT: u64 = 1 << 30;
        let budget = Budget::new(LIMIT);
        let mut queues: Vec<Reservation> = Vec::new();
        for _ in 0..5 {
            let mut queue = Reservation::nothing(&budget);
            while !budget.is_beyond_share(queue.bytes()) {
                let piece = budget.room_for(queue.bytes()).clamp(1, 4096);
                queue.merge(budget.reserve(piece).unwrap());
            }
            queues.push(queue);
            assert!(budget.room_for(0) > 0, "{budget:?}");
        }
        let held: Vec<u64> = queues.iter().map(Reservation::bytes).collect();
        assert!(held[0] > LIMIT * 3 / 4, "one alone may have most: {held:?}");
        assert!(held.windows(2).all(|pair| pair[1] > pair[0] / 10), "{held:?}");
        // What the first gives back is for everybody.
        drop(queues.remove(0));
        assert!(queues.iter().all(|queue| budget.may_go_on(queue.bytes())));
    }

    #[test]
    fn however_many_queues_are_full_an_empty_one_goes_on() {
        for (queues, under_way) in [(20, 1 << 20), (100, 1 << 20), (1_000, 1 << 18)] {
            let budget = Budget::new(64 << 20);
            let mut full: Vec<_> = (0..queues).map(|_| Reservation::nothing(&budget)).collect();
            while full.iter().any(|queue| !budget.is_beyond_share(queue.bytes())) {
                for queue in &mut full {
                    if !budget.is_beyond_share(queue.bytes()) {
                        queue.merge(budget.reserve(2_000).unwrap());
                    }
                }
            }
            // What was under way as they were stopped.
            for queue in &mut full {
                queue.merge(budget.reserve(under_way / queues).unwrap());
            }
            assert!(budget.room_for(0) > 0 && budget.may_go_on(0), "{queues} {budget:?}");
            assert!(full.iter().all(|queue| !budget.may_go_on(queue.bytes())), "{queues}");
        }
    }

    #[test]
    fn those_who_were_stopped_go_on_where_there_is_less_than_that() {
        let budget = Budget::new(64 << 20);
        let mut taken = budget.charge(64 << 20);
        while taken.bytes() > 1 << 20 {
            drop(taken.split(100_000));
            for held in [0, 1, 1_000, 100_000, 500_000, 10_000_000] {
                let goes_on = budget.may_go_on(held);
                assert!(!goes_on || !budget.is_beyond_share(held), "{held} {budget:?}");
            }
        }
    }

    #[test]
    fn queues_that_take_at_the_same_time_end_with_equal_parts() {
        let budget = Budget::new(1 << 30);
        let mut queues: Vec<_> = (0..4).map(|_| Reservation::nothing(&budget)).collect();
        while queues.iter().any(|queue| !budget.is_beyond_share(queue.bytes())) {
            for queue in &mut queues {
                if !budget.is_beyond_share(queue.bytes()) {
                    queue.merge(budget.reserve(4096).unwrap());
                }
            }
        }
        let held: Vec<u64> = queues.iter().map(Reservation::bytes).collect();
        assert!(held.iter().all(|bytes| bytes.abs_diff(held[0]) <= 8192), "{held:?}");
    }

    #[test]
    fn of_those_who_wait_the_one_whose_queue_holds_least_goes_on_first() {
        struct Bell(std::sync::Mutex<Vec<u32>>);
        impl crate::wake::Wake for Bell {
            fn wake(&self, key: u32) {
                self.0.lock().unwrap().push(key);
            }
        }
        let budget = Budget::new(1_000);
        let mut taken = budget.reserve(1_000).unwrap();
        let bell = Arc::new(Bell(std::sync::Mutex::default()));
        for (key, held) in [(0, 600), (1, 10), (2, 300)] {
            assert!(budget.wait(&Waker::new(bell.clone(), key), None, held).is_some());
        }
        let rung = || std::mem::take(&mut *bell.0.lock().unwrap());
        let mut seen = Vec::new();
        for _ in 0..20 {
            drop(taken.split(20));
            budget.resume().perform();
            seen.push(rung());
        }
        assert_eq!(seen.iter().flatten().copied().collect::<Vec<_>>(), [1, 2, 0]);
        assert!(seen.iter().all(|woken| woken.len() < 2), "one after the other: {seen:?}");
        assert_eq!(budget.waiting(), 0);
    }
}
