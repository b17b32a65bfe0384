//! What a message costs at an exchange: `cargo bench -p mochila-broker --bench exchanges`.
//!
//! One thread, no sockets. A message is published, taken, encoded and accepted, with one binding and with a
//! thousand others beside it. Figures depend on the machine; what must hold anywhere is that they do
//! not grow with the number of bindings that do not match.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use mochila_broker::{
    Added, BatchBuilder, Broker, BrokerSettings, ConsumerId, ConsumerOptions, Exchange,
    ExchangeKind, ExchangeSettings, MessageMeta, QueueSettings, Routing, SharedQueue, TakeLimit,
    Taken, Wake, Waker,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message, Now, Sections};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The allocator that the broker uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW: Now = Now::new(1_000, 1_700_000_000_000);
const BATCH: usize = 100;
const MESSAGES: usize = 200_000;

fn main() {
    println!("{:<58} {:>8}", "300-byte messages in batches of 100, one queue", "ns each");
    report("no exchange: the queue itself", Bench::new(Way::Queue, 0, 1).cost());
    for kind in [ExchangeKind::Direct, ExchangeKind::Topic, ExchangeKind::Headers] {
        for others in [0, 999] {
            let what = format!("{kind}, {} bindings, one key", others + 1);
            report(&what, Bench::new(Way::Exchange(kind), others, 1).cost());
        }
    }
    for kind in [ExchangeKind::Direct, ExchangeKind::Topic] {
        let what = format!("{kind}, 1000 bindings, another key with each message");
        report(&what, Bench::new(Way::Exchange(kind), 999, 50).cost());
    }
    report("fanout, 1 binding", Bench::new(Way::Exchange(ExchangeKind::Fanout), 0, 1).cost());
    report("topic, 1 binding, numbered", Bench::new(Way::Numbered, 0, 1).cost());
    for queues in [10, 100] {
        fanout(queues);
    }
    binding();
}

fn report(what: &str, cost: Duration) {
    println!("{what:<58} {:>8.1}", cost.as_nanos() as f64 / 1_000.0);
}

/// Which way messages go.
#[derive(Clone, Copy)]
enum Way {
    Queue,
    Exchange(ExchangeKind),
    Numbered,
}

struct NoBell;

impl Wake for NoBell {
    fn wake(&self, _key: u32) {}
}

struct Bench {
    broker: Arc<Broker>,
    exchange: Option<Arc<Exchange>>,
    queue: Arc<SharedQueue>,
    consumer: ConsumerId,
    builder: BatchBuilder,
    routing: Routing,
    taken: Taken,
    added: Added,
    output: Vec<u8>,
    positions: Vec<u64>,
    buffer: Vec<u8>,
    messages: Vec<(Range<usize>, Sections, MessageMeta)>,
}

impl Bench {
    /// One queue that all messages of so many keys go to, and so many bindings of another one.
    fn new(way: Way, others: usize, keys: usize) -> Bench {
        let broker = Broker::new(BrokerSettings::default());
        let settings = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
        let queue = broker.create("q", settings.clone()).expect("the name is free");
        let other = broker.create("other", settings).expect("the name is free");
        let (kind, sequences) = match way {
            Way::Queue => (None, false),
            Way::Exchange(kind) => (Some(kind), false),
            Way::Numbered => (Some(ExchangeKind::Topic), true),
        };
        let exchange = kind.map(|kind| {
            let settings = ExchangeSettings { kind, sequences, ..ExchangeSettings::default() };
            broker.create_exchange("e", settings).expect("the name is free")
        });
        if let Some(exchange) = &exchange {
            for key in 0..keys {
                bind(exchange, &queue, &format!("a.{key}"), 0);
            }
            for number in 0..others {
                bind(exchange, &other, &format!("b.{number}.*.c"), number + 1);
            }
        }
        let options = ConsumerOptions::new(Waker::new(Arc::new(NoBell), 0));
        let consumer = queue.subscribe(NOW, options).expect("it is there");
        let (buffer, messages) = messages(keys);
        Bench {
            broker,
            exchange,
            queue,
            consumer,
            builder: BatchBuilder::new(),
            routing: Routing::new(),
            taken: Taken::new(),
            added: Added::new(),
            output: Vec::new(),
            positions: Vec::new(),
            buffer,
            messages,
        }
    }

