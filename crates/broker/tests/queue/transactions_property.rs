//! Random transactions over two queues, compared with a model that does them one by one.

use crate::bench::{QueueBench, message, text};
use mochila_broker::{
    ConsumerId, ConsumerOptions, Held, Outcome, QueueSettings, SharedQueue, TakeLimit, Taken,
    Transaction,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const QUEUES: usize = 2;
const CONSUMERS: usize = 3;

/// One thing that somebody does.
#[derive(Clone, Debug)]
enum Step {
    /// A message outside of any transaction.
    Send {
        queue: usize,
    },
    /// Messages in the transaction with this number.
    Post {
        transaction: usize,
        queue: usize,
        messages: u32,
    },
    Take {
        consumer: usize,
        messages: u32,
    },
    /// Accepted, or given back, outside of any transaction.
    Settle {
        consumer: usize,
        pick: usize,
        accept: bool,
    },
    /// Some of what a consumer holds, from `pick` on.
    Pledge {
        transaction: usize,
        consumer: usize,
        pick: usize,
        count: usize,
        accept: bool,
    },
    Commit {
        transaction: usize,
    },
    RollBack {
        transaction: usize,
    },
    /// A consumer goes, and another comes in its place.
    Replace {
        consumer: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let transaction = 0..3_usize;
    let consumer = 0..CONSUMERS;
    let pick = 0..20_usize;
    prop_oneof![
        3 => (0..QUEUES).prop_map(|queue| Step::Send { queue }),
        3 => (transaction.clone(), 0..QUEUES, 1..4_u32)
            .prop_map(|(transaction, queue, messages)| Step::Post { transaction, queue, messages }),
        4 => (consumer.clone(), 1..6_u32)
            .prop_map(|(consumer, messages)| Step::Take { consumer, messages }),
        2 => (consumer.clone(), pick.clone(), any::<bool>())
            .prop_map(|(consumer, pick, accept)| Step::Settle { consumer, pick, accept }),
        4 => (transaction.clone(), consumer.clone(), pick, 1..4_usize, any::<bool>()).prop_map(
            |(transaction, consumer, pick, count, accept)| {
                Step::Pledge { transaction, consumer, pick, count, accept }
            }
        ),
        2 => transaction.clone().prop_map(|transaction| Step::Commit { transaction }),
        2 => transaction.prop_map(|transaction| Step::RollBack { transaction }),
        1 => consumer.prop_map(|consumer| Step::Replace { consumer }),
    ]
}

/// Where a message is, as the model sees it; it stands at its position in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Available,
    Held { consumer: usize },
    Pledged { transaction: usize, accept: bool },
}

/// A queue and its model: messages by position.
struct Pair {
    queue: Arc<SharedQueue>,
    messages: BTreeMap<u64, (u64, Place)>,
    next: u64,
}

/// A transaction, and what it brings to each queue.
#[derive(Default)]
struct Open {
    transaction: Option<Transaction>,
    posts: Vec<(usize, u64)>,
}

struct Table {
    bench: QueueBench,
    pairs: Vec<Pair>,
    /// Consumer `n` takes from queue `n % QUEUES`.
    consumers: Vec<ConsumerId>,
    open: Vec<Open>,
    next_text: u64,
}

impl Table {
    fn new() -> Table {
        let mut bench = QueueBench::default();
        let other = bench.broker.create("other", QueueSettings::default()).unwrap();
        let queues = [Arc::clone(&bench.queue), other];
        let pair = |queue| Pair { queue, messages: BTreeMap::new(), next: 0 };
        let pairs: Vec<Pair> = queues.into_iter().map(pair).collect();
        let consumers =
            (0..CONSUMERS).map(|n| subscribe(&mut bench, &pairs[n % QUEUES].queue)).collect();
        let open = (0..3).map(|_| Open::default()).collect();
        Table { bench, pairs, consumers, open, next_text: 0 }
    }

    fn play(&mut self, step: &Step) {
        let now = self.bench.now;
        match *step {
            Step::Send { queue } => {
                let number = self.number();
                let to = Arc::clone(&self.pairs[queue].queue);
                let sent = vec![message(&number.to_string())];
                self.bench.batch(sent, |batch| to.enqueue(now, batch).1.perform());
                self.pairs[queue].add(number);
            }
            Step::Post { transaction, queue, messages } => {
                let numbers: Vec<u64> = (0..messages).map(|_| self.number()).collect();
                let to = Arc::clone(&self.pairs[queue].queue);
                let broker = Arc::clone(&self.bench.broker);
                let open = &mut self.open[transaction];
                let of = open.transaction.get_or_insert_with(|| broker.begin());
                let sent = numbers.iter().map(|number| message(&number.to_string())).collect();
                self.bench.batch(sent, |batch| of.enqueue(now, &to, batch, true).1.perform());
                open.posts.extend(numbers.iter().map(|number| (queue, *number)));
            }
            Step::Take { consumer, messages } => self.take(consumer, messages),
            Step::Settle { consumer, pick, accept } => {
                let Some(position) = self.held(consumer, pick, 1).first().copied() else { return };
                let (pair, id) = (&mut self.pairs[consumer % QUEUES], self.consumers[consumer]);
                if accept {
                    pair.queue.accept(now, id, &[position]).perform();
                    pair.messages.remove(&position);
                } else {
                    let outcome = Outcome::Release;
                    let settlement = mochila_broker::Settlement { position, outcome };
                    pair.queue.settle(now, id, &[settlement]).perform();
                    pair.put(position, Place::Available);
                }
            }
            Step::Pledge { transaction, consumer, pick, count, accept } => {
                let positions = self.held(consumer, pick, count);
                let (pair, id) = (&mut self.pairs[consumer % QUEUES], self.consumers[consumer]);
                let broker = &self.bench.broker;
                let of = &mut self.open[transaction];
                let of = of.transaction.get_or_insert_with(|| broker.begin());
                let default_outcome = &Outcome::Release;
                let held =
                    Held { queue: &pair.queue, consumer: id, default_outcome, settled: true };
                let outcome = if accept { Outcome::Accept } else { Outcome::Release };
                let settlement = |position: &u64| mochila_broker::Settlement {
                    position: *position,
                    outcome: outcome.clone(),
                };
                let settlements: Vec<_> = positions.iter().map(settlement).collect();
                of.settle(now, &held, &settlements).perform();
                for position in positions {
                    pair.put(position, Place::Pledged { transaction, accept });
                }
            }
            Step::Commit { transaction } => self.end(transaction, true),
            Step::RollBack { transaction } => self.end(transaction, false),
            Step::Replace { consumer } => {
                let (pair, id) = (&mut self.pairs[consumer % QUEUES], self.consumers[consumer]);
                pair.queue.unsubscribe(now, id).perform();
                for (_, place) in pair.messages.values_mut() {
                    if *place == (Place::Held { consumer }) {
                        *place = Place::Available;
                    }
                }
                let queue = Arc::clone(&pair.queue);
                self.consumers[consumer] = subscribe(&mut self.bench, &queue);
            }
        }
    }

    /// What a consumer gets is the oldest there is, and as the model has it.
    fn take(&mut self, consumer: usize, messages: u32) {
        let (pair, id) = (&mut self.pairs[consumer % QUEUES], self.consumers[consumer]);
        let mut taken = Taken::new();
        let limit = TakeLimit { messages, bytes: usize::MAX };
        pair.queue.take(self.bench.now, id, limit, &mut taken).1.perform();
        pair.queue.idle(self.bench.now, id).perform();
        for delivery in taken.deliveries() {
            let oldest = pair.messages.iter().find(|(_, (_, place))| *place == Place::Available);
            let (position, (number, _)) = oldest.expect("the model has it too");
            assert_eq!(
                (delivery.position, text(taken.bytes(delivery))),
                (*position, number.to_string())
            );
            pair.put(delivery.position, Place::Held { consumer });
        }
    }

    fn end(&mut self, transaction: usize, commits: bool) {
        let Open { transaction: Some(ended), posts } = std::mem::take(&mut self.open[transaction])
        else {
            return;
        };
        let now = self.bench.now;
        if commits {
            ended.commit(now).expect("nothing has gone wrong").perform();
            // At each queue in the order in which they were sent.
            posts.into_iter().for_each(|(queue, number)| self.pairs[queue].add(number));
        } else {
            ended.rollback(now).perform();
        }
        for pair in &mut self.pairs {
            pair.messages.retain(|_, (_, place)| match *place {
                Place::Pledged { transaction: of, accept } if of == transaction => {
                    *place = Place::Available;
                    !(commits && accept)
                }
                _ => true,
            });
        }
    }

    fn check(&self) {
        for pair in &self.pairs {
            let numbers = pair.queue.statistics();
            let available = |(_, place): &&(u64, Place)| *place == Place::Available;
            let available = pair.messages.values().filter(available).count() as u64;
            assert_eq!(numbers.msg_depth, pair.messages.len() as u64);
            assert_eq!(pair.queue.available(), available);
            assert_eq!(numbers.unacked_messages, pair.messages.len() as u64 - available);
        }
    }

    /// Ends everything; nothing may be left.
    fn finish(mut self, commits: bool) {
        (0..3).for_each(|transaction| self.end(transaction, commits));
        self.check();
        let now = self.bench.now;
        for (consumer, id) in self.consumers.iter().enumerate() {
            self.pairs[consumer % QUEUES].queue.unsubscribe(now, *id).perform();
        }
        for pair in &self.pairs {
            assert_eq!(pair.queue.statistics().unacked_messages, 0);
            assert_eq!(pair.queue.statistics().consumer_count, 0);
            pair.queue.purge(now, u64::MAX).1.perform();
            assert_eq!(pair.queue.statistics().msg_depth, 0);
        }
        let empty = QueueBench::default();
        empty.broker.create("other", QueueSettings::default()).unwrap();
        assert_eq!(self.bench.broker.budget().used(), empty.broker.budget().used());
    }

    fn number(&mut self) -> u64 {
        self.next_text += 1;
        self.next_text
    }

    /// Some positions that a consumer holds, from its `pick`-th on.
    fn held(&self, consumer: usize, pick: usize, count: usize) -> Vec<u64> {
        let pair = &self.pairs[consumer % QUEUES];
        let held = pair.messages.iter().filter(|(_, (_, it))| *it == Place::Held { consumer });
        held.map(|(position, _)| *position).skip(pick % 4).take(count).collect()
    }
}

impl Pair {
    fn add(&mut self, number: u64) {
        self.messages.insert(self.next, (number, Place::Available));
        self.next += 1;
    }

    fn put(&mut self, position: u64, place: Place) {
        self.messages.get_mut(&position).expect("it is there").1 = place;
    }
}

fn subscribe(bench: &mut QueueBench, queue: &SharedQueue) -> ConsumerId {
    let (waker, _) = bench.waker();
    queue.subscribe(bench.now, ConsumerOptions::new(waker)).unwrap()
}

proptest! {
    #[test]
    fn transactions_do_all_of_it_or_nothing_and_what_comes_back_has_its_place(
        steps in prop::collection::vec(step(), 1..120),
        commits in any::<bool>(),
    ) {
        let mut table = Table::new();
        for step in &steps {
            table.play(step);
            table.check();
        }
        table.finish(commits);
    }
}
