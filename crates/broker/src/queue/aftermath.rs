//! What a change to a queue leaves to be done without its lock.

use super::adoption::Adoption;
use super::alarm::Crossing;
use super::showing::Showing;
use super::{Queue, SharedQueue, Statistics};
use crate::message::Segment;
use crate::messages::{Compaction, DeadLetters, Messages};
use crate::sync::{Ordering, lock};
use crate::wake::Wakeups;
use std::sync::Arc;

/// What is left to do after a change to a queue, without its lock.
#[must_use = "whoever has to be woken waits for ever"]
pub(crate) struct Aftermath {
    showing: Option<Box<Showing>>,
    wakeups: Wakeups,
    dead: Option<DeadLetters>,
    crossing: Option<Crossing>,
    adoption: Option<Adoption>,
    garbage: Vec<Arc<Segment>>,
    compaction: Option<Compaction>,
    timeout_ms: u64,
    /// What is left of a queue that has been deleted.
    last: Option<(Messages, Statistics)>,
}

impl Aftermath {
    /// Takes it out of a queue that has been changed.
    pub(crate) fn of(queue: &mut Queue) -> Aftermath {
        let showing = queue.plan_showing();
        let wakeups = queue.take_wakeups();
        let dead = queue.messages_mut().take_dead();
        let crossing = queue.take_crossing();
        let adoption = queue.take_ended_adoption();
        let garbage = queue.messages_mut().take_garbage();
        let compaction = queue.messages_mut().plan_compaction();
        let timeout_ms = queue.next_timeout_ms().unwrap_or(NEVER);
        let last = queue.take_last();
        Aftermath {
            showing,
            wakeups,
            dead,
            crossing,
            adoption,
            garbage,
            compaction,
            timeout_ms,
            last,
        }
    }
}

impl SharedQueue {
    /// Does what has to be done after a change, once the lock has been released.
    pub(crate) fn follow(&self, aftermath: Aftermath) -> Wakeups {
        let Aftermath {
            showing,
            mut wakeups,
            dead,
            crossing,
            adoption,
            garbage,
            compaction,
            timeout_ms,
            last,
        } = aftermath;
        if let (Some(crossing), Some(node)) = (crossing, self.node.upgrade()) {
            node.feed().raise(crossing.to_event(self.name()));
        }
        if let Some(showing) = showing {
            wakeups.merge(self.show(showing));
        }
        if let Some(dead) = dead {
            wakeups.merge(self.bury(dead).1);
        }
        if let Some(adoption) = adoption {
            wakeups.merge(adoption.end());
        }
        // Large pieces of memory are freed here, and not while others wait for the lock.
        drop(garbage);
        if let Some(mut compaction) = compaction {
            let copy = compaction.copy(self.budget());
            let mut queue = lock(&self.queue);
            queue.messages_mut().install_compaction(&compaction, &copy);
            let garbage = queue.messages_mut().take_garbage();
            drop(queue);
            drop(garbage);
        }
        if timeout_ms < self.timeout_ms.load(Ordering::Relaxed)
            && let (Some(node), Some(this)) = (self.node.upgrade(), self.this.upgrade())
        {
            node.timers().set(&this, timeout_ms);
        }
        if let Some((mut messages, statistics)) = last {
            self.deleted.store(true, Ordering::Relaxed);
            let node = self.node.upgrade();
            if let Some(node) = &node {
                node.forget(self, &statistics);
            }
            let (buried, woken) = self.bury_left(&mut messages);
            wakeups.merge(woken);
            if let Some(node) = node.filter(|_| !self.is_private()) {
                node.abandoned().add(statistics.msg_depth, buried);
            }
            drop(messages);
        }
        if self.budget().is_resume_due() {
            wakeups.merge(self.budget().resume());
        }
        wakeups
    }
}

/// Nothing is to be done by time.
pub(super) const NEVER: u64 = u64::MAX;
