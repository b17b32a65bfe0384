use super::ReceiverSettleMode;
use crate::DeliveryState;
use crate::decode::{Decode, DecodeError, Decoder, Descriptor, Quick};
use crate::descriptor;
use crate::encode::{Encode, ListWriter};

/// Carries a message, or a part of one (part 2, 2.7.5); the payload follows in the frame.
///
/// It borrows its tag from the frame, so that reading one costs no allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer<'a> {
    /// The link.
    pub handle: u32,
    /// The delivery; needed in its first frame only.
    pub delivery_id: Option<u32>,
    /// The delivery's tag; needed in its first frame only.
    pub delivery_tag: Option<&'a [u8]>,
    /// The message format; needed in its first frame only.
    pub message_format: Option<u32>,
    /// Whether the sender has settled the delivery.
    pub settled: Option<bool>,
    /// Whether more frames of this delivery follow.
    pub more: bool,
    /// When the receiver settles this delivery.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// The delivery's state.
    pub state: Option<TransferState<'a>>,
    /// Whether the delivery was begun before the link was attached.
    pub resume: bool,
    /// Whether the delivery is given up.
    pub aborted: bool,
    /// Whether the receiver may take its time to answer.
    pub batchable: bool,
}

/// The state of a delivery, as its sender tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum TransferState<'a> {
    /// It is in the transaction of this id and has no outcome (part 4, 4.5.6). Every message of a
    /// transaction says so: hence the id is borrowed from the frame. It has 1 to 32 bytes.
    InTransaction(&'a [u8]),
    /// Any other, and the same in an unusual encoding.
    Other(Box<DeliveryState>),
}

impl<'a> Transfer<'a> {
    /// Reads a transfer at the front of a frame's body, and tells how many bytes it takes: what
    /// follows is the payload.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<(Transfer<'a>, usize), DecodeError> {
        match Transfer::decode_usual(body) {
            Some(transfer) => Ok(transfer),
            None => Transfer::decode_any(body),
        }
    }

    /// Reads a transfer in its usual encoding: without state, or with that of a transaction.
    #[inline(always)]
    pub(super) fn decode_usual(body: &'a [u8]) -> Option<(Transfer<'a>, usize)> {
        let (mut fields, used) = Quick::composite(body, descriptor::TRANSFER)?;
        let transfer = Transfer {
            handle: fields.uint()?,
            delivery_id: fields.optional_uint()?,
            delivery_tag: fields.optional_binary()?,
            message_format: fields.optional_uint()?,
            settled: fields.optional_boolean()?,
            more: fields.flag()?,
            rcv_settle_mode: fields.nothing().map(|()| None)?,
            state: fields.optional_transaction()?.map(TransferState::InTransaction),
            resume: fields.flag()?,
            aborted: fields.flag()?,
            batchable: fields.flag()?,
        };
        fields.end()?;
        Some((transfer, used))
    }

    #[cold]
    fn decode_any(body: &'a [u8]) -> Result<(Transfer<'a>, usize), DecodeError> {
        let mut decoder = Decoder::new(body);
        match decoder.descriptor()? {
            Descriptor::Code(descriptor::TRANSFER) => {}
            other if other.known() == Some(descriptor::TRANSFER) => {}
            other => return Err(other.unknown()),
        }
        let transfer = Transfer::decode_list(&mut decoder)?;
        Ok((transfer, body.len() - decoder.rest().len()))
    }

    /// Reads the list that follows the descriptor.
    pub(super) fn decode_list(decoder: &mut Decoder<'a>) -> Result<Transfer<'a>, DecodeError> {
        let mut fields = decoder.list()?;
        let transfer = Transfer {
            handle: fields.mandatory("transfer.handle")?,
            delivery_id: fields.optional()?,
            delivery_tag: fields.next_field()?.map(|tag| tag.binary()).transpose()?,
            message_format: fields.optional()?,
            settled: fields.optional()?,
            more: fields.optional()?.unwrap_or(false),
            rcv_settle_mode: fields.optional()?,
            state: fields.optional()?,
            resume: fields.optional()?.unwrap_or(false),
            aborted: fields.optional()?.unwrap_or(false),
            batchable: fields.optional()?.unwrap_or(false),
        };
        fields.finish(decoder)?;
        Ok(transfer)
    }
}

impl From<DeliveryState> for TransferState<'_> {
    fn from(state: DeliveryState) -> Self {
        TransferState::Other(Box::new(state))
    }
}

