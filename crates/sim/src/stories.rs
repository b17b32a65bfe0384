//! What happens in simulated worlds.

mod everything;
mod kinds;
mod limits;
mod lives;
mod memory;
mod operators;
mod outcomes;
mod passage;
mod selectors;
mod transactions;
mod trouble;

use crate::{Story, Tally, World};

/// All stories, and how many seeds of each are played by the tests.
pub const ALL: &[(Story, u64)] = &[
    (passage::SIZES, 100),
    (passage::SMALL_WINDOWS, 150),
    (passage::RELAY, 150),
    (passage::DRAINS, 150),
    (passage::BROWSERS, 150),
    (outcomes::MOODS, 150),
    (outcomes::KEEPERS, 200),
    (outcomes::EXCLUSIVE, 200),
    (selectors::SELECTORS, 300),
    (kinds::PRIORITIES, 300),
    (kinds::GROUPS, 300),
    (kinds::LAST_VALUES, 300),
    (kinds::SELECTING, 300),
    (trouble::BROKEN_CONNECTIONS, 150),
    (trouble::SILENCE, 150),
    (trouble::STALLS, 150),
    (trouble::ABORTS, 150),
    (trouble::WRONG_PASSWORDS, 300),
    (limits::FULL_QUEUES, 300),
    (limits::RINGS, 300),
    (memory::MEMORY, 150),
    (memory::CROWD, 30),
    (limits::TOO_LARGE, 60),
    (limits::LEFTOVERS, 15),
    (limits::EXPIRY, 150),
    (limits::BAD_DISK, 150),
    (transactions::ALL_OR_NOTHING, 300),
    (operators::CHANGES, 150),
    (operators::CLOSING, 150),
    (lives::DYNAMIC_QUEUES, 300),
    (lives::SHORT_LIVED_QUEUES, 300),
    (everything::AT_ONCE, 200),
];

/// The story of this name, and how many seeds of it are played by the tests.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> (Story, u64) {
    let found = ALL.iter().find(|(story, _)| story.name == name);
    *found.unwrap_or_else(|| panic!("there is no story named {name}"))
}

/// Lets a story run to its end.
fn told(mut world: World) -> Tally {
    world.run();
    world.finish();
    world.tally()
}
