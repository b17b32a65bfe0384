use std::sync::Arc;

use mochila_broker::{
    Claim, Fault, MessageMeta, ProducerId, Published, Publisher, Refusal, Remark, SharedQueue,
    Waker, Wakeups,
};
use mochila_engine::{LinkId, TransferEvent};
use mochila_wire::performative::ReceiverSettleMode;
use mochila_wire::{AmqpError, DeliveryState, Now, condition};

use crate::arrival::{Answer, Arrival, Landing, Place, Route, Sender};
use crate::connection::Connection;
use crate::credit::Credit;
use crate::inspection::{self, Inspection};
use crate::node::{COORDINATOR, MANAGEMENT};
use crate::partial::{LARGE_BYTES, PartError, Partial};
use crate::relay::Relay;
use crate::{Scratch, refusal};

/// Our end of a link on which the peer sends.
pub(crate) struct Incoming {
    pub(crate) destination: Destination,
    /// The delivery of which frames are still to come.
    pub(crate) partial: Option<Partial>,
    /// The node was made for this link, and goes with it.
    pub(crate) owns_node: bool,
    /// Who settles first, where a delivery does not say.
    pub(crate) settle_mode: ReceiverSettleMode,
    pub(crate) credit: Box<Credit>,
}

/// Where the messages of a link go.
pub(crate) enum Destination {
    /// To one queue, which may hold its producers back.
    Queue { queue: Arc<SharedQueue>, producer: ProducerId },
    /// To the queues that are bound to an exchange.
    Exchange(Box<Publisher>),
    /// Each to the address it names.
    Anonymous(Relay),
    /// To `$management`.
    Management,
    /// To the coordinator of transactions.
    Coordinator {
        /// The controller understands that something is rejected.
        may_reject: bool,
    },
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
        let mut had_credit = !transfer.without_credit;
        let transaction = match transfer.txn_id(buffer) {
            Some(txn_id) if transfer.start => {
                let Some(id) = self.transactions.find(txn_id) else {
                    self.enqueue_arrivals(now, buffer, scratch);
                    let error = refusal::no_transaction();
                    return self.detach_with(now, transfer.link, error, scratch);
                };
                Some(id)
            }
            _ => None,
        };
        if transfer.start && self.transactions.are_open() {
            had_credit &= !self.is_beyond_limit(transfer.link, transaction);
        }
        if transfer.resume {
            // It resumes a delivery of which nothing is kept: such are ignored (part 2, 2.7.5).
            return self.grant_credit(now, transfer.link, scratch);
        }
        let sender = Sender {
            link: transfer.link,
            session: transfer.session,
            delivery_id: transfer.delivery_id,
            message_format: transfer.message_format,
            settled: transfer.settled,
            settle_mode: transfer.rcv_settle_mode,
            transaction,
            had_credit,
        };
        if transfer.is_whole() && !self.is_to_be_spilled(transfer) {
            let arrival = Arrival::InBuffer(transfer.payload());
            self.arrive(now, buffer, sender, arrival, scratch);
        } else {
            self.handle_part(now, buffer, transfer, sender, scratch);
        }
    }

    /// True if a message that has come in one frame is better kept in a file, since the node's
    /// memory is short.
    #[inline]
    fn is_to_be_spilled(&self, transfer: &TransferEvent) -> bool {
        transfer.payload().len() as u64 >= LARGE_BYTES && self.node.broker.budget().is_short()
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
        let message_format = sender.message_format;
        let inspection = Inspection { settings: &self.node.settings, message_format };
        let sections = match inspection.inspect(bytes, &arrival) {
            Ok(sections) => sections,
            Err(error) => return self.refuse_delivery(now, sender, error, scratch),
        };
        if let Some(user) = &self.user
            && inspection::is_of_another(&sections, bytes, user)
        {
            let error = refusal::not_this_user(user);
            return self.refuse_delivery(now, sender, error, scratch);
        }
        let meta = MessageMeta { message_format, ..MessageMeta::read(&sections, bytes) };
        let Some(incoming) = self.links.incoming(sender.link) else { return };
        let delivery = (sender.delivery_id, sender.answer(incoming.settle_mode));
        let place = match &mut incoming.destination {
            Destination::Queue { queue, .. } => {
                Place::Queue { queue, is_held_back: sender.had_credit }
            }
            Destination::Exchange(publisher) => Place::Exchange {
                exchange: publisher.exchange(),
                key: publisher.key(),
                governor: publisher.governor().filter(|_| sender.had_credit),
                is_excused: sender.had_credit && publisher.is_surprised(),
            },
            Destination::Anonymous(relay) => {
                let to = sections.to(bytes).unwrap_or_default();
                if to == MANAGEMENT {
                    return self.handle_request(now, buffer, sender, &arrival, scratch);
                }
                if !relay.knows(to) {
                    match self.node.locate(to, self.record.user()) {
                        Ok(at) => relay.remember(to, at),
                        Err(error) => return self.refuse_delivery(now, sender, error, scratch),
                    }
                }
                match relay.place(sender.had_credit) {
                    Some(place) => place,
                    None => return,
                }
            }
            Destination::Management => {
                return self.handle_request(now, buffer, sender, &arrival, scratch);
            }
            Destination::Coordinator { .. } => {
                return self.handle_control(now, buffer, sender, &arrival, scratch);
            }
        };
        if !scratch.arrivals.joins(&sender, place) {
            let route = Route::new(&sender, self.record.id, place);
            self.enqueue_arrivals(now, buffer, scratch);
            scratch.arrivals.start(route);
        }
        scratch.arrivals.push(delivery, arrival, &sections, meta);
    }

    /// Enqueues the messages collected so far, and gives their sender credit again.
    pub(crate) fn enqueue_arrivals(&mut self, now: Now, buffer: &[u8], scratch: &mut Scratch) {
        let arrivals = &mut scratch.arrivals;
        let count = arrivals.len();
        let Some(link) = arrivals.link() else { return };
        let mut unclaimed;
        let claim = match self.links.incoming(link) {
            Some(incoming) => &mut incoming.credit.claim,
            None => {
                unclaimed = Claim::nothing(self.node.broker.budget());
                &mut unclaimed
            }
        };
        let ends = Landing {
            claim,
            engine: &mut self.engine,
            transactions: &mut self.transactions,
            wakeups: &mut scratch.wakeups,
        };
        let Some(landed) = arrivals.enqueue(now, buffer, ends) else { return };
        self.count_received(link, count);
        let published = landed.published.as_ref();
        let is_stopped = published.is_some_and(|published| self.note_published(link, published));
        let Some(incoming) = self.links.incoming(link) else { return };
        incoming.credit.note_landed(landed.message_bytes, landed.is_refused);
        let is_closed = landed.is_closed || is_stopped;
        if let Destination::Anonymous(relay) = &mut incoming.destination {
            let waker = || Waker::new(Arc::clone(&self.waker), link.index() as u32);
            scratch.wakeups.merge(relay.note_landed(now, landed.closed, waker));
        }
        if landed.is_refused || is_closed || incoming.credit.has_large_messages() {
            self.lower_credit(now, link, 0, scratch);
        }
        self.grant_credit(now, link, scratch);
    }

    /// Tells a publisher what became of its messages; true if it may have more credit than it is to
    /// have.
    fn note_published(&mut self, link: LinkId, published: &Published) -> bool {
        let Some(incoming) = self.links.incoming(link) else { return false };
        let Destination::Exchange(publisher) = &mut incoming.destination else { return false };
        let is_new_to_governor = publisher.note(published);
        is_new_to_governor || publisher.is_stopped()
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
        let Some((incoming, record)) = self.links.incoming_recorded(sender.link) else { return };
        if transfer.aborted {
            incoming.partial = None;
            return self.grant_credit(now, sender.link, scratch);
        }
        let mut partial = match incoming.partial.take() {
            Some(partial) if !transfer.start => partial,
            // What was left of a refused delivery.
            None if !transfer.start => return,
            _ => {
                let may_be_early = incoming.destination.keeps_messages();
                Partial::new(now, sender, self.node.broker.budget(), record, may_be_early)
            }
        };
        partial.sender.settled |= transfer.settled;
        let claim = &mut incoming.credit.claim;
        match partial.append(now, &buffer[transfer.payload()], &self.node, claim) {
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
            Err(PartError::NoFile(error)) => {
                if let Some(more) = self.node.broker.rations().take(Remark::NoFile, now) {
                    tracing::warn!(%error, "a large message is rejected, since there is no file for it{more}");
                }
                let error = PartError::no_file(&error);
                return self.refuse_delivery(now, partial.sender, error, scratch);
            }
        }
        if transfer.more {
            let Some(guess) = partial.guess() else {
                incoming.partial = Some(partial);
                if transfer.start {
                    self.hold(sender.link);
                }
                return;
            };
            if let Some(refusal) = incoming.destination.refuses(partial.size()) {
                return self.refuse_delivery(now, partial.sender, refusal.to_amqp(), scratch);
            }
            incoming.partial = Some(partial);
            self.hold(sender.link);
            return self.lower_credit(now, sender.link, guess, scratch);
        }
        let sender = partial.sender;
        match partial.finish(claim) {
            Ok(arrival) => self.arrive(now, buffer, sender, arrival, scratch),
            Err(error) => self.refuse_delivery(now, sender, error, scratch),
        }
    }

    /// Detaches a sender that began a message and does not go on with it, so that what has come does
    /// not take memory for ever; false if there is none such.
    pub(crate) fn give_up_partial(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) -> bool {
        let settings = &self.node.settings;
        let Some(partial) = self.links.incoming(id).and_then(|it| it.partial.as_ref()) else {
            return false;
        };
        if partial.given_up_ms(settings).is_none_or(|given_up_ms| given_up_ms > now.mono_ms) {
            return false;
        }
        let seconds = settings.unfinished_message_timeout_ms / 1_000;
        let error = AmqpError::new(
            condition::RESOURCE_LIMIT_EXCEEDED,
            format!("nothing more of an unfinished message has come for {seconds} s"),
        );
        self.detach_with(now, id, error, scratch);
        true
    }

    /// Rejects one delivery; the link goes on.
    pub(crate) fn refuse_delivery(
        &mut self,
        now: Now,
        sender: Sender,
        error: AmqpError,
        scratch: &mut Scratch,
    ) {
        tracing::debug!(link = ?sender.link, %error, "a message is rejected");
        if let Some(id) = sender.transaction {
            let fault = Fault::Rejected(Box::new(error.clone()));
            scratch.wakeups.merge(self.transactions.doom(now, id, fault));
        }
        let state = DeliveryState::Rejected { error: Some(Box::new(error)) };
        self.answer(sender, state);
        self.grant_credit(now, sender.link, scratch);
    }

    /// Tells a sender what became of one delivery.
    pub(crate) fn answer(&mut self, sender: Sender, state: DeliveryState) {
        let link_mode = self.links.incoming(sender.link).map(|incoming| incoming.settle_mode);
        let answer = sender.answer(link_mode.unwrap_or_default());
        if answer != Answer::Nothing {
            let id = sender.delivery_id;
            let settles = answer == Answer::Settles;
            let state = match sender.transaction {
                Some(transaction) => transaction.state(state),
                None => state,
            };
            self.engine.settle_incoming(sender.session, id, id, state, settles);
        }
    }
}

