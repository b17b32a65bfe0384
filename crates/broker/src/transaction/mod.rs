//! Transactions: messages that come and outcomes that count together, or not at all (part 4).
//!
//! ```text
//!              enqueue, settle                    commit
//!   begin ──▶ open ──────────────▶ open ──────────────────────▶ committed
//!              │ something was refused, a queue went, time is up
//!              ▼                              rollback
//!            doomed ────────────────────────────────────────▶ rolled back
//! ```
//!
//! What can fail fails when it is asked for, not when it is committed: a message has its memory
//! and its room in the queue from the moment it comes, and a message that is settled is the
//! transaction's alone. So a commit is applied to all queues in one step, under the locks of all of
//! them, and nobody sees a part of it.

mod fault;
mod offer;
mod part;
mod settings;
mod standoff;

pub use fault::Fault;
pub use part::Held;
pub use settings::{TransactionSettings, TransactionTotals};
pub use standoff::{PATIENCE_MS, Wait, Waiter, Waiting};

pub(crate) use settings::Totals;
pub(crate) use standoff::Standoffs;

use crate::budget::Reservation;
use crate::exchange::LastToBe;
use crate::message::Batch;
use crate::node::Node;
use crate::queue::{Aftermath, Enqueued, Outcome, Refusal, Rejected, Settlement, SharedQueue};
use crate::wake::Wakeups;
use mochila_wire::Now;
use offer::{Offer, Offered};
use part::{Part, Pledge, Post};
use std::sync::Arc;

/// One transaction. It ends with [`Transaction::commit`] or [`Transaction::rollback`].
///
/// It is a machine without a lock of its own: whoever serves the connection that declared it has
/// it. Its queues are locked while it is changed, each for itself, and all at once by a commit.
#[derive(Debug)]
#[must_use = "queues keep room for it, and its messages from others, until it ends"]
pub struct Transaction {
    node: Arc<Node>,
    /// What it has done at each queue, in the order in which they were used first.
    parts: Vec<Part>,
    /// What exchanges have brought to their queues.
    offers: Vec<Offer>,
    /// What exchanges are to keep as their last messages, one for each.
    lasts: Vec<LastToBe>,
    operations: u64,
    bytes: u64,
    /// When the first thing was done in it; `u64::MAX` as long as nothing has been.
    began_ms: u64,
    /// Pays for what is kept of the outcomes told in it.
    notes: Reservation,
    /// Why it can only be rolled back.
    fault: Option<Box<Fault>>,
}

impl Transaction {
    pub(crate) fn new(node: &Arc<Node>) -> Transaction {
        node.totals().begun();
        Transaction {
            parts: Vec::new(),
            offers: Vec::new(),
            lasts: Vec::new(),
            operations: 0,
            bytes: 0,
            began_ms: u64::MAX,
            notes: Reservation::nothing(node.budget()),
            fault: None,
            node: Arc::clone(node),
        }
    }

