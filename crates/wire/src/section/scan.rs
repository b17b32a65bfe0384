use super::{BodyKind, Section, Sections};
use crate::composite::decode_list;
use crate::decode::{DecodeError, Decoder, Limits, compound_len, value_len};
use crate::descriptor;
use crate::message::Header;
use crate::types::codes;

type Result<T> = std::result::Result<T, DecodeError>;

/// Finds the sections of a message that takes all of `bytes`.
///
/// Checks that every section is known, in its place, of the right type and of the size that it
/// claims. Costs one step per section: maps, lists and values are passed over by their size, and
/// only [`verify`] looks inside.
#[inline]
pub fn scan(bytes: &[u8], limits: &Limits) -> Result<Sections> {
    if bytes.len() > limits.max_size as usize {
        return Err(DecodeError::TooLarge);
    }
    let mut decoder = Decoder::with_limits(bytes, limits);
    let mut order = Order::new(limits);
    while !decoder.is_empty() {
        let start = bytes.len() - decoder.rest().len();
        if let Some((part, len)) = usual_section(decoder.rest()) {
            order.place(part, start as u32)?;
            decoder.take(len)?;
        } else {
            scan_any(&mut decoder, &mut order, start as u32)?;
        }
    }
    Ok(order.finish(bytes.len() as u32))
}

/// The section that these bytes begin with and its size, if it is all there and has a descriptor
/// and a value as nearly all have them.
#[inline(always)]
fn usual_section(bytes: &[u8]) -> Option<(Part, usize)> {
    let [codes::DESCRIBED, codes::SMALL_ULONG, code, value @ ..] = bytes else { return None };
    let part = Part::of(u64::from(*code))?;
    let len = match part {
        Part::Header => Header::decode_usual(value)?.1,
        Part::DeliveryAnnotations
        | Part::MessageAnnotations
        | Part::ApplicationProperties
        | Part::Footer => compound_len(value, codes::MAP8, codes::MAP32, true)?,
        Part::Properties | Part::Sequence => {
            compound_len(value, codes::LIST8, codes::LIST32, false)?
        }
        Part::Data if !matches!(value, [codes::BINARY8 | codes::BINARY32, ..]) => return None,
        Part::Data | Part::Value => value_len(value)?,
    };
    Some((part, 3 + len))
}

/// Passes over one section, whatever it is, or says what is wrong with it.
#[cold]
fn scan_any(decoder: &mut Decoder<'_>, order: &mut Order, start: u32) -> Result<()> {
    begin_section(decoder, order, start)?.check(decoder)
}

/// Reads the descriptor of a section and puts it in its place.
fn begin_section(decoder: &mut Decoder<'_>, order: &mut Order, start: u32) -> Result<Part> {
    let descriptor = decoder.descriptor()?;
    let Some(part) = descriptor.known().and_then(Part::of) else {
        return Err(descriptor.unknown());
    };
    order.place(part, start)?;
    Ok(part)
}

