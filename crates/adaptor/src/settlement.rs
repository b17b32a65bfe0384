use mochila_broker::{Held, Outcome, Settlement, Wakeups};
use mochila_engine::{Connection as Engine, LinkId, SessionId};
use mochila_wire::{DeliveryState, Now};

use crate::links::Links;
use crate::outgoing::Outgoing;
use crate::transactions::{TransactionId, Transactions};

/// Outcomes of one visit for the deliveries of one link, until they are told to its queue together.
#[derive(Default)]
pub(crate) struct Settlements {
    /// Deliveries of the disposition that is being handled: link, and position in its queue.
    named: Vec<(LinkId, u64)>,
    link: Option<LinkId>,
    within: Within,
    /// Links whose queues have been told since the last look.
    touched: Vec<LinkId>,
    accepted: Vec<u64>,
    others: Vec<Settlement>,
}

/// Whether outcomes count at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Within {
    /// They do.
    #[default]
    Nothing,
    /// They count if the transaction succeeds.
    Transaction {
        /// Which.
        id: TransactionId,
        /// Whether the receiver has settled the deliveries.
        settled: bool,
    },
}

impl Settlements {
    /// Notes a delivery that a disposition names.
    #[inline]
    pub(crate) fn name(&mut self, link: LinkId, position: u64) {
        self.named.push((link, position));
    }

    /// Notes the deliveries that a disposition names and settles.
    pub(crate) fn name_settled(&mut self, engine: &mut Engine, told: &Told) {
        let Told { session, first, last, .. } = *told;
        engine.resolve_outgoing(session, first, last, true, &mut |link, position, _| {
            self.name(link, position);
        });
    }

    /// Says what became of the deliveries named since the last time. Where another link's follow,
    /// the queue of the one before is told.
    pub(crate) fn conclude(
        &mut self,
        now: Now,
        (within, fate): (Within, &Fate),
        links: &mut Links,
        transactions: &mut Transactions,
        wakeups: &mut Wakeups,
    ) {
        if self.within != within {
            self.flush(now, links, transactions, wakeups);
            self.within = within;
        }
        let mut named = std::mem::take(&mut self.named);
        for (link, position) in named.drain(..) {
            if self.link != Some(link) {
                self.flush(now, links, transactions, wakeups);
                self.link = Some(link);
            }
            let outcome = match fate {
                Fate::Is(Outcome::Accept) => {
                    self.accepted.push(position);
                    continue;
                }
                Fate::Is(outcome) => outcome.clone(),
                Fate::Unsaid => match links.outgoing(link) {
                    Some(outgoing) => outgoing.default_outcome().clone(),
                    None => continue,
                },
            };
            self.others.push(Settlement { position, outcome });
        }
        self.named = named;
    }

    /// The links that have fewer unsettled deliveries than before.
    pub(crate) fn take_touched(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.touched)
    }

    /// Gives the memory of the list of links back.
    pub(crate) fn return_touched(&mut self, mut touched: Vec<LinkId>) {
        touched.clear();
        self.touched = touched;
    }

    /// Notes a link that has fewer unsettled deliveries than before.
    pub(crate) fn touch(&mut self, link: LinkId) {
        if self.touched.last() != Some(&link) {
            self.touched.push(link);
        }
    }

    /// Tells the queue, or the transaction.
    pub(crate) fn flush(
        &mut self,
        now: Now,
        links: &mut Links,
        transactions: &mut Transactions,
        wakeups: &mut Wakeups,
    ) {
        let Some(link) = self.link.take() else { return };
        self.touched.push(link);
        if let Some(outgoing) = links.outgoing(link) {
            match self.within {
                Within::Nothing => self.tell(now, outgoing, wakeups),
                Within::Transaction { id, settled } => {
                    self.pledge(now, outgoing, (transactions, id, settled), wakeups);
                }
            }
        }
        self.accepted.clear();
        self.others.clear();
    }

    #[inline]
    fn tell(&self, now: Now, outgoing: &Outgoing, wakeups: &mut Wakeups) {
        let Outgoing { queue, consumer, .. } = outgoing;
        if !self.accepted.is_empty() {
            wakeups.merge(queue.accept(now, *consumer, &self.accepted));
        }
        if !self.others.is_empty() {
            wakeups.merge(queue.settle(now, *consumer, &self.others));
        }
    }

    fn pledge(
        &self,
        now: Now,
        outgoing: &Outgoing,
        (transactions, id, settled): (&mut Transactions, TransactionId, bool),
        wakeups: &mut Wakeups,
    ) {
        let Outgoing { queue, consumer, .. } = outgoing;
        let default_outcome = outgoing.outcome_of_rollback();
        let held = Held { queue, consumer: *consumer, default_outcome, settled };
        if let Some(transaction) = transactions.live(id) {
            if !self.accepted.is_empty() {
                wakeups.merge(transaction.accept(now, &held, &self.accepted));
            }
            if !self.others.is_empty() {
                wakeups.merge(transaction.settle(now, &held, &self.others));
            }
        } else if settled {
            // It was rolled back long since, and nobody will say any more about these.
            let positions = self.others.iter().map(|it| it.position);
            let positions = self.accepted.iter().copied().chain(positions);
            let outcome = |position| Settlement { position, outcome: default_outcome.clone() };
            let settlements: Vec<Settlement> = positions.map(outcome).collect();
            wakeups.merge(queue.settle(now, *consumer, &settlements));
        }
    }
}

/// What a receiver says of deliveries (part 2, 2.7.6).
pub(crate) struct Told {
    pub(crate) session: SessionId,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
}

/// What becomes of deliveries, once it is final.
pub(crate) enum Fate {
    /// An outcome of part 3, 3.4.
    Is(Outcome),
    /// Settled without an outcome: the source's default outcome applies.
    Unsaid,
}

impl Fate {
    /// Reads it from what was told; `None` if that is not final.
    pub(crate) fn of(told: &Told) -> Option<Fate> {
        match told.state.as_ref().and_then(Outcome::of) {
            Some(outcome) => Some(Fate::Is(outcome)),
            None => told.settled.then_some(Fate::Unsaid),
        }
    }
}
