//! Random transactions at queues of every kind, against a model that is simple enough to be right.

use crate::bench::{QueueBench, message, text};
use mochila_broker::settings::LimitPolicy;
use mochila_broker::{
    ConsumerId, ConsumerOptions, Held, Outcome, QueueSettings, Settlement, TakeLimit, Taken,
    Transaction,
};
use mochila_wire::Message;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// At most so many messages.
    Ring(u64),
    Levels,
    RingOfLevels(u64),
    LastValues,
    Groups,
}

/// One thing that somebody does; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Send { messages: Vec<Sent> },
    Post { transaction: usize, messages: Vec<Sent> },
    Take { consumer: usize, most: u32 },
    Settle { consumer: usize, pick: usize, accept: bool },
    Pledge { transaction: usize, consumer: usize, pick: usize, accept: bool },
    End { transaction: usize, commits: bool },
    Replace { consumer: usize },
}

/// A message of this priority, and of this key or group.
#[derive(Clone, Copy, Debug)]
struct Sent {
    priority: u8,
    name: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sent = (0u8..10, 0u8..5).prop_map(|(priority, name)| Sent { priority, name });
    let some = prop::collection::vec(sent, 1..5);
    let (transaction, consumer, pick) = (0..TRANSACTIONS, 0..CONSUMERS, 0..20_usize);
    let step = prop_oneof![
        3 => some.clone().prop_map(|messages| Step::Send { messages }),
        3 => (transaction.clone(), some)
            .prop_map(|(transaction, messages)| Step::Post { transaction, messages }),
        4 => (consumer.clone(), 1..6_u32).prop_map(|(consumer, most)| Step::Take { consumer, most }),
        3 => (consumer.clone(), pick.clone(), any::<bool>())
            .prop_map(|(consumer, pick, accept)| Step::Settle { consumer, pick, accept }),
        4 => (transaction.clone(), consumer.clone(), pick, any::<bool>()).prop_map(
            |(transaction, consumer, pick, accept)| {
                Step::Pledge { transaction, consumer, pick, accept }
            }
        ),
        3 => (transaction, any::<bool>())
            .prop_map(|(transaction, commits)| Step::End { transaction, commits }),
        1 => consumer.prop_map(|consumer| Step::Replace { consumer }),
    ];
    prop::collection::vec(step, 1..120)
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (1..12_u64).prop_map(Kind::Ring),
        Just(Kind::Levels),
        (1..12_u64).prop_map(Kind::RingOfLevels),
        Just(Kind::LastValues),
        Just(Kind::Groups),
    ]
}

impl Kind {
    fn settings(self) -> QueueSettings {
        let max_count = self.most();
        QueueSettings {
            max_count,
            limit_policy: match max_count {
                Some(_) => LimitPolicy::Ring,
                None => LimitPolicy::Reject,
            },
            priorities: matches!(self, Kind::Levels | Kind::RingOfLevels(_)).then_some(10),
            last_value_key: (self == Kind::LastValues).then(|| "name".into()),
            shared_groups: self == Kind::Groups,
            group_header_key: (self == Kind::Groups).then(|| "name".into()),
            ..QueueSettings::default()
        }
    }

    /// How many messages a ring keeps.
    fn most(self) -> Option<u64> {
        match self {
            Kind::Ring(most) | Kind::RingOfLevels(most) => Some(most),
            _ => None,
        }
    }

    /// What is taken first comes first.
    fn place(self, message: &ModelMessage) -> (Reverse<u8>, u64) {
        let has_levels = matches!(self, Kind::Levels | Kind::RingOfLevels(_));
        (Reverse(if has_levels { message.sent.priority } else { 0 }), message.position)
    }
}

struct ModelMessage {
    number: u64,
    position: u64,
    sent: Sent,
    place: Place,
}

/// Who has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Available,
    Held { by: ConsumerId },
    Pledged { by: ConsumerId, transaction: usize, accept: bool },
}

