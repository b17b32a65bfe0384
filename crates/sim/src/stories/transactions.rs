//! Clients that use transactions.

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Clients that send, take, commit, roll back, hesitate and die.
pub(super) const ALL_OR_NOTHING: Story = Story {
    name: "whoever_uses_transactions_gets_all_of_each_or_nothing_whatever_happens_to_him",
    tell: all_or_nothing,
};

fn all_or_nothing(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let queues = ["a", "b"];
    for _ in 0..world.random().between(2, 3) {
        let plan = transactor(&mut world, &queues);
        world.client(plan);
    }
    // One who does not, and sees what becomes of it.
    let queue = *world.random().pick(&queues);
    let mut receiver = ReceiverPlan::from(queue, CreditPlan::any(world.random()));
    if world.random().chance(50) {
        receiver = receiver.browsing();
    }
    world.client(ClientPlan::new().sends(SenderPlan::to(queue, 20)).receives(receiver));
    told(world)
}

fn transactor(world: &mut World, queues: &[&str]) -> ClientPlan {
    let random = world.random();
    let transactions = random.between(1, 12) as u32;
    let slow = *random.pick(&[0, 0, 20]);
    let mut plan = ClientPlan::new().transacts(transactions, 30, slow);
    for _ in 0..random.between(0, 2) {
        let queue = *random.pick(queues);
        let sender = match random.chance(30) {
            true => SenderPlan::to_any(queues, 40),
            false => SenderPlan::to(queue, 40),
        };
        let (settled, aborted) = (*random.pick(&[0, 30, 100]), *random.pick(&[0, 10]));
        plan = plan.sends(sender.sized(&[0, 200, 4_000]).settled(settled).aborted(aborted));
    }
    for _ in 0..random.between(0, 2) {
        let queue = *random.pick(queues);
        plan = plan.receives(ReceiverPlan::from(queue, CreditPlan::any(random)).moody(random));
    }
    let mut any = || *random.pick(&[0, 0, 5, 20]);
    plan.suffers(Mishaps {
        reset: any(),
        silence: any(),
        stall: any(),
        leave: any(),
        detach: any(),
        end: any(),
        wrong_password: 0,
    })
}
