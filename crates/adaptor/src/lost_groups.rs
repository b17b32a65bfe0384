//! Telling a receiver that groups of messages have gone from it to others.

use mochila_broker::LostGroups;
use mochila_engine::LinkId;
use mochila_wire::{Map, Symbol, Value};

use crate::connection::Connection;

impl Connection {
    /// A link that cannot take anything now hears of the groups that it has lost all the same.
    pub(crate) fn hear_of_lost_groups(&mut self, id: LinkId) {
        let outgoing = self.links.outgoing(id).filter(|outgoing| outgoing.wants_lost_groups);
        let Some(outgoing) = outgoing else { return };
        if let Some(lost) = outgoing.queue.take_lost_groups(outgoing.consumer) {
            self.tell_lost_groups(id, &lost);
        }
    }

    /// Tells a receiver which groups have gone from it to others: a flow has their names, or null if
    /// they are too many to be named. It goes before any message that is sent later.
    pub(crate) fn tell_lost_groups(&mut self, id: LinkId, lost: &LostGroups) {
        let Some(outgoing) = self.engine.outgoing(id) else { return };
        let bytes =
            |names: &[String]| names.iter().map(|name| name.len() + NAME_BYTES).sum::<usize>();
        let room = outgoing.frame_room();
        let names = lost.names().filter(|names| bytes(names) + FLOW_BYTES <= room);
        let value = names.map_or(Value::Null, |names| {
            Value::List(names.iter().map(|name| Value::from(name.as_str())).collect())
        });
        let mut properties = Map::new();
        properties.insert(LOST_GROUPS, value);
        self.engine.tell(id, properties);
    }
}

/// The capability of a receiver that wants to hear of groups that it has lost, and the property of
/// the flows that tell it.
pub(crate) const LOST_GROUPS: Symbol = Symbol::from_static("lost-groups");
/// What a name takes in a flow beside its text.
const NAME_BYTES: usize = 5;
/// What surrounds the names.
const FLOW_BYTES: usize = 64;
