//! Runs the target `engine` of `mochila_sim::fuzz`.
#![no_main]

mochila_fuzz::target!("engine");
