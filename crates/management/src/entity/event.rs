//! What has happened lately.

use crate::attribute::{Attribute, timestamp};
use mochila_broker::ToldEvent;
use std::sync::Arc;

/// The attributes of an event.
pub(crate) const ATTRIBUTES: &[Attribute<Arc<ToldEvent>>] = &[
    Attribute::new("name", "string", "Its number in this node's life, from 1 on.", |e, _| {
        e.number.to_string().into()
    }),
    Attribute::new("identity", "string", "`event/` and its number.", |e, _| {
        format!("event/{}", e.number).into()
    }),
    Attribute::new("type", "string", "`event`.", |_, _| "event".into()),
    Attribute::new("time", "timestamp", "When it happened.", |e, _| timestamp(e.time_ms)),
    Attribute::new("severity", "string", "`inform`, or `warn` if somebody should look.", |e, _| {
        e.event.kind().severity().name().into()
    }),
    Attribute::new(
        "event",
        "string",
        "What happened: `clientConnect`, `clientDisconnect`, `queueDeclare`, `queueDelete`, \
         `exchangeDeclare`, `exchangeDelete`, `bind`, `unbind`, `subscribe`, `unsubscribe`, `queueThresholdCrossedUpward`, `queueSelfDestruct`, `notDurable`, `memoryShort`, `memoryFree`, \
         `queueThresholdCrossedDownward`, and the like.",
        |e, _| e.event.kind().name().into(),
    ),
    Attribute::new("details", "map", "Who and what had to do with it.", |e, _| {
        e.event.details().into()
    }),
];
