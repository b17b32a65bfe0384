//! Connections that are not open yet.

use crate::site::Site;
use crate::task::{Eviction, News, Task};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// A handshake that is going on; the connection drops it when it is open, or gone.
pub(crate) struct Handshake {
    site: Arc<Site>,
    task: Weak<Task>,
}

impl Handshake {
    pub(crate) fn begin(site: &Arc<Site>, task: &Weak<Task>) -> Arc<Self> {
        site.half_open.add(1);
        Arc::new(Self { site: Arc::clone(site), task: Weak::clone(task) })
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.site.half_open.subtract(1);
    }
}

/// The handshakes that were begun, oldest first.
///
/// Clients that connect and then say nothing would otherwise keep others out until they time out: when
/// too many are half-open the oldest has to go, if it had a fair chance, or new ones wait.
#[derive(Default)]
pub(crate) struct Handshakes {
    begun: VecDeque<(u64, Weak<Handshake>)>,
}

impl Handshakes {
    pub(crate) fn add(&mut self, now_ms: u64, handshake: Option<&Arc<Handshake>>) {
        self.begun.extend(handshake.map(|handshake| (now_ms, Arc::downgrade(handshake))));
    }

    /// Makes room for one more, or says when to try again.
    pub(crate) fn make_room(&mut self, now_ms: u64, site: &Site) -> Result<(), RetryAt> {
        while self.begun.front().is_some_and(|(_, handshake)| handshake.strong_count() == 0) {
            self.begun.pop_front();
        }
        if site.half_open.value() < site.config.max_half_open {
            return Ok(());
        }
        let Some((begun_ms, oldest)) = self.begun.front() else { return Ok(()) };
        let fair_ms = begun_ms + FAIR_CHANCE_MS;
        if now_ms < fair_ms {
            return Err(RetryAt(fair_ms.min(now_ms + RETRY_MS)));
        }
        if let Some(task) = oldest.upgrade().and_then(|handshake| handshake.task.upgrade()) {
            site.evicted_handshakes.add(1);
            task.post(News::Evict(Eviction::HalfOpen));
        }
        self.begun.pop_front();
        Ok(())
    }
}

/// When there may be room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryAt(pub(crate) u64);

/// What a handshake may take even if others wait; an honest client needs a few round trips.
const FAIR_CHANCE_MS: u64 = 1_000;

/// Handshakes usually end much earlier.
const RETRY_MS: u64 = 10;
