//! A queue on a bench: consumers and producers by name, real messages, a clock that is turned by
//! hand, and a list of who has been woken.

use mochila_broker::{
    Added, Batch, BatchBuilder, Broker, BrokerSettings, ConsumerId, ConsumerOptions, DeleteIf,
    Delivery, Enqueued, LostGroups, MessageMeta, Outcome, ProducerId, QueueSettings, Settlement,
    SharedQueue, Statistics, TakeLimit, Taken, Taking, Wake, Waker, Wakeups, Want,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Message, Now};
use std::sync::{Arc, Mutex};

/// One queue of a broker, and those who use it.
pub(crate) struct QueueBench {
    pub(crate) broker: Arc<Broker>,
    pub(crate) queue: Arc<SharedQueue>,
    pub(crate) now: Now,
    log: Arc<Log>,
    next_key: u32,
}

/// Who has been woken, by key.
#[derive(Default)]
struct Log(Mutex<Vec<u32>>);

impl Wake for Log {
    fn wake(&self, key: u32) {
        self.0.lock().unwrap().push(key);
    }
}

/// A consumer on the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BenchConsumer {
    pub(crate) id: ConsumerId,
    pub(crate) key: u32,
}

/// A producer on the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BenchProducer {
    pub(crate) id: ProducerId,
    pub(crate) key: u32,
}

/// What a consumer got: the text of each message, and how it came.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) texts: Vec<String>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) taking: Taking,
    /// Groups that it has lost, as it hears before it gets anything.
    pub(crate) lost: Option<LostGroups>,
}

impl Got {
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.deliveries.iter().map(|delivery| delivery.position).collect()
    }
}

impl Default for QueueBench {
    fn default() -> QueueBench {
        QueueBench::new(QueueSettings::default())
    }
}

impl QueueBench {
    pub(crate) fn new(settings: QueueSettings) -> QueueBench {
        QueueBench::with(BrokerSettings::default(), settings)
    }

    pub(crate) fn with(broker: BrokerSettings, settings: QueueSettings) -> QueueBench {
        let broker = Broker::new(broker);
        let queue = broker.create("q", settings).unwrap();
        let now = Now::new(1_000_000, 1_700_000_000_000);
        // That the queue was made is told at once, so that only what happens on it is left to do.
        broker.tell_events(now).perform();
        QueueBench { broker, queue, now, log: Arc::default(), next_key: 0 }
    }

