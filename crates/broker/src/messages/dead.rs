//! Messages that leave their queue without having been dealt with, and have somewhere to go.

use super::entries::BLOCK;
use super::entry::{Entry, Flags};
use super::slots::Slots;
use super::{Messages, index_of};
use crate::exchange::Alternate;
use crate::message::{Batch, Incoming, MessageMeta, NO_OVERLAY, Overlay};
use crate::sync::{Mutex, lock};
use mochila_wire::Now;
use std::sync::Arc;

/// Why a message has left its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// A consumer has rejected it.
    Rejected,
    /// It has expired.
    Expired,
    /// It has been delivered in vain as often as its queue allows.
    Spent,
    /// It had to make room for others.
    Dropped,
    /// Its queue has been deleted.
    Deleted,
}

impl Death {
    /// As it is written in the annotation.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Death::Rejected => "rejected",
            Death::Expired => "expired",
            Death::Spent => "max-deliveries",
            Death::Dropped => "overflow",
            Death::Deleted => "deleted",
        }
    }
}

/// What follows from messages that somebody has sent, as one queue after the other that has no room
/// for them sends others on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cascade {
    /// How many queues have sent on, from the first of them to the one that these messages have left.
    queues: u8,
    /// All that had no room, by their addresses: nothing comes back to them, on whatever way. So there
    /// is an end, and every queue sends on once.
    full: Arc<Mutex<Vec<usize>>>,
}

impl Cascade {
    /// What comes after this one, in messages that leave one more queue; `None` if that is one too
    /// many.
    pub(crate) fn further(before: Option<&Cascade>) -> Option<Cascade> {
        let mut cascade = before.cloned().unwrap_or_default();
        cascade.queues += 1;
        (cascade.queues <= MOST_QUEUES).then_some(cascade)
    }

    /// This queue has no room.
    pub(crate) fn note_full(&self, queue: usize) {
        lock(&self.full).push(queue);
    }

    /// Whether this queue has had no room.
    pub(crate) fn has_filled(&self, queue: usize) -> bool {
        lock(&self.full).contains(&queue)
    }
}

/// So many queues messages leave one after another without anybody doing anything.
const MOST_QUEUES: u8 = 8;

/// Dead letters: they have left their queue, and are to be published by whoever has changed it, once
/// its lock has been released.
#[derive(Debug)]
#[must_use = "the messages would be lost"]
pub(crate) struct DeadLetters {
    pub(crate) batch: Batch,
    /// Why each of them is one.
    pub(crate) deaths: Vec<Death>,
    pub(crate) alternate: Arc<Alternate>,
    /// When the queue was changed.
    pub(crate) now: Now,
    /// What they come from, if that is not what somebody has done.
    pub(crate) cascade: Option<Arc<Cascade>>,
}

/// Where the dead letters of a queue are collected, if it has an alternate exchange.
#[derive(Debug)]
pub(crate) struct Grave {
    alternate: Arc<Alternate>,
    /// Messages that have expired belong here too.
    takes_expired: bool,
    batch: Batch,
    deaths: Vec<Death>,
    now: Now,
    cascade: Option<Arc<Cascade>>,
}

impl Grave {
    pub(crate) fn new(alternate: Alternate, takes_expired: bool) -> Grave {
        Grave {
            alternate: Arc::new(alternate),
            takes_expired,
            batch: Batch::default(),
            deaths: Vec::new(),
            now: Now::new(0, 0),
            cascade: None,
        }
    }

    /// A message has left. It begins a new life: nothing is left of its old time to live, and nobody
    /// has failed with it yet.
    pub(super) fn bury(
        &mut self,
        entry: &Entry,
        death: Death,
        slots: &Slots,
        overlay: Option<&Arc<Overlay>>,
    ) {
        if death == Death::Expired && !self.takes_expired {
            return;
        }
        let segment = slots.segment(entry.segment);
        let flags = entry.flags;
        let meta = MessageMeta {
            message_format: segment.message_format(),
            durable: flags.any(Flags::DURABLE),
            priority: entry.priority,
            ttl_ms: None,
            absolute_expiry_ms: None,
            delivery_count: 0,
            first_acquirer: flags.any(Flags::CLAIMS_FIRST),
            has_delivery_annotations: flags.any(Flags::DELIVERY_ANNOTATIONS),
        };
        let message = Incoming {
            segment: 0,
            offset: entry.offset,
            len: entry.len,
            size: slots.size(entry),
            overlay: NO_OVERLAY,
            meta,
            head: entry.head(),
            past: Flags::TIMELESS,
        };
        self.batch.add_moved(segment, message, overlay);
        self.deaths.push(death);
    }

    fn take(&mut self) -> Option<DeadLetters> {
        let cascade = self.cascade.take();
        if self.deaths.is_empty() {
            return None;
        }
        Some(DeadLetters {
            batch: self.batch.take(),
            deaths: std::mem::take(&mut self.deaths),
            alternate: Arc::clone(&self.alternate),
            now: self.now,
            cascade,
        })
    }
}

impl Messages {
    /// From now on dead letters go there, or nowhere.
    pub(crate) fn set_grave(&mut self, grave: Option<Grave>) {
        self.grave = grave.map(Box::new);
    }

    /// The queue is being changed at this time.
    pub(crate) fn note_time(&mut self, now: Now) {
        if let Some(grave) = &mut self.grave {
            grave.now = now;
        }
    }

    /// What becomes a dead letter now does so because of messages that have come in this way.
    pub(crate) fn note_cascade(&mut self, cascade: Option<&Arc<Cascade>>) {
        if let (Some(grave), Some(cascade)) = (&mut self.grave, cascade) {
            grave.cascade = Some(Arc::clone(cascade));
        }
    }

    /// The messages of a batch that had no room, as dead letters; nothing if they have nowhere to go.
    pub(crate) fn dead_on_arrival(&mut self, now: Now, batch: &mut Batch) -> Option<DeadLetters> {
        let grave = self.grave.as_ref()?;
        let mut batch = batch.take();
        for message in &mut batch.messages {
            message.meta = MessageMeta {
                ttl_ms: None,
                absolute_expiry_ms: None,
                delivery_count: 0,
                ..message.meta
            };
            message.past = Flags::TIMELESS;
        }
        let cascade = batch.cascade.clone();
        let deaths = vec![Death::Dropped; batch.len()];
        Some(DeadLetters { batch, deaths, alternate: Arc::clone(&grave.alternate), now, cascade })
    }

    /// Dead letters since the last time.
    pub(crate) fn take_dead(&mut self) -> Option<DeadLetters> {
        self.grave.as_mut()?.take()
    }

    /// Takes some of what is left of a queue that is gone, whoever holds it.
    pub(crate) fn take_left(&mut self, most: u64) -> Option<DeadLetters> {
        self.grave.as_ref()?;
        let mut left = most;
        while left > 0 {
            let Some(number) = self.entries.numbers(0, u64::MAX).next() else { break };
            let Some(block) = self.entries.block(number) else { break };
            let there: Vec<(usize, u32)> = block
                .indexes()
                .filter_map(|index| Some((index, block.get(index)?.holder)))
                .collect();
            for (index, holder) in &there {
                let gone = self.dequeue(number, 1 << index, *holder, Some(Death::Deleted));
                left = left.saturating_sub(gone.messages());
            }
            self.garbage.clear();
            if there.is_empty() {
                break;
            }
            debug_assert_eq!(index_of(number * BLOCK), 0);
        }
        self.take_dead()
    }
}
