use std::sync::Arc;

use mochila_broker::{
    ConsumerId, Content, Outcome, Remark, SharedQueue, TakeLimit, Taking, Wakeups,
};
use mochila_engine::{self as engine, LinkId};
use mochila_wire::Now;

use crate::Scratch;
use crate::connection::Connection;
use crate::large::Departure;
use crate::subscription::Subscription;

/// Our end of a link on which we send: a consumer of a queue.
///
/// ```text
///            credit                 taken all               wake-up
///   Idle ──────────────▶ Ready ───────────────▶ Waiting ──────────────▶ Ready
///    ▲                   │ │ ▲
///    └── no credit ──────┘ │ └── window, output room: stays on the connection's list
///                          └──── as many unsettled as there may be ───▶ Full, until some are settled
/// ```
pub(crate) struct Outgoing {
    pub(crate) queue: Arc<SharedQueue>,
    pub(crate) consumer: ConsumerId,
    /// Messages are sent settled: sending one is accepting it.
    pub(crate) presettled: bool,
    /// What becomes of deliveries that are settled without an outcome, or never, if the peer has
    /// said so.
    pub(crate) default_outcome: Option<Outcome>,
    /// On the connection's list of links that may have something to send.
    pub(crate) ready: bool,
    /// On the connection's list of links with as many unsettled deliveries as there may be.
    pub(crate) full: bool,
    /// A delivery that does not fit one frame and has been sent in part.
    pub(crate) departure: Option<Departure>,
    /// The queue was made for this link: it goes when the link goes, closed or not, since nothing
    /// is kept of links that are only detached.
    pub(crate) owns_queue: bool,
    /// The peer wants to hear of groups that go to other receivers.
    pub(crate) wants_lost_groups: bool,
    /// The queue is a subscription to an exchange.
    pub(crate) subscription: Option<Subscription>,
}

/// How a link has ended.
#[derive(Clone, Copy)]
pub(crate) struct Parting {
    /// The connection broke off.
    pub(crate) is_lost: bool,
    /// The peer has closed the link, and wants nothing to be kept of it.
    pub(crate) closed: bool,
}

impl Outgoing {
    /// What becomes of deliveries that are settled without an outcome, or never.
    pub(crate) fn default_outcome(&self) -> &Outcome {
        self.default_outcome.as_ref().unwrap_or(&Outcome::Release)
    }

    /// What becomes of deliveries that were settled in a transaction which is rolled back: they were
    /// delivered in vain, unless the peer has said otherwise. A message that always makes its
    /// transaction fail would go round for ever.
    pub(crate) fn outcome_of_rollback(&self) -> &Outcome {
        self.default_outcome.as_ref().unwrap_or(&IN_VAIN)
    }

    /// The link is gone: what it holds gets the default outcome, or counts as delivered in vain if the
    /// connection broke off.
    pub(crate) fn give_up(mut self, now: Now, parting: Parting, wakeups: &mut Wakeups) {
        if let Some(departure) = self.departure.take_if(|departure| !departure.begun) {
            // The peer has never heard of it.
            let released = [departure.ending(Outcome::Release)];
            wakeups.merge(self.queue.settle(now, self.consumer, &released));
        }
        let outcome = if parting.is_lost { &IN_VAIN } else { self.default_outcome() };
        wakeups.merge(self.queue.unsubscribe_with(now, self.consumer, outcome));
        if self.owns_queue {
            wakeups.merge(self.queue.lose_creator(now));
        }
        if let Some(subscription) = self.subscription {
            subscription.leave(&self.queue, parting.closed, wakeups);
        }
    }
}

/// What becomes of messages that were with a peer whose connection broke.
pub(crate) const IN_VAIN: Outcome =
    Outcome::Modify { failed: true, undeliverable_here: false, annotations: None };

/// What one turn of a link came to.
enum Turn {
    /// Nothing to do until something happens.
    Rest,
    /// More may be there; others come first.
    Again,
    /// The queue is gone.
    Gone,
}

impl Connection {
    /// Puts a link on the list of those that may have something to send.
    pub(crate) fn make_ready(&mut self, id: LinkId) {
        if let Some(outgoing) = self.links.outgoing(id)
            && !outgoing.ready
        {
            outgoing.ready = true;
            self.ready.push_back(id);
        }
    }

    /// Gives each ready link one turn, while there is room for output; true if there is more to do.
    pub(crate) fn pump_links(&mut self, now: Now, scratch: &mut Scratch) -> bool {
        for _ in 0..self.ready.len() {
            if self.engine.output().len() >= self.node.settings.output_limit {
                return true;
            }
            let Some(id) = self.ready.pop_front() else { break };
            let Some(outgoing) = self.links.outgoing(id) else { continue };
            outgoing.ready = false;
            match self.turn(now, id, scratch) {
                Turn::Rest => {}
                Turn::Again => self.make_ready(id),
                Turn::Gone => self.node_gone(now, id, scratch),
            }
        }
        !self.ready.is_empty()
    }

