//! What all fuzz targets have in common.

use std::sync::OnceLock;

use mochila_engine::pair::Random;
use mochila_sim::fuzz::{self, Target};

pub use libfuzzer_sys;

/// Makes a fuzz target of the one with this name.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::run($name, input));
        $crate::libfuzzer_sys::fuzz_mutator!(|input: &mut [u8],
                                              len: usize,
                                              most: usize,
                                              seed: u32| {
            $crate::mutate($name, input, len, most, seed)
        });
    };
}

/// Runs a target.
pub fn run(name: &str, input: &[u8]) {
    static TARGET: OnceLock<Target> = OnceLock::new();
    (TARGET.get_or_init(|| fuzz::target(name)).run)(input);
}

/// Breaks an input: as peers do, or as the fuzzer does. Returns how long it is now.
pub fn mutate(name: &str, input: &mut [u8], len: usize, most: usize, seed: u32) -> usize {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let mut random = Random::new(u64::from(seed));
    if random.chance(50) {
        return libfuzzer_sys::fuzzer_mutate(input, len, most);
    }
    let corpus = CORPUS.get_or_init(|| (fuzz::target(name).corpus)());
    let mut bytes = input[..len].to_vec();
    fuzz::mutate(&mut bytes, random.pick(corpus), &mut random);
    bytes.truncate(most);
    input[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}
