//! What a message belongs to: its group.

use crate::settings::{NameSource, Naming};
use mochila_wire::section::Section;
use mochila_wire::types::Type;
use mochila_wire::{RawValue, Sections};
use std::io::Write;
use std::sync::Arc;

/// The names of the messages of a batch: where they are, and their hashes.
///
/// The names stay in the messages; only what is not text there is written out beside them.
#[derive(Debug, Default)]
pub(crate) struct MessageNames {
    /// What names the messages; kept for the next batch, which mostly goes to the same queue.
    naming: Option<Arc<Naming>>,
    /// The address of the queue whose messages are named like this, or have been.
    queue: usize,
    names: Vec<FoundName>,
    texts: Vec<u8>,
    /// What stood in front of a name that was found among application properties, from where they
    /// begin: a message in which the same bytes stand there has its name in the same place.
    before: Vec<u8>,
    /// How long that name was.
    len_there: u32,
}

#[derive(Clone, Copy, Debug)]
struct FoundName {
    hash: u64,
    start: u32,
    len: u32,
    place: Place,
    is_last: bool,
}

/// Where a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the message.
    Message,
    /// Among the texts that have been written out.
    Texts,
    /// It is the default.
    Default,
    /// There is none: the message belongs to nothing.
    Nowhere,
}

/// The name that a message has, or its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageName<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) hash: u64,
    /// It ends the group: what comes later under this name is another one (JMSXGroupSeq -1).
    pub(crate) is_last: bool,
}

impl MessageNames {
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.texts.clear();
    }

    /// What names the messages of a queue, as far as is known here: it may have changed.
    pub(crate) fn known(&self, queue: usize) -> Option<&Arc<Naming>> {
        self.naming.as_ref().filter(|_| self.queue == queue)
    }

    pub(crate) fn learn(&mut self, queue: usize, naming: Arc<Naming>) {
        self.clear();
        self.before.clear();
        self.queue = queue;
        self.naming = Some(naming);
    }

    /// True if the names of so many messages have been found like this.
    pub(crate) fn are_found(&self, naming: &Arc<Naming>, messages: usize) -> bool {
        let is_same = self.naming.as_ref().is_some_and(|known| Arc::ptr_eq(known, naming));
        is_same && self.names.len() == messages
    }

    pub(crate) fn start(&mut self, naming: &Arc<Naming>) {
        self.clear();
        self.before.clear();
        self.naming = Some(Arc::clone(naming));
    }

    /// Finds the name of the next message.
    pub(crate) fn push(&mut self, sections: &Sections, bytes: &[u8]) {
        let Some(naming) = self.naming.take() else { return };
        if let Some(start) = self.same_place(sections, bytes) {
            let (len, place) = (self.len_there, Place::Message);
            let is_last = ends_group(sections, bytes);
            let found = FoundName { hash: 0, start: start as u32, len, place, is_last };
            let hash = naming.hash(&bytes[found.range()]);
            self.names.push(FoundName { hash, ..found });
            self.naming = Some(naming);
            return;
        }
        let (value, is_last) = look_up(&naming.source, sections, bytes);
        let name = match value.and_then(|value| self.text(value, bytes)) {
            Some((place, start, name)) => {
                let (start, len) = (start as u32, name as u32);
                FoundName { hash: 0, start, len, place, is_last }
            }
            None if naming.default.is_some() => {
                let (hash, place) = (naming.default_hash, Place::Default);
                FoundName { hash, start: 0, len: 0, place, is_last }
            }
            None => FoundName { hash: 0, start: 0, len: 0, place: Place::Nowhere, is_last },
        };
        let hash = match name.place {
            Place::Message => naming.hash(&bytes[name.range()]),
            Place::Texts => naming.hash(&self.texts[name.range()]),
            Place::Default | Place::Nowhere => name.hash,
        };
        if name.place == Place::Message && matches!(naming.source, NameSource::Application(_)) {
            self.note_place(sections, bytes, name);
        }
        self.names.push(FoundName { hash, ..name });
        self.naming = Some(naming);
    }

    /// Where the name begins, if the message begins its application properties as the last one did.
    #[inline]
    fn same_place(&self, sections: &Sections, bytes: &[u8]) -> Option<usize> {
        let section = sections.range(Section::ApplicationProperties);
        let start = section.start + self.before.len();
        let is_same = !self.before.is_empty()
            && start + self.len_there as usize <= section.end
            && bytes[section.start..start] == self.before[..];
        is_same.then_some(start)
    }

    /// Notes what stands in front of a name.
    fn note_place(&mut self, sections: &Sections, bytes: &[u8], name: FoundName) {
        let start = sections.range(Section::ApplicationProperties).start;
        self.before.clear();
        if name.start as usize - start <= MOST_BEFORE {
            self.before.extend_from_slice(&bytes[start..name.start as usize]);
            self.len_there = name.len;
        }
    }

    /// The name of one message, whose bytes are got if they are needed; `None` if it has none.
    pub(crate) fn get<'a>(
        &'a self,
        index: usize,
        bytes: impl FnOnce() -> &'a [u8],
    ) -> Option<MessageName<'a>> {
        let name = self.names.get(index)?;
        let text = match name.place {
            Place::Message => &bytes()[name.range()],
            Place::Texts => &self.texts[name.range()],
            Place::Default => self.naming.as_ref()?.default.as_ref()?.as_bytes(),
            Place::Nowhere => return None,
        };
        Some(MessageName { name: text, hash: name.hash, is_last: name.is_last })
    }

    /// Where the text of a value begins and how long it is; `None` if it names nothing.
    fn text(&mut self, value: RawValue<'_>, bytes: &[u8]) -> Option<(Place, usize, usize)> {
        if let Some(text) = value.text().or_else(|| value.as_binary()) {
            let start = text.as_ptr() as usize - bytes.as_ptr() as usize;
            return (!text.is_empty()).then_some((Place::Message, start, text.len()));
        }
        let start = self.texts.len();
        write_text(&mut self.texts, value)?;
        Some((Place::Texts, start, self.texts.len() - start))
    }
}

