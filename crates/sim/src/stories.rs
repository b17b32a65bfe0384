//! What happens in simulated worlds.

mod everything;
mod limits;
mod lives;
mod operators;
mod outcomes;
mod passage;
mod trouble;

use crate::{Story, Tally, World};

/// All stories, and how many seeds of each are played by the tests.
pub const ALL: &[(Story, u64)] = &[
    (passage::SIZES, 100),
    (passage::SMALL_WINDOWS, 60),
    (passage::RELAY, 60),
    (passage::DRAINS, 60),
    (passage::BROWSERS, 60),
    (outcomes::MOODS, 100),
    (outcomes::KEEPERS, 60),
    (trouble::BROKEN_CONNECTIONS, 60),
    (trouble::SILENCE, 60),
    (trouble::STALLS, 60),
    (trouble::ABORTS, 60),
    (trouble::WRONG_PASSWORDS, 40),
    (limits::FULL_QUEUES, 60),
    (limits::MEMORY, 60),
    (limits::EXPIRY, 60),
    (limits::BAD_DISK, 40),
    (operators::CHANGES, 60),
    (lives::DYNAMIC_QUEUES, 60),
    (lives::SHORT_LIVED_QUEUES, 60),
    (everything::AT_ONCE, 60),
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
