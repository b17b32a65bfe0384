//! Who gets the next message.

use super::consumer::{Consumer, ConsumerId, ConsumerOptions, Interest};
use super::selecting::Selecting;
use super::selection::Eligible;
use super::showing::Showing;
use crate::line::Line;
use crate::message::Stamps;
use crate::messages::{Bits, Choice, Messages, Positions, Run};
use crate::slab::Slab;
use crate::wake::Wakeups;
use std::collections::HashSet;
use std::sync::Arc;

/// The consumers of a queue: first come, first served, and fair shares.
///
/// As long as messages are available that a waiting consumer may take, at least one consumer is on
/// its way to the queue; [`Distributor::balance`] is called after every change and sees to it.
#[derive(Debug, Default)]
pub(crate) struct Distributor {
    pub(super) consumers: Slab<Consumer>,
    /// Those that take whatever there is, in the order in which they began to wait.
    pub(super) waiting: Line<u32>,
    /// Those that have excluded some messages.
    pub(super) choosy: Line<u32>,
    /// Browsers that have seen everything.
    pub(super) browsing: Line<u32>,
    /// Those that select, browsers too; there only if somebody does.
    pub(super) selecting: Option<Box<Selecting>>,
    /// How many acquiring consumers that do not select are on their way.
    pub(super) expected: u32,
    pub(super) acquirers: u32,
    /// How many have excluded messages, waiting or not.
    pub(super) excluding: u32,
    /// How many have gone and left messages in transactions.
    pub(super) lingering: u32,
    pub(super) exclusive: bool,
}

impl Distributor {
    pub(crate) fn len(&self) -> usize {
        self.consumers.len() - self.lingering as usize
    }

    /// Whether a connection has links here, of either kind.
    pub(crate) fn has_links_of(&self, owner: u64) -> bool {
        self.consumers.iter().any(|(_, consumer)| consumer.options.owner == owner)
    }

    /// True if somebody acquires messages here.
    pub(crate) fn has_acquirer(&self) -> bool {
        self.acquirers > 0
    }

    /// True if the one acquiring consumer wants to stay the only one.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// The connection of the one acquiring consumer that wants to stay the only one.
    pub(crate) fn exclusive_owner(&self) -> Option<u64> {
        let mut consumers = self.consumers.iter().filter(|_| self.exclusive);
        consumers.find_map(|(_, it)| it.options.exclusive.then_some(it.options.owner))
    }

    pub(crate) fn add(&mut self, options: ConsumerOptions) -> ConsumerId {
        let mut consumer = Consumer::new(options);
        let options = &consumer.options;
        if let Some(filters) = &options.filters {
            let selecting = self.selecting.get_or_insert_default();
            consumer.selection =
                Some(selecting.join(filters, options.owner, consumer.is_browser()));
        }
        let selects = consumer.selection.is_some();
        if !consumer.is_browser() {
            self.acquirers += 1;
            self.exclusive |= consumer.options.exclusive;
        }
        let (slot, generation) = self.consumers.insert(consumer);
        ConsumerId { slot, generation, selects }
    }

    pub(crate) fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        self.consumers.get(id.slot, id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: ConsumerId) -> Option<&mut Consumer> {
        self.consumers.get_mut(id.slot, id.generation)
    }

    /// Removes a consumer; its slot is kept as long as transactions have messages of it.
    pub(crate) fn remove(&mut self, id: ConsumerId) {
        self.set_idle(id);
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        if std::mem::replace(&mut consumer.lingers, true) {
            return;
        }
        if !consumer.is_browser() {
            self.acquirers -= 1;
            self.exclusive &= !consumer.options.exclusive;
        }
        if consumer.exclusions.take().is_some() {
            self.excluding -= 1;
        }
        if let (Some(id), Some(selecting)) = (consumer.selection.take(), &mut self.selecting) {
            selecting.leave(id);
        }
        self.lingering += 1;
        self.tidy_selecting();
        self.forget(id);
    }

    /// Forgets a consumer that has gone, if no transaction has messages of it any more.
    pub(crate) fn forget(&mut self, id: ConsumerId) {
        if self.get(id).is_some_and(|consumer| consumer.lingers && consumer.pledged == 0) {
            self.consumers.remove(id.slot, id.generation);
            self.lingering -= 1;
        }
    }

    /// The consumer in a slot.
    pub(crate) fn in_slot(&self, slot: u32) -> Option<ConsumerId> {
        let generation = self.consumers.generation(slot)?;
        let selects = self.consumers.at(slot).is_some_and(|it| it.selection.is_some());
        Some(ConsumerId { slot, generation, selects })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConsumerId, &Consumer)> {
        let there = self.consumers.iter().filter(|(_, consumer)| !consumer.lingers);
        there.map(|((slot, generation), consumer)| {
            let selects = consumer.selection.is_some();
            (ConsumerId { slot, generation, selects }, consumer)
        })
    }

