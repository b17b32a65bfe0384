//! What the node logs, which its operators may change.

use std::fmt::Debug;

/// Whoever writes the node's log, and so knows what is logged.
pub trait Logging: Debug + Send + Sync {
    /// The level that is in force, or the levels of parts.
    fn level(&self) -> String;

    /// Puts another level in force.
    ///
    /// # Errors
    /// If it cannot be read: a sentence for whoever asked.
    fn set_level(&self, level: &str) -> Result<(), String>;
}
