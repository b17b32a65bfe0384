//! What message groups cost: `cargo bench -p mochila-broker --bench groups`.
//!
//! Each row is a queue with groups and one without, given the same messages in the same order and
//! measured in turn, so that the ratio means something on a noisy machine. One thread, no sockets.
//! What must hold anywhere is that the cost does not grow with the backlog, the number of groups,
//! or of unsettled messages.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

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
const BATCH: usize = 100;
const NOW: Now = Now::new(1_000, 1_700_000_000_000);

fn main() {
    // Part of the name of a row, to see that one alone.
    let only = std::env::args().nth(1).filter(|only| only != "--bench");
    if only.is_none() {
        // First, while the allocator has nothing in reserve.
        memory();
    }
    println!("{:<58} {:>7} {:>7} {:>6}", "300-byte messages, ns each", "plain", "groups", "ratio");
    let row = |what: &str, setup| {
        if only.as_deref().is_none_or(|only| what.contains(only)) {
            row(what, setup);
        }
    };
    row("one consumer, 1 group", Setup { groups: 1, ..USUAL });
    row("one consumer, 100 groups", USUAL);
    row("two consumers, 100 groups", Setup { consumers: 2, ..USUAL });
    row("two consumers, 11 of a group together, 3 interleaved", Setup { consumers: 2, ..QPID });
    row("ten consumers, 1,000 groups", Setup { consumers: 10, groups: 1_000, ..USUAL });
    for backlog in [1_000, 100_000, 1_000_000] {
        row(&format!("backlog {backlog}"), Setup { backlog, ..USUAL });
    }
    for groups in [1, 1_000, 100_000] {
        row(&format!("{groups} groups"), Setup { backlog: 200_000, groups, ..USUAL });
    }
    for groups in [1_000, 100_000] {
        let setup = Setup { blocked: true, backlog: 200_000, groups, ..USUAL };
        row(&format!("{groups} groups, all but one blocked"), setup);
    }
    for unsettled in [1, 10_000] {
        row(&format!("beside {unsettled} unsettled"), Setup { unsettled, ..USUAL });
    }
}

/// What a queue is like that is measured.
#[derive(Clone, Copy)]
struct Setup {
    /// Messages that stay in the queue all the time.
    backlog: usize,
    groups: usize,
    /// So many messages of a group are sent together …
    together: usize,
    /// … between those of so many other groups.
    interleave: usize,
    /// Another consumer holds a message of each group but one, with the backlog behind it.
    blocked: bool,
    /// Messages that the consumer holds besides.
    unsettled: usize,
    consumers: usize,
}

const USUAL: Setup = Setup {
    backlog: 0,
    groups: 100,
    together: 1,
    interleave: 1,
    blocked: false,
    unsettled: 0,
    consumers: 1,
};
/// As the load generator of Qpid sends with `--group-size=11 --group-interleave=3`.
const QPID: Setup = Setup { groups: 1_000_000, together: 11, interleave: 3, ..USUAL };

fn row(what: &str, setup: Setup) {
    let mut plain = Bench::new(setup, false);
    let mut groups = Bench::new(setup, true);
    let (mut least, mut ratios) = ([Duration::MAX; 2], Vec::new());
    for _ in 0..ROUNDS {
        let costs = [plain.round(), groups.round()];
        ratios.push(costs[1].as_nanos() as f64 / costs[0].as_nanos() as f64);
        least = [least[0].min(costs[0]), least[1].min(costs[1])];
    }
    ratios.sort_by(f64::total_cmp);
    let [plain, groups] = least.map(|cost| cost.as_nanos() as f64 / 1_000.0);
    println!("{what:<58} {plain:>7.1} {groups:>7.1} {:>6.2}", ratios[ROUNDS / 2]);
}

struct NoBell;

impl Wake for NoBell {
    fn wake(&self, _key: u32) {}
}

struct Bench {
    setup: Setup,
    broker: Arc<Broker>,
    queue: Arc<SharedQueue>,
    consumers: Vec<ConsumerId>,
    builder: BatchBuilder,
    taken: Taken,
    positions: Vec<u64>,
    encoded: Vec<u8>,
    sections: Sections,
    meta: MessageMeta,
    /// Where the name of the group is, a number of ten digits.
    name: Range<usize>,
    buffer: Vec<u8>,
    sent: usize,
    /// All messages are of group 0 from now on.
    only_first: bool,
}

impl Bench {
    fn new(setup: Setup, grouped: bool) -> Bench {
        let broker = Broker::new(BrokerSettings::default());
        let settings = QueueSettings {
            max_bytes: Some(0),
            shared_groups: grouped,
            group_header_key: grouped.then(|| "GROUP-ID".into()),
            ..QueueSettings::default()
        };
        let queue = broker.create("q", settings).expect("the name is free");
        let subscribe = |key| {
            let options = ConsumerOptions::new(Waker::new(Arc::new(NoBell), key));
            queue.subscribe(NOW, options).expect("the queue is open")
        };
        let consumers = (0..setup.consumers as u32).map(subscribe).collect();
        let blocker = setup.blocked.then(|| subscribe(99));
        let mut message = Message::of_data(vec![b'x'; BODY_BYTES]);
        message.set_application_property("GROUP-ID", format!("{:010}", 0));
        let encoded = message.to_bytes();
        let sections = scan(&encoded, &Limits::DEFAULT).expect("it has been encoded here");
        let meta = MessageMeta::read(&sections, &encoded);
        let start = encoded.windows(10).position(|bytes| bytes == b"0000000000");
        let start = start.expect("the name is in the message");
        let mut bench = Bench {
            setup,
            broker,
            consumers,
            queue,
            builder: BatchBuilder::new(),
            taken: Taken::new(),
            positions: Vec::new(),
            encoded,
            sections,
            meta,
            name: start..start + 10,
            buffer: Vec::new(),
            sent: 0,
            only_first: false,
        };
        bench.prepare(blocker);
        bench
    }