impl<'a> From<&'a DeliveryState> for TransferState<'a> {
    fn from(state: &'a DeliveryState) -> TransferState<'a> {
        match state {
            DeliveryState::Transactional { txn_id, outcome: None } => {
                TransferState::InTransaction(txn_id)
            }
            other => TransferState::Other(Box::new(other.clone())),
        }
    }
}

impl Decode for TransferState<'_> {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        DeliveryState::decode(decoder).map(|state| TransferState::Other(Box::new(state)))
    }
}

impl Encode for TransferState<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            TransferState::InTransaction(txn_id) => {
                let mut list = ListWriter::composite(out, descriptor::TRANSACTIONAL_STATE);
                list.field(txn_id);
                list.finish();
            }
            TransferState::Other(state) => state.encode(out),
        }
    }
}

impl Encode for Transfer<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut list = ListWriter::composite(out, descriptor::TRANSFER);
        list.field(&self.handle);
        list.optional(self.delivery_id.as_ref());
        list.optional(self.delivery_tag.as_ref());
        list.optional(self.message_format.as_ref());
        list.optional(self.settled.as_ref());
        list.unless_default(&self.more, &false);
        list.optional(self.rcv_settle_mode.as_ref());
        list.optional(self.state.as_ref());
        list.unless_default(&self.resume, &false);
        list.unless_default(&self.aborted, &false);
        list.unless_default(&self.batchable, &false);
        list.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AmqpError, condition};

    fn round_trip(transfer: &Transfer<'_>) {
        let mut bytes = transfer.to_bytes();
        let len = bytes.len();
        bytes.extend_from_slice(b"payload");
        assert_eq!(Transfer::decode(&bytes), Ok((transfer.clone(), len)));
    }

    #[test]
    fn a_transfer_survives_the_wire_and_leaves_the_payload() {
        round_trip(&Transfer::default());
        round_trip(&Transfer { handle: 1, more: true, ..Transfer::default() });
        let accepted = Some(Box::new(DeliveryState::Accepted));
        let ids = [&b"t"[..], &[7; 8], &[7; 32]].into_iter();
        let states = ids.map(TransferState::InTransaction).chain([
            DeliveryState::Transactional { txn_id: Box::default(), outcome: None }.into(),
            DeliveryState::Transactional { txn_id: Box::from([7; 200]), outcome: None }.into(),
            DeliveryState::Transactional { txn_id: Box::from(*b"t"), outcome: accepted }.into(),
        ]);
        for state in states.map(Some) {
            round_trip(&Transfer { handle: 1, delivery_id: Some(1), state, ..Transfer::default() });
        }
        let error = AmqpError::new(condition::NOT_FOUND, "gone");
        round_trip(&Transfer {
            handle: 1000,
            delivery_id: Some(u32::MAX),
            delivery_tag: Some(b"tag"),
            message_format: Some(0),
            settled: Some(true),
            more: true,
            rcv_settle_mode: Some(ReceiverSettleMode::Second),
            state: Some(DeliveryState::rejected(error).into()),
            resume: true,
            aborted: true,
            batchable: true,
        });
    }

    #[test]
    fn a_transaction_in_an_unusual_encoding_is_the_same_state() {
        // transactional-state with the id as binary32, and with a null outcome.
        for state in [
            &[0x00, 0x53, 0x34, 0xc0, 7, 1, 0xb0, 0, 0, 0, 1, b't'][..],
            &[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x34, 0xc0, 5, 2, 0xa0, 1, b't', 0x40],
        ] {
            let fields = [&[0x43, 0x43, 0x40, 0x40, 0x40, 0x40, 0x40][..], state].concat();
            let mut bytes = vec![0x00, 0x53, 0x14, 0xc0, fields.len() as u8 + 1, 8];
            bytes.extend(fields);
            let (transfer, _) = Transfer::decode(&bytes).unwrap();
            let state = DeliveryState::Transactional { txn_id: Box::from(*b"t"), outcome: None };
            assert_eq!(transfer.state, Some(state.into()));
        }
    }

    #[test]
    fn fields_of_a_later_version_are_passed_over() {
        let bytes = [0x00, 0x53, 0x14, 0xc0, 14, 12, 0x43, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40]
            .into_iter()
            .chain([0x40, 0x40, 0x40, 0x40, 0x52, 1])
            .collect::<Vec<u8>>();
        assert_eq!(Transfer::decode(&bytes), Ok((Transfer::default(), bytes.len())));
    }

    #[test]
    fn a_size_that_disagrees_with_the_fields_is_refused() {
        let bytes = [0x00, 0x53, 0x14, 0xc0, 3, 1, 0x43, 0x43];
        assert_eq!(Transfer::decode(&bytes), Err(DecodeError::SizeMismatch));
    }
}
