use crate::descriptor;
use crate::types::{Described, Map, Value};

/// When a dynamic node is deleted (part 3, 3.5.10 to 3.5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimePolicy {
    /// When the link that made it is closed.
    DeleteOnClose,
    /// When it has no links any more.
    DeleteOnNoLinks,
    /// When it has no messages any more.
    DeleteOnNoMessages,
    /// When it has neither links nor messages any more.
    DeleteOnNoLinksOrMessages,
}

impl LifetimePolicy {
    /// The key among the properties of a dynamic node (part 3, 3.5.9).
    pub const KEY: &'static str = "lifetime-policy";

    /// The policy among the properties of a dynamic node, if there is one that we know.
    pub fn among(properties: &Map) -> Option<LifetimePolicy> {
        let Value::Described(described) = properties.get(LifetimePolicy::KEY)? else {
            return None;
        };
        let code = match &described.descriptor {
            Value::Ulong(code) => *code,
            Value::Symbol(name) => descriptor::code_of(name.as_str())?,
            _ => return None,
        };
        ALL.into_iter().find(|policy| policy.descriptor() == code)
    }

    /// The policy as a value among the properties of a dynamic node.
    pub fn to_value(self) -> Value {
        let descriptor = Value::Ulong(self.descriptor());
        Described { descriptor, value: Value::List(Vec::new()) }.into()
    }

    /// The properties of a dynamic node that has this policy.
    pub fn to_properties(self) -> Map {
        Map::new().with(LifetimePolicy::KEY, self.to_value())
    }

    const fn descriptor(self) -> u64 {
        match self {
            LifetimePolicy::DeleteOnClose => descriptor::DELETE_ON_CLOSE,
            LifetimePolicy::DeleteOnNoLinks => descriptor::DELETE_ON_NO_LINKS,
            LifetimePolicy::DeleteOnNoMessages => descriptor::DELETE_ON_NO_MESSAGES,
            LifetimePolicy::DeleteOnNoLinksOrMessages => descriptor::DELETE_ON_NO_LINKS_OR_MESSAGES,
        }
    }
}

const ALL: [LifetimePolicy; 4] = [
    LifetimePolicy::DeleteOnClose,
    LifetimePolicy::DeleteOnNoLinks,
    LifetimePolicy::DeleteOnNoMessages,
    LifetimePolicy::DeleteOnNoLinksOrMessages,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Symbol;

    #[test]
    fn a_policy_is_found_among_the_properties_by_number_or_by_name() {
        for policy in ALL {
            assert_eq!(LifetimePolicy::among(&policy.to_properties()), Some(policy));
        }
        let named = Described {
            descriptor: Symbol::from_static("amqp:delete-on-close:list").into(),
            value: Value::List(Vec::new()),
        };
        let properties = Map::new().with(LifetimePolicy::KEY, Value::from(named));
        assert_eq!(LifetimePolicy::among(&properties), Some(LifetimePolicy::DeleteOnClose));
        assert_eq!(LifetimePolicy::among(&Map::new()), None);
    }
}
