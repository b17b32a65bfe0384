use super::array::{element_code, encode_data};
use super::{CompoundWriter, Encode};
use crate::types::{Described, Map, Symbol, Timestamp, Uuid, Value, codes};

impl Encode for Value {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.push(codes::NULL),
            Value::Bool(v) => v.encode(out),
            Value::Ubyte(v) => v.encode(out),
            Value::Ushort(v) => v.encode(out),
            Value::Uint(v) => v.encode(out),
            Value::Ulong(v) => v.encode(out),
            Value::Byte(v) => v.encode(out),
            Value::Short(v) => v.encode(out),
            Value::Int(v) => v.encode(out),
            Value::Long(v) => v.encode(out),
            Value::Float(v) => v.encode(out),
            Value::Double(v) => v.encode(out),
            Value::Timestamp(v) => Timestamp(*v).encode(out),
            Value::Uuid(v) => Uuid(*v).encode(out),
            Value::Binary(v) => v.encode(out),
            Value::String(v) => v.encode(out),
            Value::Symbol(v) => v.encode(out),
            Value::List(v) => v.as_slice().encode(out),
            Value::Map(v) => v.encode(out),
            Value::Array(v) => v.encode(out),
            Value::Described(v) => v.encode(out),
            Value::Decimal32(_) | Value::Decimal64(_) | Value::Decimal128(_) | Value::Char(_) => {
                out.push(element_code(self.type_of(), true));
                encode_data(out, self, self.type_of(), true);
            }
        }
    }
}

/// Appends the descriptor of a type of the specification.
#[inline]
pub(crate) fn encode_descriptor(out: &mut Vec<u8>, descriptor: u64) {
    out.push(codes::DESCRIBED);
    descriptor.encode(out);
}

macro_rules! encode_fixed {
    ($($type:ty = $code:expr;)*) => {$(
        impl Encode for $type {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.push($code);
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

encode_fixed! {
    u8 = codes::UBYTE;
    u16 = codes::USHORT;
    i8 = codes::BYTE;
    i16 = codes::SHORT;
    f32 = codes::FLOAT;
    f64 = codes::DOUBLE;
}

impl Encode for bool {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(if *self { codes::TRUE } else { codes::FALSE });
    }
}

impl Encode for u32 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            0 => out.push(codes::UINT0),
            small @ 1..=0xff => out.extend_from_slice(&[codes::SMALL_UINT, small as u8]),
            large => {
                let [a, b, c, d] = large.to_be_bytes();
                out.extend_from_slice(&[codes::UINT, a, b, c, d]);
            }
        }
    }
}

impl Encode for u64 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            0 => out.push(codes::ULONG0),
            small @ 1..=0xff => out.extend_from_slice(&[codes::SMALL_ULONG, small as u8]),
            large => {
                out.push(codes::ULONG);
                out.extend_from_slice(&large.to_be_bytes());
            }
        }
    }
}

impl Encode for i32 {
    fn encode(&self, out: &mut Vec<u8>) {
        if let Ok(small) = i8::try_from(*self) {
            out.extend_from_slice(&[codes::SMALL_INT, small as u8]);
        } else {
            out.push(codes::INT);
            out.extend_from_slice(&self.to_be_bytes());
        }
    }
}

impl Encode for i64 {
    fn encode(&self, out: &mut Vec<u8>) {
        if let Ok(small) = i8::try_from(*self) {
            out.extend_from_slice(&[codes::SMALL_LONG, small as u8]);
        } else {
            out.push(codes::LONG);
            out.extend_from_slice(&self.to_be_bytes());
        }
    }
}

impl Encode for Timestamp {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(codes::TIMESTAMP);
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

impl Encode for Uuid {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(codes::UUID);
        out.extend_from_slice(&self.0);
    }
}

impl Encode for [u8] {
    /// As a binary.
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_sized(out, self, codes::BINARY8, codes::BINARY32);
    }
}

impl Encode for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl Encode for str {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_sized(out, self.as_bytes(), codes::STRING8, codes::STRING32);
    }
}

impl Encode for String {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_str().encode(out);
    }
}

impl Encode for Symbol {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_sized(out, self.as_str().as_bytes(), codes::SYMBOL8, codes::SYMBOL32);
    }
}

impl Encode for Map {
    fn encode(&self, out: &mut Vec<u8>) {
        let compound = CompoundWriter::begin(out);
        for (key, value) in self.iter() {
            key.encode(out);
            value.encode(out);
        }
        compound.finish(out, length(self.len() * 2), codes::MAP8, codes::MAP32);
    }
}

impl Encode for [Value] {
    /// As a list.
    fn encode(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            out.push(codes::LIST0);
            return;
        }
        let compound = CompoundWriter::begin(out);
        for value in self {
            value.encode(out);
        }
        compound.finish(out, length(self.len()), codes::LIST8, codes::LIST32);
    }
}

impl Encode for Described {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(codes::DESCRIBED);
        self.descriptor.encode(out);
        self.value.encode(out);
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

/// Appends bytes with their format code and size.
#[inline]
fn encode_sized(out: &mut Vec<u8>, bytes: &[u8], small: u8, large: u8) {
    let wide = bytes.len() > 0xff;
    out.push(if wide { large } else { small });
    encode_sized_data(out, bytes, wide);
}

/// Appends bytes with their size; `false` if that needs to be wide and is not.
#[inline]
pub(super) fn encode_sized_data(out: &mut Vec<u8>, bytes: &[u8], wide: bool) -> bool {
    if wide {
        out.extend_from_slice(&length(bytes.len()).to_be_bytes());
    } else if let Ok(size) = u8::try_from(bytes.len()) {
        out.push(size);
    } else {
        return false;
    }
    out.extend_from_slice(bytes);
    true
}

pub(super) fn length(len: usize) -> u32 {
    u32::try_from(len).expect("a value of 4 GiB was encoded")
}
