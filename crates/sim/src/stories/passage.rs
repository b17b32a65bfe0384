//! Messages on their way, where nothing goes wrong.

use super::told;
use crate::{ClientPlan, CreditPlan, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Messages of all sizes, settled or not, over slow and fast networks.
pub(super) const SIZES: Story =
    Story { name: "messages_of_all_sizes_arrive_in_order_and_as_they_were_sent", tell: sizes };

fn sizes(seed: u64) -> Tally {
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
            let mut receiver = ReceiverPlan::from(queue, credit);
            if world.random().chance(20) {
                receiver = receiver.settled();
            }
            world.client(ClientPlan::new().receives(receiver));
        }
    }
    told(world)
}

/// Credit of one, and windows of one frame.
pub(super) const SMALL_WINDOWS: Story =
    Story { name: "small_windows_and_a_credit_of_one_do_not_stall_anybody", tell: small_windows };

fn small_windows(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| plan.credit_window = 2);
    for _ in 0..3 {
        let window = *world.random().pick(&[1, 2, 3]);
        let sender = SenderPlan::to("q", 40).sized(&[10, 1_500]);
        let credit = *world.random().pick(&[CreditPlan::One, CreditPlan::Window(3)]);
        let receiver = ReceiverPlan::from("q", credit);
        world.client(ClientPlan::new().window(window).sends(sender).receives(receiver));
    }
    told(world)
}

/// Senders without an address of their own, and several links to several queues on one connection.
pub(super) const RELAY: Story =
    Story { name: "one_link_may_send_to_many_queues_and_order_is_kept_in_each", tell: relay };

fn relay(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let queues = ["a", "b", "c"];
    let settled = *world.random().pick(&[0, 50]);
    for _ in 0..2 {
        let sender = SenderPlan::to_any(&queues, 60).settled(settled).sized(&[0, 100, 3_000]);
        world.client(ClientPlan::new().sends(sender).sends(SenderPlan::to("b", 20)));
    }
    let mut plan = ClientPlan::new();
    for queue in queues {
        let credit = CreditPlan::any(world.random());
        plan = plan.receives(ReceiverPlan::from(queue, credit));
    }
    world.client(plan);
    told(world)
}

/// Receivers that ask for a drain again and again.
pub(super) const DRAINS: Story =
    Story { name: "every_drain_is_answered_and_credit_after_it_works", tell: drains };

fn drains(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for _ in 0..world.random().between(1, 3) {
        let most = *world.random().pick(&[1, 7, 500]);
        let drains = world.random().between(1, 20) as u32;
        let receiver = ReceiverPlan::from("q", CreditPlan::Drain(most, drains));
        world.client(ClientPlan::new().receives(receiver));
    }
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 80).sized(&[0, 200, 4_000])));
    told(world)
}

/// Receivers that only look.
pub(super) const BROWSERS: Story =
    Story { name: "browsers_see_every_message_once_and_take_none", tell: browsers };

fn browsers(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.client(ClientPlan::new().sends(SenderPlan::to("q", 60).sized(&[0, 200, 4_000])));
    let count = world.random().between(1, 3) as usize;
    for _ in 0..count {
        let credit = *world.random().pick(&[
            CreditPlan::One,
            CreditPlan::Window(7),
            CreditPlan::Window(1_000),
        ]);
        world.client(ClientPlan::new().receives(ReceiverPlan::from("q", credit).browsing()));
    }
    world.run();
    assert_eq!(world.browsed(), vec![60; count], "messages that each browser has seen");
    let depth = world.statistics("q").map(|numbers| numbers.msg_depth);
    assert_eq!(depth, Some(60), "a browser has taken something");
    world.finish();
    world.tally()
}
