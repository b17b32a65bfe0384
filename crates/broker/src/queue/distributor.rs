//! Who gets the next message.

use super::consumer::{Consumer, ConsumerId, ConsumerOptions, Interest};
use crate::line::Line;
use crate::messages::{Positions, Run};
use crate::slab::Slab;
use crate::wake::Wakeups;

/// The consumers of a queue: first come, first served, and fair shares.
///
/// As long as messages are available that a waiting consumer may take, at least one consumer is on
/// its way to the queue; [`Distributor::balance`] is called after every change and sees to it.
#[derive(Debug, Default)]
pub(crate) struct Distributor {
    consumers: Slab<Consumer>,
    /// Those that take whatever there is, in the order in which they began to wait.
    waiting: Line<u32>,
    /// Those that have excluded some messages.
    choosy: Line<u32>,
    /// Browsers that have seen everything.
    browsing: Line<u32>,
    /// How many acquiring consumers are on their way.
    expected: u64,
    acquirers: u32,
    /// How many have excluded messages, waiting or not.
    excluding: u32,
    exclusive: bool,
}

impl Distributor {
    pub(crate) fn len(&self) -> usize {
        self.consumers.len()
    }

    /// True if somebody acquires messages here.
    pub(crate) fn has_acquirer(&self) -> bool {
        self.acquirers > 0
    }

    /// True if the one acquiring consumer wants to stay the only one.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    pub(crate) fn add(&mut self, options: ConsumerOptions) -> ConsumerId {
        let consumer = Consumer::new(options);
        if !consumer.is_browser() {
            self.acquirers += 1;
            self.exclusive |= consumer.options.exclusive;
        }
        let (slot, generation) = self.consumers.insert(consumer);
        ConsumerId { slot, generation }
    }

    pub(crate) fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        self.consumers.get(id.slot, id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: ConsumerId) -> Option<&mut Consumer> {
        self.consumers.get_mut(id.slot, id.generation)
    }

    pub(crate) fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        self.set_idle(id);
        let consumer = self.consumers.remove(id.slot, id.generation)?;
        if !consumer.is_browser() {
            self.acquirers -= 1;
            self.exclusive &= !consumer.options.exclusive;
        }
        if consumer.exclusions.is_some() {
            self.excluding -= 1;
        }
        Some(consumer)
    }

    /// The consumer in a slot.
    pub(crate) fn in_slot(&self, slot: u32) -> Option<ConsumerId> {
        let generation = self.consumers.generation(slot)?;
        Some(ConsumerId { slot, generation })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConsumerId, &Consumer)> {
        let id = |(slot, generation)| ConsumerId { slot, generation };
        self.consumers.iter().map(move |(key, consumer)| (id(key), consumer))
    }

    /// How much of what is available one that is taking now may have: others on their way, and
    /// those that wait, get as much. Who comes without having been called leaves one message to
    /// each of those who were; otherwise the one who asks most often would get everything.
    pub(crate) fn share(&self, id: ConsumerId, available: u64) -> u64 {
        let interest = self.get(id).map(|consumer| consumer.interest);
        let (itself, promised) = match interest {
            Some(Interest::Expected) => (1, 0),
            Some(Interest::Waiting(_)) => (1, self.expected),
            Some(Interest::Idle) | None => (0, self.expected),
        };
        let others = self.expected + self.waiting.len() as u64 + self.choosy.len() as u64 - itself;
        available.div_ceil(others + 1).min(available.saturating_sub(promised))
    }

    /// It cannot take anything now.
    pub(crate) fn set_idle(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
        match std::mem::replace(&mut consumer.interest, Interest::Idle) {
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

    /// It found nothing and waits.
    pub(crate) fn set_waiting(&mut self, id: ConsumerId) {
        self.set_idle(id);
        let Some(consumer) = self.consumers.get_mut(id.slot, id.generation) else { return };
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
        if !consumer.is_browser() {
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
    pub(crate) fn released(&mut self, run: Run) {
        if self.excluding == 0 {
            return;
        }
        for consumer in self.consumers.values_mut() {
            if let Some(exclusions) = &mut consumer.exclusions {
                exclusions.released(run);
            }
        }
    }

    /// Calls as many of those who wait as there are messages that nobody is on his way to take.
    pub(crate) fn balance(&mut self, available: &Positions, wakeups: &mut Wakeups) {
        let mut uncalled = available.len().saturating_sub(self.expected);
        while uncalled > 0 {
            let Some(slot) = self.waiting.serve() else { break };
            self.call(slot, wakeups);
            uncalled -= 1;
        }
        if uncalled > 0 && !self.choosy.is_empty() {
            self.call_choosy(available, uncalled, wakeups);
        }
    }

    /// Calls a consumer that waits, if it may take something of what is its own.
    pub(crate) fn call_owner(&mut self, slot: u32, owned: &Positions, wakeups: &mut Wakeups) {
        let Some(consumer) = self.consumers.at(slot) else { return };
        let Interest::Waiting(place) = consumer.interest else { return };
        if consumer.next(owned, 0).is_none() {
            return;
        }
        let line = match consumer.exclusions.is_some() {
            true => &mut self.choosy,
            false => &mut self.waiting,
        };
        line.leave(place);
        self.call(slot, wakeups);
    }

    /// Calls all browsers that wait.
    pub(crate) fn call_browsers(&mut self, wakeups: &mut Wakeups) {
        while let Some(slot) = self.browsing.serve() {
            self.call(slot, wakeups);
        }
    }

    /// Calls everybody, to be told that the queue is gone.
    pub(crate) fn call_all(&mut self, wakeups: &mut Wakeups) {
        for consumer in self.consumers.values() {
            wakeups.push(consumer.options.waker.clone());
        }
    }

    fn call_choosy(&mut self, available: &Positions, most: u64, wakeups: &mut Wakeups) {
        let may_take = |slot: u32| {
            let consumer = self.consumers.at(slot);
            consumer.is_some_and(|consumer| consumer.next(available, 0).is_some())
        };
        let line = self.choosy.iter().map(|(place, slot)| (place, *slot));
        let called: Vec<_> = line.filter(|(_, slot)| may_take(*slot)).take(most as usize).collect();
        for (place, slot) in called {
            self.choosy.leave(place);
            self.call(slot, wakeups);
        }
    }

    /// Calls one that has just left a line.
    fn call(&mut self, slot: u32, wakeups: &mut Wakeups) {
        if let Some(consumer) = self.consumers.at_mut(slot) {
            consumer.interest = Interest::Expected;
            wakeups.push(consumer.options.waker.clone());
            if !consumer.is_browser() {
                self.expected += 1;
            }
        }
    }
}
