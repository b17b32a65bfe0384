use super::compound::{LARGE_HEADER, SMALL_HEADER};
use super::value::{encode_sized_data, length};
use super::{CompoundWriter, Encode};
use crate::types::{Array, Symbol, Type, Value, codes};

impl Encode for Array {
    /// All elements have the widest encoding that one of them needs.
    ///
    /// # Panics
    /// If an element is not of the array's type.
    fn encode(&self, out: &mut Vec<u8>) {
        let compound = CompoundWriter::begin(out);
        for descriptor in &self.descriptors {
            out.push(codes::DESCRIBED);
            descriptor.encode(out);
        }
        let constructor = out.len();
        out.push(element_code(self.of, false));
        let narrow = self.elements.iter().all(|value| encode_data(out, value, self.of, false));
        if !narrow {
            out.truncate(constructor);
            out.push(element_code(self.of, true));
            for value in &self.elements {
                encode_data(out, value, self.of, true);
            }
        }
        compound.finish(out, length(self.elements.len()), codes::ARRAY8, codes::ARRAY32);
    }
}

impl Encode for [Symbol] {
    /// As an array, of one element too: some peers understand nothing else.
    fn encode(&self, out: &mut Vec<u8>) {
        let compound = CompoundWriter::begin(out);
        let wide = self.iter().any(|symbol| symbol.as_str().len() > 0xff);
        let code = if wide { codes::SYMBOL32 } else { codes::SYMBOL8 };
        out.push(code);
        for symbol in self {
            encode_sized_data(out, symbol.as_str().as_bytes(), wide);
        }
        compound.finish(out, length(self.len()), codes::ARRAY8, codes::ARRAY32);
    }
}

/// The format code of array elements; fixed widths take their full width, which every peer reads.
pub(super) fn element_code(of: Type, wide: bool) -> u8 {
    match of {
        Type::Null => codes::NULL,
        Type::Bool => codes::BOOLEAN,
        Type::Ubyte => codes::UBYTE,
        Type::Ushort => codes::USHORT,
        Type::Uint => codes::UINT,
        Type::Ulong => codes::ULONG,
        Type::Byte => codes::BYTE,
        Type::Short => codes::SHORT,
        Type::Int => codes::INT,
        Type::Long => codes::LONG,
        Type::Float => codes::FLOAT,
        Type::Double => codes::DOUBLE,
        Type::Decimal32 => codes::DECIMAL32,
        Type::Decimal64 => codes::DECIMAL64,
        Type::Decimal128 => codes::DECIMAL128,
        Type::Char => codes::CHAR,
        Type::Timestamp => codes::TIMESTAMP,
        Type::Uuid => codes::UUID,
        Type::Binary if wide => codes::BINARY32,
        Type::Binary => codes::BINARY8,
        Type::String if wide => codes::STRING32,
        Type::String => codes::STRING8,
        Type::Symbol if wide => codes::SYMBOL32,
        Type::Symbol => codes::SYMBOL8,
        Type::List if wide => codes::LIST32,
        Type::List => codes::LIST8,
        Type::Map if wide => codes::MAP32,
        Type::Map => codes::MAP8,
        Type::Array if wide => codes::ARRAY32,
        Type::Array => codes::ARRAY8,
        Type::Described => panic!("the elements of an array share a descriptor or have none"),
    }
}

/// Appends an array element without its format code; `false` if it needs the wide encoding.
pub(super) fn encode_data(out: &mut Vec<u8>, value: &Value, of: Type, wide: bool) -> bool {
    assert_eq!(value.type_of(), of, "an array holds values of one type");
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Ubyte(v) => out.push(*v),
        Value::Ushort(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Uint(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Ulong(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Byte(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Short(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Int(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Long(v) | Value::Timestamp(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Double(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Decimal32(v) => out.extend_from_slice(v),
        Value::Decimal64(v) => out.extend_from_slice(v),
        Value::Decimal128(v) | Value::Uuid(v) => out.extend_from_slice(v),
        Value::Char(v) => out.extend_from_slice(&u32::from(*v).to_be_bytes()),
        Value::Binary(v) => return encode_sized_data(out, v, wide),
        Value::String(v) => return encode_sized_data(out, v.as_bytes(), wide),
        Value::Symbol(v) => return encode_sized_data(out, v.as_str().as_bytes(), wide),
        Value::List(_) | Value::Map(_) | Value::Array(_) => return encode_nested(out, value, wide),
        Value::Described(_) => unreachable!("element_code has refused described elements"),
    }
    true
}

/// Appends a list, map or array as an array element: as anywhere else, with a header of the size
/// that all elements share.
fn encode_nested(out: &mut Vec<u8>, value: &Value, wide: bool) -> bool {
    let start = out.len();
    value.encode(out);
    let (count, items) = match out[start] {
        codes::LIST0 => (0, start + 1),
        codes::LIST8 | codes::MAP8 | codes::ARRAY8 => {
            (u32::from(out[start + 2]), start + SMALL_HEADER)
        }
        _ if !wide => return false,
        _ => {
            out.remove(start);
            return true;
        }
    };
    let size = out.len() - items;
    let mut header = Vec::with_capacity(LARGE_HEADER);
    if wide {
        header.extend_from_slice(&(length(size) + 4).to_be_bytes());
        header.extend_from_slice(&count.to_be_bytes());
    } else {
        header.extend_from_slice(&[size as u8 + 1, count as u8]);
    }
    out.splice(start..items, header);
    true
}
