//! Numbers as they are written in a selector: the literals of Java (JLS 3.10.1 and 3.10.2), as JMS
//! wants them.

use super::SelectorError;

/// A number without its sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Without a point or an exponent. Whether it fits a signed long depends on what stands in
    /// front of it: only a negated decimal one reaches the least of them.
    Exact { magnitude: u64, decimal: bool },
    /// With a point, an exponent, or the suffix of a float or double.
    Approximate(f64),
}

impl Number {
    /// Reads the number that begins at byte `start`, where there is a digit, or a point in front
    /// of one. Tells where it ends.
    pub(super) fn read(text: &str, start: usize) -> Result<(Number, usize), SelectorError> {
        let rest = &text[start..];
        let scan = Scan { bytes: rest.as_bytes(), at: 0 };
        let (number, len) = match rest.as_bytes() {
            [b'0', b'x' | b'X', ..] => scan.prefixed(16),
            [b'0', b'b' | b'B', ..] => scan.prefixed(2),
            _ => scan.plain(rest),
        }
        .map_err(|problem| problem.at(text, start))?;
        match rest[len..].chars().next() {
            Some(next) if next.is_alphanumeric() || matches!(next, '_' | '$' | '.') => {
                Err(Problem::Malformed.at(text, start))
            }
            _ => Ok((number, start + len)),
        }
    }

    /// The value of a whole number, with a minus in front of it or not; `None` if it does not fit.
    pub(super) fn exact(magnitude: u64, decimal: bool, negative: bool) -> Option<i64> {
        match (decimal, negative) {
            (true, false) => i64::try_from(magnitude).ok(),
            (true, true) => 0i64.checked_sub_unsigned(magnitude),
            // All 64 bits may be given in hexadecimal, octal and binary, the sign among them.
            (false, false) => Some(magnitude as i64),
            (false, true) => Some((magnitude as i64).wrapping_neg()),
        }
    }
}

/// What is wrong with a number.
enum Problem {
    Malformed,
    TooLarge,
}

impl Problem {
    fn at(self, text: &str, start: usize) -> SelectorError {
        match self {
            Problem::Malformed => SelectorError::expected(start, "a number", &text[start..]),
            Problem::TooLarge => SelectorError::new(start, TOO_LARGE),
        }
    }
}

type Outcome = Result<(Number, usize), Problem>;

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// `0x…` and `0b…`.
    fn prefixed(mut self, radix: u32) -> Outcome {
        self.at = 2;
        let digits = self.digits(radix)?;
        let magnitude = u64::from_str_radix(&digits, radix).map_err(|_| Problem::TooLarge)?;
        self.skip(b"lL");
        Ok((Number::Exact { magnitude, decimal: false }, self.at))
    }

    /// Decimal or octal, or with a point, an exponent or a suffix.
    fn plain(mut self, text: &str) -> Outcome {
        let mut digits = if self.peek() == Some(b'.') { String::new() } else { self.digits(10)? };
        let mut approximate = false;
        if self.skip(b".") {
            approximate = true;
            digits.push('.');
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                digits.push_str(&self.digits(10)?);
            }
        }
        if self.skip(b"eE") {
            approximate = true;
            digits.push('e');
            if self.skip(b"+-") {
                digits.push_str(&text[self.at - 1..self.at]);
            }
            digits.push_str(&self.digits(10)?);
        }
        let single = self.skip(b"fF");
        if single || self.skip(b"dD") || approximate {
            return Ok((Number::Approximate(float(&digits, single)?), self.at));
        }
        let octal = digits.len() > 1 && digits.starts_with('0');
        if octal && digits.contains(['8', '9']) {
            return Err(Problem::Malformed);
        }
        let radix = if octal { 8 } else { 10 };
        let magnitude = u64::from_str_radix(&digits, radix).map_err(|_| Problem::TooLarge)?;
        self.skip(b"lL");
        Ok((Number::Exact { magnitude, decimal: !octal }, self.at))
    }

    /// At least one digit; underscores may stand between digits.
    fn digits(&mut self, radix: u32) -> Result<String, Problem> {
        let digit = |byte: u8| char::from(byte).is_digit(radix);
        let run = self.bytes[self.at..].iter().take_while(|byte| digit(**byte) || **byte == b'_');
        let run = &self.bytes[self.at..self.at + run.count()];
        if !run.first().is_some_and(|byte| digit(*byte)) || run.last() == Some(&b'_') {
            return Err(Problem::Malformed);
        }
        self.at += run.len();
        Ok(run.iter().filter(|byte| **byte != b'_').map(|byte| char::from(*byte)).collect())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Passes over one of these bytes, if one is next.
    fn skip(&mut self, any_of: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| any_of.contains(&byte));
        self.at += usize::from(found);
        found
    }
}

/// A float is rounded to its own precision, so that it equals a float property.
fn float(digits: &str, single: bool) -> Result<f64, Problem> {
    let value = if single { digits.parse::<f32>().map(f64::from) } else { digits.parse::<f64>() };
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(Problem::TooLarge),
        Err(_) => Err(Problem::Malformed),
    }
}

pub(super) const TOO_LARGE: &str = "this number is too large";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Number, SelectorError> {
        let (number, end) = Number::read(text, 0)?;
        assert_eq!(end, text.len(), "{text}");
        Ok(number)
    }

    fn exact(text: &str) -> Option<i64> {
        match read(text) {
            Ok(Number::Exact { magnitude, decimal }) => Number::exact(magnitude, decimal, false),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn whole_numbers_are_those_of_java() {
        let cases = [
            ("0", 0),
            ("57", 57),
            ("57L", 57),
            ("57l", 57),
            ("1_000_000", 1_000_000),
            ("017", 15),
            ("0_17L", 15),
            ("0x1F", 31),
            ("0XffL", 255),
            ("0b101", 5),
            ("9223372036854775807", i64::MAX),
            ("0xFFFFFFFFFFFFFFFF", -1),
            ("01777777777777777777777", -1),
        ];
        for (text, value) in cases {
            assert_eq!(exact(text), Some(value), "{text}");
        }
    }

    #[test]
    fn only_a_negated_number_reaches_the_least_long() {
        assert_eq!(exact("9223372036854775808"), None);
        assert_eq!(Number::exact(1 << 63, true, true), Some(i64::MIN));
        assert_eq!(Number::exact((1 << 63) + 1, true, true), None);
    }

    #[test]
    fn a_point_an_exponent_or_a_suffix_makes_a_number_approximate() {
        let cases = [
            ("7.", 7.0),
            (".5", 0.5),
            ("6.25", 6.25),
            ("7E3", 7000.0),
            ("7.e-1", 0.7),
            ("5e+2", 500.0),
            ("1_0.2_5", 10.25),
            ("5f", 5.0),
            ("5D", 5.0),
            ("0.1f", f64::from(0.1f32)),
            ("09.5", 9.5),
        ];
        for (text, value) in cases {
            assert_eq!(read(text), Ok(Number::Approximate(value)), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_number_and_is_none_is_refused() {
        let malformed = [
            "08", "0x", "0xG", "0b2", "5abc", "5_", "5._1", "1e", "1e+", "1..2", "1.2.3", "5LL",
            "5fd", "0x1p3", "5é",
        ];
        for text in malformed {
            let error = Number::read(text, 0).unwrap_err();
            assert!(error.reason().starts_with("expected a number"), "{text}: {error}");
        }
        for text in ["18446744073709551616", "0x10000000000000000", "1e999", "1e39f"] {
            assert_eq!(Number::read(text, 0).unwrap_err().reason(), TOO_LARGE, "{text}");
        }
    }
}
