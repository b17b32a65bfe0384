//! Writes what changes on the way in front of a bare message that does not (part 3, 3.2).
//!
//! A message goes out as `[header'][delivery annotations][message annotations']` followed by the
//! bytes that it came in. Adding to the annotation map means a new map header, the original items
//! as they are, and the added pairs: the cost is that of copying the bytes in front of the bare
//! message, and what is inside the user's annotations is never decoded.

use crate::decode::{Decoder, RawList, RawValue, value_len};
use crate::descriptor;
use crate::encode::{CompoundWriter, Encode, ListWriter, encode_descriptor};
use crate::message::Header;
use crate::section::{Section, Sections};
use crate::types::{Symbol, Value, codes};

/// What is to be different about a message when it is sent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeadPatch<'a> {
    /// The delivery count that the message has now.
    pub delivery_count: u32,
    /// The time that the message has left; `None` leaves the header's.
    pub ttl_ms: Option<u32>,
    /// Whether the header's ttl goes, if there is no other.
    pub drop_ttl: bool,
    /// Whether nobody has acquired the message before; `None` leaves the header's.
    pub first_acquirer: Option<bool>,
    /// Whether the delivery annotations end here, as they do for everybody but the next hop.
    pub drop_delivery_annotations: bool,
    /// Message annotations to add. One that is there already is replaced where it stands, and
    /// keeps its type if the new value fits it; of two with the same key the last one counts.
    pub annotations: &'a [(Symbol, Value)],
}

/// Appends what replaces the beginning of a message, and returns from where on the message's own
/// bytes follow. If nothing changes nothing is appended, and that is the start.
///
/// `bytes` needs to hold the message at least up to where its bare message begins.
pub fn write_head(
    out: &mut Vec<u8>,
    bytes: &[u8],
    sections: &Sections,
    patch: &HeadPatch<'_>,
) -> usize {
    let drop_delivery_annotations =
        patch.drop_delivery_annotations && sections.has(Section::DeliveryAnnotations);
    let replace_annotations = !patch.annotations.is_empty();
    let replace_header = patch.changes(&sections.header(bytes));
    if !(replace_header || drop_delivery_annotations || replace_annotations) {
        return 0;
    }

    if replace_header {
        write_header(out, sections.value(bytes, Section::Header), patch);
    } else {
        out.extend_from_slice(&bytes[sections.range(Section::Header)]);
    }
    if !(drop_delivery_annotations || replace_annotations) {
        return sections.range(Section::Header).end;
    }

    if !drop_delivery_annotations {
        out.extend_from_slice(&bytes[sections.range(Section::DeliveryAnnotations)]);
    }
    if !replace_annotations {
        return sections.range(Section::DeliveryAnnotations).end;
    }

    write_annotations(out, &bytes[sections.range(Section::MessageAnnotations)], patch.annotations);
    sections.bare_start()
}

impl HeadPatch<'_> {
    fn changes(&self, header: &Header) -> bool {
        self.delivery_count != header.delivery_count
            || self.ttl_ms.is_some_and(|ttl| header.ttl != Some(ttl))
            || (self.drop_ttl && self.ttl_ms.is_none() && header.ttl.is_some())
            || self.first_acquirer.is_some_and(|first| header.first_acquirer != first)
    }
}

/// Writes the header with the fields that a patch has, and all others as they were.
fn write_header(out: &mut Vec<u8>, header: Option<RawValue<'_>>, patch: &HeadPatch<'_>) {
    let mut old = header.and_then(RawValue::as_list);
    let mut next =
        || old.as_mut().and_then(RawList::next).map_or(&[codes::NULL][..], |f| f.bytes());
    let mut list = ListWriter::composite(out, descriptor::HEADER);
    list.encoded(next());
    list.encoded(next());
    match (patch.ttl_ms, next()) {
        (Some(ttl), _) => list.field(&ttl),
        (None, _) if patch.drop_ttl => list.encoded(&[codes::NULL]),
        (None, old) => list.encoded(old),
    }
    match (patch.first_acquirer, next()) {
        (Some(first), _) => list.unless_default(&first, &false),
        (None, old) => list.encoded(old),
    }
    list.unless_default(&patch.delivery_count, &0);
    list.finish();
}

