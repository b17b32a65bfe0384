//! Random expressions, printed, compiled and evaluated, against a model that takes them word by word.

use crate::support::{Encoded, Random, compiled};
use mochila_wire::Value;

/// An expression; what is a condition and what is a value is known when it is made.
#[derive(Clone, Debug)]
enum Tree {
    Name(usize),
    Value(Plain),
    And(Box<[Tree; 2]>),
    Or(Box<[Tree; 2]>),
    Not(Box<Tree>),
    Compare(&'static str, Box<[Tree; 2]>),
    Between(bool, Box<[Tree; 3]>),
    In(bool, Box<Tree>, Vec<Tree>),
    Like(bool, Box<Tree>, String),
    IsNull(bool, Box<Tree>),
    Calculate(char, Box<[Tree; 2]>),
    Negate(Box<Tree>),
}

#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

const NAMES: [&str; 6] = ["a", "b", "größe", "x.y", "_d", "my key"];
const TEXTS: [&str; 7] = ["", "a", "ab", "aba", "it's", "5", "é%_"];
const NUMBERS: [i64; 7] = [0, 1, 2, 5, -3, i64::MAX, i64::MIN];
const FLOATS: [f64; 5] = [0.0, 0.5, -2.5, 1e20, 5.0];
const PATTERNS: [&str; 10] = ["", "%", "_", "a%", "%a", "%b%", "a_a", "_%_", "é!%!_", "%!%%"];

/// Makes what is as deep as `depth`.
struct Maker<'r>(&'r mut Random);

impl Maker<'_> {
    fn condition(&mut self, depth: usize) -> Tree {
        let random = &mut *self.0;
        if depth == 0 {
            return match random.below(3) {
                0 => Tree::Value(Plain::Bool(random.one_in(2))),
                _ => Tree::Name(random.below(NAMES.len())),
            };
        }
        let not = random.one_in(2);
        match random.below(9) {
            0 => Tree::And(Box::new([self.condition(depth - 1), self.condition(depth - 1)])),
            1 => Tree::Or(Box::new([self.condition(depth - 1), self.condition(depth - 1)])),
            2 => Tree::Not(Box::new(self.condition(depth - 1))),
            3 => {
                let values = [self.any(depth - 1), self.any(depth - 1), self.any(depth - 1)];
                Tree::Between(not, Box::new(values))
            }
            4 => {
                let value = Box::new(self.any(depth - 1));
                let texts_alone = self.0.one_in(2);
                let count = 1 + self.0.below(4);
                let element = |maker: &mut Self| {
                    if texts_alone { maker.text() } else { maker.any(depth - 1) }
                };
                let list = (0..count).map(|_| element(self)).collect();
                Tree::In(not, value, list)
            }
            5 => {
                let value = if random.one_in(4) {
                    self.text()
                } else {
                    Tree::Name(random.below(NAMES.len()))
                };
                Tree::Like(not, Box::new(value), self.0.pick(&PATTERNS).to_owned())
            }
            6 => Tree::IsNull(not, Box::new(self.any(depth - 1))),
            _ => {
                let operator = random.pick(&["=", "<>", "!=", "<", "<=", ">", ">="]);
                Tree::Compare(operator, Box::new([self.any(depth - 1), self.any(depth - 1)]))
            }
        }
    }

    fn any(&mut self, depth: usize) -> Tree {
        match self.0.below(6) {
            0 => self.text(),
            1 => self.condition(depth),
            _ => self.number(depth),
        }
    }

    fn text(&mut self) -> Tree {
        Tree::Value(Plain::Text(self.0.pick(&TEXTS).to_owned()))
    }

    fn number(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.0.below(3) {
                0 => Tree::Value(Plain::Int(self.0.pick(&NUMBERS))),
                1 => Tree::Value(Plain::Float(self.0.pick(&FLOATS))),
                _ => Tree::Name(self.0.below(NAMES.len())),
            };
        }
        if self.0.one_in(4) {
            return Tree::Negate(Box::new(self.number(depth - 1)));
        }
        let operator = self.0.pick(&['+', '-', '*', '/']);
        Tree::Calculate(operator, Box::new([self.number(depth - 1), self.number(depth - 1)]))
    }
}

/// Prints with as few parentheses as the language needs, and now and then with more.
struct Printer<'r>(&'r mut Random);

