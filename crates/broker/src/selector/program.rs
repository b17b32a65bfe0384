//! A selector in the form that is evaluated: flat tables instead of a tree.

use super::expression::{Comparison, Expression, Literal, Operator};
use super::id;
use super::name::{Fact, Property, Source};
use super::operand::text_order;
use super::pattern::Pattern;
use std::collections::BTreeSet;

/// A compiled selector. Conditions and values refer to each other by their places in its tables.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) conditions: Box<[Condition]>,
    pub(super) values: Box<[Value]>,
    /// The condition that all the others are part of.
    pub(super) root: u16,
    pub(super) needs: Needs,
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    All(Box<[u16]>),
    Any(Box<[u16]>),
    Not(u16),
    Compare(Comparison, u16, u16),
    Between(u16, u16, u16),
    /// One of these texts, ordered by [`text_order`].
    OneOf(u16, Box<[Box<[u8]>]>),
    /// One of these values.
    Among(u16, Box<[u16]>),
    Like(u16, Pattern),
    IsNull(u16),
    /// A value that is true or false itself.
    Holds(u16),
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<[u8]>),
    Fact(Fact),
    /// What was found in this part of the message for the name of this slot.
    Slot(Part, u16),
    /// The same for a property that is not shown as it is.
    Property(Property, u16),
    /// The same for an annotation, which may have been added to the message.
    Annotation(u16),
    Calculate(Operator, u16, u16),
    Negate(u16),
    Truth(u16),
}

/// A part of a message that is walked over as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Properties = 1,
    Application = 2,
    Annotations = 4,
    DeliveryAnnotations = 8,
}

/// The names of a selector by the part of the message that they are in. Each has a slot, which its
/// value is put into when the part is walked over.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// In the order of the list that they are in; their slots are the first ones.
    pub(super) properties: Box<[Property]>,
    pub(super) application: Keys,
    pub(super) annotations: Keys,
    pub(super) delivery_annotations: Keys,
    /// How many slots there are.
    pub(super) slots: usize,
}

/// Keys of one map, in order; their slots follow one another.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    names: Box<[Box<str>]>,
    first: usize,
}

impl Program {
    /// Compiles the tree of a selector, which is a condition.
    pub(super) fn new(tree: &Expression) -> Program {
        let needs = Needs::of(tree);
        let mut compiler = Compiler { conditions: Vec::new(), values: Vec::new(), needs: &needs };
        let root = compiler.condition(tree);
        let (conditions, values) = (compiler.conditions.into(), compiler.values.into());
        Program { conditions, values, root, needs }
    }
}

impl Needs {
    fn of(tree: &Expression) -> Needs {
        let mut sources = BTreeSet::new();
        tree.names(&mut |source| {
            sources.insert(source);
        });
        let mut slots = 0;
        let properties: Box<[Property]> = sources
            .iter()
            .filter_map(|source| match source {
                Source::Property(property) => Some(*property),
                _ => None,
            })
            .collect();
        slots += properties.len();
        let mut keys = |part| {
            let names = sources.iter().filter_map(|source| Some(key_in(source, part)?.into()));
            let keys = Keys { names: names.collect(), first: slots };
            slots += keys.names.len();
            keys
        };
        let application = keys(Part::Application);
        let annotations = keys(Part::Annotations);
        let delivery_annotations = keys(Part::DeliveryAnnotations);
        Needs { properties, application, annotations, delivery_annotations, slots }
    }

    fn value(&self, source: &Source) -> Value {
        let known = |slot: Option<usize>| slot.expect("every name has a slot") as u16;
        match source {
            Source::Fact(fact) => Value::Fact(*fact),
            Source::Property(property) => {
                let slot = known(self.properties.iter().position(|other| other == property));
                match property.is_shown_as_it_is() {
                    true => Value::Slot(Part::Properties, slot),
                    false => Value::Property(*property, slot),
                }
            }
            Source::Application(key) => {
                Value::Slot(Part::Application, known(self.application.slot(key.as_bytes())))
            }
            Source::Annotation(key) => {
                Value::Annotation(known(self.annotations.slot(key.as_bytes())))
            }
            Source::DeliveryAnnotation(key) => {
                let slot = known(self.delivery_annotations.slot(key.as_bytes()));
                Value::Slot(Part::DeliveryAnnotations, slot)
            }
        }
    }
}

