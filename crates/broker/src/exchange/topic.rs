//! Queues by patterns of words: a tree.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The table of a topic exchange.
///
/// Keys and patterns are words between dots, and there is always one, if only an empty one. In a
/// pattern `*` stands for one word and `#` for any number of them. Patterns with a common beginning
/// share it, so that the work for a message depends on its own words and on the patterns that agree
/// with them so far, and not on how many patterns there are.
///
/// ```text
///  stocks.*.ibm     root ── stocks ─┬─ * ── ibm
///  stocks.#                         └─ #
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Topic<T> {
    root: Branch<T>,
}

#[derive(Clone, Debug)]
struct Branch<T> {
    words: HashMap<Box<[u8]>, Branch<T>, foldhash::fast::RandomState>,
    /// What follows after any one word.
    one: Option<Box<Branch<T>>>,
    /// What follows after any number of words. Patterns are normalised, so there is no second such
    /// branch right below, and no `one`.
    many: Option<Box<Branch<T>>>,
    /// Those bound with the pattern that ends here.
    queues: Vec<T>,
}

impl<T> Default for Branch<T> {
    fn default() -> Branch<T> {
        Branch { words: HashMap::default(), one: None, many: None, queues: Vec::new() }
    }
}

impl<T> Default for Topic<T> {
    fn default() -> Topic<T> {
        Topic { root: Branch::default() }
    }
}

impl Topic<()> {
    /// One pattern alone.
    pub(crate) fn of(pattern: &str) -> Topic<()> {
        let mut topic = Topic::default();
        topic.bind(pattern.as_bytes(), ());
        topic
    }

    /// Whether a key is of the pattern.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        let mut found = Vec::new();
        self.matching(key, &mut found);
        !found.is_empty()
    }
}

/// Patterns that match the same keys as one text: `#.#` is `#`, and `#.*` is `*.#`.
pub(crate) fn normalised(pattern: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut has_many = false;
    for word in pattern.split('.') {
        match word {
            "#" => has_many = true,
            "*" => words.push(word),
            word => {
                words.extend(std::mem::take(&mut has_many).then_some("#"));
                words.push(word);
            }
        }
    }
    words.extend(has_many.then_some("#"));
    words.join(".")
}

impl<T: Clone + Eq + Hash> Topic<T> {
    /// Binds a queue with a normalised pattern; it is not bound with that pattern yet.
    pub(crate) fn bind(&mut self, pattern: &[u8], queue: T) {
        let mut branch = &mut self.root;
        for word in words(pattern) {
            branch = match word {
                b"*" => branch.one.get_or_insert_default(),
                b"#" => branch.many.get_or_insert_default(),
                word => branch.words.entry(word.into()).or_default(),
            };
        }
        branch.queues.push(queue);
    }

    pub(crate) fn unbind(&mut self, pattern: &[u8], queue: &T) {
        self.root.unbind(&mut words(pattern), queue);
    }

    /// Adds the queues of all patterns that a key matches to `found`, each once.
    pub(crate) fn matching(&self, key: &[u8], found: &mut Vec<T>) {
        let mut seen = HashSet::with_hasher(foldhash::fast::RandomState::default());
        let mut add = |queues: &[T]| {
            found.extend(queues.iter().filter(|queue| seen.insert((*queue).clone())).cloned());
        };
        if key.len() > MOST_KEY_BYTES {
            // What nobody means to match is not worth the work.
            self.root.many.iter().for_each(|many| add(&many.queues));
            return;
        }
        // The places in the tree that agree with the words so far, each once.
        let mut here = Places::default();
        here.enter(&self.root);
        for word in words(key) {
            let mut next = Places::default();
            for place in here.all {
                match place {
                    Place::At(branch) => {
                        branch.words.get(word).into_iter().for_each(|after| next.enter(after));
                        branch.one.iter().for_each(|after| next.enter(after));
                    }
                    Place::Within(branch) => {
                        next.stay(branch);
                        branch.words.get(word).into_iter().for_each(|after| next.enter(after));
                        branch.one.iter().for_each(|after| next.enter(after));
                    }
                }
            }
            here = next;
            if here.all.is_empty() {
                return;
            }
        }
        for place in here.all {
            match place {
                Place::At(branch) | Place::Within(branch) => add(&branch.queues),
            }
        }
    }
}

