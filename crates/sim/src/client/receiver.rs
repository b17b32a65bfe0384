//! A link that receives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mochila_engine::{AttachRequest, TransferEvent};
use mochila_wire::performative::{ReceiverSettleMode, SenderSettleMode};
use mochila_wire::terminus::{DISTRIBUTION_COPY, JMS_SELECTOR};
use mochila_wire::{DeliveryState, Map, Source, Target};

use super::hand::Hand;
use super::plan::{CreditPlan, ReceiverPlan};
use super::scope::{Current, Ending, Scope};
use crate::ledger::{End, Ledger, Pledge, Taker, Verdict};
use crate::letter::MARK;
use crate::number::{ConnectionNo, MessageNo, ReceiverNo, SenderNo, TransactionNo};
use crate::selector::{Colour, Selector};

/// Takes messages, and says what it is told to say of them.
#[derive(Debug)]
pub(crate) struct Receiver {
    no: ReceiverNo,
    plan: ReceiverPlan,
    partial: Vec<u8>,
    held: VecDeque<Held>,
    /// Deliveries that it has told the outcome of, and that the broker has not settled.
    waiting: BTreeSet<u32>,
    /// Deliveries that it has told the outcome of in a transaction, and not settled.
    pledged: Vec<(TransactionNo, Held)>,
    scope: Scope,
    /// Messages that it must not get again over this link.
    excluded: BTreeSet<MessageNo>,
    /// The place of the last new message of each sender, and lane if order is kept in that only.
    newest: BTreeMap<(SenderNo, Option<u32>), u64>,
    /// What it has browsed over this link.
    seen: BTreeSet<MessageNo>,
    drains_left: u32,
    marks: u64,
    is_frank: bool,
}

/// What a receiver could take.
#[derive(Clone, Debug)]
pub(crate) struct Appetite {
    pub(crate) queue: String,
    pub(crate) receiver: ReceiverNo,
    pub(crate) connection: ConnectionNo,
    selector: Option<Selector>,
    /// What it must not get again.
    excluded: BTreeSet<MessageNo>,
    /// How many it has and has not settled.
    pub(crate) held: usize,
}

impl Appetite {
    /// Whether it wants a message of this colour.
    pub(crate) fn wants(&self, no: MessageNo, colour: Option<Colour>) -> bool {
        !self.excluded.contains(&no) && self.selector.is_none_or(|it| it.wants(colour))
    }
}

/// A delivery that is not settled.
#[derive(Debug)]
struct Held {
    id: u32,
    message: MessageNo,
    kept: bool,
}

impl Receiver {
    pub(crate) fn new(no: ReceiverNo, plan: ReceiverPlan, scope: Scope) -> Receiver {
        let drains_left = match plan.credit {
            CreditPlan::Drain(_, times) => times,
            _ => 0,
        };
        Receiver {
            no,
            plan,
            partial: Vec::new(),
            held: VecDeque::new(),
            waiting: BTreeSet::new(),
            pledged: Vec::new(),
            scope,
            excluded: BTreeSet::new(),
            newest: BTreeMap::new(),
            seen: BTreeSet::new(),
            drains_left,
            marks: no.0 as u64 * 1_000_000,
            is_frank: false,
        }
    }

    pub(crate) fn request(&self, name: &str) -> AttachRequest {
        let source = Source {
            address: self.plan.queue.clone(),
            dynamic: self.plan.queue.is_none(),
            dynamic_node_properties: self
                .plan
                .exclusive
                .then(|| Map::new().with("exclusive", true)),
            distribution_mode: self.plan.browse.then_some(DISTRIBUTION_COPY),
            filter: self.plan.selector.map(filter_of),
            default_outcome: self
                .plan
                .fails_by_default
                .then(|| DeliveryState::modified(true, false)),
            ..Source::default()
        };
        AttachRequest {
            snd_settle_mode: match self.plan.settled {
                true => SenderSettleMode::Settled,
                false => SenderSettleMode::Mixed,
            },
            rcv_settle_mode: match self.plan.second {
                true => ReceiverSettleMode::Second,
                false => ReceiverSettleMode::First,
            },
            ..AttachRequest::receiver(name, source, Target::default().into())
        }
    }

    /// Settles some deliveries and looks after its credit; when to go on, if nothing has to happen
    /// first.
    pub(crate) fn act(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        self.look_at_transactions();
        self.settle_some(hand);
        self.give_credit(hand);
        let has_more = self.held.iter().any(|held| !held.kept) || self.wants_to_drain(hand);
        if has_more { hand.soon() } else { None }
    }

