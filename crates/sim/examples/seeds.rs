//! Plays all stories, or those whose names contain a word, with many seeds.
//!
//! `cargo run --release -p mochila-sim --example seeds -- [WORD] [FIRST_SEED] [SEEDS]`

use std::time::Instant;

use mochila_sim::{play_seed, stories};

#[allow(clippy::disallowed_methods, reason = "it only tells how long a story takes")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = arguments.first().map_or("", String::as_str);
    let number = |index: usize, usual: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (first, count) = (number(1, 0), number(2, 1_000));
    for (story, _) in stories::ALL.iter().filter(|(story, _)| story.name.contains(word)) {
        let start = Instant::now();
        let mut sum = 0;
        for seed in first..first + count {
            sum += play_seed(story, seed).sent;
        }
        let ms = start.elapsed().as_millis();
        println!("{ms:8} ms {count:6} seeds {sum:9} messages  {}", story.name);
    }
}