    /// How much of what is available one that is taking now may have: others on their way, and
    /// those that wait, get as much. Who comes without having been called leaves one message to
    /// each of those who were; otherwise the one who asks most often would get everything.
    pub(crate) fn share(&self, id: ConsumerId, available: u64) -> u64 {
        let consumer = self.get(id);
        let interest = consumer.map(|consumer| consumer.interest);
        let expected = u64::from(self.expected);
        let called = self.selecting.as_ref().map_or(0, |selecting| selecting.promised().len());
        let available = available.saturating_sub(called);
        if let (Some(selection), Some(selecting)) =
            (consumer.and_then(|consumer| consumer.selection), &self.selecting)
        {
            let rivals = selecting.promised_of(selection);
            let matching = selecting.matching(selection).saturating_sub(rivals);
            let others = rivals + expected + self.waiting.len() as u64 + self.choosy.len() as u64;
            let is_called = interest == Some(Interest::Expected);
            let most = if is_called { available } else { available.saturating_sub(expected) };
            return matching.div_ceil(others + 1).min(most);
        }
        let (itself, promised) = match interest {
            Some(Interest::Expected) => (1, 0),
            Some(Interest::Waiting(_)) => (1, expected),
            Some(Interest::Idle) | None => (0, expected),
        };
        let waiting = self.waiting.len() as u64 + self.choosy.len() as u64;
        let others = expected + waiting + called - itself;
        available.div_ceil(others + 1).min(available.saturating_sub(promised))
    }

    /// It cannot take anything now.
    pub(crate) fn set_idle(&mut self, id: ConsumerId) {
        if self.answer_call(id).is_some() {
            self.recheck_selecting();
        }
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        let interest = std::mem::replace(&mut consumer.interest, Interest::Idle);
        if let (Some(selection), Some(selecting)) = (consumer.selection, &mut self.selecting) {
            if let Interest::Waiting(place) = interest {
                selecting.line.leave(place);
                selecting.get_mut(selection).expect("its consumer is there").waiting -= 1;
            }
            return;
        }
        match interest {
            Interest::Idle => {}
            Interest::Expected if consumer.is_browser() => {}
            Interest::Expected => self.expected -= 1,
            Interest::Waiting(place) => {
                let line = match (consumer.is_browser(), consumer.exclusions.is_some()) {
                    (true, _) => &mut self.browsing,
                    (false, true) => &mut self.choosy,
                    (false, false) => &mut self.waiting,
                };
                line.leave(place);
            }
        }
    }

    /// One that was called for a message has come, or will not: the message is for anybody again.
    pub(crate) fn answer_call(&mut self, id: ConsumerId) -> Option<u64> {
        let position = self.get_mut(id)?.called_for.take()?;
        self.selecting.as_mut()?.answer(position);
        Some(position)
    }

    /// There may be a message for somebody who selects and has not been called.
    pub(crate) fn recheck_selecting(&mut self) {
        if let Some(selecting) = &mut self.selecting {
            selecting.recheck = true;
        }
    }

    /// It found nothing and waits.
    pub(crate) fn set_waiting(&mut self, id: ConsumerId) {
        self.set_idle(id);
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        if let (Some(selection), Some(selecting)) = (consumer.selection, &mut self.selecting) {
            consumer.interest = Interest::Waiting(selecting.line.join(id.slot));
            let selection = selecting.get_mut(selection).expect("its consumer is there");
            selection.waiting += 1;
            selection.wait();
            // What there is others have been called for, or it is excluded.
            selecting.recheck |= selection.matching().len() > 0;
            return;
        }
        let line = match (consumer.is_browser(), consumer.exclusions.is_some()) {
            (true, _) => &mut self.browsing,
            (false, true) => &mut self.choosy,
            (false, false) => &mut self.waiting,
        };
        consumer.interest = Interest::Waiting(line.join(id.slot));
    }

    /// It will come again by itself.
    pub(crate) fn set_expected(&mut self, id: ConsumerId) {
        self.set_idle(id);
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        consumer.interest = Interest::Expected;
        if !consumer.is_browser() && consumer.selection.is_none() {
            self.expected += 1;
        }
    }

    /// A consumer must not get a message again.
    pub(crate) fn exclude(&mut self, id: ConsumerId, position: u64, is_left: impl Fn(u64) -> bool) {
        let Some(consumer) = self.get(id) else { return };
        if consumer.exclusions.is_none() {
            // It stands in another line from now on.
            let waits = matches!(consumer.interest, Interest::Waiting(_));
            if waits {
                self.set_idle(id);
            }
            self.excluding += 1;
            if let Some(consumer) = self.get_mut(id) {
                consumer.exclusions = Some(Box::default());
            }
            if waits {
                self.set_waiting(id);
            }
        }
        let consumer = self.get_mut(id);
        if let Some(exclusions) = consumer.and_then(|consumer| consumer.exclusions.as_mut()) {
            exclusions.add(position);
            exclusions.tidy(is_left);
        }
    }

