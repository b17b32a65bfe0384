//! The part of a message that is the same for all of them, encoded once.
//!
//! What differs from message to message (sequence number, time stamp, group) is patched in: numbers
//! have a fixed width in the encoding, and the group's name, the only thing of varying length, is
//! the last of the application properties.

use mochila_wire::message::{Header, MessageId, Properties};
use mochila_wire::{Encode, Map, Value};

use crate::address::guess;

/// What all messages of a run have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateSettings {
    pub(super) durable: bool,
    pub(super) priority: Option<u8>,
    pub(super) ttl_ms: Option<u32>,
    pub(super) message_id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) to: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) reply_to: Option<String>,
    pub(super) correlation_id: Option<String>,
    /// `NAME=VALUE`, or `NAME` for a property without value.
    pub(super) properties: Vec<String>,
    pub(super) sequence: bool,
    pub(super) timestamp: bool,
    pub(super) group_key: Option<String>,
}

/// The encoded head of a message: everything in front of the body.
#[derive(Debug)]
pub(super) struct Template {
    head: Vec<u8>,
    sn_at: Option<usize>,
    ts_at: Option<usize>,
    group: Option<GroupSlot>,
}

/// The place of the group's name, which is right behind the head.
#[derive(Debug)]
struct GroupSlot {
    /// Where the size of the application properties stands.
    size_at: usize,
    /// That size without the group's name.
    size: u32,
    /// The name, encoded.
    value: Vec<u8>,
    name: String,
}

/// What differs from message to message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp<'a> {
    pub(super) sn: u32,
    pub(super) ts_ns: i64,
    pub(super) group: &'a str,
}

impl Template {
    pub(super) fn new(settings: &TemplateSettings) -> Self {
        let mut template = Self { head: Vec::new(), sn_at: None, ts_at: None, group: None };
        let header = Header {
            durable: settings.durable,
            priority: settings.priority.unwrap_or(Header::DEFAULT_PRIORITY),
            ttl: settings.ttl_ms,
            ..Header::default()
        };
        if header != Header::default() {
            header.encode(&mut template.head);
        }
        let id = |id: &Option<String>| id.clone().map(MessageId::String);
        let properties = Properties {
            message_id: id(&settings.message_id),
            user_id: settings.user_id.clone().map(String::into_bytes),
            to: settings.to.clone(),
            subject: settings.subject.clone(),
            reply_to: settings.reply_to.clone(),
            correlation_id: id(&settings.correlation_id),
            ..Properties::default()
        };
        if properties != Properties::default() {
            properties.encode(&mut template.head);
        }
        template.write_application_properties(settings);
        template
    }

    /// The encoded head with this stamp, in two pieces that belong one after the other.
    #[inline]
    pub(super) fn stamped(&mut self, stamp: Stamp<'_>) -> [&[u8]; 2] {
        if let Some(at) = self.sn_at {
            self.head[at..at + 4].copy_from_slice(&stamp.sn.to_be_bytes());
        }
        if let Some(at) = self.ts_at {
            self.head[at..at + 8].copy_from_slice(&stamp.ts_ns.to_be_bytes());
        }
        let Some(group) = &mut self.group else { return [&self.head, &[]] };
        if group.name != stamp.group {
            group.name.clear();
            group.name.push_str(stamp.group);
            group.value.clear();
            stamp.group.encode(&mut group.value);
        }
        let size = group.size + group.value.len() as u32;
        self.head[group.size_at..group.size_at + 4].copy_from_slice(&size.to_be_bytes());
        [&self.head, &group.value]
    }

    fn write_application_properties(&mut self, settings: &TemplateSettings) {
        let mut own = Map::new();
        for property in &settings.properties {
            let (name, value) = name_and_value(property);
            own.insert(name, value.map_or(Value::Null, guess));
        }
        let made = [
            settings.sequence.then_some(SN),
            settings.timestamp.then_some(TS),
            settings.group_key.as_deref(),
        ];
        // What the run itself counts wins over a property of the same name.
        for name in made.iter().flatten() {
            own.remove(name);
        }
        let pairs = own.len() + made.iter().flatten().count();
        if pairs == 0 {
            return;
        }
        let head = &mut self.head;
        head.extend_from_slice(&APPLICATION_PROPERTIES);
        let size_at = head.len() + 1;
        head.extend_from_slice(&[MAP32, 0, 0, 0, 0]);
        head.extend_from_slice(&(pairs as u32 * 2).to_be_bytes());
        for (key, value) in own.iter() {
            key.encode(head);
            value.encode(head);
        }
        if settings.sequence {
            SN.encode(head);
            head.push(UINT);
            self.sn_at = Some(head.len());
            head.extend_from_slice(&[0; 4]);
        }
        if settings.timestamp {
            TS.encode(head);
            head.push(LONG);
            self.ts_at = Some(head.len());
            head.extend_from_slice(&[0; 8]);
        }
        if let Some(key) = &settings.group_key {
            key.as_str().encode(head);
        }
        // The size counts everything behind it.
        let size = (head.len() - size_at - 4) as u32;
        head[size_at..size_at + 4].copy_from_slice(&size.to_be_bytes());
        if settings.group_key.is_some() {
            let mut value = Vec::new();
            "".encode(&mut value);
            self.group = Some(GroupSlot { size_at, size, value, name: String::new() });
        }
    }
}

