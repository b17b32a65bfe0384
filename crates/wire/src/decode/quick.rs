use super::RawList;
use crate::descriptor;
use crate::types::{Width, codes};

/// Reads the fields of hot composites in their usual encodings, and gives up on anything else.
///
/// Giving up costs nothing but time: the caller reads the same bytes again with a
/// [`Decoder`](super::Decoder), which knows all encodings and says what is wrong. Here there are
/// no limits to charge, because there is nothing that nests, and no errors to carry, which is
/// what makes it several times as fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick<'a> {
    rest: &'a [u8],
    left: u8,
}

impl<'a> Quick<'a> {
    /// The fields of the composite that these bytes begin with, and how many bytes it takes.
    #[inline(always)]
    pub(crate) fn composite(bytes: &'a [u8], descriptor: u64) -> Option<(Quick<'a>, usize)> {
        match bytes {
            [codes::DESCRIBED, codes::SMALL_ULONG, code, list @ ..]
                if u64::from(*code) == descriptor =>
            {
                Quick::list(list).map(|(fields, used)| (fields, used + 3))
            }
            _ => None,
        }
    }

    /// The elements of the list that these bytes begin with, and how many bytes it takes.
    #[inline(always)]
    pub(crate) fn list(bytes: &'a [u8]) -> Option<(Quick<'a>, usize)> {
        match bytes {
            [codes::LIST8, size, count, rest @ ..] => {
                let items = rest.get(..usize::from(*size).checked_sub(1)?)?;
                Some((Quick { rest: items, left: *count }, usize::from(*size) + 2))
            }
            [codes::LIST0, ..] => Some((Quick { rest: &[], left: 0 }, 1)),
            _ => None,
        }
    }

    /// The fields that are left, of whatever types they are.
    #[inline(always)]
    pub(crate) fn raw(self) -> RawList<'a> {
        RawList::new(self.rest, self.left.into())
    }

    /// A uint, null or nothing.
    #[inline(always)]
    pub(crate) fn optional_uint(&mut self) -> Option<Option<u32>> {
        if !self.step() {
            return Some(None);
        }
        let (value, rest) = match self.rest {
            [codes::UINT, a, b, c, d, rest @ ..] => {
                (Some(u32::from_be_bytes([*a, *b, *c, *d])), rest)
            }
            [codes::SMALL_UINT, a, rest @ ..] => (Some(u32::from(*a)), rest),
            [codes::UINT0, rest @ ..] => (Some(0), rest),
            [codes::NULL, rest @ ..] => (None, rest),
            _ => return None,
        };
        self.rest = rest;
        Some(value)
    }

    /// A uint.
    #[inline(always)]
    pub(crate) fn uint(&mut self) -> Option<u32> {
        self.optional_uint()?
    }

    /// A ubyte, null or nothing.
    #[inline(always)]
    pub(crate) fn optional_ubyte(&mut self) -> Option<Option<u8>> {
        if !self.step() {
            return Some(None);
        }
        let (value, rest) = match self.rest {
            [codes::UBYTE, a, rest @ ..] => (Some(*a), rest),
            [codes::NULL, rest @ ..] => (None, rest),
            _ => return None,
        };
        self.rest = rest;
        Some(value)
    }

    /// A boolean, null or nothing.
    #[inline(always)]
    pub(crate) fn optional_boolean(&mut self) -> Option<Option<bool>> {
        if !self.step() {
            return Some(None);
        }
        let (code, rest) = self.rest.split_first()?;
        self.rest = rest;
        match *code {
            codes::TRUE => Some(Some(true)),
            codes::FALSE => Some(Some(false)),
            codes::NULL => Some(None),
            _ => None,
        }
    }

    /// A boolean that is false if it is null or nothing.
    #[inline(always)]
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.optional_boolean().map(|flag| flag.unwrap_or(false))
    }

    /// A short binary, null or nothing.
    #[inline(always)]
    pub(crate) fn optional_binary(&mut self) -> Option<Option<&'a [u8]>> {
        if !self.step() {
            return Some(None);
        }
        match self.rest {
            [codes::BINARY8, size, rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(*size))?;
                self.rest = rest;
                Some(Some(value))
            }
            [codes::NULL, rest @ ..] => {
                self.rest = rest;
                Some(None)
            }
            _ => None,
        }
    }

    /// Whether the next field is these bytes, and not null or nothing; other values give up.
    #[inline(always)]
    pub(crate) fn optional_exactly<const N: usize>(&mut self, value: &[u8; N]) -> Option<bool> {
        if !self.step() {
            return Some(false);
        }
        if let Some(rest) = self.rest.strip_prefix(value) {
            self.rest = rest;
            return Some(true);
        }
        let rest = self.rest.strip_prefix(&[codes::NULL])?;
        self.rest = rest;
        Some(false)
    }

    /// The id of a transaction in a transactional state without outcome (part 4, 4.5.6), null or
    /// nothing; other states give up.
    #[inline(always)]
    pub(crate) fn optional_transaction(&mut self) -> Option<Option<&'a [u8]>> {
        if !self.step() {
            return Some(None);
        }
        if let Some(rest) = self.rest.strip_prefix(&[codes::NULL]) {
            self.rest = rest;
            return Some(None);
        }
        self.transaction().map(Some)
    }

    /// Not inlined: those who send without transactions do not carry it along.
    #[inline(never)]
    fn transaction(&mut self) -> Option<&'a [u8]> {
        const TRANSACTIONAL: u8 = descriptor::TRANSACTIONAL_STATE as u8;
        let [codes::DESCRIBED, codes::SMALL_ULONG, TRANSACTIONAL, codes::LIST8, size, fields @ ..] =
            self.rest
        else {
            return None;
        };
        let (fields, rest) = fields.split_at_checked(usize::from(*size))?;
        // With a null for the outcome that it has not, or without.
        let id = match fields {
            [1, codes::BINARY8, len, id @ ..] | [2, codes::BINARY8, len, id @ .., codes::NULL]
                if usize::from(*len) == id.len() && (1..=MAX_TXN_ID).contains(&id.len()) =>
            {
                id
            }
            _ => return None,
        };
        self.rest = rest;
        Some(id)
    }

    /// Null or nothing; a value gives up.
    #[inline(always)]
    pub(crate) fn nothing(&mut self) -> Option<()> {
        if self.step() {
            self.rest = self.rest.strip_prefix(&[codes::NULL])?;
        }
        Some(())
    }

    /// Nothing is left; anything else gives up.
    #[inline(always)]
    pub(crate) fn end(self) -> Option<()> {
        (self.left == 0 && self.rest.is_empty()).then_some(())
    }

    /// Whether there is another field.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }
}

