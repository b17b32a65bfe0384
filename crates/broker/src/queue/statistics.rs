//! What has happened on a queue, in numbers.

use super::Queue;

/// What has to be counted as it happens; the rest of [`Statistics`] can be told from the queue.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) enqueued_messages: u64,
    pub(crate) enqueued_bytes: u64,
    pub(crate) dequeued_messages: u64,
    pub(crate) dequeued_bytes: u64,
    pub(crate) acquires: u64,
    pub(crate) most_consumers: u32,
    /// The node's memory is short, and the queue held so much when its producers were held back, at
    /// least 1; 0 if it is not. No count, but here it costs a queue nothing.
    pub(crate) short_at_kib: u32,
    /// There only once something has been discarded: most queues never do.
    discards: Option<Box<Discards>>,
}

/// Messages that have not been dealt with by anybody, by the reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Discards {
    /// These came back, and may have been dealt with later.
    pub(crate) released: u64,
    pub(crate) expired: u64,
    pub(crate) refused: u64,
    pub(crate) rejected: u64,
    pub(crate) purged: u64,
    pub(crate) dropped: u64,
    pub(crate) replaced: u64,
    pub(crate) spent: u64,
    pub(crate) kept_out: u64,
    /// These are elsewhere now.
    pub(crate) rerouted: u64,
}

impl Counters {
    pub(crate) fn discards(&self) -> Discards {
        self.discards.as_deref().copied().unwrap_or_default()
    }

    /// Counts so many messages where `which` says.
    pub(crate) fn discard(&mut self, messages: u64, which: impl FnOnce(&mut Discards) -> &mut u64) {
        if messages > 0 {
            *which(self.discards.get_or_insert_default()) += messages;
        }
    }

    /// So many messages have been sent on to an exchange.
    pub(crate) fn rerouted(&mut self, messages: u64) {
        self.discard(messages, |discards| &mut discards.rerouted);
    }

    /// What has not come in since is kept elsewhere.
    pub(crate) fn forget_refused(&mut self, since: Discards) {
        if let Some(discards) = &mut self.discards {
            (discards.refused, discards.kept_out) = (since.refused, since.kept_out);
        }
    }
}

/// Makes the table of statistics: fields, and the names under which they are reported.
macro_rules! statistics {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal,)+) => {
        /// A queue's numbers at one moment; the names are those of the Qpid broker.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl Statistics {
            /// The names of all numbers, in order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// What they mean, in the same order.
            pub const DOCS: &'static [&'static str] = &[$(concat!($($doc),+)),+];

            /// All numbers with their names.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$(($name, self.$field)),+].into_iter()
            }

            /// Adds the numbers of another queue, for totals.
            pub fn add(&mut self, other: &Statistics) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

statistics! {
    /// Messages that have come in.
    msg_total_enqueues = "msgTotalEnqueues",
    /// Messages that have gone, for whatever reason.
    msg_total_dequeues = "msgTotalDequeues",
    /// Encoded bytes that have come in.
    byte_total_enqueues = "byteTotalEnqueues",
    /// Encoded bytes that have gone.
    byte_total_dequeues = "byteTotalDequeues",
    /// Messages that transactions have brought.
    msg_txn_enqueues = "msgTxnEnqueues",
    /// Messages that transactions have taken out.
    msg_txn_dequeues = "msgTxnDequeues",
    /// Encoded bytes that transactions have brought.
    byte_txn_enqueues = "byteTxnEnqueues",
    /// Encoded bytes that transactions have taken out.
    byte_txn_dequeues = "byteTxnDequeues",
    /// Messages in the queue, acquired ones included.
    msg_depth = "msgDepth",
    /// Encoded bytes in the queue.
    byte_depth = "byteDepth",
    /// Messages that have been handed to a consumer.
    acquires = "acquires",
    /// Messages that a consumer has given back.
    releases = "releases",
    /// Messages that have expired.
    discards_ttl = "discardsTtl",
    /// Messages that were refused because of a limit.
    discards_overflow = "discardsOverflow",
    /// Messages that were dropped to make room for others.
    discards_ring = "discardsRing",
    /// Messages that newer ones with the same key have replaced.
    discards_lvq = "discardsLvq",
    /// Messages that had been delivered in vain as often as they may.
    discards_max_delivery = "discardsMaxDelivery",
    /// Messages that qpid.filter, no-local or the filters of a subscriber have kept out.
    discards_filter = "discardsFilter",
    /// Messages that a consumer has rejected.
    discards_subscriber = "discardsSubscriber",
    /// Messages that were purged.
    discards_purge = "discardsPurge",
    /// Messages that an operator has sent on to an exchange.
    reroutes = "reroutes",
    /// Messages that are acquired and not settled.
    unacked_messages = "unackedMessages",
    /// Links that take messages, browsers included.
    consumer_count = "consumerCount",
    /// The most there have been.
    consumer_count_high = "consumerCountHigh",
    /// Links that send messages.
    producer_count = "producerCount",
    /// Links that wait for credit.
    producers_waiting = "producersWaiting",
    /// 1 if producers get no credit.
    flow_stopped = "flowStopped",
    /// 1 if they get none, nor would another, because the node's memory is short and the queue has its share of it.
    memory_stopped = "memoryStopped",
    /// How often producers have been stopped.
    flow_stopped_count = "flowStoppedCount",
    /// Bytes of memory that the messages take.
    memory_bytes = "memoryBytes",
}

impl Queue {
    pub(crate) fn statistics(&self) -> Statistics {
        let (counters, transacted) = (&self.counters, self.transacted());
        let discards = counters.discards();
        let is_full = self.policy.is_closed();
        let is_short = !is_full && self.is_short_of_memory();
        Statistics {
            msg_total_enqueues: counters.enqueued_messages,
            msg_total_dequeues: counters.dequeued_messages,
            byte_total_enqueues: counters.enqueued_bytes,
            byte_total_dequeues: counters.dequeued_bytes,
            msg_txn_enqueues: transacted.enqueued_messages,
            msg_txn_dequeues: transacted.dequeued_messages,
            byte_txn_enqueues: transacted.enqueued_bytes,
            byte_txn_dequeues: transacted.dequeued_bytes,
            msg_depth: self.policy.messages() - transacted.room.messages,
            byte_depth: self.policy.bytes() - transacted.room.bytes,
            acquires: counters.acquires,
            releases: discards.released,
            discards_ttl: discards.expired,
            discards_overflow: discards.refused,
            discards_ring: discards.dropped,
            discards_lvq: discards.replaced,
            discards_max_delivery: discards.spent,
            discards_filter: discards.kept_out,
            discards_subscriber: discards.rejected,
            discards_purge: discards.purged,
            reroutes: discards.rerouted,
            unacked_messages: self.messages.len() - self.messages.available().len(),
            consumer_count: self.distributor.len() as u64,
            consumer_count_high: u64::from(counters.most_consumers),
            producer_count: self.sending_links() as u64,
            producers_waiting: self.producers.waiting() as u64,
            flow_stopped: u64::from(is_full || is_short),
            memory_stopped: u64::from(is_short),
            flow_stopped_count: self.policy.stops(),
            memory_bytes: self.messages.memory_bytes(),
        }
    }
}
