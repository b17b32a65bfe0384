//! Those consumers of a queue that select, and which messages they are called for.

use super::consumer::{Consumer, Exclusions};
use super::selection::{Eligible, Selection};
use super::showing::Showing;
use crate::line::Line;
use crate::message::Stamps;
use crate::messages::{Messages, Positions, Run};
use crate::selector::Filters;
use crate::slab::Slab;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The selections of a queue; there only while somebody selects.
///
/// Whoever waits is shown what comes, by the visit that brings it. Of those that a message matches
/// one is called for it, and until he has come he counts on a message: who comes before him leaves
/// one more, but takes the oldest as everybody does. Who left the very message for which somebody
/// was called, and took a newer one, would get them in the wrong order should that one not come.
#[derive(Debug, Default)]
pub(crate) struct Selecting {
    selections: Slab<Selection>,
    /// Everybody who waits, in the order in which they began to; browsers too.
    pub(crate) line: Line<u32>,
    /// Messages for which somebody has been called who has not come yet.
    promised: Positions,
    /// Whom they are promised to.
    promises: BTreeMap<u64, u32>,
    /// Those whose messages others have taken.
    broken: Vec<u32>,
    /// There may be messages that those who wait have not been shown.
    news: bool,
    /// Some are shown what comes although they do not wait: they look at it soon, and now it has
    /// just been written.
    keep_up: bool,
    /// There may be messages for somebody in the line.
    pub(crate) recheck: bool,
    /// Whoever selects is not the first to be called next time.
    pub(crate) stands_back: bool,
    /// How many have been planned and not installed.
    in_flight: u32,
    /// Kept for the next time.
    spare: Option<Box<Showing>>,
}

/// What several selections are shown that have got equally far.
struct Shared {
    /// From here …
    from: u64,
    /// … to here.
    end: u64,
    /// Which of the messages that were taken.
    range: Range<usize>,
}

impl Shared {
    fn count(&self) -> u64 {
        self.range.len() as u64
    }

    /// One more of them is shown it; how many messages that is.
    fn show(&self, showing: &mut Showing, id: SelectionId, selection: &mut Selection) -> u64 {
        selection.advance_to(self.end);
        selection.in_flight = true;
        showing.ask(id, selection, self.range.clone());
        self.count()
    }
}

/// Which selection a consumer has.
pub(crate) type SelectionId = (u32, u32);

impl Selecting {
    /// Whether nobody selects, and nobody is looking at messages for somebody who has left.
    pub(crate) fn is_over(&self) -> bool {
        self.selections.len() == 0 && self.in_flight == 0
    }

    /// Adds a consumer.
    pub(crate) fn join(
        &mut self,
        filters: &Arc<Filters>,
        owner: u64,
        browses: bool,
    ) -> SelectionId {
        let same = |selection: &Selection| !browses && selection.suits(filters, owner);
        let known = self.selections.iter().take(MOST_COMPARED).find(|(_, it)| same(it));
        let id = match known {
            Some((id, _)) => id,
            None => self.selections.insert(Selection::new(Arc::clone(filters), owner, browses)),
        };
        if let Some(selection) = self.get_mut(id) {
            selection.members += 1;
        }
        id
    }

    /// Removes a consumer.
    pub(crate) fn leave(&mut self, id: SelectionId) {
        let Some(selection) = self.get_mut(id) else { return };
        selection.members -= 1;
        if selection.members == 0 {
            self.selections.remove(id.0, id.1);
        }
    }

    pub(crate) fn get_mut(&mut self, id: SelectionId) -> Option<&mut Selection> {
        self.selections.get_mut(id.0, id.1)
    }

    pub(crate) fn promised(&self) -> &Positions {
        &self.promised
    }

    /// How many of the messages that match a selection others have been called for.
    pub(crate) fn promised_of(&self, id: SelectionId) -> u64 {
        let Some(selection) = self.selections.get(id.0, id.1) else { return 0 };
        let (mut count, mut from) = (0, 0);
        while let Some(run) = self.promised.next(from).filter(|_| count < MANY) {
            let positions = run.first..run.end();
            let matching = selection.matching();
            count += positions.filter(|position| matching.contains(*position)).count() as u64;
            from = run.end();
        }
        count
    }

    /// How many messages match a selection, at most.
    pub(crate) fn matching(&self, id: SelectionId) -> u64 {
        self.selections.get(id.0, id.1).map_or(0, |selection| selection.matching().len())
    }

    /// Somebody is called for a message.
    pub(crate) fn promise(&mut self, position: u64, slot: u32) {
        self.promised.insert_one(position);
        self.promises.insert(position, slot);
    }

