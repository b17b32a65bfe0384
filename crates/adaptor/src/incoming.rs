use std::io;
use std::sync::Arc;

use mochila_broker::{Budget, MessageMeta, ProducerId, Reservation, SharedQueue, Wakeups};
use mochila_engine::{LinkId, TransferEvent};
use mochila_wire::section::{self, StreamScanner};
use mochila_wire::{AmqpError, DecodeError, DeliveryState, Now, Sections, condition};

use crate::arrival::{Arrival, Large, Sender};
use crate::connection::Connection;
use crate::large::LargeFile;
use crate::node::MANAGEMENT;
use crate::{Node, Scratch};

/// Our end of a link on which the peer sends.
pub(crate) struct Incoming {
    pub(crate) destination: Destination,
    /// The delivery of which frames are still to come.
    pub(crate) partial: Option<Partial>,
    /// The queue was made for this link, and goes with it.
    pub(crate) owns_queue: bool,
}

/// Where the messages of a link go.
pub(crate) enum Destination {
    /// To one queue, which may hold its producers back.
    Queue { queue: Arc<SharedQueue>, producer: ProducerId },
    /// Each to the address it names; the last one is remembered.
    Anonymous { last: Option<(String, Arc<SharedQueue>)> },
    /// To `$management`.
    Management,
}

/// A delivery that has arrived in part.
pub(crate) struct Partial {
    sender: Sender,
    /// All of it, or the first bytes of a large one.
    bytes: Vec<u8>,
    reserved: Reservation,
    large: Option<LargePartial>,
    size: u64,
}

/// The part of a large message that is in a file, and the scanner that has seen all of it.
struct LargePartial {
    file: Box<dyn LargeFile>,
    scanner: StreamScanner,
    /// The sections before the body.
    sections: Sections,
}

impl Connection {
    /// Takes in one transfer frame.
    #[inline]
    pub(crate) fn handle_transfer(
        &mut self,
        now: Now,
        buffer: &[u8],
        transfer: &TransferEvent,
        scratch: &mut Scratch,
    ) {
        let sender = Sender {
            link: transfer.link,
            session: transfer.session,
            delivery_id: transfer.delivery_id,
            message_format: transfer.message_format,
            settled: transfer.settled,
        };
        if transfer.is_whole() {
            let arrival = Arrival::InBuffer(transfer.payload());
            self.arrive(now, buffer, sender, arrival, scratch);
        } else {
            self.handle_part(now, buffer, transfer, sender, scratch);
        }
    }

    /// Takes in a complete message.
    #[inline]
    fn arrive(
        &mut self,
        now: Now,
        buffer: &[u8],
        sender: Sender,
        arrival: Arrival,
        scratch: &mut Scratch,
    ) {
        let bytes = arrival.bytes(buffer);
        let limits = &self.node.settings.limits;
        let scanned = match &arrival {
            // All of it was scanned as it arrived.
            Arrival::Large(large) => Ok(large.sections),
            Arrival::InBuffer(_) | Arrival::Owned(_) => section::scan(bytes, limits),
        };
        let sections = match scanned {
            Ok(sections) => sections,
            Err(error) => {
                let error = not_a_message(sender.message_format, &error);
                return self.refuse_delivery(now, sender, error, scratch);
            }
        };
        let mut meta = MessageMeta::read(&sections, bytes);
        meta.message_format = sender.message_format;
        let Some(incoming) = self.links.incoming(sender.link) else { return };
        let queue = match &mut incoming.destination {
            Destination::Queue { queue, .. } => queue,
            Destination::Anonymous { last } => {
                let to = sections.to(bytes).unwrap_or_default();
                let known =
                    last.as_ref().is_some_and(|(name, queue)| name == to && !queue.is_deleted());
                if !known {
                    let to = to.to_owned();
                    match self.node.broker.open(&to) {
                        Ok(queue) => *last = Some((to, queue)),
                        Err(error) => {
                            return self.refuse_delivery(now, sender, error.to_amqp(), scratch);
                        }
                    }
                }
                match last {
                    Some((_, queue)) => queue,
                    None => return,
                }
            }
            Destination::Management => {
                let request = bytes.to_vec();
                return self.handle_request(now, sender, &request, scratch);
            }
        };
        if !scratch.arrivals.joins(sender.link, queue) {
            let queue = Arc::clone(queue);
            self.enqueue_arrivals(now, buffer, scratch);
            scratch.arrivals.start(sender.link, sender.session, &queue);
        }
        scratch.arrivals.push(sender, arrival, &sections, meta);
    }

