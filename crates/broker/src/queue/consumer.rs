//! A link that takes messages out of a queue.

use super::cursor::Cursor;
use super::handover::LostGroups;
use super::selecting::SelectionId;
use crate::line::Place;
use crate::messages::{Bits, Positions, Run};
use crate::selector::Filters;
use crate::wake::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A consumer of a queue. It goes stale when the consumer unsubscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConsumerId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// It has filters.
    pub(crate) selects: bool,
}

/// What a consumer does with the messages that it sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Messages are its own until it settles them (distribution mode `move`).
    #[default]
    Acquire,
    /// Messages stay for others (distribution mode `copy`).
    Browse,
}

/// How a consumer subscribes.
#[derive(Clone, Debug)]
pub struct ConsumerOptions {
    /// What it does with the messages.
    pub mode: Mode,
    /// Nobody else may acquire messages of this queue as long as it is there.
    pub exclusive: bool,
    /// Its deliveries are settled when they are sent: messages leave the queue as they are taken.
    pub settled: bool,
    /// Who the peer is, to compare with the owner of an exclusive queue: any number that is the
    /// connection's own.
    pub owner: u64,
    /// It wants to hear of groups that go from it to another consumer.
    pub wants_lost_groups: bool,
    /// Which messages it wants; all if there are none.
    pub filters: Option<Arc<Filters>>,
    /// How to tell it that there may be messages.
    pub waker: Waker,
}

impl ConsumerOptions {
    /// An ordinary consumer.
    pub fn new(waker: Waker) -> ConsumerOptions {
        ConsumerOptions {
            mode: Mode::Acquire,
            exclusive: false,
            settled: false,
            owner: 0,
            wants_lost_groups: false,
            filters: None,
            waker,
        }
    }
}

/// Whether a consumer will come and take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// It cannot take anything now and comes back by itself when it can.
    Idle,
    /// It found nothing and waits to be called.
    Waiting(Place),
    /// It has been called, or told that there is more: it is about to come.
    Expected,
}

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) options: ConsumerOptions,
    pub(crate) interest: Interest,
    pub(crate) holding: Holding,
    /// Where a browser goes on.
    pub(crate) cursor: Cursor,
    /// What it selects, if it does.
    pub(crate) selection: Option<SelectionId>,
    /// The message that it has been called for, if it selects.
    pub(crate) called_for: Option<u64>,
    /// Messages that it has said to be undeliverable here.
    pub(crate) exclusions: Option<Box<Exclusions>>,
    /// How many messages it has taken.
    pub(crate) taken: u64,
    /// How many messages that it took are in transactions.
    pub(crate) pledged: u64,
    /// How many had joined when it did, if the queue has groups.
    pub(crate) joined: u32,
    /// Groups that others have got since it heard of such.
    pub(crate) lost_groups: Option<Box<LostGroups>>,
    /// It has gone; its slot is kept until no transaction has a message of it.
    pub(crate) lingers: bool,
}

/// How a consumer has messages: in its own hands, or in those of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) id: ConsumerId,
    is_pledged: bool,
}

impl Hold {
    /// The consumer says what becomes of them.
    pub(crate) fn own(id: ConsumerId) -> Hold {
        Hold { id, is_pledged: false }
    }

    /// The end of a transaction says what becomes of them.
    pub(crate) fn pledged(id: ConsumerId) -> Hold {
        Hold { id, is_pledged: true }
    }

    /// How messages are held whose entries name this holder; `None` if no consumer holds them.
    pub(crate) fn named(
        mark: u32,
        in_slot: impl FnOnce(u32) -> Option<ConsumerId>,
    ) -> Option<Hold> {
        let is_pledged = mark & PLEDGED != 0;
        in_slot(mark & !PLEDGED).map(|id| Hold { id, is_pledged })
    }

    /// How their entries name the holder: what is in a transaction is not the consumer's, so that
    /// no settlement of its own concerns it.
    pub(crate) fn mark(self) -> u32 {
        if self.is_pledged { self.id.slot | PLEDGED } else { self.id.slot }
    }
}

impl Consumer {
    pub(crate) fn new(options: ConsumerOptions) -> Consumer {
        Consumer {
            options,
            interest: Interest::Idle,
            holding: Holding::default(),
            cursor: Cursor::default(),
            selection: None,
            called_for: None,
            exclusions: None,
            taken: 0,
            pledged: 0,
            joined: 0,
            lost_groups: None,
            lingers: false,
        }
    }

