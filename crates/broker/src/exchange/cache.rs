//! What has been found out about routing keys, for the next message with the same key.

use arc_swap::{ArcSwapOption, Guard};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Routes of a limited number of keys; many threads read and write it without a lock.
///
/// It belongs to one state of the bindings: whoever changes those begins a new one.
#[derive(Debug)]
pub(crate) struct RouteCache<T> {
    places: OnceLock<Box<Places<T>>>,
    hasher: foldhash::fast::FixedState,
}

/// A key has one place, and the last key that was put there has it.
#[derive(Debug)]
struct Places<T> {
    routes: [ArcSwapOption<Route<T>>; PLACES],
    /// One bit for each place where there is a route, so that there is little to forget where
    /// little is known.
    taken: [AtomicU64; PLACES / 64],
}

/// The queues of one key.
#[derive(Debug)]
pub(crate) struct Route<T> {
    key: Box<[u8]>,
    pub(crate) queues: Box<[T]>,
}

impl<T> Default for RouteCache<T> {
    fn default() -> RouteCache<T> {
        RouteCache { places: OnceLock::new(), hasher: foldhash::fast::FixedState::default() }
    }
}

impl<T> Clone for RouteCache<T> {
    /// Nothing is known yet about what the copy is made for.
    fn clone(&self) -> RouteCache<T> {
        RouteCache::default()
    }
}

impl<T> RouteCache<T> {
    /// The route of a key, if it is known.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Guard<Option<Arc<Route<T>>>>> {
        let route = self.places.get()?.routes[self.place(key)].load();
        route.as_ref().is_some_and(|route| *route.key == *key).then_some(route)
    }

    /// Keeps the route of a key, unless it is a large one: those are not looked up for the sake of
    /// the time that it takes to find them.
    pub(crate) fn put(&self, key: &[u8], queues: &[T])
    where
        T: Clone,
    {
        if key.len() > MOST_KEY_BYTES || queues.len() > MOST_QUEUES {
            return;
        }
        let places = self.places.get_or_init(|| {
            Box::new(Places {
                routes: std::array::from_fn(|_| ArcSwapOption::empty()),
                taken: std::array::from_fn(|_| AtomicU64::new(0)),
            })
        });
        let place = self.place(key);
        let route = Route { key: key.into(), queues: queues.into() };
        places.routes[place].store(Some(Arc::new(route)));
        // Relaxed: whoever forgets has the cache for himself.
        places.taken[place / 64].fetch_or(1 << (place % 64), Ordering::Relaxed);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        let Some(places) = self.places.get_mut() else { return };
        for (word, taken) in places.taken.iter_mut().enumerate() {
            let mut bits = std::mem::take(taken.get_mut());
            while bits != 0 {
                places.routes[word * 64 + bits.trailing_zeros() as usize].store(None);
                bits &= bits - 1;
            }
        }
    }

    fn place(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % PLACES
    }
}

/// How many keys are known at most.
const PLACES: usize = 1024;
/// A longer key is not kept.
const MOST_KEY_BYTES: usize = 256;
/// The route of a key that goes to more queues than this is not kept.
const MOST_QUEUES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn known(cache: &RouteCache<usize>, key: &str) -> Option<Vec<usize>> {
        let route = cache.get(key.as_bytes())?;
        route.as_ref().map(|route| route.queues.to_vec())
    }

    #[test]
    fn a_route_is_known_until_the_bindings_change() {
        let mut cache = RouteCache::default();
        assert_eq!(known(&cache, "a"), None);
        cache.put(b"a", &[1, 2]);
        assert_eq!(known(&cache, "a"), Some(vec![1, 2]));
        assert_eq!(known(&cache.clone(), "a"), None);
        cache.clear();
        assert_eq!(known(&cache, "a"), None);
    }

    #[test]
    fn however_many_keys_there_are_it_keeps_a_limited_number() {
        let cache = RouteCache::default();
        let keys: Vec<String> = (0..10 * PLACES).map(|number| number.to_string()).collect();
        for key in &keys {
            cache.put(key.as_bytes(), &[key.len()]);
        }
        let known: Vec<_> =
            keys.iter().filter_map(|key| Some((key, known(&cache, key)?))).collect();
        assert!((PLACES / 2..=PLACES).contains(&known.len()), "{}", known.len());
        assert!(known.iter().all(|(key, queues)| queues == &[key.len()]));
    }

    #[test]
    fn what_is_large_is_not_kept() {
        let cache = RouteCache::default();
        cache.put(&[b'a'; MOST_KEY_BYTES + 1], &[1]);
        cache.put(b"b", &[1; MOST_QUEUES + 1]);
        assert!(cache.places.get().is_none());
    }
}
