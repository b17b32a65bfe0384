//! A hierarchical timer wheel: setting, clearing and firing in constant time.

/// Deadlines of many things, found without looking at those that are not due.
///
/// Six levels of 64 slots; a slot of level `n` spans `64^n` ticks of 8 ms. A timer sits in the
/// level where its distance fits and moves down as its time comes nearer. Timers fire up to one
/// tick late and never early.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    slots: Box<[u32; LEVELS * SLOTS]>,
    /// Which slots of each level hold timers.
    occupied: [u64; LEVELS],
    timers: Vec<Node<T>>,
    free: u32,
    len: usize,
    /// The tick up to which everything has fired.
    now: u64,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer(u32);

#[derive(Debug)]
struct Node<T> {
    tick: u64,
    previous: u32,
    next: u32,
    slot: u32,
    value: T,
}

impl<T: Copy> Wheel<T> {
    /// A wheel that starts at `now_ms`.
    pub(crate) fn new(now_ms: u64) -> Wheel<T> {
        Wheel {
            slots: Box::new([NONE; LEVELS * SLOTS]),
            occupied: [0; LEVELS],
            timers: Vec::new(),
            free: NONE,
            len: 0,
            now: now_ms >> TICK_BITS,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a timer; one whose deadline has passed fires at the next tick.
    pub(crate) fn set(&mut self, now_ms: u64, deadline_ms: u64, value: T) -> Timer {
        if self.is_empty() {
            self.now = self.now.max(now_ms >> TICK_BITS);
        }
        let tick = ceil_tick(deadline_ms).max(self.now + 1);
        let node = Node { tick, previous: NONE, next: NONE, slot: 0, value };
        let index = if self.free == NONE {
            self.timers.push(node);
            (self.timers.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.timers[index as usize].next;
            self.timers[index as usize] = node;
            index
        };
        self.link(index);
        self.len += 1;
        Timer(index)
    }

    /// Clears a timer that has not fired.
    pub(crate) fn clear(&mut self, timer: Timer) {
        self.unlink(timer.0);
        self.vacate(timer.0);
    }

    /// The next time something may have to be done: never later than the earliest timer.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        (0..LEVELS).filter_map(|level| self.next_tick(level)).min().map(|tick| tick << TICK_BITS)
    }

    /// Takes out one timer that is due at `now_ms`.
    pub(crate) fn fire(&mut self, now_ms: u64) -> Option<T> {
        let until = now_ms >> TICK_BITS;
        loop {
            let next = (0..LEVELS).filter_map(|level| Some((self.next_tick(level)?, level))).min();
            let Some((tick, level)) = next.filter(|(tick, _)| *tick <= until) else {
                self.now = self.now.max(until);
                return None;
            };
            // Everything before this slot has fired.
            self.now = tick - 1;
            let index = self.slots[level * SLOTS + slot_of(tick, level)];
            self.unlink(index);
            let node = &self.timers[index as usize];
            if node.tick <= until {
                let value = node.value;
                self.vacate(index);
                return Some(value);
            }
            // Its slot has come but its tick has not: it moves down a level.
            self.link(index);
        }
    }

    /// The first tick of the next occupied slot of a level.
    fn next_tick(&self, level: usize) -> Option<u64> {
        let occupied = self.occupied[level];
        if occupied == 0 {
            return None;
        }
        let shift = level as u32 * LEVEL_BITS;
        let current = self.now >> shift;
        // Rotate so that bit 0 is the slot after the current one.
        let ahead = occupied.rotate_right(((current + 1) % SLOTS as u64) as u32).trailing_zeros();
        Some((current + 1 + u64::from(ahead)) << shift)
    }

    fn link(&mut self, index: u32) {
        let tick = self.timers[index as usize].tick;
        let turns = |level: usize| {
            let shift = level as u32 * LEVEL_BITS;
            (tick >> shift) - (self.now >> shift)
        };
        // Its slot must lie ahead, by no more than a full turn.
        let level = (0..LEVELS).find(|level| (1..=SLOTS as u64).contains(&turns(*level)));
        // Beyond the last level a timer waits in the farthest slot and is looked at again.
        let level = level.unwrap_or(LEVELS - 1);
        let at = (self.now >> (level as u32 * LEVEL_BITS)) + turns(level).min(SLOTS as u64);
        let slot = level * SLOTS + (at % SLOTS as u64) as usize;
        let first = self.slots[slot];
        let node = &mut self.timers[index as usize];
        node.slot = slot as u32;
        node.previous = NONE;
        node.next = first;
        if first != NONE {
            self.timers[first as usize].previous = index;
        }
        self.slots[slot] = index;
        self.occupied[level] |= 1 << (slot % SLOTS);
    }

    fn unlink(&mut self, index: u32) {
        let node = &self.timers[index as usize];
        let (previous, next, slot) = (node.previous, node.next, node.slot as usize);
        if previous == NONE {
            self.slots[slot] = next;
            if next == NONE {
                self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
            }
        } else {
            self.timers[previous as usize].next = next;
        }
        if next != NONE {
            self.timers[next as usize].previous = previous;
        }
    }

    fn vacate(&mut self, index: u32) {
        self.timers[index as usize].next = self.free;
        self.free = index;
        self.len -= 1;
    }
}

fn ceil_tick(ms: u64) -> u64 {
    (ms >> TICK_BITS) + u64::from(ms & ((1 << TICK_BITS) - 1) != 0)
}

fn slot_of(tick: u64, level: usize) -> usize {
    ((tick >> (level as u32 * LEVEL_BITS)) % SLOTS as u64) as usize
}

const TICK_BITS: u32 = 3;
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 6;
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fired(wheel: &mut Wheel<u32>, now_ms: u64) -> Vec<u32> {
        let mut values: Vec<_> = std::iter::from_fn(|| wheel.fire(now_ms)).collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn a_timer_fires_within_a_tick_of_its_deadline_and_never_early() {
        let mut wheel = Wheel::new(1_000);
        wheel.set(1_000, 1_500, 7);
        assert_eq!(fired(&mut wheel, 1_499), []);
        assert_eq!(fired(&mut wheel, 1_504), [7]);
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_ms(), None);
    }

    #[test]
    fn a_cleared_timer_does_not_fire() {
        let mut wheel = Wheel::new(0);
        let first = wheel.set(0, 100, 1);
        wheel.set(0, 100, 2);
        wheel.clear(first);
        assert_eq!(fired(&mut wheel, 10_000), [2]);
    }

    #[test]
    fn a_deadline_years_ahead_is_kept() {
        let mut wheel = Wheel::new(0);
        let years = 100 * 365 * 24 * 3_600_000;
        wheel.set(0, years, 1);
        assert_eq!(fired(&mut wheel, years - 8), []);
        assert_eq!(fired(&mut wheel, years + 8), [1]);
    }

    #[test]
    fn the_next_time_is_never_later_than_the_earliest_timer() {
        let mut wheel = Wheel::new(5);
        wheel.set(5, 1_000_000, 1);
        assert!(wheel.next_ms().unwrap() <= 1_000_007);
        wheel.set(5, 80, 2);
        assert_eq!(wheel.next_ms(), Some(80));
    }

    proptest! {
        #[test]
        fn it_fires_what_an_ordered_map_would_fire(
            start in 0u64..10_000_000,
            steps in prop::collection::vec((0u8..4, 0u64..1 << 32, 0u64..40), 1..80),
        ) {
            let mut wheel = Wheel::new(start);
            let mut now = start;
            let mut model: BTreeMap<u32, (u64, Timer)> = BTreeMap::new();
            for (id, (kind, distance, scale)) in steps.into_iter().enumerate() {
                let distance = distance >> scale.min(31);
                match kind {
                    0 | 1 => {
                        let timer = wheel.set(now, now + distance, id as u32);
                        model.insert(id as u32, (ceil_tick(now + distance).max((now >> 3) + 1), timer));
                    }
                    2 => {
                        if let Some((_, (_, timer))) = model.pop_first() {
                            wheel.clear(timer);
                        }
                    }
                    _ => {
                        now += distance;
                        let mut due: Vec<u32> = model
                            .iter()
                            .filter(|(_, (tick, _))| *tick <= now >> 3)
                            .map(|(id, _)| *id)
                            .collect();
                        due.sort_unstable();
                        model.retain(|_, (tick, _)| *tick > now >> 3);
                        prop_assert_eq!(fired(&mut wheel, now), due);
                    }
                }
                let earliest = model.values().map(|(tick, _)| *tick << 3).min();
                prop_assert_eq!(wheel.next_ms().is_some(), earliest.is_some());
                prop_assert!(wheel.next_ms() <= earliest);
            }
        }
    }
}
