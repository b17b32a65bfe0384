//! Messages as offsets into untouched bytes (part 3, 3.2).
//!
//! [`scan`] walks over a message once, by the sizes that the sections carry, and remembers where
//! each one begins. Nothing is decoded that nobody asks for: the accessors of [`Sections`] read
//! single fields from the bytes that the message came in.

mod access;
mod scan;
mod stream;

pub use scan::{scan, scan_head, verify};
pub use stream::StreamScanner;

use std::ops::Range;

/// Where the sections of one message begin.
///
/// Sections stand in a fixed order, so each one ends where the next begins, and one that is
/// absent is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// Where delivery annotations, message annotations, properties, application properties, body
    /// and footer begin, and where the message ends. The header begins at the start.
    starts: [u32; 7],
    body_kind: BodyKind,
}

/// The sections of a message, in their order (part 3, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `header`
    Header = 0,
    /// `delivery-annotations`
    DeliveryAnnotations = 1,
    /// `message-annotations`
    MessageAnnotations = 2,
    /// `properties`
    Properties = 3,
    /// `application-properties`
    ApplicationProperties = 4,
    /// All `data` or `amqp-sequence` sections, or the `amqp-value` section.
    Body = 5,
    /// `footer`
    Footer = 6,
}

/// What the body of a message is made of (part 3, 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// There is no body section.
    #[default]
    Empty,
    /// One or more sections of bytes.
    Data,
    /// One or more lists.
    Sequence,
    /// One value.
    Value,
}

impl Sections {
    /// Where a section lies, its descriptor included; empty if it is absent.
    #[inline]
    pub fn range(&self, section: Section) -> Range<usize> {
        let index = section as usize;
        let start = if index == 0 { 0 } else { self.starts[index - 1] };
        start as usize..self.starts[index] as usize
    }

    /// Whether a section is there.
    #[inline]
    pub fn has(&self, section: Section) -> bool {
        !self.range(section).is_empty()
    }

    /// Where the bare message begins: properties, application properties and body, which nobody
    /// may change on the way (part 3, 3.2).
    #[inline]
    pub fn bare_start(&self) -> usize {
        self.starts[Section::Properties as usize - 1] as usize
    }

    /// The bare message.
    #[inline]
    pub fn bare(&self) -> Range<usize> {
        self.bare_start()..self.range(Section::Body).end
    }

    /// Where the body begins.
    #[inline]
    pub fn body_start(&self) -> usize {
        self.range(Section::Body).start
    }

    /// What the body is made of.
    #[inline]
    pub fn body_kind(&self) -> BodyKind {
        self.body_kind
    }

    /// The size of the message; after [`scan_head`], of the sections before the body.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "it is the message's length")]
    pub fn len(&self) -> usize {
        self.starts[Section::Footer as usize] as usize
    }

    /// Where each section before the body ends: what [`Sections::of_head`] needs to know of it, for
    /// somebody who keeps a message for long and wants to keep little.
    #[inline]
    pub fn head_ends(&self) -> [u32; 5] {
        let [header, delivery, annotations, properties, application, ..] = self.starts;
        [header, delivery, annotations, properties, application]
    }

    /// The sections before the body of a message of `len` bytes. What follows them counts as body,
    /// and of what kind that is is not known.
    #[inline]
    pub fn of_head(ends: [u32; 5], len: u32) -> Sections {
        let [header, delivery, annotations, properties, application] = ends;
        let starts = [header, delivery, annotations, properties, application, len, len];
        Sections { starts, body_kind: BodyKind::Empty }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_compact() {
        assert!(size_of::<Sections>() <= 40);
    }

    #[test]
    fn the_sections_of_the_head_can_be_kept_as_five_numbers() {
        let sections = Sections { starts: [3, 3, 9, 12, 20, 40, 50], body_kind: BodyKind::Data };
        let head = Sections::of_head(sections.head_ends(), 50);
        assert_eq!(head.range(Section::MessageAnnotations), 3..9);
        assert_eq!((head.bare_start(), head.body_start(), head.len()), (9, 20, 50));
    }

    #[test]
    fn an_empty_message_has_no_sections() {
        let sections = Sections::default();
        assert!(!sections.has(Section::Header) && !sections.has(Section::Footer));
        assert_eq!((sections.bare(), sections.len()), (0..0, 0));
    }
}