/// A transaction, what it brings, batch by batch, and whose messages it has, in the order in which
/// they came to it.
#[derive(Default)]
struct Open {
    transaction: Option<Transaction>,
    posts: Vec<Vec<(u64, Sent)>>,
    consumers: Vec<ConsumerId>,
}

struct Model {
    bench: QueueBench,
    kind: Kind,
    messages: Vec<ModelMessage>,
    consumers: Vec<ConsumerId>,
    open: Vec<Open>,
    next_position: u64,
    next_number: u64,
    dropped: u64,
    replaced: u64,
}

impl Model {
    fn new(kind: Kind) -> Model {
        let mut bench = QueueBench::new(kind.settings());
        let consumers = (0..CONSUMERS).map(|_| subscribe(&mut bench)).collect();
        Model {
            bench,
            kind,
            messages: Vec::new(),
            consumers,
            open: (0..TRANSACTIONS).map(|_| Open::default()).collect(),
            next_position: 0,
            next_number: 0,
            dropped: 0,
            replaced: 0,
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Send { messages } => {
                let (numbered, encoded) = self.number(messages);
                self.bench.send_messages(encoded);
                self.arrive(numbered);
            }
            Step::Post { transaction, messages } => self.post(*transaction, messages),
            Step::Take { consumer, most } => self.take(self.consumers[*consumer], *most),
            Step::Settle { consumer, pick, accept } => {
                self.settle(self.consumers[*consumer], *pick, *accept);
            }
            Step::Pledge { transaction, consumer, pick, accept } => {
                self.pledge(*transaction, self.consumers[*consumer], *pick, *accept);
            }
            Step::End { transaction, commits } => self.end_transaction(*transaction, *commits),
            Step::Replace { consumer } => {
                let gone = self.consumers[*consumer];
                self.bench.queue.unsubscribe(self.bench.now, gone).perform();
                self.give_back(|place| place == Place::Held { by: gone });
                self.drop_overflow();
                self.consumers[*consumer] = subscribe(&mut self.bench);
            }
        }
        self.check();
    }

    fn number(&mut self, messages: &[Sent]) -> (Vec<(u64, Sent)>, Vec<Message>) {
        let numbered: Vec<_> = (self.next_number..).zip(messages.iter().copied()).collect();
        self.next_number += messages.len() as u64;
        let encoded = numbered.iter().map(|(number, sent)| {
            let mut encoded = message(&number.to_string());
            encoded.header_mut().priority = sent.priority;
            encoded.set_application_property("name", u64::from(sent.name));
            encoded
        });
        let encoded = encoded.collect();
        (numbered, encoded)
    }

    fn post(&mut self, transaction: usize, messages: &[Sent]) {
        let (numbered, encoded) = self.number(messages);
        let (broker, queue, now) =
            (self.bench.broker.clone(), self.bench.queue.clone(), self.bench.now);
        let open = &mut self.open[transaction];
        let of = open.transaction.get_or_insert_with(|| broker.begin());
        self.bench.batch(encoded, |batch| of.enqueue(now, &queue, batch, true).1.perform());
        open.posts.push(numbered);
    }

    /// Messages come into the queue.
    fn arrive(&mut self, numbered: Vec<(u64, Sent)>) {
        for (number, sent) in numbered {
            if self.kind == Kind::LastValues {
                let before = self.messages.len();
                self.messages.retain(|message| message.sent.name != sent.name);
                self.replaced += (before - self.messages.len()) as u64;
            }
            let (position, place) = (self.next_position, Place::Available);
            self.next_position += 1;
            self.messages.push(ModelMessage { number, position, sent, place });
        }
        self.drop_overflow();
    }

