use std::fmt;

use crate::decode::{Decode, DecodeError, Decoder};
use crate::encode::Encode;
use crate::types::{Type, Uuid, Value};

/// The id of a message, in any of its types (part 3, 3.2.11 to 3.2.14).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// A number.
    Ulong(u64),
    /// A UUID.
    Uuid(Uuid),
    /// Bytes.
    Binary(Vec<u8>),
    /// Text.
    String(String),
}

impl Decode for MessageId {
    fn decode(decoder: &mut Decoder<'_>) -> Result<MessageId, DecodeError> {
        match decoder.clone().raw()?.type_of() {
            Type::Ulong => decoder.ulong().map(MessageId::Ulong),
            Type::Uuid => Uuid::decode(decoder).map(MessageId::Uuid),
            Type::Binary => Vec::decode(decoder).map(MessageId::Binary),
            Type::String => String::decode(decoder).map(MessageId::String),
            _ => Err(DecodeError::InvalidField { field: "message-id" }),
        }
    }
}

impl Encode for MessageId {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            MessageId::Ulong(id) => id.encode(out),
            MessageId::Uuid(id) => id.encode(out),
            MessageId::Binary(id) => id.encode(out),
            MessageId::String(id) => id.encode(out),
        }
    }
}

impl From<MessageId> for Value {
    fn from(id: MessageId) -> Value {
        match id {
            MessageId::Ulong(id) => id.into(),
            MessageId::Uuid(id) => id.into(),
            MessageId::Binary(id) => id.into(),
            MessageId::String(id) => id.into(),
        }
    }
}

impl From<&str> for MessageId {
    fn from(id: &str) -> MessageId {
        MessageId::String(id.to_owned())
    }
}

impl From<String> for MessageId {
    fn from(id: String) -> MessageId {
        MessageId::String(id)
    }
}

impl From<u64> for MessageId {
    fn from(id: u64) -> MessageId {
        MessageId::Ulong(id)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::from(self.clone()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_type() {
        let ids = [
            MessageId::from(7),
            MessageId::Uuid(Uuid([1; 16])),
            MessageId::Binary(vec![1, 2]),
            MessageId::from("id"),
        ];
        for id in ids {
            assert_eq!(MessageId::from_bytes(&id.to_bytes()), Ok(id));
        }
    }

    #[test]
    fn other_types_are_no_ids() {
        let invalid = Err(DecodeError::InvalidField { field: "message-id" });
        assert_eq!(MessageId::from_bytes(&7u32.to_bytes()), invalid);
    }
}