impl Printer<'_> {
    fn print(&mut self, tree: &Tree, floor: u8) -> String {
        let own = level(tree);
        let text = self.bare(tree);
        let space = self.0.pick(&["", "", " ", "\n"]);
        if own < floor || self.0.one_in(8) { format!("({space}{text}{space})") } else { text }
    }

    fn bare(&mut self, tree: &Tree) -> String {
        let not = |not: bool| if not { "NOT " } else { "" };
        match tree {
            Tree::Name(name) => match NAMES[*name] {
                spaced if spaced.contains(' ') => format!("\"{spaced}\""),
                name => name.to_owned(),
            },
            Tree::Value(Plain::Null) => unreachable!("there is no such literal"),
            Tree::Value(Plain::Bool(value)) => self.word(if *value { "TRUE" } else { "FALSE" }),
            Tree::Value(Plain::Int(value)) => value.to_string(),
            Tree::Value(Plain::Float(value)) => format!("{value:?}"),
            Tree::Value(Plain::Text(text)) => quoted(text),
            Tree::And(parts) => {
                let [a, b] = &**parts;
                format!("{} {} {}", self.print(a, 2), self.word("AND"), self.print(b, 3))
            }
            Tree::Or(parts) => {
                let [a, b] = &**parts;
                format!("{} {} {}", self.print(a, 1), self.word("OR"), self.print(b, 2))
            }
            Tree::Not(inner) => format!("{} {}", self.word("NOT"), self.print(inner, 3)),
            Tree::Compare(operator, parts) => {
                let [a, b] = &**parts;
                format!("{} {operator} {}", self.print(a, 5), self.print(b, 5))
            }
            Tree::Between(negated, parts) => {
                let [value, least, greatest] = &**parts;
                let (value, least) = (self.print(value, 5), self.print(least, 5));
                format!("{value} {}BETWEEN {least} AND {}", not(*negated), self.print(greatest, 5))
            }
            Tree::In(negated, value, list) => {
                let value = self.print(value, 5);
                let list: Vec<String> = list.iter().map(|part| self.print(part, 5)).collect();
                format!("{value} {}IN ({})", not(*negated), list.join(", "))
            }
            Tree::Like(negated, value, pattern) => {
                let value = self.print(value, 5);
                format!("{value} {}LIKE {} ESCAPE '!'", not(*negated), quoted(pattern))
            }
            Tree::IsNull(negated, value) => {
                format!("{} IS {}NULL", self.print(value, 5), not(*negated))
            }
            Tree::Calculate(operator, parts) => {
                let [a, b] = &**parts;
                let own = level(tree);
                format!("{} {operator} {}", self.print(a, own), self.print(b, own + 1))
            }
            Tree::Negate(inner) => format!("- {}", self.print(inner, 7)),
        }
    }

    fn word(&mut self, word: &str) -> String {
        if self.0.one_in(3) { word.to_lowercase() } else { word.to_owned() }
    }
}

