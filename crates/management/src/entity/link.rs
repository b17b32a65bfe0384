//! Links.

use super::connection::{self, peer};
use crate::attribute::Attribute;
use crate::directory::{ConnectionRecord, Direction};
use crate::scope::{LinkAt, Scope};
use std::sync::Arc;

/// The attributes of a link.
pub(crate) const ATTRIBUTES: &[Attribute<LinkAt>] = &[
    Attribute::new("name", "string", "The name that the peer gave it.", |at, _| {
        at.link.name.as_str().into()
    }),
    Attribute::new("identity", "string", "`link/`, the connection's number, a dot, its own.", {
        |at, _| identity(at).into()
    }),
    Attribute::new("type", "string", "`link`.", |_, _| "link".into()),
    Attribute::new("connection", "string", "The identity of its connection.", |at, _| {
        connection::identity(&at.connection).into()
    }),
    Attribute::new("session", "string", "The identity of its session.", |at, _| {
        format!("session/{}.{}", at.connection.id, at.link.session).into()
    }),
    Attribute::new("direction", "string", "`in` from the peer, `out` to it.", |at, _| {
        match at.link.direction {
            Direction::In => "in".into(),
            Direction::Out => "out".into(),
        }
    }),
    Attribute::new("address", "string", "The address of the node at our end.", |at, _| {
        at.link.address.as_str().into()
    }),
    Attribute::new("connectionAddress", "string", "The peer's address and port.", |at, _| {
        at.connection.peer_address.as_str().into()
    }),
    Attribute::new("remoteProcessName", "string", "The peer's program.", |at, _| {
        peer(&at.connection, |peer| &peer.process)
    }),
    Attribute::new("remotePid", "string", "The process id of the peer's program.", |at, _| {
        peer(&at.connection, |peer| &peer.process_id)
    }),
    Attribute::new("browsing", "boolean", "Whether it leaves messages in place.", |at, _| {
        at.link.browsing.into()
    }),
    Attribute::new("exclusive", "boolean", "Whether its queue is kept for it alone.", |at, _| {
        at.link.exclusive.into()
    }),
    Attribute::new("acknowledged", "boolean", "False if messages are sent settled.", |at, _| {
        at.link.acknowledged.into()
    }),
    Attribute::new("creditMode", "string", "`CREDIT`: messages go as the receiver allows.", {
        |_, _| "CREDIT".into()
    }),
    Attribute::new("credit", "ulong", "Messages that the receiver still allows.", |at, _| {
        at.link.credit.get().into()
    }),
    Attribute::new("withoutCreditMs", "ulong", "How long it has had no credit; 0 with some.", {
        |at, scope| without_credit_ms(at, scope).into()
    }),
    Attribute::new("unsettled", "ulong", "Deliveries that are not settled.", |at, _| {
        at.link.unsettled.get().into()
    }),
    Attribute::new(
        "unfinishedBytes",
        "ulong",
        "Bytes of memory that a message takes of which only a part has come.",
        |at, _| at.link.unfinished_bytes.get().into(),
    ),
    Attribute::new("delivered", "ulong", "Messages that went over it.", |at, _| {
        at.link.messages.get().into()
    }),
];

/// The link with this number.
pub(crate) fn numbered(connection: Arc<ConnectionRecord>, number: u32) -> Option<LinkAt> {
    let link = connection.link(number)?;
    Some(LinkAt { connection, number, link })
}

/// What tells a link from every other entity.
pub(crate) fn identity(at: &LinkAt) -> String {
    format!("link/{}.{}", at.connection.id, at.number)
}

/// How long a link has been without credit; 0 while it has some.
pub(crate) fn without_credit_ms(at: &LinkAt, scope: &Scope<'_>) -> u64 {
    match at.link.without_credit_since_ms.get() {
        0 => 0,
        since => scope.since_ms(since).max(1),
    }
}