    /// The best of three, for a thousand messages.
    fn cost(&mut self) -> Duration {
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            for _ in 0..MESSAGES / BATCH {
                self.publish();
                self.consume();
            }
            best = best.min(start.elapsed());
        }
        best / (MESSAGES as u32 / 1_000)
    }

    fn publish(&mut self) {
        for (range, sections, meta) in &self.messages {
            self.builder.push(range.clone(), sections, *meta);
        }
        let batch = self.builder.finish(&self.buffer, self.broker.budget());
        let batch = batch.expect("there is no limit");
        match &self.exchange {
            Some(exchange) => {
                exchange.publish(NOW, batch, None, &mut self.routing).1.perform();
            }
            None => self.queue.enqueue(NOW, batch).1.perform(),
        }
    }

    fn consume(&mut self) {
        let limit = TakeLimit { messages: BATCH as u32, bytes: usize::MAX };
        self.queue.take(NOW, self.consumer, limit, &mut self.taken).1.perform();
        self.positions.clear();
        self.positions.extend(self.taken.deliveries().iter().map(|delivery| delivery.position));
        assert_eq!(self.positions.len(), BATCH);
        self.output.clear();
        for delivery in self.taken.deliveries() {
            let from = self.taken.write_head(delivery, &mut self.added, &mut self.output);
            self.output.extend_from_slice(&self.taken.bytes(delivery)[from..]);
        }
        self.queue.accept(NOW, self.consumer, &self.positions).perform();
        self.taken.clear();
    }
}

fn bind(exchange: &Exchange, queue: &Arc<SharedQueue>, key: &str, number: usize) {
    let arguments = match exchange.settings().kind {
        ExchangeKind::Headers => Map::new().with("x-match", "all").with("number", number as u64),
        _ => Map::new(),
    };
    exchange.bind(NOW, queue, key, arguments).expect("it makes sense").1.perform();
}

/// Where a message is in a buffer, and what is known of it.
type Placed = (Range<usize>, Sections, MessageMeta);

/// A batch of messages whose subjects are so many keys in turn.
fn messages(keys: usize) -> (Vec<u8>, Vec<Placed>) {
    let (mut buffer, mut messages) = (Vec::new(), Vec::new());
    for index in 0..BATCH {
        let mut message = Message::of_data(vec![7; 300]);
        message.properties_mut().subject = Some(format!("a.{}", index % keys));
        message.set_application_property("number", 0u32);
        let start = buffer.len();
        message.encode(&mut buffer);
        let bytes = &buffer[start..];
        let sections = scan(bytes, &Limits::DEFAULT).expect("it is a message");
        messages.push((start..buffer.len(), sections, MessageMeta::read(&sections, bytes)));
    }
    (buffer, messages)
}

/// What a copy costs where many queues get each message.
fn fanout(queues: usize) {
    let mut bench = Bench::new(Way::Exchange(ExchangeKind::Fanout), 0, 1);
    let exchange = bench.exchange.clone().expect("there is one");
    let mut all = vec![Arc::clone(&bench.queue)];
    for number in 1..queues {
        let queue = bench.broker.open(&format!("q{number}")).expect("it is made");
        bind(&exchange, &queue, "", 0);
        all.push(queue);
    }
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut spent = Duration::ZERO;
        for _ in 0..100 {
            let start = Instant::now();
            bench.publish();
            spent += start.elapsed();
            all.iter().for_each(|queue| queue.purge(NOW, u64::MAX).1.perform());
        }
        best = best.min(spent);
    }
    let copies = (100 * BATCH * queues) as u32;
    report(&format!("fanout, {queues} queues: publishing one copy"), best * 1_000 / copies);
}

/// What it costs to bind and unbind, while messages are published in between.
fn binding() {
    for others in [0, 9_999] {
        let mut bench = Bench::new(Way::Exchange(ExchangeKind::Topic), others, 1);
        let exchange = bench.exchange.clone().expect("there is one");
        let queue = bench.broker.open("bound").expect("it is made");
        let mut spent = Duration::ZERO;
        for number in 0..1_000 {
            let key = format!("c.{number}");
            let start = Instant::now();
            bind(&exchange, &queue, &key, 0);
            exchange.unbind(&queue, &key).expect("it is bound").perform();
            spent += start.elapsed();
            bench.publish();
            bench.consume();
        }
        let what = format!("topic: bind and unbind beside {} bindings", others + 1);
        report(&what, spent);
    }
}
