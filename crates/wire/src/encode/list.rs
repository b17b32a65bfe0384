use super::{CompoundWriter, Encode, encode_descriptor};
use crate::types::{Symbol, codes};

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
            self.out.truncate(self.compound.start());
            self.out.push(codes::LIST0);
        } else {
            self.compound.finish(self.out, self.end_count, codes::LIST8, codes::LIST32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut ListWriter<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut list = ListWriter::composite(&mut out, 0x10);
        write(&mut list);
        list.finish();
        out
    }

    #[test]
    fn nulls_at_the_end_are_left_out_and_those_before_are_not() {
        let bytes = written(|list| {
            list.null();
            list.field(&7u32);
            list.optional::<u32>(None);
            list.multiple(&[]);
            list.encoded(&[codes::NULL]);
        });
        assert_eq!(bytes, [0x00, 0x53, 0x10, 0xc0, 4, 2, 0x40, 0x52, 7]);
    }

    #[test]
    fn a_list_of_nothing_is_the_empty_list() {
        assert_eq!(written(|_| {}), [0x00, 0x53, 0x10, 0x45]);
        assert_eq!(written(|list| list.unless_default(&1u8, &1)), [0x00, 0x53, 0x10, 0x45]);
    }

    #[test]
    fn a_list_that_turns_out_large_gets_a_large_header() {
        for len in [250, 251, 252, 253, 1000] {
            let bytes = written(|list| list.field(&vec![7u8; len]));
            let item = vec![7u8; len].to_bytes();
            assert!(bytes.ends_with(&item), "{len}");
            assert_eq!(bytes[3], if item.len() < 255 { 0xc0 } else { 0xd0 }, "{len}");
            crate::Decoder::new(&bytes).walk().unwrap();
        }
    }
}
