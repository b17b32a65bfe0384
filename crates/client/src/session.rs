use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::command::{Command, NewReceiver, NewSender, SessionKey};
use crate::coordinator::Coordinator;
use crate::core::SharedAttached;
use crate::error::Error;
use crate::link::Link;
use crate::link_options::{ReceiverOptions, SenderOptions};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::shared::Shared;

/// A session (part 2, section 2.5): the context in which links live.
///
/// It ends when this handle and all its links are dropped.
#[derive(Clone, Debug)]
pub struct Session {
    handle: Arc<SessionHandle>,
}

/// Ends the session when the last holder drops it.
#[derive(Debug)]
pub(crate) struct SessionHandle {
    shared: Arc<Shared>,
    key: SessionKey,
}

impl Session {
    pub(crate) async fn begin(shared: Arc<Shared>) -> Result<Self, Error> {
        let key = shared.session_key();
        let (reply, answer) = oneshot::channel();
        shared.command(Command::Begin { session: key, reply })?;
        let handle = Arc::new(SessionHandle { shared, key });
        handle.answered(answer).await?;
        Ok(Self { handle })
    }

    /// Attaches a link on which we send: `session.sender("queue")`.
    pub async fn sender(&self, options: impl Into<SenderOptions>) -> Result<Sender, Error> {
        self.attach_sender(options.into(), false).await
    }

    /// Attaches a link to the coordinator, which makes transactions (part 4).
    pub async fn coordinator(&self) -> Result<Coordinator, Error> {
        Ok(Coordinator::new(self.attach_sender(SenderOptions::default(), true).await?))
    }

    async fn attach_sender(&self, options: SenderOptions, controls: bool) -> Result<Sender, Error> {
        let shared = &self.handle.shared;
        let (link, session) = (shared.link_key(), self.handle.key);
        let capacity = options.capacity.clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(capacity));
        let attached = SharedAttached::new();
        let (reply, answer) = oneshot::channel();
        let request = NewSender {
            options,
            controls,
            permits: permits.clone(),
            attached: attached.clone(),
            reply,
        };
        shared.command(Command::AttachSender { link, session, request: Box::new(request) })?;
        self.handle.answered(answer).await?;
        let link = Arc::new(Link::new(self.handle.clone(), link, attached));
        Ok(Sender::new(link, permits, capacity))
    }

    /// Attaches a link on which we receive: `session.receiver("queue")`.
    pub async fn receiver(&self, options: impl Into<ReceiverOptions>) -> Result<Receiver, Error> {
        let options: ReceiverOptions = options.into();
        let shared = &self.handle.shared;
        let (link, session) = (shared.link_key(), self.handle.key);
        let credit = options.credit;
        let (arrivals, incoming) = mpsc::unbounded_channel();
        let attached = SharedAttached::new();
        let (reply, answer) = oneshot::channel();
        let request = NewReceiver { options, arrivals, attached: attached.clone(), reply };
        shared.command(Command::AttachReceiver { link, session, request: Box::new(request) })?;
        self.handle.answered(answer).await?;
        let link = Arc::new(Link::new(self.handle.clone(), link, attached));
        Ok(Receiver::new(link, incoming, credit))
    }

    /// Ends the session and all its links, and waits until the peer has answered.
    pub async fn end(self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        let end = Command::End { session: self.handle.key, reply: Some(reply) };
        self.handle.shared.command(end)?;
        self.handle.answered(answer).await
    }
}

impl SessionHandle {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn answered<T>(&self, answer: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
        answer.await.unwrap_or_else(|_| Err(self.shared.end()))
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        // If the task is gone, so is the session; if it has ended, the task knows.
        let _ = self.shared.command(Command::End { session: self.key, reply: None });
    }
}