    /// Whoever was called for a message has come, or will not.
    pub(crate) fn answer(&mut self, position: u64) {
        self.promised.take_out(Run::new(position, 1), |_| {});
        self.promises.remove(&position);
    }

    /// Somebody has taken messages, perhaps before others came who were called for them.
    pub(crate) fn took(&mut self, run: Run) {
        if self.promises.is_empty() {
            return;
        }
        self.promised.take_out(run, |_| {});
        let broken = self.promises.extract_if(run.first..run.end(), |_, _| true);
        self.broken.extend(broken.map(|(_, slot)| slot));
    }

    /// One of those whose messages others have taken: he is called for another one, if there is.
    pub(crate) fn next_broken(&mut self) -> Option<u32> {
        self.broken.pop()
    }

    /// The first messages that a consumer may acquire, not before `from`.
    pub(crate) fn next(
        &mut self,
        selection: Option<SelectionId>,
        exclusions: Option<&Exclusions>,
        eligible: Eligible<'_>,
        from: u64,
    ) -> Option<Run> {
        match (selection, exclusions) {
            (Some(id), _) => self.get_mut(id)?.next(eligible, exclusions, from),
            (None, Some(exclusions)) => exclusions.next(eligible.positions, from),
            (None, None) => eligible.positions.next(from),
        }
    }

    /// The first message that a consumer may acquire and for which nobody has been called.
    fn next_unpromised(&mut self, consumer: &Consumer, eligible: Eligible<'_>) -> Option<u64> {
        let exclusions = consumer.exclusions.as_deref();
        let mut from = 0;
        loop {
            let run = self.next(consumer.selection, exclusions, eligible, from)?;
            match self.promised.next(run.first) {
                Some(promised) if promised.first == run.first => from = promised.end(),
                _ => return Some(run.first),
            }
        }
    }

    /// The first message that somebody who selects and waits is to be called for.
    pub(crate) fn next_for(&mut self, consumer: &Consumer, messages: &Messages) -> Option<u64> {
        let mut next = |eligible| self.next_unpromised(consumer, eligible);
        match messages.levels() {
            None => next(Eligible::free(messages)),
            Some(levels) => {
                levels.highest_first().find_map(|(_, positions)| next(Eligible::some(positions)))
            }
        }
    }

    /// Whether there is a message of the groups of somebody who selects.
    pub(crate) fn has_own(&mut self, consumer: &Consumer, slot: u32, messages: &Messages) -> bool {
        let owned = messages.groups().and_then(|groups| groups.owned(slot));
        let exclusions = consumer.exclusions.as_deref();
        let mut next = |owned| self.next(consumer.selection, exclusions, Eligible::some(owned), 0);
        owned.is_some_and(|owned| next(owned).is_some())
    }

    /// The first messages that a browser which selects has not been shown and wants to see, and
    /// their level if there are levels.
    pub(crate) fn next_to_show(
        &mut self,
        consumer: &Consumer,
        messages: &Messages,
    ) -> Option<(Option<usize>, Run)> {
        let selection = self.get_mut(consumer.selection?)?;
        let Some(levels) = messages.levels() else {
            let next = selection.next(Eligible::all(messages.available()), None, 0);
            return next.map(|run| (None, run));
        };
        levels.highest_first().find_map(|(level, positions)| {
            let from = consumer.cursor.in_level(level);
            let run = selection.next(Eligible::some(positions), None, from)?;
            Some((Some(level), run))
        })
    }

    /// Whether a consumer that does not select may take one of these for which nobody is called.
    pub(crate) fn may_take(&mut self, consumer: &Consumer, free: &Positions) -> bool {
        self.next_unpromised(consumer, Eligible::some(free)).is_some()
    }

    /// Messages have come in, or somebody waits who may have something unseen.
    pub(crate) fn note_news(&mut self) {
        self.news = self.keep_up || !self.line.is_empty();
    }

    /// Messages of a run are available again.
    pub(crate) fn released(&mut self, run: Run, available: &Positions) {
        self.selections.values_mut().for_each(|selection| selection.released(run, available));
        self.note_news();
    }

    /// Whether nobody is to be called before those who wait have been shown what is new.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    /// Nobody waits for what is new any more.
    pub(crate) fn settle_news(&mut self) {
        self.news = false;
    }

