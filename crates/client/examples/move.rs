//! Moves messages from one queue to another, each in a transaction: `move FROM TO [URL]`.

use std::time::Duration;

use mochila_client::{Connection, Options};
use tokio::time::timeout;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mochila_client::Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: move FROM TO [URL]");
        return Ok(());
    };
    let url = arguments.next().unwrap_or_else(|| "amqp://localhost".to_owned());
    let connection = Connection::open(&url, Options::default()).await?;
    let session = connection.session().await?;
    let coordinator = session.coordinator().await?;
    let mut receiver = session.receiver(from.as_str()).await?;
    let sender = session.sender(to.as_str()).await?;

    while let Ok(delivery) = timeout(Duration::from_secs(1), receiver.recv()).await {
        let delivery = delivery?;
        let transaction = coordinator.begin().await?;
        transaction.send(&sender, &delivery.message()?).await?;
        transaction.accept(delivery)?;
        // Until here nothing has happened; if this fails nothing ever has.
        transaction.commit().await?;
    }
    connection.close().await
}
