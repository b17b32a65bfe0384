//! Sends one message to a queue and receives it again: `hello [URL]`.

use mochila_client::{Connection, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mochila_client::Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "amqp://localhost".to_owned());
    let connection = Connection::open(&url, Options::default()).await?;
    let session = connection.session().await?;

    let sender = session.sender("hello").await?;
    println!("{:?}", sender.send("Hello, world!").await?);

    let mut receiver = session.receiver("hello").await?;
    let delivery = receiver.recv().await?;
    println!("{:?}", delivery.message()?.body);
    delivery.accept()?;
    connection.close().await
}
