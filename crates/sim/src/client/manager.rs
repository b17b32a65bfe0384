//! An operator: requests to `$management`, and their responses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mochila_engine::{AttachRequest, TransferEvent};
use mochila_wire::message::{Body, MessageId};
use mochila_wire::{DeliveryState, Encode, Map, Message, Source, Target, Value};

use super::hand::Hand;
use super::plan::ManagerPlan;

/// What has been asked and not answered.
#[derive(Debug, Default)]
struct Questions {
    next: u64,
    /// The link for the answers is there.
    is_listening: bool,
    open: BTreeMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    operation: &'static str,
    /// It may get lost, or its answer.
    may_be_lost: bool,
    statuses: &'static [i32],
}

/// The link to `$management`.
#[derive(Debug)]
pub(crate) struct Asker {
    plan: ManagerPlan,
    left: u32,
    reply_to: String,
    questions: Rc<RefCell<Questions>>,
}

/// The link from `$management`.
#[derive(Debug)]
pub(crate) struct Listener {
    reply_to: String,
    partial: Vec<u8>,
    questions: Rc<RefCell<Questions>>,
}

impl Questions {
    /// A link is gone: what was under way may be lost.
    fn give_up(&mut self) {
        self.open.values_mut().for_each(|question| question.may_be_lost = true);
    }
}

/// Both links of an operator.
pub(crate) fn manager(name: &str, plan: ManagerPlan) -> (Listener, Asker) {
    let questions = Rc::<RefCell<Questions>>::default();
    let reply_to = format!("{name}-replies");
    let listener = Listener {
        reply_to: reply_to.clone(),
        partial: Vec::new(),
        questions: Rc::clone(&questions),
    };
    (listener, Asker { left: plan.requests, plan, reply_to, questions })
}

impl Asker {
    pub(crate) fn request(&self, name: &str) -> AttachRequest {
        let target = Target::at(MANAGEMENT);
        AttachRequest::sender(name, Source::at(self.reply_to.as_str()), target.into())
    }

    /// Asks something, if there is something left to ask.
    pub(crate) fn act(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        let may_send = hand.engine.outgoing(hand.link).is_some_and(|mut wire| wire.capacity() > 0);
        if self.left == 0 || !may_send {
            return None;
        }
        self.left -= 1;
        let queue = hand.random.pick(&self.plan.queues).clone();
        let (question, message) = self.ask(&queue, hand);
        let bytes = message.to_bytes();
        let mut wire = hand.engine.outgoing(hand.link)?;
        if wire.fits(bytes.len()) {
            wire.send(0, false, 0, &[&bytes]);
            let mut questions = self.questions.borrow_mut();
            let number = questions.next;
            questions.next += 1;
            questions.open.insert(number, question);
        }
        let pause_ms = hand.random.between(1, 200);
        Some(hand.now.mono_ms + pause_ms)
    }

    pub(crate) fn concluded(&self, state: Option<&DeliveryState>) {
        assert_eq!(state, Some(&DeliveryState::Accepted), "a request was not accepted");
    }

    /// The link is gone, and questions with it.
    pub(crate) fn lost(&self) {
        self.questions.borrow_mut().give_up();
    }

    pub(crate) fn stop(&mut self) {
        self.left = 0;
    }

    fn ask(&self, queue: &str, hand: &mut Hand<'_>) -> (Question, Message) {
        if self.plan.closes_connections {
            return self.ask_to_close(hand);
        }
        let mut body = Map::new();
        let (operation, statuses): (&'static str, &'static [i32]) = match hand.random.below(8) {
            0 => {
                body.insert("max-count", hand.random.between(5, 50));
                ("CREATE", &[201, 409])
            }
            1 => ("READ", &[200, 404]),
            2 => {
                body.insert("count", hand.random.between(0, 10));
                ("PURGE", &[200, 404])
            }
            3 => {
                body.insert("if_empty", true);
                ("DELETE", &[204, 404, 409])
            }
            4 => {
                body.insert("if_unused", true);
                ("DELETE", &[204, 404, 409])
            }
            5 => ("DELETE", &[204, 404]),
            6 => {
                body.insert("max-count", hand.random.between(5, 50));
                ("UPDATE", &[200, 404])
            }
            _ => ("QUERY", &[200]),
        };
        let mut message = self.message(operation, body);
        if operation == "QUERY" {
            message.set_application_property("entityType", "org.mochila.queue");
        } else {
            message.set_application_property("type", "org.mochila.queue");
            message.set_application_property("name", queue);
        }
        (self.question(operation, statuses), message)
    }