    /// Lets time pass, and everything happen that is due.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = self.now.after(ms);
        self.broker.handle_timeout(self.now).perform();
    }

    /// Another queue of the same broker, and those who use it.
    pub(crate) fn beside(&self, name: &str, settings: QueueSettings) -> QueueBench {
        let queue = self.broker.create(name, settings).unwrap();
        let (broker, log) = (Arc::clone(&self.broker), Arc::clone(&self.log));
        QueueBench { broker, queue, now: self.now, log, next_key: self.next_key + 1_000 }
    }

    /// Moves messages to a queue that takes them all, which goes with them; returns how many.
    pub(crate) fn move_away(&mut self, most: u64) -> u64 {
        let away = self.broker.create_dynamic(QueueSettings::default()).unwrap();
        let (moved, wakeups) = self.queue.move_to(self.now, &away, most).unwrap();
        wakeups.perform();
        assert_eq!((moved.messages, moved.refused), (away.statistics().msg_depth, None));
        away.delete(DeleteIf::default()).unwrap().perform();
        moved.messages
    }

    /// Moves messages to a queue that takes none.
    pub(crate) fn move_in_vain(&mut self, most: u64) {
        let gone = self.broker.create_dynamic(QueueSettings::default()).unwrap();
        gone.delete(DeleteIf::default()).unwrap().perform();
        let (moved, wakeups) = self.queue.move_to(self.now, &gone, most).unwrap();
        wakeups.perform();
        assert_eq!(moved.messages, 0);
    }

    /// A consumer that acquires.
    pub(crate) fn consumer(&mut self) -> BenchConsumer {
        self.subscribe(|_| {})
    }

    pub(crate) fn browser(&mut self) -> BenchConsumer {
        self.subscribe(|options| options.mode = mochila_broker::Mode::Browse)
    }

    pub(crate) fn subscribe(&mut self, change: impl FnOnce(&mut ConsumerOptions)) -> BenchConsumer {
        self.try_subscribe(change).unwrap()
    }

    pub(crate) fn try_subscribe(
        &mut self,
        change: impl FnOnce(&mut ConsumerOptions),
    ) -> Result<BenchConsumer, mochila_broker::QueueError> {
        let (waker, key) = self.waker();
        let mut options = ConsumerOptions::new(waker);
        change(&mut options);
        self.queue.subscribe(self.now, options).map(|id| BenchConsumer { id, key })
    }

    pub(crate) fn producer(&mut self) -> BenchProducer {
        let (waker, key) = self.waker();
        BenchProducer { id: self.queue.attach_producer(self.now, waker).unwrap(), key }
    }

    /// Sends messages with these texts, all in one batch.
    pub(crate) fn send(&mut self, texts: &[&str]) -> Enqueued {
        self.send_messages(texts.iter().map(|text| message(text)).collect())
    }

    pub(crate) fn send_numbers(&mut self, numbers: std::ops::Range<usize>) -> Enqueued {
        self.send_messages(numbers.map(|number| message(&number.to_string())).collect())
    }

    pub(crate) fn send_messages(&mut self, messages: Vec<Message>) -> Enqueued {
        let (now, queue) = (self.now, Arc::clone(&self.queue));
        let (enqueued, wakeups) = self.batch(messages, |batch| queue.enqueue(now, batch));
        wakeups.perform();
        enqueued
    }

    /// Does something with a batch of messages.
    pub(crate) fn batch<T>(
        &mut self,
        messages: Vec<Message>,
        f: impl FnOnce(&mut Batch) -> T,
    ) -> T {
        let mut builder = BatchBuilder::new();
        let mut buffer = Vec::new();
        for message in &messages {
            let start = buffer.len();
            message.encode(&mut buffer);
            let bytes = &buffer[start..];
            let sections = scan(bytes, &Limits::DEFAULT).unwrap();
            let meta = MessageMeta::read(&sections, bytes);
            builder.push(start..buffer.len(), &sections, meta);
        }
        f(builder.finish(&buffer, self.broker.budget()).unwrap())
    }

    pub(crate) fn take(&mut self, consumer: BenchConsumer, most: u32) -> Got {
        self.take_limited(consumer, TakeLimit { messages: most, bytes: usize::MAX })
    }

    pub(crate) fn take_limited(&mut self, consumer: BenchConsumer, limit: TakeLimit) -> Got {
        let mut taken = Taken::new();
        let (taking, wakeups) = self.queue.take(self.now, consumer.id, limit, &mut taken);
        wakeups.perform();
        let text = |delivery: &Delivery| text(taken.bytes(delivery));
        Got {
            texts: taken.deliveries().iter().map(text).collect(),
            deliveries: taken.deliveries().to_vec(),
            lost: taken.take_lost_groups().map(|lost| *lost),
            taking,
        }
    }

    /// Takes one message and decodes it as it would be sent: its head patched.
    pub(crate) fn receive(&mut self, consumer: BenchConsumer) -> (u64, Message) {
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: 1, bytes: usize::MAX };
        self.queue.take(self.now, consumer.id, limit, &mut taken).1.perform();
        let delivery = taken.deliveries().first().expect("there is a message");
        (delivery.position, as_sent(&taken, delivery))
    }

    pub(crate) fn accept(&mut self, consumer: BenchConsumer, positions: &[u64]) {
        self.queue.accept(self.now, consumer.id, positions).perform();
    }

    pub(crate) fn settle(&mut self, consumer: BenchConsumer, positions: &[u64], outcome: Outcome) {
        let settle = |position: &u64| Settlement { position: *position, outcome: outcome.clone() };
        let settlements: Vec<_> = positions.iter().map(settle).collect();
        self.queue.settle(self.now, consumer.id, &settlements).perform();
    }

    pub(crate) fn release(&mut self, consumer: BenchConsumer, positions: &[u64]) {
        self.settle(consumer, positions, Outcome::Release);
    }

    pub(crate) fn idle(&mut self, consumer: BenchConsumer) {
        self.queue.idle(self.now, consumer.id).perform();
    }

    pub(crate) fn unsubscribe(&mut self, consumer: BenchConsumer) {
        self.queue.unsubscribe(self.now, consumer.id).perform();
    }

    pub(crate) fn grant(&mut self, producer: BenchProducer, want: u32) -> u32 {
        self.grant_what(producer, &Want::credit(want))
    }

    /// The credit of one that has had a message rejected.
    pub(crate) fn grant_again(&mut self, producer: BenchProducer, want: u32) -> u32 {
        self.grant_what(producer, &Want { was_refused: true, ..Want::credit(want) })
    }

    fn grant_what(&mut self, producer: BenchProducer, want: &Want) -> u32 {
        let (credit, wakeups) = self.queue.grant(self.now, producer.id, want);
        wakeups.perform();
        credit
    }

    pub(crate) fn detach(&mut self, producer: BenchProducer) {
        self.queue.detach_producer(self.now, producer.id).perform();
    }

    pub(crate) fn perform(&mut self, wakeups: Wakeups) {
        wakeups.perform();
    }

    /// The keys of those who have been woken since this was asked last.
    pub(crate) fn woken(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.log.0.lock().unwrap())
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    pub(crate) fn waker(&mut self) -> (Waker, u32) {
        let key = self.next_key;
        self.next_key += 1;
        let log: Arc<dyn Wake> = self.log.clone();
        (Waker::new(log, key), key)
    }
}

/// A message with a text for a body.
pub(crate) fn message(text: &str) -> Message {
    Message::of_value(text)
}

/// The text of an encoded message.
pub(crate) fn text(bytes: &[u8]) -> String {
    let sections = scan(bytes, &Limits::DEFAULT).unwrap();
    let body = sections.body_value(bytes).and_then(|value| value.as_str()).unwrap();
    body.to_owned()
}

/// A message as it goes out to a consumer.
pub(crate) fn as_sent(taken: &Taken, delivery: &Delivery) -> Message {
    let bytes = taken.bytes(delivery);
    let mut out = Vec::new();
    let from = taken.write_head(delivery, &mut Added::new(), &mut out);
    out.extend_from_slice(&bytes[from..]);
    Message::decode(&out).unwrap()
}
