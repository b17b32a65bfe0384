//! What one request looks at, and what it needs only once.

use crate::directory::{ConnectionRecord, Direction, LinkRecord};
use crate::management::Management;
use mochila_broker::{Broker, Statistics};
use mochila_wire::Now;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The node at one moment, seen by one request.
pub(crate) struct Scope<'a> {
    pub(crate) management: &'a Management,
    pub(crate) now: Now,
    /// Whose request it is.
    pub(crate) user: &'a str,
    /// For how many bytes of an answer there is memory.
    pub(crate) room: usize,
    links: OnceCell<HashMap<String, Vec<LinkAt>>>,
    totals: OnceCell<Statistics>,
}

/// A link and where it is.
#[derive(Clone, Debug)]
pub(crate) struct LinkAt {
    pub(crate) connection: Arc<ConnectionRecord>,
    pub(crate) number: u32,
    pub(crate) link: Arc<LinkRecord>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        management: &'a Management,
        now: Now,
        user: &'a str,
        room: usize,
    ) -> Scope<'a> {
        Scope { management, now, user, room, links: OnceCell::new(), totals: OnceCell::new() }
    }

    pub(crate) fn broker(&self) -> &'a Broker {
        self.management.broker()
    }

    /// The sums over all queues there are and have been.
    pub(crate) fn totals(&self) -> &Statistics {
        self.totals.get_or_init(|| self.broker().statistics())
    }

    /// How long ago a moment of the monotonic clock was.
    pub(crate) fn since_ms(&self, mono_ms: u64) -> u64 {
        self.now.mono_ms.saturating_sub(mono_ms)
    }

    /// The links that take messages from a queue.
    pub(crate) fn consumers(&self, queue: &str) -> &[LinkAt] {
        let links = self.links.get_or_init(|| {
            let mut links: HashMap<String, Vec<LinkAt>> = HashMap::new();
            for at in all_links(self.management) {
                if at.link.direction == Direction::Out {
                    links.entry(at.link.address.clone()).or_default().push(at);
                }
            }
            links
        });
        links.get(queue).map_or(&[], Vec::as_slice)
    }
}

/// Every link of every connection.
pub(crate) fn all_links(management: &Management) -> impl Iterator<Item = LinkAt> + '_ {
    management.directory().connections().into_iter().flat_map(|connection| {
        connection.links().into_iter().map(move |(number, link)| LinkAt {
            connection: Arc::clone(&connection),
            number,
            link,
        })
    })
}