/// Splits `NAME=VALUE`; a missing or empty value is none.
pub(super) fn name_and_value(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((name, value)) => (name, Some(value).filter(|value| !value.is_empty())),
        None => (text, None),
    }
}

const SN: &str = "sn";
const TS: &str = "ts";
/// The descriptor of section 3.2.5 of part 3.
const APPLICATION_PROPERTIES: [u8; 3] = [0x00, 0x53, 0x74];
const MAP32: u8 = 0xd1;
const UINT: u8 = 0x70;
const LONG: u8 = 0x81;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::message::{Body, Message};

    fn message(template: &mut Template, stamp: Stamp<'_>) -> Message {
        let mut bytes = template.stamped(stamp).concat();
        Body::Value(Value::from("x")).encode(&mut bytes);
        Message::decode(&bytes).unwrap()
    }

    fn stamp(sn: u32, ts_ns: i64, group: &str) -> Stamp<'_> {
        Stamp { sn, ts_ns, group }
    }

    #[test]
    fn a_message_without_any_settings_is_its_body_alone() {
        let mut template = Template::new(&TemplateSettings::default());
        assert_eq!(template.stamped(stamp(1, 2, "")).concat(), b"");
    }

    #[test]
    fn sequence_time_and_group_are_patched_for_each_message() {
        let mut template = Template::new(&TemplateSettings {
            sequence: true,
            timestamp: true,
            group_key: Some("group".into()),
            ..TemplateSettings::default()
        });
        for (sn, ts, group) in [(1, 10, "GROUP-1"), (70_000, i64::MAX, "GROUP-1234567"), (3, 0, "")]
        {
            let message = message(&mut template, stamp(sn, ts, group));
            assert_eq!(message.application_property("sn"), Some(&Value::Uint(sn)));
            assert_eq!(message.application_property("ts"), Some(&Value::Long(ts)));
            assert_eq!(message.application_property("group"), Some(&Value::from(group)));
        }
    }

    #[test]
    fn properties_take_the_type_that_they_look_like() {
        let mut template = Template::new(&TemplateSettings {
            properties: vec![
                "a=1".into(),
                "b=x=y".into(),
                "c=true".into(),
                "d".into(),
                "e=".into(),
            ],
            ..TemplateSettings::default()
        });
        let message = message(&mut template, stamp(0, 0, ""));
        assert_eq!(message.application_property("a"), Some(&Value::Long(1)));
        assert_eq!(message.application_property("b"), Some(&Value::from("x=y")));
        assert_eq!(message.application_property("c"), Some(&Value::Bool(true)));
        assert_eq!(message.application_property("d"), Some(&Value::Null));
        assert_eq!(message.application_property("e"), Some(&Value::Null));
    }

    #[test]
    fn the_sequence_number_wins_over_a_property_of_the_same_name() {
        let mut template = Template::new(&TemplateSettings {
            properties: vec!["sn=x".into()],
            sequence: true,
            ..TemplateSettings::default()
        });
        let message = message(&mut template, stamp(9, 0, ""));
        assert_eq!(message.application_property("sn"), Some(&Value::Uint(9)));
        assert_eq!(message.application_properties.unwrap().len(), 1);
    }

    #[test]
    fn headers_and_properties_are_written_where_they_say_something() {
        let mut template = Template::new(&TemplateSettings {
            durable: true,
            priority: Some(7),
            ttl_ms: Some(5_000),
            message_id: Some("id".into()),
            user_id: Some("me".into()),
            subject: Some("news".into()),
            reply_to: Some("back".into()),
            correlation_id: Some("c".into()),
            ..TemplateSettings::default()
        });
        let message = message(&mut template, stamp(0, 0, ""));
        let header = message.header.unwrap();
        assert_eq!((header.durable, header.priority, header.ttl), (true, 7, Some(5_000)));
        let properties = message.properties.unwrap();
        assert_eq!(properties.message_id, Some(MessageId::from("id")));
        assert_eq!(properties.user_id.as_deref(), Some(&b"me"[..]));
        assert_eq!(properties.subject.as_deref(), Some("news"));
        assert_eq!(properties.reply_to.as_deref(), Some("back"));
        assert_eq!(message.application_properties, None);
    }
}
