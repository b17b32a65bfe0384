//! The type system of part 1: owned values.

mod array;
pub(crate) mod codes;
mod map;
mod symbol;
mod text;
mod value;

pub use array::Array;
pub use map::Map;
pub use symbol::{NotAscii, Symbol};
pub use value::{Described, Timestamp, Type, Uuid, Value};

pub(crate) use codes::Width;
