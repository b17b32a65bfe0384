//! A link that sends.

use std::collections::BTreeSet;

use mochila_engine::{AttachRequest, Delivery};
use mochila_wire::performative::SenderSettleMode;
use mochila_wire::{DeliveryState, Source, Target};

use super::hand::Hand;
use super::plan::SenderPlan;
use super::scope::Scope;
use crate::ledger::Ledger;
use crate::letter::Letter;
use crate::number::{MessageNo, SenderNo, TransactionNo};
use crate::selector::Colour;

/// Sends what it is told to, each message once, and keeps account of the outcomes.
#[derive(Debug)]
pub(crate) struct Sender {
    no: SenderNo,
    plan: SenderPlan,
    left: u32,
    unsettled: BTreeSet<MessageNo>,
    open: Option<Open>,
    scope: Scope,
    /// The controller may have waited for the end of a message.
    calls_controller: bool,
}

/// A message that has been sent in part.
#[derive(Debug)]
struct Open {
    no: MessageNo,
    bytes: Vec<u8>,
    sent: usize,
    settled: bool,
    within: Option<TransactionNo>,
    /// It is given up once so much of it is sent.
    abort_at: Option<usize>,
}

impl Sender {
    pub(crate) fn new(no: SenderNo, plan: SenderPlan, scope: Scope) -> Sender {
        Sender {
            no,
            left: plan.messages,
            plan,
            unsettled: BTreeSet::new(),
            open: None,
            scope,
            calls_controller: false,
        }
    }

    pub(crate) fn request(&self, name: &str, hand_count: u32) -> AttachRequest {
        let target = match self.plan.anonymous {
            true => Target::default(),
            false => Target::at(self.plan.queues[0].as_str()),
        };
        AttachRequest {
            snd_settle_mode: match self.plan.settled {
                0 => SenderSettleMode::Unsettled,
                100 => SenderSettleMode::Settled,
                _ => SenderSettleMode::Mixed,
            },
            initial_delivery_count: hand_count,
            ..AttachRequest::sender(name, Source::default(), target.into())
        }
    }

    /// Sends some messages, or pieces; when to go on, if nothing has to happen first.
    pub(crate) fn act(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        let next = self.send_some(hand);
        let calls_controller = std::mem::take(&mut self.calls_controller);
        next.or_else(|| if calls_controller { hand.soon() } else { None })
    }

    fn send_some(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        let most = if self.plan.is_eager { u64::MAX } else { hand.random.between(1, 8) };
        for _ in 0..most {
            if self.open.is_none() && !self.begin(hand) {
                return None;
            }
            if self.open.is_some() && !self.go_on(hand) {
                return None;
            }
        }
        hand.soon()
    }

    /// The outcome of a delivery.
    pub(crate) fn concluded(
        &mut self,
        token: u64,
        state: Option<&DeliveryState>,
        book: &mut Ledger,
    ) {
        let no = MessageNo(token as usize);
        assert!(self.unsettled.remove(&no), "{no:?} was settled twice");
        let outcome = match state {
            Some(DeliveryState::Transactional { outcome, .. }) => outcome.as_deref(),
            state => state,
        };
        match outcome {
            Some(DeliveryState::Accepted) => book.accepted(no),
            Some(DeliveryState::Rejected { error }) => book.refused(no, error.as_deref()),
            other => panic!("the outcome of {no:?} is {other:?}"),
        }
    }

    /// The link is gone, and the fate of what was under way with it.
    pub(crate) fn lost(&mut self, book: &mut Ledger) {
        if let Some(open) = self.open.take() {
            self.give_up(&open, book);
        }
        for no in std::mem::take(&mut self.unsettled) {
            book.unsure(no);
        }
    }

    /// No new messages.
    pub(crate) fn stop(&mut self) {
        self.left = 0;
    }

    /// Whether it has messages left to send.
    pub(crate) fn wants_credit(&self) -> bool {
        self.left > 0
    }

    /// The queue that holds it back if it has no credit.
    pub(crate) fn queue(&self) -> Option<&str> {
        (!self.plan.anonymous).then(|| self.plan.queues[0].as_str())
    }