impl FoundName {
    fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// The value that names the message, and whether it is the last of its group.
fn look_up<'a>(
    source: &NameSource,
    sections: &Sections,
    bytes: &'a [u8],
) -> (Option<RawValue<'a>>, bool) {
    let mut properties = sections.raw_properties(bytes);
    let group_id = properties.as_mut().and_then(|properties| properties.nth(GROUP_ID));
    let sequence = properties.and_then(|mut properties| properties.next());
    let is_last = is_end(sequence);
    let value = match source {
        NameSource::GroupId => group_id,
        NameSource::Application(name) => sections.application_property(bytes, name),
    };
    (value, is_last)
}

/// Whether the message is the last of its group.
fn ends_group(sections: &Sections, bytes: &[u8]) -> bool {
    let properties = sections.raw_properties(bytes);
    is_end(properties.and_then(|mut properties| properties.nth(GROUP_ID + 1)))
}

fn is_end(sequence: Option<RawValue<'_>>) -> bool {
    sequence.and_then(RawValue::as_i64).is_some_and(|number| number as u32 == LAST)
}

/// Writes a value that is no text as Qpid does: 7 and "7" are one name.
fn write_text(out: &mut Vec<u8>, value: RawValue<'_>) -> Option<()> {
    if let Some(number) = value.as_i64() {
        return write!(out, "{number}").ok();
    }
    if let Some(number) = value.as_u64() {
        return write!(out, "{number}").ok();
    }
    if let Some(flag) = value.as_bool() {
        return write!(out, "{}", if flag { "True" } else { "False" }).ok();
    }
    if let Some(number) = value.as_f64() {
        return write!(out, "{number}").ok();
    }
    match value.type_of() {
        Type::Uuid => {
            let uuid = value.bytes().get(1..17)?;
            for (index, byte) in uuid.iter().enumerate() {
                let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(out, "{dash}{byte:02x}").ok()?;
            }
            Some(())
        }
        Type::Char => {
            let code = value.bytes().get(1..5)?.try_into().ok()?;
            write!(out, "{}", char::from_u32(u32::from_be_bytes(code))?).ok()
        }
        _ => None,
    }
}

