//! Finding groups by name.

use super::group::Group;
use super::index::Index;
use super::link::UNGROUPED;
use crate::message::{Batch, MessageName, Named};
use crate::messages::name::Name;
use std::collections::VecDeque;

/// The groups that there are, by number and by name.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    groups: Vec<Option<Group>>,
    /// How each of them is found, and whether it goes.
    listings: Vec<Listing>,
    free: Vec<u32>,
    /// Groups that had no messages when they came here, the oldest first. A few are remembered:
    /// where there is no backlog the next message of a group would only make it again.
    fading: VecDeque<u32>,
    index: Index,
    /// The groups of the names of the batch that is being enqueued, as far as they are known.
    known: Vec<u32>,
    /// Bytes of the names that take memory of their own.
    name_bytes: u64,
}

/// What has to be known of a group only when it comes and when it goes.
#[derive(Clone, Copy, Debug)]
struct Listing {
    hash: u32,
    /// The last message of the group has come: its name means another group now, or none.
    is_closed: bool,
    /// The group has had no messages, and is remembered for a while.
    is_fading: bool,
}

impl Directory {
    /// How many groups have messages.
    pub(crate) fn len(&self) -> usize {
        let faded = self.fading.iter().filter(|number| self.group(**number).messages == 0);
        self.remembered() - faded.count()
    }

    fn remembered(&self) -> usize {
        self.groups.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn group(&self, number: u32) -> &Group {
        self.groups[number as usize].as_ref().expect("a group that a message names is there")
    }

    #[inline]
    pub(crate) fn group_mut(&mut self, number: u32) -> &mut Group {
        self.groups[number as usize].as_mut().expect("a group that a message names is there")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter_map(Option::as_ref).filter(|group| group.messages > 0)
    }

    /// The messages of a batch are about to be enqueued.
    pub(crate) fn expect(&mut self, batch: &Batch) {
        self.known.clear();
        self.known.resize(batch.name_count(), UNGROUPED);
        let numbers = 0..self.known.len() as u32;
        self.index.warm(numbers.filter_map(|number| Some(batch.name(number)?.hash)));
    }

    /// The number of the group that a message of the expected batch belongs to, if it does to any.
    #[inline]
    pub(crate) fn number(&mut self, batch: &Batch, named: Named) -> Option<u32> {
        match self.known.get(named.number as usize) {
            Some(number) if *number != UNGROUPED => Some(*number),
            Some(_) => {
                let number = self.find(&batch.name(named.number)?);
                self.known[named.number as usize] = number;
                Some(number)
            }
            None => None,
        }
    }

    /// The number of the group of this name; it comes into being if it is not there.
    pub(crate) fn find(&mut self, wanted: &MessageName<'_>) -> u32 {
        let is_it = |number: u32| self.group(number).name.as_bytes() == wanted.name;
        self.index.find(wanted.hash, is_it).unwrap_or_else(|| self.add(wanted))
    }

    /// The name that a message of the expected batch has means nothing any more; the group lives on
    /// until its messages have gone.
    pub(crate) fn close(&mut self, number: u32, named: Named) {
        self.unlist(number);
        if let Some(known) = self.known.get_mut(named.number as usize) {
            *known = UNGROUPED;
        }
    }

    /// A group has no messages any more: it is forgotten, now or soon.
    pub(crate) fn leave(&mut self, number: u32) {
        let listing = &mut self.listings[number as usize];
        if listing.is_closed && !listing.is_fading {
            return self.forget(number);
        }
        if !std::mem::replace(&mut listing.is_fading, true) {
            self.fading.push_back(number);
        }
        if self.fading.len() > KEPT {
            let oldest = self.fading.iter().take(AT_ONCE);
            self.index.warm(oldest.map(|number| self.listings[*number as usize].hash));
            (0..AT_ONCE).for_each(|_| self.forget_oldest());
        }
    }

    /// Forgets the group that has been fading for longest, unless it has messages again.
    fn forget_oldest(&mut self) {
        let Some(number) = self.fading.pop_front() else { return };
        self.listings[number as usize].is_fading = false;
        if self.group(number).messages == 0 {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u32) {
        self.unlist(number);
        if let Some(group) = self.groups[number as usize].take() {
            self.name_bytes -= group.name.heap_bytes();
        }
        self.free.push(number);
        if self.free.len() == self.groups.len() {
            self.groups.clear();
            self.listings.clear();
            self.free.clear();
            if self.groups.capacity() > KEPT {
                (self.groups, self.listings, self.free) = (Vec::new(), Vec::new(), Vec::new());
            }
        }
    }

    /// Gives up what is kept although it is empty.
    pub(crate) fn trim(&mut self) {
        while !self.fading.is_empty() {
            self.forget_oldest();
        }
        if self.groups.is_empty() {
            *self = Directory::default();
        }
    }

    /// Bytes of memory that the groups take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.groups.len() as u64 * GROUP_COST + self.index.memory_bytes() + self.name_bytes
    }

    fn add(&mut self, wanted: &MessageName<'_>) -> u32 {
        let group = Group::new(Name::new(wanted.name));
        self.name_bytes += group.name.heap_bytes();
        let number = self.free.pop().unwrap_or(self.groups.len() as u32);
        self.index.insert(wanted.hash, number);
        let listing = Listing { hash: wanted.hash, is_closed: false, is_fading: false };
        match self.groups.get_mut(number as usize) {
            Some(place) => {
                *place = Some(group);
                self.listings[number as usize] = listing;
            }
            None => {
                self.groups.push(Some(group));
                self.listings.push(listing);
            }
        }
        number
    }

    /// Takes a group out of those that are found by name.
    fn unlist(&mut self, number: u32) {
        let listing = &mut self.listings[number as usize];
        if !std::mem::replace(&mut listing.is_closed, true) {
            self.index.remove(listing.hash, number);
        }
    }
}

/// Tables for so few groups are kept when they are empty.
const KEPT: usize = 128;
/// So many groups are forgotten together.
const AT_ONCE: usize = 32;
/// What a group takes: itself, and its lines in the tables.
const GROUP_COST: u64 = (size_of::<Option<Group>>() + size_of::<Listing>()) as u64 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &'static str, hash: u32) -> MessageName<'static> {
        MessageName { name: name.as_bytes(), hash }
    }

