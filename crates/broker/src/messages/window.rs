//! Boxes by number, as they come and go in a queue.

use std::collections::{BTreeMap, VecDeque};

/// Boxes whose numbers mostly follow one another, each found in constant time.
///
/// They stand in a row that moves along as new ones come at its end and old ones go. When too
/// little of the row is left, those that stay behind at its start move to an ordered map: one that
/// stays for days keeps no room for the millions that have passed it.
#[derive(Debug)]
pub(crate) struct Window<T> {
    /// The number of `row[0]`.
    first: u64,
    /// Neither its first nor its last place is empty.
    row: VecDeque<Option<Box<T>>>,
    /// How many places of the row are taken.
    taken: usize,
    /// Those that stay behind: all have lower numbers than the row. Mostly there are none.
    behind: Option<Box<Behind<T>>>,
}

type Behind<T> = BTreeMap<u64, Box<T>>;

impl<T> Default for Window<T> {
    fn default() -> Window<T> {
        Window { first: 0, row: VecDeque::new(), taken: 0, behind: None }
    }
}

impl<T> Window<T> {
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        match self.row.get(self.place(number)) {
            Some(place) => place.as_deref(),
            None => self.behind.as_ref()?.get(&number).map(Box::as_ref),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number);
        match self.row.get_mut(place) {
            Some(place) => place.as_deref_mut(),
            None => self.behind.as_mut()?.get_mut(&number).map(Box::as_mut),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken == 0 && self.behind.is_none()
    }

    /// The box of a number, which comes into being if it is not there.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, number: u64, new: impl FnOnce() -> T) -> &mut T {
        if !matches!(self.row.get(self.place(number)), Some(Some(_))) {
            return self.make(number, new);
        }
        self.get_mut(number).expect("it is in the row")
    }

    #[inline(never)]
    fn make(&mut self, number: u64, new: impl FnOnce() -> T) -> &mut T {
        if self.get(number).is_none() {
            self.insert(number, Box::new(new()));
        }
        self.get_mut(number).expect("it has been added if it was not there")
    }

    /// The first at or after `from`.
    pub(crate) fn next(&self, from: u64) -> Option<(u64, &T)> {
        if let Some((number, it)) = self.next_behind(from) {
            return Some((number, it));
        }
        let start = from.saturating_sub(self.first) as usize;
        let rest = self.row.range(start.min(self.row.len())..);
        let numbered = rest.zip(self.first + start as u64..);
        numbered.filter_map(|(place, number)| Some((number, place.as_deref()?))).next()
    }

    /// The last.
    pub(crate) fn last(&self) -> Option<(u64, &T)> {
        if let Some(Some(last)) = self.row.back() {
            return Some((self.first + self.row.len() as u64 - 1, last));
        }
        let (number, it) = self.behind.as_ref()?.last_key_value()?;
        Some((*number, it))
    }

    /// Removes one, if it is there.
    pub(crate) fn remove(&mut self, number: u64) {
        let place = self.place(number);
        let Some(place) = self.row.get_mut(place) else {
            self.remove_behind(number);
            return;
        };
        self.taken -= usize::from(place.take().is_some());
        self.tighten();
    }

    /// The numbers that there are, from `first` to `last`.
    pub(crate) fn numbers(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        let mut next = self.next(first);
        std::iter::from_fn(move || {
            let (number, _) = next.filter(|(number, _)| *number <= last)?;
            next = self.next(number + 1);
            Some(number)
        })
    }

    /// Where a number stands in the row; far beyond it if it is lower.
    #[inline]
    fn place(&self, number: u64) -> usize {
        number.wrapping_sub(self.first) as usize
    }

    fn next_behind(&self, from: u64) -> Option<(u64, &T)> {
        let behind = self.behind.as_ref().filter(|_| from < self.first)?;
        behind.range(from..).next().map(|(number, it)| (*number, it.as_ref()))
    }

    fn remove_behind(&mut self, number: u64) {
        if let Some(behind) = &mut self.behind {
            behind.remove(&number);
            if behind.is_empty() {
                self.behind = None;
            }
        }
    }

    fn insert(&mut self, number: u64, it: Box<T>) {
        if self.row.is_empty() && self.next_behind(number).is_none() {
            self.first = number;
        }
        if number < self.first {
            self.insert_before(number, it);
            return;
        }
        let place = self.place(number);
        if place >= room_for(self.taken + 1) {
            self.leave_behind(self.row.len());
            self.first = number;
        }
        let place = self.place(number);
        if place >= self.row.len() {
            self.row.resize_with(place + 1, || None);
        }
        self.row[place] = Some(it);
        self.taken += 1;
    }

    /// Adds one that has a lower number than those in the row: there if it is near.
    fn insert_before(&mut self, number: u64, it: Box<T>) {
        let distance = (self.first - number) as usize;
        let is_near = self.row.len().saturating_add(distance) <= room_for(self.taken + 1);
        if !is_near || self.next_behind(number).is_some() {
            self.behind.get_or_insert_default().insert(number, it);
            return;
        }
        (1..distance).for_each(|_| self.row.push_front(None));
        self.row.push_front(Some(it));
        self.first = number;
        self.taken += 1;
    }

    /// Gives up places at the ends that nobody needs, and those of the few that stay behind.
    fn tighten(&mut self) {
        while let Some(None) = self.row.back() {
            self.row.pop_back();
        }
        let empty = self.row.iter().take_while(|place| place.is_none()).count();
        self.row.drain(..empty);
        self.first += empty as u64;
        while self.row.len() > room_for(self.taken) {
            let rest = self.row.iter().skip(1);
            let step = 1 + rest.take_while(|place| place.is_none()).count();
            self.leave_behind(step);
        }
        if self.row.capacity() > FEW && self.row.capacity() / SPARSE > self.row.len() {
            self.row.shrink_to((self.row.len() * 2).max(FEW));
        }
    }

    /// Moves those in so many places at the start of the row to the map.
    fn leave_behind(&mut self, places: usize) {
        for (place, number) in self.row.drain(..places).zip(self.first..) {
            if let Some(it) = place {
                self.taken -= 1;
                self.behind.get_or_insert_default().insert(number, it);
            }
        }
        self.first += places as u64;
    }
}

