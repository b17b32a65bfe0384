use std::borrow::Cow;
use std::fmt;

/// A name from a constrained domain, in ASCII (part 1, 1.6.21).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol(Cow<'static, str>);

impl Symbol {
    /// A symbol known at compile time; costs nothing.
    ///
    /// # Panics
    /// If the name is not ASCII, which a constant finds out while compiling.
    pub const fn from_static(name: &'static str) -> Symbol {
        assert!(name.is_ascii(), "symbols are ASCII");
        Symbol(Cow::Borrowed(name))
    }

    /// A symbol made at run time, if the name is ASCII.
    pub fn new(name: impl Into<String>) -> Result<Symbol, NotAscii> {
        let name = name.into();
        if name.is_ascii() { Ok(Symbol(Cow::Owned(name))) } else { Err(NotAscii) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A symbol from text that the caller has checked to be ASCII.
    pub(crate) fn from_ascii(name: &str) -> Symbol {
        debug_assert!(name.is_ascii());
        Symbol(Cow::Owned(name.to_owned()))
    }
}

/// A name that cannot be a symbol, because it is not ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAscii;

impl fmt::Display for NotAscii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a symbol has to be ASCII")
    }
}

impl std::error::Error for NotAscii {}

impl From<&'static str> for Symbol {
    /// Same as [`Symbol::from_static`].
    fn from(name: &'static str) -> Symbol {
        Symbol::from_static(name)
    }
}

impl AsRef<str> for Symbol {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Symbol {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ":{:?}", &*self.0)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_outside_ascii_is_no_symbol() {
        assert_eq!(Symbol::new("größe"), Err(NotAscii));
        assert_eq!(Symbol::new("size".to_owned()).unwrap(), "size");
    }

    #[test]
    fn a_static_and_an_owned_symbol_of_one_name_are_equal() {
        assert_eq!(Symbol::from_static("queue"), Symbol::new("queue").unwrap());
    }
}
