//! Transactions that wait for each other's room.
//!
//! Room that a transaction keeps in a queue becomes free when the transaction ends, so whoever waits
//! for it waits for those who keep it. If all of them wait in turn, and in the end for each other,
//! nobody's transaction ends by itself: one of them has to fail. That is the graph of who waits for
//! whom that databases search for deadlocks.

use crate::node::Node;
use crate::queue::SharedQueue;
use crate::sync::{Mutex, lock};
use mochila_wire::Now;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Whose transactions wait: those of one session end one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// The connection, by its number.
    pub connection: u64,
    /// The session, by its number there.
    pub session: u32,
}

/// Somebody with transactions waits for room that others' keep.
#[derive(Debug)]
pub struct Wait {
    /// Who waits.
    pub waiter: Waiter,
    /// For room in this queue.
    pub queue: Arc<SharedQueue>,
    /// The queues in which its transactions keep room, and for how many messages.
    pub kept: Arc<[(Arc<SharedQueue>, u64)]>,
    /// Since when, on the monotonic clock.
    pub since_ms: u64,
}

/// A wait that others see, as long as this is there.
#[derive(Debug)]
#[must_use = "nobody knows of it otherwise"]
pub struct Waiting {
    node: Arc<Node>,
    number: u64,
}

/// All who wait on a node.
#[derive(Debug, Default)]
pub(crate) struct Standoffs(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    waits: BTreeMap<u64, Wait>,
    next: u64,
}

impl Waiting {
    pub(crate) fn new(node: &Arc<Node>, wait: Wait) -> Waiting {
        let mut waits = lock(&node.standoffs().0);
        let number = waits.next;
        waits.next += 1;
        waits.waits.insert(number, wait);
        drop(waits);
        Waiting { node: Arc::clone(node), number }
    }

    /// Whether all who keep the room that it waits for have waited for a second in turn, and it has,
    /// and all of them in the end for each other. While very many wait, nobody looks so closely.
    pub fn is_standoff(&self, now: Now) -> bool {
        let waits = lock(&self.node.standoffs().0);
        waits.waits.len() > MOST_LOOKED_AT || waits.stuck(now).contains(&self.number)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let gone = lock(&self.node.standoffs().0).waits.remove(&self.number);
        // It may be the last who knows its queue.
        drop(gone);
    }
}

impl Waits {
    /// Those for whom nobody makes room who does not wait himself.
    fn stuck(&self, now: Now) -> HashSet<u64> {
        let is_due = |wait: &Wait| wait.since_ms.saturating_add(PATIENCE_MS) <= now.mono_ms;
        let mut stuck: HashSet<u64> =
            self.waits.iter().filter(|(_, wait)| is_due(wait)).map(|(number, _)| *number).collect();
        loop {
            let before = stuck.len();
            let kept = self.kept_by(&stuck);
            stuck.retain(|number| {
                let queue = &self.waits[number].queue;
                let wanted = queue.room_kept();
                wanted > 0 && kept.get(&address(queue)).is_some_and(|kept| wanted <= *kept)
            });
            if stuck.len() == before {
                return stuck;
            }
        }
    }

    /// For how many messages some of those who wait keep room, by queue.
    fn kept_by(&self, some: &HashSet<u64>) -> HashMap<usize, u64> {
        let mut seen = HashSet::new();
        let mut sums = HashMap::new();
        for wait in some.iter().map(|number| &self.waits[number]) {
            if seen.insert(wait.waiter) {
                for (queue, messages) in wait.kept.iter() {
                    *sums.entry(address(queue)).or_default() += messages;
                }
            }
        }
        sums
    }
}

fn address(queue: &Arc<SharedQueue>) -> usize {
    Arc::as_ptr(queue).addr()
}

/// So long transactions may wait for the room that others keep before one of them fails.
pub const PATIENCE_MS: u64 = 1_000;
/// If more than so many wait, each of them is taken to be in a standoff: to look for those that are
/// would take long.
const MOST_LOOKED_AT: usize = 1_000;
