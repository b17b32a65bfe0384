//! Positions of one block, as bits.

use super::entries::{BLOCK, index_of, mask_of, pieces};
use super::{Run, indexes, runs_of};

/// Positions of one block, whether or not they follow one another.
///
/// Messages of one priority lie between those of others: what is done with many of them at once is
/// done with bits, and not with runs of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) block: u64,
    pub(crate) mask: u128,
}

impl Bits {
    pub(crate) fn new(block: u64, mask: u128) -> Bits {
        Bits { block, mask }
    }

    /// The positions of a run that lies in one block.
    pub(crate) fn of(run: Run) -> Bits {
        let start = index_of(run.first);
        Bits::new(run.first / BLOCK, mask_of(start..start + run.len as usize))
    }

    /// The positions of a run that are in one block.
    pub(crate) fn of_block(block: u64, run: Run) -> Bits {
        let start = run.first.max(block * BLOCK);
        let end = run.end().min((block + 1) * BLOCK);
        if start >= end {
            return Bits::new(block, 0);
        }
        Bits::of(Run::new(start, end - start))
    }

    /// Those at the start of a list that are in the same block as its first, and how many of the
    /// list they are.
    pub(crate) fn starting(positions: &[u64]) -> (Bits, usize) {
        let block = positions.first().map_or(0, |first| first / BLOCK);
        let (mut mask, mut len) = (0, 0);
        for position in positions.iter().take_while(|position| *position / BLOCK == block) {
            mask |= 1 << index_of(*position);
            len += 1;
        }
        (Bits::new(block, mask), len)
    }

    /// The positions of a run, block by block.
    pub(crate) fn pieces(run: Run) -> impl Iterator<Item = Bits> {
        pieces(run).map(|(block, indexes)| Bits::new(block, mask_of(indexes)))
    }

    pub(crate) fn len(self) -> u64 {
        u64::from(self.mask.count_ones())
    }

    /// The first of them, at most so many.
    pub(crate) fn first(self, most: u64) -> Bits {
        if self.len() <= most {
            return self;
        }
        let rest = (0..most).fold(self.mask, |rest, _| rest & (rest - 1));
        Bits::new(self.block, self.mask ^ rest)
    }

    /// Those before a position that is not before the block.
    pub(crate) fn before(self, end: u64) -> Bits {
        let indexes = 0..(end - self.block * BLOCK).min(BLOCK) as usize;
        Bits::new(self.block, self.mask & mask_of(indexes))
    }

    /// Their indexes in the block.
    pub(crate) fn indexes(self) -> impl Iterator<Item = usize> {
        indexes(self.mask).map(|index| index as usize)
    }

    pub(crate) fn runs(self) -> impl Iterator<Item = Run> {
        runs_of(self.block, self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_gathered_as_far_as_its_block_reaches() {
        let (bits, len) = Bits::starting(&[130, 255, 129, 256, 131]);
        assert_eq!((bits.len(), len), (3, 3));
        assert_eq!(bits.runs().collect::<Vec<_>>(), [Run::new(129, 2), Run::new(255, 1)]);
    }

    #[test]
    fn some_of_them_are_the_first_ones_or_those_before_a_place() {
        let (bits, _) = Bits::starting(&[128, 129, 140, 255]);
        assert_eq!(bits.first(3).runs().map(|run| run.len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(bits.first(9), bits);
        assert_eq!(bits.before(140).len(), 2);
        assert_eq!((bits.before(128).len(), bits.before(256)), (0, bits));
    }

    #[test]
    fn a_run_is_cut_where_blocks_end() {
        let runs: Vec<_> = Bits::pieces(Run::new(120, 200)).flat_map(Bits::runs).collect();
        assert_eq!(runs, [Run::new(120, 8), Run::new(128, 128), Run::new(256, 64)]);
        assert_eq!(Bits::of(Run::new(130, 2)), Bits::new(1, 0b1100));
        assert_eq!(Bits::of_block(1, Run::new(0, 130)), Bits::new(1, 0b11));
        assert_eq!(Bits::of_block(2, Run::new(0, 130)).len(), 0);
    }
}
