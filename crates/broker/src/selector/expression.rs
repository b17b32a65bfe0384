//! A selector as a tree.

use super::name::Source;
use super::pattern::Pattern;
use std::cmp::Ordering;

/// What a selector, or a part of it, says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Literal(Literal),
    Name(Source),
    /// AND, of two or more.
    All(Vec<Expression>),
    /// OR, of two or more.
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Compare(Comparison, Box<[Expression; 2]>),
    /// A value, and the least and the greatest it may be.
    Between(Box<[Expression; 3]>),
    In(Box<Expression>, Vec<Expression>),
    Like(Box<Expression>, Pattern),
    IsNull(Box<Expression>),
    Calculate(Operator, Box<[Expression; 2]>),
    Negate(Box<Expression>),
}

/// A value that is written in the selector.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// What an expression can be, as far as that is known without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Condition,
    Number,
    Text,
    /// A name: whatever the message says.
    Open,
}

impl Expression {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Expression::Name(_) => Kind::Open,
            Expression::Literal(Literal::Text(_)) => Kind::Text,
            Expression::Literal(Literal::Int(_) | Literal::Float(_))
            | Expression::Calculate(..)
            | Expression::Negate(_) => Kind::Number,
            _ => Kind::Condition,
        }
    }

    /// Calls `visit` with every name.
    pub(super) fn names<'a>(&'a self, visit: &mut impl FnMut(&'a Source)) {
        match self {
            Expression::Literal(_) => {}
            Expression::Name(source) => visit(source),
            Expression::All(parts) | Expression::Any(parts) => {
                parts.iter().for_each(|part| part.names(visit));
            }
            Expression::Not(inner)
            | Expression::Like(inner, _)
            | Expression::IsNull(inner)
            | Expression::Negate(inner) => inner.names(visit),
            Expression::Compare(_, parts) | Expression::Calculate(_, parts) => {
                parts.iter().for_each(|part| part.names(visit));
            }
            Expression::Between(parts) => parts.iter().for_each(|part| part.names(visit)),
            Expression::In(value, list) => {
                value.names(visit);
                list.iter().for_each(|part| part.names(visit));
            }
        }
    }
}

impl Comparison {
    /// Whether it holds between two values that stand in this order.
    #[inline]
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}
