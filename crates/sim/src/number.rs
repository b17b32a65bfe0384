//! What things of a simulated world are told apart by.

use std::fmt;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($prefix:literal);)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub(crate) struct $name(pub(crate) usize);

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($prefix, " {}"), self.0)
                }
            }
        )+
    };
}

numbers! {
    /// A connection; a client that comes back has a new one.
    ConnectionNo("connection");
    /// A message.
    MessageNo("message");
    /// A sending link, through all its connections.
    SenderNo("sender");
    /// A receiving link, through all its connections.
    ReceiverNo("receiver");
    /// A transaction.
    TransactionNo("transaction");
}
