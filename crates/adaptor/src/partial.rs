//! A delivery that comes in several transfers (part 2, 2.7.5).

use std::io;
use std::sync::Arc;

use mochila_broker::{Budget, Claim, Reservation};
use mochila_management::LinkRecord;
use mochila_wire::section::{self, StreamScanner};
use mochila_wire::{AmqpError, Now, Sections, condition};

use crate::arrival::{Arrival, Large, Sender};
use crate::inspection::damaged;
use crate::large::LargeFile;
use crate::{Node, Settings};

/// A delivery that has arrived in part.
pub(crate) struct Partial {
    pub(crate) sender: Sender,
    /// All of it, or the first bytes of a large one.
    bytes: Vec<u8>,
    reserved: Reservation,
    large: Option<LargePartial>,
    size: u64,
    /// From this size on it goes to a file where memory is short; never, if its receiver needs it in
    /// memory.
    early_bytes: usize,
    /// When something of it came last, on the monotonic clock.
    came_ms: u64,
    /// At this size its sender's credit is looked at again.
    next_look: u64,
    shown: Shown,
}

/// What operators see of a message that is coming in; nothing once it is over.
struct Shown(Arc<LinkRecord>);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.unfinished_bytes.set(0);
    }
}

/// The part of a large message that is in a file, and the scanner that has seen all of it.
struct LargePartial {
    file: Box<dyn LargeFile>,
    scanner: StreamScanner,
    /// The sections before the body.
    sections: Sections,
}

/// Why a part of a message cannot be taken in.
pub(crate) enum PartError {
    /// The link takes no messages of that size: it is detached.
    TooLarge { limit: u64 },
    /// The delivery is rejected, and the link goes on.
    Rejected(AmqpError),
    /// The same, since there is no file for it.
    NoFile(io::Error),
}

impl PartError {
    /// The condition and sentence for the peer, where the delivery is rejected.
    pub(crate) fn no_file(error: &io::Error) -> AmqpError {
        let text = format!("a large message cannot be kept on disk: {error}");
        AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
    }
}

impl Partial {
    /// The first part comes. Whether it may go to a file before it is as large as others that do, if
    /// memory is short, is `may_be_early`.
    pub(crate) fn new(
        now: Now,
        sender: Sender,
        budget: &Arc<Budget>,
        record: &Arc<LinkRecord>,
        may_be_early: bool,
    ) -> Partial {
        let reserved = Reservation::nothing(budget);
        Partial {
            sender,
            bytes: Vec::new(),
            reserved,
            large: None,
            size: 0,
            early_bytes: if may_be_early { LARGE_BYTES as usize } else { usize::MAX },
            came_ms: now.mono_ms,
            next_look: LARGE_BYTES,
            shown: Shown(Arc::clone(record)),
        }
    }

    /// Takes in another part, in memory that has been kept for its sender as far as that is enough.
    pub(crate) fn append(
        &mut self,
        now: Now,
        part: &[u8],
        node: &Node,
        claim: &mut Claim,
    ) -> Result<(), PartError> {
        let result = self.take_in(now, part, node, claim);
        self.shown.0.unfinished_bytes.set(self.reserved.bytes());
        result
    }

    fn take_in(
        &mut self,
        now: Now,
        part: &[u8],
        node: &Node,
        claim: &mut Claim,
    ) -> Result<(), PartError> {
        let settings = &node.settings;
        if !part.is_empty() {
            self.came_ms = now.mono_ms;
        }
        self.size += part.len() as u64;
        if settings.max_message_bytes > 0 && self.size > settings.max_message_bytes {
            return Err(PartError::TooLarge { limit: settings.max_message_bytes });
        }
        if let Some(large) = &mut self.large {
            return large.append(part);
        }
        let reserved = claim.take(part.len() as u64);
        self.bytes.extend_from_slice(part);
        let is_early = self.bytes.len() >= self.early_bytes;
        match reserved {
            Ok(reserved) => self.reserved.merge(reserved),
            // What is here for a moment is no more than a frame.
            Err(_) if is_early => return self.spill(node),
            Err(over) => {
                node.broker.budget().note_refused(1);
                return Err(PartError::Rejected(over.to_amqp()));
            }
        }
        if self.bytes.len() >= settings.large_message_bytes {
            self.spill(node)?;
        } else if is_early && node.broker.budget().is_short() && self.spill(node).is_err() {
            // There is memory for it still; it is not tried again with every frame.
            self.early_bytes = self.bytes.len() * 2;
        }
        Ok(())
    }

    /// When it is given up if nothing more of it has come by then.
    pub(crate) fn given_up_ms(&self, settings: &Settings) -> Option<u64> {
        let timeout_ms = settings.unfinished_message_timeout_ms;
        (timeout_ms > 0).then(|| self.came_ms.saturating_add(timeout_ms))
    }

    /// How much has arrived.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How large the message may become, as far as can be told from what has arrived: twice as
    /// large. There is an answer only where it is another one than before.
    pub(crate) fn guess(&mut self) -> Option<u64> {
        if self.size < self.next_look {
            return None;
        }
        self.next_look = self.size * 2;
        Some(self.next_look)
    }

    /// Moves what has arrived to a file; only the sections before the body stay in memory.
    fn spill(&mut self, node: &Node) -> Result<(), PartError> {
        let limits = &node.settings.limits;
        let head = section::scan_head(&self.bytes, limits);
        let head = head.map_err(|error| PartError::Rejected(damaged(&error)))?;
        let head = head.ok_or_else(|| {
            let text = "the sections before the body of a large message are too large";
            PartError::Rejected(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text))
        })?;
        let file = node.large_files.create().map_err(PartError::NoFile)?;
        let mut large = LargePartial { file, scanner: StreamScanner::new(limits), sections: head };
        large.append(&self.bytes)?;
        self.large = Some(large);
        self.bytes.truncate(head.body_start());
        self.bytes.shrink_to_fit();
        self.reserved.shrink_to(self.bytes.len() as u64);
        Ok(())
    }

    /// All of it has come. What it has of the memory is kept until it is enqueued.
    pub(crate) fn finish(self, claim: &mut Claim) -> Result<Arrival, AmqpError> {
        claim.put_back(self.reserved);
        match self.large {
            None => Ok(Arrival::Owned(self.bytes)),
            Some(large) => {
                let body_kind = large.scanner.finish().map_err(|error| damaged(&error))?;
                let (head, sections, body) = (self.bytes, large.sections, large.file.finish());
                Ok(Arrival::Large(Large { head, sections, body_kind, body }))
            }
        }
    }
}

impl LargePartial {
    fn append(&mut self, part: &[u8]) -> Result<(), PartError> {
        self.scanner.push(part).map_err(|error| PartError::Rejected(damaged(&error)))?;
        self.file.append(part).map_err(PartError::NoFile)
    }
}

/// From this size on a message is a large one, and goes to a file where memory is short; its sender's credit is looked at with each batch, and
/// again whenever what has arrived of a message has doubled.
pub(crate) const LARGE_BYTES: u64 = 32 * 1024;