/// Finds the sections in front of the body of a message whose body is still arriving.
///
/// `None` as long as the body (or the footer, where there is none) has not begun. What comes back
/// has no body yet: the message ends where the body begins.
pub fn scan_head(bytes: &[u8], limits: &Limits) -> Result<Option<Sections>> {
    let mut decoder = Decoder::with_limits(bytes, limits);
    let mut order = Order::new(limits);
    while !decoder.is_empty() {
        let start = bytes.len() - decoder.rest().len();
        let checked = match begin_section(&mut decoder, &mut order, start as u32) {
            Ok(part) if part.section() >= Section::Body => {
                return Ok(Some(order.finish(start as u32)));
            }
            Ok(part) => part.check(&mut decoder),
            Err(error) => Err(error),
        };
        match checked {
            Ok(()) => {}
            Err(DecodeError::SizeExceedsBytes { size }) if size > limits.max_size => {
                return Err(DecodeError::TooLarge);
            }
            Err(error) if error.is_incomplete() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Looks at every value in a message that [`scan`] has accepted: types, sizes, text, depth and
/// number of elements.
///
/// Costs one step per element. It protects consumers whose decoders are weaker than ours: a body
/// nested too deep overflows the stack of some.
pub fn verify(bytes: &[u8], limits: &Limits) -> Result<()> {
    let mut decoder = Decoder::with_limits(bytes, limits);
    while !decoder.is_empty() {
        decoder.descriptor()?;
        decoder.walk()?;
    }
    Ok(())
}

/// A section as the wire knows it: the body's kinds are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Header,
    DeliveryAnnotations,
    MessageAnnotations,
    Properties,
    ApplicationProperties,
    Data,
    Sequence,
    Value,
    Footer,
}

impl Part {
    /// The section with this descriptor.
    #[inline]
    pub(super) fn of(descriptor: u64) -> Option<Part> {
        Some(match descriptor {
            descriptor::HEADER => Part::Header,
            descriptor::DELIVERY_ANNOTATIONS => Part::DeliveryAnnotations,
            descriptor::MESSAGE_ANNOTATIONS => Part::MessageAnnotations,
            descriptor::PROPERTIES => Part::Properties,
            descriptor::APPLICATION_PROPERTIES => Part::ApplicationProperties,
            descriptor::DATA => Part::Data,
            descriptor::AMQP_SEQUENCE => Part::Sequence,
            descriptor::AMQP_VALUE => Part::Value,
            descriptor::FOOTER => Part::Footer,
            _ => return None,
        })
    }

    #[inline]
    pub(super) fn section(self) -> Section {
        match self {
            Part::Header => Section::Header,
            Part::DeliveryAnnotations => Section::DeliveryAnnotations,
            Part::MessageAnnotations => Section::MessageAnnotations,
            Part::Properties => Section::Properties,
            Part::ApplicationProperties => Section::ApplicationProperties,
            Part::Data | Part::Sequence | Part::Value => Section::Body,
            Part::Footer => Section::Footer,
        }
    }

    fn body_kind(self) -> BodyKind {
        match self {
            Part::Data => BodyKind::Data,
            Part::Sequence => BodyKind::Sequence,
            Part::Value => BodyKind::Value,
            _ => BodyKind::Empty,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Part::Header => "header",
            Part::DeliveryAnnotations => "delivery-annotations",
            Part::MessageAnnotations => "message-annotations",
            Part::Properties => "properties",
            Part::ApplicationProperties => "application-properties",
            Part::Data => "data",
            Part::Sequence => "amqp-sequence",
            Part::Value => "amqp-value",
            Part::Footer => "footer",
        }
    }

    /// Passes over the value of the section and checks its type and size.
    #[inline]
    fn check(self, decoder: &mut Decoder<'_>) -> Result<()> {
        match self {
            Part::Header => check_header(decoder),
            Part::DeliveryAnnotations
            | Part::MessageAnnotations
            | Part::ApplicationProperties
            | Part::Footer => decoder.map_compound().map(drop),
            Part::Properties | Part::Sequence => decoder.list_compound().map(drop),
            Part::Data => decoder.binary().map(drop),
            Part::Value => decoder.skip(),
        }
    }
}

/// Checks every field of the header: everybody who moves the message relies on them.
fn check_header(decoder: &mut Decoder<'_>) -> Result<()> {
    let mut inside = decoder.clone();
    decoder.list_compound()?;
    match decode_list::<Header>(&mut inside) {
        // The list is there in full, so this is not about bytes that have yet to arrive.
        Err(error) if error.is_incomplete() => Err(DecodeError::SizeMismatch),
        result => result.map(drop),
    }
}

/// Keeps track of which section may come next (part 3, 3.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// As in [`Sections`], with `ABSENT` for what has not been seen.
    starts: [u32; 7],
    body_kind: BodyKind,
    last: Option<Part>,
    left: u32,
}

impl Order {
    #[inline]
    pub(super) fn new(limits: &Limits) -> Order {
        Order {
            starts: [ABSENT; 7],
            body_kind: BodyKind::Empty,
            last: None,
            left: limits.max_sections,
        }
    }

    /// Accepts a section that begins here, or refuses it.
    #[inline(always)]
    pub(super) fn place(&mut self, part: Part, start: u32) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or(DecodeError::TooManySections)?;
        if let Some(last) = self.last.filter(|last| part.section() <= last.section()) {
            // Bytes and lists may come in several sections.
            if part == last && matches!(part, Part::Data | Part::Sequence) {
                return Ok(());
            }
            return Err(DecodeError::MisplacedSection { section: part.name() });
        }
        if part.section() == Section::Body {
            self.body_kind = part.body_kind();
        }
        if part != Part::Header {
            self.starts[part.section() as usize - 1] = start;
        }
        self.last = Some(part);
        Ok(())
    }

    /// The kind of body that has been seen.
    pub(super) fn body_kind(&self) -> BodyKind {
        self.body_kind
    }

    /// What is absent begins where the next section does.
    #[inline]
    fn finish(mut self, end: u32) -> Sections {
        let mut next = end;
        for start in self.starts.iter_mut().rev() {
            if *start == ABSENT {
                *start = next;
            }
            next = *start;
        }
        Sections { starts: self.starts, body_kind: self.body_kind }
    }
}

