//! An ordered set of positions, as bits.

use super::bits::Bits;
use super::entries::{BLOCK, index_of};
use super::window::Window;
use std::cmp::Ordering;

/// Positions in a queue, mostly in runs: one bit each, found in order, 64 at a time.
///
/// Pages of 4096 positions exist only where there are members, so a member that stays behind for
/// days costs nothing for the millions that have passed it. As long as all members are in one word
/// there is no page at all.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// All members while there are no pages: the number of their word, and the word.
    few: (u64, u64),
    /// There once they have been needed.
    pages: Option<Box<Window<Page>>>,
    len: u64,
}

/// Positions that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) len: u64,
}

impl Run {
    pub(crate) fn new(first: u64, len: u64) -> Run {
        Run { first, len }
    }

    /// The position after the last.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.len
    }
}

#[derive(Debug)]
struct Page {
    words: [u64; WORDS],
    /// Which words are not 0.
    summary: u64,
}

impl Positions {
    /// How many members.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds positions of which none is a member.
    pub(crate) fn insert(&mut self, run: Run) {
        self.len += run.len;
        for (number, mask) in words(run) {
            self.insert_word(number, mask);
        }
    }

    /// Removes positions that are all members.
    pub(crate) fn remove(&mut self, run: Run) {
        self.len -= run.len;
        for (number, mask) in words(run) {
            self.remove_word(number, mask);
        }
    }

    /// Adds a position that is no member.
    #[inline]
    pub(crate) fn insert_one(&mut self, position: u64) {
        self.len += 1;
        self.insert_word(position / 64, 1 << (position % 64));
    }

    /// Removes a position that is a member.
    #[inline]
    pub(crate) fn remove_one(&mut self, position: u64) {
        self.len -= 1;
        self.remove_word(position / 64, 1 << (position % 64));
    }

    /// Adds positions of one block of which none is a member.
    pub(crate) fn insert_bits(&mut self, bits: Bits) {
        self.len += bits.len();
        for (number, mask) in words_of(bits) {
            self.insert_word(number, mask);
        }
    }

    /// Removes positions of one block that are all members.
    pub(crate) fn remove_bits(&mut self, bits: Bits) {
        self.len -= bits.len();
        for (number, mask) in words_of(bits) {
            self.remove_word(number, mask);
        }
    }

    /// The members of the block of a position, from there on.
    pub(crate) fn bits_from(&self, position: u64) -> Bits {
        let block = position / BLOCK;
        let members = u128::from(self.word(2 * block)) | u128::from(self.word(2 * block + 1)) << 64;
        Bits::new(block, members & u128::MAX << index_of(position))
    }

    /// True if a position is a member.
    pub(crate) fn contains(&self, position: u64) -> bool {
        self.word(position / 64) & 1 << (position % 64) != 0
    }

    /// Adds positions, whether or not some of them are members.
    pub(crate) fn add(&mut self, run: Run) {
        for (number, mask) in words(run) {
            for run in runs_in(number, mask & !self.word(number)) {
                self.insert(run);
            }
        }
    }

    /// Removes those positions that are members, and says which they were.
    pub(crate) fn take_out(&mut self, run: Run, mut out: impl FnMut(Run)) {
        for (number, mask) in words(run) {
            for run in runs_in(number, mask & self.word(number)) {
                self.remove(run);
                out(run);
            }
        }
    }

    /// Removes all members that are not members of `others`.
    pub(crate) fn retain(&mut self, others: &Positions) {
        let mut from = 0;
        while let Some(run) = self.next(from) {
            // A run lies in one word.
            let number = run.first / 64;
            let bits = words(run).fold(0, |bits, (_, mask)| bits | mask);
            for gone in runs_in(number, bits & !others.word(number)) {
                self.remove(gone);
            }
            from = run.end();
        }
    }

    /// The members of a word.
    fn word(&self, number: u64) -> u64 {
        if self.few.1 != 0 {
            return if self.few.0 == number { self.few.1 } else { 0 };
        }
        let page = self.pages.as_ref().and_then(|pages| pages.get(number / WORDS as u64));
        page.map_or(0, |page| page.words[number as usize % WORDS])
    }

