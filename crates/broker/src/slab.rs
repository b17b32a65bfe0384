//! A table whose keys are small numbers and go stale.

/// Values in slots that are used again; a key carries the generation of its value, which no other
/// value of the table has had.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The first free slot.
    free: u32,
    len: u32,
    next_generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    /// The next free slot, if this one is.
    next: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: NONE, len: 0, next_generation: 0 }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Puts a value into a slot: its number and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        self.len += 1;
        let slot = Slot { generation, next: NONE, value: Some(value) };
        if self.free == NONE {
            self.slots.push(slot);
            return ((self.slots.len() - 1) as u32, generation);
        }
        let index = self.free;
        let vacant = std::mem::replace(&mut self.slots[index as usize], slot);
        self.free = vacant.next;
        (index, generation)
    }

    pub(crate) fn get(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == generation)
    }

    pub(crate) fn get_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == generation)
    }

    /// The value in a slot, whatever its generation.
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// The value in a slot, whatever its generation.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// The generation of the value in a slot.
    pub(crate) fn generation(&self, index: u32) -> Option<u32> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref().map(|_| slot.generation)
    }

    pub(crate) fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.next = self.free;
        self.free = index;
        self.len -= 1;
        if self.len == 0 {
            (self.slots, self.free) = (Vec::new(), NONE);
        }
        Some(value)
    }

    /// All values with their slots and generations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ((u32, u32), &T)> {
        let keyed = |(index, slot): (usize, &'_ Slot<T>)| (index as u32, slot.generation);
        self.slots
            .iter()
            .enumerate()
            .filter_map(move |(index, slot)| Some((keyed((index, slot)), slot.value.as_ref()?)))
    }

    /// All values with their slots and generations.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = ((u32, u32), &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let key = (index as u32, slot.generation);
            slot.value.as_mut().map(|value| (key, value))
        })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_value_that_is_gone_does_not_find_the_one_in_its_place() {
        let mut slab = Slab::default();
        let (index, generation) = slab.insert("old");
        assert_eq!(slab.remove(index, generation), Some("old"));
        assert_eq!(slab.insert("new").0, index);
        assert_eq!(slab.get(index, generation), None);
        assert_eq!(slab.remove(index, generation), None);
        assert_eq!(slab.at(index), Some(&"new"));
    }

    #[test]
    fn an_empty_table_takes_no_memory() {
        let mut slab = Slab::default();
        let keys: Vec<_> = (0..100).map(|n| slab.insert(n)).collect();
        assert_eq!(slab.len(), 100);
        keys.iter()
            .for_each(|(index, generation)| assert!(slab.remove(*index, *generation).is_some()));
        assert_eq!((slab.len(), slab.slots.capacity()), (0, 0));
    }
}
