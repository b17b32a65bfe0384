//! What the kinds of queues cost beside the plain one: `cargo bench -p mochila-broker --bench kinds`.
//!
//! In turns, so that what else the machine does hits all alike. An argument chooses the rows that
//! have it in their names: `-- priorities`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use mochila_broker::settings::LimitPolicy;
use mochila_broker::{
    BatchBuilder, Broker, BrokerSettings, ConsumerId, ConsumerOptions, MessageMeta, QueueSettings,
    SharedQueue, TakeLimit, Taken, Wake, Waker,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Message, Now, Sections};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 300;
const NOW: Now = Now::new(1_000, 1_700_000_000_000);
const BATCH: usize = 100;
const KEPT: usize = 10_000;

fn main() {
    let plain = QueueSettings::default;
    let levels = || QueueSettings { priorities: Some(10), ..plain() };
    let ring = || QueueSettings {
        max_count: Some(KEPT as u64),
        limit_policy: LimitPolicy::Ring,
        ..plain()
    };
    let values = || QueueSettings { last_value_key: Some("key".into()), ..plain() };
    let fair = || QueueSettings { fairshare: Some(5), ..levels() };
    let backlog = 100_000;
    let asked = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_asked = |what: &str| asked.as_deref().is_none_or(|asked| what.contains(asked));
    let mut rows = vec![
        Row::new("plain", Bench::new(plain(), same), 0),
        Row::new("priorities, all alike", Bench::new(levels(), same), 0),
        Row::new("priorities, two in turn", Bench::new(levels(), two), 0),
        Row::new("priorities, ten at random", Bench::new(levels(), any), 0),
        Row::new("ten at random, with turns", Bench::new(fair(), any), 0),
        Row::new("ring with room", Bench::new(ring(), same), 0),
        Row::new("last values, keys all different", Bench::new(values(), same), 0),
        Row::new("plain behind 100,000", Bench::new(plain(), same), backlog),
        Row::new("ten at random behind 100,000", Bench::new(levels(), any), backlog),
    ];
    rows.retain(|row| is_asked(row.what));
    println!("{:<44} {:>10}", "300 bytes, enqueue, take and accept 100", "ns each");
    for _ in 0..7 {
        rows.iter_mut().for_each(Row::measure);
    }
    for row in &rows {
        println!("{:<44} {:>10.1}", row.what, row.best.as_nanos() as f64 / 1_000.0);
    }
    println!("{:<44} {:>10}", "enqueue alone, what is too much is dropped", "ns each");
    let mut full = vec![
        ("full ring", Bench::new(ring(), same)),
        (
            "full ring with ten priorities",
            Bench::new(
                QueueSettings {
                    max_count: Some(KEPT as u64),
                    limit_policy: LimitPolicy::Ring,
                    ..levels()
                },
                any,
            ),
        ),
        ("last values, each of 700 keys again and again", Bench::new(values(), same)),
    ];
    full.retain(|(what, _)| is_asked(what));
    for (what, bench) in &mut full {
        bench.fill(KEPT);
        let best = (0..7).map(|_| bench.enqueues()).min().expect("there are rounds");
        println!("{what:<44} {:>10.1}", best.as_nanos() as f64 / 1_000.0);
    }
}

/// Everything has the usual priority.
fn same(_: usize) -> u8 {
    4
}

fn two(number: usize) -> u8 {
    if number.is_multiple_of(2) { 3 } else { 7 }
}

/// Something that looks like chance and is the same each time.
fn any(number: usize) -> u8 {
    ((number as u64).wrapping_mul(6_364_136_223_846_793_005) >> 33) as u8 % 10
}

struct Row {
    what: &'static str,
    bench: Bench,
    best: Duration,
}

impl Row {
    fn new(what: &'static str, mut bench: Bench, backlog: usize) -> Row {
        bench.fill(backlog);
        Row { what, bench, best: Duration::MAX }
    }

    fn measure(&mut self) {
        self.best = self.best.min(self.bench.cycles());
    }
}

struct NoBell;

impl Wake for NoBell {
    fn wake(&self, _key: u32) {}
}

struct Bench {
    broker: Arc<Broker>,
    queue: Arc<SharedQueue>,
    consumer: ConsumerId,
    builder: BatchBuilder,
    taken: Taken,
    positions: Vec<u64>,
    buffer: Vec<u8>,
    messages: Vec<(Range<usize>, Sections, MessageMeta)>,
    next: usize,
}

impl Bench {
    fn new(settings: QueueSettings, priority: fn(usize) -> u8) -> Bench {
        let broker = Broker::new(BrokerSettings::default());
        let settings = QueueSettings { max_bytes: Some(0), ..settings };
        let queue = broker.create("q", settings).expect("the name is free");
        let options = ConsumerOptions::new(Waker::new(Arc::new(NoBell), 0));
        let consumer = queue.subscribe(NOW, options).expect("the queue is open");
        let mut buffer = Vec::new();
        let mut messages = Vec::new();
        for number in 0..700 {
            let mut message = Message::of_data(vec![b'x'; BODY_BYTES]);
            message.header_mut().priority = priority(number);
            message.set_application_property("key", number as u64);
            let encoded = message.to_bytes();
            let sections = scan(&encoded, &Limits::DEFAULT).expect("it has been encoded here");
            let meta = MessageMeta::read(&sections, &encoded);
            buffer.extend_from_slice(&[0; 28]);
            messages.push((buffer.len()..buffer.len() + encoded.len(), sections, meta));
            buffer.extend_from_slice(&encoded);
        }
        Bench {
            broker,
            queue,
            consumer,
            builder: BatchBuilder::new(),
            taken: Taken::new(),
            positions: Vec::new(),
            buffer,
            messages,
            next: 0,
        }
    }

    fn fill(&mut self, messages: usize) {
        (0..messages / BATCH).for_each(|_| self.enqueue());
    }

    /// The cost of a thousand messages.
    fn cycles(&mut self) -> Duration {
        const ROUNDS: usize = 1_000;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            self.enqueue();
            self.take();
            self.queue.accept(NOW, self.consumer, &self.positions).perform();
        }
        start.elapsed() * 1_000 / (ROUNDS * BATCH) as u32
    }

    fn enqueues(&mut self) -> Duration {
        const ROUNDS: usize = 1_000;
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| self.enqueue());
        start.elapsed() * 1_000 / (ROUNDS * BATCH) as u32
    }

    fn enqueue(&mut self) {
        let first = self.next;
        self.next = (first + BATCH) % self.messages.len();
        for (range, sections, meta) in &self.messages[first..first + BATCH] {
            self.builder.push(range.clone(), sections, *meta);
        }
        let batch = self.builder.finish(&self.buffer, self.broker.budget()).expect("no limit");
        self.queue.enqueue(NOW, batch).1.perform();
    }

    fn take(&mut self) {
        let limit = TakeLimit { messages: BATCH as u32, bytes: usize::MAX };
        self.queue.take(NOW, self.consumer, limit, &mut self.taken).1.perform();
        self.positions.clear();
        self.positions.extend(self.taken.deliveries().iter().map(|delivery| delivery.position));
        assert_eq!(self.positions.len(), BATCH);
        self.taken.clear();
    }
}
