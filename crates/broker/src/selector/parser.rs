//! From the text of a selector to its tree.
//!
//! ```text
//! selector   = condition | condition OR condition | condition AND condition | NOT condition
//! condition  = value | value ( = <> != < <= > >= ) value | value IS [NOT] NULL
//!            | value [NOT] LIKE text [ESCAPE text] | value [NOT] IN ( value, … )
//!            | value [NOT] BETWEEN value AND value
//! value      = name | text | number | TRUE | FALSE | value ( + - * / ) value | ( + - ) value
//!            | ( selector )
//! ```

use super::SelectorError;
use super::expression::{Comparison, Expression, Kind, Literal, Operator};
use super::name::Source;
use super::number::{Number, TOO_LARGE};
use super::pattern::Pattern;
use super::token::{Lexeme, Lexer, Token};

/// Parses a whole selector; `None` if it is blank.
pub(super) fn parse(text: &str) -> Result<Option<Expression>, SelectorError> {
    if text.len() > MAX_BYTES {
        let reason = format!("a selector may have {MAX_BYTES} bytes, this one has {}", text.len());
        return Err(SelectorError::new(MAX_BYTES, reason));
    }
    let mut parser = Parser::new(text)?;
    if parser.next.token == Token::End {
        return Ok(None);
    }
    let start = parser.next.start;
    let tree = parser.tree(Level::Or, 0)?;
    parser.require(Token::End, "AND, OR or the end")?;
    parser.condition(&tree, start)?;
    Ok(Some(tree.root))
}

/// How strongly operators bind, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    /// Comparisons of all kinds; they do not follow one another.
    Compare,
    Sum,
    Product,
    Sign,
}

impl Level {
    /// What the right side of a left-associative operator consists of.
    fn above(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Compare,
            Level::Compare => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Sign => Level::Sign,
        }
    }
}

