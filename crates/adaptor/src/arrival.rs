use std::ops::Range;
use std::sync::Arc;

use mochila_broker::{
    Batch, BatchBuilder, Claim, Enqueued, Exchange, Fault, LargeBody, MessageMeta, Origin,
    Published, Refusal, Rejected, Routing, SharedQueue, Wakeups,
};
use mochila_engine::{Connection as Engine, LinkId, SessionId};
use mochila_wire::performative::ReceiverSettleMode;
use mochila_wire::section::BodyKind;
use mochila_wire::{AmqpError, DeliveryState, Now, Sections, condition};

use crate::transactions::{TransactionId, Transactions};

/// Messages of one visit that go to one queue, until they are enqueued together.
#[derive(Default)]
pub(crate) struct Arrivals {
    builder: BatchBuilder,
    to: Option<Route>,
    deliveries: Vec<Arrived>,
    routing: Routing,
}

/// Where a batch comes from and where it goes.
pub(crate) struct Route {
    link: LinkId,
    session: SessionId,
    /// The number of the connection that the link is on.
    connection: u64,
    to: To,
    transaction: Option<TransactionId>,
}

/// Where messages go in, to be kept until the batch is.
enum To {
    Queue {
        queue: Arc<SharedQueue>,
        is_held_back: bool,
    },
    Exchange {
        exchange: Arc<Exchange>,
        key: Option<Box<[u8]>>,
        governor: Option<Arc<SharedQueue>>,
        is_excused: bool,
    },
}

/// Where a message goes in.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A queue.
    Queue {
        queue: &'a Arc<SharedQueue>,
        /// The sender has sent it on credit, and had not been told that this queue has no room.
        is_held_back: bool,
    },
    /// An exchange.
    Exchange {
        exchange: &'a Arc<Exchange>,
        /// The routing key, where it does not come from the message.
        key: Option<&'a [u8]>,
        /// The queue that the sender has got its credit from, and which had not told it that there
        /// is no room.
        governor: Option<&'a Arc<SharedQueue>>,
        /// Any queue that gets all of it is such a one: the sender could not know.
        is_excused: bool,
    },
}

impl Place<'_> {
    #[inline]
    fn is(self, to: &To) -> bool {
        match (self, to) {
            (
                Place::Queue { queue, is_held_back },
                To::Queue { queue: other, is_held_back: others },
            ) => Arc::ptr_eq(queue, other) && is_held_back == *others,
            (
                Place::Exchange { exchange, key, governor, is_excused },
                To::Exchange {
                    exchange: other,
                    key: other_key,
                    governor: other_governor,
                    is_excused: others,
                },
            ) => {
                is_excused == *others
                    && Arc::ptr_eq(exchange, other)
                    && key == other_key.as_deref()
                    && governor.map(Arc::as_ptr) == other_governor.as_ref().map(Arc::as_ptr)
            }
            (Place::Queue { .. }, To::Exchange { .. })
            | (Place::Exchange { .. }, To::Queue { .. }) => false,
        }
    }

    fn kept(self) -> To {
        match self {
            Place::Queue { queue, is_held_back } => {
                To::Queue { queue: Arc::clone(queue), is_held_back }
            }
            Place::Exchange { exchange, key, governor, is_excused } => To::Exchange {
                exchange: Arc::clone(exchange),
                key: key.map(Box::from),
                governor: governor.cloned(),
                is_excused,
            },
        }
    }
}

/// What the sender of a message has to be told about it.
#[derive(Clone, Copy)]
struct Arrived {
    delivery_id: u32,
    answer: Answer,
}

/// Whether and how the sender of a delivery is told what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not at all: it sent the delivery settled.
    Nothing,
    /// With an outcome that settles the delivery (rcv-settle-mode first).
    Settles,
    /// With an outcome; the sender settles (rcv-settle-mode second). Nothing is kept for that.
    Tells,
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
    pub(crate) body_kind: BodyKind,
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
    /// How this delivery is to be settled, where it differs from the link's mode.
    pub(crate) settle_mode: Option<ReceiverSettleMode>,
    /// The transaction that it belongs to.
    pub(crate) transaction: Option<TransactionId>,
    /// It was sent before the sender knew of credit that was taken back.
    pub(crate) had_credit: bool,
}

impl Sender {
    /// How the sender is answered on a link of this mode.
    #[inline]
    pub(crate) fn answer(&self, link_mode: ReceiverSettleMode) -> Answer {
        match self.settle_mode.unwrap_or(link_mode) {
            _ if self.settled => Answer::Nothing,
            ReceiverSettleMode::First => Answer::Settles,
            ReceiverSettleMode::Second => Answer::Tells,
        }
    }
}

/// What came of a batch.
pub(crate) struct Landed {
    /// Something was rejected for want of room.
    pub(crate) is_refused: bool,
    /// The queue, or every queue that messages went to, gives no credit now.
    pub(crate) is_closed: bool,
    /// That queue, if it was one.
    pub(crate) closed: Option<Arc<SharedQueue>>,
    /// The mean size of the messages.
    pub(crate) message_bytes: u64,
    /// What became of messages for an exchange.
    pub(crate) published: Option<Published>,
}

