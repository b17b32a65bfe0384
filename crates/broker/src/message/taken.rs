//! The messages that one visit of a consumer takes out of a queue.

use super::numbers::SECTION;
use super::{Added, Content, Head, Overlay, Segment, Stamps};
use crate::messages::Flags;
use crate::queue::LostGroups;
use crate::selector::SelectorInput;
use mochila_wire::annotation;
use mochila_wire::{HeadPatch, Sections, Symbol, Value};
use std::sync::Arc;

/// What a take handed over; a worker owns it and uses it again and again.
///
/// All of it is out of one queue. It holds each segment once for all its messages, so nothing is counted per message. Clear it
/// when the messages have been encoded: what it holds keeps memory in use.
#[derive(Debug, Default)]
pub struct Taken {
    deliveries: Vec<Delivery>,
    segments: Vec<Arc<Segment>>,
    overlays: Vec<Arc<Overlay>>,
    /// What the queue adds to each of them.
    stamps: Option<Arc<Stamps>>,
    /// Some of them have numbers of an exchange.
    has_numbers: bool,
    /// What the consumer has to hear before it gets any of them.
    lost_groups: Option<Box<LostGroups>>,
}

/// A message that was taken, or is being browsed.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Where it stands in its queue; what the consumer's outcome names.
    pub position: u64,
    /// How often it has been delivered in vain, before it came here included.
    pub delivery_count: u32,
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// What is left of its time to live, if it has one.
    pub(crate) ttl_ms: u32,
    pub(crate) overlay: u32,
    pub(crate) flags: Flags,
    pub(crate) priority: u8,
    pub(crate) head: Head,
}

/// What goes out in front of a message's own bytes. Whoever sends messages owns one and uses it again
/// and again.
#[derive(Debug, Default)]
pub struct Front {
    bytes: Vec<u8>,
    /// What a queue adds to each message, and nothing else was changed: the annotations stand from
    /// here on.
    stamps: Option<(Arc<Stamps>, usize)>,
}

impl Front {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Taken {
    /// An empty one.
    pub fn new() -> Taken {
        Taken::default()
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// The messages in the order of the queue.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// The encoded message as it came in.
    pub fn content(&self, delivery: &Delivery) -> Content<'_> {
        let bytes = self.bytes(delivery);
        match self.segments[delivery.segment as usize].large_body() {
            None => Content::Slice(bytes),
            Some(body) => Content::Large { head: bytes, body },
        }
    }

    /// The message-format that its sender gave it.
    #[inline]
    pub fn message_format(&self, delivery: &Delivery) -> u32 {
        self.segments[delivery.segment as usize].message_format()
    }

    /// Its bytes in memory: all, or those before the body of a large one.
    pub fn bytes(&self, delivery: &Delivery) -> &[u8] {
        let start = delivery.offset as usize;
        let segment = &self.segments[delivery.segment as usize];
        &segment.bytes()[start..start + delivery.len as usize]
    }

    /// Reads the beginnings of the next of some messages, up to so many bytes: what is not in the
    /// processor's caches comes from memory all at the same time, and not one message after the
    /// other. To be called before each message is read.
    #[inline]
    pub(crate) fn touch(&self, deliveries: &[Delivery], index: usize, bytes: usize) {
        if index.is_multiple_of(TOUCHED_AT_ONCE) {
            self.touch_all(next(deliveries, index), bytes);
        }
    }

    /// The same for messages that are sent, if they do not stand one behind the other in memory;
    /// what does, the processor reads ahead by itself.
    #[inline]
    pub fn touch_scattered(&self, index: usize) {
        if !index.is_multiple_of(TOUCHED_AT_ONCE) {
            return;
        }
        let next = next(&self.deliveries, index);
        let are_apart =
            |a: &Delivery, b: &Delivery| a.segment == b.segment && a.offset + a.len < b.offset;
        if next.windows(2).any(|pair| are_apart(&pair[0], &pair[1])) {
            self.touch_all(next, TOUCHED_OF_EACH);
        }
    }

    fn touch_all(&self, deliveries: &[Delivery], bytes: usize) {
        let mut sum = 0;
        for delivery in deliveries {
            let message = self.bytes(delivery);
            let lines = message[..message.len().min(bytes)].chunks(CACHE_LINE);
            sum = lines.fold(sum, |sum, line| sum ^ line[0]);
        }
        std::hint::black_box(sum);
    }

