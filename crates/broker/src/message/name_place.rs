//! Where messages of one sender have their names.

use mochila_wire::section::Section;
use mochila_wire::{RawValue, Sections};

/// How a section begins in which a name was found, up to the name: a message in which it begins
/// alike has its name in the same place, and nobody need go through its values.
///
/// Alike are descriptors, keys, types and sizes; what the values in front of the name are does not
/// matter, so messages may be numbered.
#[derive(Debug, Default)]
pub(super) struct NamePlace {
    /// What it begins with, eight bytes at a time. Empty if no name has been found that can be found
    /// again like this.
    words: Vec<Word>,
    /// The last eight bytes in front of the size of the name; they may overlap the others.
    last: Word,
    /// How many bytes are in front of the size of the name, which is one byte.
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    bits: u64,
    /// Which of them matter.
    mask: u64,
}

impl NamePlace {
    pub(super) fn forget(&mut self) {
        self.words.clear();
    }

    /// The name in a section, and what follows it there, if the section begins like the one in which
    /// a name was found.
    #[inline]
    pub(super) fn find<'a>(&self, section: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (front, rest) = section.split_at_checked(self.len)?;
        let last = self.last.differs(front.last_chunk()?);
        let words = front.as_chunks().0.iter().zip(&self.words);
        let differs = words.fold(last, |differs, (bytes, word)| differs | word.differs(bytes));
        if differs != 0 || self.words.is_empty() {
            return None;
        }
        let (size, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(*size))
    }

    /// Notes where a name was found.
    pub(super) fn note(
        &mut self,
        sections: &Sections,
        section: Section,
        bytes: &[u8],
        name: &[u8],
    ) {
        self.forget();
        let range = sections.range(section);
        let end = name.as_ptr().addr() - bytes.as_ptr().addr();
        let Some(front) = bytes.get(range.start..end) else { return };
        let [.., code, _] = front else { return };
        let is_usual = front.starts_with(&[DESCRIBED, SMALL_ULONG]) && code >> 4 == SHORT;
        let len = front.len() - 1;
        if !is_usual || !(LEAST..=MOST).contains(&len) {
            return;
        }
        let mut matters = [true; MOST];
        // The size of the map or list is what follows from that of its values.
        let sizes = if front[3] >> 4 == SHORT_COMPOUND { 4..5 } else { 4..8 };
        matters[sizes].fill(false);
        for value in values(sections, section, bytes) {
            let start = value.bytes().as_ptr().addr() - bytes.as_ptr().addr() - range.start;
            let content = start + structure_bytes(value.bytes());
            if start >= len {
                break;
            }
            let end = (start + value.bytes().len()).min(len);
            matters[content.min(end)..end].fill(false);
        }
        self.len = len;
        let word = |at: usize| Word::new(&front[at..], &matters[at..]);
        self.words.extend((0..len / 8).map(|index| word(index * 8)));
        self.last = word(len - 8);
    }
}

impl Word {
    /// The first eight bytes of these.
    fn new(bytes: &[u8], matters: &[bool]) -> Word {
        let mut word = Word::default();
        for (at, (byte, matters)) in bytes.iter().zip(matters).take(8).enumerate() {
            word.bits |= u64::from(*byte) << (at * 8);
            word.mask |= u64::from(if *matters { u8::MAX } else { 0 }) << (at * 8);
        }
        word
    }

    /// Not 0 if other bytes differ where it matters.
    #[inline]
    fn differs(self, bytes: &[u8; 8]) -> u64 {
        (u64::from_le_bytes(*bytes) ^ self.bits) & self.mask
    }
}

/// The values of a section whose contents do not matter.
fn values<'a>(
    sections: &Sections,
    section: Section,
    bytes: &'a [u8],
) -> impl Iterator<Item = RawValue<'a>> {
    let (map, list) = match section {
        Section::ApplicationProperties => (sections.application_properties(bytes), None),
        _ => (None, sections.raw_properties(bytes)),
    };
    let values = map.into_iter().flatten().map(|(_, value)| value);
    values.chain(list.into_iter().flatten())
}

/// How many bytes of a value are its type and its size; all of them if that is hard to say.
fn structure_bytes(value: &[u8]) -> usize {
    match value.first().map_or(0, |code| code >> 4) {
        0 => value.len(),
        0x4..=0x9 => 1,
        0xa | 0xc | 0xe => 2,
        _ => 5,
    }
}

/// The constructor of a described type, and that of its descriptor, as nearly all have them.
const DESCRIBED: u8 = 0x00;
const SMALL_ULONG: u8 = 0x53;
/// The upper half of the constructors of text with a size of one byte, and of compounds with one.
const SHORT: u8 = 0xa;
const SHORT_COMPOUND: u8 = 0xc;
/// Names are looked for in the same place if so many bytes stand in front of them.
const LEAST: usize = 8;
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::section::scan;
    use mochila_wire::{Encode, Limits, Message};

    /// What is found in a message, after the name of another one has been noted.
    fn found(noted: &Message, other: &Message, section: Section) -> Option<Vec<u8>> {
        let bytes = noted.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        let name = match section {
            Section::Properties => sections.group_id(&bytes),
            _ => sections.application_property(&bytes, "colour").and_then(RawValue::as_str),
        };
        let mut place = NamePlace::default();
        place.note(&sections, section, &bytes, name.unwrap().as_bytes());
        assert_eq!(
            place.find(&bytes[sections.range(section)]).unwrap().0,
            name.unwrap().as_bytes()
        );
        let bytes = other.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        place.find(&bytes[sections.range(section)]).map(|(name, _)| name.to_vec())
    }

    fn numbered(number: u32, colour: &str) -> Message {
        let mut message = Message::of_value("body");
        message.set_application_property("sn", number + 1_000);
        message.set_application_property("text", format!("{number:05}"));
        message.set_application_property("colour", colour);
        message.set_application_property("behind", number);
        message
    }

    #[test]
    fn a_name_is_found_behind_other_values_and_whatever_its_length() {
        let find = |other| found(&numbered(1, "red"), &other, Section::ApplicationProperties);
        assert_eq!(find(numbered(77, "blue")).as_deref(), Some(&b"blue"[..]));
        assert_eq!(find(numbered(99_999, "")).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn keys_and_types_and_sizes_in_front_of_it_have_to_be_the_same() {
        let find = |other| found(&numbered(1, "red"), &other, Section::ApplicationProperties);
        assert_eq!(find(numbered(123_456, "blue")), None);
        let mut other_type = numbered(1, "red");
        other_type.set_application_property("sn", 5u64 << 40);
        assert_eq!(find(other_type), None);
        let mut other_key = Message::of_value("body");
        other_key.set_application_property("sm", 1_000u32);
        other_key.set_application_property("text", "00001");
        other_key.set_application_property("colour", "red");
        other_key.set_application_property("behind", 1u32);
        assert_eq!(find(other_key), None);
        assert_eq!(find(Message::of_value("body")), None);
    }

    #[test]
    fn a_group_id_is_found_among_the_properties() {
        let message = |id: &str, group: &str| {
            let mut message = Message::of_value("body");
            message.properties_mut().message_id = Some(id.into());
            message.properties_mut().group_id = Some(group.into());
            message
        };
        let find = |other| found(&message("id-1", "red"), &other, Section::Properties);
        assert_eq!(find(message("id-2", "blue")).as_deref(), Some(&b"blue"[..]));
        assert_eq!(find(message("id-10", "blue")), None);
        assert_eq!(find(Message::of_value("body")), None);
    }
}
