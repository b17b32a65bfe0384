//! Runs the target `section` of `mochila_sim::fuzz`.
#![no_main]

mochila_fuzz::target!("section");
