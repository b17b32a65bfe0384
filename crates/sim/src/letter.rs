//! Messages that can be told apart, and prove that nobody has changed them.

use mochila_engine::pair::Random;
use mochila_wire::message::{Body, Header};
use mochila_wire::{Encode, Limits, Map, Message, Value, section};

use crate::number::MessageNo;
use crate::selector::Colour;

/// What a message is like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Letter {
    pub(crate) body_bytes: usize,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) colour: Option<Colour>,
    pub(crate) priority: u8,
    /// The message group that it belongs to.
    pub(crate) group: Option<u32>,
    /// The key of which it is the last value.
    pub(crate) key: Option<u32>,
    /// For senders without an address of their own.
    pub(crate) to: Option<String>,
}

/// What a receiver can see of a message.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) no: MessageNo,
    pub(crate) header: Header,
    /// What the last receiver that modified it wrote on it.
    pub(crate) mark: Option<u64>,
    /// A digest of the bare message.
    pub(crate) digest: u64,
}

impl Letter {
    /// Writes the message.
    pub(crate) fn write(&self, no: MessageNo, random: &mut Random) -> Vec<u8> {
        let header = Header {
            durable: random.chance(20),
            priority: self.priority,
            ttl: self.ttl_ms,
            first_acquirer: true,
            delivery_count: 0,
        };
        let mut message = Message { header: Some(header), ..Message::default() };
        if random.chance(20) {
            message.delivery_annotations = Some(Map::new().with("x-opt-hop", 1u32));
        }
        if random.chance(30) {
            message.set_message_annotation("x-opt-sim", "kept as it is");
        }
        message.properties_mut().message_id = Some((no.0 as u64).into());
        message.properties_mut().to.clone_from(&self.to);
        message.properties_mut().group_id = self.group.map(|_| group_name(self.group));
        if let Some(colour) = self.colour {
            message.set_application_property("colour", colour.name());
        }
        if let Some(key) = self.key {
            message.set_application_property(KEY, key);
        }
        message.body = body(no, self.body_bytes, random);
        if random.chance(10) {
            message.footer = Some(Map::new().with("x-opt-end", true));
        }
        message.to_bytes()
    }
}

/// Reads a message.
///
/// # Panics
/// If it is none, or not one that was sent here.
pub(crate) fn read(bytes: &[u8]) -> Received {
    let sections = section::scan(bytes, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("a damaged message was delivered: {error}"));
    let id = sections.message_id(bytes).and_then(|id| id.as_u64());
    let id = id.expect("a message without id was delivered");
    let mark = sections.message_annotation(bytes, MARK).and_then(|mark| mark.as_u64());
    assert!(sections.delivery_annotations(bytes).is_none(), "delivery annotations went on");
    Received {
        no: MessageNo(id as usize),
        header: sections.header(bytes),
        mark,
        digest: digest(&bytes[sections.bare_start()..]),
    }
}

/// A digest of the part of a message that nobody may change.
pub(crate) fn bare_digest(bytes: &[u8]) -> u64 {
    let sections = section::scan(bytes, &Limits::DEFAULT).expect("a letter is a message");
    digest(&bytes[sections.bare_start()..])
}

/// The body may be of any kind, and in pieces.
fn body(no: MessageNo, len: usize, random: &mut Random) -> Body {
    let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + no.0 * 7) as u8).collect();
    match random.below(4) {
        0 => Body::Data(bytes.chunks(len / 2 + 1).map(<[u8]>::to_vec).collect()),
        1 => Body::Value(Value::Binary(bytes)),
        2 => Body::Sequence(vec![vec![Value::Binary(bytes)], vec![]]),
        _ => Body::Data(vec![bytes]),
    }
}

/// FNV-1a, eight bytes at a time.
fn digest(bytes: &[u8]) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        digest = (digest ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        digest ^= digest >> 29;
    }
    digest
}

/// What a group is called, if messages name one.
pub(crate) fn group_name(group: Option<u32>) -> String {
    group.map_or_else(|| "qpid.no-group".to_owned(), |group| format!("group {group}"))
}

/// The application property with the key of a message.
pub(crate) const KEY: &str = "key";
/// The annotation by which receivers mark what they modify.
pub(crate) const MARK: &str = "x-opt-mark";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_as_it_was_written() {
        let mut random = Random::new(3);
        for size in 0..200 {
            let (ttl_ms, to) = (Some(9), Some("q".to_owned()));
            let (colour, group) = (Some(Colour::Red), Some(3));
            let (priority, key) = (7, Some(1));
            let letter = Letter { body_bytes: size, ttl_ms, colour, priority, group, key, to };
            let mut bytes = letter.write(MessageNo(size), &mut random);
            // A broker removes what was meant for it alone.
            let mut message = Message::decode(&bytes).unwrap();
            message.delivery_annotations = None;
            bytes = message.to_bytes();
            let received = read(&bytes);
            assert_eq!((received.no, received.header.ttl), (MessageNo(size), Some(9)));
            assert_eq!((received.digest, received.mark), (bare_digest(&bytes), None));
        }
    }
}
