use super::value::type_of;
use super::{Decode, DecodeError, Decoder, Limits, value_len};
use crate::types::{Type, Value, codes};

/// One encoded value that nobody has decoded yet.
///
/// Its outer size is known to be right; what is inside is checked when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawValue<'a>(&'a [u8]);

impl<'a> RawValue<'a> {
    /// The value that exactly fills `bytes`.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<RawValue<'a>, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let value = decoder.raw()?;
        if decoder.is_empty() { Ok(value) } else { Err(DecodeError::SizeMismatch) }
    }

    /// A value that a decoder has measured.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> RawValue<'a> {
        RawValue(bytes)
    }

    /// The encoded bytes, format code first.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The type, read from the format code.
    pub fn type_of(self) -> Type {
        self.0.first().and_then(|code| type_of(*code)).unwrap_or(Type::Null)
    }

    /// Whether this is null.
    #[inline]
    pub fn is_null(self) -> bool {
        self.0.first() == Some(&codes::NULL)
    }

    /// The value, decoded within the default limits.
    pub fn decode(self) -> Result<Value, DecodeError> {
        self.decode_as()
    }

    /// The value, decoded within these limits.
    pub fn decode_within(self, limits: &Limits) -> Result<Value, DecodeError> {
        Decoder::with_limits(self.0, limits).value()
    }

    /// The value, decoded as one type.
    pub fn decode_as<T: Decode>(self) -> Result<T, DecodeError> {
        T::decode(&mut self.decoder())
    }

    /// A decoder that stands in front of this value.
    #[inline]
    pub fn decoder(self) -> Decoder<'a> {
        Decoder::new(self.0)
    }

    /// The text of a string or symbol; `None` for anything else, malformed text included.
    #[inline]
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.text()?).ok()
    }

    /// The bytes of a string or symbol, whose encoding nobody has checked.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self.0 {
            [codes::STRING8 | codes::SYMBOL8, _, text @ ..] => Some(text),
            [codes::STRING32 | codes::SYMBOL32, _, _, _, _, text @ ..] => Some(text),
            _ => None,
        }
    }

    /// The bytes of a binary.
    #[inline]
    pub fn as_binary(self) -> Option<&'a [u8]> {
        match self.0 {
            [codes::BINARY8, _, bytes @ ..] => Some(bytes),
            [codes::BINARY32, _, _, _, _, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }

    /// The value of any integer type (timestamps included), if it is not negative.
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            [codes::ULONG, number @ ..] => Some(u64::from_be_bytes(number.try_into().ok()?)),
            _ => self.as_i64()?.try_into().ok(),
        }
    }

    /// The value of any integer type (timestamps included), if it fits.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        let (code, number) = self.0.split_first()?;
        Some(match *code {
            codes::UINT0 | codes::ULONG0 => 0,
            codes::UBYTE | codes::SMALL_UINT | codes::SMALL_ULONG => (*number.first()?).into(),
            codes::BYTE | codes::SMALL_INT | codes::SMALL_LONG => {
                i8::from_be_bytes([*number.first()?]).into()
            }
            codes::USHORT => u16::from_be_bytes(number.try_into().ok()?).into(),
            codes::SHORT => i16::from_be_bytes(number.try_into().ok()?).into(),
            codes::UINT => u32::from_be_bytes(number.try_into().ok()?).into(),
            codes::INT => i32::from_be_bytes(number.try_into().ok()?).into(),
            codes::ULONG => u64::from_be_bytes(number.try_into().ok()?).try_into().ok()?,
            codes::LONG | codes::TIMESTAMP => i64::from_be_bytes(number.try_into().ok()?),
            _ => return None,
        })
    }

    /// The value of a float or double.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        match self.0 {
            [codes::FLOAT, number @ ..] => Some(f32::from_be_bytes(number.try_into().ok()?).into()),
            [codes::DOUBLE, number @ ..] => Some(f64::from_be_bytes(number.try_into().ok()?)),
            _ => None,
        }
    }

    /// The value of a boolean.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            [codes::TRUE] | [codes::BOOLEAN, 1] => Some(true),
            [codes::FALSE] | [codes::BOOLEAN, 0] => Some(false),
            _ => None,
        }
    }

    /// The pairs of a map.
    pub fn as_map(self) -> Option<RawMap<'a>> {
        let map = self.decoder().map_compound().ok()?;
        Some(RawMap { rest: map.items, left: map.count / 2 })
    }

    /// The elements of a list.
    pub fn as_list(self) -> Option<RawList<'a>> {
        let list = self.decoder().list_compound().ok()?;
        Some(RawList { rest: list.items, left: list.count })
    }

    /// The descriptor and the value described.
    pub fn as_described(self) -> Option<(super::Descriptor<'a>, RawValue<'a>)> {
        let mut decoder = self.decoder();
        let descriptor = decoder.descriptor().ok()?;
        Some((descriptor, RawValue(decoder.rest())))
    }
}