/// An expression, and how many levels deep it is: everybody who walks over it calls itself so
/// often.
struct Tree {
    root: Expression,
    height: usize,
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Lexeme<'a>,
    terms: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, SelectorError> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next()?;
        Ok(Parser { text, lexer, next, terms: 0 })
    }

    /// Reads operators that bind at least as strongly as `floor`, and what they bind.
    fn tree(&mut self, floor: Level, depth: usize) -> Result<Tree, SelectorError> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let start = self.next.start;
        // What binds more strongly than what has been read is part of it or does not belong here:
        // a condition is neither compared nor calculated with, unless it stands in parentheses.
        let mut ceiling = match self.next.token {
            Token::Not => Level::Not,
            _ => Level::Sign,
        };
        let mut left = self.operand(floor, depth)?;
        loop {
            let Some(level) = level_of(&self.next.token) else { return Ok(left) };
            if level < floor || level > ceiling {
                return Ok(left);
            }
            ceiling = if level == Level::Compare { Level::Not } else { level };
            left = match level {
                Level::Or | Level::And => self.junction(left, start, level, depth)?,
                Level::Compare => self.comparison(left, start, depth)?,
                _ => self.calculation(left, start, level, depth)?,
            };
            if left.height > MAX_DEPTH {
                return Err(self.too_deep());
            }
        }
    }

    /// What stands in front of the first operator.
    fn operand(&mut self, floor: Level, depth: usize) -> Result<Tree, SelectorError> {
        let lexeme = self.advance()?;
        let root = match lexeme.token {
            Token::Not if floor <= Level::Not => return self.not(depth),
            Token::Minus => return self.minus(depth),
            Token::Plus => {
                let start = self.next.start;
                let tree = self.tree(Level::Sign, depth + 1)?;
                self.number(&tree, start)?;
                return Ok(tree);
            }
            Token::Open => {
                let tree = self.tree(Level::Or, depth + 1)?;
                self.require(Token::Close, "AND, OR or )")?;
                return Ok(tree);
            }
            Token::Name(name) => {
                Expression::Name(Source::of(&name).map_err(|_| no_such_field(&name, lexeme.start))?)
            }
            Token::Text(text) => Expression::Literal(Literal::Text(text.into())),
            Token::Number(number) => Expression::Literal(literal(number, false, lexeme.start)?),
            Token::True => Expression::Literal(Literal::Bool(true)),
            Token::False => Expression::Literal(Literal::Bool(false)),
            _ => return Err(self.expected("a name or a value", lexeme.start, lexeme.end)),
        };
        self.term(root, lexeme.start)
    }

    /// A name or a value, of which there is a limited number.
    fn term(&mut self, root: Expression, start: usize) -> Result<Tree, SelectorError> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            let reason = format!("a selector may have {MAX_TERMS} names and values");
            return Err(SelectorError::new(start, reason));
        }
        Ok(Tree { root, height: 1 })
    }

    fn not(&mut self, depth: usize) -> Result<Tree, SelectorError> {
        let start = self.next.start;
        let tree = self.tree(Level::Not, depth + 1)?;
        self.condition(&tree, start)?;
        Ok(negated(tree, true))
    }

    fn minus(&mut self, depth: usize) -> Result<Tree, SelectorError> {
        let start = self.next.start;
        if let Token::Number(number) = self.next.token {
            // The least long is no number without its sign.
            let root = Expression::Literal(literal(number, true, start)?);
            self.advance()?;
            return self.term(root, start);
        }
        let tree = self.tree(Level::Sign, depth + 1)?;
        self.number(&tree, start)?;
        Ok(Tree { height: tree.height + 1, root: Expression::Negate(Box::new(tree.root)) })
    }

    /// AND or OR: any number of them in a row are one, so that a long row is not deep.
    fn junction(
        &mut self,
        left: Tree,
        start: usize,
        level: Level,
        depth: usize,
    ) -> Result<Tree, SelectorError> {
        self.condition(&left, start)?;
        let mut height = left.height;
        let mut parts = vec![left.root];
        while level_of(&self.next.token) == Some(level) {
            self.advance()?;
            let start = self.next.start;
            let part = self.tree(level.above(), depth + 1)?;
            self.condition(&part, start)?;
            height = height.max(part.height);
            parts.push(part.root);
        }
        let root = match level {
            Level::And => Expression::All(parts),
            _ => Expression::Any(parts),
        };
        Ok(Tree { root, height: height + 1 })
    }

    fn calculation(
        &mut self,
        left: Tree,
        start: usize,
        level: Level,
        depth: usize,
    ) -> Result<Tree, SelectorError> {
        self.number(&left, start)?;
        let operator = match self.advance()?.token {
            Token::Plus => Operator::Add,
            Token::Minus => Operator::Subtract,
            Token::Times => Operator::Multiply,
            _ => Operator::Divide,
        };
        let start = self.next.start;
        let right = self.tree(level.above(), depth + 1)?;
        self.number(&right, start)?;
        let height = left.height.max(right.height) + 1;
        let root = Expression::Calculate(operator, Box::new([left.root, right.root]));
        Ok(Tree { root, height })
    }

    /// Everything of the level of comparisons; `left` begins at byte `start`.
    fn comparison(
        &mut self,
        left: Tree,
        start: usize,
        depth: usize,
    ) -> Result<Tree, SelectorError> {
        let comparison = match self.advance()?.token {
            Token::Equal => Comparison::Equal,
            Token::NotEqual => Comparison::NotEqual,
            Token::Less => Comparison::Less,
            Token::LessOrEqual => Comparison::LessOrEqual,
            Token::Greater => Comparison::Greater,
            Token::GreaterOrEqual => Comparison::GreaterOrEqual,
            Token::Is => {
                let not = self.take(Token::Not)?;
                self.require(Token::Null, if not { "NULL" } else { "NULL or NOT NULL" })?;
                let root = Expression::IsNull(Box::new(left.root));
                return Ok(negated(Tree { root, height: left.height + 1 }, not));
            }
            Token::Not => {
                let lexeme = self.advance()?;
                let tree = match lexeme.token {
                    Token::Like => self.like(left, start)?,
                    Token::In => self.list(left, depth)?,
                    Token::Between => self.between(left, depth)?,
                    _ => {
                        let expected = "LIKE, IN or BETWEEN behind NOT";
                        return Err(self.expected(expected, lexeme.start, lexeme.end));
                    }
                };
                return Ok(negated(tree, true));
            }
            Token::Like => return self.like(left, start),
            Token::In => return self.list(left, depth),
            _ => return self.between(left, depth),
        };
        let right = self.tree(Level::Sum, depth + 1)?;
        let height = left.height.max(right.height) + 1;
        let root = Expression::Compare(comparison, Box::new([left.root, right.root]));
        Ok(Tree { root, height })
    }

    fn like(&mut self, value: Tree, start: usize) -> Result<Tree, SelectorError> {
        if !matches!(value.root.kind(), Kind::Text | Kind::Open) {
            return Err(self.expected("text in front of LIKE", start, self.next.start));
        }
        let pattern = self.advance()?;
        let Token::Text(text) = pattern.token else {
            return Err(self.expected("a pattern in '", pattern.start, pattern.end));
        };
        let escape = if self.take(Token::Escape)? { Some(self.escape()?) } else { None };
        let pattern = Pattern::new(&text, escape)
            .map_err(|error| SelectorError::new(pattern.start, error.reason()))?;
        let root = Expression::Like(Box::new(value.root), pattern);
        Ok(Tree { root, height: value.height + 1 })
    }

    fn escape(&mut self) -> Result<char, SelectorError> {
        let lexeme = self.advance()?;
        if let Token::Text(text) = &lexeme.token {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some('%' | '_'), None) => {}
                (Some(escape), None) => return Ok(escape),
                _ => {}
            }
        }
        Err(self.expected("one character in ', neither % nor _", lexeme.start, lexeme.end))
    }

    fn list(&mut self, value: Tree, depth: usize) -> Result<Tree, SelectorError> {
        self.require(Token::Open, "( behind IN")?;
        let mut list = Vec::new();
        let mut height = value.height;
        loop {
            let element = self.tree(Level::Sum, depth + 1)?;
            height = height.max(element.height);
            list.push(element.root);
            if !self.take(Token::Comma)? {
                break;
            }
        }
        self.require(Token::Close, ", or )")?;
        Ok(Tree { root: Expression::In(Box::new(value.root), list), height: height + 1 })
    }

    fn between(&mut self, value: Tree, depth: usize) -> Result<Tree, SelectorError> {
        let least = self.tree(Level::Sum, depth + 1)?;
        self.require(Token::And, "AND between the limits of BETWEEN")?;
        let greatest = self.tree(Level::Sum, depth + 1)?;
        let height = value.height.max(least.height).max(greatest.height) + 1;
        let root = Expression::Between(Box::new([value.root, least.root, greatest.root]));
        Ok(Tree { root, height })
    }

    /// Takes the next word and looks at the one behind it.
    fn advance(&mut self) -> Result<Lexeme<'a>, SelectorError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, token: Token<'_>) -> Result<bool, SelectorError> {
        let there = self.next.token == token;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn require(&mut self, token: Token<'_>, name: &str) -> Result<(), SelectorError> {
        if self.take(token)? {
            return Ok(());
        }
        Err(self.expected(name, self.next.start, self.next.end))
    }

    /// Refuses what cannot be true or false.
    fn condition(&self, tree: &Tree, start: usize) -> Result<(), SelectorError> {
        match tree.root.kind() {
            Kind::Condition | Kind::Open => Ok(()),
            Kind::Number | Kind::Text => Err(self.expected("a condition", start, self.next.start)),
        }
    }

    /// Refuses what cannot be calculated with.
    fn number(&self, tree: &Tree, start: usize) -> Result<(), SelectorError> {
        match tree.root.kind() {
            Kind::Number | Kind::Open => Ok(()),
            Kind::Condition | Kind::Text => Err(self.expected("a number", start, self.next.start)),
        }
    }

    fn expected(&self, expected: &str, start: usize, end: usize) -> SelectorError {
        SelectorError::expected(start, expected, &self.text[start..end])
    }

    fn too_deep(&self) -> SelectorError {
        let reason = format!("a selector may be {MAX_DEPTH} operators deep");
        SelectorError::new(self.next.start, reason)
    }
}

