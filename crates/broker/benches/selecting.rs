//! What it costs that consumers select: `cargo bench -p mochila-broker --bench selecting`.
//!
//! One thread, no sockets: the queue's own part of the cost of a message that is delivered. All
//! messages are enqueued in batches, everybody who is called takes what there is for him and accepts
//! it. What must hold anywhere is that the cost does not grow with a backlog that nobody selects.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use mochila_broker::{
    BatchBuilder, Broker, BrokerSettings, ConsumerId, ConsumerOptions, Filters, MessageMeta,
    QueueSettings, SharedQueue, TakeLimit, Taken, Wake, Waker,
};
use mochila_wire::section::scan;
use mochila_wire::terminus::JMS_SELECTOR;
use mochila_wire::{Encode, Limits, Map, Message, Now, Sections};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW: Now = Now::new(1_000, 1_700_000_000_000);
const BATCH: usize = 100;
const ROUNDS: usize = 1_000;

fn main() {
    println!(
        "{:<56} {:>10} {:>10}",
        "300-byte messages in batches of 100, one thread", "best", "median"
    );
    compare(&[
        ("10 consumers that select nothing", 10, None, 0),
        ("10 that match one message in ten each", 10, Some("kind = 'kind-%'"), 0),
        ("the same, with a longer selector", 10, Some("weight > 5 AND kind = 'kind-%'"), 0),
        ("the same, with patterns", 10, Some("kind LIKE '_ind-%'"), 0),
        ("100 consumers that select nothing", 100, None, 0),
        ("100 that match one message in a hundred each", 100, Some("kind = 'kind-%'"), 0),
    ]);
    compare(&[
        ("10 behind a backlog of 1,000 that nobody selects", 10, Some("kind = 'kind-%'"), 1_000),
        ("10 behind one of 100,000", 10, Some("kind = 'kind-%'"), 100_000),
        ("10 behind one of 1,000,000", 10, Some("kind = 'kind-%'"), 1_000_000),
    ]);
}

/// Rows are measured in turns, so that what else the machine does hits all alike.
fn compare(rows: &[(&str, usize, Option<&str>, usize)]) {
    let bench = |row: &(&str, usize, Option<&str>, usize)| Bench::new(row.1, row.2, row.3);
    let mut benches: Vec<Bench> = rows.iter().map(bench).collect();
    let mut costs = vec![Vec::new(); rows.len()];
    for _ in 0..7 {
        for (bench, costs) in benches.iter_mut().zip(&mut costs) {
            costs.push(bench.rounds());
        }
    }
    for ((what, ..), mut costs) in rows.iter().zip(costs) {
        costs.sort();
        let ns = |cost: Duration| cost.as_nanos() as f64 / (ROUNDS * BATCH) as f64;
        println!("{what:<56} {:>10.1} {:>10.1}", ns(costs[0]), ns(costs[3]));
    }
}

/// Whom the queue has called.
#[derive(Default)]
struct Bell(Mutex<Vec<u32>>);

impl Wake for Bell {
    fn wake(&self, key: u32) {
        self.0.lock().expect("nobody panics").push(key);
    }
}

struct Bench {
    broker: Arc<Broker>,
    queue: Arc<SharedQueue>,
    bell: Arc<Bell>,
    consumers: Vec<ConsumerId>,
    builder: BatchBuilder,
    taken: Taken,
    called: Vec<u32>,
    positions: Vec<u64>,
    buffer: Vec<u8>,
    messages: Vec<(Range<usize>, Sections, MessageMeta)>,
}

impl Bench {
    /// A queue with so many consumers, each with its own selector if they have any, and with
    /// messages that none of them selects.
    fn new(consumers: usize, selector: Option<&str>, backlog: usize) -> Bench {
        let broker = Broker::new(BrokerSettings::default());
        let settings = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
        let queue = broker.create("q", settings).expect("the name is free");
        let bell = Arc::new(Bell::default());
        let subscribe = |key: usize| {
            let waker = Waker::new(Arc::clone(&bell) as _, key as u32);
            let mut options = ConsumerOptions::new(waker);
            let own = |text: &str| selector_of(&text.replace('%', &format!("{key:03}")));
            options.filters = selector.map(own);
            queue.subscribe(NOW, options).expect("the queue is open")
        };
        let consumers: Vec<ConsumerId> = (0..consumers).map(subscribe).collect();
        let mut bench = Bench {
            broker,
            queue: Arc::clone(&queue),
            bell,
            consumers,
            builder: BatchBuilder::new(),
            taken: Taken::new(),
            called: Vec::new(),
            positions: Vec::new(),
            buffer: Vec::new(),
            messages: Vec::new(),
        };
        if backlog > 0 {
            bench.encode(|_| 999);
            (0..backlog / BATCH).for_each(|_| bench.enqueue());
        }
        let kinds = bench.consumers.len();
        bench.encode(|index| index % kinds);
        for key in 0..bench.consumers.len() as u32 {
            bench.serve(key);
        }
        bench
    }

    /// Messages of these kinds, as in a read buffer.
    fn encode(&mut self, kind: impl Fn(usize) -> usize) {
        self.buffer.clear();
        self.messages.clear();
        for index in 0..BATCH {
            let mut message = Message::of_data(vec![b'x'; 260]);
            message.set_application_property("kind", format!("kind-{:03}", kind(index)));
            message.set_application_property("weight", 7);
            let encoded = message.to_bytes();
            let sections = scan(&encoded, &Limits::DEFAULT).expect("it has been encoded here");
            let meta = MessageMeta::read(&sections, &encoded);
            self.buffer.extend_from_slice(&[0; 28]);
            let start = self.buffer.len();
            self.messages.push((start..start + encoded.len(), sections, meta));
            self.buffer.extend_from_slice(&encoded);
        }
    }

    fn rounds(&mut self) -> Duration {
        let before = self.queue.statistics().msg_total_dequeues;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            self.enqueue();
            loop {
                self.called.clear();
                self.called.append(&mut self.bell.0.lock().expect("nobody panics"));
                if self.called.is_empty() {
                    break;
                }
                for index in 0..self.called.len() {
                    self.serve(self.called[index]);
                }
            }
        }
        let cost = start.elapsed();
        let delivered = self.queue.statistics().msg_total_dequeues - before;
        assert_eq!(delivered as usize, ROUNDS * BATCH);
        cost
    }

    fn enqueue(&mut self) {
        for (range, sections, meta) in &self.messages {
            self.builder.push(range.clone(), sections, *meta);
        }
        let batch = self.builder.finish(&self.buffer, self.broker.budget()).expect("no limit");
        self.queue.enqueue(NOW, batch).1.perform();
    }

    /// A consumer that was called takes until it has to wait, and accepts.
    fn serve(&mut self, key: u32) {
        let consumer = self.consumers[key as usize];
        let limit = TakeLimit { messages: 1_000, bytes: usize::MAX };
        loop {
            let (taking, wakeups) = self.queue.take(NOW, consumer, limit, &mut self.taken);
            wakeups.perform();
            self.positions.clear();
            self.positions.extend(self.taken.deliveries().iter().map(|it| it.position));
            self.taken.clear();
            if !self.positions.is_empty() {
                self.queue.accept(NOW, consumer, &self.positions).perform();
            }
            if taking == mochila_broker::Taking::Waiting {
                return;
            }
        }
    }
}

fn selector_of(text: &str) -> Arc<Filters> {
    let set = Map::new().with("s", JMS_SELECTOR.with(text));
    Arc::new(Filters::new(&set).expect("it is right"))
}
