use std::collections::{BTreeMap, VecDeque};

use mochila_wire::SequenceNo;

use crate::LinkId;

/// The deliveries that we sent in a session and that are not settled yet, found by delivery id in
/// constant time.
///
/// Ids count up to 2³² and wrap around, so that inside they are absolute numbers: `base` is the
/// oldest in the dense part, `next` the one that the next delivery gets. Presettled deliveries
/// leave holes; when holes are most of what is kept, the few deliveries among them move to an
/// ordered map, so that one delivery that is never settled does not pin millions of holes.
#[derive(Debug)]
pub(crate) struct Unsettled {
    next: u64,
    dense: VecDeque<Entry>,
    dense_live: usize,
    stragglers: BTreeMap<u64, Entry>,
}

/// Sixteen bytes a delivery; a hole has no link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) token: u64,
    pub(crate) link: LinkId,
}

impl Unsettled {
    pub(crate) fn new(initial_id: u32) -> Unsettled {
        Unsettled {
            // One turn of the wheel ahead, so that ids before the first one are not negative.
            next: (1 << 32) + u64::from(initial_id),
            dense: VecDeque::new(),
            dense_live: 0,
            stragglers: BTreeMap::new(),
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.dense_live + self.stragglers.len()
    }

    /// The id that the next delivery gets.
    #[inline]
    pub(crate) fn next_id(&self) -> u32 {
        self.next as u32
    }

    /// Records an unsettled delivery and returns its id.
    #[inline]
    pub(crate) fn push(&mut self, token: u64, link: LinkId) -> u32 {
        self.compact_if_sparse();
        let id = self.next_id();
        self.next += 1;
        self.dense.push_back(Entry { token, link });
        self.dense_live += 1;
        id
    }

    /// Passes over the id of a delivery that is settled when sent.
    #[inline]
    pub(crate) fn skip(&mut self) -> u32 {
        self.compact_if_sparse();
        let id = self.next_id();
        self.next += 1;
        if self.dense_live > 0 {
            self.dense.push_back(HOLE);
        }
        id
    }

    /// Clamps a range of ids to what may be unsettled here; none if nothing is.
    pub(crate) fn clamp(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let (first, last) = self.absolute(first, last)?;
        Some((first as u32, last as u32))
    }

    /// Visits the unsettled deliveries of a range in order, and forgets them if told to.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        first: u32,
        last: u32,
        remove: bool,
        f: &mut impl FnMut(Entry, u32),
    ) {
        let Some((first, last)) = self.absolute(first, last) else { return };
        if !self.stragglers.is_empty() {
            self.visit_stragglers(first, last, remove, f);
        }
        let base = self.base();
        if last < base {
            return;
        }
        let start = first.saturating_sub(base) as usize;
        let end = (last - base) as usize;
        for (offset, entry) in self.dense.range_mut(start..=end).enumerate() {
            if entry.link.is_none() {
                continue;
            }
            f(*entry, (base + (start + offset) as u64) as u32);
            if remove {
                *entry = HOLE;
                self.dense_live -= 1;
            }
        }
        if remove && start == 0 {
            self.trim();
        }
    }

    /// Forgets every delivery of a link.
    pub(crate) fn remove_link(&mut self, link: LinkId) {
        self.stragglers.retain(|_, entry| entry.link != link);
        for entry in &mut self.dense {
            if entry.link == link {
                *entry = HOLE;
                self.dense_live -= 1;
            }
        }
        self.trim();
    }

    /// Visits every unsettled delivery of a link, in order.
    pub(crate) fn of_link(&self, link: LinkId) -> impl Iterator<Item = (u64, u32)> {
        let base = self.base();
        let dense = self.dense.iter().enumerate().map(move |(i, e)| (base + i as u64, e));
        let stragglers = self.stragglers.iter().map(|(id, entry)| (*id, entry));
        stragglers
            .chain(dense)
            .filter(move |(_, entry)| entry.link == link)
            .map(|(id, entry)| (entry.token, id as u32))
    }

    /// Returns memory that a burst has left behind.
    pub(crate) fn shrink(&mut self) {
        if self.dense.is_empty() {
            self.dense = VecDeque::new();
        }
    }

    fn base(&self) -> u64 {
        self.next - self.dense.len() as u64
    }

    fn absolute(&self, first: u32, last: u32) -> Option<(u64, u64)> {
        let oldest = match self.stragglers.keys().next() {
            Some(straggler) => *straggler,
            None => self.base(),
        };
        let first = self.to_absolute(first).max(oldest);
        let last = self.to_absolute(last).min(self.next - 1);
        (first <= last).then_some((first, last))
    }

    fn to_absolute(&self, id: u32) -> u64 {
        // Serial arithmetic: an id is at most half the range away from the next one.
        let distance = SequenceNo(id).distance_from(SequenceNo(self.next_id())) as i32;
        self.next.saturating_add_signed(i64::from(distance))
    }

