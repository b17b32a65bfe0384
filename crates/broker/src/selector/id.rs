//! Message ids as text.
//!
//! In AMQP an id is text, a number, a UUID or bytes (part 3, 3.2.11 to 3.2.14), in JMS it is text.
//! Qpid JMS tells them apart by a prefix, so that an id comes back as what it was, and users write
//! what it shows them into their selectors.

use super::name::Form;
use super::operand::Operand;
use mochila_wire::{RawValue, Type};
use std::cell::OnceCell;
use std::fmt::Write as _;

/// An id in one of its forms. `cell` keeps the text that had to be made, which is not needed for
/// ids as Qpid JMS makes them.
pub(super) fn operand<'m>(
    raw: RawValue<'m>,
    form: Form,
    cell: &'m OnceCell<String>,
) -> Operand<'m> {
    let made = |text: String| Operand::Text(cell.get_or_init(|| text).as_bytes());
    let jms = form != Form::Plain;
    if let Some(id) = raw.text() {
        if !jms || is_shown_as_it_is(id, form) {
            return Operand::Text(id);
        }
        // Text that is not UTF-8 is no text.
        let Ok(id) = std::str::from_utf8(id) else { return Operand::Unknown };
        let prefix = if id.starts_with(JMS) { STRING } else { NO_PREFIX };
        return made(format!("{JMS}{prefix}{id}"));
    }
    match raw.type_of() {
        Type::Uuid => match raw.bytes().get(1..) {
            Some(bytes) if jms => made(format!("{JMS}{UUID}{}", uuid(bytes))),
            Some(bytes) => made(uuid(bytes)),
            None => Operand::Unknown,
        },
        Type::Ulong if jms => {
            raw.as_u64().map_or(Operand::Unknown, |id| made(format!("{JMS}{ULONG}{id}")))
        }
        Type::Binary if jms => raw.as_binary().map_or(Operand::Unknown, |id| made(hex(id))),
        _ => Operand::of_raw(raw),
    }
}

/// What a text in a selector means that is compared with a JMS message id: all of these have a
/// prefix, so one without is taken for the text of a client that knows nothing of JMS.
pub(super) fn as_message_id(text: &str) -> Option<String> {
    (!text.starts_with(JMS)).then(|| format!("{JMS}{NO_PREFIX}{text}"))
}

/// A message id needs a prefix; a correlation id may be any text. What looks as if it told its type
/// is marked as text.
fn is_shown_as_it_is(id: &[u8], form: Form) -> bool {
    match id.strip_prefix(JMS.as_bytes()) {
        None => form == Form::JmsCorrelationId,
        Some(rest) => !TYPES.iter().any(|prefix| rest.starts_with(prefix.as_bytes())),
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        text.push_str(if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" });
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    let mut text = format!("{JMS}{BINARY}");
    for byte in bytes {
        let _ = write!(text, "{byte:02X}");
    }
    text
}

const JMS: &str = "ID:";
const UUID: &str = "AMQP_UUID:";
const ULONG: &str = "AMQP_ULONG:";
const BINARY: &str = "AMQP_BINARY:";
const STRING: &str = "AMQP_STRING:";
const NO_PREFIX: &str = "AMQP_NO_PREFIX:";
const TYPES: [&str; 5] = [UUID, ULONG, BINARY, STRING, NO_PREFIX];

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::{Encode, Value};

    fn shown(id: impl Into<Value>, form: Form) -> String {
        let bytes = id.into().to_bytes();
        let cell = OnceCell::new();
        match operand(RawValue::from_bytes(&bytes).unwrap(), form, &cell) {
            Operand::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => format!("{other:?}"),
        }
    }

    const UUID_BYTES: Value =
        Value::Uuid(*b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");

    #[test]
    fn ids_look_in_jms_as_qpid_jms_shows_them() {
        let table = [
            (Value::from("ID:a"), "ID:a", "ID:a"),
            ("a".into(), "ID:AMQP_NO_PREFIX:a", "a"),
            ("ID:AMQP_ULONG:1".into(), "ID:AMQP_STRING:ID:AMQP_ULONG:1", ""),
            ("AMQP_ULONG:1".into(), "ID:AMQP_NO_PREFIX:AMQP_ULONG:1", "AMQP_ULONG:1"),
            (7u64.into(), "ID:AMQP_ULONG:7", ""),
            (Value::Binary(vec![1, 0xab]), "ID:AMQP_BINARY:01AB", ""),
            (UUID_BYTES, "ID:AMQP_UUID:00112233-4455-6677-8899-aabbccddeeff", ""),
        ];
        for (id, message, correlation) in table {
            assert_eq!(shown(id.clone(), Form::JmsMessageId), message);
            let correlation = if correlation.is_empty() { message } else { correlation };
            assert_eq!(shown(id, Form::JmsCorrelationId), correlation);
        }
    }

    #[test]
    fn outside_of_jms_an_id_is_what_it_is() {
        assert_eq!(shown("ID:a", Form::Plain), "ID:a");
        assert_eq!(shown(UUID_BYTES, Form::Plain), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(shown(7u64, Form::Plain), "Int(7)");
        assert_eq!(shown(Value::Binary(b"xy".to_vec()), Form::Plain), "xy");
    }

    #[test]
    fn an_id_that_is_shown_as_it_is_makes_no_text() {
        let bytes = Value::from("ID:a").to_bytes();
        let cell = OnceCell::new();
        operand(RawValue::from_bytes(&bytes).unwrap(), Form::JmsMessageId, &cell);
        assert_eq!(cell.get(), None);
    }
}
