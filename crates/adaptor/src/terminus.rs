//! Attaching: which node is at our end of a link, and what is answered.

use std::sync::Arc;

use mochila_broker::exchange::ScopedBinding;
use mochila_broker::{ConsumerOptions, EventKind, Filters, Mode, Remark, SharedQueue, Waker};
use mochila_engine::LinkId;
use mochila_management::{Direction, LinkRecord};
use mochila_wire::performative::{Attach, Role, SenderSettleMode};
use mochila_wire::terminus::TerminusExpiryPolicy;
use mochila_wire::{AmqpError, Now, Source, Target, TargetArchetype, condition};

use crate::connection::Connection;
use crate::credit::Credit;
use crate::in_force::{
    answer_to, publishing_in_force, source_in_force, subscription_in_force, target_in_force,
};
use crate::incoming::{Destination, Incoming};
use crate::link_bindings::{self, LinkBindings};
use crate::links::{End, Slot};
use crate::lost_groups::LOST_GROUPS;
use crate::node::{EVENTS, MANAGEMENT};
use crate::outgoing::Outgoing;
use crate::subscription::Subscription;
use crate::wanted::Wanted;
use crate::{Scratch, coordinator, refusal};

impl Connection {
    /// Answers a link that the peer wants, or refuses it.
    pub(crate) fn handle_attach(
        &mut self,
        now: Now,
        id: LinkId,
        peer: &Attach,
        scratch: &mut Scratch,
    ) {
        let result = match peer.role {
            Role::Receiver => self.attach_outgoing(now, id, peer, scratch),
            Role::Sender => self.attach_incoming(now, id, peer, scratch),
        };
        if let Err(error) = result {
            if let Some(more) = self.node.broker.rations().take(Remark::LinkRefused, now) {
                let (link, peer) = (&peer.name, &self.record.peer_address);
                tracing::info!(%peer, link, %error, "refusing a link{more}");
            }
            self.engine.refuse_attach(id, error);
        }
    }

    /// The peer receives, so we send: the source is ours.
    fn attach_outgoing(
        &mut self,
        now: Now,
        id: LinkId,
        peer: &Attach,
        scratch: &mut Scratch,
    ) -> Result<(), AmqpError> {
        let Some(asked) = peer.source.as_ref() else {
            return self.attach_to_end(now, id, peer, scratch);
        };
        let bindings = LinkBindings::of(peer)?;
        let record = Arc::clone(&self.record);
        let wanted = Wanted::of_source(asked, record.user());
        let own = own_address(asked);
        let exchange = match own {
            Some(_) => None,
            None => self.node.exchange_for(&wanted)?,
        };
        let filters = filters_of(asked, exchange.is_some())?;
        // Before anything is made, or gives way to it.
        bindings.verify(&self.node, exchange.as_ref().map(|at| &at.exchange))?;
        let mut in_force = filters.in_force().clone();
        // A subscription takes from a queue of its own, whatever the receiver calls it.
        let browsing = asked.is_browsing() && exchange.is_none();
        let is_sole = exchange.is_some() && !wanted.has("shared");
        let options = ConsumerOptions {
            mode: if browsing { Mode::Browse } else { Mode::Acquire },
            exclusive: wanted.exclusive() || is_sole,
            settled: false,
            owner: self.record.id,
            wants_lost_groups: peer.desired_capabilities.contains(&LOST_GROUPS),
            filters: (!filters.is_empty()).then(|| Arc::new(filters)),
            waker: Waker::new(Arc::clone(&self.waker), id.index() as u32),
        };
        let tap = match (&exchange, own) {
            (Some(at), _) => {
                let name = &peer.name;
                let (tap, binding) =
                    self.tap_exchange(now, (name, &wanted, asked), at, &options, scratch)?;
                in_force.0.extend(binding);
                tap
            }
            (None, Some(address)) => self.tap_own(now, peer, address, &options)?,
            (None, None) => self.tap_queue(now, &wanted, &options, scratch)?,
        };
        // There are queues that turn everybody into a browser.
        let browsing = browsing || tap.queue.settings().browse_only;
        let mut source = match &exchange {
            Some(at) => subscription_in_force(asked, at, &tap.queue),
            None => source_in_force(asked, &tap.queue, browsing),
        };
        source.filter = (!in_force.is_empty()).then_some(in_force);
        if own.is_some() {
            source.address.clone_from(&asked.address);
        }
        let record = LinkRecord {
            browsing,
            exclusive: wanted.exclusive(),
            acknowledged: peer.snd_settle_mode != SenderSettleMode::Settled,
            ..self.link_record(id, peer, Direction::Out, tap.queue.name())
        };
        let is_new = tap.is_new_subscription;
        let end = tap.end(peer);
        let bound = self.bind_link(now, bindings, (end, is_new), scratch)?;
        self.open_tap(now, id, peer, (source, bound, record), scratch);
        Ok(())
    }

