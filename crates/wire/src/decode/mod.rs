//! Reading values: bounded, without panics, and without allocating what the bytes do not back.

mod cursor;
mod error;
mod field;
mod limits;
mod quick;
mod raw;
mod skip;
mod value;
mod walk;

pub use cursor::{Decoder, Descriptor, Fields};
pub use error::DecodeError;
pub use field::{Decode, Multiple};
pub use limits::Limits;
pub use raw::{RawList, RawMap, RawValue};

pub(crate) use cursor::unexpected;
pub(crate) use quick::{Quick, compound_len, value_len};
pub(crate) use value::type_of;
