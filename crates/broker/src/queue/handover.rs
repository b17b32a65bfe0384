//! Consumers hear of groups that they had and others have now.

use super::{ConsumerId, Queue, SharedQueue};
use crate::messages::{Groups, Handover};

/// Groups that have gone from a consumer to others since it heard of such for the last time.
///
/// A group goes to another consumer only when the one that had it holds none of it, so whoever hears
/// of it has settled all of the group's messages that it has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostGroups {
    names: Vec<String>,
    bytes: usize,
    are_many: bool,
}

impl LostGroups {
    /// Their names, of which what is no text is replaced; `None` if they are too many to name: it may
    /// be any of which the consumer holds no message.
    pub fn names(&self) -> Option<&[String]> {
        (!self.are_many).then_some(&self.names)
    }

    fn add(&mut self, name: &[u8]) {
        self.bytes += name.len();
        if self.are_many || self.names.len() >= MOST_NAMES || self.bytes > MOST_BYTES {
            *self = LostGroups { are_many: true, ..LostGroups::default() };
            return;
        }
        let name = String::from_utf8_lossy(name);
        if !self.names.iter().any(|known| **known == *name) {
            self.names.push(name.into_owned());
        }
    }
}

impl Queue {
    /// Groups note to whom they go, if somebody wants to hear of it.
    pub(super) fn note_handovers(&mut self) {
        let Some(groups) = self.messages.groups_mut() else { return };
        groups.note_handovers(self.distributor.iter().any(|(_, it)| it.options.wants_lost_groups));
    }

    /// Calls those who have lost groups, to hear of it.
    pub(super) fn tell_handovers(&mut self) {
        let Some(groups) = self.messages.groups_mut().filter(|it| it.has_handovers()) else {
            return;
        };
        for Handover { former, age, name } in groups.take_handovers() {
            let consumer = self.distributor.consumers.at_mut(former);
            // Whoever stands in the slot now may have joined since.
            let Some(consumer) = consumer.filter(|it| Groups::had_joined(it.joined, age)) else {
                continue;
            };
            if !consumer.options.wants_lost_groups || consumer.lingers {
                continue;
            }
            if consumer.lost_groups.is_none() {
                self.wakeups.push(consumer.options.waker.clone());
            }
            consumer.lost_groups.get_or_insert_default().add(name.as_bytes());
        }
    }

    /// What a consumer is to hear before it gets anything more.
    pub(crate) fn take_lost_groups(&mut self, id: ConsumerId) -> Option<Box<LostGroups>> {
        self.distributor.get_mut(id)?.lost_groups.take()
    }
}

impl SharedQueue {
    /// Groups that a consumer has lost, for one that has asked to hear of them and cannot take
    /// anything now; whoever takes hears of them as it takes.
    pub fn take_lost_groups(&self, id: ConsumerId) -> Option<Box<LostGroups>> {
        self.visit_and_wake(|queue| queue.take_lost_groups(id))
    }
}

/// More groups than this are not named.
const MOST_NAMES: usize = 64;
/// Nor are they if their names are longer than this together.
const MOST_BYTES: usize = 4 * 1024;
