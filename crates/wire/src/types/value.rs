use super::{Array, Map, Symbol};

/// Any AMQP value, owned (part 1, 1.6).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// Unsigned, 8 bits.
    Ubyte(u8),
    /// Unsigned, 16 bits.
    Ushort(u16),
    /// Unsigned, 32 bits.
    Uint(u32),
    /// Unsigned, 64 bits.
    Ulong(u64),
    /// Signed, 8 bits.
    Byte(i8),
    /// Signed, 16 bits.
    Short(i16),
    /// Signed, 32 bits.
    Int(i32),
    /// Signed, 64 bits.
    Long(i64),
    /// IEEE 754 binary32.
    Float(f32),
    /// IEEE 754 binary64.
    Double(f64),
    /// IEEE 754 decimal32, as its bytes.
    Decimal32([u8; 4]),
    /// IEEE 754 decimal64, as its bytes.
    Decimal64([u8; 8]),
    /// IEEE 754 decimal128, as its bytes.
    Decimal128([u8; 16]),
    /// One Unicode character.
    Char(char),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
    /// A UUID (RFC 4122).
    Uuid([u8; 16]),
    /// Bytes.
    Binary(Vec<u8>),
    /// Unicode text.
    String(String),
    /// A name from a constrained domain.
    Symbol(Symbol),
    /// Values of any types, in order.
    List(Vec<Value>),
    /// Pairs of values, in order.
    Map(Map),
    /// Values of one type.
    Array(Array),
    /// A value with a descriptor that says what it means.
    Described(Box<Described>),
}

impl Value {
    /// The type of the value.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Ubyte(_) => Type::Ubyte,
            Value::Ushort(_) => Type::Ushort,
            Value::Uint(_) => Type::Uint,
            Value::Ulong(_) => Type::Ulong,
            Value::Byte(_) => Type::Byte,
            Value::Short(_) => Type::Short,
            Value::Int(_) => Type::Int,
            Value::Long(_) => Type::Long,
            Value::Float(_) => Type::Float,
            Value::Double(_) => Type::Double,
            Value::Decimal32(_) => Type::Decimal32,
            Value::Decimal64(_) => Type::Decimal64,
            Value::Decimal128(_) => Type::Decimal128,
            Value::Char(_) => Type::Char,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Uuid(_) => Type::Uuid,
            Value::Binary(_) => Type::Binary,
            Value::String(_) => Type::String,
            Value::Symbol(_) => Type::Symbol,
            Value::List(_) => Type::List,
            Value::Map(_) => Type::Map,
            Value::Array(_) => Type::Array,
            Value::Described(_) => Type::Described,
        }
    }

    /// The text of a string or symbol.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            Value::Symbol(symbol) => Some(symbol.as_str()),
            _ => None,
        }
    }

    /// The value of any integer type (timestamps included), if it is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        u64::try_from(self.as_i128()?).ok()
    }

    /// The value of any integer type (timestamps included), if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        i64::try_from(self.as_i128()?).ok()
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of a binary.
    pub fn as_binary(&self) -> Option<&[u8]> {
        match self {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The value of any integer type, timestamps included.
    pub(crate) fn as_i128(&self) -> Option<i128> {
        Some(match *self {
            Value::Ubyte(v) => v.into(),
            Value::Ushort(v) => v.into(),
            Value::Uint(v) => v.into(),
            Value::Ulong(v) => v.into(),
            Value::Byte(v) => v.into(),
            Value::Short(v) => v.into(),
            Value::Int(v) => v.into(),
            Value::Long(v) | Value::Timestamp(v) => v.into(),
            _ => return None,
        })
    }

    /// The same value as another type, if it fits that type without loss: integers as integers
    /// of another width, strings as symbols and the reverse.
    pub fn to_type(&self, of: Type) -> Option<Value> {
        if self.type_of() == of {
            return Some(self.clone());
        }
        if let Some(text) = self.as_str() {
            return match of {
                Type::String => Some(Value::String(text.to_owned())),
                Type::Symbol => Symbol::new(text).ok().map(Value::Symbol),
                _ => None,
            };
        }
        let number = self.as_i128()?;
        Some(match of {
            Type::Ubyte => Value::Ubyte(number.try_into().ok()?),
            Type::Ushort => Value::Ushort(number.try_into().ok()?),
            Type::Uint => Value::Uint(number.try_into().ok()?),
            Type::Ulong => Value::Ulong(number.try_into().ok()?),
            Type::Byte => Value::Byte(number.try_into().ok()?),
            Type::Short => Value::Short(number.try_into().ok()?),
            Type::Int => Value::Int(number.try_into().ok()?),
            Type::Long => Value::Long(number.try_into().ok()?),
            Type::Timestamp => Value::Timestamp(number.try_into().ok()?),
            _ => return None,
        })
    }
}

/// A value with its descriptor (part 1, 1.2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// What the value means: usually a symbol or an unsigned long.
    pub descriptor: Value,
    /// The value described.
    pub value: Value,
}

