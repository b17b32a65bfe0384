//! Chores of this repository: `cargo xtask tidy`.

fn main() {}
