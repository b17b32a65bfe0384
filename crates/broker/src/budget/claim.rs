//! Memory that is kept for what senders have credit for.

use super::debt::Debt;
use super::{Budget, MemoryPlace, OverLimit, Reservation};
use crate::message::cost_of_one;
use crate::sync::Ordering;
use crate::wake::Waker;
use std::fmt;
use std::sync::Arc;

/// Memory of the node that is kept for the messages of one sender.
///
/// Whoever has credit may use it at any time, all others too. So credit is a promise of memory, and
/// is backed with some: what comes on it is not refused, whatever others bring at the same time.
///
/// Most of those who have credit do not use it at once. So one sender has no more than one part in
/// `CLAIM_PART` of the limit, and all together have one part in `CLAIMS_PART`. What a sender gets
/// beyond that, one part in `UNBACKED_PART` of the limit or a message, it *owes*, as does a sender
/// whose first message has not come. When memory becomes short debts are called in: from then on
/// there is no credit without memory, and those wait in line for whom there is none.
///
/// ```text
///          claims end, memory is free             debts are called in, or there is no memory
///   backed ──────────────────────────▶ owing ──────────────────────────────────▶ waiting
///      ▲  ◀────────────────────────────  │  ◀──────────────────────────────────   │
///      │        there is a claim            called, and memory is free            │
///      └──────────────────────────────────────────────────────────────────────────┘
///                         called: it has a claim for one message
/// ```
pub struct Claim {
    kept: Reservation,
    owes: Option<Debt>,
    /// Where it stands in the line of those who wait for memory.
    place: Option<MemoryPlace>,
    /// It has memory for one message that others may need more.
    is_loan: bool,
}

impl Claim {
    /// Nothing yet.
    pub fn nothing(budget: &Arc<Budget>) -> Claim {
        Claim { kept: Reservation::nothing(budget), owes: None, place: None, is_loan: false }
    }

    /// Keeps memory for so many messages of `message_bytes` each, or for as many of them as it may,
    /// and says how many may be promised. If that is none, `waker` is told when there may be some.
    ///
    /// What is kept already stays. Messages of which nobody has seen one, `None`, may be large, and
    /// may never come.
    pub fn cover(
        &mut self,
        waker: impl Fn() -> Waker,
        messages: u32,
        message_bytes: Option<u64>,
    ) -> u32 {
        let Some(limit) = self.kept.budget().limit() else { return messages };
        self.is_loan = false;
        let covered = match message_bytes {
            Some(bytes) => self.cover_seen(&waker, limit, messages, cost_of_one(bytes)),
            None => self.cover_unseen(&waker, limit),
        };
        if covered > 0 {
            self.leave_line();
        }
        u32::try_from(covered).unwrap_or(u32::MAX).min(messages)
    }

    fn cover_seen(
        &mut self,
        waker: &impl Fn() -> Waker,
        limit: u64,
        messages: u32,
        each: u64,
    ) -> u64 {
        let wanted = u64::from(messages).saturating_mul(each);
        self.grow(wanted.min(limit / CLAIM_PART));
        let kept = self.kept.bytes();
        let least = wanted.min(each.max(limit / UNBACKED_PART));
        if kept >= least {
            self.repay();
            return kept / each;
        }
        match (kept + self.owe(waker, least - kept)) / each {
            0 => self.cover_one(waker, each, 1),
            covered => covered,
        }
    }

    fn cover_unseen(&mut self, waker: &impl Fn() -> Waker, limit: u64) -> u64 {
        let much = (limit / CLAIM_PART).min(MOST_UNSEEN_BYTES);
        if self.kept.budget().is_plenty_for(2 * much) && self.owe(waker, much) > 0 {
            return (much / UNSEEN_MESSAGE_BYTES).max(1);
        }
        match self.owe(waker, LEAST_UNSEEN_BYTES) {
            0 => self.cover_one(waker, LEAST_UNSEEN_BYTES, UNSEEN_STEP),
            _ => 1,
        }
    }

    /// Keeps memory for one message, or for a part of it if there is no more, of which the rest is
    /// then taken from the end of the limit: one part in `step` of what there is. 0 if there is none.
    fn cover_one(&mut self, waker: &impl Fn() -> Waker, each: u64, step: u64) -> u64 {
        for _ in 0..RACES {
            let budget = self.kept.budget();
            let (reach, least) = (budget.reach(), budget.least_claim());
            let room = reach.saturating_sub(budget.taken());
            let part = room.min((room / step).max(least));
            let more = each.saturating_sub(self.kept.bytes()).min(part);
            if self.kept.bytes() + more >= least.min(each) {
                // Another one may have been faster.
                if let Some(more) = budget.reserve_for_claim(reach, more) {
                    self.put_back(more);
                    self.is_loan = true;
                    return 1;
                }
            } else {
                self.place = budget.wait(&waker(), self.place, 0);
                if self.place.is_some() {
                    return 0;
                }
            }
        }
        self.stand_last(waker());
        0
    }

