//! One group of messages.

use super::link::STRAY;
use super::{Groups, Seat};
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
///
/// A group fills one cache line: where there are very many, each message of one finds it cold.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    pub(crate) name: Name,
    /// The slot of the consumer that holds messages of it; with `FORMER`, of the last one that did;
    /// or `NOBODY`.
    owner: u32,
    /// How many consumers had joined when its owner got it.
    age: u32,
    /// Messages, acquired ones included.
    pub(crate) messages: u32,
    /// Messages that the owner holds.
    pub(crate) held: u32,
    /// The ends of the chain; `first` is `NONE` if it is empty.
    first: u64,
    last: u64,
    strays: Option<Box<Strays>>,
}

/// What is in front of a new message of a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behind {
    /// It is the only one that is available.
    Nothing,
    /// Only such as are not in the chain.
    Strays,
    /// The last of the chain, and how far away that is.
    Last(u64, u32),
    /// The last of the chain is so far away that this one is not in it.
    TooFar,
}

/// Messages that do not stand in the chain.
#[derive(Debug, Default)]
struct Strays(BTreeSet<u64>);

impl Group {
    pub(crate) fn new(name: Name) -> Group {
        Group {
            name,
            owner: NOBODY,
            age: 0,
            messages: 0,
            held: 0,
            first: NONE,
            last: NONE,
            strays: None,
        }
    }

    /// The oldest message that is available.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u64> {
        let stray = self.strays.as_ref().and_then(|strays| strays.0.first().copied());
        Some(stray.map_or(self.first, |stray| stray.min(self.first))).filter(|p| *p != NONE)
    }

    /// The slot of the consumer that holds messages of it.
    #[inline]
    pub(crate) fn owner(&self) -> Option<u32> {
        // `NOBODY` has this bit too.
        (self.owner & FORMER == 0).then_some(self.owner)
    }

    /// A consumer holds one message more, and is the owner if it was not; if another one had the
    /// group before, its slot, and how many had joined when it got the group.
    #[inline]
    pub(super) fn hold(&mut self, slot: u32, joined: u32) -> Option<(u32, u32)> {
        self.held += 1;
        if self.owner == slot {
            return None;
        }
        debug_assert_eq!(self.owner(), None, "the group is another consumer's");
        let former = Some(self.owner).filter(|owner| *owner != NOBODY && *owner != slot | FORMER);
        let before = former.map(|owner| (owner & !FORMER, self.age));
        (self.owner, self.age) = (slot, joined);
        before
    }

    /// Whether its owner got it when so many consumers, or more, had joined.
    #[inline]
    pub(super) fn is_shared_out_since(&self, shared_out: u32) -> bool {
        Groups::had_joined(shared_out, self.age)
    }

    /// The owner holds so many messages less.
    pub(super) fn give_up(&mut self, count: u32) {
        self.held -= count;
        if self.held == 0 {
            self.owner |= FORMER;
        }
    }

    /// Where the oldest message is to be found, if groups have been shared out again when so many
    /// had joined; `None` if none is available.
    #[inline]
    pub(super) fn seat(&self, shared_out: u32) -> Option<Seat> {
        let oldest = self.oldest()?;
        Some(match self.owner() {
            None => Seat::Free(oldest),
            Some(owner) if self.is_shared_out_since(shared_out) => Seat::Owned(owner, oldest),
            Some(_) => Seat::Nowhere,
        })
    }

    /// Adds a new message, which is behind all others; says which one is in front of it in the
    /// chain, and how far away.
    #[inline]
    pub(super) fn append(&mut self, position: u64) -> Behind {
        self.messages += 1;
        if self.first == NONE {
            (self.first, self.last) = (position, position);
            return if self.strays.is_none() { Behind::Nothing } else { Behind::Strays };
        }
        match distance(self.last, position) {
            Some(distance) => Behind::Last(std::mem::replace(&mut self.last, position), distance),
            None => {
                self.strays.get_or_insert_default().0.insert(position);
                Behind::TooFar
            }
        }
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
            self.strays.get_or_insert_default().0.insert(position);
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
            self.remove_stray(position);
        }
    }

    fn remove_stray(&mut self, position: u64) {
        if let Some(strays) = &mut self.strays {
            strays.0.remove(&position);
            if strays.0.is_empty() {
                self.strays = None;
            }
        }
    }

    /// Takes any available message out.
    pub(crate) fn remove(&mut self, entries: &mut Entries, position: u64) {
        let link = *entries.link_mut(position);
        if link.previous == STRAY {
            self.remove_stray(position);
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
        let strays = self.strays.get_or_insert_default();
        loop {
            let link = entries.link_mut(at);
            link.previous = STRAY;
            strays.0.insert(at);
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

/// The bit that says that an owner is none any more; slots are smaller.
const FORMER: u32 = 1 << 31;
/// No position.
const NONE: u64 = u64::MAX;

const _: () = assert!(size_of::<Option<Group>>() == 64);
