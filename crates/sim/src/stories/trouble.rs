//! What goes wrong between a client and the broker.

use mochila_wire::condition;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Connections that are reset or closed at any time, and come back.
pub(super) const BROKEN_CONNECTIONS: Story = Story {
    name: "connections_that_break_in_the_middle_of_messages_lose_nothing_that_was_accepted",
    tell: broken_connections,
};

fn broken_connections(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let mishaps = Mishaps { reset: 15, leave: 10, detach: 20, end: 10, ..Mishaps::default() };
    for _ in 0..2 {
        let settled = *world.random().pick(&[0, 20]);
        let sender = SenderPlan::to("q", 60).sized(&[0, 200, 6_000]).settled(settled);
        world.client(ClientPlan::new().sends(sender).suffers(mishaps));
    }
    for _ in 0..2 {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}

/// Connections whose ends do not hear of each other any more.
pub(super) const SILENCE: Story =
    Story { name: "who_falls_silent_is_given_up_and_what_he_holds_goes_to_others", tell: silence };

fn silence(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let mishaps = Mishaps { silence: 15, ..Mishaps::default() };
    let sender = SenderPlan::to("q", 60).sized(&[0, 200, 6_000]);
    world.client(ClientPlan::new().sends(sender).suffers(mishaps));
    for _ in 0..2 {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}

/// Clients that do not read for a while.
pub(super) const STALLS: Story =
    Story { name: "who_does_not_read_holds_nobody_up_and_gets_no_endless_output", tell: stalls };

fn stalls(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let mishaps = Mishaps { stall: 100, ..Mishaps::default() };
    for _ in 0..2 {
        let sender = SenderPlan::to("q", 80).sized(&[0, 200, 3_000]);
        world.client(ClientPlan::new().sends(sender).suffers(mishaps));
    }
    for _ in 0..3 {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from("q", credit);
        world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    }
    told(world)
}

/// Senders that give messages up.
pub(super) const ABORTS: Story =
    Story { name: "aborted_messages_are_not_delivered_and_cost_no_credit", tell: aborts };

fn aborts(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..2 {
        let aborted = *world.random().pick(&[30, 100]);
        let sender = SenderPlan::to("q", 60).sized(&[10, 200, 6_000]).aborted(aborted).settled(10);
        world.client(ClientPlan::new().sends(sender));
    }
    let credit = CreditPlan::any(world.random());
    world.client(ClientPlan::new().receives(ReceiverPlan::from("q", credit)));
    let tally = told(world);
    assert!(tally.aborted > 0, "nothing was aborted");
    tally
}

/// Clients that show a wrong password now and then.
pub(super) const WRONG_PASSWORDS: Story =
    Story { name: "who_shows_a_wrong_password_is_not_let_in_and_may_try_again", tell: passwords };

fn passwords(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.forgive(condition::UNAUTHORIZED_ACCESS);
    let mishaps = Mishaps { wrong_password: 500, leave: 20, ..Mishaps::default() };
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 20)).suffers(mishaps));
    let receiver = ReceiverPlan::from("q", CreditPlan::Window(10));
    world.client(ClientPlan::new().receives(receiver).suffers(mishaps));
    told(world)
}
