//! Attaching: which node is at our end of a link, and what is answered.

use std::sync::Arc;

use mochila_broker::{
    ConsumerOptions, DeleteIf, EventKind, Filters, Mode, Outcome, Remark, SharedQueue, Waker,
};
use mochila_engine::{AttachAnswer, LinkId};
use mochila_management::{Direction, LinkRecord};
use mochila_wire::performative::{Attach, Role, SenderSettleMode};
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, DISTRIBUTION_MOVE, LifetimePolicy, TerminusDurability, TerminusExpiryPolicy,
};
use mochila_wire::{AmqpError, DeliveryState, Map, Now, Source, Symbol, Target, TargetArchetype};

use crate::connection::Connection;
use crate::credit::Credit;
use crate::incoming::{Destination, Incoming};
use crate::links::{End, Slot};
use crate::lost_groups::LOST_GROUPS;
use crate::node::{EVENTS, MANAGEMENT};
use crate::outgoing::Outgoing;
use crate::subscription::Subscription;
use crate::wanted::{ExchangeAt, Wanted};
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
        let record = Arc::clone(&self.record);
        let wanted = Wanted::of_source(asked, record.user());
        let own = asked
            .address
            .as_deref()
            .filter(|address| !asked.dynamic && [MANAGEMENT, EVENTS].contains(address));
        let exchange = match own {
            Some(_) => None,
            None => self.node.exchange_for(&wanted)?,
        };
        // A subscription takes from a queue of its own, whatever the receiver calls it.
        let browsing = asked.is_browsing() && exchange.is_none();
        let filters = match (&asked.filter, &exchange) {
            (Some(set), Some(_)) => Filters::new(set).map_err(|error| error.to_amqp())?,
            (Some(set), None) => Filters::of_queue(set).map_err(|error| error.to_amqp())?,
            (None, _) => Filters::default(),
        };
        let mut in_force = filters.in_force().clone();
        let presettled = peer.snd_settle_mode == SenderSettleMode::Settled;
        let is_shared = wanted.has("shared");
        let is_sole = exchange.is_some() && !is_shared;
        let wants_lost_groups = peer.desired_capabilities.contains(&LOST_GROUPS);
        let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let options = ConsumerOptions {
            mode: if browsing { Mode::Browse } else { Mode::Acquire },
            exclusive: wanted.exclusive() || is_sole,
            settled: false,
            owner: self.record.id,
            wants_lost_groups,
            filters: (!filters.is_empty()).then(|| Arc::new(filters)),
            waker: waker.clone(),
        };
        let subscribe = |queue: &SharedQueue| queue.subscribe(now, options.clone());
        let mut subscription = None;
        let (queue, owns_queue, consumer) = match (&exchange, own) {
            (Some(at), _) => {
                let name = self.subscription_name(&peer.name, is_shared);
                let (queue, binding, is_new) = self.node.subscription_queue(
                    now,
                    (&name, is_shared),
                    (&wanted, asked),
                    at,
                    &mut scratch.wakeups,
                )?;
                let consumer = subscribe(&queue).map_err(|error| {
                    if is_new {
                        let deleted = queue.delete(DeleteIf::default());
                        scratch.wakeups.merge(deleted.unwrap_or_default());
                    }
                    error.to_amqp()
                })?;
                in_force.0.extend(binding.filters);
                subscription = Some(Subscription::new(at, waker));
                (queue, false, consumer)
            }
            (None, Some(address)) => {
                let queue = match address {
                    EVENTS => self.event_queue()?,
                    _ => self.reply_queue(peer)?,
                };
                let consumer = subscribe(&queue).map_err(|error| error.to_amqp())?;
                (queue, true, consumer)
            }
            (None, None) => {
                self.node.arrange(now, &wanted, &mut scratch.wakeups);
                self.node.link_to(&wanted, subscribe)?
            }
        };
        // There are queues that turn everybody into a browser.
        let browsing = browsing || queue.settings().browse_only;
        let mut source = match &exchange {
            Some(at) => subscription_in_force(asked, at),
            None => source_in_force(asked, &queue, browsing),
        };
        source.filter = (!in_force.is_empty()).then_some(in_force);
        if own.is_some() {
            source.address.clone_from(&asked.address);
        }
        let default_outcome = source.default_outcome.as_ref().and_then(Outcome::of);
        let mut answer = answer_to(peer);
        answer.source = Some(source);
        answer.snd_settle_mode = match presettled {
            true => SenderSettleMode::Settled,
            false => SenderSettleMode::Unsettled,
        };
        answer.offered_capabilities.extend(wants_lost_groups.then_some(LOST_GROUPS));
        self.engine.answer_attach(id, answer);
        let record = LinkRecord {
            browsing,
            exclusive: wanted.exclusive(),
            acknowledged: !presettled,
            ..self.link_record(id, peer, Direction::Out, queue.name())
        };
        let end = End::Outgoing(Outgoing {
            queue,
            consumer,
            presettled,
            default_outcome: default_outcome.unwrap_or_default(),
            ready: false,
            full: false,
            departure: None,
            owns_queue,
            wants_lost_groups,
            subscription,
        });
        self.insert_link(id, end, record, scratch);
        if let Some(slot) = self.links.get(id) {
            self.tell_of_link(EventKind::Subscribe, slot);
        }
        // Credit may have come before the answer.
        self.note_state(now, id);
        self.make_ready(id);
        Ok(())
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
        let (exchange, queue) = found.ok_or_else(|| refusal::no_subscription(&peer.name))?;
        let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let options = ConsumerOptions {
            owner: self.record.id,
            exclusive: true,
            ..ConsumerOptions::new(waker.clone())
        };
        let consumer = queue.subscribe(now, options).map_err(|error| error.to_amqp())?;
        let mut answer = answer_to(peer);
        answer.source = Some(Source {
            expiry_policy: TerminusExpiryPolicy::Never,
            ..Source::at(exchange.name())
        });
        self.engine.answer_attach(id, answer);
        let record = self.link_record(id, peer, Direction::Out, queue.name());
        let at = ExchangeAt { exchange, key: None, is_own: false };
        let end = End::Outgoing(Outgoing {
            queue,
            consumer,
            presettled: false,
            default_outcome: Outcome::Release,
            ready: false,
            full: false,
            departure: None,
            owns_queue: false,
            wants_lost_groups: false,
            subscription: Some(Subscription::new(&at, waker)),
        });
        self.insert_link(id, end, record, scratch);
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
        let mut owns_node = false;
        let mut target = asked.clone();
        let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
        let destination = match asked.address.as_deref() {
            Some(MANAGEMENT) if !asked.dynamic => Destination::Management,
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
                    self.node.arrange(now, &wanted, &mut scratch.wakeups);
                    let (queue, is_own, producer) = self.node.link_to(&wanted, attach)?;
                    owns_node = is_own;
                    target = target_in_force(asked, &queue);
                    Destination::Queue { queue, producer }
                }
            }
        };
        let mut answer = answer_to(peer);
        answer.target = Some(target.into());
        answer.max_message_size = self.node.settings.max_message_bytes;
        self.engine.answer_attach(id, answer);
        let record = LinkRecord {
            acknowledged: peer.snd_settle_mode != SenderSettleMode::Settled,
            ..self.link_record(id, peer, Direction::In, destination.name())
        };
        let settle_mode = peer.rcv_settle_mode;
        let end = End::Incoming(Incoming {
            destination,
            partial: None,
            owns_node,
            settle_mode,
            credit: Credit::new(self.node.broker.budget()),
        });
        self.insert_link(id, end, record, scratch);
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
            credit: Credit::new(self.node.broker.budget()),
        });
        self.insert_link(id, end, record, scratch);
        self.grant_credit(now, id, scratch);
    }

    /// Enters a link here and in the directory.
    fn insert_link(&mut self, id: LinkId, end: End, record: LinkRecord, scratch: &mut Scratch) {
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
        self.links.insert(Slot { id, session: link.session(), end, record });
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

/// An answer that grants what was asked for. Nothing is kept of a link that is suspended: of
/// deliveries that the peer has kept we have none (part 2, 2.6.13).
fn answer_to(peer: &Attach) -> AttachAnswer {
    let unsettled = peer.unsettled.as_ref().map(|_| Map::new());
    AttachAnswer { unsettled, ..AttachAnswer::echo(peer) }
}

/// The source as it is in force.
fn source_in_force(asked: &Source, queue: &SharedQueue, browsing: bool) -> Source {
    Source {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        // Nothing is kept of a link that is only detached.
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        distribution_mode: Some(if browsing { DISTRIBUTION_COPY } else { DISTRIBUTION_MOVE }),
        // No filter is in force that was not understood: those that are follow.
        filter: None,
        default_outcome: Some(asked.default_outcome.clone().unwrap_or(DeliveryState::Released)),
        outcomes: OUTCOMES.to_vec(),
        capabilities: capabilities_of(&asked.capabilities, &QUEUE_CAPABILITIES),
        ..asked.clone()
    }
}

/// The source of a subscription as it is in force. Each receiver gets a copy of its own.
fn subscription_in_force(asked: &Source, at: &ExchangeAt<'_>) -> Source {
    Source {
        address: address_in_force(asked.dynamic, asked.address.as_deref(), at),
        // It outlives its links, and does not survive a restart.
        durable: TerminusDurability::None,
        dynamic_node_properties: exchange_properties(asked.dynamic_node_properties.as_ref(), at),
        distribution_mode: Some(DISTRIBUTION_COPY),
        filter: None,
        default_outcome: Some(asked.default_outcome.clone().unwrap_or(DeliveryState::Released)),
        outcomes: OUTCOMES.to_vec(),
        capabilities: capabilities_of(&asked.capabilities, &EXCHANGE_CAPABILITIES),
        ..asked.clone()
    }
}

/// The target of a link to an exchange as it is in force.
fn publishing_in_force(asked: &Target, at: &ExchangeAt<'_>) -> Target {
    Target {
        address: address_in_force(asked.dynamic, asked.address.as_deref(), at),
        durable: TerminusDurability::None,
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: exchange_properties(asked.dynamic_node_properties.as_ref(), at),
        capabilities: capabilities_of(&asked.capabilities, &EXCHANGE_CAPABILITIES),
        ..asked.clone()
    }
}

fn address_in_force(dynamic: bool, asked: Option<&str>, at: &ExchangeAt<'_>) -> Option<String> {
    match dynamic {
        true => Some(at.exchange.name().to_owned()),
        false => asked.map(str::to_owned),
    }
}

/// The properties of an exchange, where any were asked for.
fn exchange_properties(asked: Option<&Map>, at: &ExchangeAt<'_>) -> Option<Map> {
    asked?;
    let mut properties = Map::new();
    for (key, value) in at.exchange.settings().to_arguments() {
        let Some(key) = key.as_str().and_then(|key| Symbol::new(key).ok()) else { continue };
        properties.insert(key, value);
    }
    if at.is_own {
        let policy = LifetimePolicy::DeleteOnClose.to_value();
        properties.insert(Symbol::from_static(LifetimePolicy::KEY), policy);
    }
    Some(properties)
}

fn target_in_force(asked: &Target, queue: &SharedQueue) -> Target {
    Target {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        // Nothing is kept of a link that is only detached.
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        capabilities: capabilities_of(&asked.capabilities, &QUEUE_CAPABILITIES),
        ..asked.clone()
    }
}

/// The properties in force, where any were asked for; their keys are symbols (part 3, 3.5.9).
fn node_properties(asked: Option<&Map>, queue: &SharedQueue) -> Option<Map> {
    asked?;
    let settings = queue.settings();
    let mut properties = Map::new();
    for (key, value) in settings.to_arguments() {
        let Some(key) = key.as_str().and_then(|key| Symbol::new(key).ok()) else { continue };
        properties.insert(key, value);
    }
    if let Some(lifetime) = settings.lifetime {
        properties.insert(Symbol::from_static(LifetimePolicy::KEY), lifetime.to_value());
    }
    Some(properties)
}

/// What of the capabilities asked for a node has.
fn capabilities_of(asked: &[Symbol], has: &[&str]) -> Vec<Symbol> {
    asked.iter().filter(|symbol| has.contains(&symbol.as_str())).cloned().collect()
}

const QUEUE_CAPABILITIES: [&str; 3] = ["queue", "temporary-queue", "create-on-demand"];
const EXCHANGE_CAPABILITIES: [&str; 5] =
    ["topic", "temporary-topic", "create-on-demand", "shared", "global"];

/// What a receiver may say of a delivery (part 3, 3.4).
const OUTCOMES: [Symbol; 4] = [
    Symbol::from_static("amqp:accepted:list"),
    Symbol::from_static("amqp:rejected:list"),
    Symbol::from_static("amqp:released:list"),
    Symbol::from_static("amqp:modified:list"),
];
