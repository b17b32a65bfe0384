//! What it costs to ask a message: `cargo bench -p mochila-broker --bench selectors`.
//!
//! Prints nanoseconds per operation, the best and the median of several runs. No timed test: the
//! figures depend on the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use mochila_broker::{Filters, Selector, SelectorInput};
use mochila_wire::terminus::APPLICATION_PROPERTIES_FILTER;
use mochila_wire::{Encode, Limits, Map, Message, section};
use std::hint::black_box;
use std::time::Instant;

const RUNS: usize = 201;
const ITERATIONS: u32 = 5_000;

fn measure(name: &str, mut operation: impl FnMut()) {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ITERATIONS {
                operation();
            }
            start.elapsed().as_nanos() as f64 / f64::from(ITERATIONS)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{name:<64} {:8.1} {:8.1}", runs[0], runs[RUNS / 2]);
}

fn message(others: usize) -> Vec<u8> {
    let mut message = Message::of_value("x".repeat(300));
    message.header_mut().durable = true;
    message.properties_mut().message_id = Some("ID:bench:1".into());
    message.properties_mut().subject = Some("news".into());
    for i in 0..others {
        message.set_application_property(&format!("other{i}"), i as u64);
    }
    message.set_application_property("colour", "red");
    message.set_application_property("weight", 7);
    message.to_bytes()
}

fn ask(what: &str, text: &str, bytes: &[u8], expected: bool) {
    let selector = Selector::new(text).expect("it is right").expect("it is not blank");
    let sections = section::scan(bytes, &Limits::DEFAULT).expect("it was just encoded");
    let input = SelectorInput::of(bytes, &sections);
    assert_eq!(selector.matches(&input), expected, "{text}");
    measure(&format!("{what}{text}"), || {
        black_box(black_box(&selector).matches(black_box(&input)));
    });
}

fn main() {
    println!("{:<64} {:>8} {:>8}", "ns per operation", "best", "median");
    let short = message(0);
    ask("", "colour = 'red' AND weight > 5", &short, true);
    ask("", "colour = 'blue' AND weight > 5", &short, false);
    ask("2 of 10 properties: ", "colour = 'red' AND weight > 5", &message(8), true);
    ask("2 of 100 properties: ", "colour = 'red' AND weight > 5", &message(98), true);
    ask("", "missing = 1", &short, false);
    ask("", "colour LIKE 'r%d'", &short, true);
    ask("", "colour IN ('blue', 'green', 'red', 'yellow')", &short, true);
    ask("", "weight * 2 BETWEEN 10 AND 15", &short, true);
    ask("", "JMSPriority > 5", &short, false);
    ask("", "JMSMessageID = 'ID:bench:1'", &short, true);
    ask("", "amqp.subject = 'news'", &short, true);

    let argument = APPLICATION_PROPERTIES_FILTER.with(Map::new().with("colour", "red"));
    let filters = Filters::new(&Map::new().with("f", argument)).expect("it is right");
    let sections = section::scan(&short, &Limits::DEFAULT).expect("it was just encoded");
    let input = SelectorInput::of(&short, &sections);
    measure("filter: colour = red", || {
        black_box(black_box(&filters).matches(black_box(&input)));
    });
    measure("compile: colour = 'red' AND weight > 5", || {
        let _ = black_box(Selector::new(black_box("colour = 'red' AND weight > 5")));
    });
}
