//! Senders to an exchange whose bindings and queues come, go, fill up and are emptied, in any order:
//! nobody who respects credit is rejected by a queue that is its only one, and nobody waits while one
//! of his queues has room.

use crate::bench::Bench;
use mochila_broker::{DeleteIf, Exchange, ExchangeKind, Publisher, QueueSettings};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Numbers in any order, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

struct Sender {
    publisher: Publisher,
    key: &'static str,
    /// Its messages have the key in their subjects.
    is_keyed_by_subject: bool,
    credit: u32,
    is_new: bool,
}

struct Story {
    bench: Bench,
    exchange: Arc<Exchange>,
    senders: Vec<Sender>,
    bound: BTreeSet<(&'static str, &'static str)>,
}

const KEYS: [&str; 2] = ["j", "k"];
const QUEUES: [&str; 3] = ["a", "b", "c"];
const MOST: u64 = 8;

impl Story {
    fn new(random: &mut Random) -> Story {
        let kinds = [ExchangeKind::Direct, ExchangeKind::Topic, ExchangeKind::Fanout];
        let bench = Bench::new();
        let exchange = bench.exchange(kinds[random.below(3)]);
        Story { bench, exchange, senders: Vec::new(), bound: BTreeSet::new() }
    }

    fn act(&mut self, random: &mut Random) {
        let (queue, key) = (QUEUES[random.below(3)], KEYS[random.below(2)]);
        match random.below(12) {
            0 | 1 => {
                let max_count = Some(MOST);
                let settings = QueueSettings { max_count, ..QueueSettings::default() };
                let _ = self.bench.broker.create(queue, settings);
                self.bench.bind(&self.exchange, queue, key);
                self.bound.insert((queue, key));
            }
            2 if self.bound.remove(&(queue, key)) => {
                let queue = self.bench.queue(queue);
                // All keys are one to a fanout exchange.
                if let Ok(wakeups) = self.exchange.unbind(&queue, key) {
                    wakeups.perform();
                }
                if self.exchange.settings().kind == ExchangeKind::Fanout {
                    self.bound.retain(|(other, _)| *other != queue.name());
                }
            }
            3 if self.bound.iter().any(|(bound, _)| *bound == queue) => {
                self.bench.broker.delete(queue, DeleteIf::default()).unwrap().perform();
                self.bound.retain(|(bound, _)| *bound != queue);
            }
            4 | 5 if self.bound.iter().any(|(bound, _)| *bound == queue) => {
                let queue = self.bench.queue(queue);
                self.bench.purge(&queue);
            }
            6 if self.senders.len() < 4 => {
                let is_keyed_by_subject = random.below(2) == 0;
                let number = self.senders.len() as u32;
                let named = (!is_keyed_by_subject).then_some(key);
                let publisher = self.bench.publisher_for(&self.exchange, named, number);
                self.senders.push(Sender {
                    publisher,
                    key,
                    is_keyed_by_subject,
                    credit: 0,
                    is_new: true,
                });
                self.ask(number as usize);
            }
            _ if !self.senders.is_empty() => {
                let sender = random.below(self.senders.len());
                let most = self.senders[sender].credit.min(1 + random.below(20) as u32);
                self.send(sender, most);
            }
            _ => {}
        }
        for sender in self.bench.woken() {
            self.ask(sender as usize);
        }
    }

    fn ask(&mut self, sender: usize) {
        let sender = &mut self.senders[sender];
        // Credit that is there is not lowered by that.
        let granted = self.bench.grant(&mut sender.publisher, 100);
        sender.credit = sender.credit.max(granted);
    }

    /// The queues that messages with a key go to.
    fn queues_of(&self, key: &str) -> BTreeSet<&'static str> {
        let is_fanout = self.exchange.settings().kind == ExchangeKind::Fanout;
        let bound = self.bound.iter().filter(|(_, bound)| is_fanout || *bound == key);
        bound.map(|(queue, _)| *queue).collect()
    }

    fn send(&mut self, sender: usize, count: u32) {
        if count == 0 {
            return;
        }
        let Sender { publisher, key, is_keyed_by_subject, is_new, .. } = &self.senders[sender];
        let key = *key;
        // Nobody could know where the first message would go.
        let may_be_rejected = *is_keyed_by_subject && *is_new;
        let subjects = vec![key; count as usize];
        let published = self.bench.publish_by(publisher, &self.exchange, &subjects);
        let queues = self.queues_of(key);
        if queues.len() == 1 && !may_be_rejected {
            assert!(published.rejected.is_empty(), "{} to {queues:?}", published.rejected.len());
        }
        let sender = &mut self.senders[sender];
        sender.is_new = false;
        sender.credit -= count;
        if sender.publisher.note(&published) || sender.publisher.is_stopped() || sender.credit == 0
        {
            sender.credit = self.bench.grant(&mut sender.publisher, 100);
        }
    }

    fn has_room(&self, queue: &str) -> bool {
        self.bench.queue(queue).statistics().flow_stopped == 0
    }

    fn check(&self) {
        for (number, sender) in self.senders.iter().enumerate().filter(|(_, it)| it.credit == 0) {
            let queues = self.queues_of(sender.key);
            assert!(!queues.is_empty(), "sender {number} waits for nothing");
            let is_sure = !sender.is_keyed_by_subject;
            assert!(
                !is_sure || !queues.iter().any(|queue| self.has_room(queue)),
                "sender {number} waits beside a queue with room: {queues:?}"
            );
        }
    }
}

#[test]
fn nobody_is_rejected_by_his_only_queue_and_nobody_waits_beside_one_with_room() {
    for seed in 1..400 {
        let mut random = Random(seed);
        let mut story = Story::new(&mut random);
        for step in 0..120 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                story.act(&mut random);
                story.check();
            }));
            assert!(result.is_ok(), "seed {seed}, step {step}");
        }
        for sender in story.senders {
            sender.publisher.detach(story.bench.now).perform();
        }
        for queue in story.bench.broker.queues() {
            assert_eq!(queue.statistics().producers_waiting, 0, "seed {seed}");
        }
    }
}
