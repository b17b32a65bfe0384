//! Transactions of `send` and `receive`: every so many messages one is ended and the next begun.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mochila_client::Error;
use mochila_engine::{AttachRequest, Connection, LinkId};
use mochila_wire::transaction::{Declare, Discharge, LOCAL_TRANSACTIONS};
use mochila_wire::{Coordinator, DeliveryState, Encode, Source, TargetArchetype};

use crate::attachment::{Attachment, failure};
use crate::failure::{Failure, Outcome};

/// How many messages a transaction has, and how many transactions are in vain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Messages in a transaction.
    pub(crate) batch: u32,
    /// Every so many transactions one is rolled back; 0 = none.
    pub(crate) rollback_frequency: u32,
    /// Messages that may be under way at a time.
    pub(crate) capacity: u32,
}

impl Plan {
    /// How many transactions follow the one that is open: as many as the messages under way are in,
    /// so that these come in as large portions as without transactions.
    fn ahead(self) -> usize {
        (self.capacity / self.batch.max(1)).clamp(LEAST_AHEAD, MOST_AHEAD) as usize
    }
}

/// A link to the coordinator, and the transaction that is open.
#[derive(Debug)]
pub(crate) struct Transacting {
    control: LinkId,
    plan: Plan,
    /// The transaction that is open, once the broker has named it.
    id: Option<Box<[u8]>>,
    /// Those that follow, with the time at which the broker named them: who ends one need not
    /// wait for the next.
    spare: VecDeque<(Box<[u8]>, Instant)>,
    /// How many the broker has still to name.
    declaring: usize,
    /// How many it has still to end.
    discharging: usize,
    /// How many may follow the one that is open, as far as the broker has told.
    most_ahead: usize,
    /// When the transaction that is open became so.
    since: Instant,
    /// How many have been ended.
    count: u32,
    /// The message with which the last one ended.
    ended_with: u64,
    /// What the coordinator has still to be asked.
    to_ask: VecDeque<(Question, Vec<u8>)>,
    is_over: bool,
}

impl Transacting {
    /// Attaches to the coordinator and begins the first transaction; nothing if the plan has none.
    pub(crate) fn make(attachment: &mut Attachment, plan: Plan) -> Outcome<Option<Transacting>> {
        if plan.batch == 0 {
            return Ok(None);
        }
        let target = Coordinator { capabilities: vec![LOCAL_TRANSACTIONS] }.into();
        let name = mochila_client::unique_name("coordinator");
        let request = AttachRequest::sender(name, Source::default(), target);
        let Attachment { driver, session, .. } = attachment;
        let (control, peer) = driver.attach(*session, request).map_err(failure)?;
        if !matches!(peer.target, Some(TargetArchetype::Coordinator(_))) {
            let detail = "the broker has no coordinator";
            return Err(Failure::new("TransactionError", detail));
        }
        let mut transacting = Transacting {
            control,
            plan,
            id: None,
            spare: VecDeque::new(),
            declaring: 0,
            discharging: 0,
            most_ahead: usize::MAX,
            since: Instant::now(),
            count: 0,
            ended_with: 0,
            to_ask: VecDeque::new(),
            is_over: false,
        };
        transacting.declare(1);
        Ok(Some(transacting))
    }

    pub(crate) fn control(&self) -> LinkId {
        self.control
    }

    /// Whether messages may be sent or settled.
    pub(crate) fn is_open(&self) -> bool {
        self.id.is_some()
    }

