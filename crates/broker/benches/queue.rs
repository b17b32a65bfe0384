//! What a message costs in a queue, in time and in memory: `cargo bench -p mochila-broker`.
//!
//! One thread, no sockets: the queue's own part of the cost of a message. Figures depend on the
//! machine; what must hold anywhere is that they do not grow with the backlog or with the number
//! of unsettled messages.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use mochila_broker::{
    Added, BatchBuilder, Broker, BrokerSettings, ConsumerId, ConsumerOptions, MessageMeta, Origin,
    QueueSettings, SharedQueue, TakeLimit, Taken, Wake, Waker,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Message, Now, Sections};
use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BODY_BYTES: usize = 300;
const NOW: Now = Now::new(1_000, 1_700_000_000_000);

fn main() {
    // First, while the allocator has nothing in reserve.
    if is_wanted("memory") {
        backlog_memory();
    }
    println!("{:<44} {:>10}", "300-byte messages, one thread", "ns each");
    for batch in [1, 10, 100, 700] {
        let what = format!("enqueue, take, accept: batches of {batch}");
        measure(&what, |_| {}, |bench| bench.cycles(batch));
    }
    for batch in [1, 100] {
        let what = format!("the same with a ttl: batches of {batch}");
        if is_wanted(&what) {
            report(&what, Bench::new(Some(60_000)).cycles(batch));
        }
    }
    if is_wanted("encoded") {
        stamps();
    }
    for backlog in [0, 1_000, 100_000, 1_000_000] {
        let what = format!("batches of 100 behind a backlog of {backlog}");
        measure(&what, |bench| bench.fill(backlog), |bench| bench.cycles(100));
        let what = format!("of that, copying behind a backlog of {backlog}");
        if is_wanted(&what) {
            report(&what, copying(backlog));
        }
    }
    for unsettled in [0, 1, 10_000, 1_000_000] {
        let what = format!("batches of 100 beside {unsettled} unsettled");
        let hold = |bench: &mut Bench| {
            bench.fill(unsettled);
            bench.take(unsettled);
        };
        measure(&what, hold, |bench| bench.cycles(100));
    }
    for unsettled in [1_000, 100_000] {
        let what = format!("accept {unsettled} in random order");
        measure(&what, |_| {}, |bench| bench.random_order(unsettled));
    }
}

/// Rows whose names have the argument in them: `cargo bench --bench queue -- backlog`.
fn is_wanted(what: &str) -> bool {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    wanted.is_none_or(|wanted| what.contains(&wanted))
}

fn measure(what: &str, prepare: impl Fn(&mut Bench), cost: impl Fn(&mut Bench) -> Duration) {
    if is_wanted(what) {
        let mut bench = Bench::new(None);
        prepare(&mut bench);
        report(what, cost(&mut bench));
    }
}

/// What it costs by itself to copy a thousand messages to memory that has not been touched since
/// so many messages: a queue cannot do without, and this part of its cost grows with the backlog
/// as far as the caches do not reach.
fn copying(backlog: usize) -> Duration {
    let message = [b'x'; BODY_BYTES + 10];
    let segment = || {
        let mut bytes = Vec::with_capacity(100 * message.len());
        (0..100).for_each(|_| bytes.extend_from_slice(black_box(&message)));
        bytes.into_boxed_slice()
    };
    let mut segments: VecDeque<Box<[u8]>> = (0..backlog / 100).map(|_| segment()).collect();
    let rounds = 2_000;
    let mut round = || {
        let start = Instant::now();
        for _ in 0..rounds {
            segments.push_back(segment());
            drop(segments.pop_front());
        }
        start.elapsed() * 1_000 / (rounds * 100)
    };
    (0..7).map(|_| round()).min().expect("there are rounds")
}

/// The annotations that a queue adds, measured with the encoding of the messages that go out. In
/// turns, so that what else the machine does hits all alike.
fn stamps() {
    let settings = |key: Option<&str>, time: bool| QueueSettings {
        sequence_key: key.map(Into::into),
        ingress_timestamp: Some(time),
        ..QueueSettings::default()
    };
    let rows = [
        ("the same, encoded", settings(None, false)),
        ("encoded with a sequence number", settings(Some("seqno"), false)),
        ("encoded with number and time", settings(Some("seqno"), true)),
    ];
    let mut benches = rows.map(|(what, settings)| {
        let mut bench = Bench::of(Broker::new(BrokerSettings::default()), settings, None);
        bench.sends = true;
        bench.builder.set_origin(Origin::new(1, NOW));
        (what, bench, Duration::MAX)
    });
    for _ in 0..3 {
        for (_, bench, best) in &mut benches {
            *best = (*best).min(bench.cycles(100));
        }
    }
    for (what, _, best) in benches {
        report(&format!("{what}: batches of 100"), best);
    }
}

fn report(what: &str, cost: Duration) {
    println!("{what:<44} {:>10.1}", cost.as_nanos() as f64 / 1_000.0);
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
    added: Added,
    output: Vec<u8>,
    sends: bool,
    positions: Vec<u64>,
    buffer: Vec<u8>,
    messages: Vec<Range<usize>>,
    sections: Sections,
    meta: MessageMeta,
}

