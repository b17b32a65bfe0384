//! What consumers with a selector know about the messages of a queue.

use super::consumer::Exclusions;
use crate::message::Taken;
use crate::messages::{Messages, Positions, Run, Taker};
use crate::selector::Filters;
use std::sync::Arc;

/// The messages of a queue as a set of filters sees them; consumers that ask for the same share it.
///
/// Each message is looked at once, and again only after it has come back from somebody:
///
/// ```text
///               looked at, without the lock
///   unseen ──────────────┬──────────────────▶ matching ──▶ taken
///     ▲                  └──▶ (forgotten)                    │
///     └───────────────────────── released ───────────────────┘
/// ```
///
/// Messages that leave otherwise are noticed when they are come across.
#[derive(Debug)]
pub(crate) struct Selection {
    filters: Arc<Filters>,
    /// The connection of its consumers.
    owner: u64,
    browses: bool,
    /// What stands before this a browser does not see any more.
    shown: u64,
    /// Available messages from here on have not been looked at, …
    seen: u64,
    /// … nor have these before it.
    unseen: Positions,
    /// Messages that match, as far as they are still available.
    matching: Positions,
    /// Messages are being looked at without the lock.
    pub(crate) in_flight: bool,
    /// Something was released in the meantime.
    stale: bool,
    /// How many it has been shown since one of its consumers came.
    pub(crate) ahead: u64,
    /// How many consumers share it.
    pub(crate) members: u32,
    /// How many of them wait.
    pub(crate) waiting: u32,
    /// Look for positions that have become meaningless when there are as many as this.
    tidy_at: u64,
}

impl Selection {
    pub(crate) fn new(filters: Arc<Filters>, owner: u64, browses: bool) -> Selection {
        Selection {
            filters,
            owner,
            browses,
            shown: 0,
            seen: 0,
            unseen: Positions::default(),
            matching: Positions::default(),
            in_flight: false,
            stale: false,
            ahead: 0,
            members: 0,
            waiting: 0,
            tidy_at: FEW,
        }
    }

    /// Whether a consumer that acquires and asks for this may share it.
    pub(crate) fn suits(&self, filters: &Filters, owner: u64) -> bool {
        !self.browses
            && *self.filters == *filters
            && (self.owner == owner || !filters.depend_on_connection())
    }

    pub(crate) fn filters(&self) -> &Arc<Filters> {
        &self.filters
    }

    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    /// Messages that match; some of them may be gone.
    pub(crate) fn matching(&self) -> &Positions {
        &self.matching
    }

    /// Where a selection stands that has nothing unseen but what came last.
    pub(crate) fn front(&self) -> Option<u64> {
        (self.unseen.len() == 0).then_some(self.seen)
    }

    /// All before this has been looked at.
    pub(crate) fn advance_to(&mut self, seen: u64) {
        self.seen = seen;
    }

