use super::value::type_of;
use super::{Decode, DecodeError, Decoder, Limits};
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
    pub fn as_binary(self) -> Option<&'a [u8]> {
        self.decoder().binary().ok()
    }

    /// The value of any integer type (timestamps included), if it is not negative.
    pub fn as_u64(self) -> Option<u64> {
        self.integer()?.as_u64()
    }

    /// The value of any integer type (timestamps included), if it fits.
    pub fn as_i64(self) -> Option<i64> {
        self.integer()?.as_i64()
    }

    /// The value of a boolean.
    pub fn as_bool(self) -> Option<bool> {
        self.decoder().boolean().ok()
    }

    /// The pairs of a map.
    pub fn as_map(self) -> Option<RawMap<'a>> {
        let map = self.decoder().map_compound().ok()?;
        Some(RawMap { rest: Decoder::new(map.items), left: map.count / 2 })
    }

    /// The elements of a list.
    pub fn as_list(self) -> Option<RawList<'a>> {
        let list = self.decoder().list_compound().ok()?;
        Some(RawList { rest: Decoder::new(list.items), left: list.count })
    }

    /// The descriptor and the value described.
    pub fn as_described(self) -> Option<(super::Descriptor<'a>, RawValue<'a>)> {
        let mut decoder = self.decoder();
        let descriptor = decoder.descriptor().ok()?;
        Some((descriptor, RawValue(decoder.rest())))
    }

    /// Decodes integers only: other types might allocate.
    fn integer(self) -> Option<Value> {
        let integer = matches!(
            self.type_of(),
            Type::Ubyte
                | Type::Ushort
                | Type::Uint
                | Type::Ulong
                | Type::Byte
                | Type::Short
                | Type::Int
                | Type::Long
                | Type::Timestamp
        );
        if integer { self.decode().ok() } else { None }
    }
}

/// The elements of an encoded list, one after another; ends early where the bytes are malformed.
#[derive(Clone, Debug)]
pub struct RawList<'a> {
    rest: Decoder<'a>,
    left: u32,
}

impl<'a> Iterator for RawList<'a> {
    type Item = RawValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawValue<'a>> {
        self.left = self.left.checked_sub(1)?;
        let value = self.rest.raw().ok();
        if value.is_none() {
            self.left = 0;
        }
        value
    }
}

/// The pairs of an encoded map, one after another; ends early where the bytes are malformed.
#[derive(Clone, Debug)]
pub struct RawMap<'a> {
    rest: Decoder<'a>,
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
        let pair = self.rest.raw().and_then(|key| Ok((key, self.rest.raw()?))).ok();
        if pair.is_none() {
            self.left = 0;
        }
        pair
    }
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
    fn asking_for_another_type_finds_nothing() {
        let value = RawValue::from_bytes(&[codes::TRUE]).unwrap();
        assert_eq!(value.as_bool(), Some(true));
        assert!(value.as_str().is_none() && value.as_u64().is_none() && value.as_map().is_none());
        assert!(RawValue::from_bytes(&[codes::TRUE, codes::TRUE]).is_err());
    }
}
