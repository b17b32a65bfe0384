use super::{DecodeError, Limits, RawValue};
use crate::descriptor;
use crate::types::{Type, codes};

type Result<T> = std::result::Result<T, DecodeError>;

/// Reads values from the front of a slice, within [`Limits`].
///
/// What has been read is gone; an error leaves the decoder somewhere inside the value.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    budget: Budget,
}

/// What is left of the limits; nested decoders take it along and bring it back.
#[derive(Clone, Copy, Debug)]
struct Budget {
    depth: u32,
    elements: u32,
    zero_width: u32,
}

/// The inside of a list, map or array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compound<'a> {
    pub(crate) count: u32,
    pub(crate) items: &'a [u8],
}

/// The descriptor in front of a described value (part 1, 1.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Descriptor<'a> {
    /// A number, for the types of the specification and registered domains.
    Code(u64),
    /// A name.
    Symbol(&'a str),
    /// Something else, which is allowed but reserved.
    Other(RawValue<'a>),
}

impl Descriptor<'_> {
    /// The number of the type in the specification that this descriptor stands for, be it given
    /// as a number or as a name; the whole name has to match.
    #[inline]
    pub fn known(&self) -> Option<u64> {
        match self {
            Descriptor::Code(code) => Some(*code),
            Descriptor::Symbol(name) => descriptor::code_of(name),
            Descriptor::Other(_) => None,
        }
    }

    /// The error that says that this descriptor means nothing here.
    #[cold]
    pub fn unknown(&self) -> DecodeError {
        DecodeError::UnknownDescriptor(match self {
            Descriptor::Code(code) => format!("0x{code:x}").into(),
            Descriptor::Symbol(name) => name.chars().take(64).collect(),
            Descriptor::Other(_) => "that is neither a number nor a symbol".into(),
        })
    }
}

