//! The links that send to a queue.

use crate::budget::{Budget, MemoryPlace};
use crate::line::{Line, Place};
use crate::slab::Slab;
use crate::wake::{Waker, Wakeups};

/// A producer of a queue. It goes stale when the producer detaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerId {
    slot: u32,
    generation: u32,
}

/// What a producer wants of its queue, and what the queue has to know for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// So much link credit.
    pub credit: u32,
    /// How large the messages are that it sends, as far as that is known.
    pub message_bytes: u64,
    /// A message of its has been rejected since it last had credit: it knows that there is no room.
    pub was_refused: bool,
}

impl Want {
    /// So much credit, for messages as they come.
    pub fn credit(credit: u32) -> Want {
        Want { credit, ..Want::default() }
    }
}

/// The producers of a queue, and the line of those who wait for credit.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    producers: Slab<Producer>,
    waiting: Line<u32>,
}

#[derive(Debug)]
struct Producer {
    waker: Waker,
    /// It sends to an exchange, and gets its credit here because all that it sends comes here; or to
    /// many queues, and waits for this one. It does not keep the queue in use.
    is_guest: bool,
    /// Where it stands in the queue's line.
    place: Option<Place>,
    /// Where it stands in the line of those who wait for the node's memory.
    node_place: Option<MemoryPlace>,
}

impl Producers {
    pub(crate) fn len(&self) -> usize {
        self.producers.len()
    }

    /// How many wait for credit.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn add(&mut self, waker: Waker) -> ProducerId {
        self.insert(waker, false)
    }

    /// Adds one that is no link of the queue.
    pub(crate) fn add_guest(&mut self, waker: Waker) -> ProducerId {
        self.insert(waker, true)
    }

    fn insert(&mut self, waker: Waker, is_guest: bool) -> ProducerId {
        let producer = Producer { waker, is_guest, place: None, node_place: None };
        let (slot, generation) = self.producers.insert(producer);
        ProducerId { slot, generation }
    }

    /// Removes one that waits no longer, and says whether it was a guest; `None` if it is not there
    /// any more.
    pub(crate) fn remove(&mut self, id: ProducerId) -> Option<bool> {
        self.producers.remove(id.slot, id.generation).map(|producer| producer.is_guest)
    }

    pub(crate) fn contains(&self, id: ProducerId) -> bool {
        self.producers.get(id.slot, id.generation).is_some()
    }

    /// Waits until the queue has room; keeps its place if it waits already.
    pub(crate) fn wait(&mut self, id: ProducerId) {
        let Some(producer) = self.producers.get_mut(id.slot, id.generation) else { return };
        if !producer.place.is_some_and(|place| self.waiting.has(place)) {
            producer.place = Some(self.waiting.join(id.slot));
        }
    }

    /// Waits until the node has memory for a queue that holds so much, if it has not: true then.
    pub(crate) fn wait_for_memory(&mut self, id: ProducerId, budget: &Budget, held: u64) -> bool {
        let Some(producer) = self.producers.get_mut(id.slot, id.generation) else { return false };
        producer.node_place = budget.wait(&producer.waker, producer.node_place, held);
        let waits = producer.node_place.is_some();
        if waits {
            // It is called as well if the queue has less before the node has more.
            self.wait(id);
        }
        waits
    }

    /// Does not wait any more; true if it waited for the node's memory.
    pub(crate) fn leave(&mut self, id: ProducerId, budget: &Budget) -> bool {
        let Some(producer) = self.producers.get_mut(id.slot, id.generation) else { return false };
        if let Some(place) = producer.place.take() {
            self.waiting.leave(place);
        }
        let node_place = producer.node_place.take();
        node_place.inspect(|place| budget.leave(*place)).is_some()
    }

    /// Calls the `most` that have waited longest.
    pub(crate) fn call(&mut self, most: u64, budget: &Budget, wakeups: &mut Wakeups) {
        for _ in 0..most {
            let Some(slot) = self.waiting.serve() else { break };
            if let Some(producer) = self.producers.at_mut(slot) {
                if let Some(place) = producer.node_place.take() {
                    budget.leave(place);
                }
                wakeups.push(producer.waker.clone());
            }
        }
    }

    /// Calls everybody, to be told that the queue is gone.
    pub(crate) fn call_all(&mut self, wakeups: &mut Wakeups) {
        for producer in self.producers.values() {
            wakeups.push(producer.waker.clone());
        }
    }
}
