//! Whether messages arrive without gaps and without duplicates, by their property `sn`.

use mochila_wire::Sections;

use crate::failure::{Failure, Outcome};

/// Remembers the last sequence number.
#[derive(Debug)]
pub(super) struct SequenceTracker {
    verify: bool,
    ignore_duplicates: bool,
    check_redelivered: bool,
    last: u32,
}

impl SequenceTracker {
    pub(super) fn new(verify: bool, ignore_duplicates: bool, check_redelivered: bool) -> Self {
        Self { verify, ignore_duplicates, check_redelivered, last: 0 }
    }

    /// Whether the message is to be processed rather than ignored.
    #[inline]
    pub(super) fn track(&mut self, sections: &Sections, bytes: &[u8]) -> Outcome<bool> {
        if !(self.verify || self.ignore_duplicates) {
            return Ok(true);
        }
        let sn = sections.application_property(bytes, "sn").and_then(|sn| sn.as_u64());
        let redelivered = sections.header(bytes).delivery_count > 0;
        self.check(sn.unwrap_or(0) as u32, redelivered)
    }

    fn check(&mut self, sn: u32, redelivered: bool) -> Outcome<bool> {
        let duplicate = sn <= self.last;
        if self.verify && sn > self.last.saturating_add(1) {
            let detail = format!("Gap in sequence numbers {}-{sn}", self.last);
            return Err(Failure::new("SequenceError", detail));
        }
        let ignore = duplicate && self.ignore_duplicates;
        if ignore && self.check_redelivered && !redelivered {
            return Err(Failure::new(
                "SequenceError",
                "duplicate sequence number received, message not marked as redelivered!",
            ));
        }
        if !duplicate {
            self.last = sn;
        }
        Ok(!ignore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_an_error_only_where_the_sequence_is_verified() {
        let mut verifying = SequenceTracker::new(true, false, false);
        assert_eq!(verifying.check(1, false), Ok(true));
        let failure = verifying.check(3, false).unwrap_err().to_string();
        assert_eq!(failure, "Failed: SequenceError: Gap in sequence numbers 1-3");
        let mut lenient = SequenceTracker::new(false, true, false);
        assert_eq!(lenient.check(3, false), Ok(true));
    }

    #[test]
    fn duplicates_are_ignored_where_that_is_asked_for() {
        let mut tracker = SequenceTracker::new(false, true, false);
        assert_eq!(tracker.check(1, false), Ok(true));
        assert_eq!(tracker.check(1, false), Ok(false));
        assert_eq!(tracker.check(2, false), Ok(true));
        let mut verifying = SequenceTracker::new(true, false, false);
        assert_eq!(verifying.check(1, false), Ok(true));
        assert_eq!(verifying.check(1, false), Ok(true));
    }

    #[test]
    fn a_duplicate_has_to_be_marked_as_redelivered_where_that_is_checked() {
        let mut tracker = SequenceTracker::new(false, true, true);
        assert_eq!(tracker.check(1, false), Ok(true));
        assert_eq!(tracker.check(1, true), Ok(false));
        assert!(tracker.check(1, false).is_err());
    }
}
