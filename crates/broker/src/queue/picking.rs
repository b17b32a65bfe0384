//! Going through a queue for the messages that an operator means.

use super::{Queue, SharedQueue};
use crate::message::{Added, Taken};
use crate::messages::{Run, Taker};
use crate::selector::Selector;
use mochila_wire::Now;

/// Which messages of a queue are meant: of those that nobody holds the oldest ones, for which a
/// selector is true.
#[derive(Clone, Debug)]
pub struct Pick {
    /// At most so many.
    pub most: u64,
    /// Which ones; all if there is none.
    pub selector: Option<Selector>,
    /// Those that came over this connection; over any if there is none.
    pub connection: Option<u64>,
}

impl From<u64> for Pick {
    /// The oldest messages, whatever they are.
    fn from(most: u64) -> Pick {
        Pick { most, selector: None, connection: None }
    }
}

/// A walk over a queue, in pieces between which others get the lock; the selector is asked without
/// it. Messages that come in the meantime are not met.
#[derive(Debug)]
pub(super) struct Picking<'a> {
    pick: &'a Pick,
    /// Where it goes on.
    from: u64,
    end: u64,
    /// How many are still wanted.
    left: u64,
    taken: Taken,
    added: Added,
    /// The messages of one piece.
    picked: Vec<Run>,
}

impl<'a> Picking<'a> {
    pub(super) fn new(pick: &'a Pick, queue: &SharedQueue) -> Picking<'a> {
        let end = queue.lock().messages_mut().next_position();
        let (taken, added) = (Taken::new(), Added::new());
        Picking { pick, from: 0, end, left: pick.most, taken, added, picked: Vec::new() }
    }

    /// The next messages that are meant, at most `most`; `None` when everything has been looked at.
    /// By the time that they are used somebody may have taken some of them.
    pub(super) fn next(&mut self, now: Now, queue: &SharedQueue, most: u64) -> Option<&[Run]> {
        self.picked.clear();
        while self.picked.is_empty() {
            let most = most.min(self.left);
            if most == 0 || self.from >= self.end {
                return None;
            }
            let piece = Run::new(self.from, self.end - self.from);
            if self.pick.selector.is_none() && self.pick.connection.is_none() {
                self.from = queue.lock().list_available(piece, most, &mut self.picked);
            } else {
                self.from = queue.lock().describe(now, piece, &mut self.taken);
                self.ask(most);
            }
        }
        Some(&self.picked)
    }

    /// So many of those that were met could not be used, as somebody was faster.
    pub(super) fn used(&mut self, count: u64) {
        self.left -= count;
    }

    /// Looks at the messages that have been described.
    fn ask(&mut self, most: u64) {
        let Pick { selector, connection, .. } = self.pick;
        let mut count = 0;
        for delivery in self.taken.deliveries() {
            let is_of = |connection| self.taken.is_of(delivery, connection);
            if !connection.is_none_or(is_of) {
                continue;
            }
            if let Some(selector) = selector
                && !selector.matches(&self.taken.selector_input(delivery, &mut self.added))
            {
                continue;
            }
            if count == most {
                // The walk goes on with the first that is too many.
                self.from = delivery.position;
                break;
            }
            count += 1;
            match self.picked.last_mut() {
                Some(last) if last.end() == delivery.position => last.len += 1,
                _ => self.picked.push(Run::new(delivery.position, 1)),
            }
        }
        self.taken.clear();
    }
}

impl Queue {
    /// Lists available messages of a run, and says where the list ends.
    fn list_available(&self, within: Run, most: u64, out: &mut Vec<Run>) -> u64 {
        let (mut from, mut left) = (within.first, most);
        while left > 0 {
            let next = self.messages.available().next(from).filter(|run| run.first < within.end());
            let Some(mut run) = next else { return within.end() };
            run.len = run.len.min(left).min(within.end() - run.first);
            left -= run.len;
            from = run.end();
            out.push(run);
        }
        from
    }

    /// Describes available messages of a run, so that they can be looked at without the lock, and
    /// says where the description ends.
    fn describe(&self, now: Now, within: Run, out: &mut Taken) -> u64 {
        let mut runs = Vec::new();
        let end = self.list_available(within, LOOKED_AT_ONCE, &mut runs);
        out.set_stamps(self.stamps.as_ref());
        let taker =
            Taker { slot: 0, now_ms: now.mono_ms, bytes: usize::MAX, is_empty_handed: true };
        for run in runs {
            let _shown = self.messages.browse(run, taker, out);
        }
        end
    }
}

/// So many messages are described before the lock is released for others.
const LOOKED_AT_ONCE: u64 = 512;
