//! Where the sections of a message's head end, in little space.

use mochila_wire::section::{self, Section};
use mochila_wire::{Limits, Sections};
use std::ops::Range;

/// The ends of the sections before the body, as far as they fit: nine bytes instead of 32.
///
/// A header of more than 255 bytes, or a head of more than 64 KiB, does not fit; it is scanned
/// again when somebody needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The end of the header.
    pub(crate) header: u8,
    /// The ends of both kinds of annotations, of the properties, and of the application properties.
    pub(crate) ends: [u16; 4],
}

impl Head {
    pub(crate) fn of(sections: &Sections) -> Head {
        Head::fitting(sections).unwrap_or(Head::TOO_LONG)
    }

    /// The sections of the message that these are the first bytes of.
    pub(crate) fn sections(self, bytes: &[u8]) -> Sections {
        if self == Head::TOO_LONG {
            return rescan(bytes);
        }
        let [delivery, annotations, properties, application] = self.ends.map(u32::from);
        let ends = [u32::from(self.header), delivery, annotations, properties, application];
        Sections::of_head(ends, bytes.len() as u32)
    }

    /// Where a section lies that stands between annotations and body; nowhere if that has to be found
    /// by scanning.
    #[inline]
    pub(crate) fn range(self, section: Section) -> Range<usize> {
        let [_, annotations, properties, application] = self.ends.map(usize::from);
        match section {
            Section::Properties => annotations..properties,
            Section::ApplicationProperties => properties..application,
            _ => 0..0,
        }
    }

    /// Whether there are properties, as far as is known without scanning.
    #[inline]
    pub(crate) fn has_properties(self) -> bool {
        self.ends[1] != self.ends[2]
    }

    /// The end of the header, if no annotations follow it.
    #[inline]
    pub(crate) fn end_without_annotations(self) -> Option<usize> {
        (self.ends[1] == u16::from(self.header)).then_some(usize::from(self.header))
    }

    fn fitting(sections: &Sections) -> Option<Head> {
        let [header, delivery, annotations, properties, application] = sections.head_ends();
        let short = |end: u32| u16::try_from(end).ok();
        let head = Head {
            header: header.try_into().ok()?,
            ends: [short(delivery)?, short(annotations)?, short(properties)?, short(application)?],
        };
        Some(head)
    }

    /// Ends never go backwards, so this is none that a message has.
    const TOO_LONG: Head = Head { header: u8::MAX, ends: [0; 4] };
}

/// The message was scanned when it came in, so it can be scanned again, whatever the limits were.
fn rescan(bytes: &[u8]) -> Sections {
    let limits = Limits {
        max_depth: u32::MAX,
        max_elements: u32::MAX,
        max_zero_width: u32::MAX,
        max_sections: u32::MAX,
        max_size: u32::MAX,
    };
    let head = section::scan_head(bytes, &limits).ok().flatten();
    let sections = head.or_else(|| section::scan(bytes, &limits).ok());
    let ends = sections.map(|sections| sections.head_ends()).unwrap_or_default();
    Sections::of_head(ends, bytes.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::{Encode, Message};

    fn head(annotation_bytes: usize) -> (Vec<u8>, Sections, Head) {
        let mut message = Message::of_data("body");
        message.header_mut().ttl = Some(5);
        message.set_message_annotation("x", "y".repeat(annotation_bytes));
        message.set_application_property("a", 1u32);
        let bytes = message.to_bytes();
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        (bytes, sections, Head::of(&sections))
    }

    #[test]
    fn the_sections_are_found_again() {
        let (bytes, sections, head) = head(10);
        assert_ne!(head, Head::TOO_LONG);
        assert_eq!(head.sections(&bytes).head_ends(), sections.head_ends());
    }

    #[test]
    fn a_head_that_is_too_long_to_keep_is_scanned_again() {
        let (bytes, sections, head) = head(70_000);
        assert_eq!(head, Head::TOO_LONG);
        assert_eq!(head.sections(&bytes).head_ends(), sections.head_ends());
    }
}
