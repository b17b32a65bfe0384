//! Random operations on a queue, against a model that is simple enough to be right.

use crate::bench::{BenchConsumer, BenchProducer, QueueBench, message};
use mochila_broker::settings::{LimitPolicy, Limits};
use mochila_broker::{Outcome, QueueSettings, TakeLimit, Taking};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One thing that happens; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Send { messages: Vec<(u16, Option<u32>)> },
    Subscribe { browse: bool },
    Unsubscribe { consumer: usize, failed: bool },
    Take { consumer: usize, most: u32, bytes: usize },
    Idle { consumer: usize },
    Settle { consumer: usize, which: Vec<usize>, outcome: u8 },
    Purge { most: u64 },
    Move { most: u64 },
    MoveInVain { most: u64 },
    Pass { ms: u64 },
    Attach,
    Detach { producer: usize },
    Grant { producer: usize, want: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let message = (0u16..400, prop::option::weighted(0.2, 1u32..500));
    let pick = 0usize..100;
    let step = prop_oneof![
        4 => prop::collection::vec(message, 1..40).prop_map(|messages| Step::Send { messages }),
        1 => any::<bool>().prop_map(|browse| Step::Subscribe { browse }),
        1 => (pick.clone(), any::<bool>())
            .prop_map(|(consumer, failed)| Step::Unsubscribe { consumer, failed }),
        6 => (pick.clone(), 0u32..60, prop_oneof![Just(usize::MAX), 0usize..2_000])
            .prop_map(|(consumer, most, bytes)| Step::Take { consumer, most, bytes }),
        1 => pick.clone().prop_map(|consumer| Step::Idle { consumer }),
        6 => (pick.clone(), prop::collection::vec(pick.clone(), 1..40), 0u8..6)
            .prop_map(|(consumer, which, outcome)| Step::Settle { consumer, which, outcome }),
        1 => (1u64..30).prop_map(|most| Step::Purge { most }),
        1 => (1u64..30).prop_map(|most| Step::Move { most }),
        1 => (1u64..30).prop_map(|most| Step::MoveInVain { most }),
        1 => (1u64..200).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Attach),
        1 => pick.clone().prop_map(|producer| Step::Detach { producer }),
        3 => (pick, 0u32..50).prop_map(|(producer, want)| Step::Grant { producer, want }),
    ];
    prop::collection::vec(step, 1..120)
}

fn settings() -> impl Strategy<Value = QueueSettings> {
    let limited = |limit_policy, flow_stop_count| QueueSettings {
        max_count: Some(50),
        max_bytes: Some(10_000),
        limit_policy,
        flow_stop_count,
        ..QueueSettings::default()
    };
    prop_oneof![
        Just(QueueSettings::default()),
        Just(limited(LimitPolicy::Reject, None)),
        Just(limited(LimitPolicy::Reject, Some(0))),
        Just(limited(LimitPolicy::Block, Some(20))),
        Just(limited(LimitPolicy::Block, Some(0))),
    ]
}

struct ModelMessage {
    text: String,
    position: u64,
    bytes: u64,
    expiry_ms: u64,
    holder: Option<u32>,
    excluded: BTreeSet<u32>,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interest {
    Idle,
    Waiting,
    Expected,
}

struct ModelConsumer {
    bench: BenchConsumer,
    browses: bool,
    interest: Interest,
    cursor: u64,
}

struct ModelProducer {
    bench: BenchProducer,
    waits: bool,
    /// It has been called and is on its way.
    called: bool,
}

struct Model {
    bench: QueueBench,
    messages: Vec<ModelMessage>,
    consumers: Vec<ModelConsumer>,
    producers: Vec<ModelProducer>,
    next_position: u64,
    sent: usize,
    stopped: bool,
    full: bool,
    block: bool,
    /// Sizes of messages are multiplied by it.
    scale: usize,
}

impl Model {
    fn new(settings: QueueSettings, scale: usize) -> Model {
        Model {
            block: settings.limit_policy == LimitPolicy::Block,
            bench: QueueBench::new(settings),
            messages: Vec::new(),
            consumers: Vec::new(),
            producers: Vec::new(),
            next_position: 0,
            sent: 0,
            stopped: false,
            full: false,
            scale,
        }
    }