    /// One frame of a delivery.
    pub(crate) fn transfer(&mut self, hand: &mut Hand<'_>, event: &TransferEvent, payload: &[u8]) {
        if event.start {
            assert!(self.partial.is_empty(), "{:?}: a delivery began inside another", self.no);
        }
        if event.aborted {
            self.partial.clear();
            return;
        }
        self.partial.extend_from_slice(payload);
        if event.more {
            return;
        }
        assert_eq!(event.settled, self.plan.settled, "{:?} asked for something else", self.no);
        let bytes = std::mem::take(&mut self.partial);
        let queue = self.plan.queue.clone().unwrap_or_default();
        let taker = Taker {
            no: self.no,
            connection: hand.connection,
            queue: &queue,
            selector: self.plan.selector.as_ref(),
            settled: event.settled,
        };
        if self.plan.browse {
            let no = hand.ledger.browsed(&taker, &bytes);
            assert!(self.seen.insert(no), "{:?} was shown {no:?} twice", self.no);
            self.hold(event, no, false);
            return;
        }
        let delivered = hand.ledger.delivered(&taker, &bytes);
        let no = delivered.no;
        assert!(!self.excluded.contains(&no), "{:?} got {no:?} again", self.no);
        if delivered.is_first {
            let rank = delivered.rank;
            let before = self.newest.insert((delivered.sender, delivered.lane), rank);
            assert!(before < Some(rank), "{:?} got {no:?}, and {before:?} before {rank}", self.no);
        }
        self.hold(event, no, hand.random.chance(self.plan.kept));
    }

    /// The broker has settled deliveries whose outcome it was told.
    pub(crate) fn settled_by_broker(&mut self, first: u32, last: u32) {
        let len = last.wrapping_sub(first);
        self.waiting.retain(|id| id.wrapping_sub(first) > len);
        self.pledged.retain(|(_, held)| held.id.wrapping_sub(first) > len);
    }

    /// The link is gone.
    pub(crate) fn lost(&mut self, connection: ConnectionNo, book: &mut Ledger) {
        for held in std::mem::take(&mut self.held) {
            if !self.plan.browse {
                book.lets_go(connection, held.message, self.plan.fails_by_default);
            }
        }
        for (within, held) in std::mem::take(&mut self.pledged) {
            if !self.plan.browse {
                book.leaves_to(connection, held.message, within);
            }
        }
        self.partial.clear();
        self.waiting.clear();
        self.excluded.clear();
        self.newest.clear();
        self.seen.clear();
    }

    /// From now on it accepts everything.
    pub(crate) fn stop(&mut self) {
        self.is_frank = true;
        self.drains_left = 0;
    }

    /// What it would take if it has credit; nothing if it only looks, or has a queue of its own.
    pub(crate) fn appetite(&self, connection: ConnectionNo) -> Option<Appetite> {
        let queue = self.plan.queue.clone().filter(|_| !self.plan.browse)?;
        Some(Appetite {
            queue,
            receiver: self.no,
            connection,
            selector: self.plan.selector,
            excluded: self.excluded.clone(),
            held: self.held.len() + self.pledged.len(),
        })
    }

    /// Whether it takes messages away from others.
    pub(crate) fn is_acquiring(&self) -> bool {
        !self.plan.browse
    }

    /// How many messages it has been shown.
    pub(crate) fn browsed(&self) -> usize {
        self.seen.len()
    }

    /// When nothing more happens, nothing is half done.
    pub(crate) fn check_rest(&self) {
        assert!(self.partial.is_empty(), "{:?} waits for the rest of a message", self.no);
        assert!(self.waiting.is_empty(), "{:?} waits for settlements {:?}", self.no, self.waiting);
        let is_idle = self.held.iter().all(|held| held.kept);
        assert!(is_idle, "{:?} has not settled {:?}", self.no, self.held);
    }

    fn hold(&mut self, event: &TransferEvent, message: MessageNo, kept: bool) {
        if !event.settled {
            self.held.push_back(Held { id: event.delivery_id, message, kept });
        }
    }

    fn settle_some(&mut self, hand: &mut Hand<'_>) {
        if self.is_frank {
            self.held.iter_mut().for_each(|held| held.kept = false);
        }
        let mut some = hand.random.below(self.held.len() + 1);
        if hand.random.chance(10) {
            // Out of order now and then.
            let by = hand.random.below(self.held.len());
            self.held.rotate_left(by);
        }
        let mut kept = VecDeque::new();
        while some > 0 {
            let Some(first) = self.held.pop_front() else { break };
            some -= 1;
            if first.kept {
                kept.push_back(first);
                continue;
            }
            let verdict = self.verdict(hand);
            let within = self.transaction_for(verdict, hand);
            let (id, mut last) = (first.id, first.id);
            self.conclude(hand, first, verdict, within.as_ref());
            while some > 0
                && self
                    .held
                    .front()
                    .is_some_and(|next| !next.kept && next.id == last.wrapping_add(1))
                && let Some(next) = self.held.pop_front()
            {
                some -= 1;
                last = next.id;
                self.conclude(hand, next, verdict, within.as_ref());
            }
            self.tell(hand, (id, last), verdict, within.as_ref());
        }
        self.held.append(&mut kept);
    }

    /// The transaction in which an outcome is told, if in any.
    fn transaction_for(&self, verdict: Verdict, hand: &mut Hand<'_>) -> Option<Current> {
        let excludes = matches!(verdict, Verdict::Modify { undeliverable_here: true, .. });
        let may_be_within = !excludes && !self.is_frank && !self.plan.browse;
        let current = self.scope.current().filter(|_| may_be_within)?;
        hand.random.chance(WITHIN).then_some(current)
    }

