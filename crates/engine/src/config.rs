use mochila_wire::{Map, Symbol};

use crate::Mechanism;

/// What one container tells its peers and demands of them. Share one between connections with an
/// `Arc`.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The name of this container (part 2, 2.4.1).
    pub container_id: String,
    /// The host that a client wants to talk to; servers leave it empty.
    pub hostname: Option<String>,
    /// The largest frame we accept, at least 512 bytes.
    pub max_frame_size: u32,
    /// The largest frame we send, even where the peer would take more; it bounds how long other
    /// links wait.
    pub max_outgoing_frame_size: u32,
    /// The largest frame before the peer's open has arrived, that is before we know who it is.
    pub handshake_frame_size: u32,
    /// The highest channel number that the peer may use.
    pub channel_max: u16,
    /// The highest handle that the peer may use in a session.
    pub handle_max: u32,
    /// The most links on one connection, in all its sessions.
    pub max_links: u32,
    /// How long a peer may be silent before the connection is closed; 0 for ever. Half of it is
    /// advertised, as part 2, 2.4.5 recommends.
    pub idle_timeout_ms: u32,
    /// How long protocol headers, authentication and open may take together.
    pub handshake_timeout_ms: u64,
    /// How long to wait for the peer's close after ours.
    pub close_timeout_ms: u64,
    /// How many transfer frames a peer may send before it hears of us again, per session.
    pub incoming_window: u32,
    /// The outgoing window that we announce.
    pub outgoing_window: u32,
    /// The transfer id of our first transfer in a session, and its first delivery id.
    pub initial_outgoing_id: u32,
    /// What we offer in our open.
    pub offered_capabilities: Vec<Symbol>,
    /// What we would like the peer to do.
    pub desired_capabilities: Vec<Symbol>,
    /// The properties of our open.
    pub properties: Map,
    /// The mechanisms that a server offers; a client's choice must be one of them.
    pub sasl_mechanisms: Vec<Mechanism>,
    /// Whether a server insists on SASL; otherwise a plain AMQP header is welcome too.
    pub sasl_required: bool,
}

impl ConnectionConfig {
    /// A configuration with the defaults, under the given container id.
    pub fn new(container_id: impl Into<String>) -> ConnectionConfig {
        ConnectionConfig { container_id: container_id.into(), ..ConnectionConfig::default() }
    }

    /// The idle time-out that our open announces.
    pub(crate) fn advertised_idle_timeout_ms(&self) -> Option<u32> {
        (self.idle_timeout_ms > 0).then_some((self.idle_timeout_ms / 2).max(1))
    }
}

impl Default for ConnectionConfig {
    fn default() -> ConnectionConfig {
        ConnectionConfig {
            container_id: String::from("mochila"),
            hostname: None,
            max_frame_size: 64 * 1024,
            max_outgoing_frame_size: 256 * 1024,
            handshake_frame_size: 8 * 1024,
            channel_max: 1023,
            handle_max: 4095,
            max_links: 16_384,
            idle_timeout_ms: 60_000,
            handshake_timeout_ms: 10_000,
            close_timeout_ms: 2_000,
            incoming_window: 8_192,
            outgoing_window: 2_147_483_647,
            initial_outgoing_id: 0,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Map::default(),
            sasl_mechanisms: vec![Mechanism::Anonymous],
            sasl_required: false,
        }
    }
}
