//! What has arrived on the link on which `receive` receives, and what is done with it.

use std::collections::VecDeque;

use mochila_client::LostGroups;
use mochila_engine::TransferEvent;

use crate::failure::Outcome;
use crate::stopwatch::now_ns;

/// What is done with what arrives, as it arrives.
pub(super) trait Handle {
    /// Handles one message.
    fn handle(&mut self, arrival: Arrival<'_>) -> Outcome<Acknowledge>;

    /// Others have groups of messages now that were here.
    fn lost_groups(&mut self, lost: &LostGroups) -> Outcome;
}

/// What a message's handler wants done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledge {
    /// Accept everything that was handled.
    pub(super) everything: bool,
    /// How many messages have been handled.
    pub(super) handled: u64,
    /// Handle nothing more.
    pub(super) stop: bool,
}

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Intake {
    /// The delivery of which more frames are to come.
    partial: Option<Stored>,
    /// Deliveries that wait for their time.
    pub(super) waiting: VecDeque<Stored>,
    /// Deliveries that were handled and not acknowledged: first and last.
    pub(super) unacknowledged: Option<(u32, u32)>,
    pub(super) clock: Clock,
}

/// A delivery with its bytes.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) delivery_id: u32,
    bytes: Vec<u8>,
    clock: Clock,
}

/// One message, wherever its bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) bytes: &'a [u8],
    clock: Clock,
}

/// When the messages at hand were read from the socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub(super) read_ns: i64,
}

impl Intake {
    #[inline]
    pub(super) fn handle(
        &mut self,
        transfer: &TransferEvent,
        bytes: &[u8],
        handle: &mut dyn Handle,
    ) -> Outcome<Option<Acknowledge>> {
        if self.clock.read_ns == 0 {
            self.clock.read_ns = now_ns();
        }
        if transfer.is_whole() {
            let arrival = Arrival { bytes: &bytes[transfer.payload()], clock: self.clock };
            let acknowledge = handle.handle(arrival)?;
            self.handled(transfer.delivery_id);
            return Ok(Some(acknowledge));
        }
        let Some(stored) = self.complete(transfer, bytes) else { return Ok(None) };
        let acknowledge = handle.handle(stored.as_ref())?;
        self.handled(stored.delivery_id);
        Ok(Some(acknowledge))
    }

    pub(super) fn keep(&mut self, transfer: &TransferEvent, bytes: &[u8]) {
        if let Some(stored) = self.complete(transfer, bytes) {
            self.waiting.push_back(stored);
        }
    }

    /// Adds a frame to its delivery; returns the delivery if that was the last one.
    fn complete(&mut self, transfer: &TransferEvent, bytes: &[u8]) -> Option<Stored> {
        if transfer.start {
            let delivery_id = transfer.delivery_id;
            self.partial = Some(Stored { delivery_id, bytes: Vec::new(), clock: self.clock });
        }
        if transfer.aborted {
            self.partial = None;
        }
        self.partial.as_mut()?.bytes.extend_from_slice(&bytes[transfer.payload()]);
        if transfer.more { None } else { self.partial.take() }
    }

    #[inline]
    pub(super) fn handled(&mut self, delivery_id: u32) {
        match &mut self.unacknowledged {
            Some((_, last)) => *last = delivery_id,
            none => *none = Some((delivery_id, delivery_id)),
        }
    }
}

impl Stored {
    pub(super) fn as_ref(&self) -> Arrival<'_> {
        Arrival { bytes: &self.bytes, clock: self.clock }
    }
}

impl Arrival<'_> {
    /// The time: to the nanosecond if it matters, else when the message was read.
    #[inline]
    pub(super) fn now_ns(&self, exact: bool) -> i64 {
        if exact || self.clock.read_ns == 0 { now_ns() } else { self.clock.read_ns }
    }
}
