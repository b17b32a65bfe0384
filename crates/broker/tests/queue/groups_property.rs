//! Random operations on a queue with groups, against a model that is simple enough to be right.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::{LostGroups, Outcome, QueueSettings, TakeLimit, Taking};
use mochila_wire::Encode;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Send { messages: Vec<Sent> },
    Subscribe { browse: bool, settled: bool },
    Unsubscribe { consumer: usize },
    Take { consumer: usize, most: u32, bytes: usize },
    Idle { consumer: usize },
    Settle { consumer: usize, which: Vec<usize>, outcome: u8 },
    Purge { most: u64 },
    Move { most: u64 },
    MoveInVain { most: u64 },
    Pass { ms: u64 },
}

#[derive(Clone, Debug)]
struct Sent {
    /// The number of the group; none at all if it is 0.
    group: u8,
    ttl_ms: Option<u32>,
    ends_group: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sent = (0u8..6, prop::option::weighted(0.2, 1u32..500), prop::bool::weighted(0.05));
    let sent = sent.prop_map(|(group, ttl_ms, ends_group)| Sent { group, ttl_ms, ends_group });
    let pick = 0usize..100;
    let step = prop_oneof![
        4 => prop::collection::vec(sent, 1..40).prop_map(|messages| Step::Send { messages }),
        1 => (prop::bool::weighted(0.2), prop::bool::weighted(0.2))
            .prop_map(|(browse, settled)| Step::Subscribe { browse, settled }),
        1 => pick.clone().prop_map(|consumer| Step::Unsubscribe { consumer }),
        8 => (pick.clone(), 0u32..20, prop_oneof![3 => Just(usize::MAX), 1 => 0usize..200])
            .prop_map(|(consumer, most, bytes)| Step::Take { consumer, most, bytes }),
        1 => pick.clone().prop_map(|consumer| Step::Idle { consumer }),
        8 => (pick.clone(), prop::collection::vec(pick, 1..20), 0u8..6)
            .prop_map(|(consumer, which, outcome)| Step::Settle { consumer, which, outcome }),
        1 => (1u64..30).prop_map(|most| Step::Purge { most }),
        1 => (1u64..30).prop_map(|most| Step::Move { most }),
        1 => (1u64..30).prop_map(|most| Step::MoveInVain { most }),
        1 => (1u64..200).prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 1..150)
}

/// A name, and how often a group of that name had ended before.
type Group = (u8, u32);

struct ModelMessage {
    text: String,
    position: u64,
    group: Option<Group>,
    bytes: u64,
    expiry_ms: u64,
    holder: Option<u32>,
    excluded: BTreeSet<u32>,
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
    /// Groups that others have got since it heard of such.
    lost: BTreeMap<Group, bool>,
    /// It may have been called to hear of them, and for no message.
    may_only_hear: bool,
}

struct Model {
    bench: QueueBench,
    messages: Vec<ModelMessage>,
    consumers: Vec<ModelConsumer>,
    next_position: u64,
    ended: BTreeMap<u8, u32>,
    /// Groups that get nothing more before they are free.
    stale: BTreeSet<Group>,
    /// Who has had each group last, and whether it has had messages ever since: otherwise it may have
    /// been forgotten.
    former: BTreeMap<Group, (u32, bool)>,
    names_default: bool,
    rebalances: bool,
}

