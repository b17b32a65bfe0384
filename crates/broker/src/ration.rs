//! How much the log takes of what peers can cause without end.

use crate::sync::{Mutex, lock};
use mochila_wire::Now;
use std::fmt;

/// What a peer can cause again and again, and the log has a line for.
///
/// Whatever of the node logs such a line takes its ration first; there is no other place for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Something has happened that belongs to ordinary life.
    Event,
    /// Something has happened that somebody should look at.
    WarningEvent,
    /// So much has happened at once that some of it is told to nobody.
    EventsLost,
    /// A container that may be connected only once comes a second time.
    ContainerTaken,
    /// A link is refused.
    LinkRefused,
    /// A link is detached for a fault.
    LinkDetached,
    /// A session ends for a fault.
    SessionEnded,
    /// A connection ends for a fault.
    ConnectionEnded,
    /// A transaction takes too long.
    TransactionTimedOut,
    /// There is no memory for a response of `$management`.
    ResponseDropped,
    /// Nobody has the address that a response of `$management` is for.
    ResponseUnaddressed,
    /// There is no file for a large message.
    NoFile,
    /// A large message cannot be read from its file.
    MessageUnreadable,
    /// A name or a password is wrong.
    WrongPassword,
    /// A connection cannot be accepted.
    ConnectionRefused,
    /// A connection cannot be watched.
    ConnectionUnwatched,
    /// The broker has made a mistake.
    Fault,
}

/// So many lines of each kind in a time, so that nobody fills the disk or buries what matters.
///
/// The lock is taken only by whoever has a line to write.
#[derive(Debug, Default)]
pub struct Rations(Mutex<[Ration; Remark::Fault as usize + 1]>);

impl Rations {
    /// Whether there may be a line of this kind now; the line ends with what is returned.
    pub fn take(&self, remark: Remark, now: Now) -> Option<Grant> {
        lock(&self.0)[remark as usize].take(remark.measure(), now)
    }
}

impl Remark {
    const fn measure(self) -> Measure {
        match self {
            // The ordinary life of a busy node, of which there is something every second.
            Remark::Event => Measure { lines: 20, ms: 1_000 },
            // Always the same, whoever it happens to.
            Remark::ConnectionRefused
            | Remark::ConnectionUnwatched
            | Remark::EventsLost
            | Remark::NoFile
            | Remark::ResponseUnaddressed => Measure { lines: 1, ms: MINUTE_MS },
            // Enough for whoever counts them by the log.
            _ => Measure { lines: 120, ms: MINUTE_MS },
        }
    }
}

/// So many lines in so long a time.
#[derive(Clone, Copy)]
struct Measure {
    lines: u32,
    ms: u64,
}

/// One kind's lines.
#[derive(Debug, Default)]
struct Ration {
    /// When the time began, and how many lines it has had.
    begun: Option<(u64, u32)>,
    /// Lines that were not written, and of which no line has told yet.
    withheld: u64,
}

impl Ration {
    fn take(&mut self, most: Measure, now: Now) -> Option<Grant> {
        // The clocks of two threads may differ a little.
        let begun =
            self.begun.filter(|(begun_ms, _)| now.mono_ms.saturating_sub(*begun_ms) < most.ms);
        let (begun_ms, lines) = begun.unwrap_or((now.mono_ms, 0));
        if lines >= most.lines {
            self.withheld += 1;
            return None;
        }
        self.begun = Some((begun_ms, lines + 1));
        let is_last = lines + 1 == most.lines;
        Some(Grant { withheld: std::mem::take(&mut self.withheld), is_last })
    }
}

/// That a line may be written; shows how the line ends if it does not stand for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "lines that are granted and not written are missed by nobody"]
pub struct Grant {
    /// Lines of this kind that were not written since the last one.
    withheld: u64,
    /// There will be no other of this kind for a while.
    is_last: bool,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.withheld, self.is_last) {
            (0, false) => Ok(()),
            (0, true) => f.write_str(" (more like it are only counted for a while)"),
            (more, false) => write!(f, " ({more} more like it were not logged)"),
            (more, true) => {
                write!(f, " ({more} more like it were not logged, and the next are only counted)")
            }
        }
    }
}

const MINUTE_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    const START: Now = Now::new(1_000, 0);

    fn lines(rations: &Rations, remark: Remark, now: Now) -> Vec<String> {
        (0..500).filter_map(|_| rations.take(remark, now)).map(|line| line.to_string()).collect()
    }

    #[test]
    fn each_minute_has_so_many_lines_and_the_next_says_what_was_left_out() {
        let rations = Rations::default();
        let first = lines(&rations, Remark::WrongPassword, START);
        assert_eq!(first.len(), 120);
        assert!(first[..119].iter().all(String::is_empty));
        assert_eq!(first[119], " (more like it are only counted for a while)");
        assert!(lines(&rations, Remark::WrongPassword, START.after(59_999)).is_empty());

        let next = lines(&rations, Remark::WrongPassword, START.after(60_000));
        assert_eq!(next.len(), 120);
        assert_eq!(next[0], " (880 more like it were not logged)");
        assert!(next[1..119].iter().all(String::is_empty));
    }

    #[test]
    fn each_kind_has_lines_of_its_own() {
        let rations = Rations::default();
        assert_eq!(lines(&rations, Remark::LinkRefused, START).len(), 120);
        assert_eq!(lines(&rations, Remark::Fault, START).len(), 120);
    }

    #[test]
    fn what_is_always_the_same_is_said_once() {
        let rations = Rations::default();
        assert_eq!(lines(&rations, Remark::ConnectionRefused, START).len(), 1);
        assert_eq!(
            lines(&rations, Remark::ConnectionRefused, START.after(60_000)),
            [" (499 more like it were not logged, and the next are only counted)"]
        );
    }

    #[test]
    fn a_clock_that_is_a_little_behind_begins_no_minute() {
        let rations = Rations::default();
        assert_eq!(lines(&rations, Remark::Fault, START).len(), 120);
        assert!(lines(&rations, Remark::Fault, Now::new(999, 0)).is_empty());
    }
}
