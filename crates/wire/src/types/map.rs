use super::{Symbol, Value};

/// A map that keeps the order of its pairs, which on the wire has meaning (part 1, 1.6.23).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(pub Vec<(Value, Value)>);

impl Map {
    /// A map without pairs.
    pub const fn new() -> Map {
        Map(Vec::new())
    }

    /// The value of the first string or symbol key that reads `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
    }

    /// The same, to be changed in place.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
    }

    /// Whether a string or symbol key reads `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key: replaces it where the key stands, or adds the pair at the end.
    /// Returns the value that was replaced.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// Removes the first string or symbol key that reads `key`, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k.as_str() == Some(key))?;
        Some(self.0.remove(at).1)
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// Adds a pair with a symbol key, for building a map in one expression.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Map {
        self.insert(Symbol::from_static(key), value);
        self
    }
}

impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(pairs: I) -> Map {
        Map(pairs.into_iter().collect())
    }
}

impl IntoIterator for Map {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_whether_it_is_a_string_or_a_symbol() {
        let mut map = Map::new().with("a", 1u32);
        map.insert("b".to_owned(), 2u32);
        assert_eq!(map.get("a"), Some(&Value::Uint(1)));
        assert_eq!(map.get("b"), Some(&Value::Uint(2)));
        assert_eq!(map.get("c"), None);
    }

    #[test]
    fn setting_a_key_again_keeps_its_place() {
        let mut map = Map::new().with("a", 1u32).with("b", 2u32);
        assert_eq!(map.insert(Symbol::from_static("a"), true), Some(Value::Uint(1)));
        let order: Vec<_> = map.iter().map(|(k, _)| k.as_str().unwrap()).collect();
        assert_eq!(order, ["a", "b"]);
        assert_eq!(map.remove("a"), Some(Value::Bool(true)));
        assert_eq!(map.len(), 1);
    }
}
