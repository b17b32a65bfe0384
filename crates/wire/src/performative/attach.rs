use super::{ReceiverSettleMode, Role, SenderSettleMode};
use crate::descriptor;
use crate::terminus::{Source, TargetArchetype};
use crate::types::{Map, Symbol};

composite! {
    /// Attaches a link (part 2, 2.7.3).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Attach("attach", descriptor::ATTACH) {
        /// The link's name, which with the role tells it from others.
        mandatory name: String,
        /// The handle that this end uses for the link.
        mandatory handle: u32,
        /// The end of the link that this is.
        mandatory role: Role,
        /// Whether deliveries are sent settled.
        default snd_settle_mode: SenderSettleMode = SenderSettleMode::Mixed,
        /// When deliveries are settled by the receiver.
        default rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode::First,
        /// Where messages come from.
        optional source: Source,
        /// Where messages go.
        optional target: TargetArchetype,
        /// Deliveries that this end has not settled: tag to state.
        optional unsettled: Map,
        /// Whether there are more of them than fit.
        default incomplete_unsettled: bool = false,
        /// The sender's delivery count.
        optional initial_delivery_count: u32,
        /// The largest message that this end accepts; none and zero mean any.
        optional max_message_size: u64,
        /// What this end can do.
        multiple offered_capabilities: Symbol,
        /// What this end would like the peer to do.
        multiple desired_capabilities: Symbol,
        /// More about the link.
        optional properties: Map,
    }
}

impl Attach {
    /// An attach without termini, everything by default.
    pub fn new(name: impl Into<String>, handle: u32, role: Role) -> Attach {
        Attach {
            name: name.into(),
            handle,
            role,
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            source: None,
            target: None,
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: None,
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminus::Target;
    use crate::types::Value;
    use crate::{Decode, DecodeError, DeliveryState, Encode};

    #[test]
    fn an_attach_with_termini_and_unsettled_deliveries_survives_the_wire() {
        let mut unsettled = Map::new();
        unsettled.insert(b"tag".to_vec(), DeliveryState::Accepted.to_value());
        unsettled.insert(b"gat".to_vec(), Value::Null);
        let attach = Attach {
            snd_settle_mode: SenderSettleMode::Unsettled,
            rcv_settle_mode: ReceiverSettleMode::Second,
            source: Some(Source::at("a")),
            target: Some(Target::at("b").into()),
            unsettled: Some(unsettled),
            incomplete_unsettled: true,
            initial_delivery_count: Some(0),
            max_message_size: Some(1 << 40),
            offered_capabilities: vec!["DELAYED_DELIVERY".into()],
            desired_capabilities: vec!["SHARED-SUBS".into()],
            properties: Some(Map::new().with("p", true)),
            ..Attach::new("link", 4, Role::Receiver)
        };
        let decoded = Attach::from_bytes(&attach.to_bytes()).unwrap();
        assert_eq!(decoded, attach);
        let states = decoded.unsettled.unwrap();
        let states: Vec<_> = states.iter().map(|(_, v)| DeliveryState::from_value(v)).collect();
        assert_eq!(states, [Ok(Some(DeliveryState::Accepted)), Ok(None)]);
    }

    #[test]
    fn a_settle_mode_that_does_not_exist_is_refused() {
        let bytes = [0x00, 0x53, 0x12, 0xc0, 8, 4, 0xa1, 1, b'l', 0x43, 0x41, 0x50, 3];
        let invalid = DecodeError::InvalidField { field: "sender-settle-mode" };
        assert_eq!(Attach::from_bytes(&bytes), Err(invalid));
    }
}
