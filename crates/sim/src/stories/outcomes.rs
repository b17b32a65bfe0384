//! What receivers say of messages.

use mochila_broker::QueueSettings;
use mochila_wire::condition;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Receivers that accept, reject, release and modify.
pub(super) const MOODS: Story = Story {
    name: "what_one_consumer_does_not_want_another_gets_unless_it_was_rejected",
    tell: moods,
};

fn moods(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 80).sized(&[0, 200, 4_000])));
    for _ in 0..world.random().between(1, 4) {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver));
    }
    told(world)
}

/// Receivers that share message groups.
pub(super) const GROUPS: Story =
    Story { name: "a_message_group_is_with_one_consumer_at_a_time_and_in_order", tell: groups };

fn groups(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let settings = QueueSettings { shared_groups: true, ..QueueSettings::default() };
    world.queue("q", settings);
    for _ in 0..world.random().between(1, 2) {
        let random = world.random();
        let (groups, settled) = (*random.pick(&[1, 3, 20]), *random.pick(&[0, 50]));
        let sender = SenderPlan::to("q", 60).sized(&[0, 50, 700]).grouped(groups);
        let mut plan = ClientPlan::new().sends(sender.settled(settled));
        if random.chance(30) {
            plan = plan.transacts(4, 30, 0);
        }
        world.client(plan);
    }
    for _ in 0..world.random().between(1, 4) {
        let random = world.random();
        let mut receiver = ReceiverPlan::from("q", CreditPlan::any(random)).moody(random);
        if random.chance(20) {
            receiver = receiver.browsing();
        }
        let mut plan = ClientPlan::new().receives(receiver);
        if random.chance(30) {
            plan = plan.transacts(4, 30, 20);
        }
        let mishaps = Mishaps { detach: 20, end: 5, leave: 10, reset: 5, ..Mishaps::default() };
        world.client(plan.suffers(mishaps));
    }
    told(world)
}

/// Receivers that want to be alone.
pub(super) const EXCLUSIVE: Story = Story {
    name: "only_one_consumer_is_alone_at_a_time_and_browsers_do_not_count",
    tell: exclusive,
};

fn exclusive(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.forgive(condition::RESOURCE_LOCKED);
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 80)));
    for _ in 0..3 {
        let credit = CreditPlan::any(world.random());
        let mut receiver = ReceiverPlan::from("q", credit).moody(world.random());
        if world.random().chance(60) {
            receiver = receiver.exclusive();
        }
        let mishaps = Mishaps { detach: 20, leave: 10, ..Mishaps::default() };
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    let browser = ReceiverPlan::from("q", CreditPlan::Window(10)).browsing();
    world.client(ClientPlan::new().receives(browser));
    told(world)
}

/// Receivers that keep messages until their links go.
pub(super) const KEEPERS: Story =
    Story { name: "what_a_consumer_holds_goes_to_others_when_its_link_goes", tell: keepers };

fn keepers(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 80)));
    for _ in 0..3 {
        let credit = CreditPlan::any(world.random());
        let mut receiver = ReceiverPlan::from("q", credit).moody(world.random());
        if world.random().chance(60) {
            receiver = receiver.keeping(40);
        }
        let mishaps = Mishaps { detach: 40, end: 20, leave: 10, ..Mishaps::default() };
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}