impl Model {
    fn new(names_default: bool, rebalances: bool) -> Model {
        let bench = QueueBench::new(QueueSettings {
            shared_groups: true,
            group_header_key: Some("group".into()),
            default_group: (!names_default).then(Box::default),
            rebalances_groups: rebalances,
            ..QueueSettings::default()
        });
        Model {
            bench,
            messages: Vec::new(),
            consumers: Vec::new(),
            next_position: 0,
            ended: BTreeMap::new(),
            stale: BTreeSet::new(),
            former: BTreeMap::new(),
            names_default,
            rebalances,
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
            Step::Purge { most } => self.purge(*most),
            Step::Move { most } => self.move_away(*most),
            Step::MoveInVain { most } => self.bench.move_in_vain(*most),
            Step::Pass { ms } => self.pass(*ms),
            Step::Unsubscribe { consumer } => {
                if let Some(index) = pick(consumer) {
                    let consumer = self.consumers.remove(index);
                    self.bench.unsubscribe(consumer.bench);
                    let held = self.held_by(consumer.bench.key);
                    self.release(&held);
                }
            }
            Step::Take { consumer, most, bytes } => {
                if let Some(index) = pick(consumer) {
                    self.take(index, *most, *bytes);
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
        }
        self.note_woken();
        self.check();
    }

    fn send(&mut self, sent: &[Sent]) {
        let mut messages = Vec::new();
        for Sent { group, ttl_ms, ends_group } in sent {
            let text = self.next_position.to_string();
            let mut encoded = message(&text);
            encoded.header_mut().ttl = *ttl_ms;
            let name = match group {
                0 => self.names_default.then_some(0),
                1 => {
                    encoded.set_application_property("group", 1u32);
                    Some(1)
                }
                group => {
                    encoded.set_application_property("group", group.to_string());
                    Some(*group)
                }
            };
            if *ends_group {
                encoded.properties_mut().group_sequence = Some(u32::MAX);
            }
            let group = name.map(|name| (name, *self.ended.entry(name).or_default()));
            if let (true, Some(name)) = (*ends_group, name) {
                self.ended.entry(name).and_modify(|times| *times += 1);
            }
            let now_ms = self.bench.now.mono_ms;
            let bytes = encoded.to_bytes().len() as u64;
            self.messages.push(ModelMessage {
                bytes,
                text,
                position: self.next_position,
                group,
                expiry_ms: ttl_ms.map_or(u64::MAX, |ttl| now_ms + u64::from(ttl)),
                holder: None,
                excluded: BTreeSet::new(),
            });
            self.next_position += 1;
            messages.push(encoded);
        }
        self.bench.send_messages(messages);
    }

    fn subscribe(&mut self, browses: bool, settled: bool) {
        let bench = match browses {
            true => self.bench.browser(),
            false => self.bench.subscribe(|options| {
                options.settled = settled;
                options.wants_lost_groups = true;
            }),
        };
        if self.rebalances && !browses {
            let held = self.messages.iter().filter(|message| message.holder.is_some());
            self.stale = held.filter_map(|message| message.group).collect();
        }
        let interest = Interest::Idle;
        let (lost, may_only_hear) = (BTreeMap::new(), false);
        self.consumers.push(ModelConsumer {
            bench,
            browses,
            settled,
            interest,
            lost,
            may_only_hear,
        });
    }

    fn take(&mut self, index: usize, most: u32, bytes: usize) {
        let ModelConsumer { bench, browses, settled, interest, .. } = self.consumers[index];
        let key = bench.key;
        let could = self.takeable(key);
        let own = could.iter().any(|at| self.owner(self.messages[*at].group) == Some(key));
        let free = could.iter().filter(|at| self.owner(self.messages[**at].group).is_none());
        let others = self.consumers.iter().enumerate().filter(|(other, consumer)| {
            *other != index && !consumer.browses && consumer.interest == Interest::Expected
        });
        let is_called = interest == Interest::Expected && !self.consumers[index].may_only_hear;
        let promised = if is_called { 0 } else { others.count() };
        let is_served = own || free.count() > promised;
        let got = self.bench.take_limited(bench, TakeLimit { messages: most, bytes });
        self.hear(index, got.lost.as_ref());
        self.consumers[index].interest = match got.taking {
            Taking::Waiting => Interest::Waiting,
            Taking::More => Interest::Expected,
            _ => Interest::Idle,
        };
        if browses {
            return;
        }
        assert!(got.positions().is_sorted(), "not in order: {:?}", got.positions());
        if most > 0 && is_served {
            assert!(!got.texts.is_empty(), "it could take {could:?} and got nothing");
        }
        let now_ms = self.bench.now.mono_ms;
        for (text, position) in got.texts.iter().zip(got.positions()) {
            // What has expired is passed over.
            self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
            let takeable = self.takeable(key);
            let at = self.messages.iter().position(|m| m.position == position);
            let at = at.expect("what is delivered is in the queue");
            // The oldest of its own groups, or of those that are free.
            let owner = |at: &&usize| self.owner(self.messages[**at].group);
            let first = takeable.iter().find(|other| owner(other) == owner(&&at));
            assert_eq!(first, Some(&at), "{position} is not the one that {key} may take");
            assert_eq!(&self.messages[at].text, text);
            self.messages[at].holder = Some(key);
            if let Some(group) = self.messages[at].group {
                self.hand_over(group, key);
            }
        }
        if settled {
            self.messages.retain(|message| message.holder != Some(key));
            self.refresh();
        }
    }

    /// A consumer hears what it has lost, all of it and nothing else. A group that had no messages in
    /// between may have been forgotten.
    fn hear(&mut self, index: usize, heard: Option<&LostGroups>) {
        self.consumers[index].may_only_hear = false;
        let lost = std::mem::take(&mut self.consumers[index].lost);
        let names = |groups: &mut dyn Iterator<Item = &Group>| -> BTreeSet<String> {
            groups.map(|(name, _)| group_name(*name)).collect()
        };
        let heard = heard.map(|lost| lost.names().expect("there are few"));
        let heard: BTreeSet<String> = heard.into_iter().flatten().cloned().collect();
        let all = names(&mut lost.keys());
        assert!(heard.is_subset(&all), "heard of {heard:?}, and had lost {all:?}");
        let certain = names(&mut lost.iter().filter(|(_, is_certain)| **is_certain).map(|it| it.0));
        assert!(certain.is_subset(&heard), "had lost {certain:?}, and heard of {heard:?}");
    }

    /// A consumer holds a message of a group: if another one had the group, that one has lost it.
    fn hand_over(&mut self, group: Group, key: u32) {
        let before = self.former.insert(group, (key, true));
        let Some((former, is_certain)) = before.filter(|(former, _)| *former != key) else {
            return;
        };
        if let Some(consumer) = self.consumers.iter_mut().find(|c| c.bench.key == former) {
            *consumer.lost.entry(group).or_default() |= is_certain;
        }
    }

    fn settle(&mut self, index: usize, which: &[usize], outcome: u8) {
        let consumer = self.consumers[index].bench;
        let held = self.held_by(consumer.key);
        if held.is_empty() {
            return;
        }
        let chosen: BTreeSet<u64> = which.iter().map(|n| held[n % held.len()]).collect();
        let mut chosen: Vec<u64> = chosen.into_iter().collect();
        if outcome.is_multiple_of(2) {
            chosen.reverse();
        }
        match outcome {
            0 | 1 => self.bench.accept(consumer, &chosen),
            2 => self.bench.settle(consumer, &chosen, Outcome::Reject),
            3 | 4 => self.bench.release(consumer, &chosen),
            _ => {
                let (failed, undeliverable_here) = (true, true);
                let outcome = Outcome::Modify { failed, undeliverable_here, annotations: None };
                self.bench.settle(consumer, &chosen, outcome);
            }
        }
        match outcome {
            0..=2 => self.messages.retain(|message| !chosen.contains(&message.position)),
            _ => {
                for message in self.messages.iter_mut().filter(|m| chosen.contains(&m.position)) {
                    message.excluded.extend((outcome == 5).then_some(consumer.key));
                }
                self.release(&chosen);
            }
        }
        self.refresh();
    }

    fn release(&mut self, positions: &[u64]) {
        let now_ms = self.bench.now.mono_ms;
        for message in self.messages.iter_mut().filter(|m| positions.contains(&m.position)) {
            message.holder = None;
        }
        let gone = |m: &ModelMessage| positions.contains(&m.position) && m.expiry_ms <= now_ms;
        self.messages.retain(|message| !gone(message));
        self.refresh();
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
        let mut left = most;
        self.messages.retain(|message| {
            let gone = left > 0 && message.holder.is_none();
            left -= u64::from(gone);
            !gone
        });
        most - left
    }

    fn pass(&mut self, ms: u64) {
        self.bench.pass(ms.next_multiple_of(8));
        let now_ms = self.bench.now.mono_ms;
        self.messages.retain(|m| m.holder.is_some() || m.expiry_ms > now_ms);
    }

    fn note_woken(&mut self) {
        for key in self.bench.woken() {
            if let Some(consumer) = self.consumers.iter_mut().find(|c| c.bench.key == key) {
                consumer.interest = Interest::Expected;
                consumer.may_only_hear |= !consumer.lost.is_empty();
            }
        }
    }

    fn check(&self) {
        let statistics = self.bench.statistics();
        let bytes: u64 = self.messages.iter().map(|message| message.bytes).sum();
        let depth = (statistics.msg_depth, statistics.byte_depth);
        assert_eq!(depth, (self.messages.len() as u64, bytes));
        let held = self.messages.iter().filter(|message| message.holder.is_some()).count();
        assert_eq!(statistics.unacked_messages, held as u64);
        let mut holders = BTreeMap::new();
        for message in &self.messages {
            if let (Some(group), Some(holder)) = (message.group, message.holder) {
                assert_eq!(*holders.entry(group).or_insert(holder), holder, "two hold {group:?}");
            }
        }
        self.check_groups();
        // Whoever waits while a message is there that it may take knows that another is on its
        // way; nobody but the owner comes for what is owned.
        let expected =
            self.consumers.iter().any(|c| !c.browses && c.interest == Interest::Expected);
        for consumer in self.consumers.iter().filter(|c| c.interest == Interest::Waiting) {
            let key = consumer.bench.key;
            for at in self.takeable(key).into_iter().filter(|_| !consumer.browses) {
                let is_free = self.owner(self.messages[at].group).is_none();
                assert!(is_free && expected, "{key} waits while it may take {at}");
            }
        }
    }

    fn check_groups(&self) {
        let mut known: BTreeMap<Group, (u64, u64)> = BTreeMap::new();
        for message in &self.messages {
            if let Some(group) = message.group {
                let counts = known.entry(group).or_default();
                counts.0 += 1;
                counts.1 += u64::from(message.holder.is_some());
            }
        }
        let mut known: Vec<_> = known.into_values().collect();
        known.sort_unstable();
        let reports = self.bench.queue.groups(usize::MAX).into_iter();
        let mut reported: Vec<_> = reports
            .map(|group| {
                assert_eq!(group.owner.is_some(), group.acquired > 0);
                (group.messages, group.acquired)
            })
            .collect();
        reported.sort_unstable();
        assert_eq!(reported, known);
    }

    /// Lets everybody who has been woken do something, until all is quiet.
    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            let come = |c: &ModelConsumer| c.interest == Interest::Expected;
            let Some(index) = self.consumers.iter().position(come) else { break };
            self.take(index, 3, usize::MAX);
            self.note_woken();
            self.check();
        }
    }