/// Writes the section of message annotations: `old` with pairs added or replaced.
fn write_annotations(out: &mut Vec<u8>, old: &[u8], added: &[(Symbol, Value)]) {
    let mut decoder = Decoder::new(old);
    let map = decoder.descriptor().and_then(|_| {
        let descriptor_len = old.len() - decoder.rest().len();
        decoder.map_compound().map(|map| (descriptor_len, map))
    });
    let Ok((descriptor_len, map)) = map else {
        // There was no section, so this is one of ours.
        encode_descriptor(out, descriptor::MESSAGE_ANNOTATIONS);
        let compound = CompoundWriter::begin(out);
        let count = add_pairs(out, added, |_| false);
        compound.finish(out, count, codes::MAP8, codes::MAP32);
        return;
    };
    out.extend_from_slice(&old[..descriptor_len]);
    // Symbols, their headers and small values: an estimate that is seldom too small.
    let estimate: usize = added.iter().map(|(key, _)| key.as_str().len() + 12).sum();
    let compound = CompoundWriter::begin_sized(out, map.items.len() + estimate);
    let replaced = copy_pairs(out, map.items, map.count, added);
    let count = add_pairs(out, added, |i| replaced.get(i).is_some_and(|replaced| *replaced));
    compound.finish(out, map.count.saturating_add(count), codes::MAP8, codes::MAP32);
}

/// Copies the pairs of a map, and replaces the values of those whose key is among the added ones.
/// Returns which of the added pairs are thereby done; empty if none.
fn copy_pairs(out: &mut Vec<u8>, items: &[u8], count: u32, added: &[(Symbol, Value)]) -> Vec<bool> {
    let mut replaced = Vec::new();
    let (mut copied, mut at) = (0, 0);
    for _ in 0..count / 2 {
        // What is malformed stays so; it is not ours to mend.
        let Some((key, key_len)) = annotation_key(&items[at..]) else { break };
        at += key_len;
        let Some(value_len) = raw_len(&items[at..]) else { break };
        if let Some(i) = key.and_then(|key| find(added, key)) {
            out.extend_from_slice(&items[copied..at]);
            replace(out, RawValue::new(&items[at..at + value_len]), &added[i].1);
            copied = at + value_len;
            replaced.resize(added.len(), false);
            replaced[i] = true;
        }
        at += value_len;
    }
    out.extend_from_slice(&items[copied..]);
    replaced
}

/// The key that these bytes begin with, if it is a symbol or a string, and its size.
#[inline(always)]
fn annotation_key(bytes: &[u8]) -> Option<(Option<&[u8]>, usize)> {
    if let [codes::SYMBOL8, size, rest @ ..] = bytes {
        let size = usize::from(*size);
        return Some((Some(rest.get(..size)?), size + 2));
    }
    let len = raw_len(bytes)?;
    Some((RawValue::new(&bytes[..len]).text(), len))
}

/// The size of the value that these bytes begin with.
#[inline(always)]
fn raw_len(bytes: &[u8]) -> Option<usize> {
    value_len(bytes).or_else(|| Decoder::new(bytes).raw().ok().map(|value| value.bytes().len()))
}

/// The last of the added pairs that has this key.
#[inline]
fn find(added: &[(Symbol, Value)], key: &[u8]) -> Option<usize> {
    added.iter().rposition(|(added, _)| added.as_str().as_bytes() == key)
}

/// Writes a value in place of another one: as the old type, if it fits.
fn replace(out: &mut Vec<u8>, old: RawValue<'_>, new: &Value) {
    match new.to_type(old.type_of()) {
        Some(same_type) => same_type.encode(out),
        None => new.encode(out),
    }
}