    fn turn(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) -> Turn {
        if !self.depart(now, id, scratch) {
            self.idle(now, id, scratch);
            return Turn::Rest;
        }
        let room = self.node.settings.output_limit.saturating_sub(self.engine.output().len());
        let Some(outgoing) = self.links.outgoing(id) else { return Turn::Rest };
        let unsettled = self.engine.link(id).map_or(0, engine::Link::unsettled);
        let Some(mut wire) = self.engine.outgoing(id) else { return Turn::Rest };
        let mut limit = take_limit(&mut wire, room);
        let more_unsettled = self.node.settings.max_unsettled.saturating_sub(unsettled);
        if more_unsettled == 0 && limit.messages > 0 && !outgoing.full {
            outgoing.full = true;
            self.full.push(id);
        }
        limit.messages = limit.messages.min(more_unsettled);
        if limit.messages == 0 {
            self.hear_of_lost_groups(id);
            // Without credit, or with the session's window closed, it must not keep others waiting.
            self.idle(now, id, scratch);
            // A drain does not wait until the receiver settles something.
            let is_over =
                more_unsettled == 0 || self.engine.link(id).is_some_and(|link| link.credit() == 0);
            if is_over {
                self.engine.drained(id);
            }
            return Turn::Rest;
        }
        let (taking, wakeups) =
            outgoing.queue.take(now, outgoing.consumer, limit, &mut scratch.taken);
        scratch.wakeups.merge(wakeups);
        if let Some(lost) = scratch.taken.take_lost_groups() {
            self.tell_lost_groups(id, &lost);
        }
        let sent = self.send_taken(now, id, scratch);
        self.count_sent(now, id, sent);
        if self.links.outgoing(id).is_some_and(|outgoing| outgoing.departure.is_some()) {
            // It takes again, or drains, when that message is out.
            self.idle(now, id, scratch);
            return Turn::Rest;
        }
        match taking {
            Taking::Gone => Turn::Gone,
            Taking::More => Turn::Again,
            // The queue takes it for idle now; so it is, unless credit and window allow for more.
            Taking::Satisfied => {
                if self.engine.link(id).is_some_and(engine::Link::drain) {
                    self.note_available(id);
                }
                let wire = self.engine.outgoing(id);
                let may_send = wire.is_some_and(|mut wire| wire.capacity() > 0);
                if may_send { Turn::Again } else { Turn::Rest }
            }
            Taking::Waiting => {
                if self.engine.link(id).is_some_and(engine::Link::is_draining) {
                    self.engine.set_available(id, 0);
                    self.engine.drained(id);
                    self.idle(now, id, scratch);
                }
                Turn::Rest
            }
        }
    }

    /// Has the next flow say how many messages wait.
    pub(crate) fn note_available(&mut self, id: LinkId) {
        if let Some(outgoing) = self.links.outgoing(id) {
            let available = outgoing.queue.available();
            self.engine.set_available(id, u32::try_from(available).unwrap_or(u32::MAX));
        }
    }

    /// The socket takes no more for now: links that queues have called let others come first.
    pub(crate) fn rest_links(&mut self, now: Now, scratch: &mut Scratch) {
        for index in 0..self.ready.len() {
            let id = self.ready[index];
            self.idle(now, id, scratch);
        }
    }

    /// A link cannot take anything now, and must not keep others waiting.
    fn idle(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        if let Some(outgoing) = self.links.outgoing(id) {
            scratch.wakeups.merge(outgoing.queue.idle(now, outgoing.consumer));
        }
    }

    /// Encodes what was taken; returns how many messages.
    fn send_taken(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) -> usize {
        let Scratch { taken, front, added, positions, wakeups, .. } = scratch;
        let (Some(outgoing), Some(mut wire)) = (self.links.outgoing(id), self.engine.outgoing(id))
        else {
            return 0;
        };
        let presettled = outgoing.presettled;
        let mut sent = 0;
        positions.clear();
        for (index, delivery) in taken.deliveries().iter().enumerate() {
            taken.touch_scattered(index);
            let content = taken.content(delivery);
            let from = taken.write_front(delivery, added, front);
            let head = front.bytes();
            match content {
                Content::Slice(bytes) if wire.fits(head.len() + bytes.len() - from) => {
                    let parts: [&[u8]; 2] = [head, &bytes[from..]];
                    let format = taken.message_format(delivery);
                    wire.send(delivery.position, presettled, format, &parts);
                    if presettled {
                        positions.push(delivery.position);
                    }
                    sent += 1;
                }
                _ => {
                    let token = engine::Delivery {
                        token: delivery.position,
                        settled: presettled,
                        message_format: taken.message_format(delivery),
                        ..engine::Delivery::default()
                    };
                    let departure = departure(head, &content, from, token);
                    outgoing.departure = Some(departure);
                    // What was taken behind it has to wait its turn in the queue.
                    let later = &taken.deliveries()[index + 1..];
                    if !later.is_empty() {
                        let later: Vec<u64> = later.iter().map(|later| later.position).collect();
                        wakeups.merge(outgoing.queue.give_back(now, outgoing.consumer, &later));
                    }
                    break;
                }
            }
        }
        taken.clear();
        if !positions.is_empty() {
            wakeups.merge(outgoing.queue.accept(now, outgoing.consumer, positions));
        }
        if outgoing.departure.is_some() {
            // It is counted when it is out.
            self.depart(now, id, scratch);
        }
        sent
    }

