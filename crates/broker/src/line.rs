//! A line of those who wait, served in the order in which they joined.

/// A first-in first-out list from whose middle anybody can leave in constant time.
#[derive(Debug)]
pub(crate) struct Line<T> {
    nodes: Vec<Node<T>>,
    first: u32,
    last: u32,
    free: u32,
    len: u32,
    next_generation: u32,
}

/// Where somebody stands in a [`Line`]. It goes stale when they are served; leaving with a stale
/// place changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
struct Node<T> {
    generation: u32,
    previous: u32,
    next: u32,
    waiting: Option<T>,
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line { nodes: Vec::new(), first: NONE, last: NONE, free: NONE, len: 0, next_generation: 0 }
    }
}

impl<T> Line<T> {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Joins at the end.
    pub(crate) fn join(&mut self, waiting: T) -> Place {
        let index = self.vacant();
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let node = &mut self.nodes[index as usize];
        *node = Node { generation, previous: self.last, next: NONE, waiting: Some(waiting) };
        match self.last {
            NONE => self.first = index,
            last => self.nodes[last as usize].next = index,
        }
        self.last = index;
        self.len += 1;
        Place { index, generation }
    }

    /// True if the place is not stale.
    pub(crate) fn has(&self, place: Place) -> bool {
        let node = self.nodes.get(place.index as usize);
        node.is_some_and(|node| node.generation == place.generation && node.waiting.is_some())
    }

    /// Leaves; `None` when the place is stale.
    pub(crate) fn leave(&mut self, place: Place) -> Option<T> {
        if self.has(place) { self.unlink(place.index) } else { None }
    }

    /// Serves the one who has waited longest.
    pub(crate) fn serve(&mut self) -> Option<T> {
        if self.first == NONE {
            return None;
        }
        self.unlink(self.first)
    }

    /// Everybody in order, with the place where they stand.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place, &T)> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let place = Place { index: at, generation: node.generation };
            at = node.next;
            node.waiting.as_ref().map(|waiting| (place, waiting))
        })
    }

    fn vacant(&mut self) -> u32 {
        if self.free == NONE {
            self.nodes.push(Node { generation: 0, previous: NONE, next: NONE, waiting: None });
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        index
    }

    fn unlink(&mut self, index: u32) -> Option<T> {
        let node = &mut self.nodes[index as usize];
        let (previous, next) = (node.previous, node.next);
        let waiting = node.waiting.take();
        node.next = self.free;
        self.free = index;
        match previous {
            NONE => self.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        self.len -= 1;
        if self.len == 0 && self.nodes.capacity() > KEPT {
            let next_generation = self.next_generation;
            *self = Line { next_generation, ..Line::default() };
        }
        waiting
    }
}

const NONE: u32 = u32::MAX;
/// An empty line keeps the memory for no more than this many.
const KEPT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_is_served_first() {
        let mut line = Line::default();
        line.join("a");
        line.join("b");
        assert_eq!((line.serve(), line.serve(), line.serve()), (Some("a"), Some("b"), None));
    }

    #[test]
    fn somebody_may_leave_from_the_middle_and_the_others_keep_their_order() {
        let mut line = Line::default();
        line.join(1);
        let second = line.join(2);
        line.join(3);
        assert_eq!(line.leave(second), Some(2));
        assert_eq!(line.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(line.len(), 2);
    }

    #[test]
    fn a_stale_place_does_not_push_out_whoever_stands_there_now() {
        let mut line = Line::default();
        let place = line.join("old");
        assert_eq!(line.serve(), Some("old"));
        line.join("new");
        assert_eq!(line.leave(place), None);
        assert_eq!(line.serve(), Some("new"));
        assert!(line.is_empty());
    }
}
