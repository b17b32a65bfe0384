use crate::decode::Quick;
use crate::descriptor;

composite! {
    /// What transports need to know about a message (part 3, 3.2.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Header("header", descriptor::HEADER) {
        /// Whether the message has to survive a restart.
        default durable: bool = false,
        /// How urgent the message is.
        default priority: u8 = Header::DEFAULT_PRIORITY,
        /// How long the message is worth something, in milliseconds.
        optional ttl: u32,
        /// Whether nobody else has acquired the message before.
        default first_acquirer: bool = false,
        /// How many attempts to deliver the message have failed.
        default delivery_count: u32 = 0,
    }
}

impl Header {
    /// Reads the list of a header in its usual encoding, and tells how many bytes it takes.
    #[inline]
    pub(crate) fn decode_usual(list: &[u8]) -> Option<(Header, usize)> {
        let (mut fields, used) = Quick::list(list)?;
        let header = Header {
            durable: fields.flag()?,
            priority: fields.optional_ubyte()?.unwrap_or(Header::DEFAULT_PRIORITY),
            ttl: fields.optional_uint()?,
            first_acquirer: fields.flag()?,
            delivery_count: fields.optional_uint()?.unwrap_or(0),
        };
        fields.end()?;
        Some((header, used))
    }

    /// The priority of a message that says nothing about it.
    pub const DEFAULT_PRIORITY: u8 = 4;
}

impl Default for Header {
    fn default() -> Header {
        Header {
            durable: false,
            priority: Header::DEFAULT_PRIORITY,
            ttl: None,
            first_acquirer: false,
            delivery_count: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode};

    #[test]
    fn a_header_says_only_what_is_not_the_default() {
        assert_eq!(Header::default().to_bytes(), [0x00, 0x53, 0x70, 0x45]);
        assert_eq!(Header::from_bytes(&[0x00, 0x53, 0x70, 0x45]), Ok(Header::default()));
        let header = Header { priority: 0, delivery_count: 300, ..Header::default() };
        assert_eq!(Header::from_bytes(&header.to_bytes()), Ok(header));
    }
}