const ABSENT: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Message};
    use crate::types::{Map, Value};
    use crate::{Encode, Sections};

    fn scan(bytes: &[u8]) -> Result<Sections> {
        super::scan(bytes, &Limits::DEFAULT)
    }

    fn part(name: Part) -> &'static [u8] {
        match name {
            Part::Header => &[0x00, 0x53, 0x70, 0x45],
            Part::DeliveryAnnotations => &[0x00, 0x53, 0x71, 0xc1, 1, 0],
            Part::MessageAnnotations => &[0x00, 0x53, 0x72, 0xc1, 1, 0],
            Part::Properties => &[0x00, 0x53, 0x73, 0x45],
            Part::ApplicationProperties => &[0x00, 0x53, 0x74, 0xc1, 1, 0],
            Part::Data => &[0x00, 0x53, 0x75, 0xa0, 1, 7],
            Part::Sequence => &[0x00, 0x53, 0x76, 0x45],
            Part::Value => &[0x00, 0x53, 0x77, 0x40],
            Part::Footer => &[0x00, 0x53, 0x78, 0xc1, 1, 0],
        }
    }

    const PARTS: [Part; 9] = [
        Part::Header,
        Part::DeliveryAnnotations,
        Part::MessageAnnotations,
        Part::Properties,
        Part::ApplicationProperties,
        Part::Data,
        Part::Sequence,
        Part::Value,
        Part::Footer,
    ];

    #[test]
    fn every_section_is_found_and_those_that_are_absent_are_empty() {
        // Every subset of the sections, in order, with one kind of body or none.
        for subset in 0u32..1 << 9 {
            let chosen: Vec<Part> =
                (0..9).filter(|i| subset & 1 << i != 0).map(|i| PARTS[i]).collect();
            let bodies = chosen.iter().filter(|p| p.section() == Section::Body).count();
            let bytes: Vec<u8> = chosen.iter().flat_map(|p| part(*p)).copied().collect();
            let sections = match scan(&bytes) {
                Ok(sections) if bodies <= 1 => sections,
                Err(DecodeError::MisplacedSection { .. }) if bodies > 1 => continue,
                other => panic!("{chosen:?}: {other:?}"),
            };
            let mut at = 0;
            for p in &chosen {
                assert_eq!(sections.range(p.section()), at..at + part(*p).len(), "{chosen:?}");
                at += part(*p).len();
            }
            assert_eq!(sections.len(), at);
            for p in PARTS {
                let expected = chosen.iter().any(|c| c.section() == p.section());
                assert_eq!(sections.has(p.section()), expected, "{chosen:?} {p:?}");
            }
        }
    }

    #[test]
    fn a_section_out_of_order_or_twice_is_refused() {
        for (i, first) in PARTS.into_iter().enumerate() {
            for second in &PARTS[..=i] {
                let result = scan(&[part(first), part(*second)].concat());
                if first == *second && matches!(first, Part::Data | Part::Sequence) {
                    assert_eq!(result.unwrap().body_kind(), first.body_kind());
                } else {
                    let misplaced = DecodeError::MisplacedSection { section: second.name() };
                    assert_eq!(result, Err(misplaced), "{first:?} {second:?}");
                }
            }
        }
    }

    #[test]
    fn a_section_of_the_wrong_type_is_refused() {
        for p in PARTS {
            let wrong = [&part(p)[..3], &[0x56, 1]].concat();
            let result = scan(&wrong);
            if p == Part::Value {
                assert!(result.is_ok());
            } else {
                assert!(matches!(result, Err(DecodeError::UnexpectedType { .. })), "{p:?}");
            }
        }
    }

    #[test]
    fn a_descriptor_that_only_begins_with_a_known_name_is_refused() {
        let section = |name: &str| {
            let mut bytes = vec![0x00, 0xa3, name.len() as u8];
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&[0xa0, 1, 7]);
            bytes
        };
        assert_eq!(scan(&section("amqp:data:binary")).unwrap().body_kind(), BodyKind::Data);
        for name in ["amqp:data:binary:x", "amqp:data:binar", "amqp:data", "amqp:open:list", ""] {
            let unknown = DecodeError::UnknownDescriptor(name.into());
            assert_eq!(scan(&section(name)), Err(unknown));
        }
        assert!(matches!(scan(&[0x00, 0x52, 0x75, 0x40]), Err(DecodeError::UnknownDescriptor(_))));
        assert!(matches!(scan(&[0x75, 0x40]), Err(DecodeError::UnknownCode(0x75))));
    }

    #[test]
    fn a_malformed_header_is_refused_and_not_waited_for() {
        let bytes = [0x00, 0x53, 0x70, 0xc0, 2, 1, 0x70, 0x00, 0x53, 0x77, 0x40];
        assert!(matches!(scan(&bytes), Err(DecodeError::UnexpectedType { .. })));
        let bytes = [0x00, 0x53, 0x70, 0xc0, 4, 3, 0x41, 0x40, 0x70, 0x00, 0x53, 0x77, 0x40];
        assert_eq!(scan(&bytes), Err(DecodeError::SizeMismatch));
        assert_eq!(scan_head(&bytes, &Limits::DEFAULT), Err(DecodeError::SizeMismatch));
    }

    #[test]
    fn a_truncated_message_is_refused_wherever_it_is_cut() {
        let mut message = Message::of_data("body");
        message.header_mut().durable = true;
        message.set_message_annotation("x-opt-a", "b");
        message.properties_mut().to = Some("to".into());
        let bytes = message.to_bytes();
        let sections = scan(&bytes).unwrap();
        let end = |section| sections.range(section).end;
        let ends =
            [0, end(Section::Header), end(Section::MessageAnnotations), sections.body_start()];
        for end in 0..bytes.len() {
            assert_eq!(scan(&bytes[..end]).is_ok(), ends.contains(&end), "cut at {end}");
        }
    }

    #[test]
    fn a_map_with_a_key_and_no_value_is_refused() {
        assert_eq!(scan(&[0x00, 0x53, 0x72, 0xc1, 2, 1, 0x40]), Err(DecodeError::OddMap));
    }

    #[test]
    fn too_many_sections_are_refused() {
        let limits = Limits { max_sections: 3, ..Limits::DEFAULT };
        let data = part(Part::Data);
        assert!(super::scan(&data.repeat(3), &limits).is_ok());
        assert_eq!(super::scan(&data.repeat(4), &limits), Err(DecodeError::TooManySections));
        let endless = data.repeat(Limits::DEFAULT.max_sections as usize + 1);
        assert_eq!(scan(&endless), Err(DecodeError::TooManySections));
    }

    #[test]
    fn a_message_larger_than_the_limit_is_refused() {
        let limits = Limits { max_size: 5, ..Limits::DEFAULT };
        assert_eq!(super::scan(part(Part::Data), &limits), Err(DecodeError::TooLarge));
    }

    #[test]
    fn the_head_is_complete_as_soon_as_the_body_begins() {
        let mut message = Message::of_data(vec![0; 1000]);
        message.header_mut().priority = 7;
        message.set_application_property("a", 1u32);
        let bytes = message.to_bytes();
        let body = scan(&bytes).unwrap().body_start();
        let head = |len: usize| scan_head(&bytes[..len], &Limits::DEFAULT).unwrap();
        assert!((0..body + 3).all(|len| head(len).is_none()));
        for len in [body + 3, body + 500, bytes.len()] {
            let sections = head(len).unwrap();
            assert_eq!((sections.body_start(), sections.len()), (body, body));
            assert_eq!(sections.body_kind(), BodyKind::Data);
            assert_eq!(sections.header(&bytes).priority, 7);
        }
    }

    #[test]
    fn a_head_that_claims_more_than_a_message_may_have_is_not_waited_for() {
        let bytes = [0x00, 0x53, 0x72, 0xd1, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(scan_head(&bytes, &Limits::DEFAULT), Err(DecodeError::TooLarge));
    }

    #[test]
    fn verification_finds_what_the_scan_passes_over() {
        let deep = (0..40).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        let bytes = Message::of_value(deep).to_bytes();
        assert!(scan(&bytes).is_ok());
        assert_eq!(verify(&bytes, &Limits::DEFAULT), Err(DecodeError::TooDeep));
        let bad_text = [0x00, 0x53, 0x77, 0xa1, 1, 0xff];
        assert!(scan(&bad_text).is_ok());
        assert_eq!(verify(&bad_text, &Limits::DEFAULT), Err(DecodeError::InvalidUtf8));
        let good = Message { body: Body::Sequence(vec![vec![1u32.into()]]), ..Message::default() };
        assert_eq!(verify(&good.to_bytes(), &Limits::DEFAULT), Ok(()));
        let zero_width = [0x00, 0x53, 0x77, 0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40];
        assert!(scan(&zero_width).is_ok());
        assert_eq!(verify(&zero_width, &Limits::DEFAULT), Err(DecodeError::TooManyElements));
        let many = [0x00, 0x53, 0x77, 0xf0, 0, 0, 0, 5, 0, 0, 0xff, 0xff, 0x40];
        assert_eq!(verify(&many, &Limits::DEFAULT), Err(DecodeError::TooManyZeroWidth));
        let map = Message::of_value(Map::new().with("k", "v")).to_bytes();
        assert_eq!(verify(&map, &Limits::DEFAULT), Ok(()));
    }
}
