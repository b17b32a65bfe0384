use std::sync::{Arc, Mutex, PoisonError};

use mochila_wire::{Map, Symbol, Value};

/// Message groups that have gone from a receiver to others, as a broker tells it that has been asked
/// with the capability [`LostGroups::CAPABILITY`].
///
/// A group goes to another receiver only when the one that had it has settled all that it has got of
/// it. Whoever keeps something for each group can forget it now: what comes of the group later comes
/// after others have had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostGroups {
    names: Option<Vec<String>>,
}

impl LostGroups {
    /// What a receiver desires that wants to hear of groups that it has lost.
    pub const CAPABILITY: Symbol = Symbol::from_static("lost-groups");

    /// Groups that are not named.
    pub const UNNAMED: LostGroups = LostGroups { names: None };

    /// What the properties of a flow tell of lost groups.
    pub fn among(properties: &Map) -> Option<LostGroups> {
        match properties.get(Self::CAPABILITY.as_str())? {
            Value::Null => Some(Self::UNNAMED),
            Value::List(names) => {
                let name = |name: &Value| name.as_str().map(str::to_owned);
                Some(LostGroups { names: Some(names.iter().filter_map(name).collect()) })
            }
            _ => None,
        }
    }

    /// Their names; `None` if they are not named: it may be any of which the receiver holds no
    /// message. So it is when they are too many, and when a lost connection has been made again.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn add(&mut self, more: LostGroups) {
        let (Some(names), Some(more)) = (&mut self.names, more.names) else {
            *self = Self::UNNAMED;
            return;
        };
        for name in more {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > MOST_NAMES {
            *self = Self::UNNAMED;
        }
    }
}

/// Lost groups on their way to the application. As long as it has not taken them, and no message
/// follows, others join them, so that whoever tells of many takes no more memory than for one.
#[derive(Clone, Debug)]
pub(crate) struct Pending(Arc<Mutex<Option<LostGroups>>>);

impl Pending {
    pub(crate) fn new(lost: LostGroups) -> Self {
        Self(Arc::new(Mutex::new(Some(lost))))
    }

    /// Adds more; they are returned if it is too late.
    pub(crate) fn add(&self, more: LostGroups) -> Option<LostGroups> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(lost) => lost.add(more),
            None => return Some(more),
        }
        None
    }

    /// Takes them; what is lost later is told later.
    pub(crate) fn take(&self) -> LostGroups {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        lost.unwrap_or(LostGroups::UNNAMED)
    }
}

/// More groups than this are not named.
const MOST_NAMES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> LostGroups {
        LostGroups { names: Some(names.iter().map(|&name| name.to_owned()).collect()) }
    }

    #[test]
    fn a_flow_names_them_or_says_that_they_are_many() {
        let flow = |value: Value| LostGroups::among(&Map::new().with("lost-groups", value));
        assert_eq!(flow(Value::List(vec!["a".into(), "b".into()])), Some(named(&["a", "b"])));
        assert_eq!(flow(Value::Null), Some(LostGroups::UNNAMED));
        assert_eq!(flow(Value::Uint(5)), None);
        assert_eq!(LostGroups::among(&Map::new()), None);
    }

    #[test]
    fn what_nobody_has_taken_yet_grows_until_it_is_too_much_to_name() {
        let pending = Pending::new(named(&["a"]));
        assert_eq!(pending.add(named(&["b", "a"])), None);
        assert_eq!(pending.take(), named(&["a", "b"]));
        assert_eq!(pending.add(named(&["c"])), Some(named(&["c"])), "it is on its way");
        let pending = Pending::new(named(&[]));
        for n in 0..=MOST_NAMES {
            assert_eq!(pending.add(named(&[&n.to_string()])), None);
        }
        assert_eq!(pending.take(), LostGroups::UNNAMED);
    }
}
