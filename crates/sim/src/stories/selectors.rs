//! Receivers that want some messages and not others.

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Receivers that select, beside others that take whatever there is.
pub(super) const SELECTORS: Story = Story {
    name: "who_selects_gets_what_he_wants_in_order_and_does_not_wait_for_it",
    tell: selectors,
};

fn selectors(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..world.random().between(1, 2) {
        let mortal = *world.random().pick(&[0, 0, 30]);
        let sender = SenderPlan::to("q", 60).sized(&[0, 50, 400, 5_000]).mortal(mortal);
        world.client(ClientPlan::new().sends(sender));
    }
    for _ in 0..world.random().between(2, 5) {
        let random = world.random();
        let mut receiver = ReceiverPlan::from("q", CreditPlan::any(random));
        if random.chance(80) {
            receiver = receiver.selecting(random);
        }
        receiver = match random.below(6) {
            0 => receiver.browsing(),
            1 => receiver.settled(),
            2 | 3 => receiver.moody(random),
            _ => receiver,
        };
        let mut any = || *random.pick(&[0, 0, 20]);
        let mishaps = Mishaps { detach: any(), leave: any(), stall: any(), ..Mishaps::default() };
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}
