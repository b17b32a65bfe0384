use crate::descriptor;
use crate::types::{Map, Symbol};

composite! {
    /// Begins a session (part 2, 2.7.2).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Begin("begin", descriptor::BEGIN) {
        /// The peer's channel, in an answer.
        optional remote_channel: u16,
        /// The id of the next transfer that this end sends.
        mandatory next_outgoing_id: u32,
        /// How many transfers this end can take.
        mandatory incoming_window: u32,
        /// How many transfers this end wants to send.
        mandatory outgoing_window: u32,
        /// The highest handle that this end accepts.
        default handle_max: u32 = u32::MAX,
        /// What this end can do.
        multiple offered_capabilities: Symbol,
        /// What this end would like the peer to do.
        multiple desired_capabilities: Symbol,
        /// More about the session.
        optional properties: Map,
    }
}

impl Begin {
    /// A begin with everything else by default.
    pub fn new(next_outgoing_id: u32, incoming_window: u32, outgoing_window: u32) -> Begin {
        Begin {
            remote_channel: None,
            next_outgoing_id,
            incoming_window,
            outgoing_window,
            handle_max: u32::MAX,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode};

    #[test]
    fn a_begin_survives_the_wire() {
        let begin = Begin {
            remote_channel: Some(7),
            handle_max: 255,
            properties: Some(Map::new().with("a", 1u32)),
            ..Begin::new(u32::MAX, 2048, 0)
        };
        assert_eq!(Begin::from_bytes(&begin.to_bytes()), Ok(begin));
    }
}
