//! Putting the messages of a visit together: what they cost, and into which segments they go.

use super::{Batch, Head, Incoming, LargeBody, MessageMeta, NO_OVERLAY, Origin, Segment};
use crate::budget::{Budget, Claim, OverLimit, Reservation};
use crate::messages::Flags;
use mochila_wire::Sections;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Collects the messages of one visit; a worker owns it and uses it again and again.
///
/// Messages that lie whole in the read buffer are named by their ranges and copied once, by
/// [`BatchBuilder::finish`], after their memory has been reserved.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    pending: Vec<Pending>,
    origin: Origin,
    batch: Batch,
}

#[derive(Debug)]
struct Pending {
    source: Source,
    meta: MessageMeta,
    head: Head,
}

enum Source {
    /// In the read buffer.
    Range { start: usize, len: usize },
    /// Put together from several transfers.
    Owned(Vec<u8>),
    /// The sections before the body, and all of it on disk.
    Large(Box<(Vec<u8>, Arc<dyn LargeBody>)>),
}

impl BatchBuilder {
    /// An empty one.
    pub fn new() -> BatchBuilder {
        BatchBuilder::default()
    }

    /// How many messages have been pushed.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// True if nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Says where the messages of this and the next batches come from.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// Adds a message that lies in the read buffer at `range`.
    pub fn push(&mut self, range: Range<usize>, sections: &Sections, meta: MessageMeta) {
        let source = Source::Range { start: range.start, len: range.len() };
        self.pending.push(Pending { source, meta, head: Head::of(sections) });
    }

    /// Adds a message that has its own memory: put together from several transfers, or made here.
    pub fn push_owned(&mut self, bytes: Vec<u8>, sections: &Sections, meta: MessageMeta) {
        let source = Source::Owned(bytes);
        self.pending.push(Pending { source, meta, head: Head::of(sections) });
    }

    /// Adds a message that is too large for memory; `head` holds the sections before its body.
    pub fn push_large(
        &mut self,
        head: Vec<u8>,
        sections: &Sections,
        meta: MessageMeta,
        body: Arc<dyn LargeBody>,
    ) {
        let ends = Head::of(sections);
        let source = Source::Large(Box::new((head, body)));
        self.pending.push(Pending { source, meta, head: ends });
    }

    /// Reserves memory for all that was pushed, and copies what lies in `buffer`, the read buffer.
    ///
    /// All or nothing; the builder is empty afterwards either way. The batch is the builder's, so
    /// that a visit allocates nothing but the segments.
    pub fn finish(&mut self, buffer: &[u8], budget: &Arc<Budget>) -> Result<&mut Batch, OverLimit> {
        let messages = self.len() as u64;
        self.finish_with(buffer, |bytes| budget.reserve(bytes))
            .inspect_err(|_| budget.note_refused(messages))
    }

    /// The same with memory that has been kept for the sender, as far as that is enough.
    pub fn finish_on(&mut self, buffer: &[u8], claim: &mut Claim) -> Result<&mut Batch, OverLimit> {
        let messages = self.len() as u64;
        self.finish_with(buffer, |bytes| claim.take(bytes))
            .inspect_err(|_| claim.budget().note_refused(messages))
    }

    /// The same for what the node itself tells an operator.
    pub fn finish_for_operator(&mut self, budget: &Arc<Budget>) -> Result<&mut Batch, OverLimit> {
        let messages = self.len() as u64;
        self.finish_with(&[], |bytes| budget.reserve_for_operator(bytes))
            .inspect_err(|_| budget.note_refused(messages))
    }

    fn finish_with(
        &mut self,
        buffer: &[u8],
        reserve: impl FnOnce(u64) -> Result<Reservation, OverLimit>,
    ) -> Result<&mut Batch, OverLimit> {
        self.batch.clear();
        let cost = self.pending.iter().map(Pending::cost).sum::<u64>() + SEGMENT_COST;
        let reservation = match reserve(cost) {
            Ok(reservation) => reservation,
            Err(over) => {
                self.pending.clear();
                return Err(over);
            }
        };
        self.batch.fill(&mut self.pending, buffer, self.origin, reservation);
        self.pending.clear();
        Ok(&mut self.batch)
    }
}