    /// Sends more of a large delivery; false if it has to wait for credit, window or socket.
    fn depart(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) -> bool {
        loop {
            let full = self.engine.output().len() >= self.node.settings.output_limit;
            let Some(outgoing) = self.links.outgoing(id) else { return false };
            let Some(departure) = &mut outgoing.departure else { return true };
            if full {
                self.make_ready(id);
                return false;
            }
            let Some(mut wire) = self.engine.outgoing(id) else { return false };
            let may_start = wire.capacity() > 0;
            if !may_start && !departure.begun && wire.room() > 0 {
                self.take_back(now, id, scratch);
                return true;
            }
            if wire.room() == 0 || !(departure.begun || may_start) {
                return false;
            }
            let last = match departure.read(&mut scratch.piece, wire.frame_room()) {
                Ok(more) => !more,
                Err(error) => {
                    if let Some(more) =
                        self.node.broker.rations().take(Remark::MessageUnreadable, now)
                    {
                        let queue = outgoing.queue.name();
                        tracing::error!(queue, %error, "cannot read a large message{more}");
                    }
                    self.give_up_departure(now, id, scratch);
                    return true;
                }
            };
            if departure.begun {
                wire.continue_large(&scratch.piece, last);
            } else if last {
                wire.deliver(&departure.delivery, &[&scratch.piece]);
            } else {
                departure.begun = true;
                wire.start_large(&departure.delivery, &scratch.piece);
            }
            if last {
                self.end_departure(now, id, scratch);
                return true;
            }
        }
    }

    fn end_departure(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let Some(outgoing) = self.links.outgoing(id) else { return };
        let Some(departure) = outgoing.departure.take() else { return };
        if departure.delivery.settled {
            let positions = [departure.delivery.token];
            scratch.wakeups.merge(outgoing.queue.accept(now, outgoing.consumer, &positions));
        }
        self.count_sent(now, id, 1);
    }

    /// The credit for a message went before its first frame could go.
    fn take_back(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let Some(outgoing) = self.links.outgoing(id) else { return };
        let Some(departure) = outgoing.departure.take() else { return };
        let released = [departure.ending(Outcome::Release)];
        scratch.wakeups.merge(outgoing.queue.settle(now, outgoing.consumer, &released));
    }

    /// The rest of a message cannot be read: the receiver forgets it, and the queue rejects it.
    fn give_up_departure(&mut self, now: Now, id: LinkId, scratch: &mut Scratch) {
        let Some(outgoing) = self.links.outgoing(id) else { return };
        let Some(departure) = outgoing.departure.take() else { return };
        let rejected = [departure.ending(Outcome::Reject)];
        scratch.wakeups.merge(outgoing.queue.settle(now, outgoing.consumer, &rejected));
        if departure.begun
            && let Some(mut wire) = self.engine.outgoing(id)
        {
            wire.abort_large();
        }
    }
}

/// How much may be taken so that all of it can be sent now, if it fits memory at all.
fn take_limit(wire: &mut engine::Outgoing<'_>, room: usize) -> TakeLimit {
    let capacity = wire.capacity();
    let frames = wire.room();
    // Messages of several frames: n messages of b bytes take at most n + b / frame_room frames.
    let by_frames = (frames / 2).max(1);
    let bytes = room.min((by_frames as usize).saturating_mul(wire.frame_room()));
    TakeLimit { messages: capacity.min(by_frames), bytes }
}

fn departure(
    head: &[u8],
    content: &Content<'_>,
    from: usize,
    delivery: engine::Delivery<'static>,
) -> Departure {
    match content {
        Content::Slice(bytes) => {
            let memory = [head, &bytes[from..]].concat();
            Departure::in_memory(memory, delivery)
        }
        Content::Large { body, .. } => {
            Departure::from_file(head.to_vec(), Arc::clone(body), from as u64, delivery)
        }
    }
}