    /// Notes that `count` messages of a run, all that were held like this, are not any more.
    pub(crate) fn gave(&mut self, hold: Hold, run: Run, count: u64) {
        if hold.is_pledged {
            self.pledged -= count;
        } else {
            self.holding.gave(run, count);
        }
    }

    /// Notes that `count` messages of a block, all that were held like this, are not any more.
    pub(crate) fn gave_bits(&mut self, hold: Hold, bits: Bits, count: u64) {
        if hold.is_pledged {
            self.pledged -= count;
        } else {
            self.holding.gave_bits(bits, count);
        }
    }

    /// Notes that `count` messages of a run are held like this.
    pub(crate) fn got(&mut self, hold: Hold, run: Run, count: u64) {
        if hold.is_pledged {
            self.pledged += count;
        } else if count > 0 {
            self.holding.took(run, count);
        }
    }

    pub(crate) fn is_browser(&self) -> bool {
        self.options.mode == Mode::Browse
    }

    /// The first messages that it may acquire if it does not select, not before `from`.
    pub(crate) fn next(&self, available: &Positions, from: u64) -> Option<Run> {
        match &self.exclusions {
            None => available.next(from),
            Some(exclusions) => exclusions.next(available, from),
        }
    }
}

/// The messages that a consumer holds, to be found without looking at the whole queue.
///
/// What is taken is noted block by block, not message by message; notes of which nothing is held any
/// more are cut off in front, and the others when they are too many.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    notes: VecDeque<Bits>,
    /// How many positions the notes cover.
    covered: u64,
    held: u64,
}

impl Holding {
    /// How many messages are held.
    pub(crate) fn len(&self) -> u64 {
        self.held
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> {
        self.notes.iter().copied().flat_map(Bits::runs)
    }

    /// Notes a run of which `held` messages were taken.
    pub(crate) fn took(&mut self, run: Run, held: u64) {
        self.held += held;
        Bits::pieces(run).for_each(|bits| self.note(bits));
    }

    /// Notes positions of one block of which `held` messages were taken.
    pub(crate) fn took_bits(&mut self, bits: Bits, held: u64) {
        self.held += held;
        self.note(bits);
    }

    /// Notes that `count` messages of a run, all that were held, are not any more.
    pub(crate) fn gave(&mut self, run: Run, count: u64) {
        self.cut(count, |block| Bits::of_block(block, run));
    }

    /// Notes that `count` messages of a block, all that were held, are not any more.
    pub(crate) fn gave_bits(&mut self, bits: Bits, count: u64) {
        self.cut(count, |block| if block == bits.block { bits } else { Bits::new(block, 0) });
    }

    fn note(&mut self, bits: Bits) {
        match self.notes.back_mut() {
            Some(last) if last.block == bits.block => {
                self.covered += Bits::new(bits.block, bits.mask & !last.mask).len();
                last.mask |= bits.mask;
            }
            _ => {
                self.covered += bits.len();
                self.notes.push_back(bits);
            }
        }
    }

    /// Cuts off in front what is not held any more; `gone` says what that is in a block.
    #[inline]
    fn cut(&mut self, count: u64, gone: impl Fn(u64) -> Bits) {
        self.held -= count;
        if self.held == 0 {
            self.notes.clear();
            self.covered = 0;
            return;
        }
        while let Some(first) = self.notes.front_mut() {
            let cut = Bits::new(first.block, first.mask & gone(first.block).mask);
            if cut.mask == 0 {
                break;
            }
            first.mask ^= cut.mask;
            self.covered -= cut.len();
            if first.mask != 0 {
                break;
            }
            self.notes.pop_front();
        }
    }

    /// Forgets what is not held any more, if that is most of it.
    pub(crate) fn tidy<I: Iterator<Item = Run>>(&mut self, held_in: impl Fn(Run) -> I) {
        if self.covered <= 2 * self.held + SLACK {
            return;
        }
        let mut tidied = Holding { held: self.held, ..Holding::default() };
        for run in self.runs().flat_map(held_in) {
            tidied.took(run, 0);
        }
        *self = tidied;
    }
}

/// Positions that a consumer must not get again.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    /// First position to the one after the last; never overlapping nor adjacent.
    ranges: BTreeMap<u64, u64>,
    /// Nothing before this is available to it.
    from: u64,
    /// Look for ranges without messages when there are as many as this.
    tidy_at: usize,
}

