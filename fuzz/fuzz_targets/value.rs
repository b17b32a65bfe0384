//! Runs the target `value` of `mochila_sim::fuzz`.
#![no_main]

mochila_fuzz::target!("value");
