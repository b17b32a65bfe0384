use std::fmt;

use mochila_wire::Symbol;

/// A way to prove who one is (part 5, 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// Nobody in particular (RFC 4505).
    Anonymous,
    /// User and password (RFC 4616).
    Plain,
}

impl Mechanism {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Anonymous => "ANONYMOUS",
            Mechanism::Plain => "PLAIN",
        }
    }

    /// The mechanism of that name, if we know it.
    pub fn from_name(name: &str) -> Option<Mechanism> {
        [Mechanism::Anonymous, Mechanism::Plain].into_iter().find(|known| known.name() == name)
    }

    pub(crate) fn symbol(self) -> Symbol {
        Symbol::from_static(self.name())
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