fn key_in(source: &Source, part: Part) -> Option<&str> {
    match (source, part) {
        (Source::Application(key), Part::Application)
        | (Source::Annotation(key), Part::Annotations)
        | (Source::DeliveryAnnotation(key), Part::DeliveryAnnotations) => Some(key),
        _ => None,
    }
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The first of their slots.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The slot of a key, if it is one of these.
    #[inline]
    pub(super) fn slot(&self, key: &[u8]) -> Option<usize> {
        let place = if self.names.len() <= FEW {
            // The first byte tells most names of one length apart, without a call.
            let same =
                |name: &[u8]| name.len() == key.len() && name.first() == key.first() && name == key;
            self.names.iter().position(|name| same(name.as_bytes()))?
        } else {
            self.names.binary_search_by(|name| name.as_bytes().cmp(key)).ok()?
        };
        Some(self.first + place)
    }
}

/// As many keys as are compared one by one.
const FEW: usize = 6;

struct Compiler<'n> {
    conditions: Vec<Condition>,
    values: Vec<Value>,
    needs: &'n Needs,
}

impl Compiler<'_> {
    fn condition(&mut self, tree: &Expression) -> u16 {
        let condition = match tree {
            Expression::All(parts) => Condition::All(self.conditions_of(parts)),
            Expression::Any(parts) => Condition::Any(self.conditions_of(parts)),
            Expression::Not(inner) => Condition::Not(self.condition(inner)),
            Expression::Compare(comparison, parts) => {
                let [left, right] = &**parts;
                let (a, b) = (self.value_like(left, right), self.value_like(right, left));
                Condition::Compare(*comparison, a, b)
            }
            Expression::Between(parts) => {
                let [value, least, greatest] = &**parts;
                Condition::Between(self.value(value), self.value(least), self.value(greatest))
            }
            Expression::In(value, list) => self.membership(value, list),
            Expression::Like(value, pattern) => Condition::Like(self.value(value), pattern.clone()),
            Expression::IsNull(value) => Condition::IsNull(self.value(value)),
            Expression::Literal(_)
            | Expression::Name(_)
            | Expression::Calculate(..)
            | Expression::Negate(_) => Condition::Holds(self.value(tree)),
        };
        self.conditions.push(condition);
        place(self.conditions.len())
    }

    fn conditions_of(&mut self, parts: &[Expression]) -> Box<[u16]> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    /// IN: a list of texts, which it is in JMS, is searched; any other is tried one by one.
    fn membership(&mut self, value: &Expression, list: &[Expression]) -> Condition {
        let id = is_message_id(value);
        let place = self.value(value);
        let text = |element: &Expression| match element {
            Expression::Literal(Literal::Text(text)) => Some(bytes_of(text, id)),
            _ => None,
        };
        if let Some(mut texts) = list.iter().map(text).collect::<Option<Vec<_>>>() {
            texts.sort_by(|a, b| text_order(a, b));
            return Condition::OneOf(place, texts.into());
        }
        let among = list.iter().map(|element| self.value_like(element, value));
        Condition::Among(place, among.collect())
    }

    /// A value that is compared with another one.
    fn value_like(&mut self, tree: &Expression, other: &Expression) -> u16 {
        match tree {
            Expression::Literal(Literal::Text(text)) => {
                self.push(Value::Text(bytes_of(text, is_message_id(other))))
            }
            tree => self.value(tree),
        }
    }

    fn value(&mut self, tree: &Expression) -> u16 {
        let value = match tree {
            Expression::Literal(Literal::Bool(value)) => Value::Bool(*value),
            Expression::Literal(Literal::Int(value)) => Value::Int(*value),
            Expression::Literal(Literal::Float(value)) => Value::Float(*value),
            Expression::Literal(Literal::Text(text)) => Value::Text(text.as_bytes().into()),
            Expression::Name(source) => self.needs.value(source),
            Expression::Calculate(operator, parts) => {
                let [left, right] = &**parts;
                Value::Calculate(*operator, self.value(left), self.value(right))
            }
            Expression::Negate(inner) => Value::Negate(self.value(inner)),
            condition => Value::Truth(self.condition(condition)),
        };
        self.push(value)
    }

    fn push(&mut self, value: Value) -> u16 {
        self.values.push(value);
        place(self.values.len())
    }
}

/// The place of what was pushed last. Everything in a selector takes at least one of its bytes, of
/// which there are fewer than places.
fn place(len: usize) -> u16 {
    u16::try_from(len - 1).expect("a selector has fewer parts than bytes")
}

fn is_message_id(tree: &Expression) -> bool {
    matches!(tree, Expression::Name(source) if source.is_jms_message_id())
}

fn bytes_of(text: &str, id: bool) -> Box<[u8]> {
    match id::as_message_id(text) {
        Some(as_id) if id => as_id.into_bytes().into(),
        _ => text.as_bytes().into(),
    }
}
