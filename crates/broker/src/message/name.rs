//! What a message belongs to: its group.

use super::Head;
use super::name_place::NamePlace;
use super::name_table::{MessageName, NameTable};
use crate::settings::{NameSource, Naming};
use mochila_wire::types::Type;
use mochila_wire::{Decoder, RawValue, Sections};
use std::io::Write;
use std::sync::Arc;

/// The names of the messages of a batch.
#[derive(Debug, Default)]
pub(crate) struct MessageNames {
    /// What names the messages; kept for the next batch, which mostly goes to the same queue.
    naming: Option<Arc<Naming>>,
    /// The address of the queue whose messages are named like this, or have been.
    queue: usize,
    named: Vec<Named>,
    table: NameTable,
    /// The last name that was no text, written out.
    written: Vec<u8>,
    /// Where the last name was found.
    place: NamePlace,
}

/// Which name of its batch a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The number of the name, or `NAMELESS`: the message belongs to nothing.
    pub(crate) number: u32,
    /// It ends the group: what comes later under this name is another one (JMSXGroupSeq -1).
    pub(crate) is_last: bool,
}

impl MessageNames {
    pub(crate) fn clear(&mut self) {
        self.named.clear();
        self.table.clear();
    }

    /// What names the messages of a queue, as far as is known here: it may have changed.
    pub(crate) fn known(&self, queue: usize) -> Option<&Arc<Naming>> {
        self.naming.as_ref().filter(|_| self.queue == queue)
    }

    pub(crate) fn learn(&mut self, queue: usize, naming: Arc<Naming>) {
        self.start(&naming);
        self.queue = queue;
    }

    /// True if the names of so many messages have been found like this.
    pub(crate) fn are_found(&self, naming: &Arc<Naming>, messages: usize) -> bool {
        let is_same = self.naming.as_ref().is_some_and(|known| Arc::ptr_eq(known, naming));
        is_same && self.named.len() == messages
    }

    pub(crate) fn start(&mut self, naming: &Arc<Naming>) {
        self.clear();
        self.place.forget();
        self.naming = Some(Arc::clone(naming));
    }

    /// Finds the name of the next message.
    #[inline]
    pub(crate) fn push(&mut self, head: Head, bytes: &[u8]) {
        let Some(naming) = &self.naming else { return };
        let found = bytes.get(head.range(naming.source.section()));
        let found = found.and_then(|section| self.place.find(section));
        let Some((name, rest)) = found.filter(|(name, _)| !name.is_empty()) else {
            return self.push_any(&head.sections(bytes), bytes);
        };
        let is_last = match naming.source {
            NameSource::GroupId => is_end(Decoder::new(rest).raw().ok()),
            NameSource::Application(_) => {
                head.has_properties() && ends_group(&head.sections(bytes), bytes)
            }
        };
        let number = self.table.number(name, naming);
        self.named.push(Named { number, is_last });
    }

    /// Finds the name of the next message wherever it is.
    fn push_any(&mut self, sections: &Sections, bytes: &[u8]) {
        let Some(naming) = &self.naming else { return };
        let (value, is_last) = look_up(&naming.source, sections, bytes);
        let text = value.and_then(|value| value.text().or_else(|| value.as_binary()));
        self.written.clear();
        let written = value.filter(|_| text.is_none());
        let written = written.and_then(|value| write_text(&mut self.written, value));
        let name = text.or(written.map(|()| &self.written[..])).filter(|name| !name.is_empty());
        let default = || naming.default.as_ref().map(|name| name.as_bytes());
        let number = name.or_else(default).map(|name| self.table.number(name, naming));
        self.named.push(Named { number: number.unwrap_or(NAMELESS), is_last });
        if let Some(text) = text {
            self.place.note(sections, naming.source.section(), bytes, text);
        }
    }

    /// Which name a message has.
    #[inline]
    pub(crate) fn named(&self, index: usize) -> Named {
        self.named.get(index).copied().unwrap_or(Named { number: NAMELESS, is_last: false })
    }

    /// One of the names; `None` if it is that of messages that have none.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<MessageName<'_>> {
        self.table.get(number)
    }

    /// How many names there are.
    pub(crate) fn count(&self) -> usize {
        self.table.len()
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
    if let Some(number) = value.as_u64() {
        write_decimal(out, number);
        return Some(());
    }
    if let Some(number) = value.as_i64() {
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

/// Writes a number as everybody does, only faster: it may be the key of every message.
fn write_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len() - 1;
    while number >= 10 {
        digits[start] += (number % 10) as u8;
        number /= 10;
        start -= 1;
    }
    digits[start] += number as u8;
    out.extend_from_slice(&digits[start..]);
}

/// The number of no name.
pub(crate) const NAMELESS: u32 = u32::MAX;
/// The places of `group-id` and, after it, `group-sequence` in the properties.
const GROUP_ID: usize = 10;
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

    fn found(naming: &Arc<Naming>, message: &Message) -> Option<(String, u32, bool)> {
        let mut names = MessageNames::default();
        names.start(naming);
        push(&mut names, message);
        let Named { number, is_last } = names.named(0);
        let group = names.get(number)?;
        let name = String::from_utf8(group.name.to_vec()).unwrap();
        Some((name, group.hash, is_last))
    }

    fn push(names: &mut MessageNames, message: &Message) {
        let bytes = message.to_bytes();
        names.push(Head::of(&scan(&bytes, &Limits::DEFAULT).unwrap()), &bytes);
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
            push(&mut names, message);
            let Named { number, is_last } = names.named(index);
            let name = names.get(number).unwrap();
            assert_eq!(name.hash, naming.hash(name.name));
            found.push((String::from_utf8(name.name.to_vec()).unwrap(), is_last));
        }
        let expected =
            ["blue", "grey", "black", "blue", "red", "grey", "qpid.no-group", "7", "teal"];
        let expected: Vec<_> =
            expected.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at == 5)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sequence_ends_the_group_wherever_its_name_is_found() {
        for key in [None, Some("colour")] {
            let mut names = MessageNames::default();
            names.start(&naming(key, None));
            for sequence in [Some(1), Some(u32::MAX), None, Some(2), Some(u32::MAX)] {
                let mut message = coloured("blue");
                message.properties_mut().group_id = Some("blue".into());
                message.properties_mut().group_sequence = sequence;
                message.properties_mut().reply_to_group_id = Some("red".into());
                push(&mut names, &message);
            }
            let ends = (0..5).map(|index| names.named(index).is_last).collect::<Vec<_>>();
            assert_eq!(ends, [false, true, false, false, true]);
            assert_eq!(names.count(), 1);
        }
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
