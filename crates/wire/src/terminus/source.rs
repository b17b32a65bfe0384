use super::{DISTRIBUTION_COPY, TerminusDurability, TerminusExpiryPolicy};
use crate::DeliveryState;
use crate::descriptor;
use crate::types::{Map, Symbol};

composite! {
    /// Where the messages of a link come from (part 3, 3.5.3).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Source("source", descriptor::SOURCE) {
        /// The node.
        optional address: String,
        /// What survives a restart.
        default durable: TerminusDurability = TerminusDurability::None,
        /// When the terminus begins to expire.
        default expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy::SessionEnd,
        /// How many seconds later it has expired.
        default timeout: u32 = 0,
        /// Whether the peer is to make the node, and to name it.
        default dynamic: bool = false,
        /// What the node made is to be like.
        optional dynamic_node_properties: Map,
        /// Whether messages are moved or copied.
        optional distribution_mode: Symbol,
        /// Which messages are wanted.
        optional filter: Map,
        /// The outcome of deliveries that are settled without one.
        optional default_outcome: DeliveryState,
        /// The outcomes that the receiver may choose from.
        multiple outcomes: Symbol,
        /// What the terminus can do.
        multiple capabilities: Symbol,
    }
}

impl Source {
    /// The source at an address, everything else by default.
    pub fn at(address: impl Into<String>) -> Source {
        Source { address: Some(address.into()), ..Source::default() }
    }

    /// Whether messages stay where they are when they are delivered.
    pub fn is_browsing(&self) -> bool {
        self.distribution_mode.as_ref() == Some(&DISTRIBUTION_COPY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode};

    #[test]
    fn a_plain_source_is_little_more_than_its_address() {
        let bytes = Source::at("q").to_bytes();
        assert_eq!(bytes, [0x00, 0x53, 0x28, 0xc0, 4, 1, 0xa1, 1, b'q']);
        assert_eq!(Source::from_bytes(&bytes), Ok(Source::at("q")));
    }

    #[test]
    fn every_field_of_a_source_survives_the_wire() {
        let source = Source {
            address: Some("q".into()),
            durable: TerminusDurability::UnsettledState,
            expiry_policy: TerminusExpiryPolicy::Never,
            timeout: 30,
            dynamic: true,
            dynamic_node_properties: Some(Map::new().with("lifetime-policy", true)),
            distribution_mode: Some(DISTRIBUTION_COPY),
            filter: Some(Map::new().with("selector", "a = 1")),
            default_outcome: Some(DeliveryState::modified(true, false)),
            outcomes: vec!["amqp:accepted:list".into(), "amqp:rejected:list".into()],
            capabilities: vec!["queue".into()],
        };
        assert!(source.is_browsing());
        assert_eq!(Source::from_bytes(&source.to_bytes()), Ok(source));
    }

    #[test]
    fn a_capability_may_come_alone_or_in_an_array() {
        let one = [0x00, 0x53, 0x28, 0xc0, 14, 11, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40]
            .into_iter()
            .chain([0x40, 0x40, 0xa3, 1, b'q'])
            .collect::<Vec<u8>>();
        assert_eq!(Source::from_bytes(&one).unwrap().capabilities, ["q"]);
    }
}