    /// Whether as much is kept for so many messages of `message_bytes` each as they need, nearly, or
    /// as anybody has.
    pub fn covers(&self, messages: u32, message_bytes: Option<u64>) -> bool {
        let each = message_bytes.map_or(0, cost_of_one);
        let needed = u64::from(messages).saturating_mul(each);
        let (kept, enough) = (self.kept.bytes(), needed - needed / 8);
        if messages == 0 || kept >= enough && kept > 0 || self.kept.budget().limit().is_none() {
            return true;
        }
        let owed = self.owes.as_ref().filter(|debt| self.kept.budget().stands(debt));
        let backed = kept + owed.map_or(0, |debt| debt.bytes);
        backed > 0 && (backed >= enough || messages == 1)
    }

    /// Gives back what is more than so many messages of `message_bytes` each need, if it is much.
    pub fn trim(&mut self, messages: u32, message_bytes: Option<u64>) {
        if messages == 0 {
            self.repay();
        } else if message_bytes.is_none() {
            return;
        }
        let each = message_bytes.map_or(0, cost_of_one);
        let needed = u64::from(messages).saturating_mul(each);
        let excess = self.kept.bytes().saturating_sub(needed);
        if excess > needed / 8 {
            self.note_less(excess);
            drop(self.kept.split(excess));
        }
    }

    /// Gives everything back, and waits behind all others who do.
    pub fn give_up(&mut self, waker: Waker) {
        self.trim(0, None);
        self.stand_last(waker);
    }