    fn apply(&mut self, step: &Step) {
        let pick = |index: usize, len: usize| (len > 0).then(|| index % len);
        let consumer = |index: usize| pick(index, self.consumers.len());
        let producer = |index: usize| pick(index, self.producers.len());
        match step {
            Step::Send { messages } => self.send(messages),
            Step::Subscribe { browse } => self.subscribe(*browse),
            Step::Unsubscribe { consumer: index, failed } => {
                if let Some(index) = consumer(*index) {
                    self.unsubscribe(index, *failed);
                }
            }
            Step::Take { consumer: index, most, bytes } => {
                if let Some(index) = consumer(*index) {
                    self.take(index, *most, *bytes);
                }
            }
            Step::Idle { consumer: index } => {
                if let Some(index) = consumer(*index) {
                    self.consumers[index].interest = Interest::Idle;
                    self.bench.idle(self.consumers[index].bench);
                }
            }
            Step::Settle { consumer: index, which, outcome } => {
                if let Some(index) = consumer(*index) {
                    self.settle(index, which, *outcome);
                }
            }
            Step::Purge { most } => self.purge(*most),
            Step::Move { most } => self.move_away(*most),
            Step::MoveInVain { most } => self.bench.move_in_vain(*most),
            Step::Pass { ms } => self.pass(*ms),
            Step::Attach => {
                let producer =
                    ModelProducer { bench: self.bench.producer(), waits: false, called: false };
                self.producers.push(producer);
            }
            Step::Detach { producer: index } => {
                if let Some(index) = producer(*index) {
                    let producer = self.producers.remove(index);
                    self.bench.detach(producer.bench);
                }
            }
            Step::Grant { producer: index, want } => {
                if let Some(index) = producer(*index) {
                    self.grant(index, *want);
                }
            }
        }
        self.note_woken();
        self.check();
    }

    fn send(&mut self, messages: &[(u16, Option<u32>)]) {
        let encoded: Vec<_> = messages
            .iter()
            .enumerate()
            .map(|(index, (size, ttl_ms))| {
                let text = format!("{:x<1$}", self.sent + index, usize::from(*size) * self.scale);
                let mut message = message(&text);
                if ttl_ms.is_some() {
                    message.header_mut().ttl = *ttl_ms;
                }
                (text, message, *ttl_ms)
            })
            .collect();
        self.sent += encoded.len();
        let enqueued = self
            .bench
            .send_messages(encoded.iter().map(|(_, message, _)| message.clone()).collect());
        let sizes: Vec<u64> = encoded
            .iter()
            .map(|(_, message, _)| mochila_wire::Encode::to_bytes(message).len() as u64)
            .collect();
        let rejected = self.admit(&sizes);
        let expected: BTreeSet<u32> = enqueued.rejected.iter().map(|r| r.index).collect();
        assert_eq!(rejected, expected);
        assert_eq!(enqueued.accepted as usize, sizes.len() - rejected.len());
        for (index, (text, _, ttl_ms)) in encoded.into_iter().enumerate() {
            if rejected.contains(&(index as u32)) {
                continue;
            }
            let now_ms = self.bench.now.mono_ms;
            self.messages.push(ModelMessage {
                text,
                position: self.next_position,
                bytes: sizes[index],
                expiry_ms: ttl_ms.map_or(u64::MAX, |ttl| now_ms + u64::from(ttl)),
                holder: None,
                excluded: BTreeSet::new(),
                failures: 0,
            });
            self.next_position += 1;
        }
    }

    /// Which of these are rejected; keeps the state of flow control.
    fn admit(&mut self, sizes: &[u64]) -> BTreeSet<u32> {
        let limits = self.bench.queue.limits();
        let (mut count, mut bytes) = self.depth();
        let mut rejected = BTreeSet::new();
        let total: u64 = sizes.iter().sum();
        let fits =
            count + sizes.len() as u64 <= limits.max_count && bytes + total <= limits.max_bytes;
        // Where producers are stopped in time, what they have sent before is taken.
        let (stops_count, stops_bytes) =
            (limits.stop_count != Limits::NONE, limits.stop_bytes != Limits::NONE);
        for (index, size) in sizes.iter().enumerate() {
            let refused = count >= limits.max_count && !stops_count
                || bytes + size > limits.max_bytes && !stops_bytes
                || *size > limits.max_bytes;
            if refused && !self.block && !fits {
                self.full |= *size <= limits.max_bytes;
                rejected.insert(index as u32);
            } else {
                count += 1;
                bytes += size;
                self.update_flow(count, bytes);
            }
        }
        rejected
    }

