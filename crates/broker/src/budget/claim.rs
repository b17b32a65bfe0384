//! Memory that is kept for what senders have credit for.

use super::{Budget, OverLimit, Reservation};
use crate::message::cost_of_one;
use crate::sync::Ordering;
use std::fmt;
use std::sync::Arc;

/// Memory of the node that is kept for the messages of one sender.
///
/// Whoever has credit may use it at any time, all others too. So credit is a promise of memory, and
/// is backed with some: what comes on it is never refused, whatever others bring at the same time.
///
/// Nobody has much of it, since most of those who have credit do not use it at once: one part in
/// `CLAIM_PART` of the limit, and all together one part in `CLAIMS_PART`. Where that is not enough,
/// a sender has credit all the same, for one part in `UNBACKED_PART` of the limit or for one message:
/// nobody waits because others might send. What comes on that is taken from what is left above the
/// soft limit.
pub struct Claim {
    kept: Reservation,
}

impl Claim {
    /// Nothing yet.
    pub fn nothing(budget: &Arc<Budget>) -> Claim {
        Claim { kept: Reservation::nothing(budget) }
    }

    /// Keeps memory for so many messages of `message_bytes` each, or for as many of them as it may,
    /// and says how many may be promised: at least one.
    ///
    /// What is kept already stays. Of a sender whose messages nobody has seen yet, `None`, they may
    /// be large, and it may never send one: it is promised little, and nothing is kept for it.
    pub fn cover(&mut self, messages: u32, message_bytes: Option<u64>) -> u32 {
        let budget = self.kept.budget();
        let Some(limit) = budget.limit() else { return messages };
        let most = limit / CLAIM_PART;
        let (covered, each) = match message_bytes {
            None => (most.min(budget.free() / CLAIM_STEP), FIRST_GUESS_BYTES),
            Some(bytes) => {
                let each = cost_of_one(bytes);
                self.grow(most.min(u64::from(messages).saturating_mul(each)));
                (self.kept.bytes().max(self.unbacked(limit)), each)
            }
        };
        u32::try_from(covered / each).unwrap_or(u32::MAX).max(1).min(messages)
    }

    /// Whether so much has been kept, nearly, for so many messages of `message_bytes` each, that
    /// they need not be looked at again.
    pub fn covers(&self, messages: u32, message_bytes: u64) -> bool {
        let needed = u64::from(messages).saturating_mul(cost_of_one(message_bytes));
        let kept = self.kept.bytes();
        kept >= needed - needed / 8
            || messages <= 1
            || self
                .kept
                .budget()
                .limit()
                .is_none_or(|limit| needed <= kept.max(self.unbacked(limit)))
    }

    /// Gives back what is more than so many messages of `message_bytes` each need, if it is much.
    pub fn trim(&mut self, messages: u32, message_bytes: u64) {
        let needed = u64::from(messages).saturating_mul(cost_of_one(message_bytes));
        let excess = self.kept.bytes().saturating_sub(needed);
        if excess > needed / 8 {
            self.note_less(excess);
            drop(self.kept.split(excess));
        }
    }

    /// Memory for what has come: what was kept, and beyond that what is free up to the hard limit.
    pub fn take(&mut self, bytes: u64) -> Result<Reservation, OverLimit> {
        let kept = bytes.min(self.kept.bytes());
        let more = match bytes - kept {
            0 => Reservation::nothing(self.kept.budget()),
            rest => self.kept.budget().reserve(rest)?,
        };
        if kept == 0 {
            return Ok(more);
        }
        self.note_less(kept);
        let mut taken = self.kept.split(kept);
        taken.merge(more);
        let budget = self.kept.budget();
        budget.note_peak(budget.used());
        Ok(taken)
    }

    /// Keeps what something had that has come, until it is taken again.
    pub fn put_back(&mut self, taken: Reservation) {
        self.note_more(taken.bytes());
        self.kept.merge(taken);
    }

    /// Where it comes from.
    pub(crate) fn budget(&self) -> &Budget {
        self.kept.budget()
    }

    /// How much is kept.
    pub fn bytes(&self) -> u64 {
        self.kept.bytes()
    }

    fn grow(&mut self, wanted: u64) {
        let Some(lacking) = wanted.checked_sub(self.kept.bytes()).filter(|it| *it > 0) else {
            return;
        };
        let budget = self.kept.budget();
        let more = lacking.min(budget.claimable() / CLAIM_STEP);
        if let Some(more) = budget.reserve_for_claim(more) {
            self.put_back(more);
        }
    }

    /// What a sender may bring for which nothing is kept.
    fn unbacked(&self, limit: u64) -> u64 {
        if self.kept.budget().is_short() { 0 } else { limit / UNBACKED_PART }
    }

    fn note_more(&self, bytes: u64) {
        self.kept.budget().claimed.fetch_add(bytes, Ordering::Relaxed);
    }