    fn prepare(&mut self, blocker: Option<ConsumerId>) {
        if let Some(blocker) = blocker {
            // One message of each group but the first, and the backlog behind them.
            self.sent = 1;
            while self.sent < self.setup.groups {
                self.enqueue(BATCH.min(self.setup.groups - self.sent));
            }
            while self.take(blocker, 1_000) > 0 {}
            self.queue.idle(NOW, blocker).perform();
            while self.sent < self.setup.groups + self.setup.backlog {
                self.sent += usize::from(self.sent.is_multiple_of(self.setup.groups));
                self.enqueue(1);
            }
            self.only_first = true;
            // Without groups it would be in front.
            let is_grouped = self.queue.settings().shared_groups;
            while !is_grouped && self.take(blocker, 1_000) > 0 {}
            self.queue.idle(NOW, blocker).perform();
            return;
        }
        self.fill(self.setup.unsettled);
        while self.take(self.consumers[0], 1_000) > 0 {}
        self.queue.idle(NOW, self.consumers[0]).perform();
        self.fill(self.setup.backlog);
    }

    fn fill(&mut self, messages: usize) {
        let end = self.sent + messages;
        while self.sent < end {
            self.enqueue(BATCH.min(end - self.sent));
        }
    }

    /// The cost of a thousand messages that go through.
    fn round(&mut self) -> Duration {
        let mut cost = Duration::ZERO;
        for _ in 0..MESSAGES / BATCH {
            self.load(BATCH);
            let start = Instant::now();
            self.enqueue_loaded(BATCH);
            let mut left = BATCH;
            while left > 0 {
                for index in 0..self.consumers.len() {
                    let consumer = self.consumers[index];
                    left -= self.take(consumer, left.min(BATCH / self.consumers.len()));
                    self.queue.accept(NOW, consumer, &self.positions).perform();
                }
            }
            cost += start.elapsed();
        }
        cost * 1_000 / MESSAGES as u32
    }

    fn enqueue(&mut self, messages: usize) {
        self.load(messages);
        self.enqueue_loaded(messages);
    }

    /// Puts messages into the read buffer, with the frames' own bytes in between.
    fn load(&mut self, messages: usize) {
        self.buffer.clear();
        for _ in 0..messages {
            let Setup { groups, together, interleave, .. } = self.setup;
            let block = self.sent / (together * interleave);
            let group = (block * interleave + self.sent % interleave) % groups;
            let group = if self.only_first { 0 } else { group };
            self.buffer.extend_from_slice(&[0; FRAME]);
            let start = self.buffer.len();
            self.buffer.extend_from_slice(&self.encoded);
            let mut number = group;
            for at in self.name.clone().rev() {
                self.buffer[start + at] = b'0' + (number % 10) as u8;
                number /= 10;
            }
            self.sent += 1;
        }
    }

    fn enqueue_loaded(&mut self, messages: usize) {
        let len = FRAME + self.encoded.len();
        for index in 0..messages {
            let range = index * len + FRAME..(index + 1) * len;
            self.builder.push(range, &self.sections, self.meta);
        }
        let batch = self.builder.finish(&self.buffer, self.broker.budget()).expect("no limit");
        self.queue.enqueue(NOW, batch).1.perform();
    }

    fn take(&mut self, consumer: ConsumerId, most: usize) -> usize {
        let limit = TakeLimit { messages: most as u32, bytes: usize::MAX };
        self.queue.take(NOW, consumer, limit, &mut self.taken).1.perform();
        self.positions.clear();
        self.positions.extend(self.taken.deliveries().iter().map(|delivery| delivery.position));
        self.taken.clear();
        self.positions.len()
    }
}

/// What a queued message takes beyond its bytes.
fn memory() {
    const MESSAGES: usize = 1_000_000;
    for (what, grouped, groups) in [
        ("without groups", false, 1),
        ("1,000 groups", true, 1_000),
        ("1 M groups", true, MESSAGES),
    ] {
        let mut bench = Bench::new(Setup { groups, ..USUAL }, grouped);
        let before = resident_bytes();
        bench.fill(MESSAGES);
        let payload = MESSAGES * bench.encoded.len();
        let over = (resident_bytes() - before) as f64 - payload as f64;
        println!("bytes per message above payload, 1 M, {what:<20} {:>6.1}", over / 1e6);
        std::mem::forget(bench);
    }
}

/// What the process has in memory; 0 where there is no /proc.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

/// The bytes of a transfer frame before its payload.
const FRAME: usize = 28;
const ROUNDS: usize = 7;
const MESSAGES: usize = 50_000;