    fn update_flow(&mut self, count: u64, bytes: u64) {
        let limits = self.bench.queue.limits();
        let room = count < limits.max_count && bytes < limits.max_bytes;
        if self.stopped {
            self.stopped = !(count < limits.resume_count && bytes < limits.resume_bytes);
        } else if count > limits.stop_count || bytes > limits.stop_bytes {
            self.stopped = true;
        }
        self.full = (self.full || self.block) && !room;
    }

    /// Some messages have gone, or none.
    fn left(&mut self, before: usize) {
        if self.messages.len() < before {
            let (count, bytes) = self.depth();
            self.update_flow(count, bytes);
        }
    }

    fn subscribe(&mut self, browses: bool) {
        let bench = if browses { self.bench.browser() } else { self.bench.consumer() };
        self.consumers.push(ModelConsumer { bench, browses, interest: Interest::Idle, cursor: 0 });
    }

    fn unsubscribe(&mut self, index: usize, failed: bool) {
        let consumer = self.consumers.remove(index);
        let outcome = Outcome::Modify { failed, undeliverable_here: false, annotations: None };
        let wakeups =
            self.bench.queue.unsubscribe_with(self.bench.now, consumer.bench.id, &outcome);
        wakeups.perform();
        let held: Vec<u64> = self.held_by(consumer.bench.key).map(|m| m.position).collect();
        self.give_back(&held, failed, None);
    }

    fn take(&mut self, index: usize, most: u32, bytes: usize) {
        let ModelConsumer { bench, browses, cursor, .. } = self.consumers[index];
        let available = self.takeable(index).map(|m| m.text.clone()).collect::<Vec<_>>();
        let promised = self.promised_to_others(index);
        let got = self.bench.take_limited(bench, TakeLimit { messages: most, bytes });
        assert_eq!(got.texts, available[..got.texts.len()], "not the first ones");
        let count = got.texts.len();
        let not_promised = self.untaken().saturating_sub(promised);
        if most > 0 && !available.is_empty() && not_promised > 0 {
            assert!(count > 0, "there are {} and it got none", available.len());
        }
        if bytes == usize::MAX && self.hungry(index) == 0 {
            assert_eq!(count, available.len().min(most as usize), "it is alone and gets all");
        }
        match got.taking {
            Taking::Satisfied => assert_eq!(count as u32, most),
            Taking::Waiting => {
                assert!(
                    count == available.len() || not_promised <= count,
                    "it waits beside messages"
                );
            }
            Taking::More => assert!(count < available.len(), "there is no more"),
            Taking::Gone => panic!("gone"),
        }
        self.consumers[index].interest = match got.taking {
            Taking::Waiting => Interest::Waiting,
            Taking::More => Interest::Expected,
            _ => Interest::Idle,
        };
        for delivery in &got.deliveries {
            let message = self.messages.iter_mut().find(|m| m.position == delivery.position);
            let message = message.expect("what is delivered is in the queue");
            assert_eq!(delivery.delivery_count, message.failures);
            if !browses {
                message.holder = Some(bench.key);
            }
        }
        if browses {
            let last = got.deliveries.last().map_or(cursor, |delivery| delivery.position + 1);
            let all = got.taking == Taking::Waiting;
            self.consumers[index].cursor = if all { self.next_position } else { last };
        }
    }

    /// How many messages nobody has taken.
    fn untaken(&self) -> usize {
        let now_ms = self.bench.now.mono_ms;
        let untaken = |m: &&ModelMessage| m.holder.is_none() && m.expiry_ms > now_ms;
        self.messages.iter().filter(untaken).count()
    }

