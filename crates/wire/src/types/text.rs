//! Values as text for people: logs, tools and error descriptions.

use std::fmt::{self, Write as _};

use super::{Map, Type, Value};

impl fmt::Display for Value {
    /// A string comes bare with its lines kept, everything nested comes quoted on one line; other
    /// control characters are escaped, so that a value from the wire cannot drive a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(text) => escaped(f, text, |c| c != '\n' && c != '\t'),
            other => nested(f, other),
        }
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (i, (key, value)) in self.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            nested(f, key)?;
            f.write_str(": ")?;
            nested(f, value)?;
        }
        f.write_char('}')
    }
}

impl fmt::Display for Type {
    /// The name of the type in the specification.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Type {
    /// The name of the type in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Bool => "boolean",
            Type::Ubyte => "ubyte",
            Type::Ushort => "ushort",
            Type::Uint => "uint",
            Type::Ulong => "ulong",
            Type::Byte => "byte",
            Type::Short => "short",
            Type::Int => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Double => "double",
            Type::Decimal32 => "decimal32",
            Type::Decimal64 => "decimal64",
            Type::Decimal128 => "decimal128",
            Type::Char => "char",
            Type::Timestamp => "timestamp",
            Type::Uuid => "uuid",
            Type::Binary => "binary",
            Type::String => "string",
            Type::Symbol => "symbol",
            Type::List => "list",
            Type::Map => "map",
            Type::Array => "array",
            Type::Described => "described",
        }
    }
}

fn nested(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Null => f.write_str("null"),
        Value::Bool(v) => write!(f, "{v}"),
        Value::Ubyte(v) => write!(f, "{v}"),
        Value::Ushort(v) => write!(f, "{v}"),
        Value::Uint(v) => write!(f, "{v}"),
        Value::Ulong(v) => write!(f, "{v}"),
        Value::Byte(v) => write!(f, "{v}"),
        Value::Short(v) => write!(f, "{v}"),
        Value::Int(v) => write!(f, "{v}"),
        Value::Long(v) | Value::Timestamp(v) => write!(f, "{v}"),
        Value::Float(v) => write!(f, "{v}"),
        Value::Double(v) => write!(f, "{v}"),
        Value::Decimal32(bytes) => hex(f, bytes),
        Value::Decimal64(bytes) => hex(f, bytes),
        Value::Decimal128(bytes) => hex(f, bytes),
        Value::Char(v) => write!(f, "{v:?}"),
        Value::Uuid(bytes) => uuid(f, bytes),
        Value::Binary(bytes) => hex(f, bytes),
        Value::String(text) => {
            f.write_char('"')?;
            escaped(f, text, |_| true)?;
            f.write_char('"')
        }
        Value::Symbol(symbol) => escaped(f, symbol.as_str(), |_| true),
        Value::List(values) => sequence(f, values),
        Value::Array(array) => sequence(f, &array.elements),
        Value::Map(map) => write!(f, "{map}"),
        Value::Described(described) => {
            f.write_char('@')?;
            nested(f, &described.descriptor)?;
            f.write_char('(')?;
            nested(f, &described.value)?;
            f.write_char(')')
        }
    }
}

fn sequence(f: &mut fmt::Formatter<'_>, values: &[Value]) -> fmt::Result {
    f.write_char('[')?;
    for (i, value) in values.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        nested(f, value)?;
    }
    f.write_char(']')
}

fn escaped(f: &mut fmt::Formatter<'_>, text: &str, escape: fn(char) -> bool) -> fmt::Result {
    for c in text.chars() {
        if c.is_control() && escape(c) {
            write!(f, "{}", c.escape_default())?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    for (i, byte) in bytes.iter().enumerate() {
        f.write_str(if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" })?;
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_like_its_content() {
        let map = Map::new().with("a", 1u32).with("b", vec![Value::from("x"), Value::Null]);
        assert_eq!(Value::Map(map).to_string(), r#"{a: 1, b: ["x", null]}"#);
        assert_eq!(Value::from("plain").to_string(), "plain");
        assert_eq!(Value::Binary(vec![0xde, 0xad]).to_string(), "0xdead");
        let uuid = Value::Uuid(*b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff");
        assert_eq!(uuid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn text_from_the_wire_cannot_drive_a_terminal() {
        assert_eq!(Value::from("\x1b[2J").to_string(), "\\u{1b}[2J");
    }
}
