use std::sync::Arc;

use mochila_broker::{ProducerId, SharedQueue, Waker, Wakeups, Want};
use mochila_wire::Now;

use crate::arrival::Place;
use crate::node::Located;

/// Our end of a link whose messages go each to the address that it names.
///
/// A queue without room holds such a sender back as it does its own producers, although that stops
/// its messages for other queues too: whoever is only told that messages were rejected sends them
/// again, or loses them. But nobody waits for ever for a queue that nobody empties. After a while
/// the link goes on, with credit for one message: if that is for another queue there is more, and if
/// not it waits again, twice as long.
///
/// ```text
///         the queue gives no credit           the time is over
///   free ───────────────────────────▶ held ─────────────────────▶ impatient
///        ◀─────────────────────────── held ◀───────────────────── impatient
///              the queue has room           the queue gives no credit
/// ```
///
/// What comes while it is held was sent before, and is taken beyond the limit as from others; what
/// it sends to that queue when it is impatient is taken as long as there is room.
#[derive(Default)]
pub(crate) struct Relay {
    /// The address of the last message, and what is there.
    last: Option<(String, Located)>,
    /// Queues that hold it back, or have done so and still have no room.
    holds: Vec<Hold>,
    /// It has credit for one message only, to see where that goes.
    is_probing: bool,
}

/// A queue without room; the link waits there like a producer.
struct Hold {
    queue: Arc<SharedQueue>,
    producer: ProducerId,
    lasts_ms: u64,
    /// When the link goes on all the same; it has done so if there is no such time.
    until_ms: Option<u64>,
}

impl Relay {
    /// What is at an address, if that was the address of the last message too.
    #[inline]
    pub(crate) fn knows(&self, address: &str) -> bool {
        self.last.as_ref().is_some_and(|(name, at)| name == address && !at.is_gone())
    }

    pub(crate) fn remember(&mut self, address: &str, at: Located) {
        self.last = Some((address.to_owned(), at));
    }

    /// Where a message for the last address goes whose sender had credit for it, or had lost it.
    #[inline]
    pub(crate) fn place(&self, had_credit: bool) -> Option<Place<'_>> {
        Some(match &self.last.as_ref()?.1 {
            Located::Queue(queue) => {
                Place::Queue { queue, is_held_back: had_credit && !self.is_impatient(queue) }
            }
            Located::Exchange { exchange, key } => {
                let key = key.as_deref();
                Place::Exchange { exchange, key, governor: None, is_excused: false }
            }
        })
    }

    /// A batch has landed at this queue, which gives no credit now, or elsewhere.
    #[inline]
    pub(crate) fn note_landed(
        &mut self,
        now: Now,
        closed: Option<Arc<SharedQueue>>,
        waker: impl FnOnce() -> Waker,
    ) -> Wakeups {
        self.is_probing = false;
        closed.map_or_else(Wakeups::new, |queue| self.hold(now, queue, waker()))
    }

    /// How much credit it may have that wants `want`; if a queue holds it back, none.
    pub(crate) fn grant(&mut self, now: Now, want: &Want) -> (u32, Wakeups) {
        let mut wakeups = Wakeups::new();
        if self.holds.is_empty() {
            return (want.credit, wakeups);
        }
        let mut is_held = false;
        for mut hold in std::mem::take(&mut self.holds) {
            if hold.is_over(now, want, &mut wakeups) {
                wakeups.merge(hold.give_up(now));
                continue;
            }
            if hold.until_ms.is_some_and(|until_ms| until_ms <= now.mono_ms) {
                hold.until_ms = None;
                self.is_probing = true;
            }
            is_held |= hold.until_ms.is_some();
            self.holds.push(hold);
        }
        self.is_probing &= self.holds.iter().any(|hold| hold.until_ms.is_none());
        let most = match (is_held, self.is_probing) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => want.credit,
        };
        (most.min(want.credit), wakeups)
    }

    /// The queues that hold it back.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &Arc<SharedQueue>> {
        let holds = self.holds.iter().filter(|hold| hold.until_ms.is_some());
        holds.map(|hold| &hold.queue)
    }

    /// When it has to ask for credit again although no queue has called it.
    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        self.holds.iter().filter_map(|hold| hold.until_ms).min()
    }

    /// The link is gone.
    pub(crate) fn give_up(self, now: Now, wakeups: &mut Wakeups) {
        for hold in self.holds {
            wakeups.merge(hold.give_up(now));
        }
    }

    /// Whether this queue has had no room for so long that the link has gone on.
    fn is_impatient(&self, queue: &Arc<SharedQueue>) -> bool {
        let hold = self.holds.iter().find(|hold| Arc::ptr_eq(&hold.queue, queue));
        hold.is_some_and(|hold| hold.until_ms.is_none() || hold.lasts_ms > FIRST_HOLD_MS)
    }

    /// A queue gives no credit.
    fn hold(&mut self, now: Now, queue: Arc<SharedQueue>, waker: Waker) -> Wakeups {
        if let Some(hold) = self.holds.iter_mut().find(|hold| Arc::ptr_eq(&hold.queue, &queue)) {
            if hold.until_ms.is_none() {
                hold.lasts_ms = (hold.lasts_ms * 2).min(LONGEST_HOLD_MS);
                hold.until_ms = Some(now.mono_ms + hold.lasts_ms);
            }
            return Wakeups::new();
        }
        // A queue that goes just then holds nobody back.
        let Ok(producer) = queue.attach_guest(waker) else { return Wakeups::new() };
        let until_ms = Some(now.mono_ms + FIRST_HOLD_MS);
        self.holds.push(Hold { queue, producer, lasts_ms: FIRST_HOLD_MS, until_ms });
        match self.holds.len() > MOST_HOLDS {
            true => self.holds.remove(0).give_up(now),
            false => Wakeups::new(),
        }
    }
}

impl Hold {
    /// Whether the queue has room again, or is gone; if not, it calls when it has.
    fn is_over(&self, now: Now, want: &Want, wakeups: &mut Wakeups) -> bool {
        if self.queue.is_deleted() {
            return true;
        }
        // It has been told, or will be in time: it needs no credit to learn that there is no room.
        let want = Want { was_refused: true, ..*want };
        let (granted, woken) = self.queue.grant(now, self.producer, &want);
        wakeups.merge(woken);
        granted > 0
    }

    fn give_up(self, now: Now) -> Wakeups {
        self.queue.detach_producer(now, self.producer)
    }
}

/// So long a queue holds a relay back at first.
const FIRST_HOLD_MS: u64 = 250;
/// So long it does so at most.
const LONGEST_HOLD_MS: u64 = 8_000;
/// Of so many queues without room a link remembers that they are.
const MOST_HOLDS: usize = 64;