    /// Where its sections before the body are; what follows them counts as body.
    pub fn sections(&self, delivery: &Delivery) -> Sections {
        delivery.head.sections(self.bytes(delivery))
    }

    /// Appends what goes out in place of the beginning of a message, and returns from where on its
    /// own bytes follow: from the start, if it goes out as it came in.
    pub fn write_head(&self, delivery: &Delivery, added: &mut Added, out: &mut Vec<u8>) -> usize {
        match self.write_stamps(delivery, out) {
            Some(end) => end,
            None => self.write_patched(delivery, added, out),
        }
    }

    fn write_patched(&self, delivery: &Delivery, added: &mut Added, out: &mut Vec<u8>) -> usize {
        let Some(patch) = self.patch(delivery, added) else { return 0 };
        let sections = self.sections(delivery);
        annotation::write_head(out, self.bytes(delivery), &sections, &patch)
    }

    /// The same, with what was written for the message before it: mostly only the numbers differ
    /// that the queue adds.
    #[inline]
    pub fn write_front(&self, delivery: &Delivery, added: &mut Added, front: &mut Front) -> usize {
        if let Some(end) = self.rewrite_stamps(delivery, front) {
            return end;
        }
        front.bytes.clear();
        front.stamps = None;
        let Some(end) = self.write_stamps(delivery, &mut front.bytes) else {
            return self.write_patched(delivery, added, &mut front.bytes);
        };
        if let Some(stamps) = self.stamps.as_ref().filter(|_| !self.has_numbers) {
            front.stamps = Some((Arc::clone(stamps), end));
        }
        end
    }

    #[inline]
    fn rewrite_stamps(&self, delivery: &Delivery, front: &mut Front) -> Option<usize> {
        let (stamps, end) = (self.stamps.as_ref()?, delivery.head.end_without_annotations()?);
        let (known, known_end) = front.stamps.as_ref()?;
        if delivery.is_patched() || !Arc::ptr_eq(stamps, known) || *known_end != end {
            return None;
        }
        let (before, section) = front.bytes.split_at_mut_checked(end)?;
        let origin = self.segments[delivery.segment as usize].origin();
        let is_same = *before == self.bytes(delivery)[..end];
        (is_same && stamps.rewrite(section, delivery.position, origin)).then_some(end)
    }

    /// The same for a message to which the annotations of a queue are added, or its number in an
    /// exchange, if it has no others and nothing else changes: most of those that have such.
    #[inline]
    fn write_stamps(&self, delivery: &Delivery, out: &mut Vec<u8>) -> Option<usize> {
        if (self.stamps.is_none() && !self.has_numbers) || delivery.is_patched() {
            return None;
        }
        let end = delivery.head.end_without_annotations()?;
        let start = out.len();
        out.extend_from_slice(&self.bytes(delivery)[..end]);
        let origin = self.segments[delivery.segment as usize].origin();
        let is_all = match (&self.stamps, self.number(delivery)) {
            (Some(stamps), None) => stamps.write(out, delivery.position, origin),
            (None, Some(number)) => {
                SECTION.write(out, &[number]);
                true
            }
            _ => false,
        };
        if !is_all {
            out.truncate(start);
        }
        is_all.then_some(end)
    }

    /// The number that a message has got at an exchange.
    #[inline]
    fn number(&self, delivery: &Delivery) -> Option<i64> {
        let segment = &self.segments[delivery.segment as usize];
        if self.has_numbers { segment.number(delivery.offset) } else { None }
    }

    /// What has to be different in the head of the message that goes out; `None` if it goes out as
    /// it came in.
    pub fn patch<'a>(&'a self, delivery: &Delivery, added: &'a mut Added) -> Option<HeadPatch<'a>> {
        let flags = delivery.flags;
        if self.stamps.is_none() && !self.has_numbers && !delivery.is_patched() {
            return None;
        }
        Some(HeadPatch {
            delivery_count: delivery.delivery_count,
            ttl_ms: flags.any(Flags::TTL).then_some(delivery.ttl_ms),
            drop_ttl: flags.any(Flags::TIMELESS),
            first_acquirer: flags.has(Flags::CLAIMS_FIRST | Flags::WAS_ACQUIRED).then_some(false),
            drop_delivery_annotations: flags.any(Flags::DELIVERY_ANNOTATIONS),
            annotations: self.annotations(delivery, added),
        })
    }