/// The places of `group-id` and, after it, `group-sequence` in the properties.
const GROUP_ID: usize = 10;
/// Names are looked for in the same place if no more than so many bytes stand in front of them.
const MOST_BEFORE: usize = 128;
/// The group-sequence that ends a group: -1 in JMS.
const LAST: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::QueueSettings;
    use mochila_wire::section::scan;
    use mochila_wire::{Encode, Limits, Message, Value};

    fn naming(key: Option<&str>, default: Option<&str>) -> Arc<Naming> {
        let settings = QueueSettings {
            shared_groups: true,
            group_header_key: key.map(Box::from),
            default_group: default.map(Box::from),
            ..QueueSettings::default()
        };
        Arc::new(Naming::of_groups(&settings).unwrap().unwrap())
    }

    fn found(naming: &Arc<Naming>, message: &Message) -> Option<(String, u64, bool)> {
        let bytes = message.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        let mut names = MessageNames::default();
        names.start(naming);
        names.push(&sections, &bytes);
        let group = names.get(0, || &bytes)?;
        let name = String::from_utf8(group.name.to_vec()).unwrap();
        Some((name, group.hash, group.is_last))
    }

    fn coloured(colour: impl Into<Value>) -> Message {
        let mut message = Message::of_value("body");
        message.set_application_property("colour", colour);
        message
    }

    fn name_of(colour: impl Into<Value>) -> String {
        found(&naming(Some("colour"), None), &coloured(colour)).unwrap().0
    }

    #[test]
    fn seven_is_seven_whether_it_is_a_number_or_text() {
        let naming = naming(Some("colour"), None);
        let text = found(&naming, &coloured("7"));
        assert_eq!(text.as_ref().unwrap().0, "7");
        for number in [Value::Int(7), Value::Ulong(7), Value::Ubyte(7), Value::Double(7.0)] {
            assert_eq!(found(&naming, &coloured(number)), text);
        }
    }

    #[test]
    fn a_name_is_found_in_the_same_place_and_in_another_one() {
        let naming = naming(Some("colour"), None);
        let mut names = MessageNames::default();
        names.start(&naming);
        let mut other = Message::of_value("body");
        other.set_application_property("shape", "round");
        other.set_application_property("colour", "blue");
        let mut last = coloured("grey");
        last.properties_mut().group_sequence = Some(u32::MAX);
        let none = Message::of_value("colour");
        let messages =
            [coloured("blue"), coloured("grey"), coloured("black"), other, coloured("red"), last];
        let messages = [&messages[..], &[none, coloured(7u32), coloured("teal")]].concat();
        let mut found = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let bytes = message.to_bytes();
            names.push(&scan(&bytes, &Limits::DEFAULT).unwrap(), &bytes);
            let name = names.get(index, || &bytes).unwrap();
            assert_eq!(name.hash, naming.hash(name.name));
            found.push((String::from_utf8(name.name.to_vec()).unwrap(), name.is_last));
        }
        let expected =
            ["blue", "grey", "black", "blue", "red", "grey", "qpid.no-group", "7", "teal"];
        let expected: Vec<_> =
            expected.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at == 5)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_simple_value_names_a_group() {
        assert_eq!(name_of(Value::Long(-3)), "-3");
        assert_eq!(name_of(Value::Ulong(u64::MAX)), "18446744073709551615");
        assert_eq!(name_of(true), "True");
        assert_eq!(name_of(Value::Double(0.5)), "0.5");
        assert_eq!(name_of(Value::Char('é')), "é");
        assert_eq!(name_of(Value::Binary(b"raw".to_vec())), "raw");
        assert_eq!(name_of(Value::Uuid([0x1f; 16])), "1f1f1f1f-1f1f-1f1f-1f1f-1f1f1f1f1f1f");
    }

    #[test]
    fn a_message_without_a_name_or_with_an_empty_one_is_in_the_default_group() {
        let usual = naming(Some("colour"), None);
        let explicit = found(&usual, &coloured("qpid.no-group")).unwrap();
        for message in [Message::of_value("body"), coloured(""), coloured(Value::Null)] {
            assert_eq!(found(&usual, &message).unwrap(), explicit);
        }
        assert_eq!(found(&naming(Some("colour"), Some("")), &coloured("")), None);
    }

    #[test]
    fn the_group_may_be_the_group_id_and_its_sequence_may_end_it() {
        let mut message = Message::of_value("body");
        message.properties_mut().group_id = Some("g".into());
        let by_id = naming(None, None);
        assert!(matches!(found(&by_id, &message), Some((name, _, false)) if name == "g"));
        message.properties_mut().group_sequence = Some(u32::MAX);
        assert!(matches!(found(&by_id, &message), Some((name, _, true)) if name == "g"));
        let mut message = coloured("red");
        message.properties_mut().group_sequence = Some(u32::MAX);
        let by_colour = naming(Some("colour"), None);
        assert!(matches!(found(&by_colour, &message), Some((name, _, true)) if name == "red"));
    }
}