    /// Messages of a run are available again.
    pub(crate) fn released(&mut self, run: Run, available: &Positions) {
        if let Some(selecting) = &mut self.selecting {
            selecting.released(run, available);
        }
        if self.excluding == 0 {
            return;
        }
        for consumer in self.consumers.values_mut() {
            if let Some(exclusions) = &mut consumer.exclusions {
                exclusions.released(run);
            }
        }
    }

    /// Messages have come in.
    pub(crate) fn note_news(&mut self) {
        if let Some(selecting) = &mut self.selecting {
            selecting.note_news();
        }
    }

    /// What has to be shown to those who wait before anybody is called; if there is nothing, who
    /// is to be called is called.
    pub(crate) fn plan_showing(
        &mut self,
        messages: &Messages,
        stamps: Option<&Arc<Stamps>>,
        wakeups: &mut Wakeups,
    ) -> Option<Box<Showing>> {
        let selecting = self.selecting.as_mut().filter(|selecting| selecting.has_news())?;
        let planned = selecting.plan(messages, stamps);
        if planned.is_none() {
            self.balance(messages, wakeups);
        }
        planned
    }

    /// What a consumer that selects has to be shown, so that it may get as many as it wants.
    pub(crate) fn plan_showing_to(
        &mut self,
        id: ConsumerId,
        want: u64,
        messages: &Messages,
        stamps: Option<&Arc<Stamps>>,
    ) -> Option<Box<Showing>> {
        let selection = self.get(id)?.selection?;
        // Whoever cannot take anything must at least get further.
        let may_take = match self.get(id)?.is_browser() {
            true => self.next_to_show(id, messages).is_some(),
            false => self.may_take(id, messages),
        };
        self.selecting.as_mut()?.plan_for(selection, (want, may_take), messages, stamps)
    }

    /// Keeps what those who select have been shown; if there is more, that has to be planned.
    pub(crate) fn install(
        &mut self,
        showing: Box<Showing>,
        messages: &Messages,
        wakeups: &mut Wakeups,
    ) {
        let Some(selecting) = &mut self.selecting else { return };
        let (consumers, excluding) = (&mut self.consumers, self.excluding);
        selecting.install(showing, messages.available(), |selection, run| {
            if excluding == 0 {
                return;
            }
            for consumer in consumers.values_mut().filter(|it| it.selection == Some(selection)) {
                if let Some(exclusions) = &mut consumer.exclusions {
                    exclusions.released(run);
                }
            }
        });
        self.balance(messages, wakeups);
        self.tidy_selecting();
    }

    /// Keeps nothing of selections when there are none.
    fn tidy_selecting(&mut self) {
        if self.selecting.as_ref().is_some_and(|selecting| selecting.is_over()) {
            self.selecting = None;
        }
    }

    /// There is too much to show: those whom it may concern are called, to look for themselves.
    pub(crate) fn call_unshown(&mut self, messages: &Messages, wakeups: &mut Wakeups) {
        let Some(selecting) = &mut self.selecting else { return };
        selecting.settle_news();
        let in_line: Vec<_> = selecting.line.iter().map(|(place, slot)| (place, *slot)).collect();
        let mut called = HashSet::new();
        for (place, slot) in in_line {
            let selection = self.consumers.at(slot).and_then(|consumer| consumer.selection);
            let Some(selection) = selection.filter(|selection| !called.contains(selection)) else {
                continue;
            };
            let unseen =
                self.selecting.as_mut().is_some_and(|it| it.is_unseen(selection, messages));
            if unseen {
                called.insert(selection);
                self.call_from_line(place, slot, wakeups);
            }
        }
        self.balance(messages, wakeups);
    }

    /// The first messages that a consumer may acquire, not before `from`, of those that are
    /// `eligible`.
    pub(crate) fn next(
        &mut self,
        id: ConsumerId,
        eligible: Eligible<'_>,
        from: u64,
    ) -> Option<Run> {
        let consumer = self.consumers.get(id.slot, id.generation)?;
        let Some(selecting) = &mut self.selecting else {
            return consumer.next(eligible.positions, from);
        };
        let exclusions = consumer.exclusions.as_deref();
        selecting.next(consumer.selection, exclusions, eligible, from)
    }

    /// Whether there is a message that an acquiring consumer may have now.
    pub(crate) fn may_take(&mut self, id: ConsumerId, messages: &Messages) -> bool {
        let owned = messages.groups().and_then(|groups| groups.owned(id.slot));
        self.share(id, messages.free().len()) > 0
            && self.next(id, Eligible::free(messages), 0).is_some()
            || owned.is_some_and(|owned| self.next(id, Eligible::some(owned), 0).is_some())
    }

