//! Sections of message annotations that differ in nothing but numbers.

use crate::descriptor;
use crate::encode::{CompoundWriter, Encode, encode_descriptor};
use crate::types::{Symbol, codes};

/// A section of message annotations with blanks for numbers: encoded once, and for each message
/// copied and filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    bytes: Box<[u8]>,
    blanks: Vec<Blank>,
}

/// Where a number of a form goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blank {
    at: usize,
    width: Width,
}

/// What kind of number an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A `uint`.
    Uint,
    /// A `long`.
    Long,
}

impl Form {
    /// The section with these annotations; each key may be there once.
    pub fn new(annotations: &[(&Symbol, Width)]) -> Form {
        let mut bytes = Vec::new();
        let mut blanks = Vec::new();
        encode_descriptor(&mut bytes, descriptor::MESSAGE_ANNOTATIONS);
        let compound = CompoundWriter::begin(&mut bytes);
        for (key, width) in annotations {
            key.encode(&mut bytes);
            bytes.push(width.code());
            blanks.push(Blank { at: bytes.len(), width: *width });
            bytes.resize(bytes.len() + width.len(), 0);
        }
        let items_end = bytes.len();
        compound.finish(&mut bytes, annotations.len() as u32 * 2, codes::MAP8, codes::MAP32);
        // The header of the map may have grown.
        for blank in &mut blanks {
            blank.at = bytes.len() - (items_end - blank.at);
        }
        Form { bytes: bytes.into_boxed_slice(), blanks }
    }

    /// Appends the section with these numbers, in the order of the annotations.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, numbers: &[i64]) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        self.fill(&mut out[start..], numbers);
    }

    /// Puts other numbers into a section that was written before.
    #[inline]
    pub fn fill(&self, section: &mut [u8], numbers: &[i64]) {
        for (blank, number) in self.blanks.iter().zip(numbers) {
            let at = blank.at;
            match blank.width {
                Width::Uint => section[at..at + 4].copy_from_slice(&(*number as u32).to_be_bytes()),
                Width::Long => section[at..at + 8].copy_from_slice(&number.to_be_bytes()),
            }
        }
    }
}

impl Width {
    fn code(self) -> u8 {
        match self {
            Width::Uint => codes::UINT,
            Width::Long => codes::LONG,
        }
    }

    fn len(self) -> usize {
        match self {
            Width::Uint => 4,
            Width::Long => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Map, Message, Value};

    #[test]
    fn a_form_that_is_filled_in_is_a_section_of_annotations() {
        for len in [1, 30, 228, 229, 230, 231, 300] {
            let key = Symbol::new("k".repeat(len)).unwrap();
            let time = Symbol::from_static("time");
            let form = Form::new(&[(&key, Width::Uint), (&time, Width::Long)]);
            for (number, at) in [(0, 0), (7, 1), (u32::MAX, i64::MAX)] {
                let mut bytes = Vec::new();
                form.write(&mut bytes, &[1, 2]);
                form.fill(&mut bytes, &[number.into(), at]);
                bytes.extend_from_slice(&[0x00, 0x53, 0x77, 0x40]);
                let message = Message::decode(&bytes).unwrap();
                let mut expected = Map::new();
                expected.insert(key.clone(), number);
                expected.insert(time.clone(), Value::Long(at));
                assert_eq!(message.message_annotations, Some(expected));
            }
        }
    }
}
