//! The grammar of address strings and of option maps.
//!
//! ```text
//! address = name [ "/" subject ] [ ";" map ]
//! map     = "{" [ pair *( "," pair ) ] "}"
//! pair    = ( word | quoted ) ":" value
//! list    = "[" [ value *( "," value ) ] "]"
//! value   = word | quoted | map | list
//! ```
//!
//! Names, subjects and keys may be quoted with `'` or `"`; there is no escape character. A word that
//! looks like a number or like true or false is one; a quoted value is always text.

use std::fmt;

use mochila_wire::{Map, Value};

use super::Address;

/// A text that the grammar does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    message: String,
    at: usize,
    text: String,
}

/// Reads an address string.
pub(super) fn parse(text: &str) -> Result<Address, Malformed> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let mut address = Address::default();
    let Some(name) = parser.text_until("/;")? else {
        return if text.is_empty() { Ok(address) } else { Err(parser.error("Expected name")) };
    };
    address.name = name;
    if parser.take('/') {
        address.subject = parser.text_until(";")?.filter(|subject| !subject.is_empty());
    }
    if parser.take(';') {
        address.options = parser.map()?.unwrap_or_default();
    }
    parser.end()?;
    Ok(address)
}

/// Reads a map of options, with or without its braces; an empty text is an empty map.
pub(crate) fn parse_options(text: &str) -> Result<Map, Malformed> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let map = match parser.map()? {
        Some(map) => map,
        None => parser.entries()?,
    };
    parser.end()?;
    Ok(map)
}

