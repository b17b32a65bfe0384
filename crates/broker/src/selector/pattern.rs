//! The patterns of LIKE.

/// A compiled pattern: what stands between its `%`.
///
/// Each piece is looked for behind the one before it, as early as possible, so nothing is ever
/// tried again: a text costs its own length, however many `%` there are. Only a piece with `_` in it
/// costs its length for each place where it might be, and is therefore limited in length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What a matching text begins with; all of it, if there is no `%`.
    first: Piece,
    /// What is in it after that, and what it ends with; `None` if there is no `%`.
    rest: Option<(Box<[Piece]>, Piece)>,
}

/// A part of a pattern without `%`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Piece(Box<[Part]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// This text.
    Exactly(Box<str>),
    /// So many characters, whatever they are.
    Any(usize),
}

/// Why a pattern is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// It ends with the escape character.
    EscapesNothing,
    /// A piece between two `%` has `_` in it and is too long.
    TooLong,
}

impl PatternError {
    pub(super) fn reason(self) -> String {
        match self {
            PatternError::EscapesNothing => "the escape character escapes nothing here".into(),
            PatternError::TooLong => format!(
                "between two % there may be {MOST_FLOATING} characters, if there is a _ among them"
            ),
        }
    }
}

impl Pattern {
    /// Reads a pattern, in which `escape` takes the meaning from the character behind it.
    pub(super) fn new(text: &str, escape: Option<char>) -> Result<Pattern, PatternError> {
        let mut pieces = vec![Piece::default()];
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if Some(c) == escape {
                let literal = chars.next().ok_or(PatternError::EscapesNothing)?;
                push(&mut parts, literal);
            } else if c == '%' {
                let last = pieces.len() - 1;
                pieces[last] = Piece(std::mem::take(&mut parts).into());
                pieces.push(Piece::default());
            } else if c == '_' {
                match parts.last_mut() {
                    Some(Part::Any(count)) => *count += 1,
                    _ => parts.push(Part::Any(1)),
                }
            } else {
                push(&mut parts, c);
            }
        }
        let last = Piece(parts.into());
        if pieces.len() == 1 {
            return Ok(Pattern { first: last, rest: None });
        }
        pieces.pop();
        let first = pieces.remove(0);
        pieces.retain(|piece| !piece.0.is_empty());
        if pieces.iter().any(Piece::is_costly) {
            return Err(PatternError::TooLong);
        }
        Ok(Pattern { first, rest: Some((pieces.into(), last)) })
    }

    /// Whether all of a text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(mut text) = self.first.strip_from_start(text) else { return false };
        let Some((floating, last)) = &self.rest else { return text.is_empty() };
        match last.strip_from_end(text) {
            Some(inner) => text = inner,
            None => return false,
        }
        floating.iter().all(|piece| match piece.find(text) {
            Some(behind) => {
                text = behind;
                true
            }
            None => false,
        })
    }
}

fn push(parts: &mut Vec<Part>, c: char) {
    match parts.last_mut() {
        Some(Part::Exactly(text)) => {
            let mut longer = String::from(std::mem::take(text));
            longer.push(c);
            *text = longer.into();
        }
        _ => parts.push(Part::Exactly(c.to_string().into())),
    }
}

impl Piece {
    /// What is behind this piece, if the text begins with it.
    fn strip_from_start<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.0.iter().try_fold(text, |text, part| match part {
            Part::Exactly(exactly) => text.strip_prefix(&**exactly),
            Part::Any(count) => {
                let (at, last) = text.char_indices().nth(count - 1)?;
                Some(&text[at + last.len_utf8()..])
            }
        })
    }

    /// What is in front of this piece, if the text ends with it.
    fn strip_from_end<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.0.iter().rev().try_fold(text, |text, part| match part {
            Part::Exactly(exactly) => text.strip_suffix(&**exactly),
            Part::Any(count) => {
                let (at, _) = text.char_indices().rev().nth(count - 1)?;
                Some(&text[..at])
            }
        })
    }

    /// What is behind the first place where this piece is in the text.
    fn find<'a>(&self, text: &'a str) -> Option<&'a str> {
        if let [Part::Exactly(exactly)] = &*self.0 {
            return text.find(&**exactly).map(|at| &text[at + exactly.len()..]);
        }
        text.char_indices().find_map(|(at, _)| self.strip_from_start(&text[at..]))
    }

    /// Whether it costs more than its share to look for it.
    fn is_costly(&self) -> bool {
        let chars = |part: &Part| match part {
            Part::Exactly(text) => text.chars().count(),
            Part::Any(count) => *count,
        };
        let any = self.0.iter().any(|part| matches!(part, Part::Any(_)));
        any && self.0.iter().map(chars).sum::<usize>() > MOST_FLOATING
    }
}

/// How many characters a piece may have that has `_` in it and stands between two `%`.
const MOST_FLOATING: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern, Some('\\')).unwrap().matches(text)
    }

    #[test]
    fn a_percent_sign_stands_for_any_text_and_an_underscore_for_one_character() {
        let matching = [
            ("", ""),
            ("", "%%"),
            ("abc", "abc"),
            ("abc", "%"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "a_c"),
            ("abc", "%b%"),
            ("abc", "_%_"),
            ("aé💧c", "a__c"),
            ("abcabc", "%bc"),
            ("aXbXc", "a%b%c"),
            ("ab", "a%b"),
            ("12xx3", "12%3"),
            ("mississippi", "m%iss%ip%i"),
            ("line\nbreak", "line%"),
            ("a.b*c", "a.b*c"),
        ];
        for (text, pattern) in matching {
            assert!(like(text, pattern), "{text:?} LIKE {pattern:?}");
        }
        let other = [
            ("a", ""),
            ("", "_"),
            ("abc", "ab"),
            ("abc", "%b"),
            ("aa", "a_a"),
            ("a", "a%a"),
            ("abc", "____%"),
            ("axbc", "a.bc"),
            ("ABC", "abc"),
            ("abab", "%ba%ba%"),
        ];
        for (text, pattern) in other {
            assert!(!like(text, pattern), "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn the_character_behind_an_escape_character_stands_for_itself() {
        assert!(like("50%", r"50\%") && !like("500", r"50\%"));
        assert!(like("_foo", r"\_%") && !like("bar", r"\_%"));
        assert!(like(r"a\b", r"a\\b") && like("ab", r"a\b"));
        assert_eq!(Pattern::new(r"a\", Some('\\')), Err(PatternError::EscapesNothing));
        assert!(Pattern::new(r"a\", None).unwrap().matches(r"a\"));
    }

    #[test]
    fn a_pattern_with_many_wildcards_costs_one_walk_over_the_text() {
        // Trying every way to split this text among the wildcards would outlast the sun.
        let text = "a".repeat(100_000);
        let pattern = format!("{}b", "%a".repeat(1_000));
        assert!(!like(&text, &pattern));
        assert!(like(&format!("{text}b"), &pattern));
        assert!(!like(&text, &format!("%{}b%", "a_".repeat(20))));
    }

    #[test]
    fn a_piece_that_would_be_costly_to_look_for_is_refused() {
        let pieces = "_a".repeat(MOST_FLOATING);
        let floating = Pattern::new(&format!("%{pieces}%"), None);
        assert_eq!(floating, Err(PatternError::TooLong));
        assert!(Pattern::new(&format!("{pieces}%{pieces}"), None).is_ok());
        assert!(Pattern::new(&format!("%{}%", "a".repeat(1_000)), None).is_ok());
    }
}
