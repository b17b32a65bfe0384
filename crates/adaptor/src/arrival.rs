use std::ops::Range;
use std::sync::Arc;

use mochila_broker::{
    BatchBuilder, Budget, LargeBody, MessageMeta, Rejected, SharedQueue, Wakeups,
};
use mochila_engine::{Connection as Engine, LinkId, SessionId};
use mochila_wire::{DeliveryState, Now, Sections};

/// Messages of one visit that go to one queue, until they are enqueued together.
#[derive(Default)]
pub(crate) struct Arrivals {
    builder: BatchBuilder,
    to: Option<Route>,
    deliveries: Vec<Arrived>,
}

/// Where a batch comes from and where it goes.
struct Route {
    link: LinkId,
    session: SessionId,
    queue: Arc<SharedQueue>,
}

/// What the sender of a message has to be told about it.
#[derive(Clone, Copy)]
struct Arrived {
    delivery_id: u32,
    settled: bool,
}

/// A message that is complete.
pub(crate) enum Arrival {
    /// Whole in the read buffer.
    InBuffer(Range<usize>),
    /// Put together from several transfers.
    Owned(Vec<u8>),
    /// Too large for memory.
    Large(Large),
}

/// A message in a file; the sections before its body are in memory too.
pub(crate) struct Large {
    pub(crate) head: Vec<u8>,
    pub(crate) sections: Sections,
    pub(crate) body: Arc<dyn LargeBody>,
}

impl Arrival {
    /// The message, or as much of it as is in memory.
    pub(crate) fn bytes<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Arrival::InBuffer(range) => &buffer[range.clone()],
            Arrival::Owned(bytes) => bytes,
            Arrival::Large(large) => &large.head,
        }
    }
}

/// Which delivery of which link a message is.
#[derive(Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) message_format: u32,
    pub(crate) settled: bool,
}

impl Arrivals {
    /// Whether a message of this link for this queue joins the batch that is being collected.
    #[inline]
    pub(crate) fn joins(&self, link: LinkId, queue: &Arc<SharedQueue>) -> bool {
        match &self.to {
            Some(route) => route.link == link && Arc::ptr_eq(&route.queue, queue),
            None => false,
        }
    }

    /// Starts a batch; the one before has been enqueued.
    pub(crate) fn start(&mut self, link: LinkId, session: SessionId, queue: &Arc<SharedQueue>) {
        debug_assert!(self.builder.is_empty(), "a batch was started before the last was enqueued");
        self.to = Some(Route { link, session, queue: Arc::clone(queue) });
    }

    /// Adds a message to the batch.
    #[inline]
    pub(crate) fn push(
        &mut self,
        sender: Sender,
        arrival: Arrival,
        sections: &Sections,
        meta: MessageMeta,
    ) {
        self.deliveries.push(Arrived { delivery_id: sender.delivery_id, settled: sender.settled });
        match arrival {
            Arrival::InBuffer(range) => self.builder.push(range, sections, meta),
            Arrival::Owned(bytes) => self.builder.push_owned(bytes, sections, meta),
            Arrival::Large(large) => {
                self.builder.push_large(large.head, sections, meta, large.body);
            }
        }
    }

    /// How many messages have been collected.
    pub(crate) fn len(&self) -> usize {
        self.builder.len()
    }

    /// Enqueues the batch and settles its deliveries; returns the link it came from, which may
    /// have room for credit.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        buffer: &[u8],
        budget: &Arc<Budget>,
        engine: &mut Engine,
        wakeups: &mut Wakeups,
    ) -> Option<LinkId> {
        let route = self.to.take()?;
        let deliveries = &self.deliveries;
        match self.builder.finish(buffer, budget) {
            Ok(batch) => {
                let (enqueued, woken) = route.queue.enqueue(now, batch);
                wakeups.merge(woken);
                let session = route.session;
                if enqueued.rejected.is_empty() {
                    settle_all(engine, session, deliveries, &DeliveryState::Accepted);
                } else {
                    settle_each(engine, session, deliveries, &enqueued.rejected);
                }
            }
            Err(over) => {
                let error = Some(Box::new(over.to_amqp()));
                settle_all(engine, route.session, deliveries, &DeliveryState::Rejected { error });
            }
        }
        self.deliveries.clear();
        Some(route.link)
    }
}

fn settle_all(
    engine: &mut Engine,
    session: SessionId,
    deliveries: &[Arrived],
    state: &DeliveryState,
) {
    for (first, last) in Runs::of(deliveries) {
        engine.settle_incoming(session, first, last, state.clone(), true);
    }
}

fn settle_each(
    engine: &mut Engine,
    session: SessionId,
    deliveries: &[Arrived],
    rejected: &[Rejected],
) {
    let mut rejected = rejected.iter().peekable();
    for (index, arrived) in deliveries.iter().enumerate() {
        let state = match rejected.next_if(|rejected| rejected.index as usize == index) {
            Some(rejected) => {
                let error = Some(Box::new(rejected.reason.to_amqp()));
                DeliveryState::Rejected { error }
            }
            None => DeliveryState::Accepted,
        };
        if !arrived.settled {
            let id = arrived.delivery_id;
            engine.settle_incoming(session, id, id, state, true);
        }
    }
}

/// Runs of unsettled deliveries whose ids follow one another.
struct Runs<'a>(std::slice::Iter<'a, Arrived>, Option<u32>);

impl<'a> Runs<'a> {
    fn of(deliveries: &'a [Arrived]) -> Runs<'a> {
        let mut rest = deliveries.iter();
        let first = rest.find(|arrived| !arrived.settled).map(|arrived| arrived.delivery_id);
        Runs(rest, first)
    }
}

impl Iterator for Runs<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let first = self.1.take()?;
        let mut last = first;
        for arrived in self.0.by_ref().filter(|arrived| !arrived.settled) {
            if arrived.delivery_id != last.wrapping_add(1) {
                self.1 = Some(arrived.delivery_id);
                break;
            }
            last = arrived.delivery_id;
        }
        Some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(deliveries: &[(u32, bool)]) -> Vec<(u32, u32)> {
        let deliveries: Vec<_> = deliveries
            .iter()
            .map(|&(delivery_id, settled)| Arrived { delivery_id, settled })
            .collect();
        Runs::of(&deliveries).collect()
    }

    #[test]
    fn deliveries_that_follow_one_another_are_settled_as_one_range() {
        assert_eq!(runs(&[(1, false), (2, false), (3, false)]), [(1, 3)]);
        assert_eq!(runs(&[(1, false), (3, false), (4, false)]), [(1, 1), (3, 4)]);
    }

    #[test]
    fn a_range_goes_on_over_the_wrap_of_delivery_ids() {
        assert_eq!(runs(&[(u32::MAX, false), (0, false)]), [(u32::MAX, 0)]);
    }

    #[test]
    fn settled_deliveries_are_not_settled_again() {
        assert_eq!(runs(&[(1, true), (2, false), (3, true), (4, false)]), [(2, 2), (4, 4)]);
        assert_eq!(runs(&[(1, true)]), []);
    }
}
