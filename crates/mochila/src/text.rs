//! AMQP values as people read them: `{a:1, b:[x, y]}`, as the older tools print them.

use std::fmt::Write as _;

use mochila_wire::Value;

/// The text of a value. Strings stand without quotes, binaries as text where they are text.
pub(crate) fn value_text(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// The name of a value's type, as `--print-object-type` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "void",
        Value::Bool(_) => "bool",
        Value::Ubyte(_) => "uint8",
        Value::Ushort(_) => "uint16",
        Value::Uint(_) => "uint32",
        Value::Ulong(_) => "uint64",
        Value::Byte(_) => "int8",
        Value::Short(_) => "int16",
        Value::Int(_) => "int32",
        Value::Long(_) | Value::Timestamp(_) => "int64",
        Value::Float(_) => "float",
        Value::Double(_) => "double",
        Value::Uuid(_) => "uuid",
        Value::List(_) | Value::Array(_) => "list",
        Value::Map(_) => "map",
        Value::Described(_) => "described",
        _ => "string",
    }
}

fn write_value(text: &mut String, value: &Value) {
    // Writing to a String never fails.
    let _ = match value {
        Value::Null => write!(text, "<void>"),
        Value::Bool(flag) => write!(text, "{}", if *flag { "True" } else { "False" }),
        Value::Ubyte(n) => write!(text, "{n}"),
        Value::Ushort(n) => write!(text, "{n}"),
        Value::Uint(n) => write!(text, "{n}"),
        Value::Ulong(n) => write!(text, "{n}"),
        Value::Byte(n) => write!(text, "{n}"),
        Value::Short(n) => write!(text, "{n}"),
        Value::Int(n) => write!(text, "{n}"),
        Value::Long(n) | Value::Timestamp(n) => write!(text, "{n}"),
        Value::Float(n) => write!(text, "{n}"),
        Value::Double(n) => write!(text, "{n}"),
        Value::Char(c) => write!(text, "{c}"),
        Value::String(s) => write!(text, "{s}"),
        Value::Symbol(s) => write!(text, "{}", s.as_str()),
        Value::Binary(bytes) => write!(text, "{}", String::from_utf8_lossy(bytes)),
        Value::Uuid(bytes) => write_uuid(text, bytes),
        Value::Decimal32(bytes) => write_hex(text, bytes),
        Value::Decimal64(bytes) => write_hex(text, bytes),
        Value::Decimal128(bytes) => write_hex(text, bytes),
        Value::List(items) => {
            write_items(text, items.iter());
            Ok(())
        }
        Value::Array(array) => {
            write_items(text, array.elements.iter());
            Ok(())
        }
        Value::Map(map) => {
            text.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                write_value(text, key);
                text.push(':');
                write_value(text, value);
            }
            text.push('}');
            Ok(())
        }
        Value::Described(described) => {
            text.push('@');
            write_value(text, &described.descriptor);
            text.push(' ');
            write_value(text, &described.value);
            Ok(())
        }
    };
}

fn write_items<'a>(text: &mut String, items: impl Iterator<Item = &'a Value>) {
    text.push('[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        write_value(text, item);
    }
    text.push(']');
}

fn write_uuid(text: &mut String, bytes: &[u8; 16]) -> std::fmt::Result {
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}")?;
    }
    Ok(())
}

fn write_hex(text: &mut String, bytes: &[u8]) -> std::fmt::Result {
    text.push_str("0x");
    bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"))
}
