//! Authentication before the connection opens (part 5, 5.3).

mod credentials;
mod mechanism;
pub(crate) mod plain;

pub use credentials::Credentials;
pub use mechanism::Mechanism;
