use crate::decode::{DecodeError, Fields};

/// A composite type (part 1, 1.4): a described list of named fields.
pub trait Composite: Sized {
    /// The name in the specification.
    const NAME: &'static str;
    /// The numeric descriptor.
    const DESCRIPTOR: u64;

    /// Reads the fields from the described list.
    fn decode_fields(fields: &mut Fields<'_>) -> Result<Self, DecodeError>;
}

/// Makes a struct out of a table of fields, and its encoding and decoding.
///
/// Each line of the table says how a field may be absent:
///
/// * `mandatory name: T` has to be there;
/// * `optional name: T` is an `Option<T>`, null for none;
/// * `default name: T = value` is a `T`, and null stands for the default;
/// * `multiple name: T` is a `Vec<T>`: null, one value or an array.
macro_rules! composite {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($spec:literal, $descriptor:expr) {
            $(
                $(#[$field_meta:meta])*
                $kind:ident $field:ident: $type:ty $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: composite!(@type $kind $type),)*
        }

        impl $crate::Composite for $name {
            const NAME: &'static str = $spec;
            const DESCRIPTOR: u64 = $descriptor;

            #[allow(unused_variables, reason = "some composites have no fields")]
            fn decode_fields(
                fields: &mut $crate::decode::Fields<'_>,
            ) -> Result<$name, $crate::DecodeError> {
                Ok($name {
                    $($field: composite!(
                        @decode $kind fields, concat!($spec, ".", stringify!($field)) $(, $default)?
                    ),)*
                })
            }
        }

        impl $crate::Decode for $name {
            fn decode(
                decoder: &mut $crate::decode::Decoder<'_>,
            ) -> Result<$name, $crate::DecodeError> {
                $crate::composite::decode(decoder)
            }
        }

        impl $crate::Encode for $name {
            #[allow(unused_mut, reason = "some composites have no fields")]
            fn encode(&self, out: &mut Vec<u8>) {
                let mut list = $crate::encode::ListWriter::composite(out, $descriptor);
                $(composite!(@encode $kind list, self.$field $(, $default)?);)*
                list.finish();
            }
        }
    };

    (@type mandatory $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type default $type:ty) => { $type };
    (@type multiple $type:ty) => { Vec<$type> };

    (@decode mandatory $fields:ident, $name:expr) => { $fields.mandatory($name)? };
    (@decode optional $fields:ident, $name:expr) => { $fields.optional()? };
    (@decode default $fields:ident, $name:expr, $default:expr) => {
        $fields.optional()?.unwrap_or($default)
    };
    (@decode multiple $fields:ident, $name:expr) => { $fields.multiple()? };

    (@encode mandatory $list:ident, $value:expr) => { $list.field(&$value) };
    (@encode optional $list:ident, $value:expr) => { $list.optional($value.as_ref()) };
    (@encode default $list:ident, $value:expr, $default:expr) => {
        $list.unless_default(&$value, &$default)
    };
    (@encode multiple $list:ident, $value:expr) => { $list.multiple(&$value) };
}

/// Makes an enum out of the choices of a restricted type (part 1, 1.5).
macro_rules! restricted {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($spec:literal, $source:ty) {
            $($(#[$choice_meta:meta])* $choice:ident = $value:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$choice_meta])* $choice,)*
        }

        impl $crate::Decode for $name {
            #[inline]
            fn decode(
                decoder: &mut $crate::decode::Decoder<'_>,
            ) -> Result<$name, $crate::DecodeError> {
                match <$source as $crate::Decode>::decode(decoder)? {
                    $($value => Ok($name::$choice),)*
                    #[allow(unreachable_patterns, reason = "both booleans are choices")]
                    _ => Err($crate::DecodeError::InvalidField { field: $spec }),
                }
            }
        }

        impl $crate::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let value: $source = match self {
                    $($name::$choice => $value,)*
                };
                value.encode(out);
            }
        }
    };
}

/// Reads a composite whose descriptor, number or whole name, comes first.
pub(crate) fn decode<T: Composite>(
    decoder: &mut crate::decode::Decoder<'_>,
) -> Result<T, DecodeError> {
    let descriptor = decoder.descriptor()?;
    if descriptor.known() != Some(T::DESCRIPTOR) {
        return Err(descriptor.unknown());
    }
    decode_list(decoder)
}

/// Reads a composite whose descriptor has been read.
pub(crate) fn decode_list<T: Composite>(
    decoder: &mut crate::decode::Decoder<'_>,
) -> Result<T, DecodeError> {
    let mut fields = decoder.list()?;
    let value = T::decode_fields(&mut fields)?;
    fields.finish(decoder)?;
    Ok(value)
}
