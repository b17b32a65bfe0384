//! Message groups: messages of one group are with one consumer at a time, in order.
//!
//! A group is owned from the first of its messages that is acquired until its owner holds none of
//! them. As long as it is owned only the owner gets its messages; of a free group anybody may take
//! the oldest, and only that.
//!
//! ```text
//!            a consumer acquires the oldest message
//!      free ───────────────────────────────────────▶ owned
//!           ◀───────────────────────────────────────
//!            the owner settles the last that it holds
//! ```
//!
//! So of each group no more than one message can be taken next: its oldest available one. Those of
//! the free groups form one ordered set, and those of the groups of each consumer another; who
//! takes, takes the first of both. Every change moves at most one position from one set to another,
//! so nothing here depends on how many messages, groups or consumers there are.

mod directory;
mod group;
mod index;
mod link;
mod linking;
mod taking;

pub(crate) use directory::Directory;
pub(crate) use link::Link;
pub(crate) use taking::Among;

use super::entries::{BLOCK, Entries};
use super::entry::{MOVER, NOBODY};
use super::name::Name;
use super::{Bits, Positions, Run, indexes};
use crate::budget::{Budget, Reservation};
use crate::settings::Naming;
use link::UNGROUPED;
use linking::Linking;
use std::sync::Arc;

/// The groups of a queue.
#[derive(Debug)]
pub(crate) struct Groups {
    naming: Arc<Naming>,
    directory: Directory,
    /// What anybody may take: the oldest message of each free group, and those in no group.
    free: Positions,
    /// What each consumer may take besides, by slot: the oldest message of each of its groups.
    owned: Vec<Positions>,
    /// Consumers that may take something they could not before, perhaps more than once.
    called: Vec<u32>,
    /// How many consumers have joined so far.
    joined: u32,
    /// How many had joined when groups were shared out again: those that were had before get no
    /// further messages until they are free.
    shared_out: u32,
    /// Groups that have gone from one consumer to another, if somebody wants to hear of it.
    handovers: Vec<Handover>,
    notes_handovers: bool,
    /// How many messages have links.
    links: u64,
    /// What is noted while a batch is enqueued.
    linking: Linking,
    /// Groups of which a consumer is taking messages: the oldest of each is in no set meanwhile.
    walked: Vec<u32>,
    /// Where messages stood that have just been taken; kept for its memory alone.
    gone: Vec<Bits>,
    reservation: Reservation,
}

/// One group of a queue, for those who want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupState {
    pub(crate) name: Vec<u8>,
    pub(crate) messages: u64,
    pub(crate) held: u64,
    /// The slot of the owner.
    pub(crate) owner: Option<u32>,
}

/// A group has gone from a consumer to another.
#[derive(Clone, Debug)]
pub(crate) struct Handover {
    /// The slot of the one that had it.
    pub(crate) former: u32,
    /// How many had joined when that one got it.
    pub(crate) age: u32,
    pub(crate) name: Name,
}

/// From which set the oldest message of a group can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Free(u64),
    Owned(u32, u64),
    /// Its group is to be shared out again.
    Nowhere,
}

impl Groups {
    pub(crate) fn new(naming: Arc<Naming>, budget: &Arc<Budget>) -> Groups {
        Groups {
            naming,
            directory: Directory::default(),
            free: Positions::default(),
            owned: Vec::new(),
            called: Vec::new(),
            joined: 0,
            shared_out: 0,
            handovers: Vec::new(),
            notes_handovers: false,
            links: 0,
            linking: Linking::default(),
            walked: Vec::new(),
            gone: Vec::new(),
            reservation: budget.charge(0),
        }
    }

    pub(crate) fn naming(&self) -> &Arc<Naming> {
        &self.naming
    }

    /// What anybody may take.
    pub(crate) fn free(&self) -> &Positions {
        &self.free
    }

    /// What a consumer may take that nobody else may.
    pub(crate) fn owned(&self, slot: u32) -> Option<&Positions> {
        self.owned.get(slot as usize)
    }

    /// A consumer that may take something it could not before; each may be named several times.
    pub(crate) fn next_called(&mut self) -> Option<u32> {
        self.called.pop()
    }

    /// An empty list, which has had others in it.
    pub(crate) fn lend_list(&mut self) -> Vec<Bits> {
        std::mem::take(&mut self.gone)
    }

    pub(crate) fn return_list(&mut self, mut list: Vec<Bits>) {
        list.clear();
        self.gone = list;
    }

    /// A consumer joins; how many have, with it. Numbers wrap around.
    pub(crate) fn join(&mut self) -> u32 {
        self.joined = self.joined.wrapping_add(1);
        self.joined
    }

    /// Whether whoever was the `joined`th to join was there when `count` had.
    #[inline]
    pub(crate) fn had_joined(joined: u32, count: u32) -> bool {
        count.wrapping_sub(joined).cast_signed() >= 0
    }

    /// All groups are to be shared out again: none gets further messages before it is free.
    pub(crate) fn share_out(&mut self) {
        self.shared_out = self.joined;
        self.owned.clear();
    }

    /// Whether it is noted from whom to whom groups go.
    pub(crate) fn note_handovers(&mut self, are_noted: bool) {
        self.notes_handovers = are_noted;
    }

