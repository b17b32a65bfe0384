//! Messages on their way out.

use std::collections::VecDeque;
use std::sync::Arc;

use mochila_engine::{Delivery, SessionId};
use mochila_wire::DeliveryState;
use mochila_wire::performative::SenderSettleMode;
use tokio::sync::Semaphore;

use super::{Core, LinkEnd, answer};
use crate::command::{Attached, LinkKey, Outgoing};
use crate::error::Error;

/// The sending end of a link: messages in the order in which they were handed over, of which the
/// first ones are sent and wait for their outcome.
#[derive(Debug)]
pub(super) struct SenderEnd {
    /// Message number `base + i` is at `i`; settled ones are taken out.
    messages: VecDeque<Option<Outgoing>>,
    base: u64,
    /// The number of the first message that is not sent yet.
    next: u64,
    /// How much of that message is sent already.
    next_offset: usize,
    permits: Arc<Semaphore>,
    /// Whether messages are kept after they were sent, to be sent again over a new connection.
    keeps: bool,
    settle_mode: SenderSettleMode,
    default_outcome: Option<DeliveryState>,
}

impl SenderEnd {
    pub(super) fn new(permits: Arc<Semaphore>, keeps: bool) -> Self {
        Self {
            messages: VecDeque::new(),
            base: 0,
            next: 0,
            next_offset: 0,
            permits,
            keeps,
            settle_mode: SenderSettleMode::Mixed,
            default_outcome: None,
        }
    }

    pub(super) fn attached(&mut self, attached: &Attached) {
        self.settle_mode = attached.settings.snd_settle_mode;
        let source = attached.source.as_ref();
        self.default_outcome = source.and_then(|source| source.default_outcome.clone());
    }

    pub(super) fn push(&mut self, message: Outgoing) {
        self.messages.push_back(Some(message));
    }

    /// A new connection: what has no outcome is sent again, in its order.
    pub(super) fn rewind(&mut self) {
        self.next = self.base;
        self.next_offset = 0;
        // Except for what belongs to transactions: they are over.
        for slot in &mut self.messages {
            if let Some(lost) = slot.take_if(|message| message.state.is_some()) {
                self.permits.add_permits(1);
                answer(lost.reply, Err(Error::Stale));
            }
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.messages.front().is_some_and(Option::is_none) {
            self.messages.pop_front();
            self.base += 1;
        }
        self.next = self.next.max(self.base);
    }

    /// The message with this number has its outcome.
    pub(super) fn settle(&mut self, number: u64, state: DeliveryState) {
        let index = number.wrapping_sub(self.base) as usize;
        let Some(message) = self.messages.get_mut(index).and_then(Option::take) else { return };
        self.trim();
        self.permits.add_permits(1);
        answer(message.reply, Ok(state));
    }

    /// The outcome of deliveries that the receiver settled without saying (section 3.4, and
    /// `default-outcome` in section 3.5.3).
    pub(super) fn silent_outcome(&self) -> DeliveryState {
        self.default_outcome.clone().unwrap_or(DeliveryState::Released)
    }

    pub(super) fn finish(self, error: &Error) {
        self.permits.close();
        for message in self.messages.into_iter().flatten() {
            answer(message.reply, Err(error.clone()));
        }
    }

    fn front(&mut self) -> Option<(u64, &mut Outgoing)> {
        loop {
            let index = (self.next - self.base) as usize;
            match self.messages.get_mut(index) {
                None => return None,
                // Settled before a connection was lost; the others are sent again.
                Some(None) => self.next += 1,
                Some(Some(_)) => break,
            }
        }
        let index = (self.next - self.base) as usize;
        self.messages.get_mut(index).and_then(Option::as_mut).map(|message| (self.next, message))
    }
}

impl Core {
    /// Sends as many of a link's messages as credit, window and output allow.
    pub(super) fn pump(&mut self, key: LinkKey) {
        let Some(record) = self.links.get_mut(&key) else { return };
        let (LinkEnd::Sender(sender), Some(id)) = (&mut record.end, record.id) else { return };
        if record.detaching.is_some() {
            return;
        }
        let (keeps, mode) = (sender.keeps, sender.settle_mode);
        loop {
            // This writes outcomes too, so that those told in a transaction go before its end.
            if self.engine.output().len() > OUTPUT_LIMIT {
                self.held_back.push(key);
                return;
            }
            let offset = sender.next_offset;
            let Some((number, message)) = sender.front() else { break };
            let Some(mut outgoing) = self.engine.outgoing(id) else { return };
            let settled = match mode {
                SenderSettleMode::Settled => true,
                SenderSettleMode::Unsettled => false,
                SenderSettleMode::Mixed => message.settled,
            };
            let size = message.bytes.len();
            let state = message.state.as_deref();
            let delivery = Delivery {
                token: number,
                settled,
                message_format: message.format,
                state,
                ..Delivery::default()
            };
            let is_whole = offset == 0 && size <= OUTPUT_LIMIT && outgoing.fits_as(&delivery, size);
            let done = if is_whole {
                match state {
                    Some(_) => outgoing.deliver(&delivery, &[&message.bytes]),
                    None => outgoing.send(number, settled, message.format, &[&message.bytes]),
                };
                true
            } else {
                // Larger than the window or than the output should be: piece by piece.
                let end = size.min(offset + PIECE);
                let piece = &message.bytes[offset..end];
                let progress = if offset > 0 {
                    outgoing.continue_large(piece, end == size)
                } else if outgoing.capacity() > 0 {
                    outgoing.start_large(&delivery, piece)
                } else {
                    return;
                };
                let is_stuck = progress.taken < piece.len();
                sender.next_offset = if progress.done { 0 } else { offset + progress.taken };
                if is_stuck {
                    // The window is closed; the engine tells when it opens.
                    return;
                }
                progress.done
            };
            if !done {
                continue;
            }
            sender.next += 1;
            if settled {
                // Nobody will say more about it.
                sender.settle(number, DeliveryState::Accepted);
            } else if !keeps && let Some((_, message)) = sender.sent(number) {
                message.bytes = Vec::new();
            }
        }
        // A receiver that drains wants to know that there is nothing left.
        self.engine.drained(id);
    }

    pub(super) fn pump_session(&mut self, session: SessionId) {
        let keys: Vec<LinkKey> = self
            .links
            .iter()
            .filter(|(_, link)| {
                let id = self.sessions.get(&link.session).and_then(|record| record.id);
                matches!(link.end, LinkEnd::Sender(_)) && id == Some(session)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.pump(key);
        }
    }
}

impl SenderEnd {
    fn sent(&mut self, number: u64) -> Option<(u64, &mut Outgoing)> {
        let index = number.checked_sub(self.base)? as usize;
        self.messages.get_mut(index).and_then(Option::as_mut).map(|message| (number, message))
    }
}

/// Above this the output waits for the socket before more is put into it.
const OUTPUT_LIMIT: usize = 1 << 20;
/// How much of a large message is put into the output at a time.
const PIECE: usize = 256 << 10;
