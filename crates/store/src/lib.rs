//! Spill files for messages too large to stay in memory.

mod spill;

pub use spill::{SpillDirectory, SpillFile, Spilled};
