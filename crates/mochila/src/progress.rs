//! A line on a terminal that shows how far a long run is.

use std::io::{IsTerminal, Write};

/// Rewrites one line on standard error now and then; silent where that is not a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    /// How many messages there will be; 0 = unknown.
    total: u64,
    visible: bool,
    start_ns: i64,
    due_ns: i64,
    last: (i64, u64),
    shown: bool,
}

impl Progress {
    /// Nothing is shown when messages themselves are printed to the same terminal.
    pub(crate) fn new(verb: &'static str, total: u64, now_ns: i64, prints_messages: bool) -> Self {
        let visible = std::io::stderr().is_terminal()
            && !(prints_messages && std::io::stdout().is_terminal());
        Self {
            verb,
            total,
            visible,
            start_ns: now_ns,
            due_ns: now_ns + FIRST_AFTER_NS,
            last: (now_ns, 0),
            shown: false,
        }
    }

    /// Shows the line if it is due. Cheap enough to be called per batch.
    pub(crate) fn update(&mut self, now_ns: i64, done: u64) {
        if !self.visible || now_ns < self.due_ns {
            return;
        }
        self.due_ns = now_ns + INTERVAL_NS;
        let line = self.line(now_ns, done);
        self.last = (now_ns, done);
        self.shown = true;
        // A progress line that cannot be written is not worth failing for.
        let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
    }

    /// Clears the line, so that what is printed next starts on a clean one.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&self, now_ns: i64, done: u64) -> String {
        let (last_ns, last_done) = self.last;
        let seconds = ((now_ns - last_ns).max(1)) as f64 / 1e9;
        let rate = (done - last_done) as f64 / seconds;
        let elapsed = (now_ns - self.start_ns) / 1_000_000_000;
        if self.total == 0 {
            return format!("{} {done}, {rate:.0}/s, {elapsed}s", self.verb);
        }
        let percent = done as f64 * 100.0 / self.total as f64;
        format!("{} {done} of {} ({percent:.0} %), {rate:.0}/s, {elapsed}s", self.verb, self.total)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A run that ends sooner shows nothing.
const FIRST_AFTER_NS: i64 = 1_000_000_000;
const INTERVAL_NS: i64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_share_done_and_the_rate_since_the_last_line() {
        let mut progress = Progress::new("sent", 1_000, 0, false);
        progress.last = (1_000_000_000, 100);
        assert_eq!(progress.line(2_000_000_000, 250), "sent 250 of 1000 (25 %), 150/s, 2s");
        progress.total = 0;
        assert_eq!(progress.line(2_000_000_000, 250), "sent 250, 150/s, 2s");
    }
}
