//! Looking at messages for those who select, without the queue's lock.

use super::selecting::SelectionId;
use super::selection::Selection;
use crate::message::{Added, Taken};
use crate::messages::Run;
use crate::selector::{Filters, Question};
use std::ops::Range;
use std::sync::Arc;

/// Messages that are to be shown to selections: planned and installed under the queue's lock,
/// evaluated in between without it.
#[derive(Debug, Default)]
pub(crate) struct Showing {
    pub(crate) taken: Taken,
    pub(crate) asks: Vec<Ask>,
    /// Messages that match, and which ask they match; in order for each.
    matching: Vec<(u32, Run)>,
    added: Added,
}

/// One selection, and the messages that it is shown.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) selection: SelectionId,
    pub(crate) filters: Arc<Filters>,
    pub(crate) owner: u64,
    /// The digest that the property `name` has to have: most are told apart by that.
    digest: Option<u64>,
    /// Asks that follow one another and have the same number want the same property.
    name: u32,
    /// Which of the messages that were taken.
    pub(crate) messages: Range<usize>,
    /// Which of the matching messages are its last ones.
    pub(crate) last: Option<usize>,
}

impl Showing {
    /// Adds a selection that is to be shown these messages.
    pub(crate) fn ask(&mut self, id: SelectionId, selection: &Selection, messages: Range<usize>) {
        let filters = Arc::clone(selection.filters());
        let owner = selection.owner();
        let digest = filters.digest().map(|(_, digest)| digest);
        let name = match self.asks.last() {
            Some(last) if name_of(&last.filters) == name_of(&filters) => last.name,
            Some(last) => last.name + 1,
            None => 0,
        };
        let ask = Ask { selection: id, filters, owner, digest, name, messages, last: None };
        self.asks.push(ask);
    }

    /// Asks all filters, and lets go of the messages.
    pub(crate) fn evaluate(&mut self) {
        let Showing { taken, asks, matching, added } = self;
        let mut first = 0;
        for asks in asks.chunk_by_mut(|a, b| a.messages == b.messages) {
            let deliveries = &taken.deliveries()[asks[0].messages.clone()];
            for (index, delivery) in deliveries.iter().enumerate() {
                taken.touch(deliveries, index, READ_BY_FILTERS);
                let mut question = Question::new(taken.selector_input(delivery, added));
                let mut found = None;
                for (index, ask) in asks.iter_mut().enumerate() {
                    if ask.digest.is_some() {
                        if found.is_none_or(|(name, _)| name != ask.name) {
                            found = Some((ask.name, digest_of(&mut question, &ask.filters)));
                        }
                        if found.is_none_or(|(_, digest)| digest != ask.digest) {
                            continue;
                        }
                    }
                    question.input.is_local = taken.is_of(delivery, ask.owner);
                    if question.passes(&ask.filters) {
                        note(matching, first + index as u32, &mut ask.last, delivery.position);
                    }
                }
            }
            first += asks.len() as u32;
        }
        taken.clear();
    }

    /// What has been found to match: the place of the ask, and the messages.
    pub(crate) fn matching(&self) -> &[(u32, Run)] {
        &self.matching
    }

    pub(crate) fn clear(&mut self) {
        self.taken.clear();
        self.asks.clear();
        self.matching.clear();
    }
}

/// The property that filters want.
fn name_of(filters: &Filters) -> Option<&str> {
    filters.digest().map(|(name, _)| name)
}

/// The digest of the property that filters want.
fn digest_of<'f>(question: &mut Question<'_, 'f>, filters: &'f Filters) -> Option<u64> {
    question.digest(name_of(filters)?)
}

/// Notes a message that matches; those that follow one another make one run.
fn note(matching: &mut Vec<(u32, Run)>, ask: u32, last: &mut Option<usize>, position: u64) {
    match last.and_then(|last| matching.get_mut(last)) {
        Some((_, run)) if run.end() == position => run.len += 1,
        _ => {
            *last = Some(matching.len());
            matching.push((ask, Run::new(position, 1)));
        }
    }
}

/// What filters ask for is mostly in so many bytes of a message.
const READ_BY_FILTERS: usize = 128;
