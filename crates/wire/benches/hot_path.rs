//! What a message costs in this crate: `cargo bench -p mochila-wire`.
//!
//! Prints nanoseconds per operation, the best and the median of several runs. No timed test: the
//! figures depend on the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use mochila_wire::performative::{Disposition, Flow, Role, Transfer};
use mochila_wire::section::scan;
use mochila_wire::types::{Symbol, Value};
use mochila_wire::{DeliveryState, Encode, HeadPatch, Limits, Message, Performative};
use mochila_wire::{annotation, frame};

const RUNS: usize = 501;
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
    println!("{name:<44} {:8.1} {:8.1}", runs[0], runs[RUNS / 2]);
}

fn message() -> Vec<u8> {
    let mut message = Message::of_value("x".repeat(300));
    message.header_mut().durable = true;
    message.properties_mut().to = Some("examples".into());
    message.set_application_property("sn", 1u32);
    message.to_bytes()
}

fn annotated(annotations: usize) -> Vec<u8> {
    let mut message = Message::decode(&message()).expect("it was just encoded");
    for i in 0..annotations {
        let key = Symbol::new(format!("x-opt-user-{i}")).expect("it is ASCII");
        message.set_message_annotation(key, i as u64);
    }
    message.to_bytes()
}

fn main() {
    println!("{:<44} {:>8} {:>8}", "ns per operation", "best", "median");
    let message = message();
    let head = frame::TransferHead {
        handle: 1,
        delivery_id: Some(1_000_000),
        delivery_tag: &[0, 15, 66, 64],
        ..frame::TransferHead::default()
    };
    let mut out = Vec::with_capacity(1 << 16);
    frame::write_transfer(&mut out, 1, &head, &[&message]);
    let frame = out.clone();
    let body = &frame[frame::HEADER_LEN..];

    measure("frame header", || {
        let _ = black_box(frame::Header::parse_within(black_box(&frame), 65_536));
    });
    measure("transfer decode", || {
        let _ = black_box(Transfer::decode(black_box(body)));
    });
    measure("performative decode (transfer)", || {
        let _ = black_box(Performative::decode(black_box(body)));
    });
    measure("transfer write, 300 B payload", || {
        out.clear();
        frame::write_transfer(black_box(&mut out), 1, black_box(&head), &[black_box(&message)]);
    });
    measure("transfer write, head alone", || {
        out.clear();
        frame::write_transfer(black_box(&mut out), 1, black_box(&head), &[]);
    });

    let disposition = Disposition {
        role: Role::Receiver,
        first: 1_000_000,
        last: Some(1_000_999),
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    };
    let bytes = disposition.to_bytes();
    measure("disposition decode", || {
        let _ = black_box(Performative::decode(black_box(&bytes)));
    });
    measure("disposition write", || {
        out.clear();
        frame::write(black_box(&mut out), 1, black_box(&disposition));
    });
    let flow = Flow {
        next_incoming_id: Some(1_000_000),
        incoming_window: 2048,
        next_outgoing_id: 7,
        outgoing_window: 2048,
        handle: Some(1),
        delivery_count: Some(1_000_000),
        link_credit: Some(1000),
        ..Flow::default()
    };
    let bytes = flow.to_bytes();
    measure("flow decode", || {
        let _ = black_box(Performative::decode(black_box(&bytes)));
    });

    let limits = Limits::DEFAULT;
    measure("section scan, 4 sections", || {
        let _ = black_box(scan(black_box(&message), &limits));
    });
    let sections = scan(&message, &limits).expect("it was just encoded");
    measure("header access", || {
        black_box(sections.header(black_box(&message)));
    });
    measure("application property", || {
        black_box(sections.application_property(black_box(&message), "sn"));
    });
    let added = [(Symbol::from_static("x-opt-sequence"), Value::Ulong(1_000_000))];
    let patch = HeadPatch { annotations: &added, ..HeadPatch::default() };
    for count in [0, 1, 10, 200] {
        let message = annotated(count);
        let sections = scan(&message, &limits).expect("it was just encoded");
        measure(&format!("annotate, {count} annotations there already"), || {
            out.clear();
            black_box(annotation::write_head(
                black_box(&mut out),
                black_box(&message),
                &sections,
                black_box(&patch),
            ));
        });
    }
}
