//! Calling those who wait, when there is something for them.

use super::consumer::Interest;
use super::distributor::Distributor;
use crate::line::Place;
use crate::messages::{Messages, Positions};
use crate::wake::Wakeups;

impl Distributor {
    /// Calls as many of those who wait as there are messages that nobody is on his way to take.
    pub(crate) fn balance(&mut self, messages: &Messages, wakeups: &mut Wakeups) {
        let free = messages.free();
        let Some(selecting) = &mut self.selecting else { return self.call_others(free, wakeups) };
        // Those who select have to be shown what is new first: the visit ends with that.
        if selecting.has_news() {
            return;
        }
        // A group may have become free, or have another message in front.
        selecting.recheck |= messages.groups().is_some();
        let others_first = selecting.stands_back;
        let before = wakeups.len();
        if others_first {
            self.call_others(free, wakeups);
        } else {
            self.call_selecting(messages, wakeups);
        }
        let is_first_called = wakeups.len() > before;
        if others_first {
            self.call_selecting(messages, wakeups);
        } else {
            self.call_others(free, wakeups);
        }
        // If there was not enough for all, the others come first next time.
        if let Some(selecting) = self.selecting.as_mut().filter(|_| is_first_called) {
            let is_left = match others_first {
                true => selecting.recheck,
                false => !self.waiting.is_empty() || !self.choosy.is_empty(),
            };
            selecting.stands_back ^= is_left;
        }
    }

    /// How many available messages nobody is on his way to take.
    fn uncalled(&self, available: &Positions) -> u64 {
        let called = self.selecting.as_ref().map_or(0, |selecting| selecting.promised().len());
        available.len().saturating_sub(u64::from(self.expected) + called)
    }

    /// Calls those who do not select.
    fn call_others(&mut self, available: &Positions, wakeups: &mut Wakeups) {
        let mut uncalled = self.uncalled(available);
        while uncalled > 0 {
            let Some(slot) = self.waiting.serve() else { break };
            self.call(slot, wakeups);
            uncalled -= 1;
        }
        if uncalled > 0 && !self.choosy.is_empty() {
            self.call_choosy(available, uncalled, wakeups);
        }
    }

    /// Calls those who select and for whom there is something, each for a message of its own.
    fn call_selecting(&mut self, messages: &Messages, wakeups: &mut Wakeups) {
        let mut uncalled = self.uncalled(messages.free());
        let Some(selecting) = &mut self.selecting else { return };
        if !std::mem::take(&mut selecting.recheck) {
            return;
        }
        let mut called = Vec::new();
        let in_line: Vec<_> = selecting.line.iter().map(|(place, slot)| (place, *slot)).collect();
        for (place, slot) in in_line {
            let Some(consumer) = self.consumers.at_mut(slot) else { continue };
            if consumer.is_browser() {
                if selecting.next_to_show(consumer, messages).is_some() {
                    called.push((place, slot));
                }
                continue;
            }
            if selecting.has_own(consumer, slot, messages) {
                called.push((place, slot));
                continue;
            }
            if uncalled == 0 {
                // They are looked at again as soon as somebody has come.
                selecting.recheck = true;
                continue;
            }
            let Some(position) = selecting.next_for(consumer, messages) else { continue };
            selecting.promise(position, slot);
            consumer.called_for = Some(position);
            uncalled -= 1;
            called.push((place, slot));
        }
        for (place, slot) in called {
            self.call_from_line(place, slot, wakeups);
        }
    }

    /// Calls one that selects.
    pub(super) fn call_from_line(&mut self, place: Place, slot: u32, wakeups: &mut Wakeups) {
        let Some(consumer) = self.consumers.at(slot) else { return };
        if let (Some(selection), Some(selecting)) = (consumer.selection, &mut self.selecting) {
            selecting.line.leave(place);
            selecting.get_mut(selection).expect("its consumer is there").waiting -= 1;
        }
        self.call(slot, wakeups);
    }

    /// Calls a consumer that waits, if it may take something of what is its own.
    pub(crate) fn call_owner(&mut self, slot: u32, owned: &Positions, wakeups: &mut Wakeups) {
        let Some(consumer) = self.consumers.at(slot) else { return };
        let Interest::Waiting(place) = consumer.interest else { return };
        if consumer.selection.is_some() {
            // It is called when it has been shown what there is.
            return self.recheck_selecting();
        }
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
        for consumer in self.consumers.values().filter(|consumer| !consumer.lingers) {
            wakeups.push(consumer.options.waker.clone());
        }
    }

    fn call_choosy(&mut self, available: &Positions, most: u64, wakeups: &mut Wakeups) {
        let (consumers, selecting) = (&self.consumers, &mut self.selecting);
        let mut may_take = |slot: u32| {
            let Some(consumer) = consumers.at(slot) else { return false };
            match selecting {
                Some(selecting) => selecting.may_take(consumer, available),
                None => consumer.next(available, 0).is_some(),
            }
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
            if !consumer.is_browser() && consumer.selection.is_none() {
                self.expected += 1;
            }
        }
    }
}
