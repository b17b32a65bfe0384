//! Attributes: what can be known of an entity, and how it is read.

use crate::scope::Scope;
use mochila_wire::Value;

/// One attribute as the outside sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The AMQP type of its values.
    pub(crate) of: &'static str,
    /// What it means: a sentence, or more.
    pub(crate) doc: &'static str,
    pub(crate) access: Access,
}

/// Who says what an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only the node.
    Read,
    /// Whoever creates the entity.
    Create,
    /// Whoever creates or updates the entity.
    Update,
}

/// One attribute of the entities `E`.
#[derive(Debug)]
pub(crate) struct Attribute<E: 'static> {
    pub(crate) column: Column,
    pub(crate) read: fn(&E, &Scope<'_>) -> Value,
}

/// An entity that can be read, attribute by attribute.
pub(crate) trait Row {
    /// The attribute at this place in the columns of the entity's type.
    fn read(&self, column: usize, scope: &Scope<'_>) -> Value;
}

/// An entity with the table that says how to read it.
pub(crate) struct Reading<E: 'static> {
    pub(crate) entity: E,
    pub(crate) table: &'static [Attribute<E>],
}

impl<E> Attribute<E> {
    /// An attribute that only the node writes.
    pub(crate) const fn new(
        name: &'static str,
        of: &'static str,
        doc: &'static str,
        read: fn(&E, &Scope<'_>) -> Value,
    ) -> Attribute<E> {
        Attribute { column: Column { name, of, doc, access: Access::Read }, read }
    }
}

impl<E> Row for Reading<E> {
    fn read(&self, column: usize, scope: &Scope<'_>) -> Value {
        (self.table[column].read)(&self.entity, scope)
    }
}

/// The columns of a table.
pub(crate) fn columns<E>(table: &'static [Attribute<E>]) -> Vec<Column> {
    table.iter().map(|attribute| attribute.column).collect()
}

/// A moment, from milliseconds since the Unix epoch.
pub(crate) fn timestamp(ms: i64) -> Value {
    Value::Timestamp(ms)
}

/// A number of things.
pub(crate) fn count(number: usize) -> Value {
    Value::Ulong(number as u64)
}
