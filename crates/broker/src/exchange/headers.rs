//! Queues by what the application properties of a message have to be.

use mochila_wire::{Map, RawMap, RawValue, Type, Value};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// What a binding of a headers exchange asks of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conditions {
    mode: MatchMode,
    /// By key, each key once.
    wanted: Box<[(Box<[u8]>, Wanted)]>,
}

/// How many of the conditions have to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchMode {
    All,
    Any,
}

/// What a property has to be. Numbers of any integer type, and booleans as 0 and 1, are the same
/// if they are equal; so are floats and doubles; so are strings and symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    Present,
    Text(Box<[u8]>),
    Int(i128),
    /// The bits of a double that is neither -0 nor NaN.
    Float(u64),
    /// Something that no property is equal to, such as a list.
    Impossible,
}

impl Conditions {
    /// Reads them from the arguments of a binding. Those that begin with `qpid.` mean something
    /// else.
    pub(crate) fn new(arguments: &Map) -> Result<Conditions, String> {
        let mode = match arguments.get(MODE).and_then(Value::as_str) {
            Some("all") => MatchMode::All,
            Some("any") => MatchMode::Any,
            Some(other) => return Err(format!("{MODE} takes 'all' or 'any', not '{other}'")),
            None => return Err(format!("it needs {MODE}, which is 'all' or 'any'")),
        };
        let mut wanted = Vec::new();
        for (key, value) in arguments.iter() {
            let key = key.as_str().ok_or("the name of a property has to be text")?;
            if key != MODE && !key.starts_with(RESERVED) {
                wanted.push((Box::from(key.as_bytes()), Wanted::of_value(value)));
            }
        }
        if wanted.len() > MOST_CONDITIONS {
            return Err(format!("it may name {MOST_CONDITIONS} properties, not {}", wanted.len()));
        }
        wanted.sort_by(|(a, _): &(Box<[u8]>, Wanted), (b, _)| a.cmp(b));
        wanted.dedup_by(|(a, _), (b, _)| a == b);
        Ok(Conditions { mode, wanted: wanted.into() })
    }

    /// What a binding asks whose maker has not said anything: nothing.
    pub(crate) fn none() -> Conditions {
        Conditions { mode: MatchMode::All, wanted: Box::default() }
    }

    /// Whether a message with these application properties meets them.
    pub(crate) fn are_met_by(&self, properties: Option<RawMap<'_>>) -> bool {
        self.are_met(&Properties::read(properties))
    }

    fn are_met(&self, properties: &Properties<'_>) -> bool {
        let mut wanted = self.wanted.iter();
        match self.mode {
            MatchMode::All => wanted.all(|(key, wanted)| properties.meet(key, wanted)),
            MatchMode::Any => wanted.any(|(key, wanted)| properties.meet(key, wanted)),
        }
    }

    /// The conditions of which one is met by every message that meets them all: the first that
    /// asks for a value, since fewer messages meet it.
    fn indexed(&self) -> &[(Box<[u8]>, Wanted)] {
        match self.mode {
            MatchMode::Any => &self.wanted,
            MatchMode::All => {
                let by_value = self.wanted.iter().position(|(_, it)| *it != Wanted::Present);
                let at = by_value.unwrap_or(0);
                self.wanted.get(at..self.wanted.len().min(at + 1)).unwrap_or_default()
            }
        }
    }
}

impl Wanted {
    fn of_value(value: &Value) -> Wanted {
        match value {
            Value::Null => Wanted::Present,
            Value::String(text) => Wanted::Text(text.as_bytes().into()),
            Value::Symbol(symbol) => Wanted::Text(symbol.as_str().as_bytes().into()),
            Value::Bool(value) => Wanted::Int((*value).into()),
            Value::Float(value) => Wanted::of_float((*value).into()),
            Value::Double(value) => Wanted::of_float(*value),
            value => {
                let signed = value.as_i64().map(i128::from);
                let number = signed.or_else(|| value.as_u64().map(i128::from));
                number.map_or(Wanted::Impossible, Wanted::Int)
            }
        }
    }

