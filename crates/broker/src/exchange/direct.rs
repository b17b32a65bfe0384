//! Queues by binding key, byte for byte.

use std::collections::HashMap;

/// The table of a direct exchange.
#[derive(Clone, Debug)]
pub(crate) struct Direct<T> {
    keys: HashMap<Box<[u8]>, Vec<T>, foldhash::fast::RandomState>,
}

impl<T> Default for Direct<T> {
    fn default() -> Direct<T> {
        Direct { keys: HashMap::default() }
    }
}

impl<T: Clone + Eq> Direct<T> {
    /// Binds a queue with a key; it is not bound with that key yet.
    pub(crate) fn bind(&mut self, key: &[u8], queue: T) {
        self.keys.entry(key.into()).or_default().push(queue);
    }

    pub(crate) fn unbind(&mut self, key: &[u8], queue: &T) {
        let Some(queues) = self.keys.get_mut(key) else { return };
        queues.retain(|bound| bound != queue);
        if queues.is_empty() {
            self.keys.remove(key);
        }
    }

    /// The queues that are bound with a key, in the order in which they were bound.
    pub(crate) fn matching(&self, key: &[u8]) -> &[T] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_matches_byte_for_byte() {
        let mut direct = Direct::default();
        direct.bind(b"a", 1);
        direct.bind(b"a", 2);
        direct.bind(b"A", 3);
        direct.bind(b"", 4);
        assert_eq!(direct.matching(b"a"), [1, 2]);
        assert_eq!(direct.matching(b""), [4]);
        assert!(direct.matching(b"a ").is_empty());
        direct.unbind(b"a", &1);
        assert_eq!(direct.matching(b"a"), [2]);
        direct.unbind(b"a", &2);
        assert!(direct.matching(b"a").is_empty());
    }
}
