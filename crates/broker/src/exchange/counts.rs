//! What has happened at an exchange, in numbers.

use crate::message::Batch;
use crate::sync::{AtomicU64, Ordering};

/// Counted once for each batch, by whoever publishes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    receives: Pair,
    routes: Pair,
    drops: Pair,
}

/// Messages, and their bytes.
#[derive(Debug, Default)]
struct Pair {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// Messages, and their encoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    /// What a batch is.
    pub(crate) fn of(batch: &Batch) -> Amount {
        Amount { messages: batch.len() as u64, bytes: batch.bytes() }
    }
}

impl Counts {
    /// Messages have come in.
    pub(crate) fn received(&self, amount: Amount) {
        self.receives.add(amount);
    }

    /// So many copies have gone to queues.
    pub(crate) fn routed(&self, amount: Amount) {
        self.routes.add(amount);
    }

    /// No queue was bound for them.
    pub(crate) fn dropped(&self, amount: Amount) {
        self.drops.add(amount);
    }

    /// Messages that no queue was bound for.
    pub(crate) fn drops(&self) -> u64 {
        self.drops.get().messages
    }

    pub(crate) fn statistics(&self) -> ExchangeStatistics {
        let (receives, routes, drops) = (self.receives.get(), self.routes.get(), self.drops.get());
        ExchangeStatistics {
            msg_receives: receives.messages,
            msg_routes: routes.messages,
            msg_drops: drops.messages,
            byte_receives: receives.bytes,
            byte_routes: routes.bytes,
            byte_drops: drops.bytes,
            ..ExchangeStatistics::default()
        }
    }
}

impl Pair {
    fn add(&self, amount: Amount) {
        // Relaxed: numbers to be looked at; nothing depends on them.
        if amount.messages > 0 {
            self.messages.fetch_add(amount.messages, Ordering::Relaxed);
            self.bytes.fetch_add(amount.bytes, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Amount {
        Amount {
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// Makes the table of statistics: fields, and the names under which they are reported.
macro_rules! statistics {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal,)+) => {
        /// An exchange's numbers at one moment; the names are those of the Qpid broker.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ExchangeStatistics {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl ExchangeStatistics {
            /// The names of all numbers, in order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// What they mean, in the same order.
            pub const DOCS: &'static [&'static str] = &[$(concat!($($doc),+)),+];

            /// All numbers with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$(($name, self.$field)),+].into_iter()
            }
        }
    };
}

statistics! {
    /// Bindings to it.
    binding_count = "bindingCount",
    /// Links that send to it.
    producer_count = "producerCount",
    /// Messages that have come in.
    msg_receives = "msgReceives",
    /// Messages that have gone to queues, once for each queue, also if its filter has kept them out.
    msg_routes = "msgRoutes",
    /// Messages that no queue was bound for, nor for the alternate exchange.
    msg_drops = "msgDrops",
    /// Encoded bytes that have come in.
    byte_receives = "byteReceives",
    /// Encoded bytes that have gone to queues, once for each queue.
    byte_routes = "byteRoutes",
    /// Encoded bytes of messages that no queue was bound for.
    byte_drops = "byteDrops",
}