    /// When nothing more happens, everything that was sent has an outcome.
    pub(crate) fn check_rest(&self) {
        let open = self.open.as_ref().map(|open| open.no);
        let waiting: Vec<_> = self.unsettled.iter().filter(|no| Some(**no) != open).collect();
        assert!(waiting.is_empty(), "{:?} waits for outcomes of {waiting:?}", self.no);
        assert!(open.is_none(), "{:?} is stuck in the middle of {open:?}", self.no);
    }

    /// Sends a message, or the beginning of one; false if there is no message, credit or window.
    fn begin(&mut self, hand: &mut Hand<'_>) -> bool {
        let may_send = hand.engine.outgoing(hand.link).is_some_and(|mut wire| wire.capacity() > 0);
        if self.left == 0 || !may_send {
            return false;
        }
        self.left -= 1;
        let queue = hand.random.pick(&self.plan.queues).clone();
        let letter = Letter {
            body_bytes: *hand.random.pick(self.plan.sizes),
            ttl_ms: hand
                .random
                .chance(self.plan.mortal)
                .then(|| *hand.random.pick(&[0, 1, 30, 1_000, 60_000])),
            colour: Colour::any(hand.random),
            priority: *hand.random.pick(&[4, 4, 4, 0, 5, 9]),
            group: (self.plan.groups > 0).then(|| hand.random.below(self.plan.groups) as u32),
            key: (self.plan.keys > 0).then(|| hand.random.below(self.plan.keys) as u32),
            to: self.plan.anonymous.then(|| queue.clone()),
        };
        let settled = hand.random.chance(self.plan.settled);
        let (no, bytes) = hand.ledger.compose(self.no, &queue, &letter, hand.random);
        let current = self.scope.current().filter(|_| hand.random.chance(WITHIN));
        let within = current.as_ref().map(|current| current.no);
        if let Some(within) = within {
            hand.ledger.sends_within(no, within);
        }
        let abort_at =
            hand.random.chance(self.plan.aborted).then(|| hand.random.below(bytes.len()));
        let in_pieces = abort_at.is_some() || hand.random.chance(20);
        let Some(mut wire) = hand.engine.outgoing(hand.link) else { return false };
        let state = current.as_ref().map(|current| current.state(None));
        let state = state.as_ref();
        let delivery = Delivery { token: no.0 as u64, settled, state, ..Delivery::default() };
        if !settled {
            self.unsettled.insert(no);
        }
        if !in_pieces && wire.fits_as(&delivery, bytes.len()) {
            wire.deliver(&delivery, &[&bytes]);
            hand.ledger.sent(hand.connection, no, settled);
            return true;
        }
        let first = hand.random.below(bytes.len().min(MOST_PER_PIECE));
        let progress = wire.start_large(&delivery, &bytes[..first]);
        if within.is_some() {
            self.scope.begin_pieces();
        }
        self.open = Some(Open { no, bytes, sent: progress.taken, settled, within, abort_at });
        true
    }

    /// Sends the next piece; false if the window is closed.
    fn go_on(&mut self, hand: &mut Hand<'_>) -> bool {
        let Some(open) = &mut self.open else { return true };
        let Some(mut wire) = hand.engine.outgoing(hand.link) else { return false };
        // Nothing is sent in a transaction whose controller is gone.
        let is_orphan = open.within.is_some_and(|within| !self.scope.is_current(within));
        if is_orphan || open.abort_at.is_some_and(|at| open.sent >= at) {
            if !wire.abort_large() {
                return false;
            }
            if let Some(open) = self.open.take() {
                self.give_up(&open, hand.ledger);
            }
            return true;
        }
        let rest = &open.bytes[open.sent..];
        let len = hand.random.between(1, rest.len().min(MOST_PER_PIECE) as u64) as usize;
        let progress = wire.continue_large(&rest[..len], len == rest.len());
        open.sent += progress.taken;
        if progress.done {
            hand.ledger.sent(hand.connection, open.no, open.settled);
            if open.within.is_some() {
                self.scope.end_pieces();
                self.calls_controller = true;
            }
            self.open = None;
            return true;
        }
        progress.taken == len
    }

    /// A message was sent in part, and the rest is not.
    fn give_up(&mut self, open: &Open, book: &mut Ledger) {
        if open.within.is_some() {
            self.scope.end_pieces();
            self.calls_controller = true;
        }
        self.unsettled.remove(&open.no);
        book.aborted(open.no);
    }
}

const MOST_PER_PIECE: usize = 4_000;
/// So many of a hundred are sent in a transaction if one is open.
const WITHIN: u32 = 70;
