//! Runs the target `frame` of `mochila_sim::fuzz`.
#![no_main]

mochila_fuzz::target!("frame");
