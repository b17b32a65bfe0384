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
mod link;

pub(crate) use directory::Directory;
pub(crate) use link::Link;

use super::entries::{BLOCK, Entries};
use super::entry::{MOVER, NOBODY};
use super::name::Name;
use super::{Positions, Run, indexes};
use crate::budget::{Budget, Reservation};
use crate::message::MessageName;
use crate::settings::Naming;
use link::UNGROUPED;
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
    /// Where messages stood that have just been taken; kept for its memory alone.
    runs: Vec<Run>,
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
            runs: Vec::new(),
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
    pub(crate) fn lend_runs(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs)
    }

    pub(crate) fn return_runs(&mut self, mut runs: Vec<Run>) {
        runs.clear();
        self.runs = runs;
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

    /// Finds the group of a message that is being enqueued.
    #[inline]
    pub(crate) fn link(&mut self, group: Option<MessageName<'_>>) -> Link {
        let Some(named) = group else { return Link::NONE };
        let number = self.directory.find(&named);
        if named.is_last {
            self.directory.close(number);
        }
        Link::of(number)
    }

    /// Messages have been enqueued; each has its link.
    pub(crate) fn enqueued(&mut self, entries: &mut Entries, added: Run) {
        // Those that anybody may take are mostly neighbours.
        let mut free = Run::new(added.first, 0);
        for position in added.first..added.end() {
            let number = entries.link(position).group;
            if number == UNGROUPED {
                self.note_free(&mut free, position);
                continue;
            }
            let group = self.directory.group_mut(number);
            group.messages += 1;
            if group.oldest().is_some() {
                group.insert(entries, position);
                continue;
            }
            group.begin(position);
            match group.seat(self.shared_out) {
                Some(Seat::Free(position)) => self.note_free(&mut free, position),
                seat => self.reseat(None, seat),
            }
        }
        self.free.insert(free);
        self.links += added.len;
        self.charge();
    }

    /// Adds one that anybody may take to a run of others, which is put among them when it ends.
    fn note_free(&mut self, run: &mut Run, position: u64) {
        if run.end() == position {
            run.len += 1;
        } else {
            self.free.insert(std::mem::replace(run, Run::new(position, 1)));
        }
    }

    /// A consumer acquires a message that it may take: the oldest of its group, or one in none.
    ///
    /// It still stands where the consumer has found it, among those that
    /// [anybody](Groups::free_taken) may take or [only it](Groups::owned_taken).
    #[inline]
    pub(crate) fn acquire(&mut self, position: u64, link: Link, slot: u32) {
        if link.group == UNGROUPED {
            return;
        }
        let shared_out = self.shared_out;
        let group = self.directory.group_mut(link.group);
        debug_assert_eq!(group.oldest(), Some(position), "it is not the oldest of its group");
        group.remove_oldest(position, link.next);
        let before = group.hold(slot, self.joined);
        let next = group.seat(shared_out);
        if let Some((former, age)) = before
            && self.notes_handovers
        {
            let name = group.name.clone();
            self.handovers.push(Handover { former, age, name });
        }
        self.reseat(None, next);
    }

    /// Messages that anybody might take have been acquired.
    pub(crate) fn free_taken(&mut self, run: Run) {
        self.free.remove(run);
    }

    /// A message that only this consumer might take has been acquired.
    pub(crate) fn owned_taken(&mut self, position: u64, slot: u32) {
        self.owned_mut(slot).remove(Run::new(position, 1));
    }

    /// An available message is out of everybody's reach from now on.
    pub(crate) fn withdraw(&mut self, entries: &mut Entries, position: u64) {
        let number = entries.link(position).group;
        if number == UNGROUPED {
            return self.free.remove(Run::new(position, 1));
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
            return self.free.insert(Run::new(position, 1));
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
        self.runs = Vec::new();
        self.charge();
    }

    /// Messages that were held are gone.
    fn settled(&mut self, entries: &Entries, block: u64, mask: u128) {
        let Some(block) = entries.block(block) else { return };
        let mut numbers = indexes(mask).map(|index| block.link(index as usize).group).peekable();
        while let Some(number) = numbers.next() {
            let mut count = 1;
            while numbers.next_if_eq(&number).is_some() {
                count += 1;
            }
            if number == UNGROUPED {
                continue;
            }
            let group = self.directory.group_mut(number);
            group.messages -= count;
            if group.messages == 0 {
                group.give_up(count);
                self.directory.leave(number);
            } else if group.held == count {
                let before = self.seat(number);
                self.directory.group_mut(number).give_up(count);
                let after = self.seat(number);
                self.reseat(before, after);
            } else {
                group.held -= count;
            }
        }
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
            Some(Seat::Free(position)) => self.free.insert(Run::new(position, 1)),
            Some(Seat::Owned(slot, position)) => {
                self.owned_mut(slot).insert(Run::new(position, 1));
                if self.called.last() != Some(&slot) {
                    self.called.push(slot);
                }
            }
            Some(Seat::Nowhere) | None => {}
        }
        match before {
            Some(Seat::Free(position)) => self.free.remove(Run::new(position, 1)),
            Some(Seat::Owned(slot, position)) => {
                self.owned_mut(slot).remove(Run::new(position, 1));
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