impl Batch {
    fn fill(
        &mut self,
        pending: &mut [Pending],
        buffer: &[u8],
        origin: Origin,
        mut reservation: Reservation,
    ) {
        let mut at = 0;
        // What a segment costs beyond its messages is charged once, to the first.
        let mut extra = SEGMENT_COST;
        while at < pending.len() {
            let end = run_end(pending, at);
            let run = &mut pending[at..end];
            let cost = run.iter().map(Pending::cost).sum::<u64>() + std::mem::take(&mut extra);
            let reservation = reservation.split(cost);
            let format = run[0].meta.message_format;
            let segment = match &mut run[0].source {
                Source::Range { .. } => {
                    Segment::new(self.copy(run, buffer), format, origin, reservation)
                }
                Source::Owned(bytes) => {
                    let bytes = std::mem::take(bytes).into_boxed_slice();
                    self.describe(bytes.len() as u64, 0, bytes.len(), &run[0]);
                    Segment::new(bytes, format, origin, reservation)
                }
                Source::Large(large) => {
                    let (head, body) = (std::mem::take(&mut large.0), Arc::clone(&large.1));
                    let head = head.into_boxed_slice();
                    self.describe(body.len(), 0, head.len(), &run[0]);
                    Segment::large(head, body, format, origin, reservation)
                }
            };
            self.segments.push(Arc::new(segment));
            at = end;
        }
    }

    /// Copies a run of messages out of the read buffer.
    fn copy(&mut self, run: &[Pending], buffer: &[u8]) -> Box<[u8]> {
        let total = run.iter().map(|pending| pending.source.len()).sum();
        let mut bytes = Vec::with_capacity(total);
        for pending in run {
            if let Source::Range { start, len } = pending.source {
                let message = &buffer[start..start + len];
                self.describe(len as u64, bytes.len(), len, pending);
                bytes.extend_from_slice(message);
            }
        }
        bytes.into_boxed_slice()
    }

    /// Adds the descriptor of a message in the segment that will be pushed next.
    fn describe(&mut self, size: u64, offset: usize, len: usize, pending: &Pending) {
        let segment = self.segments.len() as u32;
        // A segment is one message or at most `SEGMENT_BYTES`; a frame, and so a message in memory,
        // is smaller than 4 GiB.
        let (offset, len) = (offset as u32, len as u32);
        let (meta, head, past) = (pending.meta, pending.head, Flags::NONE);
        let overlay = NO_OVERLAY;
        self.push(Incoming { segment, offset, len, size, overlay, meta, head, past });
    }
}

impl Pending {
    /// What the message costs the budget.
    fn cost(&self) -> u64 {
        MESSAGE_COST + self.source.len() as u64
    }
}

impl Source {
    /// Bytes in memory.
    fn len(&self) -> usize {
        match self {
            Source::Range { len, .. } => *len,
            Source::Owned(bytes) => bytes.len(),
            Source::Large(large) => large.0.len(),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes)", self.len())
    }
}

/// The end of the messages from `start` on that share a segment.
fn run_end(pending: &[Pending], start: usize) -> usize {
    let mut bytes = 0;
    let format = pending[start].meta.message_format;
    let shared = pending[start..].iter().take_while(|pending| {
        bytes += pending.source.len();
        matches!(pending.source, Source::Range { .. })
            && bytes <= SEGMENT_BYTES
            && pending.meta.message_format == format
    });
    start + shared.count().max(1)
}

/// What a message of so many bytes takes of the node's memory if it comes alone.
pub(crate) fn cost_of_one(message_bytes: u64) -> u64 {
    message_bytes.saturating_add(MESSAGE_COST + SEGMENT_COST)
}

