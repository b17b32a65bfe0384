//! What lies in a queue.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mochila_broker::settings::LimitPolicy;
use mochila_broker::{
    ConsumerOptions, Mode, SharedQueue, Statistics, TakeLimit, Taken, Taking, Wake, Waker,
};
use mochila_wire::Now;

use crate::number::MessageNo;

/// The messages of a queue that nobody holds, as a browser is shown them, and the queue's numbers.
///
/// Who is told what happened last has to guess what a queue did in between; two shelves say it.
/// Looking is not quite nothing: a browser comes and goes. So a world looks only where something
/// has changed, and with half of the seeds not at all while things happen.
#[derive(Clone, Default)]
pub(crate) struct Shelf {
    /// In the order in which they are taken.
    pub(crate) messages: Vec<Lying>,
    pub(crate) numbers: Statistics,
    /// A ring holds more than it should.
    pub(crate) is_over: bool,
    /// Groups that somebody has, by name.
    pub(crate) owned: BTreeSet<String>,
}

/// A message that nobody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lying {
    pub(crate) no: MessageNo,
    /// Where the queue says that it stands.
    pub(crate) position: u64,
    /// Nobody has had it yet.
    pub(crate) is_new: bool,
}

impl Shelf {
    /// Looks at a queue.
    pub(crate) fn of(queue: &SharedQueue, now: Now) -> Shelf {
        let (numbers, limits) = (queue.statistics(), queue.limits());
        let is_ring = queue.settings().limit_policy == LimitPolicy::Ring;
        let is_above =
            numbers.msg_depth > limits.max_count || numbers.byte_depth > limits.max_bytes;
        let groups = queue.groups(usize::MAX).into_iter();
        let owned = groups.filter(|group| group.owner.is_some()).map(|group| group.id);
        Shelf {
            messages: messages(queue, now),
            numbers,
            is_over: is_ring && is_above,
            owned: owned.collect(),
        }
    }

    /// Whether a message lies there.
    pub(crate) fn has(&self, no: MessageNo) -> bool {
        self.messages.iter().any(|lying| lying.no == no)
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (depth, held) = (self.numbers.msg_depth, self.numbers.unacked_messages);
        write!(f, "{depth} messages, {held} of them held:")?;
        for Lying { no, is_new, .. } in &self.messages {
            write!(f, " {}{}", no.0, if *is_new { "" } else { "'" })?;
        }
        Ok(())
    }
}

fn messages(queue: &SharedQueue, now: Now) -> Vec<Lying> {
    let waker = Waker::new(Arc::new(Nobody), 0);
    let options = ConsumerOptions { mode: Mode::Browse, ..ConsumerOptions::new(waker) };
    let mut messages = Vec::new();
    let Ok(browser) = queue.subscribe(now, options) else { return messages };
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: u32::MAX, bytes: usize::MAX };
    loop {
        taken.clear();
        let (taking, wakeups) = queue.take(now, browser, limit, &mut taken);
        wakeups.perform();
        messages.extend(taken.deliveries().iter().map(|delivery| {
            let id = taken.sections(delivery).message_id(taken.bytes(delivery));
            let id = id.and_then(|id| id.as_u64()).expect("every letter has a number");
            let (position, is_new) = (delivery.position, !delivery.was_acquired());
            Lying { no: MessageNo(id as usize), position, is_new }
        }));
        if taking != Taking::More {
            break;
        }
    }
    queue.unsubscribe(now, browser).perform();
    messages
}

/// Who looks need not be called.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _key: u32) {}
}