    /// How many messages others have been called for, if a consumer comes that was not called.
    fn promised_to_others(&self, index: usize) -> usize {
        let consumer = &self.consumers[index];
        if consumer.browses || consumer.interest == Interest::Expected {
            return 0;
        }
        let called = |c: &&ModelConsumer| !c.browses && c.interest == Interest::Expected;
        self.consumers.iter().filter(called).count()
    }

    /// How many others compete with a consumer for messages.
    fn hungry(&self, index: usize) -> usize {
        let hungry = |(other, consumer): (usize, &ModelConsumer)| {
            other != index && !consumer.browses && consumer.interest != Interest::Idle
        };
        self.consumers.iter().enumerate().filter(|pair| hungry(*pair)).count()
    }

    fn settle(&mut self, index: usize, which: &[usize], outcome: u8) {
        let consumer = self.consumers[index].bench;
        let held: Vec<u64> = self.held_by(consumer.key).map(|m| m.position).collect();
        let mut positions: Vec<u64> =
            which.iter().filter_map(|n| held.get(n % held.len().max(1)).copied()).collect();
        if which.len().is_multiple_of(2) {
            positions.sort_unstable();
            positions.dedup();
        }
        let chosen: BTreeSet<u64> = positions.iter().copied().collect();
        let chosen: Vec<u64> = chosen.into_iter().collect();
        match outcome {
            0 | 1 => self.bench.accept(consumer, &positions),
            2 => self.bench.settle(consumer, &positions, Outcome::Reject),
            3 => self.bench.release(consumer, &positions),
            _ => {
                let (failed, undeliverable_here) = (true, outcome == 5);
                let outcome = Outcome::Modify { failed, undeliverable_here, annotations: None };
                self.bench.settle(consumer, &positions, outcome);
            }
        }
        let before = self.messages.len();
        match outcome {
            0..=2 => {
                self.messages.retain(|message| !chosen.contains(&message.position));
                self.left(before);
            }
            3 => self.give_back(&chosen, false, None),
            4 => self.give_back(&chosen, true, None),
            _ => self.give_back(&chosen, true, Some(consumer.key)),
        }
    }

    fn give_back(&mut self, positions: &[u64], failed: bool, excluded: Option<u32>) {
        let now_ms = self.bench.now.mono_ms;
        for message in self.messages.iter_mut().filter(|m| positions.contains(&m.position)) {
            message.holder = None;
            message.failures += u32::from(failed);
            message.excluded.extend(excluded);
        }
        let gone = |message: &ModelMessage| {
            positions.contains(&message.position) && message.expiry_ms <= now_ms
        };
        let before = self.messages.len();
        self.messages.retain(|message| !gone(message));
        self.left(before);
    }

    fn purge(&mut self, most: u64) {
        let (purged, wakeups) = self.bench.queue.purge(self.bench.now, most);
        wakeups.perform();
        assert_eq!(purged, self.lose(most));
    }

    fn move_away(&mut self, most: u64) {
        let moved = self.bench.move_away(most);
        assert_eq!(moved, self.lose(most));
    }

    /// The oldest messages that nobody holds are gone; how many those are.
    fn lose(&mut self, most: u64) -> u64 {
        let before = self.messages.len();
        let mut left = most;
        self.messages.retain(|message| {
            let gone = left > 0 && message.holder.is_none();
            left -= u64::from(gone);
            !gone
        });
        self.left(before);
        most - left
    }

    fn pass(&mut self, ms: u64) {
        // Timers fire by ticks of 8 ms; at the end of one, all that has expired is gone.
        self.bench.pass(ms.next_multiple_of(8));
        let now_ms = self.bench.now.mono_ms;
        let before = self.messages.len();
        self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
        self.left(before);
    }

    fn grant(&mut self, index: usize, want: u32) {
        let producer = self.producers[index].bench;
        // Every other one knows that messages are rejected, if they are.
        let is_told = index % 2 == 1;
        let credit = match is_told {
            true => self.bench.grant_again(producer, want),
            false => self.bench.grant(producer, want),
        };
        let closed = self.stopped || self.full;
        let is_rejecting = self.full && !self.stopped && !self.block;
        assert!(credit <= want);
        if closed && want > 0 {
            assert_eq!(credit, u32::from(is_rejecting && !is_told));
        } else {
            assert_eq!(credit == 0, want == 0);
        }
        self.producers[index].waits = closed && want > 0;
        self.producers[index].called = false;
    }

