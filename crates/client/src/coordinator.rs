use std::sync::Arc;

use mochila_wire::message::Body;
use mochila_wire::transaction::{Declare, Discharge};
use mochila_wire::{Decode as _, DeliveryState, Encode, Message, Value};

use crate::delivery::Delivery;
use crate::error::Error;
use crate::sender::{Confirmation, Encoded, Sender};

/// A link to the coordinator of transactions (part 4, section 4.3). Several transactions may be
/// open at the same time; when it goes they are rolled back.
///
/// ```no_run
/// # async fn example() -> Result<(), mochila_client::Error> {
/// use mochila_client::{Connection, Options};
///
/// let connection = Connection::open("amqp://localhost", Options::default()).await?;
/// let session = connection.session().await?;
/// let mut orders = session.receiver("orders").await?;
/// let invoices = session.sender("invoices").await?;
/// let coordinator = session.coordinator().await?;
///
/// // The order is gone and the invoice is there, or neither is.
/// let order = orders.recv().await?;
/// let transaction = coordinator.begin().await?;
/// transaction.send(&invoices, "an invoice").await?;
/// transaction.accept(order)?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Coordinator {
    sender: Arc<Sender>,
}

/// A transaction: what is sent and settled in it counts when it is committed, or not at all.
///
/// One that is dropped is rolled back. It does not survive its connection.
#[derive(Debug)]
pub struct Transaction {
    coordinator: Coordinator,
    id: Box<[u8]>,
    is_over: bool,
}

impl Coordinator {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender: Arc::new(sender) }
    }

    /// Begins a transaction.
    pub async fn begin(&self) -> Result<Transaction, Error> {
        match self.sender.send(control(&Declare::default())?).await? {
            DeliveryState::Declared { txn_id } => {
                Ok(Transaction { coordinator: self.clone(), id: txn_id, is_over: false })
            }
            state => Err(failure(state)),
        }
    }
}

impl Transaction {
    /// Sends a message, and waits until the broker has said what it will do with it.
    pub async fn send(
        &self,
        sender: &Sender,
        message: impl Into<Encoded>,
    ) -> Result<DeliveryState, Error> {
        let state = self.post(sender, message).await?.await?;
        Ok(match state {
            DeliveryState::Transactional { outcome: Some(outcome), .. } => *outcome,
            state => state,
        })
    }

    /// Sends a message without waiting for what the broker says.
    pub async fn post(
        &self,
        sender: &Sender,
        message: impl Into<Encoded>,
    ) -> Result<Confirmation, Error> {
        sender.post_in(message.into(), self.state(None)).await
    }

    /// Accepts a message.
    pub fn accept(&self, delivery: Delivery) -> Result<(), Error> {
        self.settle(delivery, DeliveryState::Accepted)
    }

    /// Settles a message with any outcome. If the transaction is rolled back it gets the default
    /// outcome of its source instead: if nothing was said about that, somebody else may have it.
    pub fn settle(&self, delivery: Delivery, outcome: DeliveryState) -> Result<(), Error> {
        delivery.settle(self.state(Some(outcome)))
    }

    /// Ends the transaction: all of it has happened now, or the error says why none of it has.
    pub async fn commit(self) -> Result<(), Error> {
        self.discharge(false).await
    }

    /// Ends the transaction: nothing of it has happened.
    pub async fn rollback(self) -> Result<(), Error> {
        self.discharge(true).await
    }

    async fn discharge(mut self, fail: bool) -> Result<(), Error> {
        let discharge = Discharge { txn_id: self.id.clone(), fail };
        let answer = self.coordinator.sender.post(control(&discharge)?).await?;
        self.is_over = true;
        match answer.await? {
            DeliveryState::Accepted => Ok(()),
            state => Err(failure(state)),
        }
    }

    fn state(&self, outcome: Option<DeliveryState>) -> DeliveryState {
        let outcome = outcome.map(Box::new);
        DeliveryState::Transactional { txn_id: self.id.clone(), outcome }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let discharge = Discharge { txn_id: self.id.clone(), fail: true };
        if !self.is_over
            && let Ok(message) = control(&discharge)
        {
            self.coordinator.sender.drop_in(message);
        }
    }
}

/// A message to the coordinator: the body is what it is to do.
fn control(body: &impl Encode) -> Result<Encoded, Error> {
    let body = Body::Value(Value::from_bytes(&body.to_bytes())?);
    Ok(Encoded::from(Message { body, ..Message::default() }))
}

/// What the coordinator has against it.
fn failure(state: DeliveryState) -> Error {
    match state {
        DeliveryState::Rejected { error } => Error::Transaction(error),
        _ => Error::Transaction(None),
    }
}
