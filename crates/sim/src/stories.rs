//! What happens in simulated worlds.

use crate::{ClientPlan, CreditPlan, ReceiverPlan, SenderPlan, Story, Tally, World};

/// All stories.
pub const ALL: &[Story] = &[ARRIVAL];

/// Messages of all sizes reach their receivers.
pub const ARRIVAL: Story =
    Story { name: "messages_of_all_sizes_arrive_in_order_and_as_they_were_sent", tell: arrival };

fn arrival(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..world.random().between(1, 3) {
        let queue = *world.random().pick(&["a", "b"]);
        let settled = *world.random().pick(&[0, 0, 30, 100]);
        let sender = SenderPlan::to(queue, 60).sized(&[0, 20, 300, 5_000]).settled(settled);
        world.client(ClientPlan::new().sends(sender));
    }
    for queue in ["a", "b"] {
        for _ in 0..world.random().between(0, 2) {
            let credit = CreditPlan::any(world.random());
            world.client(ClientPlan::new().receives(ReceiverPlan::from(queue, credit)));
        }
    }
    world.run();
    world.finish();
    world.tally()
}
