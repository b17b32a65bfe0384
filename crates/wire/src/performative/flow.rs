use crate::decode::Quick;
use crate::descriptor;
use crate::types::Map;

composite! {
    /// Tells the windows of a session, and the credit of a link (part 2, 2.7.4).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Flow("flow", descriptor::FLOW) {
        /// The id of the next transfer that this end expects; none before the peer's begin.
        optional next_incoming_id: u32,
        /// How many transfers this end can take.
        mandatory incoming_window: u32,
        /// The id of the next transfer that this end sends.
        mandatory next_outgoing_id: u32,
        /// How many transfers this end wants to send.
        mandatory outgoing_window: u32,
        /// The link that the following is about; none if the flow is about the session alone.
        optional handle: u32,
        /// The sender's delivery count, as far as this end knows.
        optional delivery_count: u32,
        /// How many deliveries the receiver can take.
        optional link_credit: u32,
        /// How many deliveries the sender has waiting.
        optional available: u32,
        /// Whether the sender is to use up its credit at once.
        default drain: bool = false,
        /// Whether the peer is to answer with a flow.
        default echo: bool = false,
        /// More about the link.
        optional properties: Map,
    }
}

impl Flow {
    /// Reads a flow without properties in its usual encoding.
    #[inline(always)]
    pub(super) fn decode_usual(body: &[u8]) -> Option<(Flow, usize)> {
        let (mut fields, used) = Quick::composite(body, descriptor::FLOW)?;
        let flow = Flow {
            next_incoming_id: fields.optional_uint()?,
            incoming_window: fields.uint()?,
            next_outgoing_id: fields.uint()?,
            outgoing_window: fields.uint()?,
            handle: fields.optional_uint()?,
            delivery_count: fields.optional_uint()?,
            link_credit: fields.optional_uint()?,
            available: fields.optional_uint()?,
            drain: fields.flag()?,
            echo: fields.flag()?,
            properties: fields.nothing().map(|()| None)?,
        };
        fields.end()?;
        Some((flow, used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode};

    #[test]
    fn a_flow_about_a_session_is_four_fields() {
        let flow = Flow {
            next_incoming_id: Some(1),
            incoming_window: 2048,
            next_outgoing_id: 0,
            outgoing_window: 300,
            ..Flow::default()
        };
        let bytes = flow.to_bytes();
        let fields = [0x52, 1, 0x70, 0, 0, 8, 0, 0x43, 0x70, 0, 0, 1, 44];
        assert_eq!(bytes, [&[0x00, 0x53, 0x13, 0xc0, 14, 4][..], &fields].concat());
        assert_eq!(Flow::from_bytes(&bytes), Ok(flow));
    }

    #[test]
    fn a_flow_about_a_link_survives_the_wire() {
        let flow = Flow {
            next_incoming_id: Some(u32::MAX),
            handle: Some(0),
            delivery_count: Some(7),
            link_credit: Some(100),
            available: Some(1),
            drain: true,
            echo: true,
            ..Flow::default()
        };
        assert_eq!(Flow::from_bytes(&flow.to_bytes()), Ok(flow));
    }
}
