//! Which queues have to be looked at, and when.

use crate::queue::SharedQueue;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// At most one deadline for each queue: never later than the queue's next one.
pub(crate) struct Timers {
    queues: Mutex<Due>,
    /// The earliest deadline, to be read without the lock.
    next_ms: AtomicU64,
}

/// By deadline, and by the address of the queue to tell them apart.
type Due = BTreeMap<(u64, usize), Weak<SharedQueue>>;

impl Default for Timers {
    fn default() -> Timers {
        Timers { queues: Mutex::new(Due::new()), next_ms: AtomicU64::new(NEVER) }
    }
}

impl Timers {
    /// Looks at a queue at `deadline_ms`, if it would be looked at later otherwise.
    pub(crate) fn set(&self, queue: &Arc<SharedQueue>, deadline_ms: u64) {
        let mut due = lock(&self.queues);
        // Relaxed: it is written under this lock only.
        let set_ms = queue.timeout_ms().load(Ordering::Relaxed);
        if set_ms <= deadline_ms {
            return;
        }
        due.remove(&(set_ms, key(queue)));
        due.insert((deadline_ms, key(queue)), Arc::downgrade(queue));
        queue.timeout_ms().store(deadline_ms, Ordering::Relaxed);
        self.publish(&due);
    }

    /// The queues whose time has come; each of them sets itself again.
    pub(crate) fn due(&self, now_ms: u64) -> Vec<Arc<SharedQueue>> {
        if self.next_ms() > now_ms {
            return Vec::new();
        }
        let mut due = lock(&self.queues);
        let later = due.split_off(&(now_ms + 1, 0));
        let now = std::mem::replace(&mut *due, later);
        let mut queues: Vec<_> = now.into_values().filter_map(|queue| queue.upgrade()).collect();
        // The order must not depend on where in memory queues are.
        queues.sort_by(|a, b| a.name().cmp(b.name()));
        for queue in &queues {
            queue.timeout_ms().store(NEVER, Ordering::Relaxed);
        }
        self.publish(&due);
        queues
    }

    /// The earliest deadline; `u64::MAX` if there is none.
    pub(crate) fn next_ms(&self) -> u64 {
        // Relaxed: whoever has set an earlier one looks at this before it goes to sleep.
        self.next_ms.load(Ordering::Relaxed)
    }

    fn publish(&self, due: &Due) {
        let next_ms = due.first_key_value().map_or(NEVER, |((deadline_ms, _), _)| *deadline_ms);
        self.next_ms.store(next_ms, Ordering::Relaxed);
    }
}

fn key(queue: &Arc<SharedQueue>) -> usize {
    Arc::as_ptr(queue) as usize
}

const NEVER: u64 = u64::MAX;
