//! Answers requests in capitals: `server [URL]`. Ask with `Connection::requester("capitals")`, or
//! with any client that sends a message with reply-to.

use mochila_client::{Backoff, Connection, Message, Options, SenderOptions, Value};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mochila_client::Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "amqp://localhost".to_owned());
    let options = Options { reconnect: Some(Backoff::default()), ..Options::default() };
    let connection = Connection::open(&url, options).await?;
    let session = connection.session().await?;
    let mut requests = session.receiver("capitals").await?;
    let responses = session.sender(SenderOptions::anonymous()).await?;
    loop {
        let delivery = requests.recv().await?;
        let request = delivery.message()?;
        let text = request.body.as_value().and_then(Value::as_str).unwrap_or_default();
        let mut response = Message::of_value(text.to_uppercase());
        if let Some(properties) = request.properties
            && properties.reply_to.is_some()
        {
            response.properties_mut().to = properties.reply_to;
            response.properties_mut().correlation_id = properties.message_id;
            responses.post(response).await?;
        }
        // A connection that was lost meanwhile brings the request again.
        let _ = delivery.accept();
    }
}
