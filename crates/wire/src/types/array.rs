use super::{Symbol, Type, Value};

/// A sequence of values of one type (part 1, 1.6.24).
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The descriptors that all elements share, outermost first; usually none.
    pub descriptors: Vec<Value>,
    /// The type of the elements, kept so that an empty array has one too.
    pub of: Type,
    /// The elements, without their common descriptors; every one is of type `of`.
    pub elements: Vec<Value>,
}

impl Array {
    /// An array of undescribed elements; `None` if they are not all of type `of`.
    pub fn new(of: Type, elements: Vec<Value>) -> Option<Array> {
        let uniform = of != Type::Described && elements.iter().all(|e| e.type_of() == of);
        uniform.then(|| Array { descriptors: Vec::new(), of, elements })
    }

    /// An array of symbols, as capabilities and outcomes are.
    pub fn of_symbols(symbols: impl IntoIterator<Item = Symbol>) -> Array {
        let elements = symbols.into_iter().map(Value::Symbol).collect();
        Array { descriptors: Vec::new(), of: Type::Symbol, elements }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_different_types_make_no_array() {
        assert!(Array::new(Type::Uint, vec![Value::Uint(1), Value::Uint(2)]).is_some());
        assert!(Array::new(Type::Uint, vec![Value::Uint(1), Value::Int(2)]).is_none());
        assert!(Array::new(Type::Described, Vec::new()).is_none());
    }
}
