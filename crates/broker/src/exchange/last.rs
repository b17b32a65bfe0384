//! The last message of an exchange, for queues that are bound later.

use crate::message::Batch;
use mochila_wire::Now;

/// A message that is kept after it has been delivered.
#[derive(Debug, Default)]
pub(crate) struct Last {
    /// One message, or none yet.
    batch: Batch,
    /// When it expires; `None` if it does not.
    expiry_ms: Option<u64>,
    /// The key that it came with, where the address had one.
    key: Option<Box<[u8]>>,
}

impl Last {
    /// Keeps the last message of a batch instead.
    pub(crate) fn keep(&mut self, now: Now, batch: &Batch, key: Option<&[u8]>) {
        let Some(index) = (batch.len() as u32).checked_sub(1) else { return };
        self.batch.select(batch, &[index]);
        self.expiry_ms = self.batch.messages[0].meta.expiry_ms(now);
        self.key = key.map(Box::from);
    }

    /// The message for a queue that has just been bound, with what is left of its time, and the
    /// key that it came with.
    pub(crate) fn offer(&self, now: Now) -> Option<(Batch, Option<&[u8]>)> {
        if self.batch.is_empty() || self.expiry_ms.is_some_and(|expiry| expiry <= now.mono_ms) {
            return None;
        }
        let mut batch = Batch::default();
        batch.select(&self.batch, &[0]);
        let meta = &mut batch.messages[0].meta;
        if let (Some(expiry_ms), Some(_)) = (self.expiry_ms, meta.ttl_ms) {
            let left = expiry_ms - now.mono_ms;
            meta.ttl_ms = Some(u32::try_from(left).unwrap_or(u32::MAX));
        }
        Some((batch, self.key.as_deref()))
    }
}
