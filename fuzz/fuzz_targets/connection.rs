//! Runs the target `connection` of `mochila_sim::fuzz`.
#![no_main]

mochila_fuzz::target!("connection");
