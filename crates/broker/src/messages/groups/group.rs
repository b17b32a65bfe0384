//! One group of messages.

use super::link::{STRAY, UNGROUPED};
use crate::messages::entries::Entries;
use crate::messages::entry::NOBODY;
use crate::messages::name::Name;
use std::collections::BTreeSet;

/// The messages of one group that are available, in order, and who owns it.
///
/// They stand in a chain, in which one that goes from the middle is unlinked in constant time. One
/// that comes back goes to its end of the chain if it belongs there; otherwise it is a stray, in
/// an ordered set that is there only as long as there are strays. The oldest is the first of
/// either.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: Name,
    pub(crate) hash: u64,
    /// The next group whose name has the same hash, or `UNGROUPED`.
    pub(crate) same_hash: u32,
    /// The slot of the consumer that holds messages of it, or `NOBODY`.
    pub(crate) owner: u32,
    /// When it was shared out.
    pub(crate) round: u32,
    /// Its last message has come: its name means another group now, or none.
    pub(crate) is_closed: bool,
    /// It has had no messages, and is remembered for a while.
    pub(crate) is_fading: bool,
    /// Messages, acquired ones included.
    pub(crate) messages: u32,
    /// Messages that the owner holds.
    pub(crate) held: u32,
    /// The ends of the chain; `first` is `NONE` if it is empty.
    first: u64,
    last: u64,
    strays: BTreeSet<u64>,
}

impl Group {
    pub(crate) fn new(name: Name, hash: u64) -> Group {
        Group {
            name,
            hash,
            same_hash: UNGROUPED,
            owner: NOBODY,
            round: 0,
            is_closed: false,
            is_fading: false,
            messages: 0,
            held: 0,
            first: NONE,
            last: NONE,
            strays: BTreeSet::new(),
        }
    }

    /// The oldest message that is available.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u64> {
        let stray = self.strays.first().copied();
        Some(stray.map_or(self.first, |stray| stray.min(self.first))).filter(|p| *p != NONE)
    }

    /// Adds a message that is available now, in its place.
    pub(crate) fn insert(&mut self, entries: &mut Entries, position: u64) {
        if self.first == NONE {
            (self.first, self.last) = (position, position);
        } else if position > self.last
            && let Some(distance) = distance(self.last, position)
        {
            entries.link_mut(self.last).next = distance;
            entries.link_mut(position).previous = distance;
            self.last = position;
            return;
        } else if position < self.first
            && let Some(distance) = distance(position, self.first)
        {
            entries.link_mut(self.first).previous = distance;
            entries.link_mut(position).next = distance;
            self.first = position;
        } else {
            self.strays.insert(position);
            entries.link_mut(position).previous = STRAY;
            return;
        }
        entries.link_mut(position).previous = 0;
    }

    /// The message of a group that has one alone.
    pub(crate) fn only(&self) -> Option<u64> {
        Some(self.first).filter(|position| *position != NONE)
    }

    /// The group has this message alone from now on; the one that it had before.
    pub(crate) fn keep_only(&mut self, position: u64) -> Option<u64> {
        let before = self.only();
        (self.first, self.last, self.messages) = (position, position, 1);
        before
    }

    /// A message is gone; true if the group had it and has none now.
    pub(crate) fn let_go(&mut self, position: u64) -> bool {
        let had = self.first == position;
        if had {
            (self.first, self.last, self.messages) = (NONE, NONE, 0);
        }
        had
    }

    /// Takes the oldest out, which is at `position` and whose next in the chain is `next` away.
    #[inline]
    pub(crate) fn remove_oldest(&mut self, position: u64, next: u32) {
        if position == self.first {
            self.first = if position == self.last { NONE } else { position + u64::from(next) };
        } else {
            self.strays.remove(&position);
        }
    }

    /// Takes any available message out.
    pub(crate) fn remove(&mut self, entries: &mut Entries, position: u64) {
        let link = *entries.link_mut(position);
        if link.previous == STRAY {
            self.strays.remove(&position);
        } else if position == self.first {
            self.remove_oldest(position, link.next);
        } else {
            let previous = position - u64::from(link.previous);
            if position == self.last {
                self.last = previous;
                return;
            }
            let next = position + u64::from(link.next);
            match distance(previous, next) {
                Some(distance) => {
                    entries.link_mut(previous).next = distance;
                    entries.link_mut(next).previous = distance;
                }
                None => self.break_chain(entries, previous, next),
            }
        }
    }

    /// Makes strays of what follows after a gap too wide to link across.
    #[cold]
    fn break_chain(&mut self, entries: &mut Entries, previous: u64, next: u64) {
        let (mut at, end) = (next, self.last);
        loop {
            let link = entries.link_mut(at);
            link.previous = STRAY;
            self.strays.insert(at);
            if at == end {
                break;
            }
            at += u64::from(link.next);
        }
        self.last = previous;
    }
}

/// How far apart two positions are, if it can be said in a link.
fn distance(from: u64, to: u64) -> Option<u32> {
    u32::try_from(to - from).ok().filter(|distance| *distance != STRAY)
}

/// No position.
const NONE: u64 = u64::MAX;
