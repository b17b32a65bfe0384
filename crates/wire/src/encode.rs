//! Writing values, each in its smallest encoding (part 1, 1.6).

use crate::types::{Array, Described, Map, Symbol, Timestamp, Type, Uuid, Value, codes};

/// What can be appended to a buffer in AMQP encoding.
pub trait Encode {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding in a buffer of its own.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// Writes a list whose size is known when it ends, and leaves out nulls at its end.
#[derive(Debug)]
pub struct ListWriter<'a> {
    out: &'a mut Vec<u8>,
    compound: CompoundWriter,
    count: u32,
    /// Where the list would end, and how many elements it would have, without trailing nulls.
    end: usize,
    end_count: u32,
}

impl<'a> ListWriter<'a> {
    /// Begins a list.
    pub fn begin(out: &'a mut Vec<u8>) -> ListWriter<'a> {
        let compound = CompoundWriter::begin(out);
        let end = out.len();
        ListWriter { out, compound, count: 0, end, end_count: 0 }
    }

    /// Begins the list of a composite, its descriptor in front.
    pub fn composite(out: &'a mut Vec<u8>, descriptor: u64) -> ListWriter<'a> {
        encode_descriptor(out, descriptor);
        ListWriter::begin(out)
    }

    /// Adds an element.
    pub fn field<T: Encode + ?Sized>(&mut self, value: &T) {
        value.encode(self.out);
        self.count += 1;
        self.end = self.out.len();
        self.end_count = self.count;
    }

    /// Adds a null.
    pub fn null(&mut self) {
        self.out.push(codes::NULL);
        self.count += 1;
    }

    /// Adds an element, or null where there is none.
    pub fn optional<T: Encode>(&mut self, value: Option<&T>) {
        match value {
            Some(value) => self.field(value),
            None => self.null(),
        }
    }

    /// Adds a value, or null if it is the default.
    pub fn unless_default<T: Encode + PartialEq>(&mut self, value: &T, default: &T) {
        self.optional(Some(value).filter(|value| *value != default));
    }

    /// Adds a field that stands for several values: null if there are none, else an array.
    pub fn multiple(&mut self, symbols: &[Symbol]) {
        if symbols.is_empty() { self.null() } else { self.field(symbols) }
    }

    /// Adds an element that is encoded already.
    pub(crate) fn encoded(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.count += 1;
        if bytes != [codes::NULL] {
            self.end = self.out.len();
            self.end_count = self.count;
        }
    }

    /// Ends the list.
    pub fn finish(self) {
        self.out.truncate(self.end);
        if self.end_count == 0 {
            self.out.truncate(self.compound.start);
            self.out.push(codes::LIST0);
        } else {
            self.compound.finish(self.out, self.end_count, codes::LIST8, codes::LIST32);
        }
    }
}

/// A list, map or array under construction: room for a header, which grows at the end if it was
/// made small and the content has turned out to be large.
#[derive(Debug)]
pub(crate) struct CompoundWriter {
    start: usize,
    header: usize,
}

impl CompoundWriter {
    #[inline]
    pub(crate) fn begin(out: &mut Vec<u8>) -> CompoundWriter {
        let start = out.len();
        out.extend_from_slice(&[0; SMALL_HEADER]);
        CompoundWriter { start, header: SMALL_HEADER }
    }

    /// Begins with the header that fits items of so many bytes, so that they are not moved later.
    pub(crate) fn begin_sized(out: &mut Vec<u8>, items: usize) -> CompoundWriter {
        let start = out.len();
        let header = if items < 0xff { SMALL_HEADER } else { LARGE_HEADER };
        out.extend_from_slice(&[0; LARGE_HEADER][..header]);
        CompoundWriter { start, header }
    }

    #[inline]
    pub(crate) fn finish(&self, out: &mut Vec<u8>, count: u32, small: u8, large: u8) {
        let items = out.len() - self.start - self.header;
        // The size counts the count field too.
        match (u8::try_from(items + 1), u8::try_from(count)) {
            (Ok(size), Ok(count)) if self.header == SMALL_HEADER => {
                out[self.start..][..SMALL_HEADER].copy_from_slice(&[small, size, count]);
            }
            _ => self.finish_large(out, count, large),
        }
    }

    #[cold]
    fn finish_large(&self, out: &mut Vec<u8>, count: u32, large: u8) {
        let items = out.len() - self.start - self.header;
        let from = self.start + self.header;
        if self.header < LARGE_HEADER {
            out.extend_from_slice(&[0; LARGE_HEADER - SMALL_HEADER]);
            out.copy_within(from..from + items, self.start + LARGE_HEADER);
        }
        let header = &mut out[self.start..self.start + LARGE_HEADER];
        header[0] = large;
        header[1..5].copy_from_slice(&(length(items) + 4).to_be_bytes());
        header[5..9].copy_from_slice(&count.to_be_bytes());
    }
}

/// Format code, size and count of one byte each.
const SMALL_HEADER: usize = 3;
/// Format code, and size and count of four bytes each.
const LARGE_HEADER: usize = 9;

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

/// The format code of array elements; fixed widths take their full width, which every peer reads.
fn element_code(of: Type, wide: bool) -> u8 {
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
fn encode_data(out: &mut Vec<u8>, value: &Value, of: Type, wide: bool) -> bool {
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

/// Appends bytes with their format code and size.
#[inline]
fn encode_sized(out: &mut Vec<u8>, bytes: &[u8], small: u8, large: u8) {
    let wide = bytes.len() > 0xff;
    out.push(if wide { large } else { small });
    encode_sized_data(out, bytes, wide);
}

/// Appends bytes with their size; `false` if that needs to be wide and is not.
#[inline]
fn encode_sized_data(out: &mut Vec<u8>, bytes: &[u8], wide: bool) -> bool {
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

fn length(len: usize) -> u32 {
    u32::try_from(len).expect("a value of 4 GiB was encoded")
}