impl<T: Eq> Branch<T> {
    /// Removes a queue, and the branches that end nowhere without it.
    fn unbind<'a>(&mut self, words: &mut impl Iterator<Item = &'a [u8]>, queue: &T) {
        let Some(word) = words.next() else {
            self.queues.retain(|bound| bound != queue);
            return;
        };
        match word {
            b"*" => Branch::unbind_after(&mut self.one, words, queue),
            b"#" => Branch::unbind_after(&mut self.many, words, queue),
            word => {
                let Some(after) = self.words.get_mut(word) else { return };
                after.unbind(words, queue);
                if after.is_bare() {
                    self.words.remove(word);
                }
            }
        }
    }

    fn unbind_after<'a>(
        after: &mut Option<Box<Branch<T>>>,
        words: &mut impl Iterator<Item = &'a [u8]>,
        queue: &T,
    ) {
        if let Some(branch) = after {
            branch.unbind(words, queue);
        }
        after.take_if(|branch| branch.is_bare());
    }

    fn is_bare(&self) -> bool {
        self.queues.is_empty() && self.words.is_empty() && self.one.is_none() && self.many.is_none()
    }
}

/// A place in the tree.
enum Place<'a, T> {
    /// The next word decides.
    At(&'a Branch<T>),
    /// After a `#`, which takes any further word too.
    Within(&'a Branch<T>),
}

/// Places in the tree, each once.
struct Places<'a, T> {
    all: Vec<Place<'a, T>>,
    /// Branches entered so far, as addresses: looked at only where a `#` makes several ways lead to
    /// one place.
    entered: HashSet<*const Branch<T>, foldhash::fast::RandomState>,
}

impl<T> Default for Places<'_, T> {
    fn default() -> Self {
        Places { all: Vec::new(), entered: HashSet::default() }
    }
}

impl<'a, T> Places<'a, T> {
    /// Goes to a branch, and to what its `#` may skip.
    fn enter(&mut self, branch: &'a Branch<T>) {
        if !self.entered.insert(branch) {
            return;
        }
        self.all.push(Place::At(branch));
        if let Some(many) = &branch.many {
            self.stay(many);
        }
    }

    fn stay(&mut self, branch: &'a Branch<T>) {
        if self.entered.insert(branch) {
            self.all.push(Place::Within(branch));
        }
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'.')
}