    fn of_raw(value: RawValue<'_>) -> Wanted {
        if let Some(text) = value.text() {
            return Wanted::Text(text.into());
        }
        match value.type_of() {
            Type::Float | Type::Double => {
                value.as_f64().map_or(Wanted::Impossible, Wanted::of_float)
            }
            Type::Bool => value.as_bool().map_or(Wanted::Impossible, |it| Wanted::Int(it.into())),
            _ => {
                let signed = value.as_i64().map(i128::from);
                let number = signed.or_else(|| value.as_u64().map(i128::from));
                number.map_or(Wanted::Impossible, Wanted::Int)
            }
        }
    }

    fn of_float(value: f64) -> Wanted {
        // -0 + 0 is 0.
        if value.is_nan() { Wanted::Impossible } else { Wanted::Float((value + 0.0).to_bits()) }
    }
}

/// The application properties of a message, read once for all bindings.
#[derive(Debug, Default)]
struct Properties<'a> {
    /// By key; of a key that is there twice, the first.
    all: Vec<(&'a [u8], Wanted)>,
}

impl<'a> Properties<'a> {
    fn read(map: Option<RawMap<'a>>) -> Properties<'a> {
        let pairs = map.into_iter().flatten();
        let mut all: Vec<_> =
            pairs.filter_map(|(key, value)| Some((key.text()?, Wanted::of_raw(value)))).collect();
        all.sort_by_key(|(key, _)| *key);
        all.dedup_by_key(|(key, _)| *key);
        Properties { all }
    }

    fn meet(&self, key: &[u8], wanted: &Wanted) -> bool {
        let Ok(at) = self.all.binary_search_by_key(&key, |(key, _)| key) else { return false };
        match wanted {
            Wanted::Present => true,
            Wanted::Impossible => false,
            wanted => *wanted == self.all[at].1,
        }
    }
}

/// The table of a headers exchange: bindings by what they ask for, so that a message is compared
/// with those that it has something in common with.
#[derive(Clone, Debug)]
pub(crate) struct Headers<T> {
    bindings: Vec<Option<Bound<T>>>,
    free: Vec<u32>,
    /// By key, and by value.
    index: HashMap<Box<[u8]>, Candidates, foldhash::fast::RandomState>,
    /// Bindings that ask for nothing.
    unconditional: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Bound<T> {
    key: Box<[u8]>,
    queue: T,
    conditions: Conditions,
}

/// The bindings that ask for one property.
#[derive(Clone, Debug, Default)]
struct Candidates {
    present: Vec<u32>,
    values: HashMap<Wanted, Vec<u32>, foldhash::fast::RandomState>,
}

impl<T> Default for Headers<T> {
    fn default() -> Headers<T> {
        Headers {
            bindings: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            unconditional: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Headers<T> {
    /// Binds a queue; it is not bound with that key yet. The key is only the binding's name.
    pub(crate) fn bind(&mut self, key: &[u8], queue: T, conditions: Conditions) {
        let place = self.free.pop().unwrap_or(self.bindings.len() as u32);
        for (key, wanted) in conditions.indexed() {
            let candidates = self.index.entry(key.clone()).or_default();
            candidates.of_mut(wanted).push(place);
        }
        if conditions.mode == MatchMode::All && conditions.wanted.is_empty() {
            self.unconditional.push(place);
        }
        let bound = Some(Bound { key: key.into(), queue, conditions });
        match self.bindings.get_mut(place as usize) {
            Some(free) => *free = bound,
            None => self.bindings.push(bound),
        }
    }

    pub(crate) fn unbind(&mut self, key: &[u8], queue: &T) {
        let is_it = |bound: &Option<Bound<T>>| {
            bound.as_ref().is_some_and(|bound| *bound.key == *key && bound.queue == *queue)
        };
        let Some(at) = self.bindings.iter().position(is_it) else { return };
        let Some(bound) = self.bindings[at].take() else { return };
        let place = at as u32;
        for (key, wanted) in bound.conditions.indexed() {
            let Some(candidates) = self.index.get_mut(key) else { continue };
            candidates.of_mut(wanted).retain(|other| *other != place);
            candidates.values.retain(|_, places| !places.is_empty());
            if candidates.present.is_empty() && candidates.values.is_empty() {
                self.index.remove(key);
            }
        }
        self.unconditional.retain(|other| *other != place);
        self.free.push(place);
    }

    /// Adds the queues of all bindings whose conditions a message meets to `found`, each once.
    pub(crate) fn matching(&self, properties: Option<RawMap<'_>>, found: &mut Vec<T>) {
        let properties = Properties::read(properties);
        let mut places: Vec<u32> = self.unconditional.clone();
        for (key, value) in &properties.all {
            let Some(candidates) = self.index.get(*key) else { continue };
            places.extend(&candidates.present);
            places.extend(candidates.values.get(value).into_iter().flatten());
        }
        // In the order in which they were bound, more or less; and each once.
        places.sort_unstable();
        places.dedup();
        let mut seen = HashSet::with_hasher(foldhash::fast::RandomState::default());
        for place in places {
            let Some(bound) = &self.bindings[place as usize] else { continue };
            if bound.conditions.are_met(&properties) && seen.insert(&bound.queue) {
                found.push(bound.queue.clone());
            }
        }
    }
}

impl Candidates {
    fn of_mut(&mut self, wanted: &Wanted) -> &mut Vec<u32> {
        match wanted {
            Wanted::Present => &mut self.present,
            wanted => self.values.entry(wanted.clone()).or_default(),
        }
    }
}

/// The argument that says how many conditions have to be met.
pub(crate) const MODE: &str = "x-match";
/// Arguments that begin like this are no conditions.
const RESERVED: &str = "qpid.";
/// How many properties one binding may ask for.
const MOST_CONDITIONS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::{Encode, Limits, Message, section};
    use proptest::prelude::*;

    fn found(headers: &Headers<u32>, properties: &[(&str, Value)]) -> Vec<u32> {
        let mut message = Message::of_data("body");
        for (key, value) in properties {
            message.set_application_property(key, value.clone());
        }
        let bytes = message.to_bytes();
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        let mut found = Vec::new();
        headers.matching(sections.application_properties(&bytes), &mut found);
        found
    }

    fn arguments(mode: &str, pairs: &[(&str, Value)]) -> Map {
        let pairs = pairs.iter().map(|(key, value)| (Value::from(*key), value.clone()));
        pairs.chain([(Value::from(MODE), Value::from(mode))]).collect()
    }

    fn is_match(mode: &str, wanted: &[(&str, Value)], properties: &[(&str, Value)]) -> bool {
        let mut headers = Headers::default();
        headers.bind(b"k", 1, Conditions::new(&arguments(mode, wanted)).unwrap());
        !found(&headers, properties).is_empty()
    }

    #[test]
    fn all_wants_every_property_and_any_wants_one() {
        let wanted = [("a", Value::from(1)), ("b", Value::from("x"))];
        let both = [("a", Value::from(1)), ("b", Value::from("x")), ("c", Value::from(1))];
        assert!(is_match("all", &wanted, &both) && is_match("any", &wanted, &both));
        assert!(!is_match("all", &wanted, &both[..1]) && is_match("any", &wanted, &both[..1]));
        assert!(!is_match("any", &wanted, &both[2..]));
    }

    #[test]
    fn all_without_conditions_matches_everything_and_any_nothing() {
        assert!(is_match("all", &[], &[]) && is_match("all", &[], &[("a", 1.into())]));
        assert!(!is_match("any", &[], &[]) && !is_match("any", &[], &[("a", 1.into())]));
    }

    #[test]
    fn values_are_compared_by_what_they_are_and_not_by_how_they_are_encoded() {
        let is = |wanted: Value, value: Value| is_match("all", &[("a", wanted)], &[("a", value)]);
        assert!(is(1u8.into(), 1i64.into()) && is(Value::Bool(true), 1u64.into()));
        assert!(is(u64::MAX.into(), u64::MAX.into()) && !is((-1).into(), u64::MAX.into()));
        assert!(is(0.5f32.into(), 0.5f64.into()) && is((-0.0f64).into(), 0.0f64.into()));
        assert!(!is(f64::NAN.into(), f64::NAN.into()));
        assert!(is("x".into(), Value::Symbol("x".into())) && !is("x".into(), "X".into()));
        assert!(!is("1".into(), 1.into()) && !is(1.into(), "1".into()));
        assert!(is(Value::Null, "anything".into()));
        let list = Value::List(vec![1.into()]);
        assert!(!is(list.clone(), list) && !is(Value::Uuid([1; 16]), Value::Uuid([1; 16])));
    }

    #[test]
    fn what_begins_with_qpid_is_no_condition() {
        assert!(is_match("all", &[("qpid.exclusive-binding", 1.into())], &[]));
    }

    #[test]
    fn a_binding_has_to_say_how_much_it_wants() {
        let error = Conditions::new(&Map::new()).unwrap_err();
        assert_eq!(error, "it needs x-match, which is 'all' or 'any'");
        let error = Conditions::new(&arguments("some", &[])).unwrap_err();
        assert_eq!(error, "x-match takes 'all' or 'any', not 'some'");
    }

    #[test]
    fn nothing_is_left_of_bindings_that_are_gone() {
        let mut headers = Headers::default();
        let conditions = |mode| Conditions::new(&arguments(mode, &[("a", 1.into())])).unwrap();
        headers.bind(b"k", 1, conditions("all"));
        headers.bind(b"k", 2, conditions("any"));
        headers.bind(b"k", 3, Conditions::none());
        assert_eq!(found(&headers, &[("a", 1.into())]), [1, 2, 3]);
        (1..4).for_each(|queue| headers.unbind(b"k", &queue));
        assert!(found(&headers, &[("a", 1.into())]).is_empty());
        assert!(headers.index.is_empty() && headers.unconditional.is_empty());
        headers.bind(b"k", 4, conditions("all"));
        assert_eq!((headers.bindings.len(), found(&headers, &[("a", 1.into())])), (3, vec![4]));
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            (0..3i32).prop_map(Value::Int),
            (0..3u8).prop_map(Value::Ubyte),
            any::<bool>().prop_map(Value::Bool),
            (0..3u8).prop_map(|number| Value::Double(f64::from(number) / 2.0)),
            "[ab]".prop_map(Value::String),
        ]
    }

    fn pairs() -> impl Strategy<Value = Vec<(String, Value)>> {
        proptest::collection::btree_map("[a-d]", value(), 0..4)
            .prop_map(|map| map.into_iter().collect())
    }

    /// Whether one value is what a binding wants, by the words of the documentation.
    fn equals(wanted: &Value, value: &Value) -> bool {
        let number = |value: &Value| value.as_bool().map(i64::from).or_else(|| value.as_i64());
        let float = |value: &Value| match value {
            Value::Double(value) => Some(*value),
            _ => None,
        };
        wanted == &Value::Null
            || (number(wanted).is_some() && number(wanted) == number(value))
            || (float(wanted).is_some() && float(wanted) == float(value))
            || (wanted.as_str().is_some() && wanted.as_str() == value.as_str())
    }

    proptest! {
        #[test]
        fn the_index_finds_what_each_binding_means(
            bindings in proptest::collection::vec((any::<bool>(), pairs()), 1..20),
            gone in 0..20usize,
            messages in proptest::collection::vec(pairs(), 1..10),
        ) {
            let mut headers = Headers::default();
            for (index, (all, wanted)) in bindings.iter().enumerate() {
                let wanted: Vec<_> =
                    wanted.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
                let arguments = arguments(if *all { "all" } else { "any" }, &wanted);
                let key = index.to_string();
                headers.bind(key.as_bytes(), index as u32 % 7, Conditions::new(&arguments).unwrap());
            }
            headers.unbind(gone.to_string().as_bytes(), &(gone as u32 % 7));
            for message in &messages {
                let mut expected: Vec<u32> = Vec::new();
                for (index, (all, wanted)) in bindings.iter().enumerate() {
                    let mut met = wanted.iter().map(|(key, wanted)| {
                        message.iter().any(|(name, value)| name == key && equals(wanted, value))
                    });
                    let is_met = if *all { met.all(|met| met) } else { met.any(|met| met) };
                    if is_met && index != gone {
                        expected.push(index as u32 % 7);
                    }
                }
                expected.sort_unstable();
                expected.dedup();
                let properties: Vec<_> =
                    message.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
                let mut found = found(&headers, &properties);
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
