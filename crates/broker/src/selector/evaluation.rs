//! One evaluation of a selector against one message.

use super::SelectorInput;
use super::expression::Comparison;
use super::id;
use super::name::{CORRELATION_ID, Fact, Form, MESSAGE_ID, Property};
use super::operand::{Operand, text_order};
use super::program::{Condition, Keys, Part, Program, Value};
use super::truth::Truth;
use mochila_wire::{RawMap, RawValue, Value as Decoded};
use std::cell::OnceCell;

/// Whether a message is what a selector asks for: unknown is not.
pub(super) fn matches(program: &Program, input: &SelectorInput<'_>) -> bool {
    let ids = [const { OnceCell::new() }; IDS];
    let mut few = [None; FEW];
    let mut many = Vec::new();
    let slots = match few.get_mut(..program.needs.slots) {
        Some(slots) => slots,
        None => {
            many.resize(program.needs.slots, None);
            &mut many
        }
    };
    let added = Vec::new();
    let mut evaluation = Evaluation { program, input, ids: &ids, slots, added, walked: 0 };
    evaluation.condition(program.root) == Truth::True
}

struct Evaluation<'m, 's> {
    program: &'m Program,
    input: &'m SelectorInput<'m>,
    /// The text of ids whose text is not in the message.
    ids: &'m [OnceCell<String>; IDS],
    /// What was found for each name; `None` if nothing was.
    slots: &'s mut [Option<RawValue<'m>>],
    /// What was added to the message for the names that are annotations, if anything was added.
    added: Vec<Option<&'m Decoded>>,
    /// The parts of the message that have been walked over.
    walked: u8,
}

