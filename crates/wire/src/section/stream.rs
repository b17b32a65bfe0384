use super::BodyKind;
use super::scan::{Order, Part};
use crate::decode::{DecodeError, Decoder, Limits, type_of, unexpected};
use crate::types::{Type, Width, codes};

/// Checks the sections of a message that arrives in pieces and is never in memory as a whole.
///
/// It keeps a few bytes between the pieces (a descriptor and a size that was cut apart) and
/// accepts what [`scan`](super::scan) accepts, except that it does not look inside the header.
///
/// ```text
///            descriptor, format code and size complete
///   Prefix ───────────────────────────────────────────▶ Skip(rest of the section)
///     ▲                                                   │
///     └───────────────────────────────────────────────────┘ all of it has passed
/// ```
#[derive(Clone, Debug)]
pub struct StreamScanner {
    order: Order,
    size_left: u64,
    /// How many bytes of the current section have yet to pass.
    skip: u64,
    /// The beginning of a section, until its size is known.
    prefix: Vec<u8>,
}

impl StreamScanner {
    /// A scanner that stands in front of a message.
    pub fn new(limits: &Limits) -> StreamScanner {
        StreamScanner {
            order: Order::new(limits),
            size_left: u64::from(limits.max_size),
            skip: 0,
            prefix: Vec::new(),
        }
    }

    /// Takes the next piece of the message.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), DecodeError> {
        let left = self.size_left.checked_sub(piece.len() as u64);
        self.size_left = left.ok_or(DecodeError::TooLarge)?;
        loop {
            let passing = self.skip.min(piece.len() as u64);
            self.skip -= passing;
            piece = &piece[passing as usize..];
            if piece.is_empty() {
                return Ok(());
            }
            // A section begins: look at it in place if it is whole, else collect its beginning.
            if self.prefix.is_empty() {
                match begin_section(piece, &mut self.order)? {
                    Some(size) => self.skip = size,
                    None => {
                        self.prefix.extend_from_slice(&piece[..piece.len().min(MAX_PREFIX)]);
                        piece = &piece[self.prefix.len()..];
                    }
                }
            } else {
                self.prefix.push(piece[0]);
                piece = &piece[1..];
                if let Some(size) = begin_section(&self.prefix, &mut self.order)? {
                    self.skip = size - self.prefix.len() as u64;
                    self.prefix.clear();
                }
            }
            if self.prefix.len() >= MAX_PREFIX {
                return Err(DecodeError::UnknownDescriptor("that is too long".into()));
            }
        }
    }

    /// Ends the message, which must not end inside a section.
    pub fn finish(self) -> Result<BodyKind, DecodeError> {
        if self.skip > 0 || !self.prefix.is_empty() {
            return Err(DecodeError::UnexpectedEnd);
        }
        Ok(self.order.body_kind())
    }
}

/// More than the longest descriptor of a section, and the longest header of a value. A body value
/// with descriptors of its own has to have them within this too.
const MAX_PREFIX: usize = 512;

/// The size of the section that begins here, from its descriptor to its end; `None` if too few
/// bytes are there to tell.
fn begin_section(bytes: &[u8], order: &mut Order) -> Result<Option<u64>, DecodeError> {
    match section_size(bytes) {
        Ok((part, size)) => {
            // Where the section stands does not matter: nobody asks a stream for offsets.
            order.place(part, 0)?;
            Ok(Some(size))
        }
        Err(error) if error.is_incomplete() => Ok(None),
        Err(error) => Err(error),
    }
}

fn section_size(bytes: &[u8]) -> Result<(Part, u64), DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let descriptor = decoder.descriptor()?;
    let Some(part) = descriptor.known().and_then(Part::of) else {
        return Err(descriptor.unknown());
    };
    let mut code = decoder.take_u8()?;
    if let Some(expected) = expected_type(part).filter(|of| type_of(code) != Some(*of)) {
        return Err(unexpected(expected, code));
    }
    // A value may be described again; what it is described by has to be here.
    while code == codes::DESCRIBED {
        decoder.skip()?;
        code = decoder.take_u8()?;
    }
    let data = match Width::of(code) {
        Width::Fixed(width) => u64::from(width),
        Width::Size8 => u64::from(decoder.take_u8()?),
        Width::Size32 => u64::from(u32::from_be_bytes(decoder.take_array()?)),
        Width::Unknown => return Err(DecodeError::UnknownCode(code)),
    };
    let prefix = bytes.len() - decoder.rest().len();
    Ok((part, prefix as u64 + data))
}

