//! A seed is all that a run depends on.

use mochila_sim::{play_seed, stories};

#[test]
fn the_same_seed_gives_the_same_run() {
    for (story, _) in stories::ALL {
        for seed in 0..3 {
            let (first, second) = (play_seed(story, seed), play_seed(story, seed));
            assert_eq!(first, second, "{} with seed {seed}", story.name);
        }
    }
}
