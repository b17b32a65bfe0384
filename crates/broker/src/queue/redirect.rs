//! Two queues that have changed places for those who send.

use super::{Queue, SharedQueue, Want};
use crate::error::QueueError;
use crate::events::{Event, EventKind};
use crate::node::Node;
use crate::sync::{Mutex, lock};
use crate::wake::Wakeups;
use std::collections::HashMap;
use std::sync::Arc;

/// Which queues of a node have changed places; each of a pair names the other.
#[derive(Default)]
pub(crate) struct Redirects(Mutex<HashMap<Box<str>, Arc<SharedQueue>>>);

impl Redirects {
    /// The queue that gets what is sent to one of this name.
    pub(crate) fn peer(&self, name: &str) -> Option<Arc<SharedQueue>> {
        lock(&self.0).get(name).cloned()
    }

    fn join(&self, source: &Arc<SharedQueue>, target: &Arc<SharedQueue>) -> Result<(), QueueError> {
        let mut pairs = lock(&self.0);
        for queue in [source, target] {
            if let Some(peer) = pairs.get(queue.name()) {
                let reason = format!("its messages go to queue '{}' already", peer.name());
                return Err(cannot(queue, reason));
            }
        }
        for (queue, peer) in [(source, target), (target, source)] {
            pairs.insert(queue.name().into(), Arc::clone(peer));
            queue.set_redirected(true);
        }
        Ok(())
    }

    /// Parts a queue from its peer, which is returned.
    fn part(&self, queue: &SharedQueue) -> Option<Arc<SharedQueue>> {
        if !queue.is_redirected() {
            return None;
        }
        let mut pairs = lock(&self.0);
        let peer = pairs.remove(queue.name())?;
        pairs.remove(peer.name());
        queue.set_redirected(false);
        peer.set_redirected(false);
        Some(peer)
    }
}

impl Node {
    /// What is sent to one of two queues goes to the other from now on, and the other way round.
    pub(crate) fn redirect(
        &self,
        source: &Arc<SharedQueue>,
        target: &Arc<SharedQueue>,
    ) -> Result<Wakeups, QueueError> {
        if Arc::ptr_eq(source, target) {
            return Err(QueueError::Itself { name: source.name().to_owned() });
        }
        for queue in [source, target] {
            if queue.settings().may_delete_itself() {
                return Err(cannot(queue, "it may delete itself".to_owned()));
            }
        }
        self.redirects().join(source, target)?;
        self.feed().raise(told(EventKind::QueueRedirect, source, target));
        // Whoever waits for credit has to ask again: it depends on the other queue now.
        let mut wakeups = source.visit(|queue| queue.call_producers()).1;
        wakeups.merge(target.visit(|queue| queue.call_producers()).1);
        if let Some(gone) = [source, target].into_iter().find(|queue| queue.is_deleted()) {
            self.part(gone);
        }
        Ok(wakeups)
    }

    /// What is sent to a queue goes there again.
    pub(crate) fn cancel_redirect(&self, queue: &SharedQueue) -> Result<(), QueueError> {
        match self.part(queue) {
            true => Ok(()),
            false => Err(cannot(queue, "its messages go to no other queue".to_owned())),
        }
    }

    /// A queue has no peer any more, if it had one.
    pub(crate) fn part(&self, queue: &SharedQueue) -> bool {
        let peer = self.redirects().part(queue);
        if let Some(peer) = &peer {
            self.feed().raise(told(EventKind::QueueRedirectCancelled, queue, peer));
        }
        peer.is_some()
    }
}

impl SharedQueue {
    /// The name of the queue that gets what is sent to this one.
    pub fn redirect_peer(&self) -> Option<String> {
        self.peer().map(|peer| peer.name().to_owned())
    }
}

impl Queue {
    /// Calls all producers, whatever they wait for.
    fn call_producers(&mut self) {
        self.producers.call_all(&mut self.wakeups);
    }

    /// The credit that one of `producers` may have who send to this queue from the place of another.
    ///
    /// They cannot wait in line here: when there is no room they try it one message at a time.
    pub(super) fn credit_for_others(&self, want: &Want, producers: usize) -> u32 {
        match self.is_closed() {
            true => want.credit.min(1),
            false => self.policy.credit(want, producers).min(self.credit_for_memory()),
        }
    }

    pub(super) fn producer_count(&self) -> usize {
        self.producers.len()
    }
}

fn cannot(queue: &SharedQueue, reason: String) -> QueueError {
    QueueError::CannotRedirect { name: queue.name().to_owned(), reason }
}

fn told(kind: EventKind, source: &SharedQueue, target: &SharedQueue) -> Event {
    Event::new(kind).with("queue", source.name()).with("target", target.name())
}
