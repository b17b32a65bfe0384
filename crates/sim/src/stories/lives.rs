//! Queues that do not stay.

use mochila_broker::QueueSettings;
use mochila_broker::settings::LifetimePolicy;
use mochila_wire::condition;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Queues that belong to links.
pub(super) const DYNAMIC_QUEUES: Story =
    Story { name: "a_dynamic_queue_goes_with_its_link_however_that_goes", tell: dynamic_queues };

fn dynamic_queues(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let mishaps =
        Mishaps { reset: 30, silence: 10, leave: 30, detach: 100, end: 50, ..Mishaps::default() };
    for _ in 0..3 {
        let credit = CreditPlan::any(world.random());
        let plan = ClientPlan::new()
            .receives(ReceiverPlan::dynamic())
            .receives(ReceiverPlan::dynamic())
            // Something to do, so that something can go wrong.
            .sends(SenderPlan::to("q", 30))
            .receives(ReceiverPlan::from("q", credit));
        world.client(plan.suffers(mishaps));
    }
    told(world)
}

/// Queues that are deleted when nobody uses them.
pub(super) const SHORT_LIVED_QUEUES: Story = Story {
    name: "queues_that_nobody_uses_any_more_go_and_come_back_when_somebody_does",
    tell: short_lived_queues,
};

fn short_lived_queues(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.forgive(condition::RESOURCE_DELETED);
    let lifetime = *world
        .random()
        .pick(&[LifetimePolicy::DeleteOnNoLinks, LifetimePolicy::DeleteOnNoLinksOrMessages]);
    let settings = QueueSettings {
        lifetime: Some(lifetime),
        auto_delete_delay_ms: *world.random().pick(&[0, 50, 5_000]),
        ..QueueSettings::default()
    };
    world.queue("q", settings);
    match lifetime {
        LifetimePolicy::DeleteOnNoLinks => world.may_forget("q"),
        _ => world.may_restart("q"),
    }
    let mishaps = Mishaps { reset: 10, leave: 40, detach: 60, end: 20, ..Mishaps::default() };
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 60)).suffers(mishaps));
    let credit = CreditPlan::any(world.random());
    let receiver = ReceiverPlan::from("q", credit).moody(world.random());
    world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    told(world)
}
