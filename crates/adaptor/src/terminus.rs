//! Attaching: which node is at our end of a link, and what is answered.

use std::sync::Arc;

use mochila_broker::{
    ConsumerOptions, Mode, Outcome, QueueError, QueueSettings, SharedQueue, Waker,
};
use mochila_engine::{AttachAnswer, LinkId};
use mochila_management::{Direction, LinkRecord};
use mochila_wire::performative::{Attach, Role, SenderSettleMode};
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, DISTRIBUTION_MOVE, LifetimePolicy, TerminusDurability,
};
use mochila_wire::{
    AmqpError, DeliveryState, Map, Now, Source, Symbol, Target, TargetArchetype, Value,
};

use crate::connection::Connection;
use crate::incoming::{Destination, Incoming};
use crate::links::{End, Slot};
use crate::node::MANAGEMENT;
use crate::outgoing::Outgoing;
use crate::{Node, Scratch, refusal};

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
            Role::Receiver => self.attach_outgoing(now, id, peer),
            Role::Sender => self.attach_incoming(now, id, peer, scratch),
        };
        if let Err(error) = result {
            tracing::info!(peer = %self.record.peer_address, link = peer.name, %error, "refusing a link");
            self.engine.refuse_attach(id, error);
        }
    }

    /// The peer receives, so we send: the source is ours.
    fn attach_outgoing(&mut self, now: Now, id: LinkId, peer: &Attach) -> Result<(), AmqpError> {
        // A null source is how JMS clients ask for a durable subscription to end.
        let none = || refusal::not_found("of that subscription");
        let asked = peer.source.as_ref().ok_or_else(none)?;
        let wanted = Wanted::of_source(asked);
        let is_management = asked.address.as_deref() == Some(MANAGEMENT) && !asked.dynamic;
        let (queue, owns_queue) = match is_management {
            true => (self.reply_queue(peer)?, true),
            false => self.node.queue_for(&wanted)?,
        };
        let browsing = asked.is_browsing();
        let presettled = peer.snd_settle_mode == SenderSettleMode::Settled;
        let options = ConsumerOptions {
            mode: if browsing { Mode::Browse } else { Mode::Acquire },
            exclusive: wanted.exclusive(),
            settled: false,
            owner: self.record.id,
            waker: Waker::new(Arc::clone(&self.waker), id.index() as u32),
        };
        let consumer = queue.subscribe(now, options).map_err(|error| error.to_amqp())?;
        let mut source = source_in_force(asked, &queue, browsing);
        if is_management {
            source.address.clone_from(&asked.address);
        }
        let default_outcome = source.default_outcome.as_ref().and_then(Outcome::of);
        let mut answer = AttachAnswer::echo(peer);
        answer.source = Some(source);
        answer.snd_settle_mode = match presettled {
            true => SenderSettleMode::Settled,
            false => SenderSettleMode::Unsettled,
        };
        self.engine.answer_attach(id, answer);
        let record = self.enter_link(id, peer, Direction::Out, queue.name(), |record| {
            record.browsing = browsing;
            record.exclusive = wanted.exclusive();
            record.acknowledged = !presettled;
        });
        let end = End::Outgoing(Outgoing {
            queue,
            consumer,
            presettled,
            default_outcome: default_outcome.unwrap_or_default(),
            ready: false,
            departure: None,
            owns_queue,
        });
        self.insert_link(id, end, record);
        // Credit may have come before the answer.
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
                return Err(refusal::not_implemented("this broker has no transactions yet"));
            }
            None => return Err(refusal::invalid("a sender's link needs a target")),
        };
        let mut owns_queue = false;
        let mut target = asked.clone();
        let destination = match asked.address.as_deref() {
            Some(MANAGEMENT) if !asked.dynamic => Destination::Management,
            None | Some("") if !asked.dynamic => Destination::Anonymous { last: None },
            _ => {
                let (queue, is_own) = self.node.queue_for(&Wanted::of_target(asked))?;
                owns_queue = is_own;
                target = target_in_force(asked, &queue);
                let waker = Waker::new(Arc::clone(&self.waker), id.index() as u32);
                let producer =
                    queue.attach_producer(now, waker).map_err(|error| error.to_amqp())?;
                Destination::Queue { queue, producer }
            }
        };
        let mut answer = AttachAnswer::echo(peer);
        answer.target = Some(target.into());
        answer.max_message_size = self.node.settings.max_message_bytes;
        self.engine.answer_attach(id, answer);
        let record = self.enter_link(id, peer, Direction::In, destination.name(), |record| {
            record.acknowledged = peer.snd_settle_mode != SenderSettleMode::Settled;
        });
        self.insert_link(
            id,
            End::Incoming(Incoming { destination, partial: None, owns_queue }),
            record,
        );
        self.grant_credit(now, id, scratch);
        Ok(())
    }

    fn insert_link(&mut self, id: LinkId, end: End, record: Arc<LinkRecord>) {
        if let Some(link) = self.engine.link(id) {
            self.links.insert(Slot { id, session: link.session(), end, record });
        }
    }

    fn enter_link(
        &self,
        id: LinkId,
        peer: &Attach,
        direction: Direction,
        address: &str,
        adjust: impl FnOnce(&mut LinkRecord),
    ) -> Arc<LinkRecord> {
        let session = self.engine.link(id).map_or(0, |link| link.session().index() as u32);
        let mut record = LinkRecord::new(peer.name.clone(), session, direction, address.to_owned());
        adjust(&mut record);
        self.record.enter_link(id.index() as u32, record)
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
    /// The queue that a link asks for, and whether it was made for this link alone.
    pub(crate) fn queue_for(
        &self,
        wanted: &Wanted<'_>,
    ) -> Result<(Arc<SharedQueue>, bool), AmqpError> {
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
            false => self.broker.open(address).map_err(|error| error.to_amqp()),
        };
        Ok((queue?, false))
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

/// The source as it is in force.
fn source_in_force(asked: &Source, queue: &SharedQueue, browsing: bool) -> Source {
    Source {
        address: Some(queue.name().to_owned()),
        durable: TerminusDurability::None,
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        distribution_mode: Some(if browsing { DISTRIBUTION_COPY } else { DISTRIBUTION_MOVE }),
        // No filter is in force that was not understood.
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
        dynamic_node_properties: node_properties(asked.dynamic_node_properties.as_ref(), queue),
        capabilities: capabilities_in_force(&asked.capabilities),
        ..asked.clone()
    }
}

/// The arguments in force, where any were asked for.
fn node_properties(asked: Option<&Map>, queue: &SharedQueue) -> Option<Map> {
    let mut properties = queue.settings().to_arguments();
    if let Some(policy) = asked?.get(LifetimePolicy::KEY) {
        properties.insert(Symbol::from_static(LifetimePolicy::KEY), policy.clone());
    }
    Some(properties)
}

/// What of the capabilities asked for a queue has.
fn capabilities_in_force(asked: &[Symbol]) -> Vec<Symbol> {
    let has = |symbol: &&Symbol| QUEUE_CAPABILITIES.contains(&symbol.as_str());
    asked.iter().filter(has).cloned().collect()
}

const QUEUE_CAPABILITIES: [&str; 3] = ["queue", "temporary-queue", "create-on-demand"];

/// What a receiver may say of a delivery (part 3, 3.4).
const OUTCOMES: [Symbol; 4] = [
    Symbol::from_static("amqp:accepted:list"),
    Symbol::from_static("amqp:rejected:list"),
    Symbol::from_static("amqp:released:list"),
    Symbol::from_static("amqp:modified:list"),
];