    /// Why it can only be rolled back, if so.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref()
    }

    /// When the first thing was done in it; `None` as long as nothing has been.
    pub fn began_ms(&self) -> Option<u64> {
        Some(self.began_ms).filter(|began_ms| *began_ms != u64::MAX)
    }

    /// Whether it has brought messages, wherever to.
    pub fn has_brought(&self) -> bool {
        self.parts.iter().any(|part| !part.posts.is_empty())
    }

    /// The queues that keep room for messages that it has brought, and for how many.
    pub fn kept(&self) -> impl Iterator<Item = (&Arc<SharedQueue>, u64)> {
        let each = self
            .parts
            .iter()
            .map(|part| (&part.queue, part.posts.iter().map(|post| post.room.messages).sum()));
        each.filter(|(_, messages)| *messages > 0)
    }

    /// Takes the messages of a batch for a queue, which gets them if the transaction succeeds;
    /// empties the batch.
    ///
    /// All of them have their room in the queue from now on, or the transaction is doomed.
    pub fn enqueue(
        &mut self,
        now: Now,
        queue: &Arc<SharedQueue>,
        batch: &mut Batch,
        is_held_back: bool,
    ) -> (Enqueued, Wakeups) {
        let (enqueued, mut wakeups) =
            self.bring(now, queue, batch, Manner { is_held_back, offered: None });
        if let Some(first) = enqueued.rejected.first()
            && self.fault.is_none()
        {
            wakeups.merge(self.doom(now, Fault::Refused(first.reason)));
        }
        (enqueued, wakeups)
    }

    /// An exchange begins to send a batch to its queues, one after another by
    /// [`Transaction::offer`]. Messages whose queues are all gone when the transaction is committed
    /// make it fail, unless they may vanish: the exchange drops what no queue is bound for, and tells
    /// nobody.
    pub(crate) fn begin_offer(&mut self, may_vanish: bool) {
        // Nothing is kept of what comes to a transaction that fails.
        if self.fault.is_none() {
            self.offers.push(Offer { refused: Vec::new(), may_vanish });
        }
    }

    /// Messages of this offer that one of its queues had no room for.
    pub(crate) fn end_offer(&mut self, refused: impl Iterator<Item = u32>) {
        let Some(offer) = self.offers.last_mut().filter(|_| self.fault.is_none()) else { return };
        offer.refused.extend(refused);
        offer.refused.sort_unstable();
    }

    /// Takes messages of the batch that an exchange sends to its queues for one of them; empties the
    /// batch. `places` are theirs in the batch of the exchange, none if it is the whole batch. A queue
    /// that refuses some, or that is gone when the transaction is committed, does not get them.
    pub(crate) fn offer(
        &mut self,
        now: Now,
        queue: &Arc<SharedQueue>,
        (batch, places): (&mut Batch, &[u32]),
        is_held_back: bool,
    ) -> (Enqueued, Wakeups) {
        let offer = self.offers.len().saturating_sub(1);
        let manner = |indexes: Box<[u32]>| {
            let offered = Some(Offered { offer, indexes });
            Manner { is_held_back, offered }
        };
        let mut indexes: Vec<u32> = (0..batch.len() as u32).collect();
        let all = batch.take();
        batch.copy_of(&all);
        let (mut enqueued, mut wakeups) = self.bring(now, queue, batch, manner(places.into()));
        if enqueued.rejected.is_empty() || self.fault.is_some() {
            return (enqueued, wakeups);
        }
        // Room is kept for all or none, so those that fit come again.
        let refused = |index: &u32| enqueued.rejected.iter().any(|it| it.index == *index);
        indexes.retain(|index| !refused(index));
        batch.select(&all, &indexes);
        let place = |index: &u32| places.get(*index as usize).copied().unwrap_or(*index);
        let again = manner(indexes.iter().map(place).collect());
        let (again, woken) = self.bring(now, queue, batch, again);
        wakeups.merge(woken);
        let more = again.rejected.iter();
        enqueued.rejected.extend(
            more.map(|it| Rejected { index: indexes[it.index as usize], reason: it.reason }),
        );
        if let Some(first) = again.rejected.first() {
            let is_missing = |index: &&u32| !enqueued.rejected.iter().any(|it| it.index == **index);
            let missing: Vec<u32> = indexes.iter().filter(is_missing).copied().collect();
            let reason = first.reason;
            enqueued
                .rejected
                .extend(missing.iter().map(|index| Rejected { index: *index, reason }));
        }
        enqueued.rejected.sort_by_key(|rejected| rejected.index);
        enqueued.accepted = all.len() as u32 - enqueued.rejected.len() as u32;
        (enqueued, wakeups)
    }

    fn bring(
        &mut self,
        now: Now,
        queue: &Arc<SharedQueue>,
        batch: &mut Batch,
        manner: Manner,
    ) -> (Enqueued, Wakeups) {
        self.began_ms = self.began_ms.min(now.mono_ms);
        // Where messages go is decided when they come: they have their room there from then on.
        let peer = queue.peer();
        let is_redirected = peer.is_some();
        let queue = peer.as_ref().unwrap_or(queue);
        let count = batch.len() as u32;
        let mut wakeups = Wakeups::new();
        let place = if manner.offered.is_some() { size_of::<u32>() } else { 0 };
        let note = count as usize * (part::MESSAGE_NOTE + place);
        let counted = self.check_queue(queue);
        let counted = counted.and_then(|()| self.count(u64::from(count), batch.bytes(), note));
        let paid = match counted {
            Ok(paid) => paid,
            Err(fault) => {
                wakeups.merge(self.doom(now, fault));
                return (batch.refuse(Refusal::Doomed), wakeups);
            }
        };
        // Whoever sends from the place of another queue is no producer of this one.
        let Manner { is_held_back, offered } = manner;
        let is_held_back = is_held_back && !is_redirected;
        let (reserved, woken) = queue.reserve(batch, is_held_back);
        wakeups.merge(woken);
        let mut is_closed = true;
        let rejected = match reserved {
            Ok((room, closed)) => {
                is_closed = closed;
                let post = Post { came: now, room, batch: batch.take(), offered, _paid: paid };
                self.part(queue).posts.push(post);
                Vec::new()
            }
            Err(rejected) => {
                batch.clear();
                rejected
            }
        };
        let accepted = count - rejected.len() as u32;
        (Enqueued { accepted, rejected, is_closed }, wakeups)
    }

    /// Messages that a consumer holds are accepted, by their positions, if the transaction
    /// succeeds.
    pub fn accept(&mut self, now: Now, held: &Held<'_>, positions: &[u64]) -> Wakeups {
        let mut pledges = Vec::new();
        part::pledge(&mut pledges, positions.iter().copied(), &Outcome::Accept);
        self.retire(now, held, pledges)
    }

    /// Messages that a consumer holds get these outcomes if the transaction succeeds.
    pub fn settle(&mut self, now: Now, held: &Held<'_>, settlements: &[Settlement]) -> Wakeups {
        let mut pledges = Vec::new();
        let mut rest = settlements;
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|next| next.outcome == first.outcome).count();
            let positions = rest[..same].iter().map(|settlement| settlement.position);
            part::pledge(&mut pledges, positions, &first.outcome);
            rest = &rest[same..];
        }
        self.retire(now, held, pledges)
    }

    /// The consumer is to have messages again that it has not settled, as the transaction fails.
    pub fn give_back(&self, now: Now, held: &Held<'_>, positions: &[u64]) -> Wakeups {
        let mut pledges = Vec::new();
        part::pledge(&mut pledges, positions.iter().copied(), &Outcome::Release);
        held.queue.unpledge(now, held.consumer, pledges.iter().map(|pledge| pledge.run))
    }

    /// An exchange is to keep this message as its last one, if the transaction succeeds.
    pub(crate) fn note_last(&mut self, last: Option<LastToBe>) {
        let Some(last) = last.filter(|_| self.fault.is_none()) else { return };
        match self.lasts.binary_search_by_key(&last.address(), LastToBe::address) {
            Ok(index) => self.lasts[index] = last,
            Err(index) => self.lasts.insert(index, last),
        }
    }

    /// It can only be rolled back from now on. What it has brought is given up at once.
    pub fn doom(&mut self, now: Now, fault: Fault) -> Wakeups {
        self.fault.get_or_insert_with(|| Box::new(fault));
        self.lasts = Vec::new();
        self.offers = Vec::new();
        let mut wakeups = Wakeups::new();
        for part in &mut self.parts {
            wakeups.merge(part.give_up_posts(now));
        }
        wakeups
    }

    /// Does all of it, at all queues in one step.
    ///
    /// # Errors
    /// If none of it can be done: it knows its [`fault`](Transaction::fault) and is to be rolled
    /// back.
    #[allow(clippy::result_large_err, reason = "it is moved once, when it fails")]
    pub fn commit(mut self, now: Now) -> Result<Wakeups, Transaction> {
        if self.fault.is_some() {
            return Err(self);
        }
        let lasts = std::mem::take(&mut self.lasts);
        // Nobody is bound, and nothing else becomes the last message, while this is done. They are
        // locked before queues, and in the order of the list.
        let mut places: Vec<_> = lasts.iter().map(LastToBe::lock).collect();
        let committed = match &mut self.parts[..] {
            [part] => commit_one(now, part, &self.offers).map(|aftermath| vec![aftermath]),
            parts => commit_all(now, parts, &self.offers),
        };
        let aftermaths = match committed {
            Ok(aftermaths) => aftermaths,
            Err(fault) => {
                self.fault = Some(Box::new(fault));
                return Err(self);
            }
        };
        let Transaction { mut parts, notes, node, .. } = self;
        // Without a lock, and before those who wait for memory are called.
        parts.iter_mut().for_each(Part::free_posts);
        drop(notes);
        let mut wakeups = Wakeups::new();
        for (last, place) in lasts.iter().zip(places.iter_mut().flatten()) {
            wakeups.merge(last.become_last(now, place));
        }
        drop(places);
        for (part, aftermath) in parts.iter().zip(aftermaths) {
            wakeups.merge(part.queue.follow(aftermath));
        }
        node.totals().committed();
        Ok(wakeups)
    }

    /// Does none of it: what it has brought is gone, and messages that were settled in it get the
    /// outcome that they have without one.
    pub fn rollback(self, now: Now) -> Wakeups {
        self.roll_back(now, None)
    }

    /// Does none of it, as its connection broke: messages that were settled in it get this outcome.
    pub fn rollback_with(self, now: Now, outcome: &Outcome) -> Wakeups {
        self.roll_back(now, Some(outcome))
    }

    fn roll_back(mut self, now: Now, outcome: Option<&Outcome>) -> Wakeups {
        let mut wakeups = Wakeups::new();
        for part in &mut self.parts {
            wakeups.merge(part.give_up_posts(now));
            wakeups.merge(part.give_up_pledges(now, outcome));
        }
        match self.began_ms() {
            Some(_) => self.node.totals().rolled_back(),
            None => self.node.totals().unused(),
        }
        wakeups
    }

    fn retire(&mut self, now: Now, held: &Held<'_>, pledges: Vec<Pledge>) -> Wakeups {
        self.began_ms = self.began_ms.min(now.mono_ms);
        let count = pledges.iter().map(|pledge| pledge.run.len).sum();
        let runs = pledges.iter().map(|pledge| pledge.run);
        let unsettled = if held.settled { 0 } else { count as usize * part::UNSETTLED_NOTE };
        let note = pledges.len() * size_of::<Pledge>() + unsettled;
        let counted = self.check_queue(held.queue);
        match counted.and_then(|()| self.count(count, 0, note)) {
            Ok(paid) => self.notes.merge(paid),
            Err(fault) => {
                let mut wakeups = self.doom(now, fault);
                if held.settled {
                    // Nothing more is kept of a transaction that fails.
                    let outcome = held.default_outcome;
                    wakeups.merge(held.queue.settle_runs(now, held.consumer, runs, outcome));
                }
                return wakeups;
            }
        }
        let (_, wakeups) = held.queue.pledge(now, held.consumer, runs);
        self.part(held.queue).note(held, pledges);
        wakeups
    }

    /// Whether it may use this queue besides those that it uses already.
    fn check_queue(&self, queue: &Arc<SharedQueue>) -> Result<(), Fault> {
        let is_known = self.parts.iter().rev().any(|part| Arc::ptr_eq(&part.queue, queue));
        match is_known || self.parts.len() < MOST_QUEUES {
            true => Ok(()),
            false => Err(Fault::TooManyQueues { limit: MOST_QUEUES }),
        }
    }

    /// Counts what is to be done and pays for the note of it; an error if it is too much, or
    /// useless by now.
    fn count(
        &mut self,
        operations: u64,
        bytes: u64,
        note_bytes: usize,
    ) -> Result<Reservation, Fault> {
        if let Some(fault) = &self.fault {
            return Err(Fault::clone(fault));
        }
        let settings = self.node.transactions();
        if self.operations + operations > settings.max_operations {
            return Err(Fault::TooManyOperations { limit: settings.max_operations });
        }
        if settings.max_bytes > 0 && self.bytes + bytes > settings.max_bytes {
            return Err(Fault::TooManyBytes { limit: settings.max_bytes });
        }
        let budget = self.node.budget();
        let paid =
            budget.reserve(note_bytes as u64).inspect_err(|_| budget.note_refused(operations));
        let paid = paid.map_err(Fault::NoMemory)?;
        self.operations += operations;
        self.bytes += bytes;
        Ok(paid)
    }

    fn part(&mut self, queue: &Arc<SharedQueue>) -> &mut Part {
        let known = self.parts.iter().position(|part| Arc::ptr_eq(&part.queue, queue));
        let index = known.unwrap_or_else(|| {
            self.parts.push(Part::new(queue));
            self.parts.len() - 1
        });
        &mut self.parts[index]
    }
}