    /// Whether it is shown messages before its consumers ask for them: not if they do not come.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.ahead < MOST_AHEAD
    }

    /// Whether it looks ahead, and has all but some of the last messages behind it.
    pub(crate) fn keeps_up(&self, end: u64) -> bool {
        self.looks_ahead() && self.front().is_some_and(|front| front + MOST_AHEAD > end)
    }

    /// Whether there are messages that have not been looked at.
    pub(crate) fn has_unseen(&mut self, messages: &Messages) -> bool {
        self.next_unseen(messages).is_some()
    }

    /// Describes up to `most` unseen messages in order, to be looked at; from now on they count as
    /// seen. Returns how many it were.
    pub(crate) fn collect(&mut self, messages: &Messages, most: u64, out: &mut Taken) -> u64 {
        let taker = Taker { slot: 0, now_ms: 0, bytes: usize::MAX, is_empty_handed: true };
        let mut count = 0;
        while count < most {
            let Some(mut run) = self.next_unseen(messages) else { break };
            run.len = run.len.min(most - count);
            if run.first < self.seen {
                self.unseen.remove(run);
            } else {
                self.seen = run.end();
            }
            count += messages.browse(run, taker, out).messages;
        }
        self.in_flight |= count > 0;
        count
    }

    /// These are among the messages that have been collected, and match.
    pub(crate) fn add_matching(&mut self, run: Run) {
        self.matching.add(run);
        // What has come back in the meantime will be looked at again.
        if self.stale {
            let (matching, unseen) = (&mut self.matching, &self.unseen);
            for position in (run.first..run.end()).filter(|position| unseen.contains(*position)) {
                matching.remove_one(position);
            }
        }
    }

    /// All that was collected has been looked at.
    pub(crate) fn land(&mut self, available: &Positions) {
        (self.in_flight, self.stale) = (false, false);
        self.tidy(available);
    }

    /// Messages may be available again, and different.
    pub(crate) fn released(&mut self, run: Run, available: &Positions) {
        self.stale = self.in_flight;
        self.matching.take_out(run, |_| {});
        let (first, end) = (run.first.max(self.shown), run.end().min(self.seen));
        self.unseen.add(Run::new(first, end.saturating_sub(first)));
        self.tidy(available);
    }

    /// Messages that a browser was shown and could not pass on.
    pub(crate) fn give_back(&mut self, position: u64) {
        self.matching.add(Run::new(position, 1));
        self.shown = self.shown.min(position);
    }

    /// A browser has seen everything there is.
    pub(crate) fn wait(&mut self) {
        if self.browses && !self.in_flight {
            self.shown = self.seen;
        }
    }

    /// The first messages that match and are eligible, not before `from`.
    pub(crate) fn next(
        &mut self,
        eligible: Eligible<'_>,
        exclusions: Option<&Exclusions>,
        mut from: u64,
    ) -> Option<Run> {
        loop {
            let run = match exclusions {
                None => self.matching.next(from),
                Some(exclusions) => exclusions.next(&self.matching, from),
            }?;
            let there = eligible.positions.next(run.first);
            let first = there.map_or(u64::MAX, |there| there.first);
            let gone = first.min(run.end()) - run.first;
            if gone > 0 && eligible.is_all {
                self.matching.remove(Run::new(run.first, gone));
            }
            let there = there?;
            if there.first < run.end() {
                let end = there.end().min(run.end());
                return Some(Run::new(there.first, end - there.first));
            }
            from = there.first;
        }
    }

    /// A consumer has taken messages that were next.
    pub(crate) fn took(&mut self, run: Run) {
        self.matching.remove(run);
    }

    /// A browser has been shown messages that were next, and all before them if they are in order;
    /// if not, it knows itself how far it has got.
    pub(crate) fn showed(&mut self, run: Run, in_order: bool) {
        self.matching.remove(run);
        if in_order {
            self.shown = run.end();
        }
    }

    fn next_unseen(&mut self, messages: &Messages) -> Option<Run> {
        let available = messages.available();
        while let Some(run) = self.unseen.next(0) {
            let there = available.next(run.first).filter(|there| there.first < run.end());
            let gone = there.map_or(run.end(), |there| there.first) - run.first;
            if gone > 0 {
                self.unseen.remove(Run::new(run.first, gone));
            }
            if let Some(there) = there {
                let end = there.end().min(run.end());
                return Some(Run::new(there.first, end - there.first));
            }
        }
        let next = available.next(self.seen);
        if next.is_none() {
            self.seen = messages.next_position();
        }
        next
    }

    /// Forgets what is not available any more, when there is much of it.
    fn tidy(&mut self, available: &Positions) {
        if self.unseen.len() + self.matching.len() < self.tidy_at {
            return;
        }
        self.unseen.retain(available);
        self.matching.retain(available);
        self.tidy_at = FEW.max(2 * (self.unseen.len() + self.matching.len()));
    }
}

/// Messages that somebody may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eligible<'a> {
    pub(crate) positions: &'a Positions,
    /// No others are available.
    is_all: bool,
}

impl<'a> Eligible<'a> {
    /// All that are available.
    pub(crate) fn all(available: &'a Positions) -> Eligible<'a> {
        Eligible { positions: available, is_all: true }
    }

    /// Some of those that are available.
    pub(crate) fn some(positions: &'a Positions) -> Eligible<'a> {
        Eligible { positions, is_all: false }
    }

    /// Those that any consumer may have.
    pub(crate) fn free(messages: &'a Messages) -> Eligible<'a> {
        Eligible { positions: messages.free(), is_all: messages.groups().is_none() }
    }
}

/// So many positions are not worth looking through.
const FEW: u64 = 4096;
/// So many messages a selection is shown before its consumers come for any.
const MOST_AHEAD: u64 = 8192;
