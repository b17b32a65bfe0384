//! Who has made the queues of a node.

use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The users who have made queues, numbered, so that a queue has to remember no more than a number.
///
/// There are few, as users are known by name or are all `anonymous`; who comes after many others is
/// not remembered.
#[derive(Default)]
pub(crate) struct Creators(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Creators {
    /// The number of a user, from 1 on; 0 if there are too many.
    pub(crate) fn number(&self, user: &str) -> u32 {
        let mut known = lock(&self.0);
        if let Some(number) = known.numbers.get(user) {
            return *number;
        }
        if known.names.len() >= MOST_USERS {
            return 0;
        }
        let name: Arc<str> = user.into();
        known.names.push(Arc::clone(&name));
        let number = known.names.len() as u32;
        known.numbers.insert(name, number);
        number
    }

    /// The user with a number.
    pub(crate) fn name(&self, number: u32) -> Option<Arc<str>> {
        lock(&self.0).names.get((number as usize).checked_sub(1)?).cloned()
    }
}

/// So many users are remembered.
const MOST_USERS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_number_and_nobody_has_none() {
        let creators = Creators::default();
        let ada = creators.number("ada");
        assert_ne!(ada, creators.number("bob"));
        assert_eq!((creators.number("ada"), creators.name(ada).as_deref()), (ada, Some("ada")));
        assert_eq!((creators.name(0), creators.name(3)), (None, None));
    }
}
