//! What a selector is evaluated against.

use mochila_wire::{Sections, Symbol, Value};

/// A message as selectors and filters see it: its bytes, and what is known beside them.
///
/// It borrows everything, so that a queue can make one from a segment that it has let go of its
/// lock for.
#[derive(Clone, Copy, Debug)]
pub struct SelectorInput<'a> {
    /// The encoded message; of a large one, the sections before its body.
    pub bytes: &'a [u8],
    /// Where its sections are. Only those before the body matter.
    pub sections: Sections,
    /// Bytes of the whole encoded message.
    pub size: u64,
    /// 0 to 9, 4 unless its header says otherwise.
    pub priority: u8,
    /// Its sender wants it to survive a crash.
    pub durable: bool,
    /// How often it has been delivered in vain, here and before it came here.
    pub delivery_count: u32,
    /// Message annotations added since it came in. They are in front of those of the same name in
    /// its bytes.
    pub annotations: &'a [(Symbol, Value)],
    /// It was sent over the connection of the consumer that asks.
    pub is_local: bool,
}

impl<'a> SelectorInput<'a> {
    /// A message as its header has it, with nothing added.
    pub fn of(bytes: &'a [u8], sections: &Sections) -> SelectorInput<'a> {
        let header = sections.header(bytes);
        SelectorInput {
            bytes,
            sections: *sections,
            size: bytes.len() as u64,
            priority: header.priority,
            durable: header.durable,
            delivery_count: header.delivery_count,
            annotations: &[],
            is_local: false,
        }
    }
}