/// How strongly a word binds that stands behind an operand, if it is an operator.
fn level_of(token: &Token<'_>) -> Option<Level> {
    Some(match token {
        Token::Or => Level::Or,
        Token::And => Level::And,
        Token::Equal
        | Token::NotEqual
        | Token::Less
        | Token::LessOrEqual
        | Token::Greater
        | Token::GreaterOrEqual
        | Token::Is
        | Token::Not
        | Token::Like
        | Token::In
        | Token::Between => Level::Compare,
        Token::Plus | Token::Minus => Level::Sum,
        Token::Times | Token::Over => Level::Product,
        _ => return None,
    })
}

fn literal(number: Number, negative: bool, start: usize) -> Result<Literal, SelectorError> {
    match number {
        Number::Approximate(value) => Ok(Literal::Float(if negative { -value } else { value })),
        Number::Exact { magnitude, decimal } => Number::exact(magnitude, decimal, negative)
            .map(Literal::Int)
            .ok_or_else(|| SelectorError::new(start, TOO_LARGE)),
    }
}

fn negated(tree: Tree, not: bool) -> Tree {
    if !not {
        return tree;
    }
    Tree { height: tree.height + 1, root: Expression::Not(Box::new(tree.root)) }
}

fn no_such_field(name: &str, start: usize) -> SelectorError {
    SelectorError::expected(start, "the name of a field behind amqp.", name)
}