    fn conclude(
        &mut self,
        hand: &mut Hand<'_>,
        held: Held,
        verdict: Verdict,
        within: Option<&Current>,
    ) {
        if self.plan.browse {
            return;
        }
        if let Some(current) = within {
            let is_settled = !self.plan.second;
            let pledge = Pledge { within: current.no, verdict, is_settled };
            hand.ledger.pledges(hand.connection, held.message, pledge);
            if !is_settled {
                self.pledged.push((current.no, held));
            }
            return;
        }
        if let Verdict::Modify { undeliverable_here: true, .. } = verdict {
            self.excluded.insert(held.message);
        }
        hand.ledger.settles(hand.connection, held.message, verdict);
    }

    fn tell(
        &mut self,
        hand: &mut Hand<'_>,
        (first, last): (u32, u32),
        verdict: Verdict,
        within: Option<&Current>,
    ) {
        let settled = !self.plan.second;
        if !settled && within.is_none() {
            let len = last.wrapping_sub(first);
            self.waiting.extend((0..=len).map(|offset| first.wrapping_add(offset)));
        }
        let state = match within {
            Some(current) => current.state(Some(state_of(verdict))),
            None => state_of(verdict),
        };
        hand.engine.settle_incoming(hand.session, first, last, state, settled);
    }

    /// What was told in a transaction that has ended is settled by the broker, or as before.
    fn look_at_transactions(&mut self) {
        for (within, held) in std::mem::take(&mut self.pledged) {
            match self.scope.ending(within) {
                Some(Ending::Is(End::Committed)) => {
                    self.waiting.insert(held.id);
                }
                Some(Ending::Is(End::RolledBack)) => self.held.push_back(held),
                Some(Ending::Unknown) | None => self.pledged.push((within, held)),
            }
        }
    }

    fn verdict(&mut self, hand: &mut Hand<'_>) -> Verdict {
        let outcomes = self.plan.outcomes;
        if self.is_frank {
            return Verdict::Accept;
        }
        let kinds = [
            outcomes.accept,
            outcomes.reject,
            outcomes.release,
            outcomes.modify,
            outcomes.not_here,
        ];
        let mut at = hand.random.below(kinds.iter().sum::<u32>() as usize) as u32;
        let kind = kinds.iter().position(|weight| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        });
        match kind {
            Some(1) => Verdict::Reject,
            Some(2) => Verdict::Release,
            Some(3) => {
                self.marks += 1;
                let mark = hand.random.chance(50).then_some(self.marks);
                Verdict::Modify { failed: hand.random.chance(50), undeliverable_here: false, mark }
            }
            Some(4) => Verdict::Modify { failed: true, undeliverable_here: true, mark: None },
            _ => Verdict::Accept,
        }
    }

    fn wants_to_drain(&self, hand: &Hand<'_>) -> bool {
        let link = hand.engine.link(hand.link);
        self.drains_left > 0 && link.is_some_and(|link| link.credit() == 0)
    }

    fn give_credit(&mut self, hand: &mut Hand<'_>) {
        let Some(link) = hand.engine.link(hand.link) else { return };
        let (credit, held) = (link.credit(), self.held.len() as u32);
        match self.plan.credit {
            CreditPlan::One if credit == 0 => hand.engine.grant(hand.link, 1),
            CreditPlan::Window(window) if credit <= window / 2 => {
                hand.engine.grant(hand.link, window);
            }
            CreditPlan::Fickle(most) => {
                let nothing_to_do = credit == 0 && held == 0;
                if nothing_to_do || hand.random.chance(30) {
                    let least = u64::from(nothing_to_do);
                    let credit = hand.random.between(least, u64::from(most)) as u32;
                    hand.engine.grant(hand.link, credit);
                }
            }
            CreditPlan::Drain(most, _) if credit == 0 && self.drains_left > 0 => {
                self.drains_left -= 1;
                let credit = hand.random.between(1, u64::from(most)) as u32;
                hand.engine.grant_drain(hand.link, credit);
            }
            CreditPlan::Drain(most, _) if credit == 0 => hand.engine.grant(hand.link, most),
            _ => {}
        }
    }
}

/// So many of a hundred outcomes are told in a transaction if one is open.
const WITHIN: u32 = 70;

fn filter_of(selector: Selector) -> Map {
    Map::new().with("selector", JMS_SELECTOR.with(selector.text))
}

fn state_of(verdict: Verdict) -> DeliveryState {
    match verdict {
        Verdict::Accept => DeliveryState::Accepted,
        Verdict::Reject => DeliveryState::Rejected { error: None },
        Verdict::Release => DeliveryState::Released,
        Verdict::Modify { failed, undeliverable_here, mark } => DeliveryState::Modified {
            delivery_failed: failed,
            undeliverable_here,
            message_annotations: mark.map(|mark| Map::new().with(MARK, mark)),
        },
    }
}
