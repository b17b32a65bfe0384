//! What receivers say of messages.

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
