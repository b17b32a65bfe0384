//! Random operations on queues of every kind, against a model that is simple enough to be right.

use crate::bench::{BenchConsumer, Got, QueueBench, message};
use crate::kinds::{Kind, Sent, Step, priorities, rings, steps};
use mochila_broker::{Outcome, TakeLimit, Taking};
use mochila_wire::Encode;
use proptest::prelude::*;
use std::collections::BTreeSet;

struct ModelMessage {
    key: u8,
    level: usize,
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
    settled: bool,
    interest: Interest,
    /// Where a browser goes on, in each level.
    cursors: Vec<u64>,
}

struct Model {
    bench: QueueBench,
    kind: Kind,
    messages: Vec<ModelMessage>,
    consumers: Vec<ModelConsumer>,
    next_position: u64,
    dropped: u64,
    replaced: u64,
    expired: u64,
    /// How many messages of each level have been taken in this round of turns.
    taken: [u32; 10],
    /// The level of which a message was taken last.
    last: Option<usize>,
    /// What the consumer that was looked at last may have.
    last_takeable: Vec<(usize, u64)>,
}

impl Model {
    fn new(kind: Kind) -> Model {
        Model {
            bench: QueueBench::new(kind.settings()),
            kind,
            messages: Vec::new(),
            consumers: Vec::new(),
            next_position: 0,
            dropped: 0,
            replaced: 0,
            expired: 0,
            taken: [0; 10],
            last: None,
            last_takeable: Vec::new(),
        }
    }

    fn apply(&mut self, step: &Step) {
        let pick = |index: &usize| match self.consumers.len() {
            0 => None,
            len => Some(index % len),
        };
        match step {
            Step::Send { messages } => self.send(messages),
            Step::Subscribe { browse, settled } => self.subscribe(*browse, *settled),
            Step::Unsubscribe { consumer, failed } => {
                if let Some(index) = pick(consumer) {
                    self.unsubscribe(index, *failed);
                }
            }
            Step::Take { consumer, most, bytes } => {
                if let Some(index) = pick(consumer) {
                    self.take(index, TakeLimit { messages: *most, bytes: *bytes });
                }
            }
            Step::Idle { consumer } => {
                if let Some(index) = pick(consumer) {
                    self.consumers[index].interest = Interest::Idle;
                    self.bench.idle(self.consumers[index].bench);
                }
            }
            Step::Settle { consumer, which, outcome } => {
                if let Some(index) = pick(consumer) {
                    self.settle(index, which, *outcome);
                }
            }
            Step::Purge { most } => self.purge(*most),
            Step::Pass { ms } => self.pass(*ms),
        }
        self.note_woken();
        self.check();
    }

    fn send(&mut self, sent: &[Sent]) {
        let now_ms = self.bench.now.mono_ms;
        let mut encoded = Vec::new();
        for Sent { padding, ttl_ms, priority, key } in sent {
            let number = self.next_position + encoded.len() as u64;
            let text = format!("{number}{}", "x".repeat(usize::from(*padding)));
            let mut message = message(&text);
            if ttl_ms.is_some() {
                message.header_mut().ttl = *ttl_ms;
            }
            if let Some(priority) = priority {
                message.header_mut().priority = *priority;
            }
            if *key > 0 {
                message.set_application_property("key", u64::from(*key));
            }
            let level = self.kind.level(priority.unwrap_or(4));
            let bytes = message.to_bytes().len() as u64;
            let expiry_ms = ttl_ms.map_or(u64::MAX, |ttl| now_ms + u64::from(ttl));
            encoded.push((bytes, expiry_ms, (level, *key), message));
        }
        let most = self.bench.queue.limits().max_bytes;
        let messages = encoded.iter().map(|(.., message)| message.clone()).collect();
        let enqueued = self.bench.send_messages(messages);
        let too_large = encoded.iter().enumerate().filter(|(_, (bytes, ..))| *bytes > most);
        let mut refused: BTreeSet<u32> = too_large.map(|(index, _)| index as u32).collect();
        for (index, (bytes, expiry_ms, (level, key), _)) in encoded.into_iter().enumerate() {
            let last = self.messages.iter().position(|m| m.key == key);
            let last = last.filter(|_| self.kind.keeps_last_values);
            if !self.fits(bytes, last) {
                refused.insert(index as u32);
            }
            if refused.contains(&(index as u32)) {
                continue;
            }
            if let Some(last) = last {
                self.messages.remove(last);
                self.replaced += 1;
            }
            let position = self.next_position;
            self.next_position += 1;
            self.messages.push(ModelMessage {
                key,
                level,
                position,
                bytes,
                expiry_ms,
                holder: None,
                excluded: BTreeSet::new(),
                failures: 0,
            });
        }
        let said: BTreeSet<u32> = enqueued.rejected.iter().map(|r| r.index).collect();
        assert_eq!(said, refused);
        if enqueued.accepted > 0 {
            self.drop_overflow();
        }
    }

