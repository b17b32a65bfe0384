//! The entries of a queue, in blocks.

use super::entry::Entry;
use super::groups::Link;
use super::positions::Run;
use super::window::Window;
use crate::wheel::Timer;
use std::ops::Range;

/// The entries of a queue by position.
///
/// Blocks of 128 come into being at the end and go when their last entry does, wherever they
/// stand: one message that stays behind holds on to one block.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// The last one is that which is being filled, if it is not full.
    blocks: Window<Block>,
    /// How many entries.
    len: u64,
}

/// Up to 128 entries that follow one another.
#[derive(Debug)]
pub(crate) struct Block {
    entries: Vec<Entry>,
    /// When they expire; empty unless one of them does.
    expiries: Vec<u64>,
    /// Their places in their groups; empty unless the queue has groups.
    links: Vec<Link>,
    /// Which entries have not been dequeued.
    live: u128,
    /// The index of `entries[0]`: not 0 if the block before went while it was being filled.
    start: u8,
    /// Set if one of the entries expires.
    pub(crate) timer: Option<Timer>,
    /// When `timer` fires.
    pub(crate) next_expiry_ms: u64,
}

impl Entries {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block into which the entry of `position` goes, with room for up to `more` entries.
    ///
    /// Positions must be asked for in order.
    pub(crate) fn block_for(&mut self, position: u64, more: usize) -> &mut Block {
        let number = position / BLOCK;
        if let Some((last, block)) = self.blocks.last()
            && last != number
            && block.live == 0
        {
            self.blocks.remove(last);
        }
        self.blocks.get_or_insert_with(number, || Block::new(index_of(position), more))
    }

    #[inline]
    pub(crate) fn block(&self, number: u64) -> Option<&Block> {
        self.blocks.get(number)
    }

    #[inline]
    pub(crate) fn block_mut(&mut self, number: u64) -> Option<&mut Block> {
        self.blocks.get_mut(number)
    }

    pub(crate) fn get(&self, position: u64) -> Option<&Entry> {
        self.block(position / BLOCK)?.get(index_of(position))
    }

    pub(crate) fn get_mut(&mut self, position: u64) -> Option<&mut Entry> {
        self.block_mut(position / BLOCK)?.get_mut(index_of(position))
    }

    /// The place of a message in its group, which is there until its block has been told that it
    /// is gone.
    pub(crate) fn link(&self, position: u64) -> &Link {
        let block = self.block(position / BLOCK).expect("a message of a group has a block");
        block.link(index_of(position))
    }

    pub(crate) fn link_mut(&mut self, position: u64) -> &mut Link {
        let block = self.block_mut(position / BLOCK).expect("a message of a group has a block");
        block.link_mut(index_of(position))
    }

    /// Gives up what has been kept although it is empty.
    pub(crate) fn trim(&mut self) {
        if self.len == 0 {
            self.blocks = Window::default();
        }
    }

    /// Notes that entries have been pushed.
    pub(crate) fn pushed(&mut self, count: u64) {
        self.len += count;
    }

    /// Notes that entries of a block have been removed; the timer of a block that goes with them.
    pub(crate) fn removed(&mut self, number: u64, count: u64) -> Option<Timer> {
        self.len -= count;
        let block = self.block_mut(number)?;
        if block.live != 0 {
            return None;
        }
        let timer = block.timer.take();
        block.next_expiry_ms = NEVER;
        // A queue through which single messages go need not make a block for each.
        if block.entries.capacity() > KEPT_ENTRIES || block.is_full() {
            self.blocks.remove(number);
        }
        timer
    }

    /// The numbers of the blocks that there are, from `first` to `last`.
    pub(crate) fn numbers(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        self.blocks.numbers(first, last)
    }
}

impl Block {
    fn new(start: usize, more: usize) -> Block {
        // Where few come at a time the vector grows as usual, so that small queues stay small.
        let room = BLOCK as usize - start;
        let capacity = if more >= 32 { room } else { more.max(4).min(room) };
        Block {
            entries: Vec::with_capacity(capacity),
            expiries: Vec::new(),
            links: Vec::new(),
            live: 0,
            start: start as u8,
            timer: None,
            next_expiry_ms: NEVER,
        }
    }

    fn is_full(&self) -> bool {
        usize::from(self.start) + self.entries.len() == BLOCK as usize
    }