    /// Whether the coordinator has nothing more to say.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_over && self.declaring == 0 && self.discharging == 0
    }

    /// Whether a transaction ends with this message. Messages that do not count may follow it.
    pub(crate) fn ends_with(&mut self, count: u64) -> bool {
        let ends = count != self.ended_with && count.is_multiple_of(u64::from(self.plan.batch));
        if ends {
            self.ended_with = count;
        }
        ends
    }

    /// What a delivery in the transaction is in.
    pub(crate) fn state(&self, outcome: Option<DeliveryState>) -> Option<DeliveryState> {
        let txn_id = self.id.clone()?;
        Some(DeliveryState::Transactional { txn_id, outcome: outcome.map(Box::new) })
    }

    /// Ends the transaction, and begins the next one unless it is the last.
    pub(crate) fn end(&mut self, is_last: bool) {
        let Some(txn_id) = self.id.take() else { return };
        self.count += 1;
        let frequency = self.plan.rollback_frequency;
        let fail = frequency > 0 && self.count.is_multiple_of(frequency);
        self.discharge(txn_id, fail);
        if is_last {
            self.is_over = true;
            self.give_up_spares(Duration::ZERO);
            return;
        }
        // Transactions have a time limit, so those who take their time have only one.
        let now = Instant::now();
        let ahead = if now.duration_since(self.since) < QUICK { self.plan.ahead() } else { 1 };
        self.since = now;
        self.give_up_spares(STALE);
        self.id = self.spare.pop_front().map(|(id, _)| id);
        let fewest = usize::from(self.id.is_none());
        self.declare(ahead.min(self.most_ahead).max(fewest));
    }

    /// Asks for transactions until so many follow, or are about to.
    fn declare(&mut self, ahead: usize) {
        for _ in (self.spare.len() + self.declaring)..ahead {
            self.to_ask.push_back((Question::Declare, control_message(&Declare::default())));
            self.declaring += 1;
        }
    }

    fn discharge(&mut self, txn_id: Box<[u8]>, fail: bool) {
        let message = control_message(&Discharge { txn_id, fail });
        self.to_ask.push_back((Question::Discharge, message));
        self.discharging += 1;
    }

    /// Ends those of the following transactions that have been declared so long ago or longer.
    fn give_up_spares(&mut self, age: Duration) {
        while self.spare.front().is_some_and(|(_, since)| since.elapsed() >= age) {
            let Some((txn_id, _)) = self.spare.pop_front() else { return };
            self.discharge(txn_id, true);
        }
    }

    /// Asks the coordinator what it has to be asked.
    pub(crate) fn pump(&mut self, engine: &mut Connection) {
        if !self.to_ask.is_empty() {
            // Outcomes are written with the next output: what is in the transaction has to be told
            // before its end.
            engine.output();
        }
        while !self.to_ask.is_empty() {
            let Some(mut outgoing) = engine.outgoing(self.control) else { return };
            if outgoing.capacity() == 0 {
                return;
            }
            let Some((question, message)) = self.to_ask.pop_front() else { return };
            outgoing.send(question as u64, false, 0, &[&message]);
        }
    }

    /// The coordinator has answered the question that was sent with this token.
    pub(crate) fn answered(&mut self, token: u64, state: Option<DeliveryState>) -> Outcome {
        match Question::of(token) {
            Question::Declare => self.declaring = self.declaring.saturating_sub(1),
            Question::Discharge => self.discharging = self.discharging.saturating_sub(1),
        }
        match state {
            Some(DeliveryState::Declared { txn_id }) => self.named(txn_id),
            Some(DeliveryState::Accepted) => {}
            _ if Question::of(token) == Question::Declare && self.can_do_with_fewer() => {
                self.most_ahead = self.spare.len();
            }
            Some(DeliveryState::Rejected { error: Some(error) }) => {
                return Err(Failure::new("TransactionAborted", error));
            }
            _ => return Err(Failure::new("TransactionAborted", "the coordinator refused")),
        }
        // One that was refused because of those that had not ended yet.
        if self.id.is_none() && !self.is_over {
            self.declare(usize::from(self.discharging == 0));
        }
        Ok(())
    }

    /// Whether messages go on, now or soon, without another transaction.
    fn can_do_with_fewer(&self) -> bool {
        self.is_open() || self.is_over || self.declaring > 0 || self.discharging > 0
    }

    /// A transaction has begun.
    fn named(&mut self, txn_id: Box<[u8]>) {
        if self.is_over {
            self.discharge(txn_id, true);
        } else if self.id.is_none() {
            self.id = Some(txn_id);
        } else {
            self.spare.push_back((txn_id, Instant::now()));
        }
    }
}

/// What the coordinator is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Declare,
    Discharge,
}

impl Question {
    /// The question that was sent with this token.
    fn of(token: u64) -> Question {
        if token == Question::Declare as u64 { Question::Declare } else { Question::Discharge }
    }
}

/// A transaction does not survive its connection, nor the link that it is about.
pub(crate) fn lost(error: &Error) -> Failure {
    let detail = match error {
        Error::Session(_) | Error::Link(_) => error.to_string(),
        _ => format!("the connection was lost: {error}"),
    };
    Failure::new("TransactionAborted", detail)
}

/// A message whose body is a value.
fn control_message(value: &impl Encode) -> Vec<u8> {
    let mut bytes = AMQP_VALUE.to_vec();
    value.encode(&mut bytes);
    bytes
}

/// So many transactions follow the one that is open at least, where they are ended quickly.
const LEAST_AHEAD: u32 = 8;
/// So many at most: a session may have no more than 128 of them unless the broker is told.
const MOST_AHEAD: u32 = 64;
/// Whoever ends transactions as fast as this has others at hand.
const QUICK: Duration = Duration::from_secs(1);
/// A transaction at hand that has not been used for so long may soon be out of time.
const STALE: Duration = Duration::from_secs(5);
/// The descriptor of the section `amqp-value`.
const AMQP_VALUE: &[u8] = &[0x00, 0x53, 0x77];

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::{AmqpError, condition};

    #[test]
    fn a_transaction_whose_queue_is_deleted_has_not_lost_its_connection() {
        let error = AmqpError::new(condition::RESOURCE_DELETED, "queue 'q' has been deleted");
        let failure = lost(&Error::Link(Some(Box::new(error)))).to_string();
        let words =
            "the link was closed by the peer: amqp:resource-deleted: queue 'q' has been deleted";
        assert_eq!(failure, format!("Failed: TransactionAborted: {words}"));
        let failure = lost(&Error::Connection(None)).to_string();
        assert!(failure.contains("the connection was lost"), "{failure}");
    }
}