    /// Message annotations that a message goes out with and did not come in with.
    fn annotations<'a>(
        &'a self,
        delivery: &Delivery,
        added: &'a mut Added,
    ) -> &'a [(Symbol, Value)] {
        let overlay = self.overlays.get(delivery.overlay as usize);
        let overlay = overlay.map_or(&[][..], |overlay| overlay.annotations());
        let number = self.number(delivery);
        if self.stamps.is_none() && number.is_none() {
            return overlay;
        }
        let origin = self.segments[delivery.segment as usize].origin();
        added.fill(overlay, (self.stamps.as_ref(), number), delivery.position, origin)
    }

    /// A message as filters see it; whose connection it came over is left open.
    pub(crate) fn selector_input<'a>(
        &'a self,
        delivery: &Delivery,
        added: &'a mut Added,
    ) -> SelectorInput<'a> {
        let segment = &self.segments[delivery.segment as usize];
        let bytes = self.bytes(delivery);
        SelectorInput {
            bytes,
            sections: delivery.head.sections(bytes),
            size: segment.large_body().map_or(bytes.len() as u64, |body| body.len()),
            priority: delivery.priority,
            durable: delivery.is_durable(),
            delivery_count: delivery.delivery_count,
            annotations: self.annotations(delivery, added),
            is_local: false,
        }
    }

    /// Whether a message came over this connection.
    pub(crate) fn is_of(&self, delivery: &Delivery, connection: u64) -> bool {
        let origin = self.segments[delivery.segment as usize].origin().connection;
        origin != 0 && origin == connection
    }

    /// Groups that the consumer has lost before it took these messages, if it wants to hear of that.
    pub fn take_lost_groups(&mut self) -> Option<Box<LostGroups>> {
        self.lost_groups.take()
    }

    pub(crate) fn set_lost_groups(&mut self, lost: Option<Box<LostGroups>>) {
        self.lost_groups = lost;
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.deliveries.clear();
        self.segments.clear();
        self.overlays.clear();
        self.stamps = None;
        self.has_numbers = false;
        self.lost_groups = None;
    }

    /// What is taken next goes out with these.
    pub(crate) fn set_stamps(&mut self, stamps: Option<&Arc<Stamps>>) {
        self.stamps = stamps.cloned();
    }

    /// The index of a segment; messages that lie in the same one usually come one after another.
    pub(crate) fn segment(&mut self, segment: &Arc<Segment>) -> u32 {
        if !self.segments.last().is_some_and(|last| Arc::ptr_eq(last, segment)) {
            self.segments.push(Arc::clone(segment));
            self.has_numbers |= segment.numbers().is_some();
        }
        (self.segments.len() - 1) as u32
    }

    pub(crate) fn overlay(&mut self, overlay: &Arc<Overlay>) -> u32 {
        self.overlays.push(Arc::clone(overlay));
        (self.overlays.len() - 1) as u32
    }

    pub(crate) fn push(&mut self, delivery: Delivery) {
        self.deliveries.push(delivery);
    }
}

impl Delivery {
    /// True if somebody, perhaps this consumer, has acquired it before.
    pub fn was_acquired(&self) -> bool {
        self.flags.any(Flags::WAS_ACQUIRED)
    }

    /// Whether something changes that its sender said.
    fn is_patched(&self) -> bool {
        self.flags.any(Flags::PATCHED) || self.flags.has(Flags::CLAIMS_FIRST | Flags::WAS_ACQUIRED)
    }

    /// Bytes of it in memory.
    pub fn bytes_in_memory(&self) -> usize {
        self.len as usize
    }

    /// 0 to 9, as the sender said.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// The sender wanted it to survive a crash.
    pub fn is_durable(&self) -> bool {
        self.flags.any(Flags::DURABLE)
    }
}

/// No overlay.
pub(crate) const NO_OVERLAY: u32 = u32::MAX;

/// Those that are touched together, from `index` on.
fn next(deliveries: &[Delivery], index: usize) -> &[Delivery] {
    &deliveries[index..deliveries.len().min(index + TOUCHED_AT_ONCE)]
}

/// What the processor gets from memory at a time.
const CACHE_LINE: usize = 64;
/// So many messages are read ahead …
const TOUCHED_AT_ONCE: usize = 8;
/// … and so many bytes of each that is sent.
const TOUCHED_OF_EACH: usize = 512;
