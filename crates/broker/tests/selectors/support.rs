//! Messages, and what a selector says about them.

use mochila_broker::{Selector, SelectorError, SelectorInput};
use mochila_wire::{Encode, Limits, Message, Sections, section};

/// An encoded message and its sections.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sections: Sections,
}

impl Encoded {
    pub(crate) fn new(change: impl FnOnce(&mut Message)) -> Encoded {
        let mut message = Message::of_value("body");
        change(&mut message);
        let bytes = message.to_bytes();
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        Encoded { bytes, sections }
    }

    pub(crate) fn input(&self) -> SelectorInput<'_> {
        SelectorInput::of(&self.bytes, &self.sections)
    }

    pub(crate) fn matches(&self, selector: &str) -> bool {
        compiled(selector).matches(&self.input())
    }
}

pub(crate) fn compiled(selector: &str) -> Selector {
    match Selector::new(selector) {
        Ok(Some(compiled)) => compiled,
        other => panic!("{selector}: {other:?}"),
    }
}

pub(crate) fn refusal(selector: &str) -> SelectorError {
    Selector::new(selector).expect_err(selector)
}

/// A seeded generator (splitmix64): the same seed gives the same run, and a test that fails prints
/// its seed.
pub(crate) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { seed, state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the random seed was {}", self.seed);
        }
    }
}