/// The type that a section has to have; `None` for any.
fn expected_type(part: Part) -> Option<Type> {
    match part {
        Part::Header | Part::Properties | Part::Sequence => Some(Type::List),
        Part::DeliveryAnnotations
        | Part::MessageAnnotations
        | Part::ApplicationProperties
        | Part::Footer => Some(Type::Map),
        Part::Data => Some(Type::Binary),
        Part::Value => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encode;
    use crate::message::{Body, Message};
    use crate::types::{Described, Map, Value};

    fn scan_in_pieces(bytes: &[u8], piece: usize) -> Result<BodyKind, DecodeError> {
        let mut scanner = StreamScanner::new(&Limits::DEFAULT);
        for piece in bytes.chunks(piece) {
            scanner.push(piece)?;
        }
        scanner.finish()
    }

    fn messages() -> [Message; 4] {
        let mut full = Message::of_data(vec![7; 700]);
        full.header_mut().durable = true;
        full.set_message_annotation("x-opt-a", "b");
        full.properties_mut().to = Some("to".into());
        full.footer = Some(Map::new());
        let described = Described { descriptor: Value::from("d"), value: Value::from("v") };
        let lists = Body::Sequence(vec![Vec::new(), vec![1u32.into()]]);
        [
            full,
            Message::of_value(Value::from(described)),
            Message::of_value(Value::Null),
            Message { body: lists, ..Message::default() },
        ]
    }

    #[test]
    fn the_pieces_a_message_comes_in_do_not_matter() {
        for message in messages() {
            let bytes = message.to_bytes();
            let kind = crate::section::scan(&bytes, &Limits::DEFAULT).unwrap().body_kind();
            for piece in (1..20).chain([500, 10_000]) {
                assert_eq!(scan_in_pieces(&bytes, piece), Ok(kind), "pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_message_that_ends_too_early_is_refused() {
        let bytes = Message::of_data(vec![7; 700]).to_bytes();
        for end in 1..bytes.len() {
            let cut = scan_in_pieces(&bytes[..end], 64);
            assert_eq!(cut, Err(DecodeError::UnexpectedEnd), "cut at {end}");
        }
    }

    #[test]
    fn what_a_scan_refuses_a_stream_refuses_too() {
        let twice = [0x00, 0x53, 0x77, 0x40].repeat(2);
        let misplaced = DecodeError::MisplacedSection { section: "amqp-value" };
        let wrong_type = [0x00, 0x53, 0x75, 0x41];
        for piece in 1..8 {
            assert_eq!(scan_in_pieces(&twice, piece), Err(misplaced.clone()));
            let result = scan_in_pieces(&wrong_type, piece);
            assert!(matches!(result, Err(DecodeError::UnexpectedType { .. })));
        }
        let endless = [0x00, 0x53, 0x75, 0xa0, 0].repeat(10_001);
        assert_eq!(scan_in_pieces(&endless, 4096), Err(DecodeError::TooManySections));
    }

    #[test]
    fn a_descriptor_without_end_is_not_collected_without_end() {
        let mut bytes = vec![0x00, 0xb3, 0, 0xff, 0xff, 0xff];
        bytes.resize(10_000, b'a');
        for piece in [1, 7, 10_000] {
            let result = scan_in_pieces(&bytes, piece);
            assert!(matches!(result, Err(DecodeError::UnknownDescriptor(_))), "{result:?}");
        }
    }

    #[test]
    fn a_stream_larger_than_the_limit_is_refused_when_it_gets_there() {
        let mut scanner = StreamScanner::new(&Limits { max_size: 100, ..Limits::DEFAULT });
        let bytes = Message::of_data(vec![7; 700]).to_bytes();
        assert_eq!(scanner.push(&bytes[..100]), Ok(()));
        assert_eq!(scanner.push(&bytes[100..101]), Err(DecodeError::TooLarge));
    }
}