/// A key longer than this matches `#` and no other pattern.
const MOST_KEY_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, key: &str) -> bool {
        let mut topic = Topic::default();
        topic.bind(normalised(pattern).as_bytes(), 1);
        let mut found = Vec::new();
        topic.matching(key.as_bytes(), &mut found);
        !found.is_empty()
    }

    /// The meaning of patterns, as slowly as can be.
    fn means(pattern: &[&str], key: &[&str]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (Some((&"#", rest)), None) => means(rest, key),
            (Some((&"#", rest)), Some((_, after))) => means(rest, key) || means(pattern, after),
            (Some((&"*", rest)), Some((_, after))) => means(rest, after),
            (Some((word, rest)), Some((first, after))) => word == first && means(rest, after),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number() {
        for (pattern, key, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("#.c", "a.b.c", true),
            ("#.c", "c", true),
            ("#", "", true),
            ("*", "", true),
            ("", "", true),
            ("a.#.b", "a.b", true),
            ("a.#.b", "a.x.y.b", true),
            ("a.#.b", "a.x.y", false),
            ("#.*", "a", true),
            ("*.#", "a", true),
            ("a..b", "a..b", true),
            ("a.*.b", "a..b", true),
            ("a*", "ab", false),
            ("a.B", "a.b", false),
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
        }
    }

    #[test]
    fn patterns_that_mean_the_same_are_one() {
        for (pattern, expected) in [
            ("#.#", "#"),
            ("#.*", "*.#"),
            ("*.#", "*.#"),
            ("#.*.#.*", "*.*.#"),
            ("a.#.#.b", "a.#.b"),
            ("#.*.a.*.#", "*.#.a.*.#"),
            ("", ""),
        ] {
            assert_eq!(normalised(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn many_hashes_are_no_bomb() {
        let mut topic = Topic::default();
        let pattern = "#.a.".repeat(100) + "b";
        topic.bind(pattern.as_bytes(), 1);
        let mut found = Vec::new();
        topic.matching("a.".repeat(500).as_bytes(), &mut found);
        assert!(found.is_empty());
    }

    #[test]
    fn a_key_that_is_too_long_matches_nothing_but_a_hash() {
        let mut topic = Topic::default();
        topic.bind(b"#", 1);
        topic.bind(b"a.#", 2);
        let mut found = Vec::new();
        topic.matching("a.".repeat(MOST_KEY_BYTES).as_bytes(), &mut found);
        assert_eq!(found, [1]);
    }

    #[test]
    fn nothing_is_left_of_patterns_that_are_gone() {
        let mut topic = Topic::default();
        for pattern in ["a.b", "a.*.c", "#", "#.x"] {
            topic.bind(pattern.as_bytes(), 1);
        }
        for pattern in ["a.b", "a.*.c", "#.x", "#"] {
            topic.unbind(pattern.as_bytes(), &1);
        }
        assert!(topic.root.is_bare());
    }

    fn text(words: &'static [&'static str]) -> impl Strategy<Value = String> {
        let words = proptest::collection::vec(proptest::sample::select(words), 1..6);
        words.prop_map(|words| words.join("."))
    }

    proptest! {
        #[test]
        fn a_tree_of_patterns_finds_what_each_of_them_means(
            patterns in proptest::collection::vec(text(&["a", "b", "*", "#", ""]), 1..20),
            gone in proptest::collection::vec(any::<bool>(), 20),
            keys in proptest::collection::vec(text(&["a", "b", "c", ""]), 1..20),
        ) {
            let mut topic = Topic::default();
            let mut bound: Vec<(String, usize)> = Vec::new();
            for (index, pattern) in patterns.iter().enumerate() {
                let binding = (normalised(pattern), index % 5);
                if !bound.contains(&binding) {
                    topic.bind(binding.0.as_bytes(), binding.1);
                    bound.push(binding);
                }
            }
            let mut gone = gone.iter();
            bound.retain(|(pattern, queue)| {
                let stays = !gone.next().is_some_and(|gone| *gone);
                if !stays {
                    topic.unbind(pattern.as_bytes(), queue);
                }
                stays
            });
            for key in &keys {
                let key_words: Vec<&str> = key.split('.').collect();
                let mut expected: Vec<usize> = bound
                    .iter()
                    .filter(|(pattern, _)| means(&pattern.split('.').collect::<Vec<_>>(), &key_words))
                    .map(|(_, queue)| *queue)
                    .collect();
                expected.sort_unstable();
                expected.dedup();
                let mut found = Vec::new();
                topic.matching(key.as_bytes(), &mut found);
                found.sort_unstable();
                prop_assert_eq!(found, expected, "{}", key);
            }
        }

        #[test]
        fn a_normalised_pattern_means_the_same(
            pattern in text(&["a", "*", "#"]),
            key in text(&["a", "b"]),
        ) {
            let normal = normalised(&pattern);
            let key: Vec<&str> = key.split('.').collect();
            let (pattern, normal): (Vec<&str>, Vec<&str>) =
                (pattern.split('.').collect(), normal.split('.').collect());
            prop_assert_eq!(means(&pattern, &key), means(&normal, &key));
        }
    }
}
