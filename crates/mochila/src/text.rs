//! AMQP values as people read them: `{a:1, b:[x, y]}`, as the older tools print them.

use std::borrow::Cow;
use std::fmt::Write as _;

use mochila_wire::Value;

/// The text of a value. Strings stand without quotes, binaries as text where they are text.
pub(crate) fn value_text(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// The text with what would end the line, or steer a terminal, written as in a Rust string.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line.into()
}

/// A moment as a date and a time of day, UTC, from milliseconds since the Unix epoch.
pub(crate) fn moment_text(ms: i64) -> String {
    let (mut days, of_day) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let mut year = 1970;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |year: i64| if is_leap(year) { 366 } else { 365 };
    while days < 0 || days >= days_of(year) {
        let step = if days < 0 { -1 } else { 1 };
        days -= if days < 0 { -days_of(year - 1) } else { days_of(year) };
        year += step;
    }
    let mut month = 0;
    let february = if is_leap(year) { 29 } else { 28 };
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    let (seconds, ms) = (of_day / 1_000, of_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}.{ms:03}", month + 1, days + 1)
}

const MS_PER_DAY: i64 = 86_400_000;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_and_steers_no_terminal() {
        assert_eq!(one_line("größer als\n\u{1b}[31m"), r"größer als\n\u{1b}[31m");
    }

    #[test]
    fn a_moment_is_a_date_and_a_time_of_day() {
        assert_eq!(moment_text(0), "1970-01-01 00:00:00.000");
        assert_eq!(moment_text(951_782_400_000), "2000-02-29 00:00:00.000");
        assert_eq!(moment_text(1_700_000_000_123), "2023-11-14 22:13:20.123");
        assert_eq!(moment_text(-1), "1969-12-31 23:59:59.999");
        assert_eq!(moment_text(1_735_689_599_999), "2024-12-31 23:59:59.999");
    }
}
