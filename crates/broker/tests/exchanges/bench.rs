//! A broker whose exchanges are published to, and whose queues are looked at.

use mochila_broker::{
    Added, BatchBuilder, Broker, BrokerSettings, ConsumerOptions, Exchange, ExchangeKind,
    ExchangeSettings, MessageMeta, Mode, Origin, Published, Publisher, QueueSettings, Routing,
    SharedQueue, TakeLimit, Taken, Transaction, Wake, Waker, Want,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message, Now};
use std::sync::{Arc, Mutex};

/// A broker, and a clock that is turned by hand.
pub(crate) struct Bench {
    pub(crate) broker: Arc<Broker>,
    pub(crate) now: Now,
    pub(crate) routing: Routing,
    pub(crate) log: Arc<Log>,
}

/// Who has been woken, by key.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<u32>>);

impl Wake for Log {
    fn wake(&self, key: u32) {
        self.0.lock().unwrap().push(key);
    }
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench {
            broker: Broker::new(BrokerSettings::default()),
            now: Now::new(1_000_000, 1_700_000_000_000),
            routing: Routing::new(),
            log: Arc::default(),
        }
    }

    pub(crate) fn exchange(&self, kind: ExchangeKind) -> Arc<Exchange> {
        self.exchange_with("e", |settings| settings.kind = kind)
    }

    pub(crate) fn exchange_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut ExchangeSettings),
    ) -> Arc<Exchange> {
        let mut settings = ExchangeSettings::default();
        change(&mut settings);
        self.broker.create_exchange(name, settings).unwrap()
    }

    pub(crate) fn queue(&self, name: &str) -> Arc<SharedQueue> {
        self.broker.open(name).unwrap()
    }

    pub(crate) fn bind(&self, exchange: &Exchange, queue: &str, key: &str) -> Arc<SharedQueue> {
        self.bind_with(exchange, queue, key, Map::new())
    }

    pub(crate) fn bind_with(
        &self,
        exchange: &Exchange,
        queue: &str,
        key: &str,
        arguments: Map,
    ) -> Arc<SharedQueue> {
        let queue = self.queue(queue);
        exchange.bind(self.now, &queue, key, arguments).unwrap().1.perform();
        queue
    }

    /// A queue that stops its producers when it has three messages.
    pub(crate) fn stopping(&self, exchange: &Exchange, name: &str, key: &str) -> Arc<SharedQueue> {
        let settings = QueueSettings { flow_stop_count: Some(2), ..QueueSettings::default() };
        let queue = self.broker.create(name, settings).unwrap();
        exchange.bind(self.now, &queue, key, Map::new()).unwrap().1.perform();
        queue
    }

    /// Sends messages with these subjects, which are also their bodies, as one batch.
    pub(crate) fn publish(&mut self, exchange: &Exchange, subjects: &[&str]) -> Published {
        self.publish_all(exchange, None, subjects.iter().map(|it| message(it)).collect())
    }

    /// The same from a sender that has credit for them.
    pub(crate) fn publish_by(
        &mut self,
        publisher: &Publisher,
        exchange: &Exchange,
        subjects: &[&str],
    ) -> Published {
        self.routing.set_governor(publisher.governor(), publisher.is_surprised());
        self.publish(exchange, subjects)
    }

    pub(crate) fn publish_all(
        &mut self,
        exchange: &Exchange,
        key: Option<&str>,
        messages: Vec<Message>,
    ) -> Published {
        let (mut builder, buffer) = self.built(&messages);
        let batch = builder.finish(&buffer, self.broker.budget()).unwrap();
        let key = key.map(str::as_bytes);
        let (published, wakeups) = exchange.publish(self.now, batch, key, &mut self.routing);
        wakeups.perform();
        published
    }

    /// The same in a transaction.
    pub(crate) fn publish_in(
        &mut self,
        transaction: &mut Transaction,
        exchange: &Exchange,
        subjects: &[&str],
    ) {
        let messages = subjects.iter().map(|it| message(it)).collect();
        self.publish_all_in(transaction, exchange, messages);
    }

    pub(crate) fn publish_all_in(
        &mut self,
        transaction: &mut Transaction,
        exchange: &Exchange,
        messages: Vec<Message>,
    ) {
        let (mut builder, buffer) = self.built(&messages);
        let batch = builder.finish(&buffer, self.broker.budget()).unwrap();
        let routing = &mut self.routing;
        exchange.publish_in(self.now, transaction, batch, None, routing).1.perform();
    }

    /// Messages before they are paid for, and their bytes.
    fn built(&self, messages: &[Message]) -> (BatchBuilder, Vec<u8>) {
        let mut builder = BatchBuilder::new();
        let mut buffer = Vec::new();
        for message in messages {
            let start = buffer.len();
            message.encode(&mut buffer);
            let bytes = &buffer[start..];
            let sections = scan(bytes, &Limits::DEFAULT).unwrap();
            builder.push(start..buffer.len(), &sections, MessageMeta::read(&sections, bytes));
        }
        builder.set_origin(Origin::new(0, self.now));
        (builder, buffer)
    }

    pub(crate) fn publisher(&self, exchange: &Exchange) -> Publisher {
        self.publisher_for(exchange, None, 7)
    }

    pub(crate) fn publisher_to(&self, exchange: &Exchange, key: &str) -> Publisher {
        self.publisher_for(exchange, Some(key), 7)
    }

    /// One that is woken by a number.
    pub(crate) fn publisher_for(
        &self,
        exchange: &Exchange,
        key: Option<&str>,
        number: u32,
    ) -> Publisher {
        let log: Arc<dyn Wake> = Arc::clone(&self.log) as _;
        exchange.attach_publisher(key, Waker::new(log, number)).unwrap()
    }

    pub(crate) fn grant(&self, publisher: &mut Publisher, want: u32) -> u32 {
        let (granted, wakeups) = publisher.grant(self.now, &Want::credit(want));
        wakeups.perform();
        granted
    }

    /// Everything that a queue holds, as it would go out; it stays there.
    pub(crate) fn messages(&self, queue: &SharedQueue) -> Vec<Message> {
        let log: Arc<dyn Wake> = Arc::clone(&self.log) as _;
        let mut options = ConsumerOptions::new(Waker::new(log, 0));
        options.mode = Mode::Browse;
        let id = queue.subscribe(self.now, options).unwrap();
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: u32::MAX, bytes: usize::MAX };
        queue.take(self.now, id, limit, &mut taken).1.perform();
        let mut added = Added::new();
        let mut messages = Vec::new();
        for delivery in taken.deliveries() {
            let mut out = Vec::new();
            let from = taken.write_head(delivery, &mut added, &mut out);
            out.extend_from_slice(&taken.bytes(delivery)[from..]);
            messages.push(Message::decode(&out).unwrap());
        }
        queue.unsubscribe(self.now, id).perform();
        messages
    }

    pub(crate) fn texts(&self, queue: &SharedQueue) -> Vec<String> {
        let text = |message: &Message| {
            String::from_utf8(message.body.content().expect("text or bytes").to_vec()).unwrap()
        };
        self.messages(queue).iter().map(text).collect()
    }

    pub(crate) fn purge(&self, queue: &SharedQueue) {
        queue.purge(self.now, u64::MAX).1.perform();
    }

    pub(crate) fn woken(&self) -> Vec<u32> {
        std::mem::take(&mut self.log.0.lock().unwrap())
    }
}

/// A message whose subject is its body.
pub(crate) fn message(subject: &str) -> Message {
    let mut message = Message::of_value(subject);
    message.properties_mut().subject = Some(subject.to_owned());
    message
}