/// Writes pairs that are not done yet; returns the number of elements written.
fn add_pairs(out: &mut Vec<u8>, added: &[(Symbol, Value)], done: impl Fn(usize) -> bool) -> u32 {
    let mut count = 0;
    for (i, (key, value)) in added.iter().enumerate() {
        if done(i) || find(added, key.as_str().as_bytes()) != Some(i) {
            continue;
        }
        key.encode(out);
        value.encode(out);
        count += 2;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::message::{Message, Properties};
    use crate::section::scan;
    use crate::types::Map;

    fn annotated(message: &Message) -> (Vec<u8>, Sections) {
        let bytes = message.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        (bytes, sections)
    }

    /// Sends a message on and reads what arrives, after checking that its bare message is the
    /// same to the byte.
    fn forward(bytes: &[u8], patch: &HeadPatch<'_>) -> Message {
        let sections = scan(bytes, &Limits::DEFAULT).unwrap();
        let mut out = b"before".to_vec();
        let from = write_head(&mut out, bytes, &sections, patch);
        out.extend_from_slice(&bytes[from..]);
        let sent = &out[6..];
        let after = scan(sent, &Limits::DEFAULT).unwrap();
        assert_eq!(sent[after.bare_start()..], bytes[sections.bare_start()..]);
        Message::decode(sent).unwrap()
    }

    fn message() -> Message {
        let mut message = Message::of_data(vec![1; 300]);
        message.header_mut().durable = true;
        message.header_mut().ttl = Some(5000);
        message.delivery_annotations = Some(Map::new().with("d", 1u32));
        message.set_message_annotation("x-opt-user", "u");
        *message.properties_mut() = Properties { to: Some("to".into()), ..Properties::default() };
        message
    }

    #[test]
    fn a_message_that_does_not_change_is_not_copied() {
        let (bytes, sections) = annotated(&message());
        let mut out = Vec::new();
        let patch = HeadPatch { ttl_ms: Some(5000), ..HeadPatch::default() };
        assert_eq!(write_head(&mut out, &bytes, &sections, &patch), 0);
        assert!(out.is_empty());
    }

    #[test]
    fn a_new_header_keeps_what_is_not_patched() {
        let mut message = message();
        let (bytes, _) = annotated(&message);
        let patch = HeadPatch {
            delivery_count: 2,
            ttl_ms: Some(77),
            first_acquirer: Some(true),
            ..HeadPatch::default()
        };
        let sent = forward(&bytes, &patch);
        let header = message.header_mut();
        (header.delivery_count, header.ttl, header.first_acquirer) = (2, Some(77), true);
        assert_eq!(sent, message);
    }

    #[test]
    fn a_message_without_header_gets_one_only_when_it_needs_one() {
        let (bytes, _) = annotated(&Message::of_value("x"));
        assert_eq!(forward(&bytes, &HeadPatch::default()).header, None);
        let patch = HeadPatch { delivery_count: 1, ..HeadPatch::default() };
        assert_eq!(forward(&bytes, &patch).header.unwrap().delivery_count, 1);
    }

    #[test]
    fn a_delivery_count_can_go_back_to_zero() {
        let mut message = message();
        message.header_mut().delivery_count = 3;
        let (bytes, _) = annotated(&message);
        let sent = forward(&bytes, &HeadPatch::default());
        assert_eq!(sent.header.unwrap(), Header { delivery_count: 0, ..message.header.unwrap() });
    }

    #[test]
    fn delivery_annotations_end_here_and_message_annotations_go_on() {
        let message = message();
        let (bytes, _) = annotated(&message);
        let patch = HeadPatch { drop_delivery_annotations: true, ..HeadPatch::default() };
        let sent = forward(&bytes, &patch);
        assert_eq!(sent, Message { delivery_annotations: None, ..message });
    }

    #[test]
    fn added_annotations_follow_those_of_the_user() {
        let message = message();
        let (bytes, _) = annotated(&message);
        let annotations =
            [("x-opt-seq".into(), Value::Ulong(9)), ("a".into(), Value::from("one letter"))];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        let expected =
            Map::new().with("x-opt-user", "u").with("x-opt-seq", 9u64).with("a", "one letter");
        let sent = forward(&bytes, &patch);
        assert_eq!(sent, Message { message_annotations: Some(expected), ..message });
    }

    #[test]
    fn a_message_without_annotations_gets_a_section_of_its_own() {
        let (bytes, _) = annotated(&Message::of_value("x"));
        let annotations = [("a".into(), Value::Null)];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        let sent = forward(&bytes, &patch);
        assert_eq!(sent.message_annotations, Some(Map::new().with("a", Value::Null)));
    }

    #[test]
    fn a_replaced_annotation_keeps_its_place_and_its_type() {
        let mut message = Message::of_value("x");
        message.message_annotations = Some(
            Map::new()
                .with("n", 1i64)
                .with("s", Value::Symbol("symbol".into()))
                .with("small", 1u8)
                .with("last", true),
        );
        let (bytes, _) = annotated(&message);
        let annotations = [
            ("s".into(), Value::from("text")),
            ("new".into(), Value::Uint(1)),
            ("n".into(), Value::Uint(7)),
            ("small".into(), Value::Uint(256)),
        ];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        let expected = Map::new()
            .with("n", 7i64)
            .with("s", Value::Symbol("text".into()))
            .with("small", 256u32)
            .with("last", true)
            .with("new", 1u32);
        assert_eq!(forward(&bytes, &patch).message_annotations, Some(expected));
    }

    #[test]
    fn of_two_values_for_one_key_the_last_one_counts() {
        for message in [Message::of_value("x"), message()] {
            let (bytes, _) = annotated(&message);
            let annotations = [("k".into(), Value::Uint(1)), ("k".into(), Value::Uint(2))];
            let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
            let sent = forward(&bytes, &patch);
            let values: Vec<_> = sent.message_annotations.unwrap().into_iter().collect();
            let found: Vec<_> =
                values.iter().filter(|(k, _)| k.as_str() == Some("k")).map(|(_, v)| v).collect();
            assert_eq!(found, [&Value::Uint(2)]);
        }
    }

    #[test]
    fn keys_of_one_character_are_found_in_every_encoding() {
        let key8: &[u8] = &[0xa3, 1, b'a'];
        let key32: &[u8] = &[0xb3, 0, 0, 0, 1, b'a'];
        let string: &[u8] = &[0xa1, 1, b'a'];
        for key in [key8, key32, string] {
            let items = [key, &[0x52, 1]].concat();
            let (size, wide) = (items.len() as u8 + 1, items.len() as u8 + 4);
            let map8 = [&[0xc1, size, 2][..], &items].concat();
            let map32 = [&[0xd1, 0, 0, 0, wide, 0, 0, 0, 2][..], &items].concat();
            for map in [map8, map32] {
                let bytes = [&[0x00, 0x53, 0x72][..], &map, &[0x00, 0x53, 0x77, 0x40]].concat();
                let annotations = [("a".into(), Value::Uint(2)), ("b".into(), Value::Uint(3))];
                let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
                let sent = forward(&bytes, &patch).message_annotations.unwrap();
                assert_eq!(sent.get("a"), Some(&Value::Uint(2)));
                assert_eq!(sent.get("b"), Some(&Value::Uint(3)));
                assert_eq!(sent.len(), 2);
            }
        }
    }

    #[test]
    fn a_map_grows_from_one_byte_sizes_to_four_byte_sizes() {
        // Around the border every size of the user's annotation is tried.
        for len in 200..260 {
            let mut message = Message::of_value("x");
            message.set_message_annotation("user", "u".repeat(len));
            let (bytes, _) = annotated(&message);
            let annotations = [("x-opt-seq".into(), Value::Ulong(1 << 40))];
            let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
            let sent = forward(&bytes, &patch);
            message.set_message_annotation("x-opt-seq", 1u64 << 40);
            assert_eq!(sent, message, "{len}");
        }
    }

    #[test]
    fn a_map_grows_beyond_255_elements() {
        let mut message = Message::of_value("x");
        let pairs = (0..127u8).map(|i| (Value::Ulong(i.into()), Value::Bool(true)));
        message.message_annotations = Some(pairs.collect());
        let (bytes, _) = annotated(&message);
        let annotations = [("a".into(), Value::Null)];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        message.set_message_annotation("a", Value::Null);
        assert_eq!(forward(&bytes, &patch), message);
    }

    #[test]
    fn a_value_larger_than_expected_moves_the_items_and_nothing_else() {
        let message = message();
        let (bytes, _) = annotated(&message);
        let annotations = [("big".into(), Value::from("x".repeat(1000)))];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        let sent = forward(&bytes, &patch);
        let expected = message.message_annotations.unwrap().with("big", "x".repeat(1000));
        assert_eq!(sent.message_annotations, Some(expected));
    }

    #[test]
    fn the_descriptors_of_the_sender_are_kept() {
        let named = [&[0x00, 0xa3, 29][..], b"amqp:message-annotations:map\0"].concat();
        let named = [&named[..2], &[28], &named[3..31], &[0xc1, 1, 0], &[0x00, 0x53, 0x77, 0x40]];
        let bytes = named.concat();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        let annotations = [("a".into(), Value::Null)];
        let patch = HeadPatch { annotations: &annotations, ..HeadPatch::default() };
        let mut out = Vec::new();
        write_head(&mut out, &bytes, &sections, &patch);
        assert_eq!(out, [&bytes[..31], &[0xc1, 5, 2, 0xa3, 1, b'a', 0x40]].concat());
    }
}