impl Destination {
    /// Whether it is a node that has been deleted.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Destination::Queue { queue, .. } => queue.is_deleted(),
            Destination::Exchange(publisher) => publisher.exchange().is_deleted(),
            Destination::Anonymous(_)
            | Destination::Management
            | Destination::Coordinator { .. } => false,
        }
    }

    /// When its sender goes on although it is held back, if it is.
    pub(crate) fn goes_on_ms(&self) -> Option<u64> {
        match self {
            Destination::Anonymous(relay) => relay.next_timeout_ms(),
            _ => None,
        }
    }

    /// Whether its sender understands that something is rejected.
    pub(crate) fn may_reject(&self) -> bool {
        !matches!(self, Destination::Coordinator { may_reject: false })
    }

    /// Whether what comes stays here: that takes memory, or may be in a file.
    pub(crate) fn keeps_messages(&self) -> bool {
        !matches!(self, Destination::Management | Destination::Coordinator { .. })
    }

    /// The queues that give a sender no credit which gets none.
    pub(crate) fn holders(&self) -> Vec<Arc<SharedQueue>> {
        match self {
            Destination::Queue { queue, .. } => vec![Arc::clone(queue)],
            Destination::Exchange(publisher) => publisher.governor().cloned().into_iter().collect(),
            Destination::Anonymous(relay) => relay.holders().cloned().collect(),
            Destination::Management | Destination::Coordinator { .. } => Vec::new(),
        }
    }

    /// Why a message of this size cannot be taken, whatever else there is.
    fn refuses(&self, message_bytes: u64) -> Option<Refusal> {
        match self {
            Destination::Queue { queue, .. } => queue.refuses(message_bytes),
            Destination::Exchange(_)
            | Destination::Anonymous(_)
            | Destination::Management
            | Destination::Coordinator { .. } => None,
        }
    }

    /// The address, for management.
    pub(crate) fn name(&self) -> &str {
        match self {
            Destination::Queue { queue, .. } => queue.name(),
            Destination::Exchange(publisher) => publisher.exchange().name(),
            Destination::Anonymous(_) => "",
            Destination::Management => MANAGEMENT,
            Destination::Coordinator { .. } => COORDINATOR,
        }
    }
}

impl Incoming {
    /// The link is gone.
    pub(crate) fn give_up(self, now: Now, wakeups: &mut Wakeups) {
        match self.destination {
            Destination::Queue { queue, producer } => {
                wakeups.merge(queue.detach_producer(now, producer));
                if self.owns_node {
                    wakeups.merge(queue.lose_creator(now));
                }
            }
            Destination::Exchange(publisher) => {
                let exchange = Arc::clone(publisher.exchange());
                wakeups.merge(publisher.detach(now));
                if self.owns_node {
                    // Whoever has it as an alternate exchange keeps it.
                    wakeups.merge(exchange.delete(<_>::default()).unwrap_or_default());
                }
            }
            Destination::Anonymous(relay) => relay.give_up(now, wakeups),
            Destination::Management | Destination::Coordinator { .. } => {}
        }
    }
}