/// Longer ids of transactions, if there are any, are read as others are.
const MAX_TXN_ID: usize = 32;

/// The size of the value that these bytes begin with, if it is not described and all there.
#[inline(always)]
pub(crate) fn value_len(bytes: &[u8]) -> Option<usize> {
    let (code, data) = bytes.split_first()?;
    if Width::of(*code) == Width::Unknown {
        return None;
    }
    // Not the width from the table: where the next value begins would have to wait for it, while
    // a branch is predicted and the walk over a map runs ahead (2.5 instead of 5 ns a pair).
    let len = match code >> 4 {
        0xa | 0xc | 0xe => 2 + usize::from(*data.first()?),
        0x5 => 2,
        0x8 => 9,
        0x7 => 5,
        0x4 => 1,
        0x6 => 3,
        0x9 => 17,
        _ => 5 + u32::from_be_bytes(*data.first_chunk()?) as usize,
    };
    (len <= bytes.len()).then_some(len)
}

/// The size of the list or map that these bytes begin with, if it is all there, its count is
/// backed by its bytes, and, for a map, even.
#[inline(always)]
pub(crate) fn compound_len(bytes: &[u8], small: u8, large: u8, even: bool) -> Option<usize> {
    let (len, count, items) = match bytes {
        [code, size, count, ..] if *code == small => {
            (2 + usize::from(*size), u32::from(*count), usize::from(size.checked_sub(1)?))
        }
        [code, a, b, c, d, e, f, g, h, ..] if *code == large => {
            let size = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            (5 + size, u32::from_be_bytes([*e, *f, *g, *h]), size.checked_sub(4)?)
        }
        _ => return None,
    };
    let fine = len <= bytes.len() && count as usize <= items && !(even && count & 1 != 0);
    fine.then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_fields_are_read_in_order_and_absent_ones_are_null() {
        let bytes = [0x00, 0x53, 0x13, 0xc0, 10, 5, 0x52, 9, 0x40, 0x41, 0xa0, 1, 7, 0x50, 3, 99];
        let (mut fields, used) = Quick::composite(&bytes, 0x13).unwrap();
        assert_eq!(used, bytes.len() - 1);
        assert_eq!(fields.optional_uint(), Some(Some(9)));
        assert_eq!(fields.optional_uint(), Some(None));
        assert_eq!(fields.optional_boolean(), Some(Some(true)));
        assert_eq!(fields.optional_binary(), Some(Some(&[7][..])));
        assert_eq!(fields.optional_ubyte(), Some(Some(3)));
        assert_eq!(fields.optional_uint(), Some(None));
        assert_eq!(fields.flag(), Some(false));
        assert_eq!(fields.end(), Some(()));
    }

    #[test]
    fn anything_unusual_gives_up() {
        assert!(Quick::composite(&[0x00, 0x53, 0x13, 0x45], 0x14).is_none());
        assert!(Quick::list(&[0xc0, 0, 0]).is_none());
        assert!(Quick::list(&[0xc0, 2, 1]).is_none());
        assert!(Quick::list(&[0xd0, 0, 0, 0, 4, 0, 0, 0, 0]).is_none());
        let (mut fields, _) = Quick::list(&[0xc0, 3, 1, 0x56, 1]).unwrap();
        assert_eq!(fields.optional_boolean(), None);
        let (fields, _) = Quick::list(&[0xc0, 2, 0, 0x40]).unwrap();
        assert_eq!(fields.end(), None);
    }
}