fn level(tree: &Tree) -> u8 {
    match tree {
        Tree::Or(_) => 1,
        Tree::And(_) => 2,
        Tree::Not(_) => 3,
        Tree::Compare(..)
        | Tree::Between(..)
        | Tree::In(..)
        | Tree::Like(..)
        | Tree::IsNull(..) => 4,
        Tree::Calculate('+' | '-', _) => 5,
        Tree::Calculate(..) => 6,
        Tree::Negate(_) => 7,
        Tree::Name(_) | Tree::Value(_) => 8,
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What an expression says, taken word by word.
fn value(tree: &Tree, names: &[Plain; 6]) -> Plain {
    match tree {
        Tree::Name(name) => names[*name].clone(),
        Tree::Value(value) => value.clone(),
        Tree::Calculate(operator, parts) => {
            let [a, b] = &**parts;
            calculated(*operator, value(a, names), value(b, names))
        }
        Tree::Negate(inner) => match value(inner, names) {
            Plain::Int(value) => Plain::Int(value.wrapping_neg()),
            Plain::Float(value) => Plain::Float(-value),
            _ => Plain::Null,
        },
        condition => truth(condition, names).map_or(Plain::Null, Plain::Bool),
    }
}

fn calculated(operator: char, a: Plain, b: Plain) -> Plain {
    if let (Plain::Int(a), Plain::Int(b)) = (&a, &b) {
        return match operator {
            '+' => Plain::Int(a.wrapping_add(*b)),
            '-' => Plain::Int(a.wrapping_sub(*b)),
            '*' => Plain::Int(a.wrapping_mul(*b)),
            _ if *b == 0 => Plain::Null,
            _ => Plain::Int(a.wrapping_div(*b)),
        };
    }
    match (operator, float(&a), float(&b)) {
        ('+', Some(a), Some(b)) => Plain::Float(a + b),
        ('-', Some(a), Some(b)) => Plain::Float(a - b),
        ('*', Some(a), Some(b)) => Plain::Float(a * b),
        ('/', Some(a), Some(b)) if b != 0.0 => Plain::Float(a / b),
        _ => Plain::Null,
    }
}

fn float(value: &Plain) -> Option<f64> {
    match value {
        Plain::Int(value) => Some(*value as f64),
        Plain::Float(value) => Some(*value),
        _ => None,
    }
}

fn truth(tree: &Tree, names: &[Plain; 6]) -> Option<bool> {
    let flip = |negated: bool, truth: Option<bool>| truth.map(|truth| truth != negated);
    match tree {
        Tree::And(parts) => and(truth(&parts[0], names), truth(&parts[1], names)),
        Tree::Or(parts) => or(truth(&parts[0], names), truth(&parts[1], names)),
        Tree::Not(inner) => flip(true, truth(inner, names)),
        Tree::Compare(operator, parts) => {
            compared(operator, &value(&parts[0], names), &value(&parts[1], names))
        }
        Tree::Between(negated, parts) => {
            let [value, least, greatest] = [0, 1, 2].map(|part| value(&parts[part], names));
            let inside = and(compared(">=", &value, &least), compared("<=", &value, &greatest));
            flip(*negated, inside)
        }
        Tree::In(negated, element, list) => {
            let element = value(element, names);
            let equal = list.iter().map(|other| compared("=", &element, &value(other, names)));
            flip(*negated, equal.fold(Some(false), or))
        }
        Tree::Like(negated, text, pattern) => {
            let Plain::Text(text) = value(text, names) else { return None };
            let text: Vec<char> = text.chars().collect();
            let pattern: Vec<char> = pattern.chars().collect();
            flip(*negated, Some(like(&text, &pattern)))
        }
        Tree::IsNull(negated, inner) => flip(*negated, Some(value(inner, names) == Plain::Null)),
        other => match value(other, names) {
            Plain::Bool(value) => Some(value),
            _ => None,
        },
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(false) || b == Some(false) { Some(false) } else { Some(a? && b?) }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    if a == Some(true) || b == Some(true) { Some(true) } else { Some(a? || b?) }
}

fn compared(operator: &str, a: &Plain, b: &Plain) -> Option<bool> {
    let equality = matches!(operator, "=" | "<>" | "!=");
    let order = match (a, b) {
        (Plain::Null, _) | (_, Plain::Null) => return None,
        (Plain::Int(a), Plain::Int(b)) => a.partial_cmp(b),
        (Plain::Text(a), Plain::Text(b)) => a.partial_cmp(b),
        (Plain::Bool(a), Plain::Bool(b)) if equality => a.partial_cmp(b),
        _ => match (float(a), float(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => return Some(false),
        },
    };
    let Some(order) = order else { return Some(matches!(operator, "<>" | "!=")) };
    Some(match operator {
        "=" => order.is_eq(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => order.is_ne(),
    })
}

/// Tries every way.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['!', literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| like(&text[skipped..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        [literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
    }
}

fn message(random: &mut Random) -> (Encoded, [Plain; 6]) {
    let plain: [Plain; 6] = std::array::from_fn(|_| match random.below(5) {
        0 => Plain::Null,
        1 => Plain::Bool(random.one_in(2)),
        2 => Plain::Int(random.pick(&NUMBERS)),
        3 => Plain::Float(random.pick(&FLOATS)),
        _ => Plain::Text(random.pick(&TEXTS).to_owned()),
    });
    let encoded = Encoded::new(|message| {
        message.set_application_property("other", 1);
        for (name, value) in NAMES.iter().zip(&plain) {
            let value = match value {
                // What is not there and what is null are the same.
                Plain::Null if random.one_in(2) => continue,
                Plain::Null => Value::Null,
                Plain::Bool(value) => (*value).into(),
                Plain::Int(value) => (*value).into(),
                Plain::Float(value) => (*value).into(),
                Plain::Text(text) => text.as_str().into(),
            };
            message.set_application_property(name, value);
        }
    });
    (encoded, plain)
}

#[test]
fn an_expression_printed_and_compiled_says_what_the_model_says() {
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let depth = 1 + random.below(4);
        let tree = Maker(&mut random).condition(depth);
        let once = Printer(&mut random).print(&tree, 0);
        let again = Printer(&mut random).print(&tree, 0);
        let (first, second) = (compiled(&once), compiled(&again));
        for _ in 0..8 {
            let (message, plain) = message(&mut random);
            let expected = truth(&tree, &plain);
            let case = format!("seed {seed}: {once}\nwith {plain:?}");
            assert_eq!(first.matches(&message.input()), expected == Some(true), "{case}");
            assert_eq!(second.matches(&message.input()), expected == Some(true), "{again}\n{case}");
            let contrary = compiled(&format!("NOT ({once})"));
            assert_eq!(contrary.matches(&message.input()), expected == Some(false), "NOT {case}");
        }
    }
}

#[test]
fn a_pattern_matches_what_the_model_matches() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let mut letters = |from: &[char], most: usize| -> String {
            (0..random.below(most)).map(|_| random.pick(from)).collect()
        };
        let text = letters(&['a', 'b', 'é'], 12);
        let pattern = letters(&['a', 'b', 'é', '%', '_'], 9);
        let message = Encoded::new(|message| message.set_application_property("a", &*text));
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = like(&chars(&text), &chars(&pattern));
        let selector = format!("a LIKE '{pattern}'");
        assert_eq!(message.matches(&selector), expected, "seed {seed}: {text:?} {selector}");
    }
}
