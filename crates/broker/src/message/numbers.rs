//! The numbers that messages have got at an exchange.

use super::{Batch, Segment};
use mochila_wire::form::Width;
use mochila_wire::{Form, Symbol};
use std::sync::{Arc, LazyLock};

/// The numbers of the messages in a segment.
///
/// They came together, so their numbers are neighbours, and all that has to be known of a message is
/// how far it is from the first: eight bytes for each, in one piece for all of them.
#[derive(Debug)]
pub(crate) struct Numbers {
    first: i64,
    /// Where each message begins, in order, and how much higher its number is than the first; empty
    /// if the segment holds one message.
    steps: Box<[(u32, u32)]>,
}

impl Numbers {
    /// Consecutive numbers for messages that begin at these places, in order.
    fn from(first: i64, offsets: impl ExactSizeIterator<Item = u32>) -> Numbers {
        let steps = match offsets.len() {
            1 => Box::default(),
            _ => offsets.zip(0..).collect(),
        };
        Numbers { first, steps }
    }

    /// The number of the message that begins there, if it has one.
    #[inline]
    fn at(&self, offset: u32) -> Option<i64> {
        if self.steps.is_empty() {
            return Some(self.first);
        }
        let found = self.steps.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        Some(self.first + i64::from(self.steps[found].1))
    }

    /// The same numbers for those messages that lie elsewhere now: from where, and where, in order.
    pub(crate) fn moved(&self, moves: impl Iterator<Item = (u32, u32)>) -> Numbers {
        let step = |from| self.at(from).map_or(0, |number| (number - self.first) as u32);
        Numbers { first: self.first, steps: moves.map(|(from, to)| (to, step(from))).collect() }
    }

    /// Bytes that they take beside the segment.
    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of_val::<[_]>(&self.steps) as u64
    }
}

impl Segment {
    /// The number that the message which begins there has got at an exchange.
    #[inline]
    pub(super) fn number(&self, offset: u32) -> Option<i64> {
        self.numbers().and_then(|numbers| numbers.at(offset))
    }
}

impl Batch {
    /// Numbers the messages from `first` on; false, and nothing has been done, if they are not as they
    /// came in: others share their bytes, or something has been added to them.
    pub(crate) fn number_from(&mut self, first: i64) -> bool {
        let mut segments = self.segments.iter_mut();
        if !self.overlays.is_empty() || !segments.all(|segment| Arc::get_mut(segment).is_some()) {
            return false;
        }
        let mut rest = &self.messages[..];
        let mut next = first;
        for (index, segment) in (0..).zip(&mut self.segments) {
            // The messages of a segment came one after another.
            let len = rest.iter().take_while(|message| message.segment == index).count();
            let (here, later) = rest.split_at(len);
            let numbers = Numbers::from(next, here.iter().map(|message| message.offset));
            Arc::get_mut(segment).expect("nobody shares it").set_numbers(numbers);
            next += len as i64;
            rest = later;
        }
        debug_assert!(rest.is_empty(), "messages stand in the order of their segments");
        true
    }
}

/// The annotation with a message's number in an exchange: a long.
pub(crate) static SEQUENCE: Symbol = Symbol::from_static("qpid.msg_sequence");
/// The section of a message that has no other annotation.
pub(super) static SECTION: LazyLock<Form> =
    LazyLock::new(|| Form::new(&[(&SEQUENCE, Width::Long)]));
