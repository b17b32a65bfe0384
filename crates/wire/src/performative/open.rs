use crate::descriptor;
use crate::types::{Map, Symbol};

composite! {
    /// Opens a connection (part 2, 2.7.1).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Open("open", descriptor::OPEN) {
        /// The container that this is.
        mandatory container_id: String,
        /// The host that the peer is meant to be.
        optional hostname: String,
        /// The largest frame that this end accepts.
        default max_frame_size: u32 = u32::MAX,
        /// The highest channel that this end accepts.
        default channel_max: u16 = u16::MAX,
        /// How long this end accepts silence, in milliseconds.
        optional idle_time_out: u32,
        /// The languages that this end writes.
        multiple outgoing_locales: Symbol,
        /// The languages that this end would like to read.
        multiple incoming_locales: Symbol,
        /// What this end can do.
        multiple offered_capabilities: Symbol,
        /// What this end would like the peer to do.
        multiple desired_capabilities: Symbol,
        /// More about the connection.
        optional properties: Map,
    }
}

impl Open {
    /// An open with everything by default.
    pub fn new(container_id: impl Into<String>) -> Open {
        Open {
            container_id: container_id.into(),
            hostname: None,
            max_frame_size: u32::MAX,
            channel_max: u16::MAX,
            idle_time_out: None,
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, DecodeError, Encode};

    #[test]
    fn an_open_without_container_id_is_refused() {
        let missing = DecodeError::MissingField { field: "open.container_id" };
        assert_eq!(Open::from_bytes(&[0x00, 0x53, 0x10, 0x45]), Err(missing));
    }

    #[test]
    fn fields_left_out_or_null_are_at_their_defaults() {
        let bytes = [0x00, 0x53, 0x10, 0xc0, 6, 4, 0xa1, 1, b'c', 0x40, 0x40];
        let bytes = [&bytes[..4], &[7], &bytes[5..], &[0x40]].concat();
        assert_eq!(Open::from_bytes(&bytes), Ok(Open::new("c")));
        assert_eq!(Open::new("c").to_bytes(), [0x00, 0x53, 0x10, 0xc0, 4, 1, 0xa1, 1, b'c']);
    }

    #[test]
    fn every_field_of_an_open_survives_the_wire() {
        let open = Open {
            hostname: Some("host".into()),
            max_frame_size: 65_536,
            channel_max: 255,
            idle_time_out: Some(30_000),
            outgoing_locales: vec!["en".into()],
            incoming_locales: vec!["en".into(), "de".into()],
            offered_capabilities: vec!["ANONYMOUS-RELAY".into()],
            desired_capabilities: vec!["sole-connection-for-container".into()],
            properties: Some(Map::new().with("product", "mochila")),
            ..Open::new("container")
        };
        assert_eq!(Open::from_bytes(&open.to_bytes()), Ok(open));
    }
}
