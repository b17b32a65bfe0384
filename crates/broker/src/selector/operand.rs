//! Values while a selector is evaluated.

use super::expression::{Comparison, Operator};
use super::truth::Truth;
use mochila_wire::{RawValue, Value};
use std::cmp::Ordering;

/// A value of the selector language, borrowed from the message or from the selector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand<'a> {
    /// Null, not there, or of a type that the language does not have.
    Unknown,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The bytes of a string, symbol or binary; nobody has checked their encoding.
    Text(&'a [u8]),
}

impl<'a> Operand<'a> {
    /// A value from a message.
    // Inlined, because a value that comes back through memory costs more than to look at it.
    #[inline(always)]
    pub(super) fn of_raw(raw: RawValue<'a>) -> Operand<'a> {
        if let Some(text) = raw.text() {
            return Operand::Text(text);
        }
        if let Some(number) = raw.as_i64() {
            return Operand::Int(number);
        }
        Operand::of_unusual(raw)
    }

    #[inline(never)]
    fn of_unusual(raw: RawValue<'a>) -> Operand<'a> {
        if let Some(number) = raw.as_f64() {
            return Operand::Float(number);
        }
        if let Some(value) = raw.as_bool() {
            return Operand::Bool(value);
        }
        // What a signed long cannot hold is compared as a float, as Qpid does it.
        if let Some(number) = raw.as_u64() {
            return Operand::Float(number as f64);
        }
        raw.as_binary().map_or(Operand::Unknown, Operand::Text)
    }

    /// A value that was decoded already.
    pub(super) fn of_value(value: &'a Value) -> Operand<'a> {
        match value {
            Value::String(text) => Operand::Text(text.as_bytes()),
            Value::Symbol(symbol) => Operand::Text(symbol.as_str().as_bytes()),
            Value::Binary(bytes) => Operand::Text(bytes),
            Value::Bool(value) => Operand::Bool(*value),
            Value::Float(value) => Operand::Float((*value).into()),
            Value::Double(value) => Operand::Float(*value),
            value => match value.as_i64() {
                Some(number) => Operand::Int(number),
                None => {
                    value.as_u64().map_or(Operand::Unknown, |number| Operand::Float(number as f64))
                }
            },
        }
    }

    #[inline]
    pub(super) fn is_unknown(self) -> bool {
        matches!(self, Operand::Unknown)
    }

    /// As a condition.
    pub(super) fn truth(self) -> Truth {
        match self {
            Operand::Bool(value) => value.into(),
            _ => Truth::Unknown,
        }
    }

    /// Compares values of the same kind; whatever is asked, values of different kinds are not what
    /// it says (JMS 3.8.1.2). Text is ordered by its bytes.
    #[inline(always)]
    pub(super) fn compare(self, comparison: Comparison, other: Operand<'_>) -> Truth {
        let order = match (self, other) {
            (Operand::Unknown, _) | (_, Operand::Unknown) => return Truth::Unknown,
            (Operand::Int(a), Operand::Int(b)) => a.cmp(&b),
            (Operand::Text(a), Operand::Text(b)) => match comparison {
                // Length first: most texts that differ do in that.
                Comparison::Equal => return (a == b).into(),
                Comparison::NotEqual => return (a != b).into(),
                _ => a.cmp(b),
            },
            (Operand::Bool(a), Operand::Bool(b)) => match comparison {
                Comparison::Equal | Comparison::NotEqual => a.cmp(&b),
                _ => return Truth::False,
            },
            _ => match (self.float(), other.float()) {
                (Some(a), Some(b)) => match a.partial_cmp(&b) {
                    Some(order) => order,
                    // Not a number is different from everything.
                    None => return (comparison == Comparison::NotEqual).into(),
                },
                _ => return Truth::False,
            },
        };
        comparison.holds(order).into()
    }

    /// Calculates as Java does: whole numbers wrap around and divide to whole numbers. What cannot
    /// be calculated is unknown, division by zero too.
    pub(super) fn calculate(self, operator: Operator, other: Operand<'_>) -> Operand<'static> {
        if let (Operand::Int(a), Operand::Int(b)) = (self, other) {
            return match operator {
                Operator::Add => Operand::Int(a.wrapping_add(b)),
                Operator::Subtract => Operand::Int(a.wrapping_sub(b)),
                Operator::Multiply => Operand::Int(a.wrapping_mul(b)),
                Operator::Divide if b == 0 => Operand::Unknown,
                Operator::Divide => Operand::Int(a.wrapping_div(b)),
            };
        }
        let (Some(a), Some(b)) = (self.float(), other.float()) else { return Operand::Unknown };
        match operator {
            Operator::Add => Operand::Float(a + b),
            Operator::Subtract => Operand::Float(a - b),
            Operator::Multiply => Operand::Float(a * b),
            Operator::Divide if b == 0.0 => Operand::Unknown,
            Operator::Divide => Operand::Float(a / b),
        }
    }

    /// The same number with the other sign.
    pub(super) fn negate(self) -> Operand<'static> {
        match self {
            Operand::Int(value) => Operand::Int(value.wrapping_neg()),
            Operand::Float(value) => Operand::Float(-value),
            _ => Operand::Unknown,
        }
    }

    /// The value of a number.
    fn float(self) -> Option<f64> {
        match self {
            Operand::Int(value) => Some(value as f64),
            Operand::Float(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Truth> for Operand<'_> {
    fn from(truth: Truth) -> Self {
        match truth {
            Truth::False => Operand::Bool(false),
            Truth::Unknown => Operand::Unknown,
            Truth::True => Operand::Bool(true),
        }
    }
}

/// The order in which a list of texts is searched.
pub(super) fn text_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::Encode;
    use mochila_wire::types::Map;

    const RED: Operand<'static> = Operand::Text(b"red");

    #[test]
    fn values_of_every_type_become_what_the_language_has() {
        let cases: [(Value, Operand<'_>); 18] = [
            (Value::Null, Operand::Unknown),
            (true.into(), Operand::Bool(true)),
            (7u8.into(), Operand::Int(7)),
            (7u16.into(), Operand::Int(7)),
            (300u32.into(), Operand::Int(300)),
            (300u64.into(), Operand::Int(300)),
            (u64::MAX.into(), Operand::Float(u64::MAX as f64)),
            ((-7i8).into(), Operand::Int(-7)),
            ((-7i16).into(), Operand::Int(-7)),
            ((-7i32).into(), Operand::Int(-7)),
            (i64::MIN.into(), Operand::Int(i64::MIN)),
            (0.5f32.into(), Operand::Float(0.5)),
            (0.25f64.into(), Operand::Float(0.25)),
            (Value::Timestamp(-1), Operand::Int(-1)),
            ("red".into(), RED),
            (Value::Symbol("red".into()), RED),
            (Value::Binary(b"red".to_vec()), RED),
            (Map::new().with("a", 1u32).into(), Operand::Unknown),
        ];
        for (value, operand) in cases {
            let bytes = value.to_bytes();
            let raw = RawValue::from_bytes(&bytes).unwrap();
            assert_eq!(Operand::of_raw(raw), operand, "{value:?}");
            assert_eq!(Operand::of_value(&value), operand, "{value:?}");
        }
    }

    #[test]
    fn numbers_of_both_kinds_are_compared_by_value() {
        let equal = |a: Operand<'_>, b| a.compare(Comparison::Equal, b);
        assert_eq!(equal(Operand::Int(1), Operand::Float(1.0)), Truth::True);
        assert_eq!(Operand::Float(0.5).compare(Comparison::Less, Operand::Int(1)), Truth::True);
        let nan = Operand::Float(f64::NAN);
        assert_eq!(equal(nan, nan), Truth::False);
        assert_eq!(nan.compare(Comparison::NotEqual, nan), Truth::True);
    }

    #[test]
    fn values_of_different_kinds_are_never_what_is_asked() {
        let one = Operand::Int(1);
        for comparison in [Comparison::Equal, Comparison::NotEqual, Comparison::Less] {
            assert_eq!(RED.compare(comparison, one), Truth::False);
            assert_eq!(Operand::Bool(true).compare(comparison, one), Truth::False);
            assert_eq!(RED.compare(comparison, Operand::Unknown), Truth::Unknown);
        }
        assert_eq!(
            Operand::Bool(false).compare(Comparison::Less, Operand::Bool(true)),
            Truth::False
        );
    }

    #[test]
    fn text_is_ordered_by_its_bytes() {
        let less = |a: &[u8], b: &[u8]| {
            Operand::Text(a).compare(Comparison::Less, Operand::Text(b)) == Truth::True
        };
        assert!(less(b"-1", b"12") && less(b"12", b"@latest") && less(b"a", b"ab"));
        assert!(!less(b"red", b"red"));
    }

    #[test]
    fn calculation_is_that_of_java_except_for_division_by_zero() {
        let (seven, two) = (Operand::Int(7), Operand::Int(2));
        assert_eq!(seven.calculate(Operator::Divide, two), Operand::Int(3));
        assert_eq!(seven.calculate(Operator::Divide, Operand::Float(2.0)), Operand::Float(3.5));
        assert_eq!(seven.calculate(Operator::Divide, Operand::Int(0)), Operand::Unknown);
        assert_eq!(seven.calculate(Operator::Divide, Operand::Float(0.0)), Operand::Unknown);
        let (least, greatest) = (Operand::Int(i64::MIN), Operand::Int(i64::MAX));
        assert_eq!(greatest.calculate(Operator::Add, Operand::Int(1)), least);
        assert_eq!(least.calculate(Operator::Divide, Operand::Int(-1)), least);
        assert_eq!(least.negate(), least);
        assert_eq!(seven.calculate(Operator::Add, RED), Operand::Unknown);
        assert_eq!(RED.negate(), Operand::Unknown);
    }
}
