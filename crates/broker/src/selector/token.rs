//! The words of the selector language.

use super::SelectorError;
use super::number::Number;
use std::borrow::Cow;

/// One word, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexeme<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Name(Cow<'a, str>),
    Text(Cow<'a, str>),
    Number(Number),
    And,
    Or,
    Not,
    Between,
    Like,
    Escape,
    In,
    Is,
    Null,
    True,
    False,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Over,
    Open,
    Close,
    Comma,
    End,
}

/// Takes a selector apart, word by word.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next word; [`Token::End`] again and again when there is none.
    pub(super) fn next(&mut self) -> Result<Lexeme<'a>, SelectorError> {
        let rest = &self.text[self.at..];
        let start = self.text.len() - rest.trim_start().len();
        let (token, end) = self.read(start)?;
        self.at = end;
        Ok(Lexeme { token, start, end })
    }

    fn read(&self, start: usize) -> Result<(Token<'a>, usize), SelectorError> {
        let rest = &self.text[start..];
        if let Some((token, len)) = punctuation(rest) {
            return Ok((token, start + len));
        }
        let mut chars = rest.chars();
        match chars.next() {
            None => Ok((Token::End, start)),
            Some('\'') => {
                let (text, end) = self.quoted(start, '\'')?;
                Ok((Token::Text(text), end))
            }
            Some('"') => {
                let (name, end) = self.quoted(start, '"')?;
                if name.is_empty() {
                    return Err(SelectorError::expected(start, "a name", rest));
                }
                Ok((Token::Name(name), end))
            }
            Some(first) if first.is_ascii_digit() || first == '.' => {
                if first == '.' && !chars.next().is_some_and(|next| next.is_ascii_digit()) {
                    return Err(SelectorError::expected(start, "a name or a value", rest));
                }
                let (number, end) = Number::read(self.text, start)?;
                Ok((Token::Number(number), end))
            }
            Some(first) if starts_name(first) => {
                let word = &rest[..name_len(rest)];
                let token = keyword(word).unwrap_or(Token::Name(Cow::Borrowed(word)));
                Ok((token, start + word.len()))
            }
            Some(_) => Err(SelectorError::expected(start, "a name, a value or an operator", rest)),
        }
    }

    /// Text in quotation marks; two of them stand for one.
    fn quoted(&self, start: usize, mark: char) -> Result<(Cow<'a, str>, usize), SelectorError> {
        let inside = start + 1;
        let mut text = Cow::Borrowed("");
        let mut from = inside;
        loop {
            let Some(len) = self.text[from..].find(mark) else {
                let reason = format!("the {mark} that begins here has no end");
                return Err(SelectorError::new(start, reason));
            };
            let end = from + len;
            if self.text[end + 1..].starts_with(mark) {
                text.to_mut().push_str(&self.text[from..=end]);
                from = end + 2;
            } else if from == inside {
                return Ok((Cow::Borrowed(&self.text[from..end]), end + 1));
            } else {
                text.to_mut().push_str(&self.text[from..end]);
                return Ok((text, end + 1));
            }
        }
    }
}

fn punctuation(rest: &str) -> Option<(Token<'static>, usize)> {
    Some(match rest.as_bytes() {
        [b'<', b'>', ..] | [b'!', b'=', ..] => (Token::NotEqual, 2),
        [b'<', b'=', ..] => (Token::LessOrEqual, 2),
        [b'>', b'=', ..] => (Token::GreaterOrEqual, 2),
        [b'<', ..] => (Token::Less, 1),
        [b'>', ..] => (Token::Greater, 1),
        [b'=', ..] => (Token::Equal, 1),
        [b'+', ..] => (Token::Plus, 1),
        [b'-', ..] => (Token::Minus, 1),
        [b'*', ..] => (Token::Times, 1),
        [b'/', ..] => (Token::Over, 1),
        [b'(', ..] => (Token::Open, 1),
        [b')', ..] => (Token::Close, 1),
        [b',', ..] => (Token::Comma, 1),
        _ => return None,
    })
}