    /// Whether there is room for so many bytes if the last message with the same key goes.
    fn fits(&self, bytes: u64, last: Option<usize>) -> bool {
        let Some((max_count, max_bytes)) = self.kind.limits else { return true };
        let (mut count, mut size) = self.depth();
        if let Some(last) = last {
            count -= 1;
            size -= self.messages[last].bytes;
        }
        (max_count == 0 || count < max_count) && (max_bytes == 0 || size + bytes <= max_bytes)
    }

    /// Drops what a ring drops when messages have come, or have come back.
    fn drop_overflow(&mut self) {
        let Some((count, bytes)) = self.kind.ring else { return };
        let over = |(messages, size): (u64, u64), times: u64| {
            count > 0 && messages > count * times || bytes > 0 && size > bytes * times
        };
        while over(self.depth(), 1) {
            let free = self.messages.iter().filter(|m| m.holder.is_none()).count();
            if free == 0 || free == 1 && !over(self.depth(), 2) {
                break;
            }
            let index = self.least();
            let gone = self.messages.remove(index);
            match gone.expiry_ms <= self.bench.now.mono_ms {
                true => self.expired += 1,
                false => self.dropped += 1,
            }
        }
    }

    /// The message that is dropped first.
    fn least(&self) -> usize {
        let free = self.messages.iter().enumerate().filter(|(_, m)| m.holder.is_none());
        free.min_by_key(|(_, message)| (message.level, message.position)).unwrap().0
    }

    fn subscribe(&mut self, browses: bool, settled: bool) {
        let bench = self.bench.subscribe(|options| {
            if browses {
                options.mode = mochila_broker::Mode::Browse;
            }
            options.settled = settled && !browses;
        });
        let browses = browses || self.kind.is_browsed;
        let cursors = vec![0; 10];
        let interest = Interest::Idle;
        let settled = settled && !browses;
        self.consumers.push(ModelConsumer { bench, browses, settled, interest, cursors });
    }

    fn unsubscribe(&mut self, index: usize, failed: bool) {
        let consumer = self.consumers.remove(index);
        let outcome = Outcome::Modify { failed, undeliverable_here: false, annotations: None };
        let queue = &self.bench.queue;
        queue.unsubscribe_with(self.bench.now, consumer.bench.id, &outcome).perform();
        let held = self.held_by(consumer.bench.key);
        self.give_back(&held, failed, None);
    }

    fn take(&mut self, index: usize, limit: TakeLimit) {
        let ModelConsumer { bench, browses, settled, .. } = self.consumers[index];
        let expected = self.in_order(index);
        let promised = self.promised_to_others(index);
        let untaken = self.untaken();
        let alone = self.hungry(index) == 0;
        let got = self.bench.take_limited(bench, limit);
        let positions = got.positions();
        assert_eq!(positions, expected[..positions.len()], "not the first ones");
        if !browses {
            self.in_turns(index, positions.len(), true);
        }
        let count = positions.len();
        if limit.messages > 0 && !expected.is_empty() && untaken > promised {
            assert!(count > 0, "there are {} and it got none", expected.len());
        }
        if limit.bytes == usize::MAX && alone {
            let most = expected.len().min(limit.messages as usize);
            assert_eq!(count, most, "it is alone and gets all");
        }
        match got.taking {
            Taking::Satisfied => assert_eq!(count as u32, limit.messages),
            Taking::Waiting => {
                let shared = untaken.saturating_sub(promised) <= count;
                assert!(count == expected.len() || shared, "it waits beside messages");
            }
            Taking::More => assert!(count < expected.len(), "there is no more"),
            Taking::Gone => panic!("gone"),
        }
        self.consumers[index].interest = match got.taking {
            Taking::Waiting => Interest::Waiting,
            Taking::More => Interest::Expected,
            _ => Interest::Idle,
        };
        if browses {
            self.note_shown(index, &got, count as u32 == limit.messages);
        }
        self.expire_met(browses);
        for delivery in &got.deliveries {
            let message = self.messages.iter_mut().find(|m| m.position == delivery.position);
            let message = message.expect("what is delivered is in the queue");
            assert_eq!(delivery.delivery_count, message.failures);
            if !browses {
                message.holder = Some(bench.key);
            }
        }
        if settled {
            self.messages.retain(|message| !positions.contains(&message.position));
        }
    }