impl Described {
    /// Whether the descriptor is this symbol or this number.
    pub fn is(&self, symbol: &str, code: u64) -> bool {
        match &self.descriptor {
            Value::Symbol(name) => name.as_str() == symbol,
            Value::Ulong(number) => *number == code,
            _ => false,
        }
    }
}

/// Milliseconds since the Unix epoch, as a typed field (part 1, 1.6.17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A UUID, as a typed field (part 1, 1.6.18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

/// The types of AMQP 1.0, whatever their encoding (part 1, 1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the type of the same name in `Value`")]
pub enum Type {
    Null,
    Bool,
    Ubyte,
    Ushort,
    Uint,
    Ulong,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Decimal32,
    Decimal64,
    Decimal128,
    Char,
    Timestamp,
    Uuid,
    Binary,
    String,
    Symbol,
    List,
    Map,
    Array,
    Described,
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    bool => Bool, u8 => Ubyte, u16 => Ushort, u32 => Uint, u64 => Ulong, i8 => Byte, i16 => Short,
    i32 => Int, i64 => Long, f32 => Float, f64 => Double, char => Char, Vec<u8> => Binary,
    String => String, &str => String, Symbol => Symbol, Vec<Value> => List, Map => Map,
    Array => Array,
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Value {
        Value::Timestamp(value.0)
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Value {
        Value::Uuid(value.0)
    }
}

impl From<Described> for Value {
    fn from(value: Described) -> Value {
        Value::Described(Box::new(value))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_takes_another_type_only_if_it_fits() {
        assert_eq!(Value::Uint(7).to_type(Type::Ulong), Some(Value::Ulong(7)));
        assert_eq!(Value::Ulong(300).to_type(Type::Ubyte), None);
        assert_eq!(Value::Int(-1).to_type(Type::Uint), None);
        assert_eq!(Value::Int(-1).to_type(Type::Byte), Some(Value::Byte(-1)));
        assert_eq!(Value::Bool(true).to_type(Type::Uint), None);
    }

    #[test]
    fn text_becomes_a_symbol_only_if_it_is_ascii() {
        let symbol = Value::Symbol("a".into());
        assert_eq!(Value::from("a").to_type(Type::Symbol), Some(symbol.clone()));
        assert_eq!(symbol.to_type(Type::String), Some(Value::from("a")));
        assert_eq!(Value::from("ä").to_type(Type::Symbol), None);
    }

    #[test]
    fn a_descriptor_matches_by_number_or_by_whole_name() {
        let named = |name| Described { descriptor: Value::Symbol(name), value: Value::Null };
        assert!(named("a:b".into()).is("a:b", 7));
        assert!(!named("a:b:c".into()).is("a:b", 7));
        assert!(Described { descriptor: 7u64.into(), value: Value::Null }.is("a:b", 7));
        assert!(!Described { descriptor: 7u32.into(), value: Value::Null }.is("a:b", 7));
    }
}
