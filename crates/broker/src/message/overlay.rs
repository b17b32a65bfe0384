//! What has been added to a message since it came in.

use crate::budget::{Budget, Reservation};
use mochila_wire::{Map, Symbol, Value};
use std::sync::Arc;

/// Message annotations that consumers added with the `modified` outcome (part 3, section 3.4.5).
///
/// They lie beside the entry and are written into the head of the message when it is sent; the
/// stored bytes stay as they are.
#[derive(Debug)]
pub struct Overlay {
    annotations: Vec<(Symbol, Value)>,
    _reservation: Reservation,
}

impl Overlay {
    /// The annotations, each key once.
    pub fn annotations(&self) -> &[(Symbol, Value)] {
        &self.annotations
    }

    /// `old` with `added` on top, or `None` if that is more than one message may carry, or than the
    /// node has memory for: whoever modifies messages must not get past its limit.
    pub(crate) fn merge(
        old: Option<&Overlay>,
        added: &Map,
        budget: &Arc<Budget>,
    ) -> Option<Overlay> {
        let added = added.iter().filter_map(|(key, value)| Some((annotation_key(key)?, value)));
        Overlay::of(old, added, budget)
    }

    /// The same for annotations that the broker adds.
    pub(crate) fn with(
        old: Option<&Overlay>,
        added: &[(Symbol, Value)],
        budget: &Arc<Budget>,
    ) -> Option<Overlay> {
        Overlay::of(old, added.iter().map(|(key, value)| (key.clone(), value)), budget)
    }

    fn of<'a>(
        old: Option<&Overlay>,
        added: impl Iterator<Item = (Symbol, &'a Value)>,
        budget: &Arc<Budget>,
    ) -> Option<Overlay> {
        let mut annotations = old.map(|old| old.annotations.clone()).unwrap_or_default();
        for (key, value) in added {
            match annotations.iter_mut().find(|(name, _)| *name == key) {
                Some((_, old)) => *old = value.clone(),
                None => annotations.push((key, value.clone())),
            }
        }
        let bytes: usize =
            annotations.iter().map(|(key, value)| key.as_str().len() + size(value)).sum();
        if bytes > MOST_BYTES {
            return None;
        }
        let reservation = budget.reserve(bytes as u64).ok()?;
        Some(Overlay { annotations, _reservation: reservation })
    }
}

/// Annotations have symbols for keys (part 3, section 3.2.10); what else a peer sends is not kept.
fn annotation_key(key: &Value) -> Option<Symbol> {
    match key {
        Value::Symbol(symbol) => Some(symbol.clone()),
        Value::String(text) => Symbol::new(text.as_str()).ok(),
        _ => None,
    }
}

/// About how much memory a value takes.
fn size(value: &Value) -> usize {
    let inner = match value {
        Value::Binary(bytes) => bytes.len(),
        Value::String(text) => text.len(),
        Value::Symbol(symbol) => symbol.as_str().len(),
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(map) => map.iter().map(|(key, value)| size(key) + size(value)).sum(),
        Value::Array(array) => array.elements.iter().map(size).sum(),
        Value::Described(described) => size(&described.descriptor) + size(&described.value),
        _ => 0,
    };
    std::mem::size_of::<Value>() + inner
}

/// What the annotations of one message may take.
const MOST_BYTES: usize = 64 * 1024;
