//! Selectors and filters against encoded messages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod expression;
mod names;
mod random;
mod stories;
mod support;
