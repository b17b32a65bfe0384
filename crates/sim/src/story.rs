//! Playing stories from seeds.

use crate::ledger::Tally;

/// Something that happens in a simulated world, differently with every seed.
#[derive(Clone, Copy)]
pub struct Story {
    /// What it says must hold.
    pub name: &'static str,
    /// Plays it; whatever is wrong is a panic.
    pub tell: fn(u64) -> Tally,
}

/// Plays a story with so many seeds, or with the one that `SIM_SEED` names; `SIM_SEEDS` says how
/// many to play instead. The seed of one that fails is printed.
pub fn play(story: &Story, seeds: u64) {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SIM_SEED") {
        play_seed(story, seed);
        return;
    }
    for seed in 0..number("SIM_SEEDS").unwrap_or(seeds) {
        play_seed(story, seed);
    }
}

/// Plays a story with one seed, and tells how much has happened.
pub fn play_seed(story: &Story, seed: u64) -> Tally {
    let announcement = Announcement { name: story.name, seed };
    let tally = (story.tell)(seed);
    drop(announcement);
    tally
}

/// Says which story and which seed it was, if it ends in a panic.
struct Announcement {
    name: &'static str,
    seed: u64,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: to see it again, set SIM_SEED={}", self.name, self.seed);
        }
    }
}
