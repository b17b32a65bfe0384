//! What operators do while queues are in use.

use mochila_wire::condition;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Connections are closed from outside.
pub(super) const CLOSING: Story = Story {
    name: "a_connection_that_an_operator_closes_gives_everything_back_and_may_come_again",
    tell: closing,
};

fn closing(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..3 {
        let sender = SenderPlan::to("q", 40).sized(&[0, 300, 4_000]);
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        world.client(
            ClientPlan::new().sends(sender).receives(receiver).receives(ReceiverPlan::dynamic()),
        );
    }
    world.client(ClientPlan::new().closes(20));
    told(world)
}

/// Queues are made, changed, purged and deleted while they are used.
pub(super) const CHANGES: Story =
    Story { name: "queues_may_be_changed_purged_and_deleted_while_they_are_used", tell: changes };

fn changes(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.forgive(condition::RESOURCE_DELETED);
    let queues = ["a", "b"];
    for queue in queues {
        world.may_forget(queue);
    }
    let mishaps = Mishaps { detach: 10, ..Mishaps::default() };
    for queue in queues {
        let sender = SenderPlan::to(queue, 60).mortal(10);
        world.client(ClientPlan::new().sends(sender).suffers(mishaps));
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from(queue, credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    world.client(ClientPlan::new().sends(SenderPlan::to_any(&queues, 60)));
    for _ in 0..2 {
        let mishaps = Mishaps { leave: 10, reset: 5, ..Mishaps::default() };
        world.client(ClientPlan::new().manages(20, &queues).suffers(mishaps));
    }
    let tally = told(world);
    assert!(tally.answered > 0, "no question was answered");
    tally
}
