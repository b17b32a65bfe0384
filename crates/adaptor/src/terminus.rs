//! Attaching: which node is at our end of a link, and what is answered.

use std::sync::Arc;

use mochila_broker::{
    ConsumerOptions, EventKind, Filters, Mode, Outcome, QueueError, QueueSettings, SharedQueue,
    Waker,
};
use mochila_engine::{AttachAnswer, LinkId};
use mochila_management::{Direction, LinkRecord};
use mochila_wire::performative::{Attach, Role, SenderSettleMode};
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, DISTRIBUTION_MOVE, LifetimePolicy, TerminusDurability, TerminusExpiryPolicy,
};
use mochila_wire::{
    AmqpError, DeliveryState, Map, Now, Source, Symbol, Target, TargetArchetype, Value,
};

use crate::connection::Connection;
use crate::incoming::{Destination, Incoming};
use crate::links::{End, Slot};
use crate::node::{EVENTS, MANAGEMENT};
use crate::outgoing::Outgoing;
use crate::{Node, Scratch, coordinator, refusal};

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
            tracing::info!(peer = %self.record.peer_address, link = peer.name, %error, "refusing a link");
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
        // A null source is how JMS clients ask for a durable subscription to end.
        let none = || refusal::no_subscription(&peer.name);
        let asked = peer.source.as_ref().ok_or_else(none)?;
        let wanted = Wanted::of_source(asked);
        let own = asked
            .address
            .as_deref()
            .filter(|address| !asked.dynamic && [MANAGEMENT, EVENTS].contains(address));
        let browsing = asked.is_browsing();
        let filters = match &asked.filter {
            Some(set) => Filters::new(set).map_err(|error| error.to_amqp())?,
            None => Filters::default(),
        };
        let in_force = filters.in_force().clone();
        let presettled = peer.snd_settle_mode == SenderSettleMode::Settled;
        let options = ConsumerOptions {
            mode: if browsing { Mode::Browse } else { Mode::Acquire },
            exclusive: wanted.exclusive(),
            settled: false,
            owner: self.record.id,
            filters: (!filters.is_empty()).then(|| Arc::new(filters)),
            waker: Waker::new(Arc::clone(&self.waker), id.index() as u32),
        };
        let subscribe = |queue: &SharedQueue| queue.subscribe(now, options.clone());
        let (queue, owns_queue, consumer) = match own {
            Some(address) => {
                let queue = match address {
                    EVENTS => self.event_queue()?,
                    _ => self.reply_queue(peer)?,
                };
                let consumer = subscribe(&queue).map_err(|error| error.to_amqp())?;
                (queue, true, consumer)
            }
            None => self.node.link_to(&wanted, subscribe)?,
        };
        let mut source = source_in_force(asked, &queue, browsing);
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
        let mut owns_queue = false;
        let mut target = asked.clone();
        let destination = match asked.address.as_deref() {
            Some(MANAGEMENT) if !asked.dynamic => Destination::Management,
            None | Some("") if !asked.dynamic => Destination::Anonymous { last: None },
            _ => {
                let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
                let attach = |queue: &SharedQueue| queue.attach_producer(now, waker.clone());
                let wanted = Wanted::of_target(asked);
                let (queue, is_own, producer) = self.node.link_to(&wanted, attach)?;
                owns_queue = is_own;
                target = target_in_force(asked, &queue);
                Destination::Queue { queue, producer }
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
            owns_queue,
            settle_mode,
            message_bytes: 0,
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
            owns_queue: false,
            settle_mode,
            message_bytes: 0,
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

/// What a source or a target asks for, where the two are alike.
pub(crate) struct Wanted<'a> {
    address: Option<&'a str>,
    dynamic: bool,
    properties: Option<&'a Map>,
    capabilities: &'a [Symbol],
}

impl<'a> Wanted<'a> {
    fn of_source(source: &'a Source) -> Wanted<'a> {
        Wanted {
            address: source.address.as_deref(),
            dynamic: source.dynamic,
            properties: source.dynamic_node_properties.as_ref(),
            capabilities: &source.capabilities,
        }
    }

    fn of_target(target: &'a Target) -> Wanted<'a> {
        Wanted {
            address: target.address.as_deref(),
            dynamic: target.dynamic,
            properties: target.dynamic_node_properties.as_ref(),
            capabilities: &target.capabilities,
        }
    }

    fn exclusive(&self) -> bool {
        self.properties.and_then(|map| map.get("exclusive")) == Some(&Value::Bool(true))
    }

    /// The settings that its node properties ask for; those that say nothing about a queue's
    /// settings (part 3, 3.5.9) are left out.
    fn settings(&self) -> Result<QueueSettings, AmqpError> {
        let mut arguments = Map::new();
        for (key, value) in self.properties.into_iter().flat_map(Map::iter) {
            match key.as_str() {
                Some("supported-dist-modes") => {}
                _ => drop(arguments.insert(key.clone(), value.clone())),
            }
        }
        QueueSettings::from_arguments(&arguments)
            .map_err(|error| refusal::invalid(error.to_string()))
    }

    fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|symbol| symbol.as_str() == capability)
    }
}

impl Node {
    /// Links to the queue that is asked for: the queue, whether it was made for this link alone, and
    /// what linking to it gave.
    fn link_to<T>(
        &self,
        wanted: &Wanted<'_>,
        link: impl Fn(&SharedQueue) -> Result<T, QueueError>,
    ) -> Result<(Arc<SharedQueue>, bool, T), AmqpError> {
        for _ in 0..MOST_TRIES {
            let (queue, is_own) = self.queue_for(wanted)?;
            match link(&queue) {
                Ok(linked) => return Ok((queue, is_own, linked)),
                // It went just then, because nobody used it: somebody does now.
                Err(QueueError::Deleted { .. }) => {}
                Err(error) => return Err(error.to_amqp()),
            }
        }
        let name = wanted.address.unwrap_or_default().to_owned();
        Err(QueueError::Deleted { name }.to_amqp())
    }

    /// The queue that a link asks for, and whether it was made for this link alone.
    fn queue_for(&self, wanted: &Wanted<'_>) -> Result<(Arc<SharedQueue>, bool), AmqpError> {
        if wanted.has("topic") || wanted.has("temporary-topic") {
            return Err(refusal::not_implemented("this broker has no topics yet"));
        }
        if wanted.dynamic {
            let mut settings = wanted.settings()?;
            settings.lifetime.get_or_insert(LifetimePolicy::DeleteOnClose);
            let queue = self.broker.create_dynamic(settings).map_err(|error| error.to_amqp())?;
            return Ok((queue, true));
        }
        let address = wanted
            .address
            .filter(|address| !address.is_empty())
            .ok_or_else(|| refusal::invalid("a terminus needs an address, or has to be dynamic"))?;
        let queue = match wanted.has("create-on-demand") {
            true => self.create_on_demand(address, wanted),
            false => self.open(address),
        };
        Ok((queue?, false))
    }

    /// The queue at an address, made if a pattern says so.
    pub(crate) fn open(&self, address: &str) -> Result<Arc<SharedQueue>, AmqpError> {
        let opened = self.broker.open(address);
        opened.map_err(|error| match error {
            // What is not there sounds the same as what this peer may not know about.
            QueueError::InvalidName { .. } if address.starts_with('$') => {
                QueueError::NotFound { name: address.to_owned() }.to_amqp()
            }
            error => error.to_amqp(),
        })
    }

    fn create_on_demand(
        &self,
        address: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<SharedQueue>, AmqpError> {
        if let Some(queue) = self.broker.queue(address) {
            return Ok(queue);
        }
        match self.broker.create(address, wanted.settings()?) {
            Ok(queue) => Ok(queue),
            // Somebody else was faster.
            Err(QueueError::Exists { .. }) => {
                self.broker.open(address).map_err(|error| error.to_amqp())
            }
            Err(error) => Err(error.to_amqp()),
        }
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
        capabilities: capabilities_in_force(&asked.capabilities),
        ..asked.clone()
    }
}

fn target_in_force(asked: &Target, queue: &SharedQueue) -> Target {
    Target {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        // Nothing is kept of a link that is only detached.
        expiry_policy: TerminusExpiryPolicy::LinkDetach,
        timeout: 0,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        capabilities: capabilities_in_force(&asked.capabilities),
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

/// What of the capabilities asked for a queue has.
fn capabilities_in_force(asked: &[Symbol]) -> Vec<Symbol> {
    let has = |symbol: &&Symbol| QUEUE_CAPABILITIES.contains(&symbol.as_str());
    asked.iter().filter(has).cloned().collect()
}

/// A queue that is deleted so often while somebody attaches to it is not worth another try.
const MOST_TRIES: usize = 8;

const QUEUE_CAPABILITIES: [&str; 3] = ["queue", "temporary-queue", "create-on-demand"];

/// What a receiver may say of a delivery (part 3, 3.4).
const OUTCOMES: [Symbol; 4] = [
    Symbol::from_static("amqp:accepted:list"),
    Symbol::from_static("amqp:rejected:list"),
    Symbol::from_static("amqp:released:list"),
    Symbol::from_static("amqp:modified:list"),
];
