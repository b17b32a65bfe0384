//! Numbers of groups, found by the hashes of their names.

use super::link::UNGROUPED;
use std::hint::black_box;

/// A table with open addressing: who looks goes on from the place that the hash means until the
/// group or an empty place is met. No more than half of the places are taken, so that is soon.
///
/// A place is no more than a hash and a number: of a hundred thousand groups most of it stays in
/// the caches.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// None, or a power of two.
    places: Vec<Place>,
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    /// The number of a group, or `UNGROUPED` if the place is empty.
    number: u32,
}

impl Index {
    /// The group with this hash that `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        while let Some(place) = self.places.get(at)
            && place.number != UNGROUPED
        {
            if place.hash == hash && is_it(place.number) {
                return Some(place.number);
            }
            at = self.after(at);
        }
        None
    }

    /// Reads the places that hashes mean, all at once: who goes there one by one waits for none.
    #[inline]
    pub(super) fn warm(&self, hashes: impl Iterator<Item = u32>) {
        if self.places.len() > IN_CACHE {
            let places = hashes.filter_map(|hash| self.places.get(self.home(hash)));
            black_box(places.fold(0, |seen, place| seen ^ place.number));
        }
    }

    /// Adds a group that is not there.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if (self.taken + 1) * 2 > self.places.len() {
            self.rebuild((self.places.len() * 2).max(LEAST));
        }
        self.taken += 1;
        self.put(Place { hash, number });
    }

    /// Removes a group if it is there.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let mut hole = self.home(hash);
        while let Some(place) = self.places.get(hole)
            && place.number != number
        {
            if place.number == UNGROUPED {
                return;
            }
            hole = self.after(hole);
        }
        if self.places.is_empty() {
            return;
        }
        // Those behind it move up, unless they would come before the place that they are meant for.
        let mut at = self.after(hole);
        while self.places[at].number != UNGROUPED {
            let home = self.home(self.places[at].hash);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.places[hole] = EMPTY;
        self.taken -= 1;
        // Of many groups that are gone the table does not stay for long.
        if self.places.len() > LEAST && self.taken * 16 < self.places.len() {
            self.rebuild(self.places.len() / 4);
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.places.len() * size_of::<Place>()) as u64
    }

    #[cold]
    fn rebuild(&mut self, len: usize) {
        let places = std::mem::replace(&mut self.places, vec![EMPTY; len]);
        let taken = places.into_iter().filter(|place| place.number != UNGROUPED);
        taken.for_each(|place| self.put(place));
    }

    fn put(&mut self, place: Place) {
        let mut at = self.home(place.hash);
        while self.places[at].number != UNGROUPED {
            at = self.after(at);
        }
        self.places[at] = place;
    }

    /// The place that a hash means.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & self.places.len().wrapping_sub(1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// How many steps it is from one place to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }
}

const EMPTY: Place = Place { hash: 0, number: UNGROUPED };
/// A table has no fewer places, unless it has none.
const LEAST: usize = 32;
/// A table with so few places is in the caches anyway.
const IN_CACHE: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_table_becomes_small_again() {
        let mut index = Index::default();
        (0..10_000u32).for_each(|number| index.insert(number.wrapping_mul(0x9e37_79b9), number));
        assert!(index.memory_bytes() >= 160_000);
        (0..10_000u32).for_each(|number| index.remove(number.wrapping_mul(0x9e37_79b9), number));
        assert_eq!((index.taken, index.places.len()), (0, LEAST));
    }

    proptest! {
        // Few hashes, so that many mean the same place.
        #[test]
        fn whatever_was_added_is_found_until_it_is_removed(
            steps in prop::collection::vec((0u32..40, any::<bool>()), 1..400),
            spread in 1u32..20,
        ) {
            let mut index = Index::default();
            let mut model = BTreeMap::new();
            let hash_of = |number: u32| (number / 2 * spread) % 64 + (number % 3) * 1024;
            for (number, adds) in steps {
                let hash = hash_of(number);
                if adds && model.insert(number, hash).is_none() {
                    index.insert(hash, number);
                } else if !adds {
                    model.remove(&number);
                    index.remove(hash, number);
                }
                for number in 0..40 {
                    let found = index.find(hash_of(number), |other| other == number);
                    prop_assert_eq!(found, model.get(&number).map(|_| number));
                }
                prop_assert_eq!(index.taken, model.len());
            }
        }
    }
}