impl Exclusions {
    pub(crate) fn add(&mut self, position: u64) {
        let mut range = (position, position + 1);
        if let Some((&first, &end)) = self.ranges.range(..=position).next_back() {
            if position < end {
                return;
            }
            if position == end {
                range.0 = first;
            }
        }
        if let Some(end) = self.ranges.remove(&range.1) {
            range.1 = end;
        }
        self.ranges.insert(range.0, range.1);
    }

    /// Messages of a run are available again.
    pub(crate) fn released(&mut self, run: Run) {
        let before = self.ranges.range(..=run.first).next_back();
        if before.is_none_or(|(_, end)| *end < run.end()) {
            self.from = self.from.min(run.first);
        }
    }

    /// Forgets ranges in which no message is left, when many have come since the last time.
    pub(crate) fn tidy(&mut self, is_left: impl Fn(u64) -> bool) {
        if self.ranges.len() < self.tidy_at.max(SLACK as usize) {
            return;
        }
        self.ranges.retain(|first, end| (*first..*end).any(&is_left));
        self.tidy_at = self.ranges.len() * 2;
    }

    /// Where looking begins; moves on past what is excluded.
    pub(crate) fn advance(&mut self, available: &Positions) {
        let next = self.next(available, 0).map(|run| run.first);
        self.from = next.or(self.ranges.last_key_value().map(|(_, end)| *end)).unwrap_or(0);
    }

    /// The first of some positions that is not excluded, and not before `from`.
    pub(crate) fn next(&self, available: &Positions, from: u64) -> Option<Run> {
        let mut run = available.next(from.max(self.from))?;
        loop {
            let before = self.ranges.range(..=run.first).next_back();
            match before.filter(|(_, end)| run.first < **end) {
                Some((_, end)) => run = available.next(*end)?,
                None => break,
            }
        }
        // The run may reach into the next range.
        if let Some((first, _)) = self.ranges.range(run.first..run.end()).next() {
            run.len = first - run.first;
        }
        Some(run)
    }
}

/// The bit of a holder that says that a transaction has the message; slots are smaller.
const PLEDGED: u32 = 1 << 31;
/// So many positions may be noted in vain before it is worth to look for them.
const SLACK: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn available(runs: &[(u64, u64)]) -> Positions {
        let mut positions = Positions::default();
        runs.iter().for_each(|(first, len)| positions.insert(Run::new(*first, *len)));
        positions
    }

    #[test]
    fn what_is_settled_in_order_is_forgotten_at_once() {
        let mut holding = Holding::default();
        holding.took(Run::new(0, 10), 10);
        holding.took(Run::new(10, 5), 5);
        holding.took(Run::new(100, 5), 5);
        holding.gave(Run::new(0, 12), 12);
        assert_eq!(holding.runs().collect::<Vec<_>>(), [Run::new(12, 3), Run::new(100, 5)]);
        holding.gave(Run::new(12, 3), 3);
        assert_eq!(holding.runs().collect::<Vec<_>>(), [Run::new(100, 5)]);
    }

    #[test]
    fn one_message_that_is_held_for_long_does_not_keep_the_note_of_all_later_ones() {
        let mut holding = Holding::default();
        for position in 0..10_000 {
            holding.took(Run::new(position, 1), 1);
            if position > 0 {
                holding.gave(Run::new(position, 1), 1);
                holding.tidy(|run| (run.first == 0).then(|| Run::new(0, 1)).into_iter());
            }
        }
        assert_eq!(holding.len(), 1);
        assert!(holding.covered < 2 * SLACK, "{} positions", holding.covered);
    }

    #[test]
    fn excluded_messages_are_jumped_over() {
        let available = available(&[(0, 100)]);
        let mut exclusions = Exclusions::default();
        for position in [0, 2, 1, 5] {
            exclusions.add(position);
        }
        assert_eq!(exclusions.next(&available, 0), Some(Run::new(3, 2)));
        assert_eq!(exclusions.next(&available, 5), Some(Run::new(6, 58)));
        assert_eq!(exclusions.ranges.len(), 2);
    }

    #[test]
    fn a_release_is_seen_before_the_place_where_looking_had_got_to() {
        let mut positions = available(&[(10, 1)]);
        let mut exclusions = Exclusions::default();
        exclusions.add(10);
        exclusions.advance(&positions);
        assert_eq!(exclusions.next(&positions, 0), None);
        positions.insert(Run::new(3, 1));
        exclusions.released(Run::new(3, 1));
        assert_eq!(exclusions.next(&positions, 0), Some(Run::new(3, 1)));
    }
}