/// Messages that are not accepted, by their places in the batch, and whether more would be taken.
struct Fates {
    rejected: Vec<Rejected>,
    released: Vec<u32>,
    is_closed: bool,
}

impl Fates {
    fn are_good(&self) -> bool {
        self.rejected.is_empty() && self.released.is_empty()
    }
}

impl Arrivals {
    /// Whether a message of this sender for this place joins the batch that is being collected.
    #[inline]
    pub(crate) fn joins(&self, sender: &Sender, place: Place<'_>) -> bool {
        match &self.to {
            Some(route) => {
                route.link == sender.link
                    && place.is(&route.to)
                    && route.transaction == sender.transaction
            }
            None => false,
        }
    }

    /// Starts a batch; the one before has been enqueued.
    pub(crate) fn start(&mut self, route: Route) {
        debug_assert!(self.builder.is_empty(), "a batch was started before the last was enqueued");
        self.to = Some(route);
    }

    /// Adds a message to the batch.
    #[inline]
    pub(crate) fn push(
        &mut self,
        (delivery_id, answer): (u32, Answer),
        arrival: Arrival,
        sections: &Sections,
        meta: MessageMeta,
    ) {
        self.deliveries.push(Arrived { delivery_id, answer });
        match arrival {
            Arrival::InBuffer(range) => self.builder.push(range, sections, meta),
            Arrival::Owned(bytes) => self.builder.push_owned(bytes, sections, meta),
            Arrival::Large(large) => {
                self.builder.push_large(large.head, sections, meta, large.body);
            }
        }
    }

    /// The link that the messages collected so far have come on, if there are some.
    pub(crate) fn link(&self) -> Option<LinkId> {
        self.to.as_ref().map(|route| route.link)
    }

    /// How many messages have been collected.
    pub(crate) fn len(&self) -> usize {
        self.builder.len()
    }

    /// Enqueues the batch and answers its deliveries.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        buffer: &[u8],
        landing: Landing<'_>,
    ) -> Option<Landed> {
        let Landing { claim, engine, transactions, wakeups } = landing;
        let route = self.to.take()?;
        self.builder.set_origin(Origin::new(route.connection, now));
        let deliveries = &self.deliveries;
        let mut landed = Landed {
            is_refused: true,
            is_closed: true,
            closed: None,
            message_bytes: 0,
            published: None,
        };
        match self.builder.finish_on(buffer, claim) {
            Ok(batch) => {
                landed.message_bytes = batch.bytes() / (batch.len() as u64).max(1);
                let (fates, published, woken) =
                    route.enqueue(now, batch, transactions, &mut self.routing);
                wakeups.merge(woken);
                landed.published = published;
                landed.is_closed = fates.is_closed;
                // More credit would not help where nobody is bound.
                landed.is_refused = fates.rejected.iter().any(|it| it.reason != Refusal::NoRoute);
                if fates.are_good() {
                    settle_all(engine, &route, deliveries, &route.told(DeliveryState::Accepted));
                } else {
                    let fault = route.transaction.and_then(|id| transactions.fault(id));
                    settle_each(engine, &route, deliveries, (&fates, fault));
                }
            }
            Err(over) => {
                if let Some(id) = route.transaction {
                    wakeups.merge(transactions.doom(now, id, Fault::NoMemory(over)));
                }
                let state = route.told(DeliveryState::rejected(over.to_amqp()));
                settle_all(engine, &route, deliveries, &state);
            }
        }
        self.deliveries.clear();
        if landed.is_closed
            && let To::Queue { queue, .. } = route.to
        {
            landed.closed = Some(queue);
        }
        Some(landed)
    }
}

/// What a batch meets where it is enqueued.
pub(crate) struct Landing<'a> {
    /// The memory that is kept for its sender.
    pub(crate) claim: &'a mut Claim,
    pub(crate) engine: &'a mut Engine,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) wakeups: &'a mut Wakeups,
}

impl Route {
    /// The way of messages of a link of the connection with this number.
    pub(crate) fn new(sender: &Sender, connection: u64, place: Place<'_>) -> Route {
        let Sender { link, session, transaction, .. } = *sender;
        Route { link, session, connection, to: place.kept(), transaction }
    }

