//! Random operations on a queue that deletes itself at its limit, against a model that is simple
//! enough to be right.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{QueueSettings, Refusal, Taking};
use mochila_wire::Encode;
use proptest::prelude::*;

/// One thing that happens; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Send { sizes: Vec<u16> },
    Take { consumer: usize, most: u32 },
    Settle { consumer: usize, most: usize, accept: bool },
    Purge { most: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let consumer = 0usize..CONSUMERS;
    let step = prop_oneof![
        4 => prop::collection::vec(0u16..300, 1..5).prop_map(|sizes| Step::Send { sizes }),
        4 => (consumer.clone(), 0u32..8).prop_map(|(consumer, most)| Step::Take { consumer, most }),
        4 => (consumer, 1usize..8, prop::bool::weighted(0.8))
            .prop_map(|(consumer, most, accept)| Step::Settle { consumer, most, accept }),
        1 => (1u64..5).prop_map(|most| Step::Purge { most }),
    ];
    prop::collection::vec(step, 1..80)
}

struct ModelMessage {
    text: String,
    position: u64,
    bytes: u64,
    holder: Option<usize>,
}

struct Model {
    bench: QueueBench,
    consumers: Vec<BenchConsumer>,
    max_count: u64,
    max_bytes: u64,
    messages: Vec<ModelMessage>,
    next_position: u64,
    sent: usize,
    /// It has deleted itself.
    is_over: bool,
}

impl Model {
    fn new((max_count, max_bytes): (u64, u64)) -> Model {
        let mut bench = QueueBench::new(QueueSettings {
            max_count: Some(max_count),
            max_bytes: Some(max_bytes),
            limit_policy: LimitPolicy::SelfDestruct,
            ..QueueSettings::default()
        });
        let consumers = (0..CONSUMERS).map(|_| bench.consumer()).collect();
        let (messages, next_position) = (Vec::new(), 0);
        Model {
            bench,
            consumers,
            max_count,
            max_bytes,
            messages,
            next_position,
            sent: 0,
            is_over: false,
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Send { sizes } => self.send(sizes),
            Step::Take { consumer, most } => self.take(*consumer, *most),
            Step::Settle { consumer, most, accept } => self.settle(*consumer, *most, *accept),
            Step::Purge { most } => self.purge(*most),
        }
        self.check();
    }

    fn send(&mut self, sizes: &[u16]) {
        let texts: Vec<String> = sizes
            .iter()
            .enumerate()
            .map(|(index, size)| format!("{:x<1$}", self.sent + index, usize::from(*size)))
            .collect();
        self.sent += texts.len();
        let enqueued = self.bench.send_messages(texts.iter().map(|text| message(text)).collect());
        let (mut refused, mut is_overrun) = (Vec::new(), false);
        for (index, text) in texts.into_iter().enumerate() {
            let bytes = message(&text).to_bytes().len() as u64;
            if let Some(reason) = self.refusal(bytes, is_overrun) {
                refused.push((index as u32, reason));
                is_overrun |= reason == Refusal::Overrun;
                continue;
            }
            let position = self.next_position;
            self.next_position += 1;
            self.messages.push(ModelMessage { text, position, bytes, holder: None });
        }
        let said: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
        assert_eq!(said, refused);
        if is_overrun {
            self.is_over = true;
            self.messages.clear();
        }
    }

    /// Why a message is not let in.
    fn refusal(&self, bytes: u64, is_overrun: bool) -> Option<Refusal> {
        let (count, size) = self.depth();
        let is_full = count >= self.max_count || size + bytes > self.max_bytes;
        if self.is_over {
            Some(Refusal::Deleted)
        } else if bytes > self.max_bytes {
            Some(Refusal::TooLarge)
        } else {
            (is_full || is_overrun).then_some(Refusal::Overrun)
        }
    }

    fn take(&mut self, consumer: usize, most: u32) {
        let got = self.bench.take(self.consumers[consumer], most);
        self.bench.idle(self.consumers[consumer]);
        if self.is_over {
            assert_eq!((got.taking, got.texts.len()), (Taking::Gone, 0));
            return;
        }
        let mut free = self.messages.iter_mut().filter(|message| message.holder.is_none());
        for (text, position) in got.texts.iter().zip(got.positions()) {
            let oldest = free.next().expect("what is delivered is in the queue");
            assert_eq!((text, position), (&oldest.text, oldest.position));
            oldest.holder = Some(consumer);
        }
        assert!((got.texts.len() as u32) == most || free.next().is_none(), "there were more");
    }

    fn settle(&mut self, consumer: usize, most: usize, accept: bool) {
        let held = self.messages.iter().filter(|message| message.holder == Some(consumer));
        let held: Vec<u64> = held.map(|message| message.position).take(most).collect();
        match accept {
            true => {
                self.bench.accept(self.consumers[consumer], &held);
                self.messages.retain(|message| !held.contains(&message.position));
            }
            false => {
                self.bench.release(self.consumers[consumer], &held);
                for message in self.messages.iter_mut().filter(|m| held.contains(&m.position)) {
                    message.holder = None;
                }
            }
        }
    }

    fn purge(&mut self, most: u64) {
        let (purged, wakeups) = self.bench.queue.purge(self.bench.now, most);
        wakeups.perform();
        let mut left = most;
        self.messages.retain(|message| {
            let is_gone = left > 0 && message.holder.is_none();
            left -= u64::from(is_gone);
            !is_gone
        });
        assert_eq!(purged, most - left);
    }

    fn check(&self) {
        assert_eq!(self.bench.queue.is_deleted(), self.is_over);
        assert_eq!(self.bench.broker.queue("q").is_none(), self.is_over);
        let numbers = self.bench.statistics();
        if self.is_over {
            // What it had is gone, and counted as such.
            let node = self.bench.broker.statistics();
            assert_eq!((numbers.memory_bytes, numbers.unacked_messages), (0, 0));
            assert_eq!(node.msg_total_enqueues, node.msg_total_dequeues);
            assert_eq!(node.byte_total_enqueues, node.byte_total_dequeues);
            return;
        }
        assert_eq!((numbers.msg_depth, numbers.byte_depth), self.depth());
        let held = self.messages.iter().filter(|message| message.holder.is_some()).count();
        assert_eq!(numbers.unacked_messages, held as u64);
    }

    fn depth(&self) -> (u64, u64) {
        (self.messages.len() as u64, self.messages.iter().map(|message| message.bytes).sum())
    }

    /// Everybody leaves and the queue is purged, if it is there: nothing may be left over.
    fn end(self, used: u64) {
        for consumer in self.consumers {
            self.bench.queue.unsubscribe(self.bench.now, consumer.id).perform();
        }
        self.bench.queue.purge(self.bench.now, u64::MAX).1.perform();
        let (numbers, node) = (self.bench.statistics(), self.bench.broker.statistics());
        assert_eq!(node.msg_total_enqueues, node.msg_total_dequeues);
        assert_eq!((numbers.memory_bytes, numbers.unacked_messages), (0, 0));
        assert!(self.bench.broker.budget().used() <= used);
    }
}

const CONSUMERS: usize = 2;

proptest! {
    #[test]
    fn a_queue_that_deletes_itself_does_what_its_model_does(
        limits in (1u64..20, 400u64..3_000),
        steps in steps(),
    ) {
        let mut model = Model::new(limits);
        let used = model.bench.broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.end(used);
    }
}