    fn note_less(&self, bytes: u64) {
        self.kept.budget().claimed.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.kept.bytes() > 0 {
            self.note_less(self.kept.bytes());
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.kept.bytes()).finish()
    }
}

impl Budget {
    /// Bytes that are kept for what senders have credit for.
    pub fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// How much more may be kept for senders.
    fn claimable(&self) -> u64 {
        let most = self.limit.load(Ordering::Relaxed) / CLAIMS_PART;
        self.free().min(most.saturating_sub(self.claimed()))
    }

    /// Reserves `bytes` below the soft limit, or nothing.
    fn reserve_for_claim(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let most = self.soft_limit.load(Ordering::Relaxed);
        self.charge_up_to(most, bytes).map(|_| Reservation::new(self, bytes))
    }
}

/// One sender has at most one part in so many of the limit.
const CLAIM_PART: u64 = 256;
/// All of them together have one part in so many of it.
const CLAIMS_PART: u64 = 4;
/// One takes at most one part in so many of what may still be kept, so that the last finds some.
const CLAIM_STEP: u64 = 16;
/// One may bring one part in so many of the limit for which nothing is kept.
const UNBACKED_PART: u64 = 4096;
/// The size of messages of which none has been seen: that of large ones.
const FIRST_GUESS_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_a_sender_is_not_refused_whatever_others_take() {
        let budget = Budget::new(8 << 20);
        let mut claim = Claim::nothing(&budget);
        let messages = claim.cover(10, Some(2_000));
        assert_eq!((messages, budget.used()), (10, 0));
        let mut others = budget.reserve(0).unwrap();
        while let Ok(more) = budget.reserve(2_000) {
            others.merge(more);
        }
        let taken: Vec<_> = (0..messages).map(|_| claim.take(cost_of_one(2_000))).collect();
        assert!(taken.iter().all(Result::is_ok));
        assert_eq!((claim.bytes(), budget.claimed()), (0, 0));
        assert!(budget.used() <= 8 << 20 && budget.peak() == budget.used());
        assert!(claim.take(2_000).is_err(), "that was not promised");
    }

    #[test]
    fn nobody_is_promised_much_and_everybody_something() {
        let budget = Budget::new(64 << 20);
        let mut claims: Vec<_> = (0..2_000).map(|_| Claim::nothing(&budget)).collect();
        let promised: Vec<_> = claims.iter_mut().map(|it| it.cover(1_000, Some(1_000))).collect();
        assert!(promised[0] > 200 && promised[0] < 256, "{}", promised[0]);
        assert!(promised.iter().all(|messages| *messages > 10), "beyond what is kept");
        assert!(budget.claimed() <= 16 << 20, "{budget:?}");
        assert_eq!(claims.iter().map(Claim::bytes).sum::<u64>(), budget.claimed());
        drop(claims);
        assert_eq!((budget.claimed(), budget.taken()), (0, 0));
    }

    #[test]
    fn a_sender_that_nobody_knows_is_promised_little_and_nothing_is_kept_for_it() {
        let budget = Budget::new(64 << 20);
        let mut claim = Claim::nothing(&budget);
        assert_eq!((claim.cover(1_000, None), budget.claimed()), (4, 0));
        let full = budget.charge(60 << 20);
        assert_eq!(claim.cover(1_000, None), 1);
        drop(full);
        let without_limit = Budget::new(0);
        assert_eq!(Claim::nothing(&without_limit).cover(1_000, None), 1_000);
    }

    #[test]
    fn what_is_not_needed_any_more_is_given_back() {
        let budget = Budget::new(64 << 20);
        let mut claim = Claim::nothing(&budget);
        assert_eq!(claim.cover(100, Some(1_000)), 100);
        assert!(claim.covers(100, 1_000) && !claim.covers(100, 2_000));
        claim.trim(50, 1_000);
        assert_eq!(claim.bytes(), 50 * cost_of_one(1_000));
        let part = claim.take(500).unwrap();
        claim.put_back(part);
        assert_eq!(budget.claimed(), 50 * cost_of_one(1_000));
    }

    #[test]
    fn whoever_waits_for_memory_is_called_when_a_claim_ends() {
        struct Nobody;
        impl crate::wake::Wake for Nobody {
            fn wake(&self, _: u32) {}
        }
        let budget = Budget::with_soft_limit(1 << 20, 1 << 20);
        let mut claim = Claim::nothing(&budget);
        claim.cover(4, Some(1_000));
        let full = budget.charge((1 << 20) - claim.bytes() + 1);
        let waker = crate::wake::Waker::new(Arc::new(Nobody), 0);
        assert!(budget.wait(&waker, None, 0).is_some());
        drop(claim);
        assert!(budget.is_resume_due());
        assert_eq!(budget.resume().len(), 1);
        drop(full);
    }
}
