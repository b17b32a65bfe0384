use crate::decode::{DecodeError, Decoder};
use crate::descriptor;
use crate::encode::{Encode, encode_descriptor};
use crate::types::Value;

/// The content of a message: sections of one kind, or none (part 3, 3.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// No body section. The specification wants one, and senders exist that leave it out.
    #[default]
    Empty,
    /// Bytes, in one or more sections (3.2.6).
    Data(Vec<Vec<u8>>),
    /// Values, in one or more lists (3.2.7).
    Sequence(Vec<Vec<Value>>),
    /// One value (3.2.8).
    Value(Value),
}

impl Body {
    /// The value, if the body is one.
    pub fn as_value(&self) -> Option<&Value> {
        match self {
            Body::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The text or bytes that the body is, in one piece; `None` for values of other types.
    pub fn content(&self) -> Option<Vec<u8>> {
        match self {
            Body::Empty | Body::Value(Value::Null) => Some(Vec::new()),
            Body::Data(sections) => Some(sections.concat()),
            Body::Value(Value::Binary(bytes)) => Some(bytes.clone()),
            Body::Value(value) => value.as_str().map(|text| text.as_bytes().to_vec()),
            Body::Sequence(_) => None,
        }
    }

    /// Reads a body section whose descriptor has been read, and adds it.
    pub(super) fn decode_section(
        &mut self,
        descriptor: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        match (descriptor, &mut *self) {
            (descriptor::DATA, Body::Data(sections)) => sections.push(decoder.binary()?.to_vec()),
            (descriptor::DATA, _) => *self = Body::Data(vec![decoder.binary()?.to_vec()]),
            (descriptor::AMQP_SEQUENCE, Body::Sequence(lists)) => lists.push(list(decoder)?),
            (descriptor::AMQP_SEQUENCE, _) => *self = Body::Sequence(vec![list(decoder)?]),
            _ => *self = Body::Value(decoder.value()?),
        }
        Ok(())
    }
}

impl Encode for Body {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Body::Empty => {}
            Body::Data(sections) => {
                for section in sections {
                    encode_descriptor(out, descriptor::DATA);
                    section.encode(out);
                }
            }
            Body::Sequence(lists) => {
                for list in lists {
                    encode_descriptor(out, descriptor::AMQP_SEQUENCE);
                    list.as_slice().encode(out);
                }
            }
            Body::Value(value) => {
                encode_descriptor(out, descriptor::AMQP_VALUE);
                value.encode(out);
            }
        }
    }
}

fn list(decoder: &mut Decoder<'_>) -> Result<Vec<Value>, DecodeError> {
    let mut fields = decoder.list()?;
    // The count is backed by the list's bytes: every element takes at least one.
    let mut values = Vec::with_capacity(fields.left() as usize);
    while let Some(element) = fields.next_element() {
        values.push(element.value()?);
    }
    fields.finish(decoder)?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_content_and_other_values_are_not() {
        assert_eq!(Body::Value("a".into()).content(), Some(b"a".to_vec()));
        assert_eq!(Body::Data(vec![vec![1], vec![2]]).content(), Some(vec![1, 2]));
        assert_eq!(Body::Empty.content(), Some(Vec::new()));
        assert_eq!(Body::Value(7u32.into()).content(), None);
    }
}