impl Bench {
    fn new(ttl_ms: Option<u32>) -> Bench {
        let broker = Broker::new(BrokerSettings::default());
        Bench::of(broker, QueueSettings::default(), ttl_ms)
    }

    fn of(broker: Arc<Broker>, settings: QueueSettings, ttl_ms: Option<u32>) -> Bench {
        let settings = QueueSettings { max_bytes: Some(0), ..settings };
        let queue = broker.create("q", settings).expect("the name is free");
        let options = ConsumerOptions::new(Waker::new(Arc::new(NoBell), 0));
        let consumer = queue.subscribe(NOW, options).expect("the queue is open");
        let mut message = Message::of_data(vec![b'x'; BODY_BYTES]);
        if ttl_ms.is_some() {
            message.header_mut().ttl = ttl_ms;
        }
        let encoded = message.to_bytes();
        let sections = scan(&encoded, &Limits::DEFAULT).expect("it has been encoded here");
        let meta = MessageMeta::read(&sections, &encoded);
        // As in a read buffer: messages with the frames' own bytes in between.
        let mut buffer = Vec::new();
        let mut messages = Vec::new();
        for _ in 0..700 {
            buffer.extend_from_slice(&[0; 28]);
            messages.push(buffer.len()..buffer.len() + encoded.len());
            buffer.extend_from_slice(&encoded);
        }
        Bench {
            broker,
            queue,
            consumer,
            builder: BatchBuilder::new(),
            taken: Taken::new(),
            added: Added::new(),
            output: Vec::new(),
            sends: false,
            positions: Vec::new(),
            buffer,
            messages,
            sections,
            meta,
        }
    }

    /// The least cost of a thousand messages that some rounds of so many at a time show.
    fn cycles(&mut self, batch: usize) -> Duration {
        let rounds = 200_000 / batch;
        let round = |bench: &mut Bench| {
            let start = Instant::now();
            for _ in 0..rounds {
                bench.enqueue(batch);
                bench.take(batch);
                bench.accept();
            }
            start.elapsed() * 1_000 / (rounds * batch) as u32
        };
        (0..7).map(|_| round(self)).min().expect("there are rounds")
    }

    /// The cost of accepting a thousand out of so many that are unsettled, in no order.
    fn random_order(&mut self, unsettled: usize) -> Duration {
        self.fill(unsettled);
        self.take(unsettled);
        let mut positions = std::mem::take(&mut self.positions);
        let mut state = 42u64;
        for index in (1..positions.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            positions.swap(index, (state >> 33) as usize % (index + 1));
        }
        let start = Instant::now();
        for chunk in positions.chunks(100) {
            self.queue.accept(NOW, self.consumer, chunk).perform();
        }
        start.elapsed() * 1_000 / unsettled as u32
    }

    fn fill(&mut self, messages: usize) {
        let mut left = messages;
        while left > 0 {
            let batch = left.min(185);
            self.enqueue(batch);
            left -= batch;
        }
    }

    fn enqueue(&mut self, batch: usize) {
        for range in &self.messages[..batch] {
            self.builder.push(range.clone(), &self.sections, self.meta);
        }
        let batch = self.builder.finish(&self.buffer, self.broker.budget()).expect("no limit");
        self.queue.enqueue(NOW, batch).1.perform();
    }

    fn take(&mut self, most: usize) {
        let limit = TakeLimit { messages: most as u32, bytes: usize::MAX };
        self.queue.take(NOW, self.consumer, limit, &mut self.taken).1.perform();
        self.positions.clear();
        self.positions.extend(self.taken.deliveries().iter().map(|delivery| delivery.position));
        assert_eq!(self.positions.len(), most);
        if self.sends {
            self.send();
        }
        self.taken.clear();
    }

    /// Writes what was taken, as to a socket: whatever a patch costs is in it.
    fn send(&mut self) {
        self.output.clear();
        for delivery in self.taken.deliveries() {
            let bytes = self.taken.bytes(delivery);
            let from = self.taken.write_head(delivery, &mut self.added, &mut self.output);
            self.output.extend_from_slice(&bytes[from..]);
        }
    }

    fn accept(&mut self) {
        self.queue.accept(NOW, self.consumer, &self.positions).perform();
    }
}

fn backlog_memory() {
    const MESSAGES: usize = 1_000_000;
    let mut bench = Bench::new(None);
    let before = resident_bytes();
    bench.fill(MESSAGES);
    let full = resident_bytes();
    let payload = bench.queue.statistics().byte_depth;
    let over = (full - before) as f64 - payload as f64;
    println!("{:<44} {:>10.1}", "bytes per message above payload, 1 M backlog", over / 1e6);
    for _ in 0..MESSAGES / 500 {
        bench.take(500);
        bench.accept();
    }
    // The allocator gives back with a delay, when it is used again.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(20));
        bench.cycles(100);
    }
    let drained = resident_bytes().saturating_sub(before);
    println!("{:<44} {:>10.1}", "MB still resident after it was drained", drained as f64 / 1e6);
}

/// What the process has in memory; 0 where there is no /proc.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}