    /// Enqueues the messages collected so far, and gives their sender credit again.
    pub(crate) fn enqueue_arrivals(&mut self, now: Now, buffer: &[u8], scratch: &mut Scratch) {
        let arrivals = &mut scratch.arrivals;
        let budget = self.node.broker.budget();
        let count = arrivals.len();
        let from = arrivals.enqueue(now, buffer, budget, &mut self.engine, &mut scratch.wakeups);
        if let Some(link) = from {
            self.count_received(link, count);
            self.grant_credit(now, link, scratch);
        }
    }

    /// Tops up a sender's credit once half of it is used, if its queue lets it.
    pub(crate) fn grant_credit(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let window = self.node.settings.credit_window;
        let Some(link) = self.engine.link(id) else { return };
        if link.credit() > window / 2 {
            return;
        }
        let Some(incoming) = self.links.incoming(id) else { return };
        let granted = match &incoming.destination {
            Destination::Queue { queue, producer } => {
                let (granted, wakeups) = queue.grant(now, *producer, window);
                scratch.wakeups.merge(wakeups);
                granted
            }
            Destination::Anonymous { .. } | Destination::Management => window,
        };
        if granted > link.credit() {
            self.engine.grant(id, granted);
        }
    }

    /// Takes in a frame that is not a whole delivery.
    fn handle_part(
        &mut self,
        now: Now,
        buffer: &[u8],
        transfer: &TransferEvent,
        sender: Sender,
        scratch: &mut Scratch,
    ) {
        let Some(incoming) = self.links.incoming(sender.link) else { return };
        if transfer.aborted {
            incoming.partial = None;
            return self.grant_credit(now, sender.link, scratch);
        }
        let mut partial = match incoming.partial.take() {
            Some(partial) if !transfer.start => partial,
            // What was left of a refused delivery.
            None if !transfer.start => return,
            _ => Partial::new(sender, self.node.broker.budget()),
        };
        partial.sender.settled |= transfer.settled;
        match partial.append(&buffer[transfer.payload()], &self.node) {
            Ok(()) => {}
            Err(PartError::TooLarge { limit }) => {
                let error = AmqpError::new(
                    condition::MESSAGE_SIZE_EXCEEDED,
                    format!("a message is larger than the {limit} bytes that this link takes"),
                );
                return self.detach_with(now, sender.link, error, scratch);
            }
            Err(PartError::Rejected(error)) => {
                return self.refuse_delivery(now, partial.sender, error, scratch);
            }
        }
        if transfer.more {
            incoming.partial = Some(partial);
            return;
        }
        let sender = partial.sender;
        match partial.finish() {
            Ok(arrival) => self.arrive(now, buffer, sender, arrival, scratch),
            Err(error) => self.refuse_delivery(now, sender, error, scratch),
        }
    }

    /// Rejects one delivery; the link goes on.
    fn refuse_delivery(
        &mut self,
        now: Now,
        sender: Sender,
        error: AmqpError,
        scratch: &mut Scratch,
    ) {
        tracing::debug!(link = ?sender.link, %error, "a message is rejected");
        if !sender.settled {
            let state = DeliveryState::Rejected { error: Some(Box::new(error)) };
            let id = sender.delivery_id;
            self.engine.settle_incoming(sender.session, id, id, state, true);
        }
        self.grant_credit(now, sender.link, scratch);
    }
}