    /// Drops what a ring drops when messages have come, or have come back.
    fn drop_overflow(&mut self) {
        let Some(most) = self.kind.most() else { return };
        loop {
            let depth = self.messages.len() as u64;
            let free = self.messages.iter().filter(|m| m.place == Place::Available);
            let free: Vec<_> = free.map(|m| (Reverse(self.kind.place(m).0), m.position)).collect();
            let stays = free.len() == 1 && depth <= 2 * most;
            let Some((_, least)) = free.into_iter().min().filter(|_| depth > most && !stays) else {
                break;
            };
            self.messages.retain(|message| message.position != least);
            self.dropped += 1;
        }
    }

    /// A consumer gets what the model says, one after the other.
    fn take(&mut self, consumer: ConsumerId, most: u32) {
        let mut taken = Taken::new();
        let limit = TakeLimit { messages: most, bytes: usize::MAX };
        self.bench.queue.take(self.bench.now, consumer, limit, &mut taken).1.perform();
        self.bench.queue.idle(self.bench.now, consumer).perform();
        let mut expected = self.takeable(consumer);
        let mut wanted = most;
        if self.kind == Kind::Groups {
            // They come in the order of the queue, those of one group one after the other.
            expected.sort_unstable();
        }
        for delivery in taken.deliveries() {
            let position = expected.first().copied();
            assert_eq!(position, Some(delivery.position), "not the first of {expected:?}");
            expected.remove(0);
            wanted -= 1;
            let message = self.messages.iter_mut().find(|m| m.position == delivery.position);
            let message = message.expect("the model has it too");
            assert_eq!(text(taken.bytes(delivery)), message.number.to_string());
            message.place = Place::Held { by: consumer };
        }
        assert!(wanted == 0 || expected.is_empty(), "{expected:?} were left");
    }

    /// What a consumer may have, the first first.
    fn takeable(&self, consumer: ConsumerId) -> Vec<u64> {
        let others: BTreeSet<u8> = self
            .messages
            .iter()
            .filter(|message| owner(message.place).is_some_and(|owner| owner != consumer))
            .map(|message| message.sent.name)
            .collect();
        let is_barred = |message: &ModelMessage| {
            self.kind == Kind::Groups && others.contains(&message.sent.name)
        };
        let free = self.messages.iter().filter(|m| m.place == Place::Available && !is_barred(m));
        let mut free: Vec<_> = free.map(|message| self.kind.place(message)).collect();
        free.sort_unstable();
        free.into_iter().map(|(_, position)| position).collect()
    }

    fn settle(&mut self, consumer: ConsumerId, pick: usize, accept: bool) {
        let Some(position) = self.held(consumer, pick) else { return };
        let outcome = if accept { Outcome::Accept } else { Outcome::Release };
        let settlement = Settlement { position, outcome };
        self.bench.queue.settle(self.bench.now, consumer, &[settlement]).perform();
        match accept {
            true => self.messages.retain(|message| message.position != position),
            false => {
                self.put(position, Place::Available);
                self.drop_overflow();
            }
        }
    }

    fn pledge(&mut self, transaction: usize, consumer: ConsumerId, pick: usize, accept: bool) {
        let Some(position) = self.held(consumer, pick) else { return };
        let (broker, queue) = (self.bench.broker.clone(), self.bench.queue.clone());
        let of = self.open[transaction].transaction.get_or_insert_with(|| broker.begin());
        let held =
            Held { queue: &queue, consumer, default_outcome: &Outcome::Release, settled: true };
        let outcome = if accept { Outcome::Accept } else { Outcome::Release };
        of.settle(self.bench.now, &held, &[Settlement { position, outcome }]).perform();
        self.put(position, Place::Pledged { by: consumer, transaction, accept });
        let consumers = &mut self.open[transaction].consumers;
        if !consumers.contains(&consumer) {
            consumers.push(consumer);
        }
    }