    #[test]
    fn groups_whose_names_have_the_same_hash_are_different_groups() {
        let mut directory = Directory::default();
        let (a, b, c) = (named("a", 1), named("b", 1), named("c", 1));
        let numbers = [a, b, c].map(|name| directory.find(&name));
        assert_eq!(numbers, [0, 1, 2]);
        directory.forget(1);
        assert_eq!([a, c].map(|name| directory.find(&name)), [0, 2]);
        directory.forget(2);
        assert_eq!((directory.find(&a), directory.remembered()), (0, 1));
    }

    #[test]
    fn the_name_of_a_closed_group_means_another_one() {
        let mut directory = Directory::default();
        let name = named("a", 1);
        let closed = directory.find(&name);
        directory.close(closed, Named { number: 0, is_last: true });
        let next = directory.find(&name);
        assert_ne!(closed, next);
        directory.forget(closed);
        assert_eq!(directory.find(&name), next);
    }

    #[test]
    fn groups_that_are_gone_take_no_memory() {
        let mut directory = Directory::default();
        for hash in 0..10_000 {
            directory.find(&named("a name of more than twenty-two bytes", hash));
        }
        assert!(directory.memory_bytes() > 1_000_000);
        (0..10_000).for_each(|number| directory.leave(number));
        assert_eq!(directory.len(), 0);
        assert!(directory.remembered() <= KEPT);
        directory.trim();
        assert_eq!((directory.remembered(), directory.memory_bytes()), (0, 0));
        assert_eq!((directory.listings.capacity(), directory.groups.capacity()), (0, 0));
    }
}