/// Why a part of a message cannot be taken in.
enum PartError {
    /// The link takes no messages of that size: it is detached.
    TooLarge { limit: u64 },
    /// The delivery is rejected, and the link goes on.
    Rejected(AmqpError),
}

impl Partial {
    fn new(sender: Sender, budget: &Arc<Budget>) -> Partial {
        let reserved = Reservation::nothing(budget);
        Partial { sender, bytes: Vec::new(), reserved, large: None, size: 0 }
    }

    fn append(&mut self, part: &[u8], node: &Node) -> Result<(), PartError> {
        let settings = &node.settings;
        self.size += part.len() as u64;
        if settings.max_message_bytes > 0 && self.size > settings.max_message_bytes {
            return Err(PartError::TooLarge { limit: settings.max_message_bytes });
        }
        if let Some(large) = &mut self.large {
            return large.append(part).map_err(PartError::Rejected);
        }
        let reserved = node.broker.budget().reserve(part.len() as u64);
        self.reserved.merge(reserved.map_err(|over| PartError::Rejected(over.to_amqp()))?);
        self.bytes.extend_from_slice(part);
        if self.bytes.len() >= settings.large_message_bytes {
            self.spill(node).map_err(PartError::Rejected)?;
        }
        Ok(())
    }

    /// Moves what has arrived to a file; only the sections before the body stay in memory.
    fn spill(&mut self, node: &Node) -> Result<(), AmqpError> {
        let limits = &node.settings.limits;
        let head = section::scan_head(&self.bytes, limits).map_err(|error| damaged(&error))?;
        let head = head.ok_or_else(|| {
            let text = "the sections before the body of a large message are too large";
            AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
        })?;
        let file = node.large_files.create().map_err(|error| on_disk(&error))?;
        let mut large = LargePartial { file, scanner: StreamScanner::new(limits), sections: head };
        large.append(&self.bytes)?;
        self.large = Some(large);
        self.bytes.truncate(head.body_start());
        self.bytes.shrink_to_fit();
        self.reserved.shrink_to(self.bytes.len() as u64);
        Ok(())
    }

    fn finish(self) -> Result<Arrival, AmqpError> {
        match self.large {
            None => Ok(Arrival::Owned(self.bytes)),
            Some(large) => {
                large.scanner.finish().map_err(|error| damaged(&error))?;
                let (head, sections, body) = (self.bytes, large.sections, large.file.finish());
                Ok(Arrival::Large(Large { head, sections, body }))
            }
        }
    }
}

impl LargePartial {
    fn append(&mut self, part: &[u8]) -> Result<(), AmqpError> {
        self.scanner.push(part).map_err(|error| damaged(&error))?;
        self.file.append(part).map_err(|error| on_disk(&error))
    }
}

/// A message of another format is carried as it is, as long as it is made of the same sections.
fn not_a_message(message_format: u32, error: &DecodeError) -> AmqpError {
    if message_format == 0 {
        return damaged(error);
    }
    let text =
        format!("a message of format {message_format:#010x} is not made of sections: {error}");
    AmqpError::new(condition::NOT_IMPLEMENTED, text)
}

fn damaged(error: &DecodeError) -> AmqpError {
    AmqpError::new(condition::DECODE_ERROR, format!("the message is damaged: {error}"))
}

fn on_disk(error: &io::Error) -> AmqpError {
    let text = format!("a large message cannot be kept on disk: {error}");
    AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
}

impl Destination {
    /// The address, for management.
    pub(crate) fn name(&self) -> &str {
        match self {
            Destination::Queue { queue, .. } => queue.name(),
            Destination::Anonymous { .. } => "",
            Destination::Management => MANAGEMENT,
        }
    }
}

impl Incoming {
    /// The link is gone.
    pub(crate) fn give_up(self, now: Now, wakeups: &mut Wakeups) {
        if let Destination::Queue { queue, producer } = self.destination {
            wakeups.merge(queue.detach_producer(now, producer));
            if self.owns_queue {
                wakeups.merge(queue.lose_creator(now));
            }
        }
    }
}
