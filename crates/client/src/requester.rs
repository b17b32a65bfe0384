use mochila_wire::Message;
use mochila_wire::message::MessageId;

use crate::connection::Connection;
use crate::error::Error;
use crate::link_options::{ReceiverOptions, SenderOptions};
use crate::receiver::Receiver;
use crate::sender::Sender;

/// Requests and their responses, over a pair of links: one to the address that answers, one from
/// a node that the peer makes for the responses.
///
/// ```no_run
/// # async fn example() -> Result<(), mochila_client::Error> {
/// use mochila_client::{Connection, Message, Options};
///
/// let connection = Connection::open("amqp://localhost", Options::default()).await?;
/// let mut requester = connection.requester("quotes").await?;
/// let response = requester.request(Message::of_value("ACME")).await?;
/// println!("{:?}", response.body);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Requester {
    sender: Sender,
    receiver: Receiver,
    next_id: u64,
}

impl Requester {
    pub(crate) async fn new(connection: &Connection, address: &str) -> Result<Self, Error> {
        let session = connection.session().await?;
        let receiver = session.receiver(ReceiverOptions::dynamic()).await?;
        let sender = session.sender(SenderOptions::to(address)).await?;
        Ok(Self { sender, receiver, next_id: 0 })
    }

    /// The address of the node that responses come to.
    pub fn reply_address(&self) -> Option<String> {
        self.receiver.address()
    }

    /// Sends a request and waits for its response. Message id and reply-to are filled in.
    pub async fn request(&mut self, mut message: Message) -> Result<Message, Error> {
        let id = self.next_id;
        self.next_id += 1;
        let properties = message.properties_mut();
        properties.message_id = Some(MessageId::Ulong(id));
        properties.reply_to = self.receiver.address();
        let outcome = self.sender.send(&message).await?;
        if let mochila_wire::DeliveryState::Rejected { error } = outcome {
            return Err(Error::Link(error));
        }
        loop {
            let delivery = self.receiver.recv().await?;
            let response = delivery.message()?;
            delivery.accept()?;
            // A response to a request that was given up is not the one waited for.
            let answers = response.properties.as_ref().and_then(|p| p.correlation_id.as_ref());
            if answers == Some(&MessageId::Ulong(id)) {
                return Ok(response);
            }
        }
    }
}
