//! Annotations that a queue adds to each of its messages when it goes out.

use super::Origin;
use crate::settings::{Defaults, QueueSettings};
use mochila_wire::{Symbol, Value};
use std::sync::Arc;

/// Which annotations those are. Nothing is kept per message: the number follows from where the
/// message stands, and the time is that of its segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The annotation that has the message's number in the queue.
    sequence: Option<Symbol>,
    /// Whether there is one that says when the message came.
    has_time: bool,
}

impl Stamps {
    /// What the settings of a queue ask for, if anything.
    pub(crate) fn of(settings: &QueueSettings, defaults: &Defaults) -> Option<Arc<Stamps>> {
        let name = settings.sequence_key.as_deref().filter(|name| !name.is_empty());
        let sequence = name.and_then(|name| Symbol::new(name).ok());
        let has_time = settings.ingress_timestamp.unwrap_or(defaults.ingress_timestamp);
        (sequence.is_some() || has_time).then(|| Arc::new(Stamps { sequence, has_time }))
    }

    /// The annotations of one message.
    fn values(&self, position: u64, origin: Origin) -> [Option<(&Symbol, Value)>; 2] {
        // Numbers begin with 1 and wrap around, as those of the Qpid broker do.
        let number = position.wrapping_add(1) as u32;
        let nanoseconds = origin.time_ms.saturating_mul(1_000_000);
        let sequence = self.sequence.as_ref().map(|name| (name, Value::Uint(number)));
        let has_time = self.has_time && origin.time_ms != 0;
        [sequence, has_time.then_some((&INGRESS_TIMESTAMP, Value::Long(nanoseconds)))]
    }
}

/// The annotations that have been added to one message; whoever sends messages owns one and uses it
/// again and again, so that nothing is allocated for a message.
#[derive(Debug, Default)]
pub struct Added {
    pairs: Vec<(Symbol, Value)>,
    /// Set if the keys of `pairs` are those of these stamps and no others.
    keys_of: Option<Arc<Stamps>>,
}

impl Added {
    /// Nothing.
    pub fn new() -> Added {
        Added::default()
    }

    /// What consumers have added, and on top of it what the queue adds.
    pub(super) fn fill(
        &mut self,
        overlay: &[(Symbol, Value)],
        stamps: &Arc<Stamps>,
        position: u64,
        origin: Origin,
    ) -> &[(Symbol, Value)] {
        let values = stamps.values(position, origin).into_iter().flatten();
        let is_known = self.keys_of.as_ref().is_some_and(|known| Arc::ptr_eq(known, stamps));
        if is_known && overlay.is_empty() && (origin.time_ms != 0 || !stamps.has_time) {
            for (pair, (_, value)) in self.pairs.iter_mut().zip(values) {
                pair.1 = value;
            }
            return &self.pairs;
        }
        self.pairs.clear();
        self.pairs.extend_from_slice(overlay);
        self.pairs.extend(values.map(|(key, value)| (key.clone(), value)));
        let is_whole = origin.time_ms != 0 || !stamps.has_time;
        self.keys_of = (overlay.is_empty() && is_whole).then(|| Arc::clone(stamps));
        &self.pairs
    }
}

/// When a message came to the broker: a long, nanoseconds of the Unix epoch as with the Qpid broker,
/// by a clock that counts milliseconds.
static INGRESS_TIMESTAMP: Symbol = Symbol::from_static("x-opt-ingress-timestamp");
