/// A small seeded generator (splitmix64): the same seed gives the same run, and a test that fails
/// prints its seed.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// A generator that starts at a seed.
    pub fn new(seed: u64) -> Random {
        Random { seed, state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next number, as 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number from 0 up to but not including `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }

    /// A number from `least` up to and including `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next_u64() % (most - least).saturating_add(1)
    }

    /// True so many times in a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent as usize
    }

    /// One of several things.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the random seed was {}", self.seed);
        }
    }
}
