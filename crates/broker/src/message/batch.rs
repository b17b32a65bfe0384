//! The messages that one publisher's visit brings for one address.

use super::{Head, MessageMeta, MessageName, MessageNames, NO_OVERLAY, Named, Overlay, Segment};
use crate::budget::Budget;
use crate::messages::{Cascade, Flags};
use crate::queue::{Enqueued, Refusal, Rejected};
use crate::selector::SelectorInput;
use crate::settings::Naming;
use mochila_wire::{RawMap, Symbol, Value};
use std::sync::Arc;

/// Messages in their segments, paid for, ready for [`SharedQueue::enqueue`].
///
/// [`SharedQueue::enqueue`]: crate::SharedQueue::enqueue
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) messages: Vec<Incoming>,
    /// What has been added to messages since they came in.
    pub(crate) overlays: Vec<Arc<Overlay>>,
    /// What the messages belong to, for a queue that asks.
    names: MessageNames,
    bytes: u64,
    /// The places that messages had before some were kept out; empty if none were.
    numbers: Vec<u32>,
    kept_out: u64,
    /// The messages have a place where they stay if they do not get in: what a queue keeps out is
    /// refused.
    pub(crate) may_stay: bool,
    /// How its messages have come here, if nobody has sent them.
    pub(crate) cascade: Option<Arc<Cascade>>,
}

/// The descriptor of one message of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// Which of the batch's segments.
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// Bytes in memory.
    pub(crate) len: u32,
    /// Bytes of the whole encoded message: more than `len` if it is a large one.
    pub(crate) size: u64,
    /// Which of the batch's overlays, or `NO_OVERLAY`.
    pub(crate) overlay: u32,
    pub(crate) meta: MessageMeta,
    pub(crate) head: Head,
    /// What has happened to it in the queue that it comes from, if it does.
    pub(crate) past: Flags,
}

impl Incoming {
    /// Its bytes in memory.
    fn bytes<'a>(&self, segments: &'a [Arc<Segment>]) -> &'a [u8] {
        let start = self.offset as usize;
        &segments[self.segment as usize].bytes()[start..start + self.len as usize]
    }
}

#[cfg(test)]
impl Incoming {
    pub(crate) fn for_test(len: u32, size: u64, meta: MessageMeta) -> Incoming {
        let head = Head::of(&mochila_wire::Sections::default());
        Incoming {
            segment: 0,
            offset: 0,
            len,
            size,
            overlay: NO_OVERLAY,
            meta,
            head,
            past: Flags::NONE,
        }
    }
}

impl Batch {
    /// How many messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Encoded bytes of all messages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes everything out, into no more memory than it needs.
    pub(crate) fn take(&mut self) -> Batch {
        let messages = self.messages.as_slice().into();
        self.messages.clear();
        Batch {
            segments: self.segments.drain(..).collect(),
            messages,
            overlays: std::mem::take(&mut self.overlays),
            names: std::mem::take(&mut self.names),
            bytes: std::mem::take(&mut self.bytes),
            numbers: std::mem::take(&mut self.numbers),
            kept_out: std::mem::take(&mut self.kept_out),
            may_stay: std::mem::take(&mut self.may_stay),
            cascade: self.cascade.take(),
        }
    }

    /// The same messages once more; their bytes are shared.
    pub(crate) fn twin(&self) -> Batch {
        Batch {
            segments: self.segments.clone(),
            messages: self.messages.clone(),
            overlays: self.overlays.clone(),
            bytes: self.bytes,
            may_stay: self.may_stay,
            cascade: self.cascade.clone(),
            ..Batch::default()
        }
    }