/// The value that an unquoted word stands for: a number, true, false, or the word itself.
pub(crate) fn guess(word: &str) -> Value {
    if let Ok(number) = word.parse::<i64>() {
        return Value::Long(number);
    }
    if let Ok(number) = word.parse::<u64>() {
        return Value::Ulong(number);
    }
    if let Ok(number) = word.parse::<f64>() {
        return Value::Double(number);
    }
    if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
        return Value::Bool(word.eq_ignore_ascii_case("true"));
    }
    Value::String(word.to_owned())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn map(&mut self) -> Result<Option<Map>, Malformed> {
        if !self.take('{') {
            return Ok(None);
        }
        let map = self.entries()?;
        self.close('}', "Unmatched '{'!")?;
        Ok(Some(map))
    }

    fn entries(&mut self) -> Result<Map, Malformed> {
        self.nested(|parser| {
            let mut map = Map::new();
            while let Some(key) = parser.key()? {
                if !parser.take(':') {
                    return Err(parser.error("Bad key-value pair, expected ':'"));
                }
                let value = parser.value()?.ok_or_else(|| parser.error("Expected value"))?;
                map.insert(key, value);
                if !parser.take(',') {
                    break;
                }
            }
            Ok(map)
        })
    }

    fn list(&mut self) -> Result<Option<Vec<Value>>, Malformed> {
        if !self.take('[') {
            return Ok(None);
        }
        let items = self.nested(|parser| {
            let mut items = Vec::new();
            while let Some(item) = parser.value()? {
                items.push(item);
                if !parser.take(',') {
                    break;
                }
            }
            Ok(items)
        })?;
        self.close(']', "Unmatched '['!")?;
        Ok(Some(items))
    }

    fn value(&mut self) -> Result<Option<Value>, Malformed> {
        if let Some(word) = self.word(RESERVED) {
            return Ok(Some(guess(word)));
        }
        if let Some(text) = self.quoted()? {
            return Ok(Some(Value::String(text.to_owned())));
        }
        if let Some(map) = self.map()? {
            return Ok(Some(Value::Map(map)));
        }
        Ok(self.list()?.map(Value::List))
    }

    fn key(&mut self) -> Result<Option<String>, Malformed> {
        match self.word(RESERVED) {
            Some(word) => Ok(Some(word.to_owned())),
            None => Ok(self.quoted()?.map(str::to_owned)),
        }
    }

    /// A quoted text, or a word that ends at white space or at one of `delimiters`.
    fn text_until(&mut self, delimiters: &str) -> Result<Option<String>, Malformed> {
        match self.quoted()? {
            Some(text) => Ok(Some(text.to_owned())),
            None => Ok(self.word(delimiters).map(str::to_owned)),
        }
    }

    fn quoted(&mut self) -> Result<Option<&'a str>, Malformed> {
        for quote in ['"', '\''] {
            if self.take(quote) {
                let rest = &self.text[self.at..];
                let Some(length) = rest.find(quote) else {
                    return Err(self.error("Unmatched delimiter"));
                };
                self.at += length + quote.len_utf8();
                return Ok(Some(&rest[..length]));
            }
        }
        Ok(None)
    }

    fn word(&mut self, delimiters: &str) -> Option<&'a str> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_whitespace() || delimiters.contains(c));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        (!word.is_empty()).then_some(word)
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn close(&mut self, bracket: char, message: &str) -> Result<(), Malformed> {
        if self.take(bracket) { Ok(()) } else { Err(self.error(message)) }
    }

    fn end(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        match &self.text[self.at..] {
            "" => Ok(()),
            rest => Err(self.error(format!("Unexpected chars in address: {rest}"))),
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("More than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn error(&self, message: impl Into<String>) -> Malformed {
        Malformed { message: message.into(), at: self.at, text: self.text.to_owned() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, character {} of {}", self.message, self.at, self.text)
    }
}

impl std::error::Error for Malformed {}

const RESERVED: &str = "'\"{}[],:/";
/// Far more than any address has, and far less than the stack holds.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    fn refusal(text: &str) -> String {
        text.parse::<Address>().unwrap_err().to_string()
    }

    fn string(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    #[test]
    fn a_name_stands_alone_or_with_a_subject() {
        let plain = address("srcQ1");
        assert_eq!((plain.name.as_str(), plain.subject), ("srcQ1", None));
        let keyed = address("amq.topic/news.sport");
        assert_eq!(
            (keyed.name.as_str(), keyed.subject.as_deref()),
            ("amq.topic", Some("news.sport"))
        );
    }

    #[test]
    fn a_quoted_name_may_hold_what_would_end_a_word() {
        let quoted = address(r#""a/b;c" / 'x y' ; {}"#);
        assert_eq!((quoted.name.as_str(), quoted.subject.as_deref()), ("a/b;c", Some("x y")));
    }

    #[test]
    fn options_nest_and_words_take_the_type_they_look_like() {
        let address = address(
            "q; {create: always, node: {type: queue, durable: true, x-declare: {arguments: \
             {'qpid.max_count': 1000, 'qpid.ratio': 0.5, big: 18446744073709551615, neg: -3}}}}",
        );
        assert_eq!(address.options.get("create"), Some(&string("always")));
        let node = address.options.get("node").unwrap().as_map().unwrap();
        assert_eq!(node.get("durable"), Some(&Value::Bool(true)));
        let declare = node.get("x-declare").unwrap().as_map().unwrap();
        let arguments = declare.get("arguments").unwrap().as_map().unwrap();
        assert_eq!(arguments.get("qpid.max_count"), Some(&Value::Long(1000)));
        assert_eq!(arguments.get("qpid.ratio"), Some(&Value::Double(0.5)));
        assert_eq!(arguments.get("big"), Some(&Value::Ulong(u64::MAX)));
        assert_eq!(arguments.get("neg"), Some(&Value::Long(-3)));
    }

    #[test]
    fn a_quoted_value_is_text_whatever_it_looks_like() {
        let options = address("q;{a:'1',b:\"true\",c:True}").options;
        assert_eq!(options.get("a"), Some(&string("1")));
        assert_eq!(options.get("b"), Some(&string("true")));
        assert_eq!(options.get("c"), Some(&Value::Bool(true)));
    }

    #[test]
    fn lists_hold_any_values_and_trailing_commas_do_no_harm() {
        let options = address("q; {node: {capabilities: [queue, 'x y', {a: [1]},],},}").options;
        let node = options.get("node").unwrap().as_map().unwrap();
        let Some(Value::List(items)) = node.get("capabilities") else { panic!("not a list") };
        assert_eq!(items[..2], [string("queue"), string("x y")]);
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn white_space_is_free_around_every_token() {
        assert_eq!(
            address("  q  /  s  ;  { create :\n always , mode : browse }  "),
            address("q/s;{create:always,mode:browse}")
        );
    }

    #[test]
    fn a_later_value_of_the_same_key_wins() {
        assert_eq!(address("q;{a:1,a:2}").options.get("a"), Some(&Value::Long(2)));
    }

    #[test]
    fn a_name_that_begins_with_a_hash_is_temporary() {
        assert!(address("#").is_temporary());
        assert!(address("#reply; {node: {type: queue}}").is_temporary());
        assert!(!address("reply#").is_temporary());
    }

    #[test]
    fn an_empty_text_is_an_empty_address() {
        assert_eq!(address(""), Address::default());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(
            refusal("q; {create: always"),
            "Unmatched '{'!, character 18 of q; {create: always"
        );
        assert!(
            refusal("q; {create}").starts_with("Bad key-value pair, expected ':', character 10")
        );
        assert!(refusal("q; {a: }").starts_with("Expected value"));
        assert!(refusal("q; {a: [1, 2}").starts_with("Unmatched '['!"));
        assert!(refusal("'q").starts_with("Unmatched delimiter"));
        assert!(refusal("q s").starts_with("Unexpected chars in address: s"));
        assert!(refusal("; {}").starts_with("Expected name"));
    }

    #[test]
    fn nesting_has_a_bound() {
        let deep = format!("q; {}1{}", "{a:".repeat(100), "}".repeat(100));
        assert!(refusal(&deep).starts_with("More than 64 levels"));
    }

    #[test]
    fn options_may_be_written_with_or_without_braces() {
        let braced = parse_options("{reconnect:true, username: 'me'}").unwrap();
        assert_eq!(braced, parse_options("reconnect:true,username:me").unwrap());
        assert_eq!(parse_options("").unwrap(), Map::new());
        assert!(parse_options("{a:1} b").is_err());
    }
}