    /// Binds what is to be bound as long as the link is there. If that cannot be, its end leaves the
    /// node; a subscription that was made for the link goes.
    fn bind_link(
        &mut self,
        now: Now,
        wanted: LinkBindings<'_>,
        (end, is_new): (End, bool),
        scratch: &mut Scratch,
    ) -> Result<BoundEnd, AmqpError> {
        let frame = self.engine.peer().map_or(0, |peer| peer.max_frame_size);
        let bound = wanted.bind(now, &self.node, &end, &mut scratch.wakeups).and_then(|bound| {
            link_bindings::expect_to_fit(bound, frame as usize, &mut scratch.wakeups)
        });
        match bound {
            Ok(bindings) => Ok(BoundEnd { end, bindings }),
            Err(error) => {
                self.leave_node(now, end, is_new, scratch);
                Err(error)
            }
        }
    }

    /// Answers a receiver, and lets messages flow.
    fn open_tap(
        &mut self,
        now: Now,
        id: LinkId,
        peer: &Attach,
        (source, bound, record): (Source, BoundEnd, LinkRecord),
        scratch: &mut Scratch,
    ) {
        let mut answer = answer_to(peer);
        answer.source = Some(source);
        answer.properties = link_bindings::in_force(&bound.bindings);
        answer.snd_settle_mode = match peer.snd_settle_mode {
            SenderSettleMode::Settled => SenderSettleMode::Settled,
            SenderSettleMode::Unsettled | SenderSettleMode::Mixed => SenderSettleMode::Unsettled,
        };
        let wants_lost_groups =
            matches!(&bound.end, End::Outgoing(outgoing) if outgoing.wants_lost_groups);
        answer.offered_capabilities.extend(wants_lost_groups.then_some(LOST_GROUPS));
        self.engine.answer_attach(id, answer);
        self.insert_link(id, bound, record, scratch);
        if let Some(slot) = self.links.get(id) {
            self.tell_of_link(EventKind::Subscribe, slot);
        }
        // Credit may have come before the answer.
        self.note_state(now, id);
        self.make_ready(id);
    }

    /// A link without source is how JMS clients ask for a durable subscription to end: they attach to
    /// it and close the link.
    fn attach_to_end(
        &mut self,
        now: Now,
        id: LinkId,
        peer: &Attach,
        scratch: &mut Scratch,
    ) -> Result<(), AmqpError> {
        let found = self.subscription_to_end(peer);
        let (ending, queue) = found.ok_or_else(|| refusal::no_subscription(&peer.name))?;
        let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let options = ConsumerOptions {
            owner: self.record.id,
            exclusive: true,
            ..ConsumerOptions::new(waker.clone())
        };
        let consumer = queue.subscribe(now, options).map_err(|error| error.to_amqp())?;
        let mut answer = answer_to(peer);
        let lasting = TerminusExpiryPolicy::Never;
        answer.source = Some(Source { expiry_policy: lasting, ..Source::at(&ending.address) });
        self.engine.answer_attach(id, answer);
        let record = self.link_record(id, peer, Direction::Out, queue.name());
        let end = End::Outgoing(Outgoing {
            queue,
            consumer,
            presettled: false,
            default_outcome: None,
            ready: false,
            full: false,
            departure: None,
            owns_queue: false,
            wants_lost_groups: false,
            subscription: Some(Subscription::to_end(ending.exchange, waker)),
        });
        self.insert_link(id, BoundEnd::from(end), record, scratch);
        Ok(())
    }

