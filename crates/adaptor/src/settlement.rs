use mochila_broker::{Outcome, Settlement, Wakeups};
use mochila_engine::LinkId;
use mochila_wire::{DeliveryState, Now};

use crate::links::Links;

/// Outcomes of one visit for the deliveries of one link, until they are told to its queue together.
#[derive(Default)]
pub(crate) struct Settlements {
    link: Option<LinkId>,
    accepted: Vec<u64>,
    others: Vec<Settlement>,
}

impl Settlements {
    /// Adds the outcome of one delivery, telling the queue of another link's first.
    #[inline]
    pub(crate) fn add(
        &mut self,
        now: Now,
        links: &mut Links,
        wakeups: &mut Wakeups,
        link: LinkId,
        position: u64,
        fate: &Fate,
    ) {
        if self.link != Some(link) {
            self.flush(now, links, wakeups);
            self.link = Some(link);
        }
        match fate {
            Fate::Is(Outcome::Accept) => self.accepted.push(position),
            Fate::Is(outcome) => {
                self.others.push(Settlement { position, outcome: outcome.clone() });
            }
            Fate::Unsaid => {
                if let Some(outgoing) = links.outgoing(link) {
                    let outcome = outgoing.default_outcome.clone();
                    self.others.push(Settlement { position, outcome });
                }
            }
        }
    }

    /// Tells the queue.
    pub(crate) fn flush(&mut self, now: Now, links: &mut Links, wakeups: &mut Wakeups) {
        let Some(link) = self.link.take() else { return };
        if let Some(outgoing) = links.outgoing(link) {
            if !self.accepted.is_empty() {
                wakeups.merge(outgoing.queue.accept(now, outgoing.consumer, &self.accepted));
            }
            if !self.others.is_empty() {
                wakeups.merge(outgoing.queue.settle(now, outgoing.consumer, &self.others));
            }
        }
        self.accepted.clear();
        self.others.clear();
    }
}

/// What a receiver says of a delivery, once it is final.
pub(crate) enum Fate {
    /// An outcome of part 3, 3.4.
    Is(Outcome),
    /// Settled without an outcome: the source's default outcome applies.
    Unsaid,
}

impl Fate {
    /// Reads it from a disposition; `None` if the state is not final.
    pub(crate) fn of(state: Option<&DeliveryState>, settled: bool) -> Option<Fate> {
        match state.and_then(Outcome::of) {
            Some(outcome) => Some(Fate::Is(outcome)),
            None => settled.then_some(Fate::Unsaid),
        }
    }
}
