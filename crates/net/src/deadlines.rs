//! The time-outs of many connections.

/// One deadline for each of many slots, soonest first.
///
/// A binary heap in which every slot knows its place: setting, moving and clearing a deadline cost
/// O(log n) and leave nothing behind, so ten thousand connections that move their deadlines with
/// every heartbeat take 24 bytes each and no more.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: Vec<Deadline>,
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at_ms: u64,
    slot: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Deadlines {
    /// Sets the deadline of a slot, or moves it.
    pub(crate) fn set(&mut self, slot: u32, at_ms: u64) {
        let index = slot as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, NOWHERE);
        }
        let deadline = Deadline { at_ms, slot };
        let place = self.places[index];
        if place == NOWHERE {
            self.heap.push(deadline);
            self.rise(self.heap.len() - 1);
        } else {
            let place = place as usize;
            let sooner = at_ms < self.heap[place].at_ms;
            self.heap[place] = deadline;
            if sooner {
                self.rise(place);
            } else {
                self.sink(place);
            }
        }
    }

    /// Removes the deadline of a slot, if it has one.
    pub(crate) fn clear(&mut self, slot: u32) {
        let Some(&place) = self.places.get(slot as usize) else { return };
        if place == NOWHERE {
            return;
        }
        let place = place as usize;
        self.places[slot as usize] = NOWHERE;
        let last = self.heap.pop().expect("a slot with a place is in the heap");
        if place < self.heap.len() {
            self.heap[place] = last;
            self.places[last.slot as usize] = place as u32;
            self.rise(place);
            self.sink(self.places[last.slot as usize] as usize);
        }
    }

    /// The soonest deadline.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.heap.first().map(|deadline| deadline.at_ms)
    }

    /// Removes and returns a slot whose deadline has come.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<u32> {
        let first = *self.heap.first()?;
        (first.at_ms <= now_ms).then(|| {
            self.clear(first.slot);
            first.slot
        })
    }

    /// Moves the deadline at a place towards the front until it is in order.
    fn rise(&mut self, mut place: usize) {
        let deadline = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].at_ms <= deadline.at_ms {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, deadline);
    }

    /// Moves the deadline at a place towards the end until it is in order.
    fn sink(&mut self, mut place: usize) {
        let deadline = self.heap[place];
        loop {
            let mut child = 2 * place + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].at_ms < self.heap[child].at_ms {
                child += 1;
            }
            if deadline.at_ms <= self.heap[child].at_ms {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, deadline);
    }

    fn put(&mut self, place: usize, deadline: Deadline) {
        self.heap[place] = deadline;
        self.places[deadline.slot as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn deadlines_come_in_the_order_of_their_time_whatever_the_order_they_were_set_in() {
        let mut deadlines = Deadlines::default();
        for (slot, at_ms) in [(3, 30), (1, 10), (4, 40), (2, 20)] {
            deadlines.set(slot, at_ms);
        }
        assert_eq!(deadlines.next_ms(), Some(10));
        assert_eq!(deadlines.pop_due(9), None);
        let due: Vec<u32> = std::iter::from_fn(|| deadlines.pop_due(35)).collect();
        assert_eq!(due, [1, 2, 3]);
        assert_eq!(deadlines.next_ms(), Some(40));
    }

    #[test]
    fn a_deadline_that_was_moved_comes_once_at_its_new_time() {
        let mut deadlines = Deadlines::default();
        deadlines.set(0, 10);
        deadlines.set(0, 50);
        assert_eq!(deadlines.pop_due(49), None);
        assert_eq!(deadlines.pop_due(50), Some(0));
        assert_eq!(deadlines.pop_due(u64::MAX), None);
    }

    #[test]
    fn a_cleared_deadline_never_comes() {
        let mut deadlines = Deadlines::default();
        deadlines.clear(7);
        deadlines.set(7, 10);
        deadlines.clear(7);
        assert_eq!(deadlines.next_ms(), None);
    }

    #[test]
    fn ten_thousand_random_changes_leave_the_same_deadlines_as_a_plain_map() {
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut deadlines = Deadlines::default();
        let mut model: HashMap<u32, u64> = HashMap::new();
        for step in 0..10_000_u64 {
            let slot = (random() % 200) as u32;
            match random() % 4 {
                0 => {
                    deadlines.clear(slot);
                    model.remove(&slot);
                }
                1 => {
                    if let Some(slot) = deadlines.pop_due(step) {
                        let at_ms = model.remove(&slot).expect("only what was set is due");
                        assert!(at_ms <= step);
                    } else {
                        assert!(model.values().all(|at_ms| *at_ms > step));
                    }
                }
                _ => {
                    let at_ms = step + random() % 500;
                    deadlines.set(slot, at_ms);
                    model.insert(slot, at_ms);
                }
            }
            assert_eq!(deadlines.next_ms(), model.values().min().copied());
        }
    }
}
