//! How far a browser has got.

use crate::messages::Messages;

/// Where a browser goes on: at one place, or at one in each level of priority.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    at: u64,
    /// There only where there are levels.
    levels: Vec<u64>,
}

impl Cursor {
    /// Where it goes on in a queue without levels.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Where it goes on in a level.
    pub(crate) fn in_level(&self, level: usize) -> u64 {
        self.levels.get(level).copied().unwrap_or(self.at)
    }

    /// It goes on here, in the level where it is now if there are levels.
    pub(crate) fn go_on(&mut self, level: Option<usize>, at: u64) {
        let Some(level) = level else {
            self.at = at;
            return;
        };
        if self.levels.len() <= level {
            self.levels.resize(level + 1, self.at);
        }
        self.levels[level] = at;
    }

    /// It has to see a message again.
    pub(crate) fn go_back(&mut self, level: Option<usize>, at: u64) {
        let before = level.map_or(self.at, |level| self.in_level(level));
        self.go_on(level, before.min(at));
    }

    /// It has seen everything: what comes back is for others, wherever it stood.
    pub(crate) fn pass_by(&mut self, messages: &Messages) {
        let is_over = match messages.levels() {
            None => messages.available().next(self.at).is_none(),
            Some(levels) => levels
                .highest_first()
                .all(|(level, positions)| positions.next(self.in_level(level)).is_none()),
        };
        if is_over {
            self.at = messages.next_position();
            self.levels.clear();
        }
    }
}