    /// Adds the next entry.
    // Without being told, the compiler calls it for each message.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry, expiry_ms: Option<u64>) {
        let at = self.entries.len();
        if let Some(expiry_ms) = expiry_ms {
            self.expiries.resize(at, NEVER);
            self.expiries.push(expiry_ms);
        }
        self.live |= 1 << (usize::from(self.start) + at);
        self.entries.push(entry);
    }

    /// Says in which group the entry is that was pushed last.
    pub(crate) fn push_link(&mut self, link: Link) {
        if self.links.len() + 1 < self.entries.len() || self.links.is_empty() {
            self.links.reserve(self.entries.capacity() - self.links.len());
            self.links.resize(self.entries.len() - 1, Link::NONE);
        }
        self.links.push(link);
    }

    pub(crate) fn link(&self, index: usize) -> &Link {
        &self.links[index - usize::from(self.start)]
    }

    pub(crate) fn link_mut(&mut self, index: usize) -> &mut Link {
        &mut self.links[index - usize::from(self.start)]
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Entry> {
        if self.live & 1 << index == 0 {
            return None;
        }
        self.entries.get(index - usize::from(self.start))
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        if self.live & 1 << index == 0 {
            return None;
        }
        self.entries.get_mut(index - usize::from(self.start))
    }

    /// Gives those of some entries to another holder that one has; returns how many.
    pub(crate) fn hand_over(&mut self, indexes: Range<usize>, from: u32, to: u32) -> u64 {
        let mut count = 0;
        let mut give = |entry: &mut Entry| {
            let is_held = entry.holder == from;
            entry.holder = if is_held { to } else { entry.holder };
            count += u64::from(is_held);
        };
        let wanted = mask_of(indexes.clone());
        if self.live & wanted == wanted {
            let start = usize::from(self.start);
            let entries = &mut self.entries[indexes.start - start..indexes.end - start];
            entries.iter_mut().for_each(give);
        } else {
            indexes.for_each(|index| self.get_mut(index).map_or((), &mut give));
        }
        count
    }

    /// Takes an entry out for good, if it is there and `condition` holds.
    pub(crate) fn remove_if(
        &mut self,
        index: usize,
        condition: impl FnOnce(&Entry) -> bool,
    ) -> Option<Entry> {
        let entry = self.get(index).filter(|entry| condition(entry)).copied()?;
        self.live &= !(1 << index);
        Some(entry)
    }

    /// When an entry expires; `NEVER` if it does not.
    pub(crate) fn expiry_ms(&self, index: usize) -> u64 {
        let at = index.checked_sub(usize::from(self.start));
        at.and_then(|at| self.expiries.get(at)).copied().unwrap_or(NEVER)
    }

    /// The entries that a consumer has.
    pub(crate) fn held_by(&self, holder: u32) -> u128 {
        let held = |index: &usize| self.get(*index).is_some_and(|entry| entry.holder == holder);
        self.indexes().filter(held).fold(0, |held, index| held | 1 << index)
    }

    /// The entries that there are.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = usize> + use<> {
        let mut live = self.live;
        std::iter::from_fn(move || {
            let index = live.trailing_zeros() as usize;
            if index >= BLOCK as usize {
                return None;
            }
            live &= live - 1;
            Some(index)
        })
    }
}

/// The parts of a run that lie in one block each: its number, and the indexes in it.
pub(crate) fn pieces(run: Run) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = run.first;
    std::iter::from_fn(move || {
        if at >= run.end() {
            return None;
        }
        let start = index_of(at);
        let len = (BLOCK - start as u64).min(run.end() - at);
        let piece = (at / BLOCK, start..start + len as usize);
        at += len;
        Some(piece)
    })
}

/// The bits of a range of indexes.
pub(crate) fn mask_of(indexes: Range<usize>) -> u128 {
    if indexes.is_empty() {
        return 0;
    }
    (u128::MAX >> (BLOCK as usize - indexes.len())) << indexes.start
}

pub(crate) fn index_of(position: u64) -> usize {
    (position % BLOCK) as usize
}

/// An empty block is kept for the next entries if it has room for no more than this.
const KEPT_ENTRIES: usize = 4;
pub(crate) const BLOCK: u64 = 128;
/// The expiry of an entry that does not expire.
pub(crate) const NEVER: u64 = u64::MAX;
