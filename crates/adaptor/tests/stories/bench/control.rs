//! A client that controls transactions, and uses them.

use super::{Bench, Client, Got, Link, text};
use mochila_broker::TransactionTotals;
use mochila_engine::{AttachRequest, Delivery};
use mochila_wire::message::Body;
use mochila_wire::transaction::{Declare, Discharge};
use mochila_wire::{AmqpError, Coordinator, Decode, DeliveryState, Encode, Message, Source, Value};

/// A transaction's id.
pub(crate) type Id = Box<[u8]>;

/// A state within a transaction.
pub(crate) fn within(id: &Id, outcome: Option<DeliveryState>) -> DeliveryState {
    DeliveryState::Transactional { txn_id: id.clone(), outcome: outcome.map(Box::new) }
}

pub(crate) fn accepted(id: &Id) -> DeliveryState {
    within(id, Some(DeliveryState::Accepted))
}

/// A message to the coordinator.
pub(crate) fn control(body: &impl Encode) -> Vec<u8> {
    Message {
        body: Body::Value(Value::from_bytes(&body.to_bytes()).unwrap()),
        ..Message::default()
    }
    .to_bytes()
}

/// The error of a rejection.
pub(crate) fn why(state: &DeliveryState) -> AmqpError {
    match state {
        DeliveryState::Rejected { error: Some(error) } => (**error).clone(),
        other => panic!("{other:?} is no rejection with a reason"),
    }
}

impl Bench {
    /// Attaches a link to the coordinator.
    pub(crate) fn controller(&mut self, client: Client) -> Link {
        self.controller_of(client, Source::default())
    }

    pub(crate) fn controller_of(&mut self, client: Client, source: Source) -> Link {
        let capabilities = vec!["amqp:local-transactions".into()];
        let target = Coordinator { capabilities }.into();
        let name = format!("controller-{}", self.now.mono_ms + u64::from(rand_id()));
        self.attach(client, AttachRequest::sender(name, source, target))
    }

    /// Asks the coordinator for something, and tells its answer.
    pub(crate) fn ask_for(&mut self, controller: Link, body: &impl Encode) -> DeliveryState {
        self.states(controller);
        self.send_bytes(controller, &control(body), false);
        self.states(controller).pop().expect("the coordinator answers")
    }

    pub(crate) fn declare(&mut self, controller: Link) -> Id {
        match self.ask_for(controller, &Declare::default()) {
            DeliveryState::Declared { txn_id } => txn_id,
            other => panic!("{other:?} is no transaction"),
        }
    }

    pub(crate) fn discharge(&mut self, controller: Link, id: &Id, fail: bool) -> DeliveryState {
        self.ask_for(controller, &Discharge { txn_id: id.clone(), fail })
    }

    pub(crate) fn commit(&mut self, controller: Link, id: &Id) {
        assert_eq!(self.discharge(controller, id, false), DeliveryState::Accepted);
    }

    pub(crate) fn roll_back(&mut self, controller: Link, id: &Id) {
        assert_eq!(self.discharge(controller, id, true), DeliveryState::Accepted);
    }

    /// Sends messages within a transaction.
    pub(crate) fn send_within(&mut self, sender: Link, id: &Id, bodies: &[&str]) {
        for body in bodies {
            self.post_within(sender, id, &text(body).to_bytes(), false);
        }
        self.run();
    }

    pub(crate) fn post_within(&mut self, sender: Link, id: &Id, bytes: &[u8], settled: bool) {
        let state = within(id, None);
        let delivery = Delivery { state: Some(&state), settled, ..Delivery::default() };
        self.post(sender, &delivery, bytes);
    }

    /// Accepts deliveries within a transaction.
    pub(crate) fn accept_within(&mut self, got: &[Got], id: &Id, settled: bool) {
        got.iter().for_each(|got| self.conclude(got, accepted(id), settled));
    }

    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let TransactionTotals { open, committed, rolled_back } =
            self.node.broker.transaction_totals();
        (open, committed, rolled_back)
    }

    /// The messages that a newcomer gets, who gives them back.
    pub(crate) fn all_of(&mut self, queue: &str) -> Vec<Message> {
        let client = self.client();
        let receiver = self.receiver(client, queue, 100);
        let messages = self.got(receiver).iter().map(Got::message).collect();
        self.close_link(receiver);
        messages
    }
}

/// A number that no other controller has.
fn rand_id() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A client with a controller, and a queue with these messages, which its receiver holds.
pub(crate) fn holding(bodies: &[&str], source: Source) -> (Bench, Client, Link, Vec<Got>) {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "q");
    for body in bodies {
        bench.send(sender, &text(body));
    }
    let receiver = bench.receiver_of(client, source, bodies.len() as u32);
    let got = bench.got(receiver);
    assert_eq!(got.len(), bodies.len());
    (bench, client, controller, got)
}

/// The texts of messages.
pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    let content = |message: &Message| message.body.content().expect("text");
    messages.iter().map(|it| String::from_utf8(content(it)).unwrap()).collect()
}

/// How often messages were delivered in vain.
pub(crate) fn counts(messages: &[Message]) -> Vec<u32> {
    messages.iter().map(|it| it.header.unwrap_or_default().delivery_count).collect()
}