    /// The first members at or after `from`, as far as they follow one another within a word.
    pub(crate) fn next(&self, from: u64) -> Option<Run> {
        if self.few.1 != 0 {
            let (number, bits) = self.few;
            return match (from / 64).cmp(&number) {
                Ordering::Less => next_in(number, bits, number * 64),
                Ordering::Equal => next_in(number, bits, from),
                Ordering::Greater => None,
            };
        }
        let pages = self.pages.as_ref().filter(|_| self.len > 0)?;
        let (number, page) = pages.next(from / PAGE)?;
        if number != from / PAGE {
            return page.next(number, number * PAGE);
        }
        page.next(number, from).or_else(|| {
            let (number, page) = pages.next(number + 1)?;
            page.next(number, number * PAGE)
        })
    }

    /// Notes members of one word. As long as no other word has any there is no page.
    #[inline]
    fn insert_word(&mut self, number: u64, mask: u64) {
        match self.few {
            (_, 0) if self.pages.as_ref().is_none_or(|pages| pages.is_empty()) => {
                self.few = (number, mask);
                return;
            }
            (_, 0) => {}
            (few, _) if few == number => {
                self.few.1 |= mask;
                return;
            }
            _ => self.turn_page(),
        }
        self.page(number).insert(number as usize % WORDS, mask);
    }

    /// Forgets members of one word.
    #[inline]
    fn remove_word(&mut self, number: u64, mask: u64) {
        if self.few.1 != 0 {
            self.few.1 &= !mask;
            return;
        }
        let Some(pages) = &mut self.pages else { return };
        let Some(page) = pages.get_mut(number / WORDS as u64) else { return };
        page.remove(number as usize % WORDS, mask);
        if page.summary == 0 {
            pages.remove(number / WORDS as u64);
        }
    }

    /// Moves the members that are in one word to pages.
    fn turn_page(&mut self) {
        let (number, bits) = std::mem::take(&mut self.few);
        self.page(number).insert(number as usize % WORDS, bits);
    }

    /// The page that a word is in.
    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        let pages = self.pages.get_or_insert_default();
        pages.get_or_insert_with(number / WORDS as u64, Page::empty)
    }
}

/// The first run of a word's members at or after `from`, which is in it.
fn next_in(number: u64, bits: u64, from: u64) -> Option<Run> {
    let rest = bits & (!0 << (from % 64));
    let start = rest.trailing_zeros();
    if start == 64 {
        return None;
    }
    let len = (rest >> start).trailing_ones();
    Some(Run::new(number * 64 + u64::from(start), u64::from(len)))
}

/// The runs of a word's members.
fn runs_in(number: u64, mut bits: u64) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        let run = next_in(number, bits, number * 64)?;
        bits &= !words(run).fold(0, |bits, (_, mask)| bits | mask);
        Some(run)
    })
}

impl Page {
    fn empty() -> Page {
        Page { words: [0; WORDS], summary: 0 }
    }

    fn insert(&mut self, word: usize, mask: u64) {
        debug_assert_eq!(self.words[word] & mask, 0, "a position is added twice");
        self.words[word] |= mask;
        self.summary |= 1 << word;
    }

    fn remove(&mut self, word: usize, mask: u64) {
        debug_assert_eq!(self.words[word] & mask, mask, "a position is not there");
        self.words[word] &= !mask;
        self.summary &= !(u64::from(self.words[word] == 0) << word);
    }

    /// The first run at or after `from`, which lies in this page.
    fn next(&self, number: u64, from: u64) -> Option<Run> {
        let start = word_of(from);
        if let Some(run) = next_in(from / 64, self.words[start], from) {
            return Some(run);
        }
        let later = self.summary.checked_shr(start as u32 + 1).unwrap_or(0);
        if later == 0 {
            return None;
        }
        let word = start + 1 + later.trailing_zeros() as usize;
        let first = number * PAGE + word as u64 * 64;
        next_in(first / 64, self.words[word], first)
    }
}

/// The words that a block's bits are in, and the bits in each.
fn words_of(bits: Bits) -> impl Iterator<Item = (u64, u64)> {
    let halves = [bits.mask as u64, (bits.mask >> 64) as u64];
    (2 * bits.block..).zip(halves).filter(|(_, mask)| *mask != 0)
}

