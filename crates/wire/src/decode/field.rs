use super::{DecodeError, Decoder, Fields};
use crate::types::{Array, Map, Symbol, Timestamp, Uuid, Value, codes};

type Result<T> = std::result::Result<T, DecodeError>;

/// What can be read from the front of a decoder.
pub trait Decode: Sized {
    /// Reads one value.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self>;

    /// Reads one value that takes all of `bytes`, within the default limits.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let value = Self::decode(&mut decoder)?;
        if decoder.is_empty() { Ok(value) } else { Err(DecodeError::SizeMismatch) }
    }
}

macro_rules! decode_with {
    ($($type:ty = |$decoder:ident| $read:expr;)*) => {$(
        impl Decode for $type {
            #[inline]
            fn decode($decoder: &mut Decoder<'_>) -> Result<$type> {
                $read
            }
        }
    )*};
}

decode_with! {
    bool = |d| d.boolean();
    u8 = |d| d.ubyte();
    u16 = |d| d.ushort();
    u32 = |d| d.uint();
    u64 = |d| d.ulong();
    i32 = |d| d.int();
    i64 = |d| d.long();
    Timestamp = |d| d.timestamp().map(Timestamp);
    Uuid = |d| d.uuid().map(Uuid);
    Vec<u8> = |d| d.binary().map(<[u8]>::to_vec);
    Box<[u8]> = |d| d.binary().map(Box::from);
    String = |d| d.string().map(str::to_owned);
    Symbol = |d| d.symbol().map(Symbol::from_ascii);
    Map = |d| d.map();
    Array = |d| d.array();
    Value = |d| d.value();
}

impl<T: Decode> Decode for Box<T> {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Box<T>> {
        T::decode(decoder).map(Box::new)
    }
}

/// What a field with `multiple="true"` can hold (part 1, 1.4): null, one value, or an array.
pub trait Multiple: Sized {
    /// Reads none, one or many values.
    fn decode_multiple(decoder: &mut Decoder<'_>) -> Result<Vec<Self>>;
}

impl Multiple for Symbol {
    fn decode_multiple(decoder: &mut Decoder<'_>) -> Result<Vec<Symbol>> {
        if !matches!(decoder.peek()?, codes::ARRAY8 | codes::ARRAY32) {
            return Symbol::decode(decoder).map(|symbol| vec![symbol]);
        }
        let elements = decoder.array()?.elements.into_iter();
        let symbols = elements.map(|element| match element {
            Value::Symbol(symbol) => Ok(symbol),
            _ => Err(DecodeError::InvalidField { field: "array of symbols" }),
        });
        symbols.collect()
    }
}

/// Fields of a composite, read in order (part 1, 1.4): absent ones at the end are null.
impl Fields<'_> {
    /// A field that must have a value.
    #[inline]
    pub fn mandatory<T: Decode>(&mut self, field: &'static str) -> Result<T> {
        self.optional()?.ok_or(DecodeError::MissingField { field })
    }

    /// A field that may be null.
    #[inline]
    pub fn optional<T: Decode>(&mut self) -> Result<Option<T>> {
        self.next_field()?.map(T::decode).transpose()
    }

    /// A field that stands for several values.
    pub fn multiple<T: Multiple>(&mut self) -> Result<Vec<T>> {
        self.next_field()?.map_or_else(|| Ok(Vec::new()), T::decode_multiple)
    }
}
