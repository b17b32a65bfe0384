use super::DecodeError;
use super::cursor::{Compound, Decoder, unexpected};
use crate::types::{Array, Described, Map, Symbol, Type, Value, Width, codes};

type Result<T> = std::result::Result<T, DecodeError>;

/// Typed reads: each accepts every encoding of its type (part 1, 1.6) and nothing else.
impl<'a> Decoder<'a> {
    /// Reads a boolean.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool> {
        match self.take_u8()? {
            codes::TRUE => Ok(true),
            codes::FALSE => Ok(false),
            codes::BOOLEAN => self.boolean_byte(),
            code => Err(unexpected(Type::Bool, code)),
        }
    }

    #[inline]
    fn boolean_byte(&mut self) -> Result<bool> {
        match self.take_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(DecodeError::InvalidBoolean(byte)),
        }
    }

    /// Reads a ubyte.
    #[inline]
    pub fn ubyte(&mut self) -> Result<u8> {
        self.expect(codes::UBYTE, Type::Ubyte)?;
        self.take_u8()
    }

    /// Reads a ushort.
    #[inline]
    pub fn ushort(&mut self) -> Result<u16> {
        self.expect(codes::USHORT, Type::Ushort)?;
        self.take_array().map(u16::from_be_bytes)
    }

    /// Reads a uint.
    #[inline]
    pub fn uint(&mut self) -> Result<u32> {
        match self.take_u8()? {
            codes::UINT0 => Ok(0),
            codes::SMALL_UINT => self.take_u8().map(u32::from),
            codes::UINT => self.take_array().map(u32::from_be_bytes),
            code => Err(unexpected(Type::Uint, code)),
        }
    }

    /// Reads a ulong.
    #[inline]
    pub fn ulong(&mut self) -> Result<u64> {
        match self.take_u8()? {
            codes::ULONG0 => Ok(0),
            codes::SMALL_ULONG => self.take_u8().map(u64::from),
            codes::ULONG => self.take_array().map(u64::from_be_bytes),
            code => Err(unexpected(Type::Ulong, code)),
        }
    }

    /// Reads an int.
    pub fn int(&mut self) -> Result<i32> {
        match self.take_u8()? {
            codes::SMALL_INT => self.take_array().map(|b| i32::from(i8::from_be_bytes(b))),
            codes::INT => self.take_array().map(i32::from_be_bytes),
            code => Err(unexpected(Type::Int, code)),
        }
    }

    /// Reads a long.
    pub fn long(&mut self) -> Result<i64> {
        match self.take_u8()? {
            codes::SMALL_LONG => self.take_array().map(|b| i64::from(i8::from_be_bytes(b))),
            codes::LONG => self.take_array().map(i64::from_be_bytes),
            code => Err(unexpected(Type::Long, code)),
        }
    }

    /// Reads a timestamp.
    pub fn timestamp(&mut self) -> Result<i64> {
        self.expect(codes::TIMESTAMP, Type::Timestamp)?;
        self.take_array().map(i64::from_be_bytes)
    }

    /// Reads a UUID.
    pub fn uuid(&mut self) -> Result<[u8; 16]> {
        self.expect(codes::UUID, Type::Uuid)?;
        self.take_array()
    }

    /// Reads a binary.
    #[inline]
    pub fn binary(&mut self) -> Result<&'a [u8]> {
        match self.take_u8()? {
            codes::BINARY8 => self.take_sized8(),
            codes::BINARY32 => self.take_sized32(),
            code => Err(unexpected(Type::Binary, code)),
        }
    }

    /// Reads a string.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str> {
        let bytes = match self.take_u8()? {
            codes::STRING8 => self.take_sized8()?,
            codes::STRING32 => self.take_sized32()?,
            code => return Err(unexpected(Type::String, code)),
        };
        std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8)
    }

    /// Reads a symbol.
    #[inline]
    pub fn symbol(&mut self) -> Result<&'a str> {
        let bytes = match self.take_u8()? {
            codes::SYMBOL8 => self.take_sized8()?,
            codes::SYMBOL32 => self.take_sized32()?,
            code => return Err(unexpected(Type::Symbol, code)),
        };
        ascii(bytes)
    }

    /// Reads a map.
    pub fn map(&mut self) -> Result<Map> {
        let compound = self.map_compound()?;
        self.map_items(compound)
    }

    /// Reads an array.
    pub fn array(&mut self) -> Result<Array> {
        match self.take_u8()? {
            code @ (codes::ARRAY8 | codes::ARRAY32) => self.array_items(code),
            code => Err(unexpected(Type::Array, code)),
        }
    }

    /// Reads the next value, whatever it is.
    pub fn value(&mut self) -> Result<Value> {
        let code = self.take_u8()?;
        self.value_of(code)
    }

    /// Reads the data of a value whose format code has been read.
    fn value_of(&mut self, code: u8) -> Result<Value> {
        Ok(match code {
            codes::DESCRIBED => return self.described(),
            codes::NULL => Value::Null,
            codes::TRUE => Value::Bool(true),
            codes::FALSE => Value::Bool(false),
            codes::BOOLEAN => Value::Bool(self.boolean_byte()?),
            codes::UBYTE => Value::Ubyte(self.take_u8()?),
            codes::USHORT => Value::Ushort(u16::from_be_bytes(self.take_array()?)),
            codes::UINT0 => Value::Uint(0),
            codes::SMALL_UINT => Value::Uint(self.take_u8()?.into()),
            codes::UINT => Value::Uint(u32::from_be_bytes(self.take_array()?)),
            codes::ULONG0 => Value::Ulong(0),
            codes::SMALL_ULONG => Value::Ulong(self.take_u8()?.into()),
            codes::ULONG => Value::Ulong(u64::from_be_bytes(self.take_array()?)),
            codes::BYTE => Value::Byte(i8::from_be_bytes(self.take_array()?)),
            codes::SHORT => Value::Short(i16::from_be_bytes(self.take_array()?)),
            codes::SMALL_INT => Value::Int(i8::from_be_bytes(self.take_array()?).into()),
            codes::INT => Value::Int(i32::from_be_bytes(self.take_array()?)),
            codes::SMALL_LONG => Value::Long(i8::from_be_bytes(self.take_array()?).into()),
            codes::LONG => Value::Long(i64::from_be_bytes(self.take_array()?)),
            codes::FLOAT => Value::Float(f32::from_be_bytes(self.take_array()?)),
            codes::DOUBLE => Value::Double(f64::from_be_bytes(self.take_array()?)),
            codes::DECIMAL32 => Value::Decimal32(self.take_array()?),
            codes::DECIMAL64 => Value::Decimal64(self.take_array()?),
            codes::DECIMAL128 => Value::Decimal128(self.take_array()?),
            codes::CHAR => {
                let number = u32::from_be_bytes(self.take_array()?);
                Value::Char(char::from_u32(number).ok_or(DecodeError::InvalidChar(number))?)
            }
            codes::TIMESTAMP => Value::Timestamp(i64::from_be_bytes(self.take_array()?)),
            codes::UUID => Value::Uuid(self.take_array()?),
            codes::BINARY8 => Value::Binary(self.take_sized8()?.to_vec()),
            codes::BINARY32 => Value::Binary(self.take_sized32()?.to_vec()),
            codes::STRING8 => Value::String(utf8(self.take_sized8()?)?),
            codes::STRING32 => Value::String(utf8(self.take_sized32()?)?),
            codes::SYMBOL8 => Value::Symbol(Symbol::from_ascii(ascii(self.take_sized8()?)?)),
            codes::SYMBOL32 => Value::Symbol(Symbol::from_ascii(ascii(self.take_sized32()?)?)),
            codes::LIST0 => Value::List(Vec::new()),
            codes::LIST8 => self.compound8().and_then(|list| self.list_items(list))?,
            codes::LIST32 => self.compound32().and_then(|list| self.list_items(list))?,
            codes::MAP8 => Value::Map(self.compound8().and_then(|map| self.map_items(map))?),
            codes::MAP32 => Value::Map(self.compound32().and_then(|map| self.map_items(map))?),
            codes::ARRAY8 | codes::ARRAY32 => Value::Array(self.array_items(code)?),
            code => return Err(DecodeError::UnknownCode(code)),
        })
    }

    fn described(&mut self) -> Result<Value> {
        let mut nested = self.nest(self.rest())?;
        let descriptor = nested.value()?;
        let value = nested.value()?;
        self.resume(&nested);
        Ok(Value::Described(Box::new(Described { descriptor, value })))
    }

    fn list_items(&mut self, list: Compound<'a>) -> Result<Value> {
        let mut fields = self.enter(list)?;
        let mut values = Vec::with_capacity(list.count as usize);
        while let Some(element) = fields.next_element() {
            values.push(element.value()?);
        }
        fields.finish(self)?;
        Ok(Value::List(values))
    }

    fn map_items(&mut self, map: Compound<'a>) -> Result<Map> {
        if !map.count.is_multiple_of(2) {
            return Err(DecodeError::OddMap);
        }
        let mut fields = self.enter(map)?;
        let mut pairs = Vec::with_capacity(map.count as usize / 2);
        while let Some(key) = fields.next_element() {
            let key = key.value()?;
            let value = fields.next_element().ok_or(DecodeError::OddMap)?.value()?;
            pairs.push((key, value));
        }
        fields.finish(self)?;
        Ok(Map(pairs))
    }

    fn array_items(&mut self, code: u8) -> Result<Array> {
        let mut descriptors = Vec::new();
        let (count, mut nested, code) = self.enter_array(code, |nested| {
            descriptors.push(nested.value()?);
            Ok(())
        })?;
        let of = type_of(code).ok_or(DecodeError::UnknownCode(code))?;
        let mut elements = Vec::with_capacity(count as usize);
        for _ in 0..count {
            elements.push(nested.value_of(code)?);
        }
        self.adopt(&nested)?;
        Ok(Array { descriptors, of, elements })
    }

    /// Reads the size, count and constructor of an array whose format code has been read, and
    /// charges its elements. Returns their number, a decoder that stands in front of them, and
    /// the format code that they share.
    pub(super) fn enter_array(
        &mut self,
        code: u8,
        mut read_descriptor: impl FnMut(&mut Decoder<'a>) -> Result<()>,
    ) -> Result<(u32, Decoder<'a>, u8)> {
        let (count, bytes) = self.array_header(code)?;
        self.charge_elements(count)?;
        let mut nested = self.nest(bytes)?;
        let mut depth = self.depth_left();
        let element = loop {
            match nested.take_u8()? {
                codes::DESCRIBED => {
                    depth = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
                    read_descriptor(&mut nested)?;
                }
                element => break element,
            }
        };
        if Width::of(element) == Width::Unknown {
            return Err(DecodeError::UnknownCode(element));
        }
        match Width::least_element(element) {
            0 => nested.charge_zero_width(count)?,
            least if u64::from(count) * u64::from(least) > nested.rest().len() as u64 => {
                return Err(DecodeError::CountExceedsBytes { count });
            }
            _ => {}
        }
        Ok((count, nested, element))
    }

    fn array_header(&mut self, code: u8) -> Result<(u32, &'a [u8])> {
        let header = if code == codes::ARRAY8 {
            self.take_sized8()?.split_first().map(|(count, rest)| (u32::from(*count), rest))
        } else {
            let header = self.take_sized32()?.split_first_chunk();
            header.map(|(count, rest)| (u32::from_be_bytes(*count), rest))
        };
        header.ok_or(DecodeError::SizeMismatch)
    }

    #[inline]
    fn expect(&mut self, code: u8, expected: Type) -> Result<()> {
        match self.take_u8()? {
            found if found == code => Ok(()),
            found => Err(unexpected(expected, found)),
        }
    }
}

