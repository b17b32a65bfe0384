//! The different names that the messages of a batch have.

use crate::settings::Naming;
use std::ops::Range;

/// Names, each with a number and kept and hashed once: a batch mostly has many messages of few.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Vec<FoundName>,
    /// The names, one after another.
    texts: Vec<u8>,
    /// Of the names that end alike, the number of that which came last. It may be one of an earlier
    /// batch, so whoever looks has to compare.
    recent: Vec<u32>,
}

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageName<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) hash: u32,
}

#[derive(Clone, Copy, Debug)]
struct FoundName {
    hash: u32,
    start: u32,
    len: u32,
}

impl NameTable {
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.texts.clear();
        self.texts.shrink_to(MOST_KEPT);
    }

    /// How many names there are. Some may be there twice.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<MessageName<'_>> {
        let found = self.names.get(number as usize)?;
        Some(MessageName { name: &self.texts[found.range()], hash: found.hash })
    }

    /// The number of a name, which is added if it has not come lately.
    ///
    /// Names that look alike push each other out: they are only hashed once more.
    #[inline]
    pub(super) fn number(&mut self, name: &[u8], naming: &Naming) -> u32 {
        let place = place_of(name);
        if let Some(recent) = self.recent.get(place)
            && let Some(found) = self.names.get(*recent as usize)
            && self.texts.get(found.range()) == Some(name)
        {
            return *recent;
        }
        self.add(name, place, naming)
    }

    fn add(&mut self, name: &[u8], place: usize, naming: &Naming) -> u32 {
        let number = self.names.len() as u32;
        let (start, len) = (self.texts.len() as u32, name.len() as u32);
        self.texts.extend_from_slice(name);
        self.names.push(FoundName { hash: naming.hash(name), start, len });
        if self.recent.is_empty() {
            self.recent.resize(PLACES, 0);
        }
        self.recent[place] = number;
        number
    }
}

impl FoundName {
    #[inline]
    fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// Where a name is remembered. Names differ most at their ends, where numbers count up.
#[inline]
fn place_of(name: &[u8]) -> usize {
    let [before, last] = match name {
        [.., before, last] => [*before, *last],
        [last] => [0, *last],
        [] => [0, 0],
    };
    (usize::from(before) * 10 + usize::from(last)) % PLACES
}

const PLACES: usize = 64;
/// So many bytes of memory for names are kept for the next batch.
const MOST_KEPT: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::QueueSettings;

    #[test]
    fn a_name_keeps_its_number_until_one_that_looks_alike_comes() {
        let settings = QueueSettings { last_value_key: Some("key".into()), ..Default::default() };
        let naming = Naming::of_keys(&settings).unwrap();
        let mut table = NameTable::default();
        let names = ["", "1", "a11", "b11", "b11", "a11", "1", ""];
        let numbers = names.map(|name| table.number(name.as_bytes(), &naming));
        assert_eq!(numbers, [0, 1, 2, 3, 3, 4, 1, 0]);
        for (name, number) in names.iter().zip(numbers) {
            let found = table.get(number).unwrap();
            let hash = naming.hash(name.as_bytes());
            assert_eq!(found, MessageName { name: name.as_bytes(), hash });
        }
    }

    #[test]
    fn names_of_an_earlier_batch_are_not_taken_for_those_of_this_one() {
        let settings = QueueSettings { last_value_key: Some("key".into()), ..Default::default() };
        let naming = Naming::of_keys(&settings).unwrap();
        let mut table = NameTable::default();
        (0..100u8).for_each(|name| _ = table.number(&[b'x', name], &naming));
        table.clear();
        let numbers: Vec<_> = (0..100u8).map(|name| table.number(&[name], &naming)).collect();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}
