//! The transactions of a connection: what is in each, and how each ends (part 4).

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use mochila_broker::{
    Batch, Enqueued, Exchange, Fault, Held, Outcome, Published, Rations, Refusal, Remark, Routing,
    SharedQueue, Transaction, Wakeups,
};
use mochila_engine::{Connection as Engine, LinkId, SessionId};
use mochila_wire::{DeliveryState, Now};

use crate::links::Links;
use crate::settlement::Settlements;

/// Names a transaction of a connection; none of them has the number of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TransactionId(NonZeroU64);

/// The transactions that have been declared on a connection and not been discharged.
pub(crate) struct Transactions {
    works: BTreeMap<TransactionId, Work>,
    /// The one that was named last, as long as it is there: it is named again with every message.
    recent: Option<TransactionId>,
    /// In which transaction deliveries are that the peer has not settled.
    unsettled: BTreeMap<(SessionId, u32), TransactionId>,
    next: NonZeroU64,
    /// No transaction is over before.
    earliest_ms: u64,
}

/// One transaction.
struct Work {
    /// The link over which it was declared.
    control: LinkId,
    session: SessionId,
    state: State,
    /// Outcomes of deliveries that the peer has not settled.
    told: Vec<Told>,
    /// It cannot succeed, and this has been seen.
    is_seen_to_fail: bool,
}

impl Work {
    /// Why it cannot succeed any more, if so.
    fn fault(&self) -> Option<&Fault> {
        match &self.state {
            State::Live { transaction, .. } => transaction.fault(),
            State::Dead(fault) => Some(fault),
        }
    }
}

enum State {
    Live {
        transaction: Box<Transaction>,
        /// Its time is not up before. It begins with what is done in it first: who declares one
        /// early, to have it at hand, does no harm.
        deadline_ms: u64,
    },
    /// It was rolled back; its controller has still to hear of it.
    Dead(Fault),
}

/// The outcome of unsettled deliveries that follow one another.
struct Told {
    session: SessionId,
    first: u32,
    last: u32,
    state: DeliveryState,
}

impl TransactionId {
    /// As it is named on the wire.
    pub(crate) fn bytes(self) -> Box<[u8]> {
        Box::from(self.0.get().to_be_bytes())
    }

    /// Reads it; `None` if it is none of ours.
    pub(crate) fn read(bytes: &[u8]) -> Option<TransactionId> {
        let number = u64::from_be_bytes(bytes.try_into().ok()?);
        NonZeroU64::new(number).map(TransactionId)
    }

    /// What is told of a delivery whose outcome belongs to this transaction.
    pub(crate) fn state(self, outcome: DeliveryState) -> DeliveryState {
        DeliveryState::Transactional { txn_id: self.bytes(), outcome: Some(Box::new(outcome)) }
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions {
            works: BTreeMap::new(),
            recent: None,
            unsettled: BTreeMap::new(),
            next: NonZeroU64::MIN,
            earliest_ms: NEVER,
        }
    }
}

impl Transactions {
    /// Whether so many or more were declared over links of a session.
    pub(crate) fn has_session(&self, session: SessionId, so_many: usize) -> bool {
        let on_session = || self.works.values().filter(|work| work.session == session).count();
        self.works.len() >= so_many && on_session() >= so_many
    }

    pub(crate) fn declare(
        &mut self,
        transaction: Transaction,
        control: LinkId,
        session: SessionId,
        deadline_ms: Option<u64>,
    ) -> TransactionId {
        let id = TransactionId(self.next);
        self.next = self.next.saturating_add(1);
        let deadline_ms = deadline_ms.unwrap_or(NEVER);
        self.earliest_ms = self.earliest_ms.min(deadline_ms);
        let state = State::Live { transaction: Box::new(transaction), deadline_ms };
        let work = Work { control, session, state, told: Vec::new(), is_seen_to_fail: false };
        self.works.insert(id, work);
        id
    }

    /// The transaction that a peer names, if there is one.
    #[inline]
    pub(crate) fn find(&mut self, txn_id: &[u8]) -> Option<TransactionId> {
        let id = TransactionId::read(txn_id)?;
        if self.recent != Some(id) {
            self.recent = self.works.contains_key(&id).then_some(id);
        }
        self.recent
    }

    /// The link over which a transaction was declared.
    pub(crate) fn control(&self, id: TransactionId) -> Option<LinkId> {
        self.works.get(&id).map(|work| work.control)
    }

    /// The transaction itself, as long as it has not failed for good.
    pub(crate) fn live(&mut self, id: TransactionId) -> Option<&mut Transaction> {
        match &mut self.works.get_mut(&id)?.state {
            State::Live { transaction, .. } => Some(transaction),
            State::Dead(_) => None,
        }
    }

