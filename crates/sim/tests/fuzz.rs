//! The fuzz targets with seeds: what a fuzzer runs for days, for a moment in every test run.

use mochila_sim::fuzz;

#[test]
fn frames_that_are_broken_are_read_or_refused() {
    fuzz::play(&fuzz::target("frame"));
}

#[test]
fn messages_that_are_broken_are_read_or_refused() {
    fuzz::play(&fuzz::target("section"));
}

#[test]
fn values_that_are_broken_are_read_or_refused() {
    fuzz::play(&fuzz::target("value"));
}

#[test]
fn an_engine_survives_whatever_a_peer_says_and_says_nothing_but_frames() {
    fuzz::play(&fuzz::target("engine"));
}

#[test]
fn a_broker_survives_whatever_a_peer_says_and_others_do_not_notice() {
    fuzz::play(&fuzz::target("connection"));
}
