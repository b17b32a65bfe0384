//! Annotations that a queue adds to each of its messages when it goes out.

use super::{Origin, SEQUENCE};
use crate::settings::{Defaults, QueueSettings};
use mochila_wire::form::Width;
use mochila_wire::{Form, Symbol, Value};
use std::sync::Arc;

/// Which annotations those are. Nothing is kept per message: the number follows from where the
/// message stands, and the time is that of its segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The annotation that has the message's number in the queue.
    sequence: Option<Symbol>,
    /// Whether there is one that says when the message came.
    has_time: bool,
    /// The section of a message that has no annotations of its own, if it has to be no different
    /// for some of them.
    form: Option<Form>,
}

impl Stamps {
    /// What the settings of a queue ask for, if anything.
    pub(crate) fn of(settings: &QueueSettings, defaults: &Defaults) -> Option<Arc<Stamps>> {
        let name = settings.sequence_key.as_deref().filter(|name| !name.is_empty());
        let sequence = name.and_then(|name| Symbol::new(name).ok());
        let has_time = settings.ingress_timestamp.unwrap_or(defaults.ingress_timestamp);
        let form = Stamps::form(sequence.as_ref(), has_time);
        (sequence.is_some() || has_time).then(|| Arc::new(Stamps { sequence, has_time, form }))
    }

    fn form(sequence: Option<&Symbol>, has_time: bool) -> Option<Form> {
        if has_time && sequence == Some(&INGRESS_TIMESTAMP) {
            return None;
        }
        let sequence = sequence.map(|name| (name, Width::Uint));
        let time = has_time.then_some((&INGRESS_TIMESTAMP, Width::Long));
        let annotations: Vec<_> = sequence.into_iter().chain(time).collect();
        Some(Form::new(&annotations))
    }

    /// Appends the annotations of a message that has none of its own; false if that is not all
    /// there is to it.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, position: u64, origin: Origin) -> bool {
        let Some(form) = self.form.as_ref().filter(|_| self.knows_all(origin)) else {
            return false;
        };
        form.write(out, self.numbers(&[i64::from(number_of(position)), nanoseconds(origin)]));
        true
    }

    /// Makes what was written for one message that of another; false if that is not all there is to
    /// it.
    #[inline]
    pub(super) fn rewrite(&self, section: &mut [u8], position: u64, origin: Origin) -> bool {
        let Some(form) = self.form.as_ref().filter(|_| self.knows_all(origin)) else {
            return false;
        };
        form.fill(section, self.numbers(&[i64::from(number_of(position)), nanoseconds(origin)]));
        true
    }

    /// Those of the number and the time that messages get.
    #[inline]
    fn numbers<'a>(&self, both: &'a [i64; 2]) -> &'a [i64] {
        if self.sequence.is_some() { both } else { &both[1..] }
    }

    /// Whether every message of this origin gets all of the annotations.
    fn knows_all(&self, origin: Origin) -> bool {
        origin.time_ms != 0 || !self.has_time
    }

    /// The annotations of one message.
    fn values(&self, position: u64, origin: Origin) -> [Option<(&Symbol, Value)>; 2] {
        let number = Value::Uint(number_of(position));
        let sequence = self.sequence.as_ref().map(|name| (name, number));
        let has_time = self.has_time && origin.time_ms != 0;
        [sequence, has_time.then(|| (&INGRESS_TIMESTAMP, Value::Long(nanoseconds(origin))))]
    }
}

/// Numbers begin with 1 and wrap around, as those of the Qpid broker do.
fn number_of(position: u64) -> u32 {
    position.wrapping_add(1) as u32
}

fn nanoseconds(origin: Origin) -> i64 {
    origin.time_ms.saturating_mul(1_000_000)
}

/// The annotations that have been added to one message; whoever sends messages owns one and uses it
/// again and again, so that nothing is allocated for a message.
#[derive(Debug, Default)]
pub struct Added {
    pairs: Vec<(Symbol, Value)>,
    /// Set if the keys of `pairs` are these and no others.
    keys: Option<Keys>,
}

impl Added {
    /// Nothing.
    pub fn new() -> Added {
        Added::default()
    }

    /// The number of a message in an exchange; on top of it what consumers have added, and on top of
    /// that what the queue adds.
    pub(super) fn fill(
        &mut self,
        overlay: &[(Symbol, Value)],
        (stamps, number): (Option<&Arc<Stamps>>, Option<i64>),
        position: u64,
        origin: Origin,
    ) -> &[(Symbol, Value)] {
        let number = number.map(|number| (&SEQUENCE, Value::Long(number)));
        let is_whole = overlay.is_empty() && stamps.is_none_or(|stamps| stamps.knows_all(origin));
        let has_number = number.is_some();
        let are_known = self.keys.as_ref().is_some_and(|keys| keys.are(has_number, stamps));
        let stamped = stamps.map(|stamps| stamps.values(position, origin));
        let stamped = stamped.into_iter().flatten().flatten();
        if is_whole && are_known {
            for (pair, (_, value)) in self.pairs.iter_mut().zip(number.into_iter().chain(stamped)) {
                pair.1 = value;
            }
            return &self.pairs;
        }
        let owned = |(key, value): (&Symbol, Value)| (key.clone(), value);
        self.pairs.clear();
        self.pairs.extend(number.map(owned));
        self.pairs.extend_from_slice(overlay);
        self.pairs.extend(stamped.map(owned));
        self.keys = is_whole.then(|| Keys { has_number, stamps: stamps.cloned() });
        &self.pairs
    }
}

/// Which annotations messages get that consumers have not touched.
#[derive(Debug)]
struct Keys {
    has_number: bool,
    stamps: Option<Arc<Stamps>>,
}

impl Keys {
    fn are(&self, has_number: bool, stamps: Option<&Arc<Stamps>>) -> bool {
        self.has_number == has_number
            && self.stamps.as_ref().map(Arc::as_ptr) == stamps.map(Arc::as_ptr)
    }
}

/// When a message came to the broker: a long, nanoseconds of the Unix epoch as with the Qpid broker,
/// by a clock that counts milliseconds.
pub(crate) static INGRESS_TIMESTAMP: Symbol = Symbol::from_static("x-opt-ingress-timestamp");