    fn end_transaction(&mut self, transaction: usize, commits: bool) {
        let Open { transaction: ended, posts, consumers } =
            std::mem::take(&mut self.open[transaction]);
        let Some(ended) = ended else { return };
        let now = self.bench.now;
        match commits {
            true => ended.commit(now).expect("nothing has gone wrong").perform(),
            false => ended.rollback(now).perform(),
        }
        let is_dequeued = |message: &ModelMessage| match message.place {
            Place::Pledged { transaction: of, accept, .. } => {
                of == transaction && commits && accept
            }
            _ => false,
        };
        self.messages.retain(|message| !is_dequeued(message));
        for consumer in consumers {
            let is_returned = |place| match place {
                Place::Pledged { by, transaction: of, .. } => (by, of) == (consumer, transaction),
                _ => false,
            };
            self.give_back(is_returned);
            if !commits {
                // One consumer's after the other's; a commit is one step.
                self.drop_overflow();
            }
        }
        if commits {
            posts.into_iter().for_each(|numbered| self.arrive(numbered));
            self.drop_overflow();
        }
    }

    fn give_back(&mut self, is_returned: impl Fn(Place) -> bool) {
        for message in self.messages.iter_mut().filter(|message| is_returned(message.place)) {
            message.place = Place::Available;
        }
    }

    fn check(&self) {
        let numbers = self.bench.statistics();
        assert_eq!(numbers.msg_depth, self.messages.len() as u64);
        let free = self.messages.iter().filter(|message| message.place == Place::Available);
        assert_eq!(numbers.msg_depth - numbers.unacked_messages, free.count() as u64);
        assert_eq!((numbers.discards_ring, numbers.discards_lvq), (self.dropped, self.replaced));
        for message in self.messages.iter().filter(|_| self.kind == Kind::Groups) {
            let group = self.messages.iter().filter(|other| other.sent.name == message.sent.name);
            let owners: Vec<_> = group.filter_map(|other| owner(other.place)).collect();
            assert!(owners.windows(2).all(|pair| pair[0] == pair[1]), "two have one group");
        }
    }

    /// Everybody leaves and the queue is purged: nothing may be left over.
    fn end(mut self, used: u64, commits: bool) {
        (0..TRANSACTIONS).for_each(|transaction| self.end_transaction(transaction, commits));
        self.check();
        for consumer in &self.consumers {
            self.bench.queue.unsubscribe(self.bench.now, *consumer).perform();
        }
        self.bench.queue.purge(self.bench.now, u64::MAX).1.perform();
        let numbers = self.bench.statistics();
        assert_eq!((numbers.msg_depth, numbers.byte_depth, numbers.memory_bytes), (0, 0, 0));
        assert_eq!((numbers.unacked_messages, numbers.consumer_count), (0, 0));
        assert_eq!(self.bench.broker.transaction_totals().open, 0);
        assert_eq!(self.bench.broker.budget().used(), used);
    }

    fn held(&self, consumer: ConsumerId, pick: usize) -> Option<u64> {
        let held = self.messages.iter().filter(|m| m.place == Place::Held { by: consumer });
        let held: Vec<u64> = held.map(|message| message.position).collect();
        (!held.is_empty()).then(|| held[pick % held.len()])
    }

    fn put(&mut self, position: u64, place: Place) {
        let message = self.messages.iter_mut().find(|message| message.position == position);
        message.expect("it is there").place = place;
    }
}

/// Whose a message is, directly or through a transaction.
fn owner(place: Place) -> Option<ConsumerId> {
    match place {
        Place::Available => None,
        Place::Held { by } | Place::Pledged { by, .. } => Some(by),
    }
}

fn subscribe(bench: &mut QueueBench) -> ConsumerId {
    let (waker, _) = bench.waker();
    bench.queue.subscribe(bench.now, ConsumerOptions::new(waker)).unwrap()
}

const TRANSACTIONS: usize = 3;
const CONSUMERS: usize = 3;

proptest! {
    #[test]
    fn transactions_at_a_queue_of_any_kind_do_what_their_model_does(
        kind in kinds(),
        steps in steps(),
        commits in any::<bool>(),
    ) {
        let mut model = Model::new(kind);
        let used = QueueBench::new(kind.settings()).broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.end(used, commits);
    }
}