    /// Memory for what has come: what was kept, and beyond that what is free up to the hard limit.
    pub fn take(&mut self, bytes: u64) -> Result<Reservation, OverLimit> {
        let budget = self.kept.budget();
        let kept = bytes.min(self.kept.bytes());
        if kept == 0 {
            return budget.reserve(bytes);
        }
        let more = match bytes - kept {
            0 => None,
            rest => Some(budget.reserve(rest)?),
        };
        self.note_less(kept);
        let mut taken = self.kept.split(kept);
        if let Some(more) = more {
            taken.merge(more);
        }
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

    /// Whether it has only been lent what it has, for one message: if others wait and it does not use
    /// it, it should [give it up](Claim::give_up).
    pub fn is_loan(&self) -> bool {
        self.is_loan
    }

    /// Takes what somebody else has kept for it, and waits no longer.
    pub(crate) fn take_over(&mut self, kept: Reservation) {
        self.put_back(kept);
        self.leave_line();
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
        let soft_limit = budget.soft_limit.load(Ordering::Relaxed);
        if let Some(more) = budget.reserve_for_claim(soft_limit, more) {
            self.put_back(more);
        }
    }

    /// Owes `bytes`, in place of what it owes; says how much it may.
    fn owe(&mut self, waker: &impl Fn() -> Waker, bytes: u64) -> u64 {
        let owes = self.owes.take();
        self.owes = self.kept.budget().lend(waker(), bytes, owes);
        self.owes.as_ref().map_or(0, |debt| debt.bytes)
    }

    fn repay(&mut self) {
        if let Some(debt) = self.owes.take() {
            self.kept.budget().repay(debt);
        }
    }

    fn stand_last(&mut self, waker: Waker) {
        self.leave_line();
        self.place = Some(self.kept.budget().queue_up(&waker, 0));
    }

    fn leave_line(&mut self) {
        if let Some(place) = self.place.take() {
            self.kept.budget().leave(place);
        }
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
        self.leave_line();
        self.repay();
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

    /// So much a queue that is read may keep of what its messages leave when memory is short; more if
    /// one message needs it.
    pub(crate) fn least_kept(&self) -> u64 {
        self.limit.load(Ordering::Relaxed) / UNBACKED_PART
    }

    /// Charges `bytes` that somebody keeps in place of what is just being given back, if the limit
    /// has room for both as long as that takes.
    pub(crate) fn keep(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.reserve_for_claim(self.limit.load(Ordering::Relaxed), bytes)
    }

    /// How much more may be kept for senders.
    fn claimable(&self) -> u64 {
        let most = self.limit.load(Ordering::Relaxed) / CLAIMS_PART;
        self.free().min(most.saturating_sub(self.claimed()))
    }

    /// Reserves `bytes` if that makes no more than `most`.
    fn reserve_for_claim(self: &Arc<Self>, most: u64, bytes: u64) -> Option<Reservation> {
        self.charge_up_to(most, bytes).map(|_| Reservation::new(self, bytes))
    }
}

/// One sender has at most one part in so many of the limit.
const CLAIM_PART: u64 = 256;
/// All of them together have one part in so many of it.
const CLAIMS_PART: u64 = 4;
/// One takes at most one part in so many of what may still be kept, so that the last finds some.
const CLAIM_STEP: u64 = 16;
/// One may owe one part in so many of the limit, or a message.
const UNBACKED_PART: u64 = 4096;
/// The size of messages of which none has been seen: that of large ones.
const UNSEEN_MESSAGE_BYTES: u64 = 64 << 10;
/// One whose first message has not come may owe so much, …
const MOST_UNSEEN_BYTES: u64 = 4 << 20;
/// … or, if there is no plenty, this.
const LEAST_UNSEEN_BYTES: u64 = 8 << 10;
/// When memory is short it has one part in so many of what there is.
const UNSEEN_STEP: u64 = 8;
/// So often others may be faster.
const RACES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that is never told anything.
    fn nobody() -> Waker {
        struct Nobody;
        impl crate::wake::Wake for Nobody {
            fn wake(&self, _: u32) {}
        }
        Waker::new(Arc::new(Nobody), 0)
    }

    #[test]
    fn what_is_kept_for_a_sender_is_not_refused_whatever_others_take() {
        let budget = Budget::new(8 << 20);
        let mut claim = Claim::nothing(&budget);
        let messages = claim.cover(nobody, 10, Some(2_000));
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
    fn nobody_is_promised_much_and_as_long_as_memory_is_free_everybody_something() {
        let budget = Budget::new(64 << 20);
        let mut claims: Vec<_> = (0..1_000).map(|_| Claim::nothing(&budget)).collect();
        let promised: Vec<_> =
            claims.iter_mut().map(|it| it.cover(nobody, 1_000, Some(1_000))).collect();
        assert!(promised[0] > 200 && promised[0] < 256, "{}", promised[0]);
        assert!(promised.iter().all(|messages| *messages > 10), "beyond what is kept");
        assert!(budget.claimed() <= 16 << 20, "{budget:?}");
        assert_eq!(claims.iter().map(Claim::bytes).sum::<u64>(), budget.claimed());
        drop(claims);
        assert_eq!((budget.claimed(), budget.taken(), budget.waiting()), (0, 0, 0));
    }

    #[test]
    fn a_sender_of_which_nothing_has_been_seen_is_promised_little_and_nothing_is_kept_for_it() {
        let budget = Budget::new(64 << 20);
        let mut claim = Claim::nothing(&budget);
        assert_eq!((claim.cover(nobody, 1_000, None), budget.claimed()), (4, 0));
        let without_limit = Budget::new(0);
        assert_eq!(Claim::nothing(&without_limit).cover(nobody, 1_000, None), 1_000);
    }

    #[test]
    fn debts_are_called_in_when_memory_becomes_short() {
        let budget = Budget::new(64 << 20);
        let mut claims: Vec<_> = (0..100).map(|_| Claim::nothing(&budget)).collect();
        let promised = |claims: &mut [Claim]| -> u64 {
            claims.iter_mut().map(|it| u64::from(it.cover(nobody, 1_000, None))).sum()
        };
        assert!(promised(&mut claims) >= 100);
        assert!(claims.iter().all(|claim| claim.covers(1, None)));
        let mut full = budget.reserve(28 << 20).unwrap();
        assert!(!budget.is_resume_due(), "half of what was free is still free");
        full.merge(budget.reserve(30 << 20).unwrap());
        assert_eq!(budget.resume().len(), 100, "all of them look at their credit again");
        assert!(!claims.iter().any(|claim| claim.covers(1, None)));
        full.merge(budget.reserve(4_400 << 10).unwrap());
        let promised = promised(&mut claims);
        assert!(promised > 10 && promised < 100, "{promised} may bring what is kept for them");
        assert!(budget.taken() <= budget.reach());
        assert_eq!(budget.waiting() as u64, 100 - promised, "the others wait");
        // Whoever has waited goes on with what another one gives up, who then waits behind the rest.
        let first = claims.iter().position(|claim| claim.bytes() > 0).unwrap();
        claims[first].give_up(nobody());
        assert_eq!(budget.waiting() as u64, 101 - promised);
        assert_eq!(budget.resume().len(), 1);
        let waits = claims.iter().position(|claim| claim.place.is_some()).unwrap();
        assert_eq!(claims[waits].cover(nobody, 1_000, None), 1);
        drop(claims);
        drop(full);
        assert_eq!((budget.claimed(), budget.taken(), budget.waiting()), (0, 0, 0));
    }

    #[test]
    fn what_is_not_needed_any_more_is_given_back() {
        let budget = Budget::new(64 << 20);
        let mut claim = Claim::nothing(&budget);
        assert_eq!(claim.cover(nobody, 100, Some(1_000)), 100);
        assert!(claim.covers(100, Some(1_000)) && !claim.covers(100, Some(2_000)));
        claim.trim(50, Some(1_000));
        assert_eq!(claim.bytes(), 50 * cost_of_one(1_000));
        let part = claim.take(500).unwrap();
        claim.put_back(part);
        assert_eq!(budget.claimed(), 50 * cost_of_one(1_000));
    }

    #[test]
    fn whoever_waits_for_memory_is_called_when_a_claim_ends() {
        let budget = Budget::with_soft_limit(1 << 20, 1 << 20);
        let mut claim = Claim::nothing(&budget);
        claim.cover(nobody, 4, Some(1_000));
        let full = budget.charge((1 << 20) - claim.bytes() + 1);
        assert!(budget.wait(&nobody(), None, 0).is_some());
        drop(claim);
        assert!(budget.is_resume_due());
        assert_eq!(budget.resume().len(), 1);
        drop(full);
    }
}