    fn trim(&mut self) {
        if self.dense_live == 0 {
            self.dense.clear();
            return;
        }
        while self.dense.front().is_some_and(|entry| entry.link.is_none()) {
            self.dense.pop_front();
        }
    }

    fn visit_stragglers(
        &mut self,
        first: u64,
        last: u64,
        remove: bool,
        f: &mut impl FnMut(Entry, u32),
    ) {
        let found: Vec<u64> = self.stragglers.range(first..=last).map(|(id, _)| *id).collect();
        for id in found {
            f(self.stragglers[&id], id as u32);
            if remove {
                self.stragglers.remove(&id);
            }
        }
    }

    #[inline]
    fn compact_if_sparse(&mut self) {
        if self.dense.len() >= COMPACT_AT && self.dense_live < self.dense.len() / 4 {
            self.compact();
        }
    }

    #[cold]
    fn compact(&mut self) {
        let base = self.base();
        for (offset, entry) in self.dense.drain(..).enumerate() {
            if !entry.link.is_none() {
                self.stragglers.insert(base + offset as u64, entry);
            }
        }
        self.dense_live = 0;
    }
}

const HOLE: Entry = Entry { token: 0, link: LinkId::NONE };
/// Fewer holes than this are not worth a map.
const COMPACT_AT: usize = 4096;
const _: () = assert!(size_of::<Entry>() == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Key;

    const LINK: LinkId = LinkId(Key { index: 0, generation: 1 });
    const OTHER: LinkId = LinkId(Key { index: 1, generation: 1 });

    fn settle(unsettled: &mut Unsettled, first: u32, last: u32) -> Vec<u64> {
        let mut tokens = Vec::new();
        unsettled.visit(first, last, true, &mut |entry, _| tokens.push(entry.token));
        tokens
    }

    #[test]
    fn ranges_are_settled_in_any_order_and_once() {
        let mut unsettled = Unsettled::new(0);
        for token in 0..10 {
            unsettled.push(token, LINK);
        }
        assert_eq!(settle(&mut unsettled, 3, 5), [3, 4, 5]);
        assert_eq!(settle(&mut unsettled, 0, 6), [0, 1, 2, 6]);
        assert_eq!(settle(&mut unsettled, 0, u32::MAX >> 1), [7, 8, 9]);
        assert_eq!(settle(&mut unsettled, 0, 9), [0_u64; 0]);
        assert_eq!(unsettled.len(), 0);
    }

    #[test]
    fn delivery_ids_wrap_around() {
        let mut unsettled = Unsettled::new(u32::MAX - 1);
        let ids: Vec<u32> = (0..4).map(|token| unsettled.push(token, LINK)).collect();
        assert_eq!(ids, [u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(settle(&mut unsettled, u32::MAX, 0), [1, 2]);
        assert_eq!(settle(&mut unsettled, u32::MAX - 1, 1), [0, 3]);
    }

    #[test]
    fn ids_that_were_never_sent_are_ignored() {
        let mut unsettled = Unsettled::new(100);
        unsettled.push(1, LINK);
        assert_eq!(unsettled.clamp(101, 200), None);
        assert_eq!(unsettled.clamp(0, 99), None);
        assert_eq!(unsettled.clamp(50, 5000), Some((100, 100)));
        assert_eq!(settle(&mut unsettled, 101, 200), [0_u64; 0]);
        assert_eq!(unsettled.len(), 1);
    }

    #[test]
    fn one_delivery_that_is_never_settled_does_not_pin_the_holes_after_it() {
        let mut unsettled = Unsettled::new(u32::MAX - 50_000);
        let first = unsettled.push(42, LINK);
        for _ in 0..100_000 {
            unsettled.skip();
        }
        assert!(unsettled.dense.len() <= COMPACT_AT);
        assert_eq!(settle(&mut unsettled, first, first), [42]);
        assert_eq!(unsettled.len(), 0);
    }

    #[test]
    fn stragglers_and_recent_deliveries_are_visited_in_order() {
        let mut unsettled = Unsettled::new(0);
        unsettled.push(1, LINK);
        for _ in 0..COMPACT_AT {
            unsettled.skip();
        }
        unsettled.push(2, OTHER);
        let last = unsettled.push(3, LINK);
        let of_link: Vec<u64> = unsettled.of_link(LINK).map(|(token, _)| token).collect();
        assert_eq!(of_link, [1, 3]);
        assert_eq!(settle(&mut unsettled, 0, last), [1, 2, 3]);
    }

    #[test]
    fn a_link_takes_its_deliveries_with_it() {
        let mut unsettled = Unsettled::new(0);
        unsettled.push(1, LINK);
        unsettled.push(2, OTHER);
        unsettled.push(3, LINK);
        unsettled.remove_link(LINK);
        assert_eq!(settle(&mut unsettled, 0, 2), [2]);
    }
}