/// The type that a format code encodes.
pub(crate) fn type_of(code: u8) -> Option<Type> {
    Some(match code {
        codes::DESCRIBED => Type::Described,
        codes::NULL => Type::Null,
        codes::TRUE | codes::FALSE | codes::BOOLEAN => Type::Bool,
        codes::UBYTE => Type::Ubyte,
        codes::USHORT => Type::Ushort,
        codes::UINT0 | codes::SMALL_UINT | codes::UINT => Type::Uint,
        codes::ULONG0 | codes::SMALL_ULONG | codes::ULONG => Type::Ulong,
        codes::BYTE => Type::Byte,
        codes::SHORT => Type::Short,
        codes::SMALL_INT | codes::INT => Type::Int,
        codes::SMALL_LONG | codes::LONG => Type::Long,
        codes::FLOAT => Type::Float,
        codes::DOUBLE => Type::Double,
        codes::DECIMAL32 => Type::Decimal32,
        codes::DECIMAL64 => Type::Decimal64,
        codes::DECIMAL128 => Type::Decimal128,
        codes::CHAR => Type::Char,
        codes::TIMESTAMP => Type::Timestamp,
        codes::UUID => Type::Uuid,
        codes::BINARY8 | codes::BINARY32 => Type::Binary,
        codes::STRING8 | codes::STRING32 => Type::String,
        codes::SYMBOL8 | codes::SYMBOL32 => Type::Symbol,
        codes::LIST0 | codes::LIST8 | codes::LIST32 => Type::List,
        codes::MAP8 | codes::MAP32 => Type::Map,
        codes::ARRAY8 | codes::ARRAY32 => Type::Array,
        _ => return None,
    })
}

fn utf8(bytes: &[u8]) -> Result<String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| DecodeError::InvalidUtf8)
}

pub(super) fn ascii(bytes: &[u8]) -> Result<&str> {
    if !bytes.is_ascii() {
        return Err(DecodeError::InvalidSymbol);
    }
    std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidSymbol)
}
