use std::sync::Arc;

use mochila_wire::Source;
use tokio::sync::{mpsc, oneshot};

use crate::command::Command;
use crate::delivery::{Delivery, Incoming};
use crate::error::Error;
use crate::link::Link;
use crate::link_options::{CreditMode, LinkSettings};
use crate::lost_groups::LostGroups;

/// A link on which we receive.
///
/// ```no_run
/// # async fn example() -> Result<(), mochila_client::Error> {
/// use mochila_client::{Connection, Options, ReceiverOptions};
///
/// let connection = Connection::open("amqp://localhost", Options::default()).await?;
/// let session = connection.session().await?;
/// let mut receiver = session.receiver(ReceiverOptions::from("orders").window(500)).await?;
/// while let Ok(delivery) = receiver.recv().await {
///     println!("{:?}", delivery.message()?.body);
///     delivery.accept()?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Receiver {
    link: Arc<Link>,
    incoming: mpsc::UnboundedReceiver<Result<Incoming, Error>>,
    credit: CreditMode,
    taken: u64,
    /// What the task was last told to have been taken.
    told: u64,
    /// Whether a drain has left the sender without credit.
    drained: bool,
}

/// What comes over a link on which we receive.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Delivery(Delivery),
    /// Message groups have gone to other receivers; for who has asked with
    /// [`ReceiverOptions::lost_groups`](crate::ReceiverOptions::lost_groups).
    LostGroups(LostGroups),
}

impl Receiver {
    pub(crate) fn new(
        link: Arc<Link>,
        incoming: mpsc::UnboundedReceiver<Result<Incoming, Error>>,
        credit: CreditMode,
    ) -> Self {
        Self { link, incoming, credit, taken: 0, told: 0, drained: false }
    }

    /// The address that messages come from; the peer's choice for a dynamic source.
    pub fn address(&self) -> Option<String> {
        self.source()?.address
    }

    /// What the peer said about its end when the link was last attached.
    pub fn source(&self) -> Option<Source> {
        self.link.attached().source.clone()
    }

    /// The settings that are in force on the link.
    pub fn settings(&self) -> LinkSettings {
        self.link.attached().settings.clone()
    }

    /// Waits for the next message. May be dropped while it waits without losing anything. What else
    /// comes is passed over.
    pub async fn recv(&mut self) -> Result<Delivery, Error> {
        loop {
            if let Received::Delivery(delivery) = self.recv_any().await? {
                return Ok(delivery);
            }
        }
    }

    /// Waits for the next message, or for what the broker tells about messages, in the order in
    /// which they come. May be dropped while it waits without losing anything.
    pub async fn recv_any(&mut self) -> Result<Received, Error> {
        if self.drained && self.incoming.is_empty() {
            self.drained = false;
            self.tell();
        }
        match self.incoming.recv().await {
            Some(incoming) => Ok(self.take(incoming?)),
            None => Err(self.link.shared().end()),
        }
    }

    /// The next message if one has arrived already. What else has come is passed over.
    pub fn try_recv(&mut self) -> Result<Option<Delivery>, Error> {
        loop {
            match self.incoming.try_recv() {
                Ok(incoming) => {
                    if let Received::Delivery(delivery) = self.take(incoming?) {
                        return Ok(Some(delivery));
                    }
                }
                Err(mpsc::error::TryRecvError::Empty) => return Ok(None),
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    return Err(self.link.shared().end());
                }
            }
        }
    }

    /// Lets the sender send so many messages more; for [`CreditMode::Manual`].
    pub fn grant(&self, more: u32) -> Result<(), Error> {
        self.link.shared().command(Command::Grant { link: self.link.key(), more })
    }

    /// Asks the sender for everything it has for the credit it has, and waits until it has sent
    /// that or said that there is nothing (part 2, section 2.6.7). What arrived is then waiting in
    /// [`try_recv`](Self::try_recv). The sender has no credit until it is given some again, which
    /// [`recv`](Self::recv) does where credit is not given by hand.
    pub async fn drain(&mut self) -> Result<(), Error> {
        self.drained = true;
        let (reply, answer) = oneshot::channel();
        self.link.shared().command(Command::Drain { link: self.link.key(), reply })?;
        answer.await.unwrap_or_else(|_| Err(self.link.shared().end()))
    }

    /// Closes the link and waits until the peer has answered. What was not settled goes back.
    pub async fn close(self) -> Result<(), Error> {
        self.link.detach(true).await
    }

    /// Detaches without closing: a durable subscription lives on at the peer.
    pub async fn detach(self) -> Result<(), Error> {
        self.link.detach(false).await
    }

    fn take(&mut self, incoming: Incoming) -> Received {
        let arrival = match incoming {
            Incoming::Message(arrival) => arrival,
            Incoming::LostGroups(pending) => return Received::LostGroups(pending.take()),
        };
        self.taken += 1;
        if let CreditMode::Window(window) = self.credit {
            // Telling the task per half window keeps the sender going at little cost.
            if !self.drained && self.taken - self.told >= u64::from(window / 2).max(1) {
                self.tell();
            }
        }
        Received::Delivery(Delivery::new(self.link.clone(), arrival))
    }

    /// Tells the task how much has been taken, so that it brings the credit up to date.
    fn tell(&mut self) {
        self.told = self.taken;
        let taken = Command::Taken { link: self.link.key(), total: self.taken };
        // If the task is gone, what has arrived is still worth having.
        let _ = self.link.shared().command(taken);
    }
}