    fn note_woken(&mut self) {
        for key in self.bench.woken() {
            if let Some(consumer) = self.consumers.iter_mut().find(|c| c.bench.key == key) {
                consumer.interest = Interest::Expected;
            }
            if let Some(producer) = self.producers.iter_mut().find(|p| p.bench.key == key) {
                producer.called |= std::mem::take(&mut producer.waits);
            }
        }
    }

    fn check(&mut self) {
        let statistics = self.bench.statistics();
        let (count, bytes) = self.depth();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), (count, bytes));
        let held = self.messages.iter().filter(|message| message.holder.is_some()).count();
        assert_eq!(statistics.unacked_messages, held as u64);
        assert_eq!(statistics.flow_stopped == 1, self.stopped || self.full);
        let totals = statistics.msg_total_enqueues - statistics.msg_total_dequeues;
        assert_eq!(totals, count);
        self.check_nobody_waits_in_vain(false);
    }

    /// Whoever waits while a message is there that it may take must know that another consumer is
    /// on its way; once all have come, nobody may wait like that.
    fn check_nobody_waits_in_vain(&self, all_have_come: bool) {
        let expected =
            self.consumers.iter().any(|c| !c.browses && c.interest == Interest::Expected);
        for (index, consumer) in self.consumers.iter().enumerate() {
            if consumer.interest == Interest::Waiting && (!expected || consumer.browses) {
                let text = self.takeable(index).next().map(|message| &message.text);
                assert_eq!(text, None, "consumer {index} waits in vain");
            }
        }
        if all_have_come {
            let waits = self.producers.iter().any(|producer| producer.waits);
            assert!(!waits || self.stopped || self.full, "a producer waits in vain");
        }
    }

    /// Lets everybody who has been woken do something, until all is quiet.
    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            let come = |c: &ModelConsumer| c.interest == Interest::Expected;
            match self.consumers.iter().position(come) {
                Some(index) => {
                    self.take(index, 3, usize::MAX);
                    self.note_woken();
                }
                None => break,
            }
        }
        while let Some(index) = self.producers.iter().position(|producer| producer.called) {
            self.grant(index, 1);
            self.note_woken();
        }
        self.check_nobody_waits_in_vain(true);
    }

    fn takeable(&self, index: usize) -> impl Iterator<Item = &ModelMessage> {
        let now_ms = self.bench.now.mono_ms;
        let consumer = &self.consumers[index];
        self.messages.iter().filter(move |message| {
            message.holder.is_none()
                && message.expiry_ms > now_ms
                && !message.excluded.contains(&consumer.bench.key)
                && (!consumer.browses || message.position >= consumer.cursor)
        })
    }

    fn held_by(&self, key: u32) -> impl Iterator<Item = &ModelMessage> {
        self.messages.iter().filter(move |message| message.holder == Some(key))
    }

    fn depth(&self) -> (u64, u64) {
        (self.messages.len() as u64, self.messages.iter().map(|message| message.bytes).sum())
    }

    /// Everybody leaves and the queue is purged: nothing may be left over.
    fn end(mut self, used: u64) {
        while !self.consumers.is_empty() {
            self.unsubscribe(0, false);
        }
        self.bench.queue.purge(self.bench.now, u64::MAX).1.perform();
        let statistics = self.bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), (0, 0));
        assert_eq!((statistics.unacked_messages, statistics.memory_bytes), (0, 0));
        assert_eq!(self.bench.broker.budget().used(), used);
        // A timer that was set for messages that have gone, or for an alert, fires once more.
        self.bench.pass(61_000);
        assert_eq!(self.bench.broker.next_timeout_ms(), None);
    }
}

proptest! {
    #[test]
    fn a_queue_does_what_its_model_does(
        settings in settings(),
        // With large messages, segments of which little is left are compacted on the way.
        scale in prop_oneof![3 => Just(1), 1 => Just(60)],
        steps in steps(),
    ) {
        let mut model = Model::new(settings, scale);
        let used = model.bench.broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.settle_down();
        model.end(used);
    }
}
