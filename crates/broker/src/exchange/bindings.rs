//! The bindings of an exchange, and the table that follows from them.

use super::binding::{Binding, Target};
use super::matcher::Matcher;
use super::{ExchangeError, ExchangeKind};
use std::collections::HashMap;
use std::sync::Arc;

/// What whoever binds and unbinds changes, under the lock of the exchange.
#[derive(Debug)]
pub(crate) struct Bindings {
    pub(crate) table: Arc<Matcher<Target>>,
    /// By the address of the queue: an exchange may have many queues, and a queue a few bindings.
    by_queue: HashMap<usize, Vec<Arc<Binding>>, foldhash::fast::RandomState>,
    count: usize,
    /// The exchange has been deleted.
    pub(crate) closed: bool,
    /// There has been a binding.
    pub(crate) used: bool,
}

impl Bindings {
    pub(crate) fn new(kind: ExchangeKind) -> Bindings {
        Bindings {
            table: Arc::new(Matcher::new(kind)),
            by_queue: HashMap::default(),
            count: 0,
            closed: false,
            used: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Binding>> {
        self.by_queue.values().flatten()
    }

    /// The binding of a queue with a key.
    pub(crate) fn get(&self, queue: &Target, key: &str) -> Option<&Arc<Binding>> {
        let bindings = self.by_queue.get(&queue.address())?;
        bindings.iter().find(|binding| *binding.key == *key)
    }

    /// The bindings of a queue.
    pub(crate) fn of(&self, queue: usize) -> &[Arc<Binding>] {
        self.by_queue.get(&queue).map_or(&[], Vec::as_slice)
    }

    /// Adds a binding. If it is there already that one is returned, and `false`: it stays for
    /// whoever wants it longest.
    pub(crate) fn add(
        &mut self,
        binding: Arc<Binding>,
    ) -> Result<(Arc<Binding>, bool), ExchangeError> {
        if let Some(there) = self.get(&binding.queue, &binding.key) {
            if there.is_as_wanted(&binding) {
                there.tenure.extend(&binding.tenure);
                return Ok((Arc::clone(there), false));
            }
            return Err(ExchangeError::Duplicate { key: binding.key.to_string() });
        }
        let table = Arc::make_mut(&mut self.table);
        table.bind(binding.key.as_bytes(), binding.queue.clone(), &binding.rule);
        let of_queue = self.by_queue.entry(binding.queue.address()).or_default();
        of_queue.push(Arc::clone(&binding));
        self.count += 1;
        self.used = true;
        Ok((binding, true))
    }

    /// A claim to a binding has been given up; if that ends the binding, how many its queue still
    /// has. There may be another one like it by now.
    pub(crate) fn release(&mut self, binding: &Arc<Binding>) -> Option<usize> {
        let there = self.get(&binding.queue, &binding.key)?;
        let is_over = Arc::ptr_eq(there, binding) && there.tenure.release();
        if is_over { self.remove(&binding.queue, &binding.key) } else { None }
    }

    /// Removes a binding, and returns how many its queue still has.
    pub(crate) fn remove(&mut self, queue: &Target, key: &str) -> Option<usize> {
        let bindings = self.by_queue.get_mut(&queue.address())?;
        let at = bindings.iter().position(|binding| *binding.key == *key)?;
        bindings.swap_remove(at);
        let left = bindings.len();
        if left == 0 {
            self.by_queue.remove(&queue.address());
        }
        self.count -= 1;
        Arc::make_mut(&mut self.table).unbind(key.as_bytes(), queue);
        Some(left)
    }

    /// Removes those of all other queues with the key of a binding that is to be the only one; each
    /// with how many its queue still has.
    pub(crate) fn evict(&mut self, binding: &Binding) -> Vec<(Arc<Binding>, usize)> {
        let is_other =
            |other: &&Arc<Binding>| other.key == binding.key && other.queue != binding.queue;
        let others: Vec<_> = self.iter().filter(is_other).cloned().collect();
        let removed = others.into_iter().filter_map(|other| {
            let left = self.remove(&other.queue, &other.key)?;
            Some((other, left))
        });
        removed.collect()
    }

    /// Removes all bindings of a queue.
    pub(crate) fn remove_queue(&mut self, queue: usize) {
        let bindings = self.by_queue.remove(&queue).unwrap_or_default();
        self.count -= bindings.len();
        let table = Arc::make_mut(&mut self.table);
        for binding in bindings {
            table.unbind(binding.key.as_bytes(), &binding.queue);
        }
    }

    /// Removes everything, for good.
    pub(crate) fn close(&mut self, kind: ExchangeKind) -> Vec<Arc<Binding>> {
        self.closed = true;
        self.table = Arc::new(Matcher::new(kind));
        self.count = 0;
        std::mem::take(&mut self.by_queue).into_values().flatten().collect()
    }
}
