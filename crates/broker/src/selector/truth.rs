//! The three truth values of SQL.

use std::ops::Not;

/// What a condition can be: a comparison with something that is not there is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    False,
    Unknown,
    True,
}

impl Truth {
    /// False if either is false, true if both are true.
    pub(super) fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::False, _) | (_, Truth::False) => Truth::False,
            (Truth::True, Truth::True) => Truth::True,
            _ => Truth::Unknown,
        }
    }

    /// True if either is true, false if both are false.
    pub(super) fn or(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::True, _) | (_, Truth::True) => Truth::True,
            (Truth::False, Truth::False) => Truth::False,
            _ => Truth::Unknown,
        }
    }
}

impl Not for Truth {
    type Output = Truth;

    fn not(self) -> Truth {
        match self {
            Truth::False => Truth::True,
            Truth::Unknown => Truth::Unknown,
            Truth::True => Truth::False,
        }
    }
}

impl From<bool> for Truth {
    #[inline]
    fn from(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{False, True, Unknown};

    #[test]
    fn the_tables_are_those_of_sql() {
        let table = [
            (True, True, True, True),
            (True, False, False, True),
            (True, Unknown, Unknown, True),
            (False, False, False, False),
            (False, Unknown, False, Unknown),
            (Unknown, Unknown, Unknown, Unknown),
        ];
        for (a, b, and, or) in table {
            assert_eq!((a.and(b), b.and(a)), (and, and), "{a:?} AND {b:?}");
            assert_eq!((a.or(b), b.or(a)), (or, or), "{a:?} OR {b:?}");
        }
        assert_eq!((!True, !False, !Unknown), (False, True, Unknown));
    }
}