impl<'a> Decoder<'a> {
    /// A decoder with the default limits.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder::with_limits(bytes, &Limits::DEFAULT)
    }

    /// A decoder with these limits.
    #[inline]
    pub const fn with_limits(bytes: &'a [u8], limits: &Limits) -> Decoder<'a> {
        let budget = Budget {
            depth: limits.max_depth,
            elements: limits.max_elements,
            zero_width: limits.max_zero_width,
        };
        Decoder { rest: bytes, budget }
    }

    /// The bytes not yet read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The format code of the next value, which stays unread.
    #[inline]
    pub fn peek(&self) -> Result<u8> {
        self.rest.first().copied().ok_or(DecodeError::UnexpectedEnd)
    }

    /// Reads the next value if it is null.
    #[inline]
    pub fn take_null(&mut self) -> Result<bool> {
        let null = self.peek()? == codes::NULL;
        if null {
            self.rest = &self.rest[1..];
        }
        Ok(null)
    }

    /// Reads so many bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn take_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn take_u8(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(*byte)
    }

    /// Reads a size of one byte and as many bytes as it says.
    #[inline]
    pub(crate) fn take_sized8(&mut self) -> Result<&'a [u8]> {
        let size = self.take_u8()?;
        self.take_claimed(u32::from(size))
    }

    /// Reads a size of four bytes and as many bytes as it says.
    #[inline]
    pub(crate) fn take_sized32(&mut self) -> Result<&'a [u8]> {
        let size = u32::from_be_bytes(self.take_array()?);
        self.take_claimed(size)
    }

    #[inline]
    fn take_claimed(&mut self, size: u32) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(size as usize)
            .ok_or(DecodeError::SizeExceedsBytes { size })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next value without decoding it.
    #[inline]
    pub fn raw(&mut self) -> Result<RawValue<'a>> {
        let before = self.rest;
        self.skip()?;
        Ok(RawValue::new(&before[..before.len() - self.rest.len()]))
    }

    /// Reads the descriptor of a described value; the value described comes next.
    #[inline]
    pub fn descriptor(&mut self) -> Result<Descriptor<'a>> {
        if let [codes::DESCRIBED, codes::SMALL_ULONG, code, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(Descriptor::Code(u64::from(*code)));
        }
        self.any_descriptor()
    }

    fn any_descriptor(&mut self) -> Result<Descriptor<'a>> {
        let code = self.take_u8()?;
        if code != codes::DESCRIBED {
            return Err(unexpected(Type::Described, code));
        }
        Ok(match self.peek()? {
            codes::ULONG | codes::SMALL_ULONG | codes::ULONG0 => Descriptor::Code(self.ulong()?),
            codes::SYMBOL8 | codes::SYMBOL32 => Descriptor::Symbol(self.symbol()?),
            _ => Descriptor::Other(self.raw()?),
        })
    }

    /// Reads a list and returns a reader of its elements.
    #[inline]
    pub fn list(&mut self) -> Result<Fields<'a>> {
        let compound = self.list_compound()?;
        self.enter(compound)
    }

    /// Reads the size and count of a list that follow its format code.
    #[inline]
    pub(crate) fn list_compound(&mut self) -> Result<Compound<'a>> {
        match self.take_u8()? {
            codes::LIST0 => Ok(Compound { count: 0, items: &[] }),
            codes::LIST8 => self.compound8(),
            codes::LIST32 => self.compound32(),
            code => Err(unexpected(Type::List, code)),
        }
    }

    /// Reads the size and count of a map that follow its format code.
    #[inline]
    pub(crate) fn map_compound(&mut self) -> Result<Compound<'a>> {
        let compound = match self.take_u8()? {
            codes::MAP8 => self.compound8()?,
            codes::MAP32 => self.compound32()?,
            code => return Err(unexpected(Type::Map, code)),
        };
        if !compound.count.is_multiple_of(2) {
            return Err(DecodeError::OddMap);
        }
        Ok(compound)
    }

    #[inline]
    pub(crate) fn compound8(&mut self) -> Result<Compound<'a>> {
        let (count, items) = self.take_sized8()?.split_first().ok_or(DecodeError::SizeMismatch)?;
        Compound { count: u32::from(*count), items }.backed()
    }

    #[inline]
    pub(crate) fn compound32(&mut self) -> Result<Compound<'a>> {
        let (count, items) =
            self.take_sized32()?.split_first_chunk().ok_or(DecodeError::SizeMismatch)?;
        Compound { count: u32::from_be_bytes(*count), items }.backed()
    }

    /// Charges the elements of a list or map and goes one level deeper.
    #[inline]
    pub(crate) fn enter(&mut self, compound: Compound<'a>) -> Result<Fields<'a>> {
        self.charge_elements(compound.count)?;
        let depth = self.budget.depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let budget = Budget { depth, ..self.budget };
        Ok(Fields { decoder: Decoder { rest: compound.items, budget }, left: compound.count })
    }

    #[inline]
    pub(crate) fn charge_elements(&mut self, count: u32) -> Result<()> {
        let left = self.budget.elements.checked_sub(count).ok_or(DecodeError::TooManyElements)?;
        self.budget.elements = left;
        Ok(())
    }

    /// Charges array elements that take no bytes.
    pub(crate) fn charge_zero_width(&mut self, count: u32) -> Result<()> {
        let left =
            self.budget.zero_width.checked_sub(count).ok_or(DecodeError::TooManyZeroWidth)?;
        self.budget.zero_width = left;
        Ok(())
    }

    /// A decoder for the bytes inside a value, one level deeper; [`Decoder::adopt`] ends it.
    pub(crate) fn nest(&self, bytes: &'a [u8]) -> Result<Decoder<'a>> {
        let depth = self.budget.depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        Ok(Decoder { rest: bytes, budget: Budget { depth, ..self.budget } })
    }

    /// Takes back the budget from a nested decoder, which must have read everything.
    #[inline]
    pub(crate) fn adopt(&mut self, nested: &Decoder<'a>) -> Result<()> {
        if !nested.rest.is_empty() {
            return Err(DecodeError::SizeMismatch);
        }
        self.budget = Budget { depth: self.budget.depth, ..nested.budget };
        Ok(())
    }

    /// Goes on where a nested decoder over the same bytes has stopped.
    #[inline]
    pub(crate) fn resume(&mut self, nested: &Decoder<'a>) {
        self.rest = nested.rest;
        self.budget = Budget { depth: self.budget.depth, ..nested.budget };
    }

    /// How many levels deeper a value may go.
    #[inline]
    pub(crate) fn depth_left(&self) -> u32 {
        self.budget.depth
    }
}

impl<'a> Compound<'a> {
    /// Refuses a count that the bytes cannot hold: every element takes at least one.
    #[inline]
    fn backed(self) -> Result<Compound<'a>> {
        if self.count as usize > self.items.len() {
            return Err(DecodeError::CountExceedsBytes { count: self.count });
        }
        Ok(self)
    }
}

/// Reads the fields of a composite, or the elements of any list, one after another.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    decoder: Decoder<'a>,
    left: u32,
}

impl<'a> Fields<'a> {
    /// How many elements have not been read.
    #[inline]
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The decoder, if there is another element that is not null; a null is read.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<&mut Decoder<'a>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(if self.decoder.take_null()? { None } else { Some(&mut self.decoder) })
    }

    /// The decoder, if there is another element, null or not.
    #[inline]
    pub fn next_element(&mut self) -> Option<&mut Decoder<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(&mut self.decoder)
    }

    /// Ends the list: skips elements that nobody read (fields of a later version), checks that
    /// the size is right, and gives the budget back to the decoder that the list came from.
    #[inline]
    pub fn finish(mut self, outer: &mut Decoder<'a>) -> Result<()> {
        while self.left > 0 {
            self.left -= 1;
            self.decoder.skip()?;
        }
        outer.adopt(&self.decoder)
    }
}

#[cold]
pub(crate) fn unexpected(expected: Type, code: u8) -> DecodeError {
    match crate::types::Width::of(code) {
        crate::types::Width::Unknown if code != codes::DESCRIBED => DecodeError::UnknownCode(code),
        _ => DecodeError::UnexpectedType { expected, code },
    }
}
