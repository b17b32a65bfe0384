//! How messages come into a queue that many threads use.

use super::{Enqueued, NO_OWNER, Queue, Refusal, Rejected, Room, SharedQueue};
use crate::events::{Event, EventKind};
use crate::message::Batch;
use crate::settings::Screen;
use crate::sync::{Ordering, lock};
use crate::wake::Wakeups;
use mochila_wire::Now;

impl SharedQueue {
    /// Adds the messages of a batch as far as the limits allow; empties the batch.
    pub fn enqueue(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        if let Some(peer) = self.peer() {
            return peer.bring(now, batch, false);
        }
        self.bring(now, batch, true)
    }

    /// Adds the messages of a batch of somebody who cannot be held back: beyond the limits they are
    /// rejected, whatever the policy. Empties the batch.
    pub fn enqueue_within_limits(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        self.peer().as_deref().unwrap_or(self).bring(now, batch, false)
    }

    /// Why a message of this size is never let in, however empty the queue is; to be asked while a
    /// large message is still coming in.
    pub fn refuses(&self, message_bytes: u64) -> Option<Refusal> {
        lock(&self.queue).refuses(message_bytes)
    }

    /// Adds the messages of a batch of somebody to whom the queue gives no credit, and who cannot be
    /// held back: beyond the limit they are rejected, whatever the policy, and so they are if the
    /// queue has its share of the node's memory. Empties the batch.
    pub fn offer(&self, now: Now, batch: &mut Batch) -> (Enqueued, Wakeups) {
        let peer = self.peer();
        let queue = peer.as_deref().unwrap_or(self);
        let messages = batch.len() as u64;
        let (is_refused, mut wakeups) = queue.visit(|queue| queue.refuses_for_memory(messages));
        if is_refused {
            return (batch.refuse(Refusal::Memory), wakeups);
        }
        let (enqueued, woken) = queue.bring(now, batch, false);
        wakeups.merge(woken);
        (enqueued, wakeups)
    }

    /// Adds a batch that other queues get too, and which stays as it is; `held_back` if this one has
    /// given its sender credit.
    pub(crate) fn share(
        &self,
        now: Now,
        batch: &mut Batch,
        held_back: bool,
    ) -> (Enqueued, Wakeups) {
        if let Some(peer) = self.peer() {
            return peer.share_here(now, batch, false);
        }
        self.share_here(now, batch, held_back)
    }

    fn share_here(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        if self.is_screened.load(Ordering::Relaxed) {
            // What is kept out here may enter elsewhere.
            return self.bring(now, &mut batch.twin(), held_back);
        }
        self.find_names(batch);
        self.bring_shared(now, batch, held_back)
    }

    fn bring(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        self.screen(batch);
        self.find_names(batch);
        let result = self.bring_shared(now, batch, held_back);
        batch.clear();
        result
    }

    fn bring_shared(&self, now: Now, batch: &mut Batch, held_back: bool) -> (Enqueued, Wakeups) {
        self.let_in(batch, |queue, batch| queue.enqueue(now, batch, held_back))
    }

    /// Has a batch enter that has been screened, and says what became of all that it had before.
    pub(super) fn let_in(
        &self,
        batch: &mut Batch,
        enter: impl FnOnce(&mut Queue, &mut Batch) -> Enqueued,
    ) -> (Enqueued, Wakeups) {
        let (mut enqueued, wakeups) = self.visit(|queue| enter(queue, batch));
        batch.number(&mut enqueued.rejected);
        if enqueued.rejected.iter().any(|rejected| rejected.reason == Refusal::Overrun) {
            let event = Event::new(EventKind::QueueSelfDestruct).with("queue", self.name());
            self.node.upgrade().inspect(|node| node.feed().raise(event));
        }
        (enqueued, wakeups)
    }

    /// Keeps room for the messages of a batch, all or none; says whether producers get no credit now.
    pub(crate) fn reserve(
        &self,
        batch: &mut Batch,
        is_held_back: bool,
    ) -> (Result<(Room, bool), Vec<Rejected>>, Wakeups) {
        self.screen(batch);
        self.find_names(batch);
        let (mut reserved, wakeups) = self.visit(|queue| queue.reserve(batch, is_held_back));
        if let Err(rejected) = &mut reserved {
            batch.number(rejected);
        }
        (reserved, wakeups)
    }

    /// Gives back room that was kept.
    pub(crate) fn give_back_room(&self, now: Now, room: Room) -> Wakeups {
        self.visit(|queue| queue.give_back_room(now, room)).1
    }

    /// Keeps those messages of a batch out that are not to enter, while the queue is not locked.
    pub(super) fn screen(&self, batch: &mut Batch) {
        if self.is_screened.load(Ordering::Relaxed) {
            let (screen, owner) = lock(&self.queue).screen();
            batch.screen(|message, connection| {
                screen.as_ref().is_none_or(|screen| screen.lets_in(message, connection, owner))
            });
        }
    }

    /// Finds the names of a batch's messages, if the queue needs them, while it is not locked.
    pub(super) fn find_names(&self, batch: &mut Batch) {
        if self.is_named.load(Ordering::Relaxed) {
            let address = std::ptr::from_ref(self).addr();
            batch.find_names_for(address, || lock(&self.queue).naming().cloned());
        }
    }
}

impl Queue {
    /// What keeps messages out, and the connection that the queue belongs to now.
    fn screen(&self) -> (Option<Screen>, Option<u64>) {
        let owner = Some(self.owner).filter(|owner| *owner != NO_OWNER);
        let owner = owner.or_else(|| self.distributor.exclusive_owner());
        (self.screen.as_deref().cloned(), owner)
    }

    /// Whoever consumes from the queue of a subscription is on this connection.
    pub(super) fn note_subscriber(&mut self, connection: Option<u64>) {
        if let Some(screen) = &mut self.screen {
            screen.set_subscriber(connection);
        }
    }
}
