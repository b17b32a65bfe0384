use crate::types::{Described, Map, Symbol, Value};

/// A kind of filter that a source may carry (part 3, 3.5.8), by its registered descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The symbolic descriptor.
    pub symbol: &'static str,
    /// The numeric descriptor.
    pub code: u64,
}

/// Messages whose headers and properties satisfy an expression.
pub const JMS_SELECTOR: Filter =
    Filter { symbol: "apache.org:selector-filter:string", code: 0x0000_468c_0000_0004 };

/// Messages that were not sent over the same connection.
pub const NO_LOCAL: Filter =
    Filter { symbol: "apache.org:no-local-filter:list", code: 0x0000_468c_0000_0003 };

/// Messages with this routing key, byte for byte: a binding to an exchange.
pub const DIRECT_BINDING: Filter =
    Filter { symbol: "apache.org:legacy-amqp-direct-binding:string", code: 0x0000_468c_0000_0000 };

/// Messages whose routing key is of this pattern of words: a binding to an exchange.
pub const TOPIC_BINDING: Filter =
    Filter { symbol: "apache.org:legacy-amqp-topic-binding:string", code: 0x0000_468c_0000_0001 };

/// Messages with these headers: a binding to an exchange.
pub const HEADERS_BINDING: Filter =
    Filter { symbol: "apache.org:legacy-amqp-headers-binding:map", code: 0x0000_468c_0000_0002 };

/// Messages whose properties are those given (AMQP Filter Expressions 1.0, 4.2.4).
pub const PROPERTIES_FILTER: Filter = Filter { symbol: "amqp:properties-filter", code: 0x173 };

/// Messages whose application properties include those given (AMQP Filter Expressions 1.0, 4.2.5).
pub const APPLICATION_PROPERTIES_FILTER: Filter =
    Filter { symbol: "amqp:application-properties-filter", code: 0x174 };

impl Filter {
    /// The argument of the first filter of this kind in a filter set, whatever its key.
    pub fn find(self, filters: &Map) -> Option<(&Value, &Value)> {
        filters.iter().find_map(|(key, filter)| match filter {
            Value::Described(described) if described.is(self.symbol, self.code) => {
                Some((key, &described.value))
            }
            _ => None,
        })
    }

    /// A filter of this kind, as it stands in a filter set.
    pub fn with(self, argument: impl Into<Value>) -> Value {
        let descriptor = Value::Symbol(Symbol::from_static(self.symbol));
        Described { descriptor, value: argument.into() }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_known_by_its_descriptor_not_by_its_key() {
        let filters = Map::new().with("anything", JMS_SELECTOR.with("a = 1"));
        let (key, argument) = JMS_SELECTOR.find(&filters).unwrap();
        assert_eq!((key.as_str(), argument.as_str()), (Some("anything"), Some("a = 1")));
        assert!(NO_LOCAL.find(&filters).is_none());
    }
}
