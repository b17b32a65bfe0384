//! Looking at messages for those who select, without the queue's lock.

use crate::message::{Added, Taken};
use crate::messages::Run;
use crate::selector::Filters;
use std::ops::Range;
use std::sync::Arc;

/// Messages that are to be shown to selections: planned and installed under the queue's lock,
/// evaluated in between without it.
#[derive(Debug, Default)]
pub(crate) struct Showing {
    pub(crate) taken: Taken,
    pub(crate) asks: Vec<Ask>,
    /// The matching messages of all asks, one after another.
    matching: Vec<Run>,
    added: Added,
}

/// One selection, and the messages that it is shown.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) selection: (u32, u32),
    pub(crate) filters: Arc<Filters>,
    pub(crate) owner: u64,
    /// Which of the messages that were taken.
    pub(crate) messages: Range<usize>,
    /// Where its part of the matching messages ends.
    pub(crate) end: usize,
}

impl Showing {
    /// Asks all filters, and lets go of the messages.
    pub(crate) fn evaluate(&mut self) {
        let Showing { taken, asks, matching, added } = self;
        for ask in asks {
            let start = matching.len();
            for delivery in &taken.deliveries()[ask.messages.clone()] {
                if !ask.filters.matches(&taken.selector_input(delivery, added, ask.owner)) {
                    continue;
                }
                match matching[start..].last_mut() {
                    Some(last) if last.end() == delivery.position => last.len += 1,
                    _ => matching.push(Run::new(delivery.position, 1)),
                }
            }
            ask.end = matching.len();
        }
        taken.clear();
    }

    /// What each selection has been found to match.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&Ask, &[Run])> {
        let mut start = 0;
        self.asks.iter().map(move |ask| {
            let matching = &self.matching[start..ask.end];
            start = ask.end;
            (ask, matching)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.taken.clear();
        self.asks.clear();
        self.matching.clear();
    }
}
