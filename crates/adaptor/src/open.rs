//! Answering the peer's open: what we offer, and who may connect.

use mochila_broker::{EventKind, Remark};
use mochila_management::{Claim, ContainerTaken, PeerIdentity};
use mochila_wire::performative::Open;
use mochila_wire::{AmqpError, Map, Now, Symbol, Value, condition};

use crate::Scratch;
use crate::connection::Connection;

/// A peer asks for it to be the only connection of its container: JMS clients with a client id.
const SOLE_CONNECTION: Symbol = Symbol::from_static("sole-connection-for-container");
/// We take messages for any address on one link (anonymous terminus).
const ANONYMOUS_RELAY: Symbol = Symbol::from_static("ANONYMOUS-RELAY");
/// Several links may share a subscription to an exchange (JMS 2.0).
const SHARED_SUBSCRIPTIONS: Symbol = Symbol::from_static("SHARED-SUBS");
/// Which of two connections of a container has to go.
const SOLE_CONNECTION_POLICY: &str = "sole-connection-enforcement-policy";
const CLOSE_EXISTING: u64 = 1;

impl Connection {
    pub(crate) fn handle_open(&mut self, now: Now, scratch: &mut Scratch) {
        let Some(peer) = self.engine.peer() else { return };
        let container = peer.container_id.clone();
        let sole = peer.desired_capabilities.contains(&SOLE_CONNECTION);
        let claim = match sole {
            true if wants_takeover(peer) => Claim::Takeover,
            true => Claim::Sole,
            false => Claim::Shared,
        };
        let identity = PeerIdentity {
            container: container.clone(),
            user: self.engine.identity().unwrap_or("anonymous").to_owned(),
            mechanism: match self.mechanism() {
                "" if self.engine.identity().is_some() => "ANONYMOUS".to_owned(),
                mechanism => mechanism.to_owned(),
            },
            process: first_of(peer, &["qpid.client_process", "process", "product"]),
            process_id: first_of(peer, &["qpid.client_pid", "pid"]),
        };
        let user = identity.user.clone();
        let directory = self.node.management.directory();
        let opened = directory.open(&self.record, identity, claim, &taken_over(&container));
        let mut offered = vec![ANONYMOUS_RELAY, SHARED_SUBSCRIPTIONS];
        let mut properties = self.engine.config().properties.clone();
        match opened {
            Ok(wakeups) => {
                scratch.wakeups.merge(wakeups);
                if sole {
                    offered.push(SOLE_CONNECTION);
                }
                self.engine.answer_open(offered, properties);
                self.tell_of_connection(EventKind::ClientConnect);
                tracing::debug!(peer = %self.record.peer_address, container, user, "opened");
            }
            Err(ContainerTaken) => {
                properties
                    .insert(Symbol::from_static("amqp:connection-establishment-failed"), true);
                self.engine.answer_open(offered, properties);
                if let Some(more) = self.node.broker.rations().take(Remark::ContainerTaken, now) {
                    let peer = &self.record.peer_address;
                    tracing::info!(%peer, container, "the container is connected already{more}");
                }
                self.engine.close(Some(taken(&container)));
            }
        }
    }
}

/// Why a second connection of a container is refused.
fn taken(container: &str) -> AmqpError {
    let info = Map::new().with("invalid-field", Symbol::from_static("container-id"));
    let text = format!("the container '{container}' is connected already");
    AmqpError::new(condition::INVALID_FIELD, text).with_info(info)
}

/// Why the first connection of a container is closed.
fn taken_over(container: &str) -> AmqpError {
    let info = Map::new().with("sole-connection-enforcement", true);
    let text = format!("another connection of the container '{container}' takes over");
    AmqpError::new(condition::RESOURCE_LOCKED, text).with_info(info)
}

/// Whether the container's old connection is to be closed, instead of the new one being refused
/// (Enforcing Connection Uniqueness, 2.2).
fn wants_takeover(peer: &Open) -> bool {
    let policy = peer.properties.as_ref().and_then(|map| map.get(SOLE_CONNECTION_POLICY));
    policy.and_then(Value::as_u64) == Some(CLOSE_EXISTING)
}

/// The first of these properties that the peer's open has.
fn first_of(peer: &Open, names: &[&str]) -> String {
    names.iter().find_map(|name| property(peer, name)).unwrap_or_default()
}

/// A property of the peer's open, as text.
fn property(peer: &Open, name: &str) -> Option<String> {
    match peer.properties.as_ref()?.get(name)? {
        Value::String(text) => Some(text.chars().take(MAX_TEXT).collect()),
        Value::Symbol(symbol) => Some(symbol.as_str().chars().take(MAX_TEXT).collect()),
        Value::Int(number) => Some(number.to_string()),
        Value::Long(number) => Some(number.to_string()),
        Value::Uint(number) => Some(number.to_string()),
        Value::Ulong(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What a peer says about itself is kept for as long as it is connected.
const MAX_TEXT: usize = 128;
