//! How the values of settings are written.

use std::path::PathBuf;
use std::str::FromStr;

/// A type of value that flags and the configuration file share.
pub(super) trait Value: Sized {
    /// Reads it, or says what is wrong.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it as `read` would accept it; nothing for "not set".
    fn write(&self) -> String;
}

/// A number of bytes, which may be written with a unit (`512MiB`, `100M`).
pub(super) struct Bytes(pub(super) u64);

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" | "1" => Ok(true),
            "no" | "false" | "off" | "0" => Ok(false),
            _ => Err(format!("`{text}` is neither yes nor no")),
        }
    }

    fn write(&self) -> String {
        (if *self { "yes" } else { "no" }).into()
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("the path is empty".into()) } else { Ok(text.into()) }
    }

    fn write(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Value> Value for Option<T> {
    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(String::new, T::write)
    }
}

impl Value for Bytes {
    fn read(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = read_number(number).map_err(|_| not_a_number(text))?;
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(format!("`{unit}` is not a unit; B, K, M, G and T are")),
        };
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is more than 2^64 bytes"))
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Value for $number {
            fn read(text: &str) -> Result<Self, String> {
                read_number(text)
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

fn read_number<T: FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse::<T>().map_err(|error| match error.kind() {
        PosOverflow | NegOverflow => format!("`{text}` is out of range"),
        _ => not_a_number(text),
    })
}

fn not_a_number(text: &str) -> String {
    format!("`{text}` is not a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_have_units_and_must_fit() {
        let read = |text| Bytes::read(text).map(|bytes| bytes.0);
        assert_eq!(read("104857600"), Ok(104_857_600));
        assert_eq!(read("512MiB"), Ok(512 << 20));
        assert_eq!(read("2 G"), Ok(2 << 30));
        assert!(read("17000000T").unwrap_err().contains("more than"));
        assert!(read("5 apples").unwrap_err().contains("not a unit"));
        assert!(read("many").unwrap_err().contains("not a number"));
    }

    #[test]
    fn yes_and_no_have_the_usual_spellings() {
        assert_eq!(bool::read("Yes"), Ok(true));
        assert_eq!(bool::read("0"), Ok(false));
        assert!(bool::read("maybe").is_err());
    }

    #[test]
    fn a_number_that_does_not_fit_is_out_of_range() {
        assert_eq!(u16::read("70000"), Err("`70000` is out of range".into()));
    }
}