    /// Refuses all of it, and empties it.
    pub fn refuse(&mut self, reason: Refusal) -> Enqueued {
        let all = 0..self.len() as u32 + self.kept_out as u32;
        self.clear();
        let rejected = all.map(|index| Rejected { index, reason }).collect();
        Enqueued { accepted: 0, rejected, is_closed: true }
    }

    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.messages.clear();
        self.overlays.clear();
        self.names.clear();
        self.bytes = 0;
        self.numbers.clear();
        self.kept_out = 0;
        self.may_stay = false;
        self.cascade = None;
    }

    /// The routing key of a message: the subject of its properties, empty if it has none.
    pub(crate) fn subject(&self, index: usize) -> &[u8] {
        let message = &self.messages[index];
        let bytes = message.bytes(&self.segments);
        message.head.sections(bytes).raw_subject(bytes).unwrap_or_default()
    }

    /// The application properties of a message.
    pub(crate) fn application_properties(&self, index: usize) -> Option<RawMap<'_>> {
        let message = &self.messages[index];
        let bytes = message.bytes(&self.segments);
        message.head.sections(bytes).application_properties(bytes)
    }

    /// Replaces what this batch holds by some messages of another one, in their order. They share
    /// the bytes.
    pub(crate) fn select(&mut self, all: &Batch, indexes: &[u32]) {
        self.clear();
        self.may_stay = all.may_stay;
        self.cascade.clone_from(&all.cascade);
        for index in indexes {
            let message = all.messages[*index as usize];
            let segment = &all.segments[message.segment as usize];
            self.add_moved(segment, message, all.overlays.get(message.overlay as usize));
        }
    }

    /// Replaces what this batch holds by all messages of another one. They share the bytes.
    pub(crate) fn copy_of(&mut self, all: &Batch) {
        self.clear();
        self.segments.extend_from_slice(&all.segments);
        self.messages.extend_from_slice(&all.messages);
        self.overlays.extend_from_slice(&all.overlays);
        self.bytes = all.bytes;
        self.may_stay = all.may_stay;
        self.cascade.clone_from(&all.cascade);
    }

    /// Encoded bytes of one message.
    pub(crate) fn bytes_of(&self, index: u32) -> u64 {
        self.messages[index as usize].size
    }

    /// Adds annotations to a message, on top of those that have been added before. If there is no
    /// memory for them it goes on without.
    pub(crate) fn annotate(
        &mut self,
        index: usize,
        added: &[(Symbol, Value)],
        budget: &Arc<Budget>,
    ) {
        let message = &mut self.messages[index];
        let old = self.overlays.get(message.overlay as usize);
        let Some(overlay) = Overlay::with(old.map(Arc::as_ref), added, budget) else { return };
        match self.overlays.get_mut(message.overlay as usize) {
            Some(old) => *old = Arc::new(overlay),
            None => {
                message.overlay = self.overlays.len() as u32;
                self.overlays.push(Arc::new(overlay));
            }
        }
    }

    /// Adds a message that stands in a queue, with what has been added to it there. It keeps its
    /// bytes where they are.
    pub(crate) fn add_moved(
        &mut self,
        segment: &Arc<Segment>,
        message: Incoming,
        overlay: Option<&Arc<Overlay>>,
    ) {
        if !self.segments.last().is_some_and(|last| Arc::ptr_eq(last, segment)) {
            self.segments.push(Arc::clone(segment));
        }
        let mut overlay_index = NO_OVERLAY;
        if let Some(overlay) = overlay {
            overlay_index = self.overlays.len() as u32;
            self.overlays.push(Arc::clone(overlay));
        }
        let segment = (self.segments.len() - 1) as u32;
        self.push(Incoming { segment, overlay: overlay_index, ..message });
    }

    /// Adds a descriptor.
    #[inline]
    pub(super) fn push(&mut self, message: Incoming) {
        self.bytes += message.size;
        self.messages.push(message);
    }

    /// Keeps messages out that are not to enter; `enters` is told over which connection each came.
    pub(crate) fn screen(&mut self, mut enters: impl FnMut(&SelectorInput<'_>, u64) -> bool) {
        let Batch { segments, messages, overlays, numbers, bytes, .. } = self;
        let before = messages.len();
        let mut number = 0;
        messages.retain(|message| {
            let encoded = message.bytes(segments);
            let overlay = overlays.get(message.overlay as usize);
            let input = SelectorInput {
                size: message.size,
                annotations: overlay.map_or(&[], |overlay| overlay.annotations()),
                ..SelectorInput::of(encoded, &message.head.sections(encoded))
            };
            let is_in = enters(&input, segments[message.segment as usize].origin().connection);
            if is_in {
                numbers.push(number);
            } else {
                *bytes -= message.size;
            }
            number += 1;
            is_in
        });
        self.kept_out = (before - messages.len()) as u64;
        if self.kept_out == 0 {
            numbers.clear();
        }
    }

    /// How many messages have been kept out.
    pub(crate) fn kept_out(&self) -> u64 {
        self.kept_out
    }

    /// The place that a message had before some were kept out.
    pub(crate) fn number_of(&self, index: usize) -> u32 {
        self.numbers.get(index).copied().unwrap_or(index as u32)
    }

    /// Names messages by the places that they had before some were kept out. Those that were are
    /// among the rejected ones if they may stay where they are.
    pub(crate) fn number(&self, rejected: &mut Vec<Rejected>) {
        if self.kept_out == 0 {
            return;
        }
        rejected.iter_mut().for_each(|it| it.index = self.numbers[it.index as usize]);
        if self.may_stay {
            let mut let_in = self.numbers.iter().peekable();
            let all = 0..self.numbers.len() as u32 + self.kept_out as u32;
            let kept_out = all.filter(|index| let_in.next_if_eq(&index).is_none());
            rejected.extend(kept_out.map(|index| Rejected { index, reason: Refusal::KeptOut }));
            rejected.sort_by_key(|rejected| rejected.index);
        }
    }

    /// Finds the names of the messages, unless that has been done.
    pub(crate) fn find_names(&mut self, naming: &Arc<Naming>) {
        if self.names.are_found(naming, self.messages.len()) {
            return;
        }
        self.names.start(naming);
        self.find_each();
    }

    /// Finds the names of the messages for the queue at an address; what names them there is asked
    /// for unless it is known.
    ///
    /// It reads messages, so it is to be done before the queue is locked.
    pub(crate) fn find_names_for(
        &mut self,
        queue: usize,
        naming: impl FnOnce() -> Option<Arc<Naming>>,
    ) {
        if self.names.known(queue).is_none() {
            let Some(naming) = naming() else { return };
            self.names.learn(queue, naming);
        }
        self.find_each();
    }

    fn find_each(&mut self) {
        self.names.clear();
        for message in &self.messages {
            let bytes = message.bytes(&self.segments);
            self.names.push(message.head, bytes);
        }
    }

    /// Which of the names one message has; they have been found.
    #[inline]
    pub(crate) fn named(&self, index: usize) -> Named {
        self.names.named(index)
    }

    /// One of the names.
    #[inline]
    pub(crate) fn name(&self, number: u32) -> Option<MessageName<'_>> {
        self.names.get(number)
    }

    /// How many names the messages have.
    pub(crate) fn name_count(&self) -> usize {
        self.names.count()
    }
}
