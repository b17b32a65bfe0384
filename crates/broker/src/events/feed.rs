//! Events on their way to those who want to know.

use super::{Event, Severity};
use crate::budget::Budget;
use crate::message::{BatchBuilder, MessageMeta};
use crate::queue::SharedQueue;
use crate::ration::{Rations, Remark};
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::wake::Wakeups;
use mochila_wire::message::Body;
use mochila_wire::{Encode, Limits, Map, Message, Now, Value, section};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

/// The events of a node: those that have been raised and not told yet, and the recent ones.
pub struct Feed {
    raised: Mutex<Raised>,
    is_due: AtomicBool,
    told: Mutex<Told>,
    rations: Arc<Rations>,
}

#[derive(Default)]
struct Raised {
    events: Vec<Event>,
    /// So many more have been raised than there was room for.
    lost: u64,
}

#[derive(Default)]
struct Told {
    recent: VecDeque<Arc<ToldEvent>>,
    next_number: u64,
    listeners: Vec<Weak<SharedQueue>>,
}

/// An event that has been told.
#[derive(Debug)]
pub struct ToldEvent {
    /// Its number in this node's life, from 1 on.
    pub number: u64,
    /// When it was told, in milliseconds of the Unix epoch.
    pub time_ms: i64,
    /// What has happened.
    pub event: Event,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed {
            raised: Mutex::new(Raised::default()),
            is_due: AtomicBool::new(false),
            told: Mutex::new(Told::default()),
            rations: Arc::default(),
        }
    }

    /// What the log of the node takes, of these and of all other lines.
    pub(crate) fn rations(&self) -> &Arc<Rations> {
        &self.rations
    }

    /// Something has happened. It will be told soon; no lock but the feed's own is taken.
    pub fn raise(&self, event: Event) {
        let mut raised = lock(&self.raised);
        if raised.events.len() < MOST_RAISED {
            raised.events.push(event);
        } else {
            raised.lost += 1;
        }
        // Release: whoever sees it takes the lock and finds the event.
        self.is_due.store(true, Ordering::Release);
    }

    /// Whether there is something to tell.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    /// Tells what has been raised.
    pub(crate) fn tell(&self, now: Now, budget: &Arc<Budget>) -> Wakeups {
        let mut wakeups = Wakeups::new();
        if !self.is_due() {
            return wakeups;
        }
        // Held to the end, so that everybody is told in the same order.
        let mut told = lock(&self.told);
        let raised = {
            let mut raised = lock(&self.raised);
            self.is_due.store(false, Ordering::Relaxed);
            std::mem::take(&mut *raised)
        };
        if raised.lost > 0
            && let Some(more) = self.rations.take(Remark::EventsLost, now)
        {
            tracing::warn!(
                lost = raised.lost,
                "events were lost: too many were raised at once{more}"
            );
        }
        told.listeners.retain(|queue| queue.upgrade().is_some_and(|queue| !queue.is_deleted()));
        let listeners: Vec<_> = told.listeners.iter().filter_map(Weak::upgrade).collect();
        for event in raised.events {
            told.next_number += 1;
            let event =
                Arc::new(ToldEvent { number: told.next_number, time_ms: now.wall_ms, event });
            self.log(now, &event.event);
            for queue in &listeners {
                wakeups.merge(send(now, &event, queue, budget));
            }
            told.recent.push_back(event);
            if told.recent.len() > MOST_RECENT {
                told.recent.pop_front();
            }
        }
        wakeups
    }

    /// The events of a queue are sent to it from now on, until it is deleted.
    pub fn listen(&self, queue: &Arc<SharedQueue>) {
        lock(&self.told).listeners.push(Arc::downgrade(queue));
    }

    /// The recent events, the oldest first.
    pub fn recent(&self) -> Vec<Arc<ToldEvent>> {
        lock(&self.told).recent.iter().cloned().collect()
    }
}

impl Feed {
    /// One line, unless there have been many.
    fn log(&self, now: Now, event: &Event) {
        let grant = |remark| self.rations.take(remark, now);
        match event.kind().severity() {
            Severity::Warn => {
                grant(Remark::WarningEvent).map(|more| tracing::warn!("{event}{more}"))
            }
            Severity::Inform => grant(Remark::Event).map(|more| tracing::info!("{event}{more}")),
        };
    }
}

impl ToldEvent {
    /// The message that tells it.
    fn to_message(&self) -> Message {
        let kind = self.event.kind();
        let mut body = Map::new();
        body.insert("event", kind.name());
        body.insert("number", self.number);
        body.insert("severity", kind.severity().name());
        body.insert("time", Value::Timestamp(self.time_ms));
        body.0.extend(self.event.details().0);
        let mut message = Message { body: Body::Value(Value::Map(body)), ..Message::default() };
        message.properties_mut().subject = Some(kind.name().to_owned());
        message.set_application_property("event", kind.name());
        message
    }
}

fn send(now: Now, event: &ToldEvent, queue: &SharedQueue, budget: &Arc<Budget>) -> Wakeups {
    let bytes = event.to_message().to_bytes();
    let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap_or_default();
    let mut builder = BatchBuilder::new();
    builder.push_owned(bytes, &sections, MessageMeta::default());
    match builder.finish(&[], budget) {
        Ok(batch) => queue.offer(now, batch).1,
        // Who listens sees from the numbers that some are missing.
        Err(_) => Wakeups::new(),
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("is_due", &self.is_due()).finish_non_exhaustive()
    }
}

/// So many events wait to be told; a worker tells them before it rests.
const MOST_RAISED: usize = 4_096;
/// So many are remembered.
const MOST_RECENT: usize = 1_000;