    /// The peer sends, so we receive: the target is ours.
    fn attach_incoming(
        &mut self,
        now: Now,
        id: LinkId,
        peer: &Attach,
        scratch: &mut Scratch,
    ) -> Result<(), AmqpError> {
        let asked = match &peer.target {
            Some(TargetArchetype::Target(target)) => target,
            Some(TargetArchetype::Coordinator(_)) => {
                self.attach_coordinator(now, id, peer, scratch);
                return Ok(());
            }
            None => return Err(refusal::invalid("a sender's link needs a target")),
        };
        let bindings = LinkBindings::of(peer)?;
        let mut owns_node = false;
        // Only queues and exchanges have properties.
        let mut target = Target { dynamic_node_properties: None, ..asked.clone() };
        let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let destination = match asked.address.as_deref() {
            Some(MANAGEMENT) if !asked.dynamic => Destination::Management,
            Some(EVENTS) if !asked.dynamic => {
                let text = format!("nothing can be sent to '{EVENTS}': it is where the node tells");
                return Err(refusal::refusal(condition::NOT_ALLOWED, text));
            }
            None | Some("") if !asked.dynamic => Destination::Anonymous(<_>::default()),
            _ => {
                let wanted = Wanted::of_target(asked, self.record.user());
                if let Some(at) = self.node.exchange_for(&wanted)? {
                    let publisher = at.exchange.attach_publisher(at.key, waker);
                    let publisher = publisher.map_err(|error| error.to_amqp())?;
                    owns_node = at.is_own;
                    target = publishing_in_force(asked, &at);
                    Destination::Exchange(Box::new(publisher))
                } else {
                    let attach = |queue: &SharedQueue| queue.attach_producer(now, waker.clone());
                    self.node.arrange(now, &wanted, &mut scratch.wakeups)?;
                    let (queue, is_own, producer) = self.node.link_to(&wanted, attach)?;
                    owns_node = is_own;
                    target = target_in_force(asked, &queue);
                    Destination::Queue { queue, producer }
                }
            }
        };
        let record = LinkRecord {
            acknowledged: peer.snd_settle_mode != SenderSettleMode::Settled,
            ..self.link_record(id, peer, Direction::In, destination.name())
        };
        let end = End::Incoming(Incoming {
            destination,
            partial: None,
            owns_node,
            settle_mode: peer.rcv_settle_mode,
            credit: Box::new(Credit::new(self.node.broker.budget())),
        });
        let bound = self.bind_link(now, bindings, (end, false), scratch)?;
        let mut answer = answer_to(peer);
        answer.target = Some(target.into());
        answer.properties = link_bindings::in_force(&bound.bindings);
        answer.max_message_size = self.node.settings.max_message_bytes;
        self.engine.answer_attach(id, answer);
        self.insert_link(id, bound, record, scratch);
        self.grant_credit(now, id, scratch);
        Ok(())
    }

    /// The peer wants to control transactions.
    fn attach_coordinator(&mut self, now: Now, id: LinkId, peer: &Attach, scratch: &mut Scratch) {
        let may_reject = coordinator::understands_rejection(peer);
        let destination = Destination::Coordinator { may_reject };
        let mut answer = answer_to(peer);
        answer.target = Some(coordinator::coordinator().into());
        answer.snd_settle_mode = SenderSettleMode::Unsettled;
        self.engine.answer_attach(id, answer);
        let record = self.link_record(id, peer, Direction::In, destination.name());
        let settle_mode = peer.rcv_settle_mode;
        let end = End::Incoming(Incoming {
            destination,
            partial: None,
            owns_node: false,
            settle_mode,
            credit: Box::new(Credit::new(self.node.broker.budget())),
        });
        self.insert_link(id, BoundEnd::from(end), record, scratch);
        self.grant_credit(now, id, scratch);
    }

    /// Enters a link here and in the directory.
    fn insert_link(
        &mut self,
        id: LinkId,
        bound: BoundEnd,
        record: LinkRecord,
        scratch: &mut Scratch,
    ) {
        let Some(link) = self.engine.link(id) else { return };
        let number = id.index() as u32;
        let record = if self.node.settings.steal_across_connections {
            let directory = self.node.management.directory();
            let (record, wakeups) = directory.enter_link(&self.record, number, record);
            scratch.wakeups.merge(wakeups);
            record
        } else {
            self.record.enter_link(number, record)
        };
        let BoundEnd { end, bindings } = bound;
        self.links.insert(Slot { id, session: link.session(), end, bindings, record });
    }

    fn link_record(
        &self,
        id: LinkId,
        peer: &Attach,
        direction: Direction,
        address: &str,
    ) -> LinkRecord {
        let session = self.engine.link(id).map_or(0, |link| link.session().index() as u32);
        LinkRecord::new(peer.name.clone(), session, direction, address.to_owned())
    }
}

/// Our end of a link, and what is bound as long as that is there.
struct BoundEnd {
    end: End,
    bindings: Vec<ScopedBinding>,
}

impl From<End> for BoundEnd {
    fn from(end: End) -> BoundEnd {
        BoundEnd { end, bindings: Vec::new() }
    }
}

/// The address of a source, if it is one of the node's own.
fn own_address(asked: &Source) -> Option<&str> {
    let address = asked.address.as_deref().filter(|_| !asked.dynamic);
    address.filter(|address| [MANAGEMENT, EVENTS].contains(address))
}

/// The questions to messages among the filters of a source.
fn filters_of(asked: &Source, is_exchange: bool) -> Result<Filters, AmqpError> {
    let Some(set) = &asked.filter else { return Ok(Filters::default()) };
    let filters = if is_exchange { Filters::new(set) } else { Filters::of_queue(set) };
    filters.map_err(|error| error.to_amqp())
}
