use std::ops::{Add, AddAssign};

/// A serial number that wraps around (RFC 1982): transfer ids, delivery ids and delivery counts
/// (part 2, 2.8.10).
///
/// It has no `Ord`: the order of serial numbers is not transitive, so it must be asked for by
/// name ([`SequenceNo::is_after`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNo(pub u32);

impl SequenceNo {
    /// The number that follows this one.
    #[must_use]
    pub const fn next(self) -> SequenceNo {
        SequenceNo(self.0.wrapping_add(1))
    }

    /// Steps from `earlier` up to this number, wrapping around.
    pub const fn distance_from(self, earlier: SequenceNo) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this number comes after `other` in serial order; numbers exactly half the range
    /// apart, whose order the RFC leaves undefined, are not after one another.
    pub const fn is_after(self, other: SequenceNo) -> bool {
        let distance = self.0.wrapping_sub(other.0);
        distance != 0 && distance < HALF
    }

    /// Whether this number is `other` or comes after it.
    pub const fn is_at_or_after(self, other: SequenceNo) -> bool {
        self.0 == other.0 || self.is_after(other)
    }

    /// The later of two numbers; `self` where neither is after the other.
    #[must_use]
    pub const fn later(self, other: SequenceNo) -> SequenceNo {
        if other.is_after(self) { other } else { self }
    }
}

impl Add<u32> for SequenceNo {
    type Output = SequenceNo;

    fn add(self, steps: u32) -> SequenceNo {
        SequenceNo(self.0.wrapping_add(steps))
    }
}

impl AddAssign<u32> for SequenceNo {
    fn add_assign(&mut self, steps: u32) {
        self.0 = self.0.wrapping_add(steps);
    }
}

impl From<u32> for SequenceNo {
    fn from(number: u32) -> SequenceNo {
        SequenceNo(number)
    }
}

impl From<SequenceNo> for u32 {
    fn from(number: SequenceNo) -> u32 {
        number.0
    }
}

const HALF: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_continues_past_the_largest_number() {
        assert_eq!(SequenceNo(u32::MAX).next(), SequenceNo(0));
        assert_eq!(SequenceNo(u32::MAX - 1) + 5, SequenceNo(3));
        assert_eq!(SequenceNo(3).distance_from(SequenceNo(u32::MAX - 1)), 5);
    }

    #[test]
    fn order_is_serial_not_numeric() {
        assert!(SequenceNo(0).is_after(SequenceNo(u32::MAX)));
        assert!(!SequenceNo(u32::MAX).is_after(SequenceNo(0)));
        assert!(!SequenceNo(7).is_after(SequenceNo(7)));
        assert!(SequenceNo(7).is_at_or_after(SequenceNo(7)));
        assert_eq!(SequenceNo(u32::MAX).later(SequenceNo(2)), SequenceNo(2));
    }

    #[test]
    fn numbers_half_the_range_apart_have_no_order() {
        let (a, b) = (SequenceNo(10), SequenceNo(10) + (1 << 31));
        assert!(!a.is_after(b) && !b.is_after(a));
    }
}
