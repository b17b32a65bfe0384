use super::Role;
use crate::DeliveryState;
use crate::decode::Quick;
use crate::descriptor;
use crate::types::codes;

composite! {
    /// Tells what became of a range of deliveries (part 2, 2.7.6).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Disposition("disposition", descriptor::DISPOSITION) {
        /// The end of the links that this is.
        mandatory role: Role,
        /// The first delivery.
        mandatory first: u32,
        /// The last delivery; none if it is the first one.
        optional last: u32,
        /// Whether this end has settled them.
        default settled: bool = false,
        /// What became of them.
        optional state: DeliveryState,
        /// Whether the peer may take its time to answer.
        default batchable: bool = false,
    }
}

impl Disposition {
    /// Reads a disposition without state, or with that of most, in its usual encoding.
    #[inline(always)]
    pub(super) fn decode_usual(body: &[u8]) -> Option<(Disposition, usize)> {
        const ACCEPTED: [u8; 4] =
            [codes::DESCRIBED, codes::SMALL_ULONG, descriptor::ACCEPTED as u8, codes::LIST0];
        let (mut fields, used) = Quick::composite(body, descriptor::DISPOSITION)?;
        let disposition = Disposition {
            role: if fields.optional_boolean()?? { Role::Receiver } else { Role::Sender },
            first: fields.uint()?,
            last: fields.optional_uint()?,
            settled: fields.flag()?,
            state: fields.optional_exactly(&ACCEPTED)?.then_some(DeliveryState::Accepted),
            batchable: fields.flag()?,
        };
        fields.end()?;
        Some((disposition, used))
    }

    /// The last delivery of the range.
    pub fn last(&self) -> u32 {
        self.last.unwrap_or(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, DecodeError, Encode};

    #[test]
    fn a_range_of_accepted_deliveries_takes_few_bytes() {
        let disposition = Disposition {
            role: Role::Receiver,
            first: 1,
            last: Some(300),
            settled: true,
            state: Some(DeliveryState::Accepted),
            batchable: false,
        };
        let bytes = disposition.to_bytes();
        let fields = [0x41, 0x52, 1, 0x70, 0, 0, 1, 44, 0x41, 0x00, 0x53, 0x24, 0x45];
        assert_eq!(bytes, [&[0x00, 0x53, 0x15, 0xc0, 14, 5][..], &fields].concat());
        assert_eq!(Disposition::from_bytes(&bytes), Ok(disposition));
    }

    #[test]
    fn a_disposition_without_a_first_delivery_is_refused() {
        let bytes = [0x00, 0x53, 0x15, 0xc0, 2, 1, 0x41];
        let missing = DecodeError::MissingField { field: "disposition.first" };
        assert_eq!(Disposition::from_bytes(&bytes), Err(missing));
    }
}
