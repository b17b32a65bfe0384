use std::sync::Arc;

use mochila_broker::{Broker, Exchange, SharedQueue};
use mochila_management::Management;
use mochila_wire::{AmqpError, Limits};

use crate::LargeFiles;

/// What all connections of a node share.
pub struct Node {
    /// Queues, addresses and the memory budget.
    pub broker: Arc<Broker>,
    /// The node `$management`.
    pub management: Management,
    /// How links are served.
    pub settings: Settings,
    /// Where messages go that are too large for memory.
    pub large_files: Arc<dyn LargeFiles>,
}

/// How links are served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The link credit that a sender gets, in messages.
    pub credit_window: u32,
    /// How much encoded output may wait for a socket before no more is taken for it, in bytes.
    pub output_limit: usize,
    /// Messages from this size on are kept in a file, in bytes.
    pub large_message_bytes: usize,
    /// The largest message that is accepted, in bytes; 0 for any size.
    pub max_message_bytes: u64,
    /// How long the rest of a message may be in coming before its link is detached, in milliseconds;
    /// 0 for ever.
    pub unfinished_message_timeout_ms: u64,
    /// What a scanned message may hold.
    pub limits: Limits,
    /// The most deliveries of one link that the peer has not settled: then it gets no more.
    pub max_unsettled: u32,
    /// Whether a link is the same link when its container attaches it on another connection, and is
    /// then stolen from the first one, as part 2, 2.6.1 says. It is not by default: some clients
    /// (the Python one of Proton) make link names from container id and address, and mean two links
    /// when they attach to one address on two connections.
    pub steal_across_connections: bool,
    /// Messages that the specification does not allow and many senders send are rejected: those
    /// without body, and with annotations under other keys than symbols that begin with `x-`.
    pub strict_messages: bool,
    /// Every value of a message is looked at before it is taken in, so that what is malformed or
    /// nested too deep does not reach a consumer.
    pub verify_bodies: bool,
    /// Messages of a user who has shown a password are rejected if their user id is another's.
    pub verify_user_id: bool,
}

impl Settings {
    /// How much memory the bytes of a message of this size may need, whose rest goes to a file.
    pub(crate) fn in_memory(&self, message_bytes: u64) -> u64 {
        message_bytes.min(self.large_message_bytes as u64)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            credit_window: 1_000,
            output_limit: 256 * 1024,
            large_message_bytes: 1024 * 1024,
            max_message_bytes: 0,
            unfinished_message_timeout_ms: 60_000,
            limits: Limits::default(),
            max_unsettled: 1_000_000,
            steal_across_connections: false,
            strict_messages: false,
            verify_bodies: false,
            verify_user_id: true,
        }
    }
}

/// The address of the node that manages this one.
pub(crate) const MANAGEMENT: &str = "$management";
/// What the coordinator of transactions is called where links are shown; it has no address.
pub(crate) const COORDINATOR: &str = "$coordinator";
/// The address of what has happened on the node.
pub(crate) const EVENTS: &str = "$events";

/// What is at an address that messages are sent to.
pub(crate) enum Located {
    Queue(Arc<SharedQueue>),
    Exchange { exchange: Arc<Exchange>, key: Option<Box<[u8]>> },
}

impl Located {
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Located::Queue(queue) => queue.is_deleted(),
            Located::Exchange { exchange, .. } => exchange.is_deleted(),
        }
    }
}

impl Node {
    /// What is at the address of a message: a queue or an exchange that is there, or a queue that is
    /// made for this user if a pattern says so.
    pub(crate) fn locate(&self, address: &str, user: &str) -> Result<Located, AmqpError> {
        if let Some(queue) = self.broker.queue(address) {
            return Ok(Located::Queue(queue));
        }
        if let Some((exchange, key)) = self.broker.exchange_at(address) {
            let key = key.map(|key| key.as_bytes().into());
            return Ok(Located::Exchange { exchange, key });
        }
        self.open(address, user).map(Located::Queue)
    }
}
