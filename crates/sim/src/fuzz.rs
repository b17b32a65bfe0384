//! What fuzzers run, as plain functions; and the same with seeds, for tests.
//!
//! A target is a function that takes any bytes and panics where something must not happen. Its
//! corpus is made by code, from things that are valid, so that a fuzzer begins behind the first
//! checks; [`mutate`] breaks them in the ways in which peers do.

mod connection;
mod conversations;
mod delivery;
mod engine;
mod mutation;
mod samples;

use mochila_engine::pair::Random;
use mochila_wire::probe;

pub use mutation::mutate;

/// Something that takes any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// What the fuzz target is called.
    pub name: &'static str,
    /// Runs it; whatever must not happen is a panic.
    pub run: fn(&[u8]),
    /// Makes inputs that are valid.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// How many broken inputs the tests try.
    pub tries: u64,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "frame", run: frame, corpus: samples::frames, tries: 30_000 },
    Target { name: "section", run: section, corpus: samples::messages, tries: 30_000 },
    Target { name: "value", run: value, corpus: samples::values, tries: 50_000 },
    Target { name: "engine", run: engine::run, corpus: conversations::all, tries: 20_000 },
    Target { name: "connection", run: connection::run, corpus: conversations::all, tries: 10_000 },
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    *found.unwrap_or_else(|| panic!("there is no fuzz target named {name}"))
}

/// Runs a target with its corpus, and with broken inputs made from it; `FUZZ_SEED` runs the one that
/// it names, `FUZZ_TRIES` says how many to try. The seed of one that fails is printed.
pub fn play(target: &Target) {
    let corpus = (target.corpus)();
    corpus.iter().for_each(|input| (target.run)(input));
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("FUZZ_SEED") {
        return play_seed(target, &corpus, seed);
    }
    for seed in 0..number("FUZZ_TRIES").unwrap_or(target.tries) {
        play_seed(target, &corpus, seed);
    }
}

/// Runs a target with one broken input.
fn play_seed(target: &Target, corpus: &[Vec<u8>], seed: u64) {
    let announcement = Announcement { name: target.name, seed };
    let mut random = Random::new(seed);
    let mut input = random.pick(corpus).clone();
    for _ in 0..=random.below(5) {
        let other = random.pick(corpus).as_slice();
        mutate(&mut input, other, &mut random);
    }
    (target.run)(&input);
    drop(announcement);
}

/// Says which target and which seed it was, if it ends in a panic.
struct Announcement {
    name: &'static str,
    seed: u64,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: to see it again, set FUZZ_SEED={}", self.name, self.seed);
        }
    }
}

/// Bytes as frames.
fn frame(bytes: &[u8]) {
    probe::frames(bytes);
}

/// Bytes as a message.
fn section(bytes: &[u8]) {
    probe::message(bytes);
}

/// Bytes as a value, and as the body of a frame of either kind.
fn value(bytes: &[u8]) {
    probe::value(bytes);
    probe::performative(bytes);
    probe::sasl(bytes);
}
