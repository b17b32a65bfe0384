//! Queues whose messages do not stand one after the other.

use mochila_broker::QueueSettings;
use mochila_broker::settings::LimitPolicy;
use mochila_engine::pair::Random;

use super::told;
use crate::{ClientPlan, CreditPlan, KEY, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Receivers that take urgent messages first.
pub(super) const PRIORITIES: Story =
    Story { name: "urgent_messages_go_first_and_those_of_one_level_in_order", tell: priorities };

fn priorities(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let settings = with_levels(world.random());
    world.queue("q", settings);
    senders(&mut world, 60);
    receivers(&mut world, false);
    told(world)
}

/// Receivers that share message groups.
pub(super) const GROUPS: Story =
    Story { name: "a_message_group_is_with_one_consumer_at_a_time_and_in_order", tell: groups };

fn groups(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let settings = QueueSettings { shared_groups: true, ..QueueSettings::default() };
    world.queue("q", settings);
    senders(&mut world, 60);
    receivers(&mut world, seed.is_multiple_of(4));
    told(world)
}

/// Queues that keep the last value of each key.
pub(super) const LAST_VALUES: Story =
    Story { name: "the_last_value_of_each_key_is_never_lost_and_is_the_only_one", tell: values };

fn values(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let max_count = world.random().chance(20).then_some(15);
    let settings = QueueSettings { max_count, ..with_keys() };
    world.queue("q", settings);
    if max_count.is_some() {
        world.may_refuse("q");
    }
    senders(&mut world, 80);
    receivers(&mut world, false);
    told(world)
}

/// Receivers that select from queues of any kind.
pub(super) const SELECTING: Story = Story {
    name: "who_selects_from_a_queue_of_any_kind_gets_what_he_wants_and_browses_it",
    tell: selecting,
};

fn selecting(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let settings = match world.random().below(4) {
        0 => with_keys(),
        1 => QueueSettings { shared_groups: true, ..QueueSettings::default() },
        _ => with_levels(world.random()),
    };
    world.queue("q", settings);
    senders(&mut world, 60);
    receivers(&mut world, true);
    told(world)
}

/// A queue of any kind, with or without limits.
pub(super) fn any(random: &mut Random) -> QueueSettings {
    let limited = QueueSettings {
        max_count: random.chance(30).then_some(30),
        limit_policy: *random.pick(&[LimitPolicy::Reject, LimitPolicy::Block]),
        ..QueueSettings::default()
    };
    let ring = QueueSettings {
        max_count: random.chance(60).then_some(15),
        max_bytes: Some(8_000),
        limit_policy: LimitPolicy::Ring,
        ..QueueSettings::default()
    };
    match random.below(9) {
        0 => ring,
        1 => QueueSettings { priorities: Some(3), ..ring },
        2 => QueueSettings { last_value_key: Some(KEY.into()), ..ring },
        3 => QueueSettings { shared_groups: true, ..limited },
        4 => QueueSettings { last_value_key: Some(KEY.into()), ..limited },
        5 => QueueSettings { priorities: Some(10), ..limited },
        _ => limited,
    }
}

fn with_levels(random: &mut Random) -> QueueSettings {
    QueueSettings {
        priorities: Some(*random.pick(&[1, 2, 3, 10])),
        fairshare: *random.pick(&[None, None, Some(1), Some(3)]),
        ..QueueSettings::default()
    }
}

fn with_keys() -> QueueSettings {
    QueueSettings { last_value_key: Some(KEY.into()), ..QueueSettings::default() }
}

fn senders(world: &mut World, messages: u32) {
    for _ in 0..world.random().between(1, 2) {
        let random = world.random();
        let (names, settled) = (*random.pick(&[1, 3, 20]), *random.pick(&[0, 50]));
        let mortal = *random.pick(&[0, 0, 20]);
        let sender = SenderPlan::to("q", messages).sized(&[0, 50, 700]).grouped(names).keyed(names);
        let mut plan = ClientPlan::new().sends(sender.settled(settled).mortal(mortal));
        if random.chance(30) {
            plan = plan.transacts(4, 30, 0);
        }
        let mishaps = Mishaps { leave: *random.pick(&[0, 5]), ..Mishaps::default() };
        world.client(plan.suffers(mishaps));
    }
}

fn receivers(world: &mut World, selecting: bool) {
    for _ in 0..world.random().between(1, 4) {
        let random = world.random();
        let mut receiver = ReceiverPlan::from("q", CreditPlan::any(random));
        receiver = match random.below(6) {
            0 => receiver.browsing(),
            1 => receiver.settled(),
            2 => receiver.keeping(30),
            _ => receiver.moody(random),
        };
        if selecting && random.chance(70) {
            receiver = receiver.selecting(random);
        }
        let mut plan = ClientPlan::new().receives(receiver);
        if random.chance(30) {
            plan = plan.transacts(4, 30, 20);
        }
        let mishaps = Mishaps { detach: 20, end: 5, leave: 10, reset: 5, ..Mishaps::default() };
        world.client(plan.suffers(mishaps));
    }
}
