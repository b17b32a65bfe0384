//! What an address becomes when it is used for the first time.

use crate::settings::QueueSettings;

/// Names of this pattern become queues with these settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// A name in which `*` stands for any number of characters and `?` for one.
    pub pattern: String,
    /// What the queue is like.
    pub settings: QueueSettings,
}

impl Pattern {
    /// A pattern and the settings that go with it.
    pub fn new(pattern: impl Into<String>, settings: QueueSettings) -> Pattern {
        Pattern { pattern: pattern.into(), settings }
    }

    /// Any name becomes an ordinary queue.
    pub fn any() -> Pattern {
        Pattern::new("*", QueueSettings::default())
    }

    /// True if a name is of this pattern.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.pattern, name)
    }

    /// What belongs to the most specific pattern that matches: the longest, of these the first.
    pub(crate) fn of<'a, T>(
        patterns: impl Iterator<Item = (&'a Pattern, T)>,
        name: &str,
    ) -> Option<T> {
        let matching = patterns.filter(|(pattern, _)| pattern.matches(name));
        let longest =
            matching.reduce(
                |best, next| {
                    if next.0.pattern.len() > best.0.pattern.len() { next } else { best }
                },
            );
        longest.map(|(_, value)| value)
    }
}

/// Glob matching that goes back to the last `*` only, so that it cannot become exponential.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_a_question_mark_for_one() {
        for (pattern, name, expected) in [
            ("*", "anything", true),
            ("*", "", true),
            ("orders.*", "orders.eu", true),
            ("orders.*", "orders", false),
            ("*.eu.*", "a.eu.b.eu.c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_longest_pattern_that_matches_counts() {
        let patterns = [Pattern::any(), Pattern::new("orders.*", QueueSettings::default())];
        let of = |patterns: &[Pattern], name| {
            Pattern::of(patterns.iter().map(|pattern| (pattern, pattern.pattern.clone())), name)
        };
        assert_eq!(of(&patterns, "orders.eu").as_deref(), Some("orders.*"));
        assert_eq!(of(&patterns, "other").as_deref(), Some("*"));
        assert_eq!(of(&patterns[1..], "other"), None);
    }

    #[test]
    fn a_pattern_of_many_stars_is_matched_in_no_time() {
        let pattern = "*a".repeat(1_000) + "b";
        assert!(!matches(&pattern, &"a".repeat(5_000)));
    }
}