/// The elements of an encoded list, one after another; ends early where the bytes are malformed.
#[derive(Clone, Debug)]
pub struct RawList<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> RawList<'a> {
    /// So many elements that follow one another in these bytes.
    #[inline]
    pub(crate) fn new(rest: &'a [u8], left: u32) -> RawList<'a> {
        RawList { rest, left }
    }
}

impl<'a> Iterator for RawList<'a> {
    type Item = RawValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawValue<'a>> {
        self.left = self.left.checked_sub(1)?;
        let value = take(&mut self.rest);
        if value.is_none() {
            self.left = 0;
        }
        value
    }
}

/// The pairs of an encoded map, one after another; ends early where the bytes are malformed.
#[derive(Clone, Debug)]
pub struct RawMap<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> RawMap<'a> {
    /// The value of the first string or symbol key that reads `key`.
    pub fn get(mut self, key: &str) -> Option<RawValue<'a>> {
        self.find(|(k, _)| k.text() == Some(key.as_bytes())).map(|(_, value)| value)
    }
}

impl<'a> Iterator for RawMap<'a> {
    type Item = (RawValue<'a>, RawValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let pair = take(&mut self.rest).and_then(|key| Some((key, take(&mut self.rest)?)));
        if pair.is_none() {
            self.left = 0;
        }
        pair
    }
}

/// The value that these bytes begin with, which is taken from them.
#[inline(always)]
fn take<'a>(bytes: &mut &'a [u8]) -> Option<RawValue<'a>> {
    let len = value_len(bytes).or_else(|| described_len(bytes))?;
    let (value, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(RawValue(value))
}

#[cold]
fn described_len(bytes: &[u8]) -> Option<usize> {
    Some(Decoder::new(bytes).raw().ok()?.0.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encode as _;
    use crate::types::Map;

    #[test]
    fn a_map_is_searched_without_decoding_its_values() {
        let mut bytes = Vec::new();
        Map::new().with("a", 1u32).with("nested", Map::new().with("b", "c")).encode(&mut bytes);
        let map = RawValue::from_bytes(&bytes).unwrap().as_map().unwrap();
        assert_eq!(map.clone().get("a").unwrap().as_u64(), Some(1));
        let nested = map.clone().get("nested").unwrap().as_map().unwrap();
        assert_eq!(nested.get("b").unwrap().as_str(), Some("c"));
        assert_eq!(map.clone().count(), 2);
        assert!(map.get("c").is_none());
    }

    #[test]
    fn a_malformed_pair_ends_the_map() {
        let bytes = [codes::MAP8, 5, 4, codes::SMALL_UINT, 1, codes::TRUE, 0xff];
        let map = RawValue::from_bytes(&bytes).unwrap().as_map().unwrap();
        assert_eq!(map.count(), 1);
    }

    #[test]
    fn numbers_are_read_in_every_encoding() {
        let integers: [(&[u8], i64); 17] = [
            (&[codes::UINT0], 0),
            (&[codes::ULONG0], 0),
            (&[codes::UBYTE, 200], 200),
            (&[codes::SMALL_UINT, 200], 200),
            (&[codes::SMALL_ULONG, 200], 200),
            (&[codes::BYTE, 0xff], -1),
            (&[codes::SMALL_INT, 0xff], -1),
            (&[codes::SMALL_LONG, 0xff], -1),
            (&[codes::USHORT, 0xff, 0xfe], 65_534),
            (&[codes::SHORT, 0xff, 0xfe], -2),
            (&[codes::UINT, 0xff, 0xff, 0xff, 0xfe], 0xffff_fffe),
            (&[codes::INT, 0xff, 0xff, 0xff, 0xfe], -2),
            (&[codes::ULONG, 0, 0, 0, 0, 0, 0, 1, 0], 256),
            (&[codes::LONG, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], -2),
            (&[codes::TIMESTAMP, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], -2),
            (&[codes::LONG, 0x80, 0, 0, 0, 0, 0, 0, 0], i64::MIN),
            (&[codes::ULONG, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MAX),
        ];
        for (bytes, number) in integers {
            let value = RawValue::from_bytes(bytes).unwrap();
            assert_eq!(value.as_i64(), Some(number), "{bytes:02x?}");
            assert_eq!(value.as_u64(), u64::try_from(number).ok(), "{bytes:02x?}");
            assert_eq!(value.as_f64(), None);
        }
        let large = RawValue::from_bytes(&[codes::ULONG, 0x80, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!((large.as_i64(), large.as_u64()), (None, Some(1 << 63)));
        for value in [Value::Float(0.5), Value::Double(0.5)] {
            let bytes = value.to_bytes();
            assert_eq!(RawValue::from_bytes(&bytes).unwrap().as_f64(), Some(0.5));
        }
    }

    #[test]
    fn asking_for_another_type_finds_nothing() {
        let value = RawValue::from_bytes(&[codes::TRUE]).unwrap();
        assert_eq!(value.as_bool(), Some(true));
        assert!(value.as_str().is_none() && value.as_u64().is_none() && value.as_map().is_none());
        assert!(RawValue::from_bytes(&[codes::TRUE, codes::TRUE]).is_err());
    }
}
