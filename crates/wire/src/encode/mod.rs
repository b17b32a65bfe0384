//! Writing values, each in its smallest encoding (part 1, 1.6).

mod array;
mod compound;
mod list;
mod value;

pub use list::ListWriter;

pub(crate) use compound::CompoundWriter;
pub(crate) use value::encode_descriptor;

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