    /// A consumer removes what has expired when it comes across it.
    fn expire_met(&mut self, browses: bool) {
        if browses {
            return;
        }
        // Time passes in steps after each of which all that has expired is gone.
        assert_eq!(self.bench.statistics().discards_ttl, self.expired);
    }

    /// A browser has been shown messages, perhaps all there are.
    fn note_shown(&mut self, index: usize, got: &Got, is_satisfied: bool) {
        let all = got.taking == Taking::Waiting && !is_satisfied;
        let next_position = self.next_position;
        let consumer = &mut self.consumers[index];
        for delivery in &got.deliveries {
            let message = self.messages.iter().find(|m| m.position == delivery.position);
            let level = message.expect("what is shown is in the queue").level;
            consumer.cursors[level] = delivery.position + 1;
        }
        if all {
            consumer.cursors.fill(next_position);
        }
    }

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
        match self.consumers[index].browses {
            true => 0,
            false => self.consumers.iter().enumerate().filter(|pair| hungry(*pair)).count(),
        }
    }

    fn settle(&mut self, index: usize, which: &[usize], outcome: u8) {
        let consumer = self.consumers[index].bench;
        let held = match self.kind.is_browsed {
            true => self.messages.iter().map(|message| message.position).collect(),
            false => self.held_by(consumer.key),
        };
        let chosen: Vec<u64> =
            which.iter().filter_map(|n| held.get(n % held.len().max(1)).copied()).collect();
        match outcome {
            0 | 1 => self.bench.accept(consumer, &chosen),
            2 => self.bench.settle(consumer, &chosen, Outcome::Reject),
            3 => self.bench.release(consumer, &chosen),
            _ => {
                let (failed, undeliverable_here) = (true, outcome == 5);
                let outcome = Outcome::Modify { failed, undeliverable_here, annotations: None };
                self.bench.settle(consumer, &chosen, outcome);
            }
        }
        if self.kind.is_browsed {
            // What is only shown cannot be settled.
            return;
        }
        let chosen: BTreeSet<u64> = chosen.into_iter().collect();
        let chosen: Vec<u64> = chosen.into_iter().collect();
        match outcome {
            0..=2 => self.messages.retain(|message| !chosen.contains(&message.position)),
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
        let before = self.messages.len();
        let gone = |m: &ModelMessage| positions.contains(&m.position) && m.expiry_ms <= now_ms;
        self.messages.retain(|message| !gone(message));
        self.expired += (before - self.messages.len()) as u64;
        self.drop_overflow();
    }

    fn purge(&mut self, most: u64) {
        let (purged, wakeups) = self.bench.queue.purge(self.bench.now, most);
        wakeups.perform();
        let mut left = most;
        self.messages.retain(|message| {
            let gone = left > 0 && message.holder.is_none();
            left -= u64::from(gone);
            !gone
        });
        assert_eq!(purged, most - left);
    }

    fn pass(&mut self, ms: u64) {
        // Timers fire by ticks of 8 ms; at the end of one, all that has expired is gone.
        self.bench.pass(ms.next_multiple_of(8));
        let now_ms = self.bench.now.mono_ms;
        let before = self.messages.len();
        self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
        self.expired += (before - self.messages.len()) as u64;
    }

    fn note_woken(&mut self) {
        for key in self.bench.woken() {
            if let Some(consumer) = self.consumers.iter_mut().find(|c| c.bench.key == key) {
                consumer.interest = Interest::Expected;
            }
        }
    }

    fn check(&mut self) {
        let statistics = self.bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), self.depth());
        let held = self.messages.iter().filter(|message| message.holder.is_some()).count();
        assert_eq!(statistics.unacked_messages, held as u64);
        assert_eq!(statistics.discards_ring, self.dropped);
        assert_eq!(statistics.discards_lvq, self.replaced);
        assert_eq!(statistics.discards_ttl, self.expired);
        let left = statistics.msg_total_enqueues - statistics.msg_total_dequeues;
        assert_eq!(left, statistics.msg_depth);
        self.check_nobody_waits_in_vain();
    }

    /// Whoever waits while a message is there that it may take must know that another consumer is
    /// on its way.
    fn check_nobody_waits_in_vain(&self) {
        let expected =
            self.consumers.iter().any(|c| !c.browses && c.interest == Interest::Expected);
        for (index, consumer) in self.consumers.iter().enumerate() {
            if consumer.interest == Interest::Waiting && (!expected || consumer.browses) {
                assert_eq!(self.takeable(index), [], "consumer {index} waits in vain");
            }
        }
    }

    /// Lets everybody who has been woken do something, until all is quiet.
    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            let come = |c: &ModelConsumer| c.interest == Interest::Expected;
            let Some(index) = self.consumers.iter().position(come) else { break };
            self.take(index, TakeLimit { messages: 3, bytes: usize::MAX });
            self.note_woken();
        }
        self.check();
    }

    /// The messages that a consumer may have, in the order in which it gets them.
    fn in_order(&mut self, index: usize) -> Vec<u64> {
        if self.consumers[index].browses {
            return self.takeable(index).into_iter().map(|(_, position)| position).collect();
        }
        self.in_turns(index, usize::MAX, false)
    }

    /// The first of the messages that a consumer may have, as levels have their turns; which turns
    /// are over is kept if they have been taken.
    fn in_turns(&mut self, index: usize, most: usize, are_taken: bool) -> Vec<u64> {
        let mut left = match are_taken {
            true => self.last_takeable.clone(),
            false => self.takeable(index),
        };
        self.last_takeable = left.clone();
        let (turns, mut taken, mut last) = (self.kind.turns(), self.taken, self.last);
        let mut order = Vec::new();
        while order.len() < most && !left.is_empty() {
            let mut stands_back = false;
            let mut chosen = None;
            for level in (0..10).rev() {
                let first = left.iter().find(|(l, _)| *l == level);
                let Some((_, position)) = first.copied() else { continue };
                let turn = match turns[level] {
                    0 if stands_back => 1,
                    0 => u32::MAX,
                    turn => turn,
                };
                if taken[level] < turn {
                    chosen = Some((level, position, turn));
                    break;
                }
                stands_back = true;
            }
            let Some((level, position, turn)) = chosen else {
                // The highest one does not begin again if it was its turn just now.
                let highest = left.iter().map(|(level, _)| *level).max().unwrap();
                let is_alone = left.iter().all(|(level, _)| *level == highest);
                let before = std::mem::take(&mut taken);
                if last == Some(highest) && !is_alone {
                    taken[highest] = before[highest];
                }
                continue;
            };
            last = Some(level);
            taken[level] += u32::from(turn != u32::MAX);
            left.retain(|(_, p)| *p != position);
            order.push(position);
        }
        if are_taken {
            (self.taken, self.last) = (taken, last);
        }
        order
    }

    /// The messages that a consumer may have with their levels, those of higher levels first.
    fn takeable(&self, index: usize) -> Vec<(usize, u64)> {
        let now_ms = self.bench.now.mono_ms;
        let consumer = &self.consumers[index];
        let takeable = |message: &&ModelMessage| {
            message.holder.is_none()
                && message.expiry_ms > now_ms
                && !message.excluded.contains(&consumer.bench.key)
                && (!consumer.browses || message.position >= consumer.cursors[message.level])
        };
        let messages = self.messages.iter().filter(takeable);
        let mut takeable: Vec<_> = messages.map(|m| (m.level, m.position)).collect();
        takeable.sort_by_key(|(level, position)| (std::cmp::Reverse(*level), *position));
        takeable
    }

    fn held_by(&self, key: u32) -> Vec<u64> {
        let held = self.messages.iter().filter(|message| message.holder == Some(key));
        held.map(|message| message.position).collect()
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

fn run(kind: Kind, steps: &[Step]) {
    let mut model = Model::new(kind);
    let used = model.bench.broker.budget().used();
    for step in steps {
        model.apply(step);
    }
    model.settle_down();
    model.end(used);
}

proptest! {
    #[test]
    fn a_ring_does_what_its_model_does(ring in rings(), steps in steps()) {
        run(Kind { ring, ..Kind::default() }, &steps);
    }

    #[test]
    fn a_queue_with_priorities_does_what_its_model_does(
        priorities in priorities(),
        steps in steps(),
    ) {
        run(Kind { priorities, ..Kind::default() }, &steps);
    }

    #[test]
    fn a_ring_with_priorities_does_what_its_model_does(
        priorities in priorities(),
        ring in rings(),
        steps in steps(),
    ) {
        run(Kind { ring, priorities, ..Kind::default() }, &steps);
    }

    #[test]
    fn a_queue_of_last_values_does_what_its_model_does(
        limits in prop_oneof![Just(None), rings()],
        steps in steps(),
    ) {
        run(Kind { limits, keeps_last_values: true, ..Kind::default() }, &steps);
    }

    #[test]
    fn a_queue_that_is_only_browsed_does_what_its_model_does(
        ring in prop_oneof![Just(None), rings()],
        keeps_last_values in any::<bool>(),
        steps in steps(),
    ) {
        run(Kind { ring, keeps_last_values, is_browsed: true, ..Kind::default() }, &steps);
    }

    #[test]
    fn a_ring_of_last_values_does_what_its_model_does(ring in rings(), steps in steps()) {
        run(Kind { ring, keeps_last_values: true, ..Kind::default() }, &steps);
    }
}
