//! Messages by priority.

use super::bits::Bits;
use super::entries::{BLOCK, Entries, index_of};
use super::{Positions, Run};
use crate::settings::{PRIORITIES, Priorities, Turns};

/// The available messages of a queue in levels, the urgent ones in the highest.
///
/// Who takes, takes from the highest level first, and in each level as the messages came. If levels
/// have turns, one that has had its turn stands back until the lower ones have had theirs.
#[derive(Debug)]
pub(crate) struct Levels {
    priorities: Priorities,
    levels: Vec<Positions>,
    /// How many messages of each level have been taken in this round of turns.
    taken: Turns,
    /// The level of which messages were taken last.
    last: usize,
    placing: Placing,
}

/// Messages of one block that are coming in, sorted by level, so that each level changes once.
#[derive(Debug, Default)]
struct Placing {
    block: u64,
    masks: [[u64; 2]; PRIORITIES],
}

/// Which messages are next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) level: usize,
    pub(crate) run: Run,
    /// How many may be taken before others have their turn.
    pub(crate) most: u64,
    /// The turn has an end, so it counts how many are taken.
    counts: bool,
    /// All levels have had their turns before.
    starts_round: bool,
    /// A higher one has just had its turn, and stands back in the new round too.
    stands_back: Option<usize>,
}

impl Levels {
    pub(crate) fn new(priorities: Priorities) -> Levels {
        let mut levels = Vec::new();
        levels.resize_with(priorities.count(), Positions::default);
        let placing = Placing::default();
        Levels { priorities, levels, taken: Turns::default(), last: NO_LEVEL, placing }
    }

    /// Turns are as long as this from now on, if the levels are the same; false if they are not.
    pub(crate) fn change(&mut self, priorities: &Priorities) -> bool {
        let is_same = self.priorities.count() == priorities.count();
        if is_same {
            self.priorities = *priorities;
        }
        is_same
    }

    /// The level of a message that is there.
    pub(crate) fn level_of(&self, entries: &Entries, position: u64) -> Option<usize> {
        entries.get(position).map(|entry| self.priorities.level(entry.priority))
    }

    /// The levels that have messages, the highest first.
    pub(crate) fn highest_first(&self) -> impl Iterator<Item = (usize, &Positions)> {
        self.levels.iter().enumerate().rev().filter(|(_, positions)| positions.len() > 0)
    }

    pub(crate) fn level(&self, level: usize) -> &Positions {
        &self.levels[level]
    }

    /// The oldest messages of the lowest level.
    pub(crate) fn least(&self) -> Option<(usize, Bits)> {
        self.levels.iter().enumerate().find_map(|(level, positions)| {
            let first = positions.next(0)?.first;
            Some((level, positions.bits_from(first)))
        })
    }

    /// The next messages of all that `next` finds in the levels.
    pub(crate) fn choose(&self, mut next: impl FnMut(&Positions) -> Option<Run>) -> Option<Choice> {
        let (mut first, mut second) = (None, None);
        for (level, positions) in self.highest_first() {
            let Some(run) = next(positions) else { continue };
            let stands_back = first.is_some();
            match first {
                None => first = Some((level, run)),
                Some(_) => second = second.or(Some((level, run))),
            }
            let turn = self.turn(level, stands_back);
            let most = turn.saturating_sub(u64::from(self.taken[level]));
            if most > 0 {
                let counts = turn != u64::MAX;
                let (starts_round, stands_back) = (false, None);
                return Some(Choice { level, run, most, counts, starts_round, stands_back });
            }
        }
        // All have had their turn, some of them perhaps long ago.
        let (first, second) =
            (first?, second.filter(|_| first.is_some_and(|it| it.0 == self.last)));
        let stands_back = second.map(|_| first.0);
        let (level, run) = second.unwrap_or(first);
        let most = self.turn(level, stands_back.is_some());
        let counts = most != u64::MAX;
        Some(Choice { level, run, most, counts, starts_round: true, stands_back })
    }

    /// Messages that were chosen have been taken.
    pub(crate) fn took(&mut self, choice: Choice, messages: u64) {
        if messages == 0 {
            return;
        }
        if choice.starts_round {
            let before = std::mem::take(&mut self.taken);
            if let Some(level) = choice.stands_back {
                self.taken[level] = before[level];
            }
        }
        self.last = choice.level;
        if !choice.counts {
            return;
        }
        let taken = &mut self.taken[choice.level];
        *taken = taken.saturating_add(u32::try_from(messages).unwrap_or(u32::MAX));
    }

    /// A message comes in.
    #[inline]
    pub(crate) fn place(&mut self, position: u64, priority: u8) {
        if position / BLOCK != self.placing.block {
            self.placed();
            self.placing.block = position / BLOCK;
        }
        let index = index_of(position);
        let level = self.priorities.level(priority);
        self.placing.masks[level][index / 64] |= 1 << (index % 64);
    }

    /// The last message has come in.
    pub(crate) fn placed(&mut self) {
        let Placing { block, masks } = &mut self.placing;
        for (positions, mask) in self.levels.iter_mut().zip(masks) {
            let [low, high] = std::mem::take(mask).map(u128::from);
            if low | high != 0 {
                positions.insert_bits(Bits::new(*block, low | high << 64));
            }
        }
    }

    /// Adds messages that are available again.
    pub(crate) fn insert(&mut self, entries: &Entries, run: Run) {
        Bits::pieces(run).for_each(|bits| self.each(entries, bits, Positions::insert_bits));
    }

    /// Takes messages out; they are still in the queue.
    pub(crate) fn remove(&mut self, entries: &Entries, run: Run) {
        Bits::pieces(run).for_each(|bits| self.each(entries, bits, Positions::remove_bits));
    }

    /// Takes messages of one level out; they are still in the queue.
    pub(crate) fn remove_of(&mut self, level: usize, bits: Bits) {
        self.levels[level].remove_bits(bits);
    }

    /// Sorts messages of one block by their levels, so that each level changes once.
    fn each(&mut self, entries: &Entries, bits: Bits, change: impl Fn(&mut Positions, Bits)) {
        let block = entries.block(bits.block).expect("what is available has an entry");
        let mut masks = [0u128; PRIORITIES];
        for index in bits.indexes() {
            let entry = block.get(index).expect("what is available has an entry");
            masks[self.priorities.level(entry.priority)] |= 1 << index;
        }
        for (positions, mask) in self.levels.iter_mut().zip(masks) {
            if mask != 0 {
                change(positions, Bits::new(bits.block, mask));
            }
        }
    }

    /// How many messages of a level make a turn. One that has none of its own takes as many as it
    /// likes, unless a higher one stands back for it: then one is enough.
    fn turn(&self, level: usize, stands_back: bool) -> u64 {
        match self.priorities.turns[level] {
            0 if stands_back => 1,
            0 => u64::MAX,
            turn => turn.into(),
        }
    }
}

/// No messages have been taken of any level yet.
const NO_LEVEL: usize = usize::MAX;
