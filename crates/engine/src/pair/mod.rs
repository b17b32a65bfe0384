//! Two ends of a connection and the virtual world between them, for tests.

mod random;

pub use random::Random;
