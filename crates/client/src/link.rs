use std::sync::Arc;

use tokio::sync::oneshot;

use crate::command::{Attached, Command, LinkKey};
use crate::core::SharedAttached;
use crate::error::Error;
use crate::session::SessionHandle;
use crate::shared::Shared;

/// What a sender or receiver is to its connection; ends the link when the last holder drops it.
#[derive(Debug)]
pub(crate) struct Link {
    session: Arc<SessionHandle>,
    key: LinkKey,
    attached: SharedAttached,
}

impl Link {
    pub(crate) fn new(session: Arc<SessionHandle>, key: LinkKey, attached: SharedAttached) -> Self {
        Self { session, key, attached }
    }

    pub(crate) fn key(&self) -> LinkKey {
        self.key
    }

    /// What the peer said when the link was last attached.
    pub(crate) fn attached(&self) -> Arc<Attached> {
        self.attached.get()
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.session.shared()
    }

    /// Detaches, and waits until the peer has answered.
    pub(crate) async fn detach(&self, closed: bool) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.shared().command(Command::Detach { link: self.key, closed, reply: Some(reply) })?;
        answer.await.unwrap_or_else(|_| Err(self.shared().end()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // If the task is gone, so is the link; if it was detached, the task knows.
        let detach = Command::Detach { link: self.key, closed: true, reply: None };
        let _ = self.session.shared().command(detach);
    }
}