/// How many places the row may have for so many boxes.
fn room_for(taken: usize) -> usize {
    (taken * SPARSE).max(FEW)
}

/// Of so many places at least one is taken.
const SPARSE: usize = 4;
/// So many places are worth nothing.
const FEW: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_that_stays_behind_keeps_no_room_for_those_that_have_gone() {
        let mut window = Window::default();
        for number in 0..1_000_000 {
            window.get_or_insert_with(number, || number);
            if number >= 10 {
                window.remove(number - 9);
            }
            assert!(window.row.len() <= FEW);
        }
        assert_eq!(window.get(0), Some(&0));
        assert_eq!(window.numbers(0, u64::MAX).count(), 10);
        assert_eq!(window.next(1), Some((999_991, &999_991)));
    }

    #[test]
    fn a_long_row_gives_its_memory_back() {
        let mut window = Window::default();
        for number in 0..100_000 {
            window.get_or_insert_with(number, || ());
        }
        (0..99_990).for_each(|number| window.remove(number));
        assert!(window.row.capacity() <= 2 * FEW);
        assert_eq!(window.numbers(0, u64::MAX).next(), Some(99_990));
    }

    #[test]
    fn those_that_come_back_in_reverse_stand_in_the_row() {
        let mut window = Window::default();
        for number in (1_000..2_000).rev() {
            window.get_or_insert_with(number, || ());
        }
        assert_eq!((window.row.len(), window.behind.is_none()), (1_000, true));
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map(
            // Now and then far ahead, mostly near by.
            steps in prop::collection::vec(
                (prop_oneof![8 => 0u64..100, 1 => 0u64..100_000], any::<bool>(), any::<bool>()),
                1..300,
            ),
        ) {
            let mut window = Window::default();
            let mut model = BTreeMap::new();
            let mut base = 0;
            for (step, (distance, adds, moves)) in steps.into_iter().enumerate() {
                let number = base + distance;
                if adds {
                    let it = *model.entry(number).or_insert(step);
                    prop_assert_eq!(*window.get_or_insert_with(number, || step), it);
                } else {
                    model.remove(&number);
                    window.remove(number);
                }
                if moves {
                    base = number;
                } else {
                    base -= (base / 10).min(distance);
                }
                prop_assert_eq!(window.get(number), model.get(&number));
                prop_assert_eq!(window.get_mut(base).copied(), model.get(&base).copied());
                let last = model.last_key_value();
                prop_assert_eq!(window.last(), last.map(|(number, it)| (*number, it)));
                let next = model.range(base..).next();
                prop_assert_eq!(window.next(base), next.map(|(number, it)| (*number, it)));
                let numbers: Vec<u64> = window.numbers(base, base + 50_000).collect();
                let expected: Vec<u64> = model.range(base..=base + 50_000).map(|it| *it.0).collect();
                prop_assert_eq!(numbers, expected);
                prop_assert!(window.row.len() <= room_for(window.taken));
                let taken = window.row.iter().flatten().count();
                let behind = window.behind.as_ref().map_or(0, |behind| behind.len());
                prop_assert_eq!((window.taken, taken + behind), (taken, model.len()));
            }
        }
    }
}
