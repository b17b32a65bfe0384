//! The entity table that $management and the tools read.