/// The word and the bits of each part of a run that lies in one word.
fn words(run: Run) -> impl Iterator<Item = (u64, u64)> {
    let mut at = run.first;
    std::iter::from_fn(move || {
        if at >= run.end() {
            return None;
        }
        let len = (64 - at % 64).min(run.end() - at);
        let part = (at / 64, (u64::MAX >> (64 - len)) << (at % 64));
        at += len;
        Some(part)
    })
}

fn word_of(position: u64) -> usize {
    (position % PAGE / 64) as usize
}

const WORDS: usize = 64;
const PAGE: u64 = 64 * WORDS as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_run_that_crosses_pages_is_found_piece_by_piece() {
        let mut positions = Positions::default();
        positions.insert(Run::new(4_090, 10));
        assert_eq!(positions.next(0), Some(Run::new(4_090, 6)));
        assert_eq!(positions.next(4_096), Some(Run::new(4_096, 4)));
        assert_eq!(positions.next(4_100), None);
    }

    #[test]
    fn one_that_stays_behind_costs_one_page() {
        let mut positions = Positions::default();
        positions.insert(Run::new(0, 1_000_000));
        positions.remove(Run::new(1, 999_998));
        let pages = positions.pages.as_ref().unwrap();
        assert_eq!((positions.len(), pages.numbers(0, u64::MAX).count()), (2, 2));
        assert_eq!(positions.next(1), Some(Run::new(999_999, 1)));
    }

    proptest! {
        #[test]
        fn positions_may_be_added_and_taken_out_that_are_there_in_part(
            steps in prop::collection::vec((0u64..9_000, 1u64..300, any::<bool>()), 1..60),
            others in prop::collection::vec((0u64..9_000, 1u64..300), 1..60),
        ) {
            let mut positions = Positions::default();
            let mut model = BTreeSet::new();
            for (first, len, adds) in steps {
                let run = first..first + len;
                if adds {
                    positions.add(Run::new(first, len));
                    model.extend(run.clone());
                } else {
                    let mut out = BTreeSet::new();
                    let note = |run: Run| out.extend(run.first..run.end());
                    positions.take_out(Run::new(first, len), note);
                    let expected = run.clone().filter(|p| model.remove(p)).collect();
                    prop_assert_eq!(out, expected);
                }
                for position in run {
                    prop_assert_eq!(positions.contains(position), model.contains(&position));
                }
                prop_assert_eq!(positions.len(), model.len() as u64);
            }
            let mut kept = Positions::default();
            others.iter().for_each(|(first, len)| kept.add(Run::new(*first, *len)));
            positions.retain(&kept);
            model.retain(|position| kept.contains(*position));
            prop_assert_eq!(positions.len(), model.len() as u64);
            prop_assert!(model.iter().all(|position| positions.contains(*position)));
        }

        #[test]
        fn it_is_an_ordered_set(steps in prop::collection::vec((0u64..20_000, 1u64..200), 1..60)) {
            let mut positions = Positions::default();
            let mut model = BTreeSet::new();
            for (first, len) in steps {
                let present = |p: &u64| model.contains(p);
                let run: Vec<u64> = (first..first + len).collect();
                if run.iter().all(present) {
                    positions.remove(Run::new(first, len));
                    run.iter().for_each(|p| { model.remove(p); });
                } else if !run.iter().any(present) {
                    positions.insert(Run::new(first, len));
                    model.extend(run);
                } else {
                    for p in run {
                        if model.remove(&p) {
                            positions.remove_one(p);
                        }
                    }
                }
                prop_assert_eq!(positions.len(), model.len() as u64);
                let next = positions.next(first).map(|run| run.first);
                prop_assert_eq!(next, model.range(first..).next().copied());
            }
            let mut found = Vec::new();
            let mut from = 0;
            while let Some(run) = positions.next(from) {
                found.extend(run.first..run.end());
                from = run.end();
            }
            prop_assert_eq!(found, model.iter().copied().collect::<Vec<_>>());
        }
    }
}
