use super::{BodyKind, Section, Sections};
use crate::composite::decode_list;
use crate::decode::{Decoder, Quick, RawList, RawMap, RawValue};
use crate::descriptor;
use crate::message::Header;

/// Single fields of a message, read from the bytes that it was found in. What is malformed
/// inside a section reads as absent.
impl Sections {
    /// The header; its defaults where there is none.
    #[inline]
    pub fn header(&self, bytes: &[u8]) -> Header {
        let Some(value) = self.value(bytes, Section::Header) else {
            return Header::default();
        };
        match Header::decode_usual(value.bytes()) {
            Some((header, _)) => header,
            None => decode_list(&mut value.decoder()).unwrap_or_default(),
        }
    }

    /// The delivery annotations.
    pub fn delivery_annotations<'a>(&self, bytes: &'a [u8]) -> Option<RawMap<'a>> {
        self.value(bytes, Section::DeliveryAnnotations)?.as_map()
    }

    /// The message annotations.
    pub fn message_annotations<'a>(&self, bytes: &'a [u8]) -> Option<RawMap<'a>> {
        self.value(bytes, Section::MessageAnnotations)?.as_map()
    }

    /// One message annotation.
    pub fn message_annotation<'a>(&self, bytes: &'a [u8], key: &str) -> Option<RawValue<'a>> {
        self.message_annotations(bytes)?.get(key)
    }

    /// The application properties.
    pub fn application_properties<'a>(&self, bytes: &'a [u8]) -> Option<RawMap<'a>> {
        self.value(bytes, Section::ApplicationProperties)?.as_map()
    }

    /// One application property.
    pub fn application_property<'a>(&self, bytes: &'a [u8], key: &str) -> Option<RawValue<'a>> {
        self.application_properties(bytes)?.get(key)
    }

    /// The properties, in the order of the specification (part 3, 3.2.4).
    #[inline]
    pub fn raw_properties<'a>(&self, bytes: &'a [u8]) -> Option<RawList<'a>> {
        let section = bytes.get(self.range(Section::Properties))?;
        match Quick::composite(section, descriptor::PROPERTIES) {
            Some((fields, _)) => Some(fields.raw()),
            None => self.value(bytes, Section::Properties)?.as_list(),
        }
    }

    /// The message id, of whatever type it is.
    pub fn message_id<'a>(&self, bytes: &'a [u8]) -> Option<RawValue<'a>> {
        self.property(bytes, 0)
    }

    /// Who made the message.
    pub fn user_id<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        self.property(bytes, 1)?.as_binary()
    }

    /// The node that the message is for.
    pub fn to<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        self.property(bytes, 2)?.as_str()
    }

    /// What the message is about.
    pub fn subject<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        self.property(bytes, 3)?.as_str()
    }

    /// The same, as bytes whose encoding nobody has checked.
    #[inline]
    pub fn raw_subject<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        self.property(bytes, 3)?.text()
    }

    /// The node that answers go to.
    pub fn reply_to<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        self.property(bytes, 4)?.as_str()
    }

    /// The id of the message that this one answers, of whatever type it is.
    pub fn correlation_id<'a>(&self, bytes: &'a [u8]) -> Option<RawValue<'a>> {
        self.property(bytes, 5)
    }

    /// The MIME type of the body.
    pub fn content_type<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        self.property(bytes, 6)?.as_str()
    }

    /// When the message is worth nothing any more, in milliseconds since the Unix epoch.
    pub fn absolute_expiry_time(&self, bytes: &[u8]) -> Option<i64> {
        self.property(bytes, 8)?.as_i64()
    }

    /// When the message was made, in milliseconds since the Unix epoch.
    pub fn creation_time(&self, bytes: &[u8]) -> Option<i64> {
        self.property(bytes, 9)?.as_i64()
    }

    /// The group that the message belongs to.
    pub fn group_id<'a>(&self, bytes: &'a [u8]) -> Option<&'a str> {
        self.property(bytes, 10)?.as_str()
    }

    /// The message's place in its group.
    pub fn group_sequence(&self, bytes: &[u8]) -> Option<u32> {
        self.property(bytes, 11)?.as_u64()?.try_into().ok()
    }

    /// The value of a body that is one.
    pub fn body_value<'a>(&self, bytes: &'a [u8]) -> Option<RawValue<'a>> {
        if self.body_kind() != BodyKind::Value {
            return None;
        }
        self.value(bytes, Section::Body)
    }

    /// A property by its place; `None` for null.
    #[inline]
    fn property<'a>(&self, bytes: &'a [u8], index: usize) -> Option<RawValue<'a>> {
        self.raw_properties(bytes)?.nth(index).filter(|value| !value.is_null())
    }

    /// What follows the descriptor of a section.
    #[inline]
    pub(crate) fn value<'a>(&self, bytes: &'a [u8], section: Section) -> Option<RawValue<'a>> {
        let mut decoder = Decoder::new(bytes.get(self.range(section))?);
        if decoder.is_empty() {
            return None;
        }
        decoder.descriptor().ok()?;
        Some(RawValue::new(decoder.rest()))
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Message, MessageId};
    use crate::section::scan;
    use crate::types::{Map, Timestamp, Type, Value};
    use crate::{Encode, Limits};

    #[test]
    fn single_fields_are_read_without_the_rest() {
        let mut message = Message::of_value("body");
        message.header_mut().ttl = Some(5000);
        message.delivery_annotations = Some(Map::new().with("d", true));
        message.set_message_annotation("a", 1u32);
        message.set_application_property("colour", "red");
        let properties = message.properties_mut();
        properties.message_id = Some(MessageId::from(7));
        properties.user_id = Some(b"me".to_vec());
        properties.to = Some("to".into());
        properties.subject = Some("subject".into());
        properties.reply_to = Some("reply".into());
        properties.content_type = Some("text/plain".into());
        properties.absolute_expiry_time = Some(Timestamp(99));
        properties.creation_time = Some(Timestamp(-5));
        properties.group_id = Some("g".into());
        properties.group_sequence = Some(u32::MAX);
        let bytes = message.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();

        assert_eq!(sections.header(&bytes), message.header.unwrap());
        assert_eq!(sections.delivery_annotations(&bytes).unwrap().count(), 1);
        assert_eq!(sections.message_annotation(&bytes, "a").unwrap().as_u64(), Some(1));
        assert!(sections.message_annotation(&bytes, "b").is_none());
        let colour = sections.application_property(&bytes, "colour").unwrap();
        assert_eq!(colour.as_str(), Some("red"));
        assert_eq!(sections.message_id(&bytes).unwrap().type_of(), Type::Ulong);
        assert_eq!(sections.user_id(&bytes), Some(&b"me"[..]));
        assert_eq!(sections.to(&bytes), Some("to"));
        assert_eq!(sections.subject(&bytes), Some("subject"));
        assert_eq!(sections.reply_to(&bytes), Some("reply"));
        assert_eq!(sections.correlation_id(&bytes), None);
        assert_eq!(sections.content_type(&bytes), Some("text/plain"));
        assert_eq!(sections.absolute_expiry_time(&bytes), Some(99));
        assert_eq!(sections.creation_time(&bytes), Some(-5));
        assert_eq!(sections.group_id(&bytes), Some("g"));
        assert_eq!(sections.group_sequence(&bytes), Some(u32::MAX));
        let body = sections.body_value(&bytes).unwrap();
        assert_eq!(body.decode(), Ok(Value::from("body")));
    }

    #[test]
    fn properties_of_any_size_are_read_alike() {
        for subject in [0, 100, 255, 256, 70_000] {
            let mut message = Message::of_value("body");
            let properties = message.properties_mut();
            properties.message_id = Some(MessageId::from("id"));
            properties.user_id = Some(vec![b'u'; subject]);
            properties.subject = Some("s".repeat(subject));
            let bytes = message.to_bytes();
            let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
            assert_eq!(sections.user_id(&bytes).map(<[u8]>::len), Some(subject));
            assert_eq!(sections.subject(&bytes).map(str::len), Some(subject));
            assert_eq!(sections.reply_to(&bytes), None);
        }
    }

    #[test]
    fn a_message_without_properties_has_none_of_them() {
        let bytes = Message::of_data("x").to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(sections.header(&bytes), Default::default());
        assert!(sections.raw_properties(&bytes).is_none());
        assert!(sections.to(&bytes).is_none());
        assert!(sections.application_property(&bytes, "a").is_none());
        assert!(sections.body_value(&bytes).is_none());
    }
}