/// The reserved words, in upper case, lower case or both.
fn keyword(word: &str) -> Option<Token<'static>> {
    let keywords = [
        ("AND", Token::And),
        ("OR", Token::Or),
        ("NOT", Token::Not),
        ("BETWEEN", Token::Between),
        ("LIKE", Token::Like),
        ("ESCAPE", Token::Escape),
        ("IN", Token::In),
        ("IS", Token::Is),
        ("NULL", Token::Null),
        ("TRUE", Token::True),
        ("FALSE", Token::False),
    ];
    let (_, token) = keywords.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name))?;
    Some(token)
}

/// How many bytes of these are a name. Names are those of Java, with points in them.
///
/// Names of annotations and of fields have hyphens, and are written so by clients of other
/// brokers (`amqp.annotation.x-opt-offset`). In a name that says which section of the message it is
/// from, a hyphen in front of a letter therefore belongs to the name.
fn name_len(rest: &str) -> usize {
    let hyphens = HYPHENATED.iter().any(|prefix| rest.starts_with(prefix));
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut letter_next = || chars.peek().is_some_and(|(_, next)| next.is_alphabetic());
        let part = starts_name(c)
            || c == '.'
            || c.is_alphanumeric()
            || (c == '-' && hyphens && letter_next());
        if !part {
            return at;
        }
    }
    rest.len()
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

/// How names begin that say which section of the message they are from.
const HYPHENATED: [&str; 13] = [
    "amqp.",
    "application-properties.",
    "application_properties.",
    "delivery-annotations.",
    "delivery.",
    "delivery_annotations.",
    "h.",
    "header.",
    "m.",
    "message-annotations.",
    "message_annotations.",
    "p.",
    "properties.",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next().unwrap().token {
                Token::End => return tokens,
                token => tokens.push(token),
            }
        }
    }

    fn name(text: &str) -> Token<'_> {
        Token::Name(Cow::Borrowed(text))
    }

    #[test]
    fn words_need_no_space_between_them_where_they_differ_in_kind() {
        let whole = Token::Number(Number::Exact { magnitude: 5, decimal: true });
        let expected = [name("a"), Token::GreaterOrEqual, Token::Minus, whole, Token::Close];
        assert_eq!(tokens("a>=-5)"), expected);
        assert_eq!(tokens(" a\t>=\n- 5 ) "), expected);
    }

    #[test]
    fn reserved_words_are_known_in_any_case_and_are_names_in_quotation_marks() {
        assert_eq!(tokens("NoT not NOT"), [Token::Not, Token::Not, Token::Not]);
        assert_eq!(tokens("nota \"not\""), [name("nota"), name("not")]);
    }

    #[test]
    fn two_marks_in_quotes_stand_for_one() {
        let text = |text: &'static str| Token::Text(Cow::Borrowed(text));
        assert_eq!(tokens("'it''s' '' ''''"), [text("it's"), text(""), text("'")]);
        assert_eq!(tokens("\"say \"\"x\"\"\""), [name("say \"x\"")]);
    }

    #[test]
    fn names_may_have_letters_of_any_language_points_and_dollars() {
        assert_eq!(tokens("größe _a.b$1"), [name("größe"), name("_a.b$1")]);
        assert_eq!(tokens("a-b"), [name("a"), Token::Minus, name("b")]);
    }

    #[test]
    fn a_name_that_says_its_section_may_have_hyphens() {
        assert_eq!(tokens("amqp.annotation.x-opt-offset"), [name("amqp.annotation.x-opt-offset")]);
        assert_eq!(tokens("properties.creation-time"), [name("properties.creation-time")]);
        assert_eq!(tokens("amqp.priority -a").len(), 3);
        assert_eq!(tokens("amqp.priority-1").len(), 3);
    }

    #[test]
    fn what_is_no_word_is_refused_where_it_begins() {
        for (text, offset) in [("a = 'x", 4), ("a # b", 2), ("\"\"", 0), ("a . b", 2), ("é ?", 3)]
        {
            let mut lexer = Lexer::new(text);
            let error = loop {
                match lexer.next() {
                    Ok(lexeme) => assert_ne!(lexeme.token, Token::End, "{text}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.offset(), offset, "{text}: {error}");
        }
    }
}