    /// Any connection, its own perhaps.
    fn ask_to_close(&self, hand: &mut Hand<'_>) -> (Question, Message) {
        let mut message = self.message("DELETE", Map::new());
        let identity = format!("connection/{}", hand.random.between(1, 12));
        message.set_application_property("type", "org.mochila.connection");
        message.set_application_property("identity", identity);
        (self.question("DELETE", &[204, 404]), message)
    }

    fn message(&self, operation: &str, body: Map) -> Message {
        let mut message = Message { body: Body::Value(Value::Map(body)), ..Message::default() };
        let number = self.questions.borrow().next;
        message.properties_mut().message_id = Some(MessageId::Ulong(number));
        message.properties_mut().reply_to = Some(self.reply_to.clone());
        message.set_application_property("operation", operation);
        message
    }

    fn question(&self, operation: &'static str, statuses: &'static [i32]) -> Question {
        let may_be_lost = !self.questions.borrow().is_listening;
        Question { operation, statuses, may_be_lost }
    }
}

impl Listener {
    pub(crate) fn request(&self, name: &str) -> AttachRequest {
        self.questions.borrow_mut().is_listening = true;
        let target = Target::at(self.reply_to.as_str());
        AttachRequest::receiver(name, Source::at(MANAGEMENT), target.into())
    }

    pub(crate) fn act(&mut self, hand: &mut Hand<'_>) -> Option<u64> {
        if hand.engine.link(hand.link).is_some_and(|link| link.credit() < 10) {
            hand.engine.grant(hand.link, 20);
        }
        None
    }

    /// One frame of a response.
    pub(crate) fn transfer(&mut self, hand: &mut Hand<'_>, event: &TransferEvent, payload: &[u8]) {
        self.partial.extend_from_slice(payload);
        if event.more {
            return;
        }
        let bytes = std::mem::take(&mut self.partial);
        let id = event.delivery_id;
        hand.engine.settle_incoming(hand.session, id, id, DeliveryState::Accepted, true);
        let message = Message::decode(&bytes).expect("a response is a message");
        let correlation = message.properties.as_ref().and_then(|p| p.correlation_id.clone());
        let Some(MessageId::Ulong(number)) = correlation else {
            panic!("a response is to {correlation:?}")
        };
        let question = self.questions.borrow_mut().open.remove(&number);
        let question = question.expect("a question was answered twice");
        let status = message.application_property("statusCode");
        let Some(Value::Int(status)) = status else { panic!("the status is {status:?}") };
        let text = message.application_property("statusDescription");
        assert!(
            question.statuses.contains(status),
            "{} was answered with {status} {text:?}",
            question.operation
        );
        hand.ledger.tally.answered += 1;
    }

    /// The link is gone, and answers with it.
    pub(crate) fn lost(&mut self) {
        self.partial.clear();
        self.questions.borrow_mut().is_listening = false;
        self.questions.borrow_mut().give_up();
    }

    /// When nothing more happens, everything is answered.
    pub(crate) fn check_rest(&self) {
        let questions = self.questions.borrow();
        let mut open = questions.open.values().filter(|question| !question.may_be_lost);
        let first = open.next();
        assert!(first.is_none(), "there is no answer to {first:?}");
    }
}

const MANAGEMENT: &str = "$management";
