//! When messages expire, wherever they stand.

use super::entries::{Block, NEVER};
use super::entry::{Flags, NOBODY};
use crate::wheel::{Timer, Wheel};

/// One timer for each block in which messages expire, set to the earliest of them.
///
/// A timer goes with its block, so that messages which are consumed in time leave nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    /// The numbers of blocks; there only while one is watched.
    wheel: Option<Box<Wheel<u64>>>,
}

impl Expiry {
    /// Watches over a message of a block.
    pub(crate) fn watch(&mut self, now_ms: u64, block: &mut Block, number: u64, expiry_ms: u64) {
        if expiry_ms >= block.next_expiry_ms {
            return;
        }
        let wheel = self.wheel.get_or_insert_with(|| Box::new(Wheel::new(now_ms)));
        if let Some(timer) = block.timer.take() {
            wheel.clear(timer);
        }
        block.timer = Some(wheel.set(now_ms, expiry_ms, number));
        block.next_expiry_ms = expiry_ms;
    }

    /// Stops watching over a block that is gone.
    pub(crate) fn unwatch(&mut self, timer: Timer) {
        if let Some(wheel) = &mut self.wheel {
            wheel.clear(timer);
            if wheel.is_empty() {
                self.wheel = None;
            }
        }
    }

    /// A block in which messages have expired; it must be looked at.
    pub(crate) fn due(&mut self, now_ms: u64) -> Option<u64> {
        let number = self.wheel.as_mut()?.fire(now_ms);
        if self.wheel.as_ref().is_some_and(|wheel| wheel.is_empty()) {
            self.wheel = None;
        }
        number
    }

    /// The available messages of a block that have expired; watches over the others.
    pub(crate) fn look_at(&mut self, now_ms: u64, block: &mut Block, number: u64) -> u128 {
        block.timer = None;
        block.next_expiry_ms = NEVER;
        let (mut expired, mut next_ms) = (0, NEVER);
        for index in block.indexes() {
            let available = block
                .get(index)
                .is_some_and(|entry| entry.holder == NOBODY && entry.flags.any(Flags::EXPIRES));
            match block.expiry_ms(index) {
                expiry_ms if available && expiry_ms <= now_ms => expired |= 1 << index,
                expiry_ms if available => next_ms = next_ms.min(expiry_ms),
                _ => {}
            }
        }
        if next_ms != NEVER {
            self.watch(now_ms, block, number, next_ms);
        }
        expired
    }

    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.wheel.as_ref()?.next_ms()
    }
}
