//! Spill files for messages too large to stay in memory.