    /// Collects what those who wait have not been shown; `None` if there is nothing.
    pub(crate) fn plan(
        &mut self,
        messages: &Messages,
        stamps: Option<&Arc<Stamps>>,
    ) -> Option<Box<Showing>> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let mut showing = self.spare.take().unwrap_or_default();
        showing.taken.set_stamps(stamps);
        let end = messages.next_position();
        let mut left = ASKED_AT_ONCE;
        let are_few = self.selections.len() <= MOST_COMPARED;
        self.keep_up = false;
        // Selections that have seen everything up to the same place share what they are shown.
        let mut shared: Option<Shared> = None;
        for (id, selection) in self.selections.iter_mut() {
            let is_due = selection.waiting > 0 || are_few && selection.keeps_up(end);
            self.keep_up |= is_due;
            if !is_due || selection.in_flight {
                continue;
            }
            if left == 0 {
                self.news = true;
                break;
            }
            let front = selection.front();
            let count = match shared.as_ref().filter(|shared| Some(shared.from) == front) {
                Some(shared) => shared.show(&mut showing, id, selection),
                None => {
                    let start = showing.taken.len();
                    let count = selection.collect(messages, left, &mut showing.taken);
                    if count == 0 {
                        continue;
                    }
                    let range = start..showing.taken.len();
                    showing.ask(id, selection, range.clone());
                    if let (Some(from), Some(end)) = (front, selection.front()) {
                        shared = Some(Shared { from, end, range });
                    }
                    count
                }
            };
            left = left.saturating_sub(count);
            selection.ahead += count;
        }
        self.or_spare(showing)
    }

    /// Collects what one selection has not been shown, as much as it takes to give its consumer so
    /// many, or anything that it `may_take`; `None` if there is enough, or nothing.
    pub(crate) fn plan_for(
        &mut self,
        id: SelectionId,
        (want, may_take): (u64, bool),
        messages: &Messages,
        stamps: Option<&Arc<Stamps>>,
    ) -> Option<Box<Showing>> {
        let selection = self.selections.get_mut(id.0, id.1)?;
        selection.ahead = 0;
        self.keep_up = true;
        // What has come back stands before what is known to match, and so does what is urgent.
        let front = selection.front();
        let has_enough = may_take
            && selection.matching().len() >= want
            && front.is_some()
            && messages.levels().is_none();
        if selection.in_flight || has_enough {
            return None;
        }
        let mut showing = self.spare.take().unwrap_or_default();
        showing.taken.set_stamps(stamps);
        let count = selection.collect(messages, SHOWN_AT_ONCE, &mut showing.taken);
        if count > 0 {
            let range = 0..count as usize;
            showing.ask(id, selection, range.clone());
            if let (Some(from), Some(end)) = (front, selection.front()) {
                self.accompany(&Shared { from, end, range }, ASKED_AT_ONCE - count, &mut showing);
            }
        }
        self.or_spare(showing)
    }

    /// Selections that have got as far as the one that is shown something are shown the same: a
    /// message that is looked at for all of them is read once.
    fn accompany(&mut self, shared: &Shared, mut left: u64, showing: &mut Showing) {
        for (id, selection) in self.selections.iter_mut().take(MOST_COMPARED) {
            let goes_along = selection.front() == Some(shared.from) && selection.looks_ahead();
            if !goes_along || selection.in_flight {
                continue;
            }
            if left < shared.count() {
                break;
            }
            let count = shared.show(showing, id, selection);
            left -= count;
            selection.ahead += count;
        }
    }

    /// Keeps what was found. The positions are those that may be available to more than before.
    pub(crate) fn install(
        &mut self,
        mut showing: Box<Showing>,
        available: &Positions,
        mut found: impl FnMut(SelectionId, Run),
    ) {
        for (ask, run) in showing.matching() {
            let id = showing.asks[*ask as usize].selection;
            if let Some(selection) = self.get_mut(id) {
                selection.add_matching(*run);
                found(id, *run);
                self.recheck = true;
            }
        }
        for ask in &showing.asks {
            if let Some(selection) = self.get_mut(ask.selection) {
                selection.land(available);
            }
        }
        self.in_flight -= 1;
        showing.clear();
        self.spare = Some(showing);
        self.note_news();
    }

    /// Whether there is something that a selection has to be shown, and that nobody shows it now.
    pub(crate) fn is_unseen(&mut self, id: SelectionId, messages: &Messages) -> bool {
        let selection = self.get_mut(id);
        selection.is_some_and(|it| !it.in_flight && it.has_unseen(messages))
    }

    /// A plan that has nothing in it is none.
    fn or_spare(&mut self, showing: Box<Showing>) -> Option<Box<Showing>> {
        if !showing.asks.is_empty() {
            self.in_flight += 1;
            return Some(showing);
        }
        self.spare = Some(showing);
        None
    }
}

/// A new consumer's filters are compared with those of so many selections, and so many may be shown
/// what nobody asks for.
const MOST_COMPARED: usize = 256;
/// So many calls are many.
const MANY: u64 = 64;
/// So many times a filter is asked before the lock is taken again.
const ASKED_AT_ONCE: u64 = 8192;
/// So many messages a consumer is shown before the lock is taken again.
const SHOWN_AT_ONCE: u64 = 512;