/// Does what a transaction says that is about one queue.
fn commit_one(now: Now, part: &mut Part, offers: &[Offer]) -> Result<Aftermath, Fault> {
    let shared = Arc::clone(&part.queue);
    let mut queue = shared.lock();
    let obstacle = part.obstacle(&queue);
    let is_gone = queue.is_deleted();
    let of_offers = || offer::obstacle(offers, std::slice::from_ref(part), |_| is_gone);
    if let Some(fault) = obstacle.or_else(of_offers) {
        return Err(fault);
    }
    part.commit(now, &mut queue);
    Ok(Aftermath::of(&mut queue))
}

/// Does what a transaction says, at all queues in one step.
fn commit_all(now: Now, parts: &mut [Part], offers: &[Offer]) -> Result<Vec<Aftermath>, Fault> {
    let mut queues: Vec<_> = parts.iter().map(|part| Arc::clone(&part.queue)).collect();
    // Whoever locks several does so in this order.
    queues.sort_by(|a, b| in_order(a).cmp(&in_order(b)));
    let mut locked: Vec<_> = queues.iter().map(|queue| queue.lock()).collect();
    let at = |part: &Part| queues.iter().position(|queue| Arc::ptr_eq(queue, &part.queue));
    let order: Vec<usize> = parts.iter().filter_map(at).collect();
    let obstacles = parts.iter().zip(&order).map(|(part, index)| part.obstacle(&locked[*index]));
    let of_offers = || offer::obstacle(offers, parts, |index| locked[order[index]].is_deleted());
    if let Some(fault) = obstacles.flatten().next().or_else(of_offers) {
        return Err(fault);
    }
    for (part, index) in parts.iter_mut().zip(&order) {
        part.commit(now, &mut locked[*index]);
    }
    Ok(order.iter().map(|index| Aftermath::of(&mut locked[*index])).collect())
}

/// How messages come to a queue.
struct Manner {
    /// The queue gives their sender credit.
    is_held_back: bool,
    /// An exchange has them, perhaps for others too.
    offered: Option<Offered>,
}

/// By what queues are put in order: their names, as long as they are there. One that is gone may
/// have had the name of another.
fn in_order(queue: &Arc<SharedQueue>) -> (&str, usize) {
    (queue.name(), Arc::as_ptr(queue).addr())
}

/// A transaction is about no more queues than this: a commit locks all of them.
const MOST_QUEUES: usize = 1024;