    /// Takes messages for a queue into a transaction.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        id: TransactionId,
        queue: &Arc<SharedQueue>,
        batch: &mut Batch,
        is_held_back: bool,
    ) -> (Enqueued, Wakeups) {
        match self.live(id) {
            Some(transaction) => transaction.enqueue(now, queue, batch, is_held_back),
            None => (batch.refuse(Refusal::Doomed), Wakeups::new()),
        }
    }

    /// Takes messages for the queues that are bound to an exchange into a transaction.
    pub(crate) fn publish(
        &mut self,
        now: Now,
        id: TransactionId,
        (exchange, key): (&Exchange, Option<&[u8]>),
        batch: &mut Batch,
        routing: &mut Routing,
    ) -> (Published, Wakeups) {
        match self.live(id) {
            Some(transaction) => exchange.publish_in(now, transaction, batch, key, routing),
            None => {
                let mut published = Published::default();
                published.rejected = batch.refuse(Refusal::Doomed).rejected;
                (published, Wakeups::new())
            }
        }
    }

    /// Whether there are any.
    pub(crate) fn are_open(&self) -> bool {
        !self.works.is_empty()
    }

    /// The queues that keep room for what those of a session have brought, and for how many messages;
    /// of all that there are if there is none on that session.
    pub(crate) fn kept(&self, session: SessionId) -> Arc<[(Arc<SharedQueue>, u64)]> {
        let kept = self.of_session(session).filter_map(|work| match &work.state {
            State::Live { transaction, .. } => Some(transaction.kept()),
            State::Dead(_) => None,
        });
        kept.flatten().map(|(queue, messages)| (Arc::clone(queue), messages)).collect()
    }

    /// Whether a transaction has brought messages, wherever to.
    pub(crate) fn has_brought(&mut self, id: TransactionId) -> bool {
        self.live(id).is_some_and(|transaction| transaction.has_brought())
    }

    /// Why a transaction cannot succeed any more, if so.
    pub(crate) fn fault(&self, id: TransactionId) -> Option<&Fault> {
        self.works.get(&id)?.fault()
    }

    /// Whether one cannot succeed any more since this was asked last.
    pub(crate) fn have_failed(&mut self) -> bool {
        let mut have_failed = false;
        for work in self.works.values_mut().filter(|work| !work.is_seen_to_fail) {
            work.is_seen_to_fail = work.fault().is_some();
            have_failed |= work.is_seen_to_fail;
        }
        have_failed
    }

    /// Whether no transaction of a session can succeed, and there is one.
    pub(crate) fn are_in_vain(&self, session: SessionId) -> bool {
        let mut works = self.of_session(session).peekable();
        works.peek().is_some() && works.all(|work| work.fault().is_some())
    }

    /// Those of a session, or of all if there is none on that session.
    fn of_session(&self, session: SessionId) -> impl Iterator<Item = &Work> {
        let is_any = self.works.values().any(|work| work.session == session);
        self.works.values().filter(move |work| !is_any || work.session == session)
    }

    /// It can only be rolled back from now on.
    pub(crate) fn doom(&mut self, now: Now, id: TransactionId, fault: Fault) -> Wakeups {
        self.live(id).map_or_else(Wakeups::new, |transaction| transaction.doom(now, fault))
    }

    /// The other transaction in which an unsettled delivery is.
    pub(crate) fn rival(
        &self,
        id: TransactionId,
        session: SessionId,
        delivery_id: u32,
    ) -> Option<TransactionId> {
        self.unsettled.get(&(session, delivery_id)).copied().filter(|other| *other != id)
    }

    pub(crate) fn has_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Notes the outcome that an unsettled delivery has in a transaction.
    pub(crate) fn tell(
        &mut self,
        id: TransactionId,
        session: SessionId,
        delivery_id: u32,
        state: &DeliveryState,
    ) {
        let Some(work) = self.works.get_mut(&id) else { return };
        self.unsettled.insert((session, delivery_id), id);
        match work.told.last_mut() {
            Some(last)
                if last.session == session
                    && last.last.wrapping_add(1) == delivery_id
                    && last.state == *state =>
            {
                last.last = delivery_id;
            }
            _ => {
                let state = state.clone();
                work.told.push(Told { session, first: delivery_id, last: delivery_id, state });
            }
        }
    }

    /// Does what a transaction says, and settles the deliveries in it; or says why not.
    pub(crate) fn commit(&mut self, now: Now, id: TransactionId, ends: Ends<'_>) -> Option<Fault> {
        let work = self.remove(id)?;
        let transaction = match work.state {
            State::Live { transaction, .. } => transaction,
            State::Dead(fault) => return Some(fault),
        };
        match transaction.commit(now) {
            Ok(woken) => {
                ends.wakeups.merge(woken);
                for Told { session, first, last, state } in work.told {
                    let (engine, settlements) = (&mut *ends.engine, &mut *ends.settlements);
                    engine.resolve_outgoing(session, first, last, false, &mut |link, _, _| {
                        settlements.touch(link);
                    });
                    engine.settle_outgoing(session, first, last, Some(state));
                }
                None
            }
            Err(transaction) => {
                let fault = transaction.fault().cloned();
                undo(now, transaction, &work.told, ends);
                fault
            }
        }
    }

    /// Undoes a transaction, and forgets it.
    ///
    /// Deliveries that the peer has not settled are its own again; others have been settled with
    /// the default outcome.
    pub(crate) fn roll_back(&mut self, now: Now, id: TransactionId, ends: Ends<'_>) {
        let Some(work) = self.remove(id) else { return };
        if let State::Live { transaction, .. } = work.state {
            undo(now, *transaction, &work.told, ends);
        }
    }

    /// Undoes the transactions that were declared over a link that is gone.
    pub(crate) fn roll_back_of(&mut self, now: Now, control: LinkId, mut ends: Ends<'_>) {
        let of_link = self.works.iter().filter(|(_, work)| work.control == control);
        let ids: Vec<TransactionId> = of_link.map(|(id, _)| *id).collect();
        for id in ids {
            self.roll_back(now, id, ends.again());
        }
    }

    /// Undoes everything, as the connection is over: what was settled has this outcome if it broke
    /// off.
    pub(crate) fn roll_back_all(
        &mut self,
        now: Now,
        outcome: Option<&Outcome>,
        wakeups: &mut Wakeups,
    ) {
        let all = std::mem::take(self);
        self.next = all.next;
        for work in all.works.into_values() {
            if let State::Live { transaction, .. } = work.state {
                wakeups.merge(match outcome {
                    Some(outcome) => transaction.rollback_with(now, outcome),
                    None => transaction.rollback(now),
                });
            }
        }
    }

    /// When the next one has to be undone because it takes too long.
    pub(crate) fn next_timeout_ms(&self) -> Option<u64> {
        Some(self.earliest_ms).filter(|earliest_ms| *earliest_ms != NEVER)
    }

    /// Undoes those that have taken too long; their controllers hear of it when they discharge
    /// them.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Now,
        timeout_ms: u64,
        rations: &Rations,
        mut ends: Ends<'_>,
    ) {
        if self.earliest_ms > now.mono_ms {
            return;
        }
        self.earliest_ms = NEVER;
        for (id, work) in &mut self.works {
            let State::Live { transaction, deadline_ms } = &mut work.state else { continue };
            if *deadline_ms <= now.mono_ms {
                let began_ms = transaction.began_ms().unwrap_or(now.mono_ms);
                *deadline_ms = began_ms.saturating_add(timeout_ms);
            }
            if *deadline_ms > now.mono_ms {
                self.earliest_ms = self.earliest_ms.min(*deadline_ms);
                continue;
            }
            let dead = State::Dead(Fault::TimedOut { timeout_ms });
            let State::Live { transaction, .. } = std::mem::replace(&mut work.state, dead) else {
                continue;
            };
            if let Some(more) = rations.take(Remark::TransactionTimedOut, now) {
                tracing::info!(transaction = %id, "a transaction took too long and was rolled back{more}");
            }
            let told = std::mem::take(&mut work.told);
            forget(&mut self.unsettled, &told);
            undo(now, *transaction, &told, ends.again());
        }
    }

    fn remove(&mut self, id: TransactionId) -> Option<Work> {
        let work = self.works.remove(&id)?;
        self.recent = None;
        forget(&mut self.unsettled, &work.told);
        if self.works.is_empty() {
            self.earliest_ms = NEVER;
        }
        Some(work)
    }
}