/// A segment of many messages is at most this large, so that little memory hangs on one of them.
/// It is a size class of common allocators, so that nothing is lost to rounding.
const SEGMENT_BYTES: usize = 64 * 1024;
/// What a message costs beyond its bytes: its entry, and its share of blocks and indexes.
const MESSAGE_COST: u64 = 40;
/// What a segment costs beyond its bytes.
const SEGMENT_COST: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    struct OnDisk(u64);

    impl LargeBody for OnDisk {
        fn len(&self) -> u64 {
            self.0
        }

        fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> std::io::Result<usize> {
            Ok(0)
        }
    }

    fn pushed(builder: &mut BatchBuilder, range: Range<usize>) {
        builder.push(range, &Sections::default(), MessageMeta::default());
    }

    fn bytes_of(batch: &Batch) -> Vec<&[u8]> {
        let slice = |m: &Incoming| (m.offset as usize)..(m.offset + m.len) as usize;
        batch
            .messages
            .iter()
            .map(|m| &batch.segments[m.segment as usize].bytes()[slice(m)])
            .collect()
    }

    #[test]
    fn messages_of_one_read_buffer_share_a_segment() {
        let budget = Budget::new(0);
        let mut builder = BatchBuilder::new();
        pushed(&mut builder, 1..4);
        pushed(&mut builder, 6..8);
        let batch = builder.finish(b"_abc__de", &budget).unwrap();
        assert_eq!(bytes_of(batch), [b"abc" as &[u8], b"de"]);
        assert_eq!((batch.segments.len(), batch.bytes()), (1, 5));
        assert!(builder.is_empty());
    }

    #[test]
    fn a_long_batch_is_cut_into_segments_of_64_kib() {
        let buffer = vec![7; 200_000];
        let mut builder = BatchBuilder::new();
        for start in (0..200_000).step_by(1_000) {
            pushed(&mut builder, start..start + 1_000);
        }
        let batch = builder.finish(&buffer, &Budget::new(0)).unwrap();
        let lengths: Vec<_> = batch.segments.iter().map(|s| s.bytes().len()).collect();
        assert_eq!(lengths, [65_000, 65_000, 65_000, 5_000]);
    }

    #[test]
    fn messages_of_another_format_lie_in_another_segment() {
        let mut builder = BatchBuilder::new();
        for (index, message_format) in [0, 0, 7, 0].into_iter().enumerate() {
            let meta = MessageMeta { message_format, ..MessageMeta::default() };
            builder.push(index..index + 1, &Sections::default(), meta);
        }
        let batch = builder.finish(b"abcd", &Budget::new(0)).unwrap();
        let formats: Vec<_> = batch.segments.iter().map(|s| s.message_format()).collect();
        assert_eq!(formats, [0, 7, 0]);
        assert_eq!(bytes_of(batch).concat(), b"abcd");
    }

    #[test]
    fn messages_with_their_own_memory_keep_their_place_among_the_others() {
        let mut builder = BatchBuilder::new();
        pushed(&mut builder, 0..1);
        let (sections, meta) = (Sections::default(), MessageMeta::default());
        builder.push_owned(b"owned".to_vec(), &sections, meta);
        builder.push_large(b"head".to_vec(), &sections, meta, Arc::new(OnDisk(1 << 33)));
        pushed(&mut builder, 1..2);
        let batch = builder.finish(b"xy", &Budget::new(0)).unwrap();
        assert_eq!(bytes_of(batch), [b"x" as &[u8], b"owned", b"head", b"y"]);
        assert_eq!(batch.messages[2].size, 1 << 33);
        assert_eq!(batch.bytes(), (1 << 33) + 7);
    }

    #[test]
    fn a_batch_is_reserved_before_it_is_copied_and_all_of_it_or_nothing() {
        let budget = Budget::new(1_000);
        let mut builder = BatchBuilder::new();
        pushed(&mut builder, 0..450);
        pushed(&mut builder, 450..900);
        assert!(builder.finish(&[0; 900], &budget).is_err());
        assert_eq!((budget.used(), budget.refused(), builder.len()), (0, 2, 0));
        pushed(&mut builder, 0..100);
        builder.finish(&[0; 900], &budget).unwrap();
        assert_eq!(budget.used(), 100 + MESSAGE_COST + SEGMENT_COST);
        drop(builder);
        assert_eq!(budget.used(), 0);
    }
}