    fn owner(&self, group: Option<Group>) -> Option<u32> {
        let group = group?;
        let of_group = self.messages.iter().filter(|message| message.group == Some(group));
        of_group.filter_map(|message| message.holder).next()
    }

    /// The indexes of messages that a consumer may take now.
    fn takeable(&self, key: u32) -> Vec<usize> {
        let now_ms = self.bench.now.mono_ms;
        let mut seen = BTreeSet::new();
        let mut takeable = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            if message.holder.is_some() || message.expiry_ms <= now_ms {
                continue;
            }
            if let Some(group) = message.group {
                let owner = self.owner(Some(group));
                let is_oldest = seen.insert(group);
                let is_stale = owner.is_some() && self.stale.contains(&group);
                if !is_oldest || is_stale || owner.is_some_and(|owner| owner != key) {
                    continue;
                }
            }
            if !message.excluded.contains(&key) {
                takeable.push(index);
            }
        }
        takeable
    }

    fn held_by(&self, key: u32) -> Vec<u64> {
        let held = self.messages.iter().filter(|message| message.holder == Some(key));
        held.map(|message| message.position).collect()
    }

    /// Groups that are free are not to be shared out any more.
    fn refresh(&mut self) {
        let held = self.messages.iter().filter(|message| message.holder.is_some());
        let owned: BTreeSet<Group> = held.filter_map(|message| message.group).collect();
        self.stale.retain(|group| owned.contains(group));
        let there: BTreeSet<Group> = self.messages.iter().filter_map(|it| it.group).collect();
        for (group, (_, has_had_messages)) in &mut self.former {
            *has_had_messages &= there.contains(group);
        }
    }

    /// Everybody leaves and the queue is purged: nothing may be left over.
    fn end(mut self, used: u64) {
        while let Some(consumer) = self.consumers.pop() {
            self.bench.unsubscribe(consumer.bench);
        }
        self.bench.queue.purge(self.bench.now, u64::MAX).1.perform();
        let statistics = self.bench.statistics();
        assert_eq!((statistics.msg_depth, statistics.byte_depth), (0, 0));
        assert_eq!((statistics.unacked_messages, statistics.memory_bytes), (0, 0));
        assert_eq!(self.bench.queue.group_count(), 0);
        assert_eq!(self.bench.broker.budget().used(), used);
        // A timer that was set for messages that have gone, or for an alert, fires once more.
        self.bench.pass(61_000);
        assert_eq!(self.bench.broker.next_timeout_ms(), None);
    }
}

fn group_name(number: u8) -> String {
    if number == 0 { "qpid.no-group".to_owned() } else { number.to_string() }
}

proptest! {
    #[test]
    fn c5_a_group_is_with_one_consumer_and_never_left_without_one_while_somebody_waits(
        names_default in any::<bool>(),
        rebalances in any::<bool>(),
        steps in steps(),
    ) {
        let mut model = Model::new(names_default, rebalances);
        let used = model.bench.broker.budget().used();
        for step in &steps {
            model.apply(step);
        }
        model.settle_down();
        model.end(used);
    }
}