    /// The messages that a consumer takes next, where urgent ones come first.
    pub(crate) fn choose(&mut self, id: ConsumerId, messages: &Messages) -> Option<Choice> {
        let levels = messages.levels()?;
        levels.choose(|positions| self.next(id, Eligible::some(positions), 0))
    }

    /// The first messages that a browser has not been shown and wants to see, and their level if
    /// there are levels.
    pub(crate) fn next_to_show(
        &mut self,
        id: ConsumerId,
        messages: &Messages,
    ) -> Option<(Option<usize>, Run)> {
        let consumer = self.consumers.get(id.slot, id.generation)?;
        match (consumer.selection, &mut self.selecting) {
            (Some(_), Some(selecting)) => selecting.next_to_show(consumer, messages),
            _ => match messages.levels() {
                None => messages.available().next(consumer.cursor.at()).map(|run| (None, run)),
                Some(levels) => levels.highest_first().find_map(|(level, positions)| {
                    let run = positions.next(consumer.cursor.in_level(level))?;
                    Some((Some(level), run))
                }),
            },
        }
    }

    /// A browser has been shown these.
    pub(crate) fn showed(&mut self, id: ConsumerId, level: Option<usize>, run: Run) {
        let Some(consumer) = self.get_mut(id) else { return };
        consumer.cursor.go_on(level, run.end());
        if let (Some(selection), Some(selecting)) = (consumer.selection, &mut self.selecting)
            && let Some(selection) = selecting.get_mut(selection)
        {
            selection.showed(run, level.is_none());
        }
    }

    /// A consumer has taken these.
    pub(crate) fn took(&mut self, id: ConsumerId, run: Run) {
        let Some(selecting) = &mut self.selecting else { return };
        let Some(consumer) = self.consumers.get(id.slot, id.generation) else { return };
        if !consumer.is_browser() {
            selecting.took(run);
        }
        if let Some(selection) = consumer.selection.and_then(|id| selecting.get_mut(id)) {
            selection.took(run);
        }
    }

    /// A consumer has taken these of one block.
    pub(crate) fn took_bits(&mut self, id: ConsumerId, bits: Bits) {
        if self.selecting.is_some() {
            bits.runs().for_each(|run| self.took(id, run));
        }
    }

    /// True if a consumer takes whatever there is.
    pub(crate) fn takes_any(&self, id: ConsumerId) -> bool {
        let consumer = self.get(id);
        consumer.is_some_and(|it| it.selection.is_none() && it.exclusions.is_none())
    }

    /// Those who were called for messages that somebody else has taken are called for others; if
    /// there are none, they come in vain.
    pub(crate) fn renew_promises(&mut self, messages: &Messages) {
        let Some(selecting) = &mut self.selecting else { return };
        while let Some(slot) = selecting.next_broken() {
            let Some(consumer) = self.consumers.at_mut(slot) else { continue };
            consumer.called_for = selecting.next_for(consumer, messages);
            if let Some(position) = consumer.called_for {
                selecting.promise(position, slot);
            }
        }
    }

    /// A browser could not pass on what it was shown.
    pub(crate) fn show_again(&mut self, id: ConsumerId, positions: &[u64], messages: &Messages) {
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        for position in positions {
            // One that has gone in the meantime has no level, and need not be shown.
            let level = messages.level_of(*position);
            if level.is_some() || messages.levels().is_none() {
                consumer.cursor.go_back(level, *position);
            }
        }
        if let (Some(selection), Some(selecting)) = (consumer.selection, &mut self.selecting)
            && let Some(selection) = selecting.get_mut(selection)
        {
            positions.iter().for_each(|position| selection.give_back(*position));
            selecting.recheck = true;
        }
    }

    /// Whether a consumer that selects has not been shown everything, and nobody else is about to.
    pub(crate) fn is_unshown(&mut self, id: ConsumerId, messages: &Messages) -> bool {
        let selection = self.get(id).and_then(|consumer| consumer.selection);
        match (selection, &mut self.selecting) {
            (Some(selection), Some(selecting)) => selecting.is_unseen(selection, messages),
            _ => false,
        }
    }

    /// Moves on past what a consumer has excluded.
    pub(crate) fn advance_exclusions(&mut self, id: ConsumerId, available: &Positions) {
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        let Some(exclusions) = &mut consumer.exclusions else { return };
        match (consumer.selection, &mut self.selecting) {
            (Some(selection), Some(selecting)) => {
                if let Some(selection) = selecting.get_mut(selection) {
                    exclusions.advance(selection.matching());
                }
            }
            _ => exclusions.advance(available),
        }
    }
}