    pub(crate) fn has_handovers(&self) -> bool {
        !self.handovers.is_empty()
    }

    /// What has been noted since the last time.
    pub(crate) fn take_handovers(&mut self) -> Vec<Handover> {
        std::mem::take(&mut self.handovers)
    }

    /// The groups that there are, up to so many.
    pub(crate) fn states(&self, most: usize) -> impl Iterator<Item = GroupState> {
        self.directory.iter().take(most).map(|group| GroupState {
            name: group.name.as_bytes().to_vec(),
            messages: group.messages.into(),
            held: group.held.into(),
            owner: group.owner(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.directory.len()
    }

    /// An available message is out of everybody's reach from now on.
    pub(crate) fn withdraw(&mut self, entries: &mut Entries, position: u64) {
        let number = entries.link(position).group;
        if number == UNGROUPED {
            return self.free.remove_one(position);
        }
        let before = self.seat(number);
        self.directory.group_mut(number).remove(entries, position);
        let after = self.seat(number);
        self.reseat(before, after);
    }

    /// A consumer gives a message back, or it has been withdrawn in vain.
    pub(crate) fn release(&mut self, entries: &mut Entries, position: u64, holder: u32) {
        let number = entries.link_mut(position).group;
        if number == UNGROUPED {
            return self.free.insert_one(position);
        }
        let before = self.seat(number);
        let group = self.directory.group_mut(number);
        group.insert(entries, position);
        if holder != MOVER {
            group.give_up(1);
        }
        let after = self.seat(number);
        self.reseat(before, after);
    }

    /// Messages of one block that `holder` had have left the queue.
    pub(crate) fn dequeued(&mut self, entries: &mut Entries, block: u64, mask: u128, holder: u32) {
        self.links -= u64::from(mask.count_ones());
        match holder {
            NOBODY => {
                for position in indexes(mask).map(|index| block * BLOCK + index) {
                    self.withdraw(entries, position);
                    self.withdrawn(entries, position);
                }
            }
            MOVER => {
                for index in indexes(mask) {
                    self.withdrawn(entries, block * BLOCK + index);
                }
            }
            _ => self.settled(entries, block, mask),
        }
        self.charge();
    }

    /// Bytes of memory that groups take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.links * size_of::<Link>() as u64 + self.directory.memory_bytes()
    }

    /// Gives up what is kept for the next messages.
    pub(crate) fn trim(&mut self) {
        self.directory.trim();
        self.owned = Vec::new();
        self.called = Vec::new();
        self.linking = Linking::default();
        self.walked = Vec::new();
        self.gone = Vec::new();
        self.charge();
    }

    /// Messages that were held are gone.
    fn settled(&mut self, entries: &Entries, block: u64, mask: u128) {
        let Some(block) = entries.block(block) else { return };
        for index in indexes(mask) {
            let number = block.link(index as usize).group;
            if number == UNGROUPED {
                continue;
            }
            let group = self.directory.group_mut(number);
            group.messages -= 1;
            if group.held > 1 {
                group.held -= 1;
            } else {
                self.set_free(number);
            }
        }
    }

    /// The owner of a group holds none of its messages any more.
    fn set_free(&mut self, number: u32) {
        let before = self.seat(number);
        let group = self.directory.group_mut(number);
        group.give_up(group.held);
        if group.messages == 0 {
            self.directory.leave(number);
            return;
        }
        let after = self.seat(number);
        self.reseat(before, after);
    }

    /// A message that was out of everybody's reach is gone.
    fn withdrawn(&mut self, entries: &Entries, position: u64) {
        let number = entries.link(position).group;
        if number == UNGROUPED {
            return;
        }
        let group = self.directory.group_mut(number);
        group.messages -= 1;
        if group.messages == 0 {
            self.directory.leave(number);
        }
    }

    /// Where the oldest message of a group is to be found; `None` if none is available.
    #[inline]
    fn seat(&self, number: u32) -> Option<Seat> {
        self.directory.group(number).seat(self.shared_out)
    }

    /// Moves the oldest message of a group.
    #[inline]
    fn reseat(&mut self, before: Option<Seat>, after: Option<Seat>) {
        if before == after {
            return;
        }
        // In this order, so that what the set needs for one position need not be made again.
        match after {
            Some(Seat::Free(position)) => self.free.insert_one(position),
            Some(Seat::Owned(slot, position)) => {
                self.owned_mut(slot).insert_one(position);
                if self.called.last() != Some(&slot) {
                    self.called.push(slot);
                }
            }
            Some(Seat::Nowhere) | None => {}
        }
        match before {
            Some(Seat::Free(position)) => self.free.remove_one(position),
            Some(Seat::Owned(slot, position)) => {
                self.owned_mut(slot).remove_one(position);
            }
            Some(Seat::Nowhere) | None => {}
        }
    }

    fn owned_mut(&mut self, slot: u32) -> &mut Positions {
        let slot = slot as usize;
        if slot >= self.owned.len() {
            self.owned.resize_with(slot + 1, Positions::default);
        }
        &mut self.owned[slot]
    }

    /// Pays for what groups take.
    fn charge(&mut self) {
        self.reservation.follow(self.memory_bytes());
    }
}
