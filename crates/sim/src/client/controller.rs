//! A link that declares and discharges transactions.

use mochila_engine::AttachRequest;
use mochila_wire::message::Body;
use mochila_wire::transaction::{Declare, Discharge, LOCAL_TRANSACTIONS};
use mochila_wire::{Coordinator, Decode, DeliveryState, Encode, Message, Source, Value, condition};

use super::hand::Hand;
use super::plan::{ControllerPlan, TRANSACTION_TIMEOUT_MS};
use super::scope::{Current, Ending, Scope};
use crate::ledger::{End, Ledger};

/// Declares one transaction after the other, and ends each.
#[derive(Debug)]
pub(crate) struct Controller {
    plan: ControllerPlan,
    left: u32,
    scope: Scope,
    state: State,
}

/// Where its transaction stands.
#[derive(Debug)]
enum State {
    Idle,
    /// Its declaration was sent at this time.
    Declaring {
        from_ms: u64,
    },
    /// It is discharged at this time.
    Open {
        current: Current,
        until_ms: u64,
    },
    /// Nothing more is done in it; what was done may not have been written yet.
    Closing {
        current: Current,
    },
    /// It was asked to end like this.
    Discharged {
        current: Current,
        end: End,
    },
}

impl Controller {
    pub(crate) fn new(plan: ControllerPlan, scope: Scope) -> Controller {
        Controller { left: plan.transactions, plan, scope, state: State::Idle }
    }

    pub(crate) fn request(&self, name: &str) -> AttachRequest {
        let target = Coordinator { capabilities: vec![LOCAL_TRANSACTIONS] };
        AttachRequest::sender(name, Source::default(), target.into())
    }

    /// Declares or discharges a transaction; when to go on, if nothing has to happen first.
    pub(crate) fn act(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => {
                if self.left > 0 && control(hand, &Declare::default()) {
                    self.left -= 1;
                    self.state = State::Declaring { from_ms: hand.now.mono_ms };
                }
                None
            }
            State::Open { current, until_ms } => {
                let is_late = until_ms <= hand.now.mono_ms;
                if !is_late || !self.scope.close() {
                    self.state = State::Open { current, until_ms };
                    // Who has sent a message in part calls when the rest is sent.
                    return (!is_late).then_some(until_ms);
                }
                // What was told in this step is written at the end of it.
                self.state = State::Closing { current };
                Some(hand.now.mono_ms)
            }
            State::Closing { current } => {
                let end = match hand.random.chance(self.plan.rollbacks) {
                    true => End::RolledBack,
                    false => End::Committed,
                };
                let fail = end == End::RolledBack;
                if !control(hand, &Discharge { txn_id: current.id(), fail }) {
                    self.state = State::Closing { current };
                    return None;
                }
                hand.ledger.discharges(current.no, end);
                self.state = State::Discharged { current, end };
                None
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    /// The coordinator has answered.
    pub(crate) fn concluded(&mut self, state: Option<&DeliveryState>, hand: &mut Hand<'_>) {
        self.state = match (std::mem::replace(&mut self.state, State::Idle), state) {
            (State::Declaring { from_ms }, Some(DeliveryState::Declared { txn_id })) => {
                let deadline_ms = from_ms + TRANSACTION_TIMEOUT_MS;
                let no = hand.ledger.declared(hand.connection, deadline_ms);
                let current = Current::new(no, txn_id.clone());
                self.scope.open(current.clone());
                let is_slow = hand.random.chance(self.plan.slow);
                let most_ms = if is_slow { 2 * TRANSACTION_TIMEOUT_MS } else { 200 };
                let until_ms = hand.now.mono_ms + hand.random.between(0, most_ms);
                State::Open { current, until_ms }
            }
            (State::Discharged { current, end }, Some(DeliveryState::Accepted)) => {
                self.ended(&current, end, hand.ledger);
                State::Idle
            }
            (State::Discharged { current, .. }, Some(DeliveryState::Rejected { error })) => {
                let condition = error.as_ref().map(|error| error.condition.clone());
                let is_known = [condition::TRANSACTION_ROLLBACK, condition::TRANSACTION_TIMEOUT]
                    .into_iter()
                    .any(|known| condition == Some(known));
                assert!(is_known, "a discharge was rejected: {error:?}");
                self.ended(&current, End::RolledBack, hand.ledger);
                State::Idle
            }
            (state, answer) => panic!("the coordinator said {answer:?} to {state:?}"),
        };
    }

    /// The link is gone, and its transaction with it, unless it was committed.
    pub(crate) fn lost(&mut self, book: &mut Ledger) {
        let (current, ending) = match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle | State::Declaring { .. } => return,
            State::Discharged { current, end: End::Committed } => (current, Ending::Unknown),
            State::Open { current, .. }
            | State::Closing { current }
            | State::Discharged { current, .. } => (current, Ending::Is(End::RolledBack)),
        };
        book.abandons(current.no);
        self.scope.end(current.no, ending);
    }

    /// No new transactions, and the one that is open ends.
    pub(crate) fn stop(&mut self) {
        self.left = 0;
        if let State::Open { until_ms, .. } = &mut self.state {
            *until_ms = 0;
        }
        self.plan.slow = 0;
    }

    /// When nothing more happens, no transaction is open whose time has come.
    pub(crate) fn check_rest(&self, now_ms: u64) {
        let is_at_rest = match &self.state {
            State::Idle => self.left == 0,
            State::Open { until_ms, .. } => *until_ms > now_ms,
            State::Declaring { .. } | State::Closing { .. } | State::Discharged { .. } => false,
        };
        assert!(is_at_rest, "a controller is not at rest: {self:?}");
    }

    fn ended(&self, current: &Current, end: End, book: &mut Ledger) {
        book.discharged(current.no, end);
        self.scope.end(current.no, Ending::Is(end));
    }
}

/// Sends a message to the coordinator; false if there is no credit or no window.
fn control(hand: &mut Hand<'_>, body: &impl Encode) -> bool {
    let value = Value::from_bytes(&body.to_bytes()).expect("what was encoded is a value");
    let bytes = Message { body: Body::Value(value), ..Message::default() }.to_bytes();
    let Some(mut wire) = hand.engine.outgoing(hand.link) else { return false };
    let fits = wire.fits(bytes.len());
    if fits {
        wire.send(0, false, 0, &[&bytes]);
    }
    fits
}