    #[inline]
    fn enqueue(
        &self,
        now: Now,
        batch: &mut Batch,
        transactions: &mut Transactions,
        routing: &mut Routing,
    ) -> (Fates, Option<Published>, Wakeups) {
        let (queue, is_held_back) = match &self.to {
            To::Queue { queue, is_held_back } => (queue, *is_held_back),
            To::Exchange { exchange, key, governor, is_excused } => {
                let key = key.as_deref();
                routing.set_governor(governor.as_ref(), *is_excused);
                let (mut published, wakeups) = match self.transaction {
                    Some(id) => transactions.publish(now, id, (exchange, key), batch, routing),
                    None => exchange.publish(now, batch, key, routing),
                };
                let rejected = std::mem::take(&mut published.rejected);
                let released = std::mem::take(&mut published.released);
                let fates = Fates { rejected, released, is_closed: false };
                return (fates, Some(published), wakeups);
            }
        };
        let (enqueued, wakeups) = match (self.transaction, is_held_back) {
            (Some(id), _) => transactions.enqueue(now, id, queue, batch, is_held_back),
            (None, true) => queue.enqueue(now, batch),
            (None, false) => queue.offer(now, batch),
        };
        let Enqueued { rejected, is_closed, .. } = enqueued;
        (Fates { rejected, released: Vec::new(), is_closed }, None, wakeups)
    }

    /// How the sender is told an outcome.
    #[inline]
    fn told(&self, outcome: DeliveryState) -> DeliveryState {
        match self.transaction {
            Some(transaction) => transaction.state(outcome),
            None => outcome,
        }
    }
}

fn settle_all(engine: &mut Engine, route: &Route, deliveries: &[Arrived], state: &DeliveryState) {
    for Run { first, last, answer } in Runs::of(deliveries) {
        let settles = answer == Answer::Settles;
        engine.settle_incoming(route.session, first, last, state.clone(), settles);
    }
}

fn settle_each(
    engine: &mut Engine,
    route: &Route,
    deliveries: &[Arrived],
    (fates, fault): (&Fates, Option<&Fault>),
) {
    let mut rejected = fates.rejected.iter().peekable();
    let mut released = fates.released.iter().peekable();
    for (index, arrived) in deliveries.iter().enumerate() {
        let state = match rejected.next_if(|rejected| rejected.index as usize == index) {
            Some(rejected) => DeliveryState::rejected(match fault {
                Some(fault) if rejected.reason == Refusal::Doomed => {
                    AmqpError::new(condition::TRANSACTION_ROLLBACK, fault.to_string())
                }
                _ => rejected.reason.to_amqp(),
            }),
            None => match released.next_if(|released| **released as usize == index) {
                Some(_) => DeliveryState::Released,
                None => DeliveryState::Accepted,
            },
        };
        if arrived.answer != Answer::Nothing {
            let id = arrived.delivery_id;
            let settles = arrived.answer == Answer::Settles;
            engine.settle_incoming(route.session, id, id, route.told(state), settles);
        }
    }
}

/// Deliveries `first..=last`, which are answered alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    last: u32,
    answer: Answer,
}

/// Runs of deliveries to be answered whose ids follow one another.
struct Runs<'a> {
    rest: std::slice::Iter<'a, Arrived>,
    next: Option<Arrived>,
}

impl<'a> Runs<'a> {
    fn of(deliveries: &'a [Arrived]) -> Runs<'a> {
        let mut rest = deliveries.iter();
        let next = rest.find(|arrived| arrived.answer != Answer::Nothing).copied();
        Runs { rest, next }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let Arrived { delivery_id: first, answer } = self.next.take()?;
        let mut run = Run { first, last: first, answer };
        for arrived in self.rest.by_ref().filter(|arrived| arrived.answer != Answer::Nothing) {
            if arrived.delivery_id != run.last.wrapping_add(1) || arrived.answer != answer {
                self.next = Some(*arrived);
                break;
            }
            run.last = arrived.delivery_id;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{Nothing, Settles, Tells};
    use super::*;

    fn runs(deliveries: &[(u32, Answer)]) -> Vec<(u32, u32)> {
        let deliveries: Vec<_> = deliveries
            .iter()
            .map(|&(delivery_id, answer)| Arrived { delivery_id, answer })
            .collect();
        Runs::of(&deliveries).map(|run| (run.first, run.last)).collect()
    }

    #[test]
    fn deliveries_that_follow_one_another_are_settled_as_one_range() {
        assert_eq!(runs(&[(1, Settles), (2, Settles), (3, Settles)]), [(1, 3)]);
        assert_eq!(runs(&[(1, Settles), (3, Settles), (4, Settles)]), [(1, 1), (3, 4)]);
    }

    #[test]
    fn a_range_goes_on_over_the_wrap_of_delivery_ids() {
        assert_eq!(runs(&[(u32::MAX, Settles), (0, Settles)]), [(u32::MAX, 0)]);
    }

    #[test]
    fn settled_deliveries_are_not_settled_again() {
        let deliveries = [(1, Nothing), (2, Settles), (3, Nothing), (4, Settles)];
        assert_eq!(runs(&deliveries), [(2, 2), (4, 4)]);
        assert_eq!(runs(&[(1, Nothing)]), []);
    }

    #[test]
    fn deliveries_that_are_settled_by_different_sides_do_not_share_a_range() {
        assert_eq!(runs(&[(1, Settles), (2, Tells), (3, Tells)]), [(1, 1), (2, 3)]);
    }
}
