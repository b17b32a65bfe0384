//! What handles ask of the connection's task.

use std::sync::Arc;

use mochila_wire::{AmqpError, DeliveryState, Source, Target};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::core::SharedAttached;
use crate::delivery::Incoming;
use crate::error::Error;
use crate::link_options::{LinkSettings, ReceiverOptions, SenderOptions};

/// Names a session of a connection, also across reconnections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionKey(pub(crate) u64);

/// Names a link of a connection, also across reconnections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LinkKey(pub(crate) u64);

/// Where an answer goes. A handle that no longer waits is no error.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// One request of a handle.
#[derive(Debug)]
pub(crate) enum Command {
    Begin {
        session: SessionKey,
        reply: Reply<()>,
    },
    End {
        session: SessionKey,
        reply: Option<Reply<()>>,
    },
    AttachSender {
        link: LinkKey,
        session: SessionKey,
        request: Box<NewSender>,
    },
    AttachReceiver {
        link: LinkKey,
        session: SessionKey,
        request: Box<NewReceiver>,
    },
    Detach {
        link: LinkKey,
        closed: bool,
        reply: Option<Reply<()>>,
    },
    Send {
        link: LinkKey,
        message: Outgoing,
    },
    Settle {
        link: LinkKey,
        delivery: DeliveryRef,
        state: DeliveryState,
    },
    /// The application has taken so many messages out of the receiver's buffer, ever.
    Taken {
        link: LinkKey,
        total: u64,
    },
    /// More credit, for a receiver whose credit is given by hand.
    Grant {
        link: LinkKey,
        more: u32,
    },
    Drain {
        link: LinkKey,
        reply: Reply<()>,
    },
    Close {
        error: Option<AmqpError>,
        reply: Reply<()>,
    },
}

#[derive(Debug)]
pub(crate) struct NewSender {
    pub(crate) options: SenderOptions,
    /// The target is the coordinator of transactions, whatever the options say.
    pub(crate) controls: bool,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) attached: SharedAttached,
    pub(crate) reply: Reply<()>,
}

#[derive(Debug)]
pub(crate) struct NewReceiver {
    pub(crate) options: ReceiverOptions,
    pub(crate) arrivals: mpsc::UnboundedSender<Result<Incoming, Error>>,
    pub(crate) attached: SharedAttached,
    pub(crate) reply: Reply<()>,
}

/// What the peer's attach says.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) source: Option<Source>,
    pub(crate) target: Option<Target>,
    pub(crate) settings: LinkSettings,
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    /// The transaction that it belongs to. It is not sent again over another connection.
    pub(crate) state: Option<Box<DeliveryState>>,
    pub(crate) reply: Option<Reply<DeliveryState>>,
}

/// A delivery that was received; worthless after the connection it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryRef {
    pub(crate) id: u32,
    /// Counts the connections that there have been.
    pub(crate) epoch: u32,
}
