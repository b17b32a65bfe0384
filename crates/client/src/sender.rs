use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mochila_wire::{DeliveryState, Encode as _, Message, Target};
use tokio::sync::{Semaphore, oneshot};

use crate::command::{Command, Outgoing};
use crate::error::Error;
use crate::link::Link;
use crate::link_options::LinkSettings;

/// A link on which we send.
///
/// Dropping it closes the link at once, whatever is still under way; [`flush`](Self::flush) or
/// [`close`](Self::close) wait for that.
///
/// ```no_run
/// # async fn example() -> Result<(), mochila_client::Error> {
/// use mochila_client::{Connection, Message, Options};
///
/// let connection = Connection::open("amqp://localhost", Options::default()).await?;
/// let session = connection.session().await?;
/// let sender = session.sender("orders").await?;
/// sender.send("hello").await?;
///
/// // Many messages at once: waits for room, not for each outcome in turn.
/// let outcomes = sender.send_all((0..100).map(|n| Message::of_value(format!("order {n}")))).await?;
/// assert_eq!(outcomes.len(), 100);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sender {
    link: Arc<Link>,
    permits: Arc<Semaphore>,
    capacity: usize,
}

/// A message as it goes out: encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: Vec<u8>,
    format: u32,
}

/// The outcome of a message under way; awaiting it is optional.
#[derive(Debug)]
pub struct Confirmation {
    answer: oneshot::Receiver<Result<DeliveryState, Error>>,
    link: Arc<Link>,
}

impl Sender {
    pub(crate) fn new(link: Arc<Link>, permits: Arc<Semaphore>, capacity: usize) -> Self {
        Self { link, permits, capacity }
    }

    /// The address that messages go to; the peer's choice for a dynamic target.
    pub fn address(&self) -> Option<String> {
        self.target()?.address
    }

    /// What the peer said about its end when the link was last attached.
    pub fn target(&self) -> Option<Target> {
        self.link.attached().target.clone()
    }

    /// The settings that are in force on the link.
    pub fn settings(&self) -> LinkSettings {
        self.link.attached().settings.clone()
    }

    /// Sends a message and waits for its outcome, which may also be that the receiver rejected it.
    pub async fn send(&self, message: impl Into<Encoded>) -> Result<DeliveryState, Error> {
        self.post(message).await?.await
    }

    /// Sends a message without waiting for its outcome: waits only until there is room for it.
    pub async fn post(&self, message: impl Into<Encoded>) -> Result<Confirmation, Error> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(message.into(), None, false, Some(reply)).await?;
        Ok(Confirmation { answer, link: self.link.clone() })
    }

    /// Sends a message in a state of ours, such as one of a transaction (part 4), without waiting
    /// for its outcome: waits only until there is room for it.
    pub(crate) async fn post_in(
        &self,
        message: Encoded,
        state: DeliveryState,
    ) -> Result<Confirmation, Error> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(message, Some(Box::new(state)), false, Some(reply)).await?;
        Ok(Confirmation { answer, link: self.link.clone() })
    }

    /// Sends a message at once, whose outcome nobody wants to know.
    pub(crate) fn drop_in(&self, message: Encoded) {
        let Encoded { bytes, format } = message;
        let Ok(permit) = self.permits.try_acquire() else { return };
        permit.forget();
        let message = Outgoing { bytes, format, settled: false, state: None, reply: None };
        // If the task is gone, so is the link.
        let _ = self.link.shared().command(Command::Send { link: self.link.key(), message });
    }

    /// Sends messages one after the other and waits for all their outcomes, in the same order.
    pub async fn send_all<M: Into<Encoded>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<DeliveryState>, Error> {
        let mut confirmations = Vec::new();
        for message in messages {
            confirmations.push(self.post(message).await?);
        }
        let mut outcomes = Vec::with_capacity(confirmations.len());
        for confirmation in confirmations {
            outcomes.push(confirmation.await?);
        }
        Ok(outcomes)
    }

    /// Sends a message settled: nobody will say whether it arrived.
    pub async fn send_settled(&self, message: impl Into<Encoded>) -> Result<(), Error> {
        self.hand_over(message.into(), None, true, None).await
    }

    /// Waits until every message has its outcome.
    pub async fn flush(&self) -> Result<(), Error> {
        let all = u32::try_from(self.capacity).unwrap_or(u32::MAX);
        match self.permits.acquire_many(all).await {
            Ok(_) => Ok(()),
            Err(_) => Err(self.link.shared().end()),
        }
    }

    /// Waits for every outcome, then closes the link and waits until the peer has answered.
    pub async fn close(self) -> Result<(), Error> {
        self.flush().await?;
        self.link.detach(true).await
    }

    async fn hand_over(
        &self,
        message: Encoded,
        state: Option<Box<DeliveryState>>,
        settled: bool,
        reply: Option<oneshot::Sender<Result<DeliveryState, Error>>>,
    ) -> Result<(), Error> {
        // The permit comes back when the message is settled, or at once if it is sent settled.
        let Ok(permit) = self.permits.acquire().await else {
            return Err(self.link.shared().end());
        };
        permit.forget();
        let Encoded { bytes, format } = message;
        let message = Outgoing { bytes, format, settled, state, reply };
        self.link.shared().command(Command::Send { link: self.link.key(), message })
    }
}

impl Encoded {
    /// A message that is encoded already, in the format of AMQP 1.0.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), format: 0 }
    }

    /// The same in another message format (part 2, section 2.8.11).
    #[must_use]
    pub fn format(mut self, format: u32) -> Self {
        self.format = format;
        self
    }
}

impl From<&Message> for Encoded {
    fn from(message: &Message) -> Self {
        Self::raw(message.to_bytes())
    }
}

impl From<&str> for Encoded {
    fn from(text: &str) -> Self {
        Self::from(Message::of_value(text))
    }
}

impl From<Message> for Encoded {
    fn from(message: Message) -> Self {
        Self::from(&message)
    }
}

impl Future for Confirmation {
    type Output = Result<DeliveryState, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(|_| Err(self.link.shared().end())))
    }
}
