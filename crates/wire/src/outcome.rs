//! Delivery states and outcomes (part 3, 3.4 and part 4, 4.5).

use crate::composite::decode_list;
use crate::decode::{Decode, DecodeError, Decoder, Fields};
use crate::descriptor;
use crate::encode::{Encode, ListWriter};
use crate::types::{Described, Map, Symbol, Value, codes};
use crate::{AmqpError, Composite};

/// What became of a delivery, as one end tells the other (part 3, 3.4).
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryState {
    /// So much of the message has arrived (3.4.1).
    Received {
        /// The section reached.
        section_number: u32,
        /// How many bytes of it have arrived.
        section_offset: u64,
    },
    /// The message was processed (3.4.2).
    Accepted,
    /// The message is invalid (3.4.3).
    Rejected {
        /// Why.
        error: Option<Box<AmqpError>>,
    },
    /// The message was not and will not be processed (3.4.4).
    Released,
    /// The message was not processed, and is to be changed (3.4.5).
    Modified {
        /// The attempt counts as failed.
        delivery_failed: bool,
        /// The message is not to be delivered here again.
        undeliverable_here: bool,
        /// Annotations to merge into those of the message.
        message_annotations: Option<Map>,
    },
    /// A transaction has begun (4.5.5).
    Declared {
        /// Its id.
        txn_id: Box<[u8]>,
    },
    /// The delivery belongs to a transaction (4.5.6).
    Transactional {
        /// The transaction's id.
        txn_id: Box<[u8]>,
        /// The outcome that the delivery has if the transaction succeeds.
        outcome: Option<Box<DeliveryState>>,
    },
    /// A state that the specification does not define.
    Other(Box<Described>),
}

impl DeliveryState {
    /// Whether this is final: an outcome, not a state on the way to one (part 3, 3.4).
    pub fn is_outcome(&self) -> bool {
        !matches!(self, DeliveryState::Received { .. } | DeliveryState::Transactional { .. })
    }

    /// The outcome, looking through a transactional state.
    pub fn outcome(&self) -> Option<&DeliveryState> {
        match self {
            DeliveryState::Received { .. } => None,
            DeliveryState::Transactional { outcome, .. } => outcome.as_deref(),
            outcome => Some(outcome),
        }
    }

    /// The symbolic descriptor, as it stands among the outcomes of a source (part 3, 3.5.3).
    pub fn symbol(&self) -> Option<Symbol> {
        descriptor::symbol_of(self.descriptor()?).map(Symbol::from_static)
    }

    /// A rejection that says why.
    pub fn rejected(error: AmqpError) -> DeliveryState {
        DeliveryState::Rejected { error: Some(Box::new(error)) }
    }

    /// A modification without annotations.
    pub fn modified(delivery_failed: bool, undeliverable_here: bool) -> DeliveryState {
        DeliveryState::Modified { delivery_failed, undeliverable_here, message_annotations: None }
    }

    /// The state as a value, for an unsettled map.
    pub fn to_value(&self) -> Value {
        Value::from_bytes(&self.to_bytes()).unwrap_or_default()
    }

    /// The state that a value stands for, as in an unsettled map; `None` for null.
    pub fn from_value(value: &Value) -> Result<Option<DeliveryState>, DecodeError> {
        if value.is_null() {
            return Ok(None);
        }
        DeliveryState::from_bytes(&value.to_bytes()).map(Some)
    }

    fn descriptor(&self) -> Option<u64> {
        Some(match self {
            DeliveryState::Received { .. } => descriptor::RECEIVED,
            DeliveryState::Accepted => descriptor::ACCEPTED,
            DeliveryState::Rejected { .. } => descriptor::REJECTED,
            DeliveryState::Released => descriptor::RELEASED,
            DeliveryState::Modified { .. } => descriptor::MODIFIED,
            DeliveryState::Declared { .. } => descriptor::DECLARED,
            DeliveryState::Transactional { .. } => descriptor::TRANSACTIONAL_STATE,
            DeliveryState::Other(_) => return None,
        })
    }

    #[cold]
    fn decode_any(decoder: &mut Decoder<'_>) -> Result<DeliveryState, DecodeError> {
        let before = decoder.clone();
        match decoder.descriptor()?.known() {
            Some(descriptor::RECEIVED) => {
                let Received { section_number, section_offset } = decode_list(decoder)?;
                Ok(DeliveryState::Received { section_number, section_offset })
            }
            Some(descriptor::ACCEPTED) => {
                decode_list::<NoFields>(decoder).map(|_| DeliveryState::Accepted)
            }
            Some(descriptor::REJECTED) => {
                let Rejected { error } = decode_list(decoder)?;
                Ok(DeliveryState::Rejected { error })
            }
            Some(descriptor::RELEASED) => {
                decode_list::<NoFields>(decoder).map(|_| DeliveryState::Released)
            }
            Some(descriptor::MODIFIED) => {
                let Modified { delivery_failed, undeliverable_here, message_annotations } =
                    decode_list(decoder)?;
                Ok(DeliveryState::Modified {
                    delivery_failed,
                    undeliverable_here,
                    message_annotations,
                })
            }
            Some(descriptor::DECLARED) => {
                let Declared { txn_id } = decode_list(decoder)?;
                Ok(DeliveryState::Declared { txn_id })
            }
            Some(descriptor::TRANSACTIONAL_STATE) => {
                let Transactional { txn_id, outcome } = decode_list(decoder)?;
                Ok(DeliveryState::Transactional { txn_id, outcome })
            }
            _ => {
                *decoder = before;
                match decoder.value()? {
                    Value::Described(described) => Ok(DeliveryState::Other(described)),
                    _ => Err(DecodeError::InvalidField { field: "delivery-state" }),
                }
            }
        }
    }
}

