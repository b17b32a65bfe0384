//! Where there is not room for everything.

use mochila_broker::QueueSettings;
use mochila_broker::settings::LimitPolicy;
use mochila_wire::condition;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Queues with limits of every kind.
pub(super) const FULL_QUEUES: Story = Story {
    name: "a_full_queue_refuses_or_holds_back_and_goes_on_when_there_is_room",
    tell: full_queues,
};

fn full_queues(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let blocks = world.random().chance(50);
    let settings = QueueSettings {
        max_count: world.random().chance(70).then_some(20),
        max_bytes: world.random().chance(50).then_some(4_000),
        limit_policy: if blocks { LimitPolicy::Block } else { LimitPolicy::Reject },
        flow_stop_count: world.random().chance(20).then_some(10),
        flow_resume_count: world.random().chance(20).then_some(5),
        ..QueueSettings::default()
    };
    world.queue("q", settings);
    if !blocks {
        world.may_refuse("q");
    }
    for _ in 0..world.random().between(1, 4) {
        let mishaps = Mishaps { leave: 5, detach: 10, ..Mishaps::default() };
        let sender = SenderPlan::to("q", 50);
        world.client(ClientPlan::new().sends(sender).suffers(mishaps));
    }
    for _ in 0..world.random().between(0, 2) {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver));
    }
    told(world)
}

/// Queues that drop the oldest messages for the newest.
pub(super) const RINGS: Story =
    Story { name: "a_ring_drops_the_oldest_that_nobody_holds_and_counts_them", tell: rings };

fn rings(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let by_count = world.random().chance(60);
    let settings = QueueSettings {
        max_count: by_count.then_some(15),
        max_bytes: (!by_count).then_some(4_000),
        limit_policy: LimitPolicy::Ring,
        priorities: *world.random().pick(&[None, None, Some(2), Some(3), Some(10)]),
        ..QueueSettings::default()
    };
    world.queue("q", settings);
    for _ in 0..world.random().between(1, 3) {
        let random = world.random();
        let (settled, mortal) = (*random.pick(&[0, 30, 100]), *random.pick(&[0, 20]));
        let sender = SenderPlan::to("q", 60).sized(&[0, 50, 700]).settled(settled).mortal(mortal);
        let mut plan = ClientPlan::new().sends(sender);
        if random.chance(30) {
            plan = plan.transacts(4, 30, 0);
        }
        let mishaps = Mishaps { leave: 5, detach: 10, reset: 5, ..Mishaps::default() };
        world.client(plan.suffers(mishaps));
    }
    for _ in 0..world.random().between(0, 3) {
        let random = world.random();
        let mut receiver = ReceiverPlan::from("q", CreditPlan::any(random)).moody(random);
        if random.chance(40) {
            receiver = receiver.keeping(60);
        }
        if random.chance(20) {
            receiver = receiver.browsing();
        }
        if random.chance(20) {
            receiver = receiver.selecting(random);
        }
        let mut plan = ClientPlan::new().receives(receiver);
        if random.chance(30) {
            plan = plan.transacts(4, 30, 20);
        }
        let mishaps = Mishaps { detach: 10, stall: 5, reset: 5, ..Mishaps::default() };
        world.client(plan.suffers(mishaps));
    }
    told(world)
}

/// Messages that are larger than what is taken.
pub(super) const TOO_LARGE: Story = Story {
    name: "who_sends_too_large_a_message_loses_his_link_and_nothing_that_was_accepted",
    tell: too_large,
};

fn too_large(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| plan.max_message_bytes = 6_000);
    world.forgive(condition::MESSAGE_SIZE_EXCEEDED);
    for sizes in [&[20, 300, 5_000][..], &[300, 300, 300, 9_000], &[20_000]] {
        let sender = SenderPlan::to("q", 40).sized(sizes).aborted(5).settled(10);
        world.client(ClientPlan::new().sends(sender));
    }
    let credit = CreditPlan::any(world.random());
    world.client(ClientPlan::new().receives(ReceiverPlan::from("q", credit)));
    told(world)
}

/// A few messages that stay among many that go.
pub(super) const LEFTOVERS: Story = Story {
    name: "a_few_messages_that_stay_do_not_hold_the_memory_of_those_that_are_gone",
    tell: leftovers,
};

fn leftovers(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| plan.credit_window = 1_000);
    for _ in 0..2 {
        world.client(ClientPlan::new().sends(SenderPlan::to("q", 400).sized(&[300, 900])));
    }
    let kept = *world.random().pick(&[1, 3]);
    let receiver = ReceiverPlan::from("q", CreditPlan::Window(1_000)).keeping(kept);
    world.client(ClientPlan::new().window(2_048).receives(receiver));
    world.rest();
    let numbers = world.statistics("q").unwrap_or_default();
    let most = numbers.byte_depth * 4 + 200_000;
    assert!(
        numbers.memory_bytes <= most,
        "{} bytes of memory for {} bytes of messages",
        numbers.memory_bytes,
        numbers.byte_depth
    );
    told(world)
}

/// Messages that do not live for ever.
pub(super) const EXPIRY: Story =
    Story { name: "messages_expire_wherever_they_stand_and_are_counted", tell: expiry };

fn expiry(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..2 {
        let sender = SenderPlan::to("q", 60).sized(&[20, 300, 3_000]).mortal(60);
        world.client(ClientPlan::new().sends(sender));
    }
    for _ in 0..world.random().between(0, 3) {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        let mishaps = Mishaps { stall: 30, detach: 10, ..Mishaps::default() };
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}

/// A disk that fails now and then.
pub(super) const BAD_DISK: Story = Story {
    name: "large_messages_that_the_disk_has_no_room_for_are_refused_and_the_others_arrive",
    tell: bad_disk,
};

fn bad_disk(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| plan.disk_failures = 10);
    world.may_refuse("q");
    let sender = SenderPlan::to("q", 40).sized(&[20, 3_000, 12_000]).settled(10);
    world.client(ClientPlan::new().sends(sender));
    let credit = CreditPlan::any(world.random());
    world.client(ClientPlan::new().receives(ReceiverPlan::from("q", credit)));
    told(world)
}
