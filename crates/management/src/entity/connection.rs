//! Connections.

use crate::attribute::{Attribute, count, timestamp};
use crate::directory::{ConnectionRecord, PeerIdentity};
use mochila_wire::Value;
use std::sync::Arc;

/// The attributes of a connection.
pub(crate) const ATTRIBUTES: &[Attribute<Arc<ConnectionRecord>>] = &[
    Attribute::new("name", "string", "Its number in this node's life.", |c, _| {
        c.id.to_string().into()
    }),
    Attribute::new("identity", "string", "`connection/` and its number.", |c, _| {
        identity(c).into()
    }),
    Attribute::new("type", "string", "`connection`.", |_, _| "connection".into()),
    Attribute::new("address", "string", "The peer's address and port.", |c, _| {
        c.peer_address.as_str().into()
    }),
    Attribute::new("container", "string", "The peer's container id.", |c, _| {
        peer(c, |peer| &peer.container)
    }),
    Attribute::new("authIdentity", "string", "The authenticated user.", |c, _| {
        peer(c, |peer| &peer.user)
    }),
    Attribute::new("saslMechanism", "string", "How it was authenticated.", |c, _| {
        peer(c, |peer| &peer.mechanism)
    }),
    Attribute::new("remoteProcessName", "string", "The peer's program.", |c, _| {
        peer(c, |peer| &peer.process)
    }),
    Attribute::new("remotePid", "string", "The process id of the peer's program.", |c, _| {
        peer(c, |peer| &peer.process_id)
    }),
    Attribute::new("opened", "boolean", "Whether the peer has opened it.", |c, _| {
        c.opened.get().is_some().into()
    }),
    Attribute::new("closing", "boolean", "Whether its end has been asked for.", |c, _| {
        c.is_close_requested().into()
    }),
    Attribute::new("createdAt", "timestamp", "When it was accepted.", |c, _| {
        timestamp(c.created_ms)
    }),
    Attribute::new("connectedMs", "ulong", "How long it has existed.", |c, scope| {
        u64::try_from(scope.now.wall_ms.saturating_sub(c.created_ms)).unwrap_or(0).into()
    }),
    Attribute::new("idleMs", "ulong", "How long nothing has come from the peer.", |c, scope| {
        scope.since_ms(c.last_input_ms.get()).into()
    }),
    Attribute::new("msgsFromClient", "ulong", "Messages from the peer.", |c, _| {
        c.messages_in.get().into()
    }),
    Attribute::new("msgsToClient", "ulong", "Messages to the peer.", |c, _| {
        c.messages_out.get().into()
    }),
    Attribute::new("bytesFromClient", "ulong", "Bytes from the peer.", |c, _| {
        c.bytes_in.get().into()
    }),
    Attribute::new("bytesToClient", "ulong", "Bytes to the peer.", |c, _| c.bytes_out.get().into()),
    Attribute::new("sessionCount", "ulong", "Its sessions.", |c, _| count(c.session_count())),
    Attribute::new("linkCount", "ulong", "Its links.", |c, _| count(c.link_count())),
    Attribute::new(
        "unfinishedBytes",
        "ulong",
        "Bytes of memory that messages take of which only a part has come.",
        |c, _| c.unfinished_bytes().into(),
    ),
];

/// What tells a connection from every other entity.
pub(crate) fn identity(connection: &ConnectionRecord) -> String {
    format!("connection/{}", connection.id)
}

/// What the peer said of itself; null before it said anything.
pub(crate) fn peer(connection: &ConnectionRecord, field: fn(&PeerIdentity) -> &String) -> Value {
    connection.opened.get().map(|peer| field(peer).as_str()).into()
}