impl<'m> Evaluation<'m, '_> {
    fn condition(&mut self, place: u16) -> Truth {
        let program = self.program;
        match &program.conditions[usize::from(place)] {
            Condition::All(parts) => {
                let mut all = Truth::True;
                for part in parts {
                    all = all.and(self.condition(*part));
                    if all == Truth::False {
                        break;
                    }
                }
                all
            }
            Condition::Any(parts) => {
                let mut any = Truth::False;
                for part in parts {
                    any = any.or(self.condition(*part));
                    if any == Truth::True {
                        break;
                    }
                }
                any
            }
            Condition::Not(inner) => !self.condition(*inner),
            Condition::Compare(comparison, left, right) => {
                let left = self.value(*left);
                left.compare(*comparison, self.value(*right))
            }
            Condition::Between(value, least, greatest) => {
                let value = self.value(*value);
                let least = value.compare(Comparison::GreaterOrEqual, self.value(*least));
                least.and(value.compare(Comparison::LessOrEqual, self.value(*greatest)))
            }
            Condition::OneOf(value, texts) => match self.value(*value) {
                Operand::Unknown => Truth::Unknown,
                Operand::Text(text) => {
                    texts.binary_search_by(|other| text_order(other, text)).is_ok().into()
                }
                _ => Truth::False,
            },
            Condition::Among(value, list) => self.among(*value, list),
            Condition::Like(value, pattern) => match self.value(*value) {
                Operand::Text(text) => match std::str::from_utf8(text) {
                    Ok(text) => pattern.matches(text).into(),
                    Err(_) => Truth::Unknown,
                },
                // A pattern says nothing about what is no text.
                _ => Truth::Unknown,
            },
            Condition::IsNull(value) => self.value(*value).is_unknown().into(),
            Condition::Holds(value) => self.value(*value).truth(),
        }
    }

    fn among(&mut self, value: u16, list: &[u16]) -> Truth {
        let value = self.value(value);
        if value.is_unknown() {
            return Truth::Unknown;
        }
        let mut among = Truth::False;
        for element in list {
            among = among.or(value.compare(Comparison::Equal, self.value(*element)));
            if among == Truth::True {
                break;
            }
        }
        among
    }

    /// The usual values here, the others apart.
    #[inline(always)]
    fn value(&mut self, place: u16) -> Operand<'m> {
        let program = self.program;
        match &program.values[usize::from(place)] {
            Value::Slot(part, slot) => {
                if self.walked & *part as u8 == 0 {
                    self.walk(*part);
                }
                self.slots[usize::from(*slot)].map_or(Operand::Unknown, Operand::of_raw)
            }
            Value::Text(text) => Operand::Text(text),
            Value::Int(value) => Operand::Int(*value),
            value => self.unusual(value),
        }
    }

    #[inline(never)]
    fn unusual(&mut self, value: &'m Value) -> Operand<'m> {
        match value {
            Value::Bool(value) => Operand::Bool(*value),
            Value::Int(value) => Operand::Int(*value),
            Value::Float(value) => Operand::Float(*value),
            Value::Text(text) => Operand::Text(text),
            Value::Fact(fact) => self.fact(*fact),
            Value::Slot(part, slot) => {
                self.found(*part, *slot).map_or(Operand::Unknown, Operand::of_raw)
            }
            Value::Property(property, slot) => {
                let found = self.found(Part::Properties, *slot);
                self.property(*property, found)
            }
            Value::Annotation(slot) => {
                let found = self.found(Part::Annotations, *slot);
                let place = usize::from(*slot) - self.program.needs.annotations.first();
                match self.added.get(place) {
                    Some(Some(value)) => Operand::of_value(value),
                    _ => found.map_or(Operand::Unknown, Operand::of_raw),
                }
            }
            Value::Calculate(operator, left, right) => {
                let left = self.value(*left);
                left.calculate(*operator, self.value(*right))
            }
            Value::Negate(inner) => self.value(*inner).negate(),
            Value::Truth(condition) => self.condition(*condition).into(),
        }
    }

    fn found(&mut self, part: Part, slot: u16) -> Option<RawValue<'m>> {
        if self.walked & part as u8 == 0 {
            self.walk(part);
        }
        self.slots[usize::from(slot)]
    }

    fn property(&self, property: Property, found: Option<RawValue<'m>>) -> Operand<'m> {
        match (found.filter(|raw| !raw.is_null()), property.form) {
            (None, Form::OrZero) => Operand::Int(0),
            (None, _) => Operand::Unknown,
            (Some(raw), form) => match cell_of(property.index, form) {
                Some(cell) => id::operand(raw, form, &self.ids[cell]),
                None => Operand::of_raw(raw),
            },
        }
    }

    fn fact(&self, fact: Fact) -> Operand<'m> {
        let input = self.input;
        let text = |yes: bool, names: [&'static str; 2]| {
            Operand::Text(names[usize::from(!yes)].as_bytes())
        };
        match fact {
            Fact::Durable => Operand::Bool(input.durable),
            Fact::DeliveryMode => text(input.durable, ["PERSISTENT", "NON_PERSISTENT"]),
            Fact::Durability => text(input.durable, ["DURABLE", "NON_DURABLE"]),
            Fact::Priority => Operand::Int(input.priority.into()),
            Fact::Ttl => match input.sections.header(input.bytes).ttl {
                Some(ttl) => Operand::Int(ttl.into()),
                None => Operand::Unknown,
            },
            Fact::FirstAcquirer => Operand::Bool(input.sections.header(input.bytes).first_acquirer),
            Fact::DeliveryCount => Operand::Int(input.delivery_count.into()),
            Fact::JmsDeliveryCount => Operand::Int(i64::from(input.delivery_count) + 1),
            Fact::Redelivered => Operand::Bool(input.delivery_count > 0),
            Fact::Size => Operand::Int(i64::try_from(input.size).unwrap_or(i64::MAX)),
        }
    }

    /// Looks for everything that the selector needs from a part of the message.
    fn walk(&mut self, part: Part) {
        self.walked |= part as u8;
        let (input, needs) = (self.input, &self.program.needs);
        let (bytes, sections) = (input.bytes, &input.sections);
        match part {
            Part::Properties => self.walk_properties(),
            Part::Application => {
                self.walk_map(sections.application_properties(bytes), &needs.application);
            }
            Part::Annotations => {
                if !input.annotations.is_empty() {
                    self.added.resize(needs.annotations.len(), None);
                }
                for (name, value) in input.annotations {
                    if let Some(slot) = needs.annotations.slot(name.as_str().as_bytes()) {
                        self.added[slot - needs.annotations.first()] = Some(value);
                    }
                }
                self.walk_map(sections.message_annotations(bytes), &needs.annotations);
            }
            Part::DeliveryAnnotations => {
                self.walk_map(sections.delivery_annotations(bytes), &needs.delivery_annotations);
            }
        }
    }

    /// Of two pairs with one key the first one counts.
    fn walk_map(&mut self, map: Option<RawMap<'m>>, keys: &Keys) {
        let Some(map) = map else { return };
        let mut left = keys.len();
        for (key, value) in map {
            let Some(slot) = key.text().and_then(|key| keys.slot(key)) else { continue };
            let slot = &mut self.slots[slot];
            if slot.is_none() {
                *slot = Some(value);
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
    }

    fn walk_properties(&mut self) {
        let (input, wanted) = (self.input, &self.program.needs.properties);
        let Some(mut fields) = input.sections.raw_properties(input.bytes) else { return };
        let (mut next, mut field) = (0, None);
        for (slot, property) in wanted.iter().enumerate() {
            if property.index >= next {
                field = fields.nth(usize::from(property.index - next));
                next = property.index + 1;
            }
            self.slots[slot] = field;
        }
    }
}

/// Where the text of an id is kept, if it is one.
fn cell_of(index: u8, form: Form) -> Option<usize> {
    match (index, form) {
        (MESSAGE_ID, Form::Plain) => Some(0),
        (MESSAGE_ID, _) => Some(1),
        (CORRELATION_ID, Form::Plain) => Some(2),
        (CORRELATION_ID, _) => Some(3),
        _ => None,
    }
}

/// Forms of both ids.
const IDS: usize = 4;

/// As many names as there is room for without an allocation.
const FEW: usize = 8;
