//! What a transaction has done at one queue.

use super::Fault;
use super::offer::Offered;
use crate::budget::Reservation;
use crate::message::Batch;
use crate::messages::Run;
use crate::queue::{ConsumerId, Outcome, Queue, Room, SharedQueue};
use crate::wake::Wakeups;
use mochila_wire::Now;
use std::sync::Arc;

/// A consumer whose messages are settled in a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// The queue.
    pub queue: &'a Arc<SharedQueue>,
    /// The consumer.
    pub consumer: ConsumerId,
    /// What becomes of messages that are settled without an outcome, or whose transaction fails
    /// after they were settled.
    pub default_outcome: &'a Outcome,
    /// Whether the consumer has settled them, so that it has no say any more if the transaction
    /// fails.
    pub settled: bool,
}

/// What a transaction brings to a queue, and takes from it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) queue: Arc<SharedQueue>,
    pub(super) posts: Vec<Post>,
    retirements: Vec<Retirement>,
}

/// Messages that are not in the queue yet.
#[derive(Debug)]
pub(super) struct Post {
    /// When they came: their time to live has begun.
    pub(super) came: Now,
    /// The room that the queue keeps for them.
    pub(super) room: Room,
    pub(super) batch: Batch,
    /// Which messages of an exchange these are: they may be elsewhere, too.
    pub(super) offered: Option<Offered>,
    /// Pays for their descriptors.
    pub(super) _paid: Reservation,
}

/// The messages of one consumer that are settled in a transaction.
#[derive(Debug)]
struct Retirement {
    consumer: ConsumerId,
    default_outcome: Outcome,
    pledges: Vec<Pledge>,
}

/// An outcome that messages have if the transaction succeeds.
#[derive(Debug)]
pub(super) struct Pledge {
    pub(super) run: Run,
    outcome: Outcome,
}

impl Part {
    pub(super) fn new(queue: &Arc<SharedQueue>) -> Part {
        Part { queue: Arc::clone(queue), posts: Vec::new(), retirements: Vec::new() }
    }

    /// Notes outcomes of messages that are the transaction's now.
    pub(super) fn note(&mut self, held: &Held<'_>, mut pledges: Vec<Pledge>) {
        let known = self.retirements.iter_mut().find(|it| it.consumer == held.consumer);
        match known {
            Some(known) => known.pledges.append(&mut pledges),
            None => self.retirements.push(Retirement {
                consumer: held.consumer,
                default_outcome: held.default_outcome.clone(),
                pledges,
            }),
        }
    }

    /// Why it cannot be committed, if so: messages that were sent to this queue must not be lost with
    /// it.
    pub(super) fn obstacle(&self, queue: &Queue) -> Option<Fault> {
        let is_lost = queue.is_deleted() && self.posts.iter().any(|post| post.offered.is_none());
        is_lost.then(|| Fault::QueueDeleted { name: self.queue.name().to_owned() })
    }

    /// Frees what is left of messages that are in the queue.
    pub(super) fn free_posts(&mut self) {
        self.posts = Vec::new();
    }

    /// Does all of it, while the queue is locked.
    pub(super) fn commit(&mut self, now: Now, queue: &mut Queue) {
        for retirement in &self.retirements {
            // What was said last counts: it comes first, and nothing is left for what was said
            // before.
            for pledge in retirement.pledges.iter().rev() {
                queue.redeem(now, retirement.consumer, pledge.run, &pledge.outcome);
            }
            queue.redeemed(retirement.consumer);
        }
        if queue.is_deleted() {
            return;
        }
        for post in &mut self.posts {
            let room = std::mem::take(&mut post.room);
            queue.fill_room(post.came, room, &mut post.batch);
        }
        queue.committed(now);
    }

    /// Gives up what was brought.
    pub(super) fn give_up_posts(&mut self, now: Now) -> Wakeups {
        if self.posts.is_empty() {
            return Wakeups::new();
        }
        let mut room = Room::default();
        for post in &self.posts {
            room.messages += post.room.messages;
            room.bytes += post.room.bytes;
        }
        // The memory first, so that those who are called because there is room find some.
        self.posts = Vec::new();
        self.queue.give_back_room(now, room)
    }

    /// Gives up what was taken: the messages that are still the transaction's get the outcome that
    /// they have without one, the oldest first.
    pub(super) fn give_up_pledges(&mut self, now: Now, outcome: Option<&Outcome>) -> Wakeups {
        let mut wakeups = Wakeups::new();
        for Retirement { consumer, default_outcome, mut pledges } in self.retirements.drain(..) {
            let outcome = outcome.unwrap_or(&default_outcome);
            pledges.sort_by_key(|pledge| pledge.run.first);
            let (mut piece, mut messages) = (Vec::new(), 0);
            for run in pledges.iter().flat_map(|pledge| pieces(pledge.run)) {
                piece.push(run);
                messages += run.len;
                if messages >= RETURNED_AT_ONCE {
                    wakeups.merge(self.queue.redeem(now, consumer, &piece, outcome));
                    piece.clear();
                    messages = 0;
                }
            }
            wakeups.merge(self.queue.redeem(now, consumer, &piece, outcome));
        }
        wakeups
    }
}

/// Adds an outcome of some messages to a list, as few runs as they make.
pub(super) fn pledge(
    pledges: &mut Vec<Pledge>,
    positions: impl Iterator<Item = u64>,
    outcome: &Outcome,
) {
    let mut add = |run: Run| pledges.push(Pledge { run, outcome: outcome.clone() });
    let mut run = Run::new(0, 0);
    for position in positions {
        if run.end() != position {
            if run.len > 0 {
                add(run);
            }
            run = Run::new(position, 0);
        }
        run.len += 1;
    }
    if run.len > 0 {
        add(run);
    }
}

/// A run in pieces that are given back at once.
fn pieces(run: Run) -> impl Iterator<Item = Run> {
    let starts = (run.first..run.end()).step_by(RETURNED_AT_ONCE as usize);
    starts.map(move |first| Run::new(first, RETURNED_AT_ONCE.min(run.end() - first)))
}

/// So many messages of a rollback are given back before the lock is released for others.
const RETURNED_AT_ONCE: u64 = 4096;
/// What is kept of a delivery that is not settled.
pub(super) const UNSETTLED_NOTE: usize = 40;
/// What the descriptor of a message takes that has been brought.
pub(super) const MESSAGE_NOTE: usize = size_of::<crate::message::Incoming>();
