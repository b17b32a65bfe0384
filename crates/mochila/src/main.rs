//! The Mochila message broker, router and their tools: one binary.

fn main() {}
