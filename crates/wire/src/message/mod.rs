//! Owned messages, for those who build or read whole ones: clients and management (part 3, 3.2).

mod body;
mod header;
mod id;
mod properties;

pub use body::Body;
pub use header::Header;
pub use id::MessageId;
pub use properties::Properties;

use crate::composite::decode_list;
use crate::decode::{DecodeError, Decoder, Limits};
use crate::descriptor;
use crate::encode::{Encode, encode_descriptor};
use crate::section;
use crate::types::{Map, Symbol, Value};

/// A message with all its sections decoded (part 3, 3.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// What transports need to know (3.2.1).
    pub header: Option<Header>,
    /// What one hop tells the next (3.2.2).
    pub delivery_annotations: Option<Map>,
    /// What infrastructure tells infrastructure (3.2.3).
    pub message_annotations: Option<Map>,
    /// What everybody needs to know, unchangeable (3.2.4).
    pub properties: Option<Box<Properties>>,
    /// What the application wants to be selected by, unchangeable (3.2.5).
    pub application_properties: Option<Map>,
    /// The content, unchangeable (3.2.6 to 3.2.8).
    pub body: Body,
    /// What can only be said after the body (3.2.9).
    pub footer: Option<Map>,
}

impl Message {
    /// A message whose body is one value: text, a map, anything.
    pub fn of_value(value: impl Into<Value>) -> Message {
        Message { body: Body::Value(value.into()), ..Message::default() }
    }

    /// A message whose body is bytes.
    pub fn of_data(bytes: impl Into<Vec<u8>>) -> Message {
        Message { body: Body::Data(vec![bytes.into()]), ..Message::default() }
    }

    /// The header, made if there is none.
    pub fn header_mut(&mut self) -> &mut Header {
        self.header.get_or_insert_default()
    }

    /// The properties, made if there are none.
    pub fn properties_mut(&mut self) -> &mut Properties {
        self.properties.get_or_insert_default()
    }

    /// Sets an application property.
    pub fn set_application_property(&mut self, key: &str, value: impl Into<Value>) {
        self.application_properties.get_or_insert_default().insert(key, value);
    }

    /// An application property.
    pub fn application_property(&self, key: &str) -> Option<&Value> {
        self.application_properties.as_ref()?.get(key)
    }

    /// Sets a message annotation.
    pub fn set_message_annotation(&mut self, key: impl Into<Symbol>, value: impl Into<Value>) {
        self.message_annotations.get_or_insert_default().insert(key.into(), value);
    }

    /// A message annotation.
    pub fn message_annotation(&self, key: &str) -> Option<&Value> {
        self.message_annotations.as_ref()?.get(key)
    }

    /// Reads a message that takes all of `bytes`, within the default limits.
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        Message::decode_within(bytes, &Limits::DEFAULT)
    }

    /// Reads a message that takes all of `bytes`.
    pub fn decode_within(bytes: &[u8], limits: &Limits) -> Result<Message, DecodeError> {
        // The scan has the last word on which sections may stand where.
        section::scan(bytes, limits)?;
        let mut decoder = Decoder::with_limits(bytes, limits);
        let mut message = Message::default();
        while !decoder.is_empty() {
            message.decode_section(&mut decoder)?;
        }
        Ok(message)
    }

    fn decode_section(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let descriptor = decoder.descriptor()?;
        match descriptor.known() {
            Some(descriptor::HEADER) => self.header = Some(decode_list(decoder)?),
            Some(descriptor::DELIVERY_ANNOTATIONS) => {
                self.delivery_annotations = Some(decoder.map()?);
            }
            Some(descriptor::MESSAGE_ANNOTATIONS) => {
                self.message_annotations = Some(decoder.map()?);
            }
            Some(descriptor::PROPERTIES) => {
                self.properties = Some(Box::new(decode_list(decoder)?));
            }
            Some(descriptor::APPLICATION_PROPERTIES) => {
                self.application_properties = Some(decoder.map()?);
            }
            Some(descriptor::FOOTER) => self.footer = Some(decoder.map()?),
            Some(code) => self.body.decode_section(code, decoder)?,
            None => return Err(descriptor.unknown()),
        }
        Ok(())
    }
}

impl Encode for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(header) = &self.header {
            header.encode(out);
        }
        encode_map(out, descriptor::DELIVERY_ANNOTATIONS, self.delivery_annotations.as_ref());
        encode_map(out, descriptor::MESSAGE_ANNOTATIONS, self.message_annotations.as_ref());
        if let Some(properties) = &self.properties {
            properties.encode(out);
        }
        encode_map(out, descriptor::APPLICATION_PROPERTIES, self.application_properties.as_ref());
        self.body.encode(out);
        encode_map(out, descriptor::FOOTER, self.footer.as_ref());
    }
}

fn encode_map(out: &mut Vec<u8>, descriptor: u64, map: Option<&Map>) {
    if let Some(map) = map {
        encode_descriptor(out, descriptor);
        map.encode(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Timestamp, Uuid};

    fn full() -> Message {
        let mut message = Message::of_value("body");
        *message.header_mut() = Header {
            durable: true,
            priority: 9,
            ttl: Some(1000),
            first_acquirer: true,
            delivery_count: 3,
        };
        message.delivery_annotations = Some(Map::new().with("d", 1u32));
        message.set_message_annotation("x-opt-m", 2u64);
        *message.properties_mut() = Properties {
            message_id: Some(MessageId::Uuid(Uuid([7; 16]))),
            user_id: Some(b"user".to_vec()),
            to: Some("to".into()),
            subject: Some("subject".into()),
            reply_to: Some("reply".into()),
            correlation_id: Some(MessageId::Ulong(8)),
            content_type: Some("text/plain".into()),
            content_encoding: Some("gzip".into()),
            absolute_expiry_time: Some(Timestamp(9)),
            creation_time: Some(Timestamp(-1)),
            group_id: Some("group".into()),
            group_sequence: Some(u32::MAX),
            reply_to_group_id: Some("other".into()),
        };
        message.set_application_property("a", 1.5f64);
        message.footer = Some(Map::new().with("f", Value::Null));
        message
    }

    #[test]
    fn a_message_with_every_section_survives_the_wire() {
        let bodies = [
            Body::Empty,
            Body::Data(vec![b"a".to_vec(), Vec::new(), b"c".to_vec()]),
            Body::Sequence(vec![vec![Value::Uint(1)], Vec::new()]),
            Body::Value(Value::Map(Map::new().with("k", "v"))),
        ];
        for body in bodies {
            let message = Message { body, ..full() };
            assert_eq!(Message::decode(&message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn the_smallest_message_is_a_null_value() {
        let message = Message::of_value(Value::Null);
        assert_eq!(message.to_bytes(), [0x00, 0x53, 0x77, 0x40]);
        assert_eq!(Message::decode(&[0x00, 0x53, 0x77, 0x40]), Ok(message));
    }

    #[test]
    fn elements_are_counted_over_all_sections_together() {
        let message = full().to_bytes();
        let limits = Limits { max_elements: 10, ..Limits::DEFAULT };
        let decoded = Message::decode_within(&message, &limits);
        assert_eq!(decoded, Err(DecodeError::TooManyElements));
    }
}
