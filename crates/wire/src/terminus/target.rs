use super::{TerminusDurability, TerminusExpiryPolicy};
use crate::composite::decode_list;
use crate::decode::{Decode, DecodeError, Decoder};
use crate::descriptor;
use crate::encode::Encode;
use crate::types::{Map, Symbol};

composite! {
    /// Where the messages of a link go (part 3, 3.5.4).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Target("target", descriptor::TARGET) {
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
        /// What the terminus can do.
        multiple capabilities: Symbol,
    }
}

impl Target {
    /// The target at an address, everything else by default.
    pub fn at(address: impl Into<String>) -> Target {
        Target { address: Some(address.into()), ..Target::default() }
    }
}

composite! {
    /// The target of a link that controls transactions (part 4, 4.5.1).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Coordinator("coordinator", descriptor::COORDINATOR) {
        /// What the coordinator can do.
        multiple capabilities: Symbol,
    }
}

/// What an attach has as its target (part 2, 2.7.3: anything that provides the archetype).
#[derive(Clone, Debug, PartialEq)]
pub enum TargetArchetype {
    /// A node.
    Target(Target),
    /// The transaction coordinator.
    Coordinator(Coordinator),
}

impl TargetArchetype {
    /// The node, if it is one.
    pub fn target(&self) -> Option<&Target> {
        match self {
            TargetArchetype::Target(target) => Some(target),
            TargetArchetype::Coordinator(_) => None,
        }
    }
}

impl From<Target> for TargetArchetype {
    fn from(target: Target) -> TargetArchetype {
        TargetArchetype::Target(target)
    }
}

impl From<Coordinator> for TargetArchetype {
    fn from(coordinator: Coordinator) -> TargetArchetype {
        TargetArchetype::Coordinator(coordinator)
    }
}

impl Decode for TargetArchetype {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TargetArchetype, DecodeError> {
        let descriptor = decoder.descriptor()?;
        match descriptor.known() {
            Some(descriptor::TARGET) => decode_list(decoder).map(TargetArchetype::Target),
            Some(descriptor::COORDINATOR) => decode_list(decoder).map(TargetArchetype::Coordinator),
            _ => Err(descriptor.unknown()),
        }
    }
}

impl Encode for TargetArchetype {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            TargetArchetype::Target(target) => target.encode(out),
            TargetArchetype::Coordinator(coordinator) => coordinator.encode(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_tells_a_node_from_a_coordinator() {
        let node = TargetArchetype::from(Target::at("q"));
        assert_eq!(TargetArchetype::from_bytes(&node.to_bytes()), Ok(node));
        let capabilities = vec!["amqp:local-transactions".into()];
        let coordinator = TargetArchetype::from(Coordinator { capabilities });
        assert_eq!(TargetArchetype::from_bytes(&coordinator.to_bytes()), Ok(coordinator));
        let source = super::super::Source::at("q").to_bytes();
        assert_eq!(
            TargetArchetype::from_bytes(&source),
            Err(DecodeError::UnknownDescriptor("0x28".into()))
        );
    }

    #[test]
    fn the_anonymous_target_has_no_fields_at_all() {
        assert_eq!(Target::default().to_bytes(), [0x00, 0x53, 0x29, 0x45]);
        assert_eq!(Target::from_bytes(&[0x00, 0x53, 0x29, 0x45]), Ok(Target::default()));
        assert_eq!(Target::from_bytes(&[0x00, 0x53, 0x29, 0xc0, 1, 0]), Ok(Target::default()));
    }
}
