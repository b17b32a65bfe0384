use std::sync::Arc;

use mochila_wire::performative::Open;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use crate::command::Command;
use crate::error::Error;
use crate::options::Options;
use crate::requester::Requester;
use crate::session::Session;
use crate::shared::{Shared, TaskState};
use crate::task::{self, Dialer};
use crate::url::Url;

/// A connection to a broker (part 2, section 2.4).
///
/// Its work is done by a task of its own; handles may be cloned and used from anywhere. It closes
/// when the last handle, session and link is dropped.
///
/// With [`Options::reconnect`] a lost connection is made again, to the same endpoint or the next:
/// sessions and links come back under their names, and messages without an outcome are sent again,
/// so that they arrive at least once. What was received and not settled will be delivered again;
/// settling it then fails with [`Error::Stale`].
///
/// ```no_run
/// # async fn example() -> Result<(), mochila_client::Error> {
/// use mochila_client::{Backoff, Connection, Options};
///
/// let options = Options { reconnect: Some(Backoff::default()), ..Options::default() };
/// let connection = Connection::open("amqp://me:secret@one:5672,two:5672", options).await?;
/// let session = connection.session().await?;
/// # drop(session);
/// connection.close().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    /// Connects to a broker. The address is read as [`Url`] says.
    pub async fn open(url: &str, options: Options) -> Result<Self, Error> {
        Self::connect(url.parse()?, options).await
    }

    /// Connects to a broker.
    pub async fn connect(url: Url, options: Options) -> Result<Self, Error> {
        Self::start(Dialer::tcp(url, &options), options).await
    }

    /// Speaks AMQP over any stream of bytes, such as one end of a pipe. Never reconnects.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: Options,
    ) -> Result<Self, Error> {
        let options = Options { reconnect: None, ..options };
        Self::start(Dialer::stream(stream, &options), options).await
    }

    async fn start(dialer: Dialer, options: Options) -> Result<Self, Error> {
        let (commands, requests) = mpsc::unbounded_channel();
        let state = Arc::new(TaskState::default());
        let (ready, opened) = oneshot::channel();
        tokio::spawn(task::run(dialer, options, requests, state.clone(), ready));
        let shared = Arc::new(Shared::new(commands, state));
        opened.await.unwrap_or_else(|_| Err(shared.end()))?;
        Ok(Self { shared })
    }

    /// Begins a session.
    pub async fn session(&self) -> Result<Session, Error> {
        Session::begin(self.shared.clone()).await
    }

    /// Makes ready to send requests to an address and to receive their responses.
    pub async fn requester(&self, address: &str) -> Result<Requester, Error> {
        Requester::new(self, address).await
    }

    /// What the peer said when the connection was last opened: its container id, limits,
    /// capabilities and properties.
    pub fn peer(&self) -> Option<Box<Open>> {
        self.shared.peer()
    }

    /// Closes the connection and waits until the peer has done the same. Messages without an
    /// outcome keep their senders waiting no longer; [`Sender::flush`](crate::Sender::flush) first.
    pub async fn close(self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.shared.command(Command::Close { error: None, reply })?;
        answer.await.unwrap_or_else(|_| Err(self.shared.end()))
    }
}
