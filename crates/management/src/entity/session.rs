//! Sessions.

use super::connection;
use crate::attribute::{Attribute, count, timestamp};
use crate::directory::ConnectionRecord;
use std::sync::Arc;

/// A session, where it is, and when it began.
#[derive(Clone, Debug)]
pub(crate) struct SessionAt {
    pub(crate) connection: Arc<ConnectionRecord>,
    pub(crate) number: u32,
    pub(crate) began_ms: i64,
}

impl SessionAt {
    /// The numbers of its connection and its own.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.connection.id, self.number)
    }
}

/// The attributes of a session.
pub(crate) const ATTRIBUTES: &[Attribute<SessionAt>] = &[
    Attribute::new("name", "string", "The connection's number, a dot, its own number.", |s, _| {
        s.name().into()
    }),
    Attribute::new("identity", "string", "`session/` and its name.", |s, _| {
        format!("session/{}", s.name()).into()
    }),
    Attribute::new("type", "string", "`session`.", |_, _| "session".into()),
    Attribute::new("connection", "string", "The identity of its connection.", |s, _| {
        connection::identity(&s.connection).into()
    }),
    Attribute::new("channel", "uint", "Its number in its connection.", |s, _| s.number.into()),
    Attribute::new("beganAt", "timestamp", "When it began.", |s, _| timestamp(s.began_ms)),
    Attribute::new("linkCount", "ulong", "Its links.", |s, _| {
        let links = s.connection.links();
        count(links.iter().filter(|(_, link)| link.session == s.number).count())
    }),
    Attribute::new(
        "unsettled",
        "ulong",
        "Deliveries on its links that are not settled.",
        |s, _| {
            let links = s.connection.links();
            let own = links.iter().filter(|(_, link)| link.session == s.number);
            own.map(|(_, link)| link.unsettled.get()).sum::<u64>().into()
        },
    ),
];

/// The sessions of a connection.
pub(crate) fn of(connection: &Arc<ConnectionRecord>) -> impl Iterator<Item = SessionAt> + use<> {
    let sessions = connection.sessions();
    let connection = Arc::clone(connection);
    sessions.into_iter().map(move |(number, began_ms)| SessionAt {
        connection: Arc::clone(&connection),
        number,
        began_ms,
    })
}

/// The session with this number.
pub(crate) fn numbered(connection: Arc<ConnectionRecord>, number: u32) -> Option<SessionAt> {
    let began_ms = connection.session_began_ms(number)?;
    Some(SessionAt { connection, number, began_ms })
}