/// How long a selector may be.
pub(super) const MAX_BYTES: usize = 16 * 1024;
/// How deep operators and parentheses may nest.
pub(super) const MAX_DEPTH: usize = 64;
/// How many names and values there may be.
pub(super) const MAX_TERMS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Expression {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).unwrap()
    }

    fn error(text: &str) -> SelectorError {
        match parse(text) {
            Err(error) => error,
            Ok(tree) => panic!("{text:?} is {tree:?}"),
        }
    }

    #[test]
    fn operators_bind_as_in_sql() {
        let same = [
            ("a OR b AND c", "a OR (b AND c)"),
            ("a AND b OR c", "(a AND b) OR c"),
            ("NOT a AND b", "(NOT a) AND b"),
            ("NOT a = b OR c", "(NOT (a = b)) OR c"),
            ("a = b + c * d", "a = (b + (c * d))"),
            ("a - b - c = d", "((a - b) - c) = d"),
            ("a / b * c = d", "((a / b) * c) = d"),
            ("-a * b + c = d", "(((-a) * b) + c) = d"),
            ("a - -b = +c", "(a - (-b)) = c"),
            ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
            ("a + 1 IS NULL AND b", "((a + 1) IS NULL) AND b"),
            ("a IN (1, b + 2) OR c", "(a IN (1, (b + 2))) OR c"),
            ("(((a))) <> (((b)))", "a != b"),
            ("a=1 and(b=2)", "(a = 1) AND (b = 2)"),
        ];
        for (text, explicit) in same {
            assert_eq!(tree(text), tree(explicit), "{text}");
        }
    }

    #[test]
    fn not_in_front_of_a_comparison_and_in_it_say_the_same() {
        // QPID-8656: NOT was taken together with the wrong part.
        let like = tree("NOT (a LIKE 'x%')");
        assert_eq!(tree("a NOT LIKE 'x%'"), like);
        assert_eq!(tree("NOT a LIKE 'x%'"), like);
        assert_eq!(tree("NOT a IN ('x')"), tree("a NOT IN ('x')"));
        assert_eq!(tree("NOT a BETWEEN 1 AND 2"), tree("a NOT BETWEEN 1 AND 2"));
        assert_eq!(tree("NOT a IS NULL"), tree("a IS NOT NULL"));
        assert_eq!(tree("NOT a NOT LIKE 'x%'"), tree("NOT (NOT (a LIKE 'x%'))"));
    }

    #[test]
    fn a_blank_selector_is_none() {
        for text in ["", " ", "\t\r\n  ", "\u{a0}"] {
            assert_eq!(parse(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn all_of_a_selector_has_to_be_one() {
        let broken = [
            ("a = 1 b", 6, "AND, OR or the end"),
            ("a = 1)", 5, "AND, OR or the end"),
            ("a = 1 = 2", 6, "AND, OR or the end"),
            ("NOT a = 1 = 2", 10, "AND, OR or the end"),
            ("a AND b = 1 = 2", 12, "AND, OR or the end"),
            ("a IS NULL + 1", 10, "AND, OR or the end"),
            ("a = 1 AND", 9, "a name or a value"),
            ("a = NOT b", 4, "a name or a value"),
            ("AND a", 0, "a name or a value"),
            ("a = NULL", 4, "a name or a value"),
            ("a = ", 4, "a name or a value"),
            ("(a = 1", 6, "AND, OR or )"),
            ("a NOT 1", 6, "LIKE, IN or BETWEEN behind NOT"),
            ("a NOT", 5, "LIKE, IN or BETWEEN behind NOT"),
            ("a IS 1", 5, "NULL or NOT NULL"),
            ("a IS NOT 1", 9, "NULL"),
            ("a LIKE b", 7, "a pattern in '"),
            ("a LIKE 'x' ESCAPE 'ab'", 18, "one character in ', neither % nor _"),
            ("a LIKE 'x' ESCAPE '%'", 18, "one character in ', neither % nor _"),
            ("a LIKE 'x' ESCAPE", 17, "one character in ', neither % nor _"),
            ("a IN 1", 5, "( behind IN"),
            ("a IN ()", 6, "a name or a value"),
            ("a IN (1 2)", 8, ", or )"),
            ("a BETWEEN 1 OR 2", 12, "AND between the limits of BETWEEN"),
            ("a = 08", 4, "a number"),
            ("amqp.colour = 1", 0, "the name of a field behind amqp."),
        ];
        for (text, offset, expected) in broken {
            let error = error(text);
            assert_eq!(error.offset(), offset, "{text}: {error}");
            let expected = format!("expected {expected}, found ");
            assert!(error.reason().starts_with(&expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_true_or_false_is_no_condition() {
        for (text, offset) in [
            ("5", 0),
            ("a + 1", 0),
            ("'a'", 0),
            ("a = 1 AND 5", 10),
            ("'x' OR a", 0),
            ("NOT 5", 4),
            ("NOT (a + b)", 4),
        ] {
            let error = error(text);
            assert_eq!(error.offset(), offset, "{text}: {error}");
            assert!(error.reason().starts_with("expected a condition"), "{text}: {error}");
        }
        for text in ["a", "TRUE", "NOT a", "a AND TRUE", "(a = 1) = b"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_calculated_with() {
        for text in ["a + 'x' = 1", "-'x' = 1", "a * TRUE = 1", "+(a = 1) = 1", "(a = 1) + 1 = 2"] {
            assert!(error(text).reason().starts_with("expected a number"), "{text}");
        }
        assert!(error("5 LIKE 'x'").reason().starts_with("expected text in front of LIKE"));
    }

    #[test]
    fn a_selector_has_a_greatest_length_depth_and_number_of_terms() {
        let long = format!("a = '{}'", "x".repeat(MAX_BYTES));
        assert!(error(&long).reason().contains("bytes"));
        let deepest = "(".repeat(MAX_DEPTH) + "a" + &")".repeat(MAX_DEPTH);
        assert_eq!(tree(&deepest), tree("a"));
        let too_deep = [
            "(".repeat(MAX_DEPTH + 1) + "a" + &")".repeat(MAX_DEPTH + 1),
            "(".repeat(MAX_BYTES),
            "NOT ".repeat(MAX_DEPTH + 1) + "a",
            "- ".repeat(MAX_DEPTH + 1) + "a = 1",
            "1".to_owned() + &"+1".repeat(MAX_DEPTH + 1) + " = a",
            "a IN ((".repeat(MAX_DEPTH),
        ];
        for text in too_deep {
            assert!(error(&text).reason().contains("operators deep"), "{}", &text[..40]);
        }
        let numbers = |count| format!("a IN ({})", vec!["1"; count].join(","));
        assert!(parse(&numbers(MAX_TERMS - 1)).is_ok());
        assert!(error(&numbers(MAX_TERMS)).reason().contains("names and values"));
        let wide = vec!["a"; MAX_TERMS].join(" AND ");
        assert!(parse(&wide).is_ok(), "a row of conditions is not deep");
    }
}