impl Decode for DeliveryState {
    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<DeliveryState, DecodeError> {
        // Accepted without fields is what nearly every disposition carries.
        const ACCEPTED: u8 = descriptor::ACCEPTED as u8;
        if let [codes::DESCRIBED, codes::SMALL_ULONG, ACCEPTED, codes::LIST0, ..] = decoder.rest() {
            decoder.take(4)?;
            return Ok(DeliveryState::Accepted);
        }
        DeliveryState::decode_any(decoder)
    }
}

impl Encode for DeliveryState {
    fn encode(&self, out: &mut Vec<u8>) {
        let Some(descriptor) = self.descriptor() else {
            if let DeliveryState::Other(described) = self {
                described.encode(out);
            }
            return;
        };
        let mut list = ListWriter::composite(out, descriptor);
        match self {
            DeliveryState::Received { section_number, section_offset } => {
                list.field(section_number);
                list.field(section_offset);
            }
            DeliveryState::Rejected { error } => list.optional(error.as_ref()),
            DeliveryState::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations,
            } => {
                list.unless_default(delivery_failed, &false);
                list.unless_default(undeliverable_here, &false);
                list.optional(message_annotations.as_ref());
            }
            DeliveryState::Declared { txn_id } => list.field(txn_id),
            DeliveryState::Transactional { txn_id, outcome } => {
                list.field(txn_id);
                list.optional(outcome.as_ref());
            }
            DeliveryState::Accepted | DeliveryState::Released | DeliveryState::Other(_) => {}
        }
        list.finish();
    }
}

struct NoFields;

impl Composite for NoFields {
    const NAME: &'static str = "outcome without fields";
    const DESCRIPTOR: u64 = descriptor::ACCEPTED;

    fn decode_fields(_: &mut Fields<'_>) -> Result<NoFields, DecodeError> {
        Ok(NoFields)
    }
}

struct Received {
    section_number: u32,
    section_offset: u64,
}

impl Composite for Received {
    const NAME: &'static str = "received";
    const DESCRIPTOR: u64 = descriptor::RECEIVED;

    fn decode_fields(fields: &mut Fields<'_>) -> Result<Received, DecodeError> {
        let section_number = fields.mandatory("received.section-number")?;
        let section_offset = fields.mandatory("received.section-offset")?;
        Ok(Received { section_number, section_offset })
    }
}

struct Rejected {
    error: Option<Box<AmqpError>>,
}

impl Composite for Rejected {
    const NAME: &'static str = "rejected";
    const DESCRIPTOR: u64 = descriptor::REJECTED;

    fn decode_fields(fields: &mut Fields<'_>) -> Result<Rejected, DecodeError> {
        Ok(Rejected { error: fields.optional()? })
    }
}

struct Modified {
    delivery_failed: bool,
    undeliverable_here: bool,
    message_annotations: Option<Map>,
}

impl Composite for Modified {
    const NAME: &'static str = "modified";
    const DESCRIPTOR: u64 = descriptor::MODIFIED;

    fn decode_fields(fields: &mut Fields<'_>) -> Result<Modified, DecodeError> {
        Ok(Modified {
            delivery_failed: fields.optional()?.unwrap_or(false),
            undeliverable_here: fields.optional()?.unwrap_or(false),
            message_annotations: fields.optional()?,
        })
    }
}

struct Declared {
    txn_id: Box<[u8]>,
}

impl Composite for Declared {
    const NAME: &'static str = "declared";
    const DESCRIPTOR: u64 = descriptor::DECLARED;

    fn decode_fields(fields: &mut Fields<'_>) -> Result<Declared, DecodeError> {
        Ok(Declared { txn_id: fields.mandatory("declared.txn-id")? })
    }
}

struct Transactional {
    txn_id: Box<[u8]>,
    outcome: Option<Box<DeliveryState>>,
}

impl Composite for Transactional {
    const NAME: &'static str = "transactional-state";
    const DESCRIPTOR: u64 = descriptor::TRANSACTIONAL_STATE;

    fn decode_fields(fields: &mut Fields<'_>) -> Result<Transactional, DecodeError> {
        let txn_id = fields.mandatory("transactional-state.txn-id")?;
        let outcome = fields.next_field()?.map(decode_outcome).transpose()?;
        Ok(Transactional { txn_id, outcome })
    }
}

/// Reads the outcome inside a transactional state. An outcome cannot be a transactional state
/// again, so bytes cannot make us call ourselves without end.
fn decode_outcome(decoder: &mut Decoder<'_>) -> Result<Box<DeliveryState>, DecodeError> {
    let mut ahead = decoder.clone();
    if ahead.descriptor()?.known() == Some(descriptor::TRANSACTIONAL_STATE) {
        return Err(DecodeError::InvalidField { field: "transactional-state.outcome" });
    }
    DeliveryState::decode(decoder).map(Box::new)
}