/// Where the end of a transaction is told.
pub(crate) struct Ends<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) links: &'a mut Links,
    pub(crate) settlements: &'a mut Settlements,
    pub(crate) wakeups: &'a mut Wakeups,
}

impl Ends<'_> {
    fn again(&mut self) -> Ends<'_> {
        Ends {
            engine: self.engine,
            links: self.links,
            settlements: self.settlements,
            wakeups: self.wakeups,
        }
    }
}

/// Undoes a transaction. Deliveries that the peer has not settled go back to their consumers, who
/// are asked for another outcome (part 4, 4.4.2).
fn undo(now: Now, transaction: Transaction, told: &[Told], ends: Ends<'_>) {
    let mut of_links: Vec<(LinkId, Vec<u64>)> = Vec::new();
    for Told { session, first, last, .. } in told {
        let mut give_back = |link, position, _| match of_links.last_mut() {
            Some((last, positions)) if *last == link => positions.push(position),
            _ => of_links.push((link, vec![position])),
        };
        ends.engine.resolve_outgoing(*session, *first, *last, false, &mut give_back);
    }
    for (link, positions) in of_links {
        let Some(outgoing) = ends.links.outgoing(link) else { continue };
        let held = Held {
            queue: &outgoing.queue,
            consumer: outgoing.consumer,
            default_outcome: outgoing.outcome_of_rollback(),
            settled: false,
        };
        ends.wakeups.merge(transaction.give_back(now, &held, &positions));
    }
    ends.wakeups.merge(transaction.rollback(now));
}

/// Deliveries are in no transaction any more.
fn forget(unsettled: &mut BTreeMap<(SessionId, u32), TransactionId>, told: &[Told]) {
    for Told { session, first, last, .. } in told {
        let mut id = *first;
        loop {
            unsettled.remove(&(*session, id));
            if id == *last {
                break;
            }
            id = id.wrapping_add(1);
        }
    }
}

const NEVER: u64 = u64::MAX;
