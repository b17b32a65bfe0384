//! Answering the peer's open: what we offer, and who may connect.

use mochila_management::PeerIdentity;
use mochila_wire::performative::Open;
use mochila_wire::{AmqpError, Map, Symbol, Value, condition};

use crate::connection::Connection;

/// A peer asks for it to be the only connection of its container: JMS clients with a client id.
const SOLE_CONNECTION: Symbol = Symbol::from_static("sole-connection-for-container");
/// We take messages for any address on one link (anonymous terminus).
const ANONYMOUS_RELAY: Symbol = Symbol::from_static("ANONYMOUS-RELAY");

impl Connection {
    pub(crate) fn handle_open(&mut self) {
        let Some(peer) = self.engine.peer() else { return };
        let container = peer.container_id.clone();
        let sole = peer.desired_capabilities.contains(&SOLE_CONNECTION);
        let identity = PeerIdentity {
            container: container.clone(),
            user: self.engine.identity().unwrap_or("anonymous").to_owned(),
            mechanism: match self.mechanism() {
                "" if self.engine.identity().is_some() => "ANONYMOUS".to_owned(),
                mechanism => mechanism.to_owned(),
            },
            process: property(peer, "process")
                .or_else(|| property(peer, "product"))
                .unwrap_or_default(),
            process_id: property(peer, "pid").unwrap_or_default(),
        };
        let directory = self.node.management.directory();
        let taken = sole && directory.is_container_taken(&container, self.record.id);
        let mut offered = vec![ANONYMOUS_RELAY];
        let mut properties = self.engine.config().properties.clone();
        if sole && !taken {
            offered.push(SOLE_CONNECTION);
        }
        if taken {
            properties.insert(Symbol::from_static("amqp:connection-establishment-failed"), true);
        }
        self.engine.answer_open(offered, properties);
        if taken {
            tracing::info!(peer = %self.record.peer_address, container, "the container is connected already");
            let info = Map::new().with("invalid-field", Symbol::from_static("container-id"));
            let text = format!("the container '{container}' is connected already");
            let error = AmqpError::new(condition::INVALID_FIELD, text).with_info(info);
            self.engine.close(Some(error));
        } else {
            tracing::debug!(peer = %self.record.peer_address, container, user = identity.user, "opened");
            // It is set once: a second open is the engine's to refuse.
            let _ = self.record.opened.set(identity);
        }
    }
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
