use super::value::length;

/// A list, map or array under construction: room for a header, which grows at the end if it was
/// made small and the content has turned out to be large.
#[derive(Debug)]
pub(crate) struct CompoundWriter {
    start: usize,
    header: usize,
}

impl CompoundWriter {
    /// Begins with a small header.
    #[inline]
    pub(crate) fn begin(out: &mut Vec<u8>) -> CompoundWriter {
        let start = out.len();
        out.extend_from_slice(&[0; SMALL_HEADER]);
        CompoundWriter { start, header: SMALL_HEADER }
    }

    /// Begins with the header that fits items of so many bytes, so that they are not moved later.
    pub(crate) fn begin_sized(out: &mut Vec<u8>, items: usize) -> CompoundWriter {
        let start = out.len();
        let header = if items < 0xff { SMALL_HEADER } else { LARGE_HEADER };
        out.extend_from_slice(&[0; LARGE_HEADER][..header]);
        CompoundWriter { start, header }
    }

    /// Where the list, map or array begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Ends with the number of elements, and the format codes for either header.
    #[inline]
    pub(crate) fn finish(&self, out: &mut Vec<u8>, count: u32, small: u8, large: u8) {
        let items = out.len() - self.start - self.header;
        // The size counts the count field too.
        match (u8::try_from(items + 1), u8::try_from(count)) {
            (Ok(size), Ok(count)) if self.header == SMALL_HEADER => {
                out[self.start..][..SMALL_HEADER].copy_from_slice(&[small, size, count]);
            }
            _ => self.finish_large(out, count, large),
        }
    }

    #[cold]
    fn finish_large(&self, out: &mut Vec<u8>, count: u32, large: u8) {
        let items = out.len() - self.start - self.header;
        let from = self.start + self.header;
        if self.header < LARGE_HEADER {
            out.extend_from_slice(&[0; LARGE_HEADER - SMALL_HEADER]);
            out.copy_within(from..from + items, self.start + LARGE_HEADER);
        }
        let header = &mut out[self.start..self.start + LARGE_HEADER];
        header[0] = large;
        header[1..5].copy_from_slice(&(length(items) + 4).to_be_bytes());
        header[5..9].copy_from_slice(&count.to_be_bytes());
    }
}

/// Format code, size and count of one byte each.
pub(super) const SMALL_HEADER: usize = 3;
/// Format code, and size and count of four bytes each.
pub(super) const LARGE_HEADER: usize = 9;
