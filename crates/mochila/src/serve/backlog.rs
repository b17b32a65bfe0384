//! Log lines that wait to be written.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Log lines between those who have something to say and the one thread that writes.
///
/// Whoever reads the log may stop reading: then its pipe is full, and whoever writes waits. That
/// must not be a worker, so lines are kept here, up to a bound; those beyond it are lost, and
/// counted. Nobody holds the lock for longer than it takes to copy a line.
#[derive(Default)]
pub(super) struct Backlog {
    waiting: Mutex<Waiting>,
    /// There is something to write, or nothing any more.
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines that nobody will read, and of which nobody has been told.
    lost: u64,
    /// What was taken last may not be written yet.
    is_writing: bool,
}

impl Backlog {
    /// Waits for lines and swaps them for the empty `batch`.
    pub(super) fn take(&self, batch: &mut Vec<u8>) {
        let mut waiting = self.lock();
        while waiting.lines.is_empty() {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut waiting.lines, batch);
        waiting.is_writing = true;
    }

    /// The lines that were taken are written. How many others were lost, if there is room for a
    /// line that says so.
    pub(super) fn written(&self) -> u64 {
        let mut waiting = self.lock();
        let has_room = waiting.lines.len() < MAX_BYTES / 2;
        if has_room { std::mem::take(&mut waiting.lost) } else { 0 }
    }

    /// The lines that were taken cannot be written.
    pub(super) fn lose(&self, batch: &[u8]) {
        let lines = batch.iter().filter(|byte| **byte == b'\n').count();
        self.lock().lost += lines as u64;
    }

    /// Whoever took lines has done what there was to do about them.
    pub(super) fn rest(&self) {
        self.lock().is_writing = false;
        self.changed.notify_all();
    }

    /// Waits until everything is written, but not for longer than that.
    pub(super) fn flush(&self, patience: Duration) {
        let begin = Instant::now();
        let mut waiting = self.lock();
        while waiting.is_writing || !waiting.lines.is_empty() {
            let left = patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(waiting, left);
            (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes whole lines, as loggers write them, and never fails.
impl Write for &Backlog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.lock();
        if waiting.lines.len() + line.len() > MAX_BYTES {
            waiting.lost += 1;
        } else {
            waiting.lines.extend_from_slice(line);
            self.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Some thousand lines: what a busy broker says while its log is rotated.
const MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_as_they_went_in() {
        let backlog = Backlog::default();
        for line in ["one\n", "two\n"] {
            (&backlog).write_all(line.as_bytes()).unwrap();
        }
        let mut batch = Vec::new();
        backlog.take(&mut batch);
        assert_eq!(batch, b"one\ntwo\n");
        assert_eq!(backlog.written(), 0);
        backlog.rest();
        backlog.flush(Duration::ZERO);
    }

    #[test]
    fn lines_beyond_the_bound_are_lost_and_counted_once() {
        let backlog = Backlog::default();
        let line = [b'.'; 1 << 10];
        (0..1500).for_each(|_| (&backlog).write_all(&line).unwrap());
        assert_eq!(backlog.written(), 0, "there is no room to say it");
        let mut batch = Vec::new();
        backlog.take(&mut batch);
        assert_eq!(batch.len(), MAX_BYTES);
        assert_eq!(backlog.written(), 1500 - 1024);
        assert_eq!(backlog.written(), 0);
    }

    #[test]
    fn lines_that_cannot_be_written_count_as_lost() {
        let backlog = Backlog::default();
        (&backlog).write_all(b"one\ntwo\n").unwrap();
        let mut batch = Vec::new();
        backlog.take(&mut batch);
        backlog.lose(&batch);
        assert_eq!(backlog.written(), 2);
    }

    #[test]
    fn nobody_waits_for_ever_for_lines_that_cannot_be_written() {
        let backlog = Backlog::default();
        (&backlog).write_all(b"one\n").unwrap();
        backlog.flush(Duration::ZERO);
        backlog.take(&mut Vec::new());
        backlog.flush(Duration::ZERO);
    }
}
