//! Random operations with random selectors, against a model that is simple enough to be right.

use crate::bench::{BenchConsumer, QueueBench, message};
use crate::selecting::selector;
use mochila_broker::{Mode, Outcome, QueueSettings, TakeLimit, Taking};
use mochila_wire::Map;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Send { messages: Vec<(u8, Option<u32>)> },
    Subscribe { wants: usize, browse: bool },
    Unsubscribe { consumer: usize },
    Take { consumer: usize, most: u32, bytes: usize },
    Idle { consumer: usize },
    Settle { consumer: usize, which: Vec<usize>, outcome: u8 },
    Purge { most: u64 },
    Move { most: u64 },
    MoveInVain { most: u64 },
    Pass { ms: u64 },
}

/// Selectors, and what they mean for a message of a colour that has failed so often.
type Wants = (Option<&'static str>, fn(u8, u32) -> bool);
const WANTS: [Wants; 8] = [
    (None, |_, _| true),
    (None, |_, _| true),
    (Some("colour = 1"), |colour, _| colour == 1),
    (Some("colour = 1 OR colour = 2"), |colour, _| colour == 1 || colour == 2),
    (Some("colour > 3"), |colour, _| colour > 3),
    (Some("colour <> 5"), |colour, _| colour != 5),
    (Some("JMSXDeliveryCount > 1"), |_, failures| failures > 0),
    (Some("colour = 99"), |_, _| false),
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pick = 0usize..100;
    let one = (0u8..7, prop::option::weighted(0.1, 1u32..300));
    let step = prop_oneof![
        5 => prop::collection::vec(one, 1..30).prop_map(|messages| Step::Send { messages }),
        3 => (0..WANTS.len(), prop::bool::weighted(0.2))
            .prop_map(|(wants, browse)| Step::Subscribe { wants, browse }),
        1 => pick.clone().prop_map(|consumer| Step::Unsubscribe { consumer }),
        8 => (pick.clone(), 0u32..30, prop_oneof![3 => Just(usize::MAX), 1 => 0usize..500])
            .prop_map(|(consumer, most, bytes)| Step::Take { consumer, most, bytes }),
        2 => pick.clone().prop_map(|consumer| Step::Idle { consumer }),
        6 => (pick.clone(), prop::collection::vec(pick, 1..30), 0u8..4)
            .prop_map(|(consumer, which, outcome)| Step::Settle { consumer, which, outcome }),
        1 => (1u64..10).prop_map(|most| Step::Purge { most }),
        1 => (1u64..10).prop_map(|most| Step::Move { most }),
        1 => (1u64..10).prop_map(|most| Step::MoveInVain { most }),
        1 => (1u64..200).prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 1..150)
}

struct ModelMessage {
    position: u64,
    colour: u8,
    /// The group that it is in, if the queue has groups.
    group: u64,
    expiry_ms: u64,
    holder: Option<u32>,
    /// Nobody has had it yet.
    is_new: bool,
    failures: u32,
    excluded: BTreeSet<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interest {
    Idle,
    Waiting,
    Expected,
}

struct ModelConsumer {
    bench: BenchConsumer,
    wants: fn(u8, u32) -> bool,
    browses: bool,
    interest: Interest,
    /// The last one that it got of those that nobody had had.
    newest: Option<u64>,
    /// What a browser has been shown.
    shown: BTreeSet<u64>,
    /// A browser does not look at anything before this again.
    cursor: u64,
}

#[derive(Default)]
struct Model {
    bench: QueueBench,
    messages: Vec<ModelMessage>,
    consumers: Vec<ModelConsumer>,
    next_position: u64,
    is_grouped: bool,
}

impl Model {
    fn new(is_grouped: bool) -> Model {
        let mut settings = QueueSettings::default();
        if is_grouped {
            let arguments =
                Map::new().with("qpid.group_header_key", "g").with("qpid.shared_msg_group", 1u32);
            settings = QueueSettings::from_arguments(&arguments).unwrap();
        }
        Model { bench: QueueBench::new(settings), is_grouped, ..Model::default() }
    }

    /// The oldest messages that nobody holds are gone.
    fn lose(&mut self, most: u64) {
        let mut left = most;
        self.messages.retain(|message| {
            let gone = left > 0 && message.holder.is_none();
            left -= u64::from(gone);
            !gone
        });
    }

    fn apply(&mut self, step: &Step) {
        let len = self.consumers.len();
        let pick = |index: &usize| (len > 0).then(|| index % len);
        match step {
            Step::Send { messages } => self.send(messages),
            Step::Subscribe { wants, browse } => self.subscribe(*wants, *browse),
            Step::Unsubscribe { consumer } => {
                let Some(index) = pick(consumer) else { return };
                let consumer = self.consumers.remove(index);
                self.bench.unsubscribe(consumer.bench);
                let held = self.held_by(consumer.bench.key);
                self.give_back(&held, false, None);
            }
            Step::Take { consumer, most, bytes } => {
                let Some(index) = pick(consumer) else { return };
                self.take(index, *most, *bytes);
            }
            Step::Idle { consumer } => {
                let Some(index) = pick(consumer) else { return };
                self.consumers[index].interest = Interest::Idle;
                self.bench.idle(self.consumers[index].bench);
            }
            Step::Settle { consumer, which, outcome } => {
                let Some(index) = pick(consumer) else { return };
                self.settle(index, which, *outcome);
            }
            Step::Purge { most } => {
                let (_, wakeups) = self.bench.queue.purge(self.bench.now, *most);
                wakeups.perform();
                self.lose(*most);
            }
            Step::Move { most } => {
                self.bench.move_away(*most);
                self.lose(*most);
            }
            Step::MoveInVain { most } => self.bench.move_in_vain(*most),
            Step::Pass { ms } => {
                self.bench.pass(ms.next_multiple_of(8));
                let now_ms = self.bench.now.mono_ms;
                self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
            }
        }
        self.note_woken();
        assert_eq!(self.bench.statistics().msg_depth, self.messages.len() as u64);
        self.check_nobody_waits_in_vain();
    }

    fn send(&mut self, messages: &[(u8, Option<u32>)]) {
        let first = self.next_position;
        let encode = |(index, (colour, ttl)): (usize, &(u8, Option<u32>))| {
            let mut message = message("m");
            message.set_application_property("colour", *colour);
            message.set_application_property("g", group_of(first + index as u64));
            if ttl.is_some() {
                message.header_mut().ttl = *ttl;
            }
            message
        };
        let waiting = self.consumers.iter().filter(|c| !c.browses).count();
        self.bench.send_messages(messages.iter().enumerate().map(encode).collect());
        for (colour, ttl) in messages {
            let expiry_ms = ttl.map_or(u64::MAX, |ttl| self.bench.now.mono_ms + u64::from(ttl));
            self.messages.push(ModelMessage {
                position: self.next_position,
                colour: *colour,
                group: group_of(self.next_position),
                expiry_ms,
                holder: None,
                is_new: true,
                failures: 0,
                excluded: BTreeSet::new(),
            });
            self.next_position += 1;
        }
        let woken = self.note_woken();
        assert!(woken.len() <= waiting.min(self.messages.len()) + self.browsers(), "a herd");
        let called_for_nothing = woken.iter().find(|index| self.takeable(**index).is_empty());
        // With groups somebody else may have to come first.
        assert!(called_for_nothing.is_none() || self.is_grouped, "called for nothing");
    }

    fn browsers(&self) -> usize {
        self.consumers.iter().filter(|consumer| consumer.browses).count()
    }

    fn subscribe(&mut self, wants: usize, browses: bool) {
        let (text, wants) = WANTS[wants];
        let bench = self.bench.subscribe(|options| {
            options.filters = text.map(selector);
            options.mode = if browses { Mode::Browse } else { Mode::Acquire };
        });
        let (interest, shown) = (Interest::Idle, BTreeSet::new());
        let (newest, cursor) = (None, 0);
        self.consumers.push(ModelConsumer {
            bench,
            wants,
            browses,
            interest,
            newest,
            shown,
            cursor,
        });
    }

    fn take(&mut self, index: usize, most: u32, bytes: usize) {
        let takeable = self.takeable(index);
        let is_alone = self.consumers.iter().enumerate().all(|(other, consumer)| {
            other == index || consumer.browses || consumer.interest == Interest::Idle
        });
        let key = self.consumers[index].bench.key;
        let consumer = self.consumers[index].bench;
        let got = self.bench.take_limited(consumer, TakeLimit { messages: most, bytes });
        let positions = got.positions();
        assert!(positions.iter().all(|p| takeable.contains(p)), "{positions:?} of {takeable:?}");
        assert!(positions.is_sorted(), "{positions:?} are out of order");
        let consumer = &mut self.consumers[index];
        if is_alone && !self.is_grouped || consumer.browses {
            let first = &takeable[..positions.len()];
            assert_eq!(positions, first, "the first ones were passed over");
            // It is told if not all has been looked at.
            let may_have_all = bytes == usize::MAX && got.taking != Taking::More;
            if may_have_all {
                assert_eq!(positions.len(), takeable.len().min(most as usize));
            }
        }
        consumer.interest = match got.taking {
            Taking::Waiting => Interest::Waiting,
            Taking::More => Interest::Expected,
            _ => Interest::Idle,
        };
        if consumer.browses {
            consumer.shown.extend(&positions);
            consumer.cursor = match got.taking {
                Taking::Waiting => self.next_position,
                _ => positions.last().map_or(consumer.cursor, |last| last + 1),
            };
            return;
        }
        for message in self.messages.iter_mut().filter(|m| positions.contains(&m.position)) {
            message.holder = Some(key);
            if !std::mem::take(&mut message.is_new) {
                continue;
            }
            let before = self.consumers[index].newest.replace(message.position);
            // Groups wait for one another.
            assert!(before < Some(message.position) || self.is_grouped, "a message was overtaken");
        }
    }

    fn settle(&mut self, index: usize, which: &[usize], outcome: u8) {
        let consumer = self.consumers[index].bench;
        let held = self.held_by(consumer.key);
        let chosen = which.iter().filter_map(|n| held.get(n % held.len().max(1)).copied());
        let chosen: Vec<u64> = chosen.collect::<BTreeSet<u64>>().into_iter().collect();
        match outcome {
            0 => {
                self.bench.accept(consumer, &chosen);
                self.messages.retain(|message| !chosen.contains(&message.position));
            }
            1 => {
                self.bench.release(consumer, &chosen);
                self.give_back(&chosen, false, None);
            }
            _ => {
                let undeliverable_here = outcome == 3;
                let modify =
                    Outcome::Modify { failed: true, undeliverable_here, annotations: None };
                self.bench.settle(consumer, &chosen, modify);
                self.give_back(&chosen, true, undeliverable_here.then_some(consumer.key));
            }
        }
    }

    fn give_back(&mut self, positions: &[u64], failed: bool, excluded: Option<u32>) {
        let now_ms = self.bench.now.mono_ms;
        for message in self.messages.iter_mut().filter(|m| positions.contains(&m.position)) {
            message.holder = None;
            message.failures += u32::from(failed);
            message.excluded.extend(excluded);
        }
        self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
    }

    /// The consumers that have been woken since the last time.
    fn note_woken(&mut self) -> Vec<usize> {
        let mut woken = Vec::new();
        for key in self.bench.woken() {
            let index = self.consumers.iter().position(|c| c.bench.key == key);
            let Some(index) = index else { continue };
            self.consumers[index].interest = Interest::Expected;
            woken.push(index);
        }
        woken
    }

    /// Whoever waits while a message is there that it may take must know that somebody else is on
    /// the way; when that one has come, it is looked again.
    fn check_nobody_waits_in_vain(&self) {
        let comes = |c: &ModelConsumer| !c.browses && c.interest == Interest::Expected;
        let somebody_comes = self.consumers.iter().any(comes);
        for (index, consumer) in self.consumers.iter().enumerate() {
            if consumer.interest == Interest::Waiting && (consumer.browses || !somebody_comes) {
                assert_eq!(self.takeable_now(index), [], "consumer {index} waits in vain");
            }
        }
    }

    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            let come = |consumer: &ModelConsumer| consumer.interest == Interest::Expected;
            let Some(index) = self.consumers.iter().position(come) else { break };
            self.take(index, 3, usize::MAX);
            self.note_woken();
        }
        assert!(self.consumers.iter().all(|c| c.interest != Interest::Expected), "no end");
        self.check_nobody_waits_in_vain();
    }

    fn takeable(&self, index: usize) -> Vec<u64> {
        let now_ms = self.bench.now.mono_ms;
        let consumer = &self.consumers[index];
        let takeable = self.messages.iter().filter(|message| {
            message.holder.is_none()
                && message.expiry_ms > now_ms
                && (consumer.wants)(message.colour, message.failures)
                && !message.excluded.contains(&consumer.bench.key)
                && (!consumer.browses || message.position >= consumer.cursor)
        });
        takeable.map(|message| message.position).collect()
    }

    /// Those of the takeable ones that need not wait for others of their group.
    fn takeable_now(&self, index: usize) -> Vec<u64> {
        let mut takeable = self.takeable(index);
        let consumer = &self.consumers[index];
        if self.is_grouped && !consumer.browses {
            let now_ms = self.bench.now.mono_ms;
            takeable.retain(|position| {
                let message = self.messages.iter().find(|m| m.position == *position).unwrap();
                let same_group = || self.messages.iter().filter(|m| m.group == message.group);
                let owner = same_group().find_map(|m| m.holder);
                let oldest = same_group().find(|m| m.holder.is_none() && m.expiry_ms > now_ms);
                owner.is_none_or(|owner| owner == consumer.bench.key)
                    && oldest.is_some_and(|oldest| oldest.position == *position)
            });
        }
        takeable
    }

    /// Everybody leaves and the queue is purged: nothing may be left over.
    fn end(mut self, used: u64) {
        let held = self.messages.iter().filter(|message| message.holder.is_some()).count() as u64;
        let statistics = self.bench.statistics();
        assert_eq!(statistics.unacked_messages, held);
        assert_eq!(statistics.msg_depth - held, self.bench.queue.available());
        while let Some(consumer) = self.consumers.pop() {
            self.bench.unsubscribe(consumer.bench);
        }
        let statistics = self.bench.statistics();
        assert_eq!((statistics.unacked_messages, statistics.consumer_count), (0, 0));
        assert_eq!(statistics.msg_depth, self.bench.queue.available());
        self.bench.queue.purge(self.bench.now, u64::MAX).1.perform();
        let statistics = self.bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), (0, 0));
        assert_eq!((statistics.unacked_messages, statistics.memory_bytes), (0, 0));
        assert_eq!((self.bench.queue.available(), self.bench.queue.group_count()), (0, 0));
        let enqueued = (statistics.msg_total_enqueues, statistics.byte_total_enqueues);
        assert_eq!(enqueued, (statistics.msg_total_dequeues, statistics.byte_total_dequeues));
        assert_eq!(self.bench.broker.budget().used(), used);
        // A timer that was set for messages that have gone, or for an alert, fires once more.
        self.bench.pass(61_000);
        assert_eq!(self.bench.broker.next_timeout_ms(), None);
    }

    fn held_by(&self, key: u32) -> Vec<u64> {
        let held = self.messages.iter().filter(|message| message.holder == Some(key));
        held.map(|message| message.position).collect()
    }
}

fn group_of(position: u64) -> u64 {
    position * 7 % 5
}

proptest! {
    #[test]
    fn nobody_gets_what_it_does_not_select_and_nobody_waits_beside_what_it_does(steps in steps()) {
        let mut model = Model::new(false);
        let used = model.bench.broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.settle_down();
        model.end(used);
    }

    #[test]
    fn the_same_is_true_of_a_queue_with_groups(steps in steps()) {
        let mut model = Model::new(true);
        let used = model.bench.broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.settle_down();
        model.end(used);
    }
}
