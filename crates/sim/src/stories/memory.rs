//! Where there is not memory for everything.

use mochila_broker::QueueSettings;

use super::told;
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// A node with little memory.
pub(super) const MEMORY: Story =
    Story { name: "the_nodes_memory_is_never_exceeded_and_all_of_it_comes_back", tell: memory };

fn memory(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| {
        plan.memory_bytes = 40_000;
        plan.credit_window = 10;
    });
    for queue in ["a", "b", "c"] {
        world.queue(queue, QueueSettings::default());
        world.may_refuse(queue);
        let mishaps = Mishaps { leave: 5, detach: 10, reset: 5, ..Mishaps::default() };
        let sender = SenderPlan::to(queue, 60).sized(&[20, 300, 3_000]).settled(10).aborted(5);
        world.client(ClientPlan::new().sends(sender).suffers(mishaps));
    }
    for queue in ["a", "b"] {
        let credit = CreditPlan::any(world.random());
        let receiver = ReceiverPlan::from(queue, credit).moody(world.random());
        world.client(ClientPlan::new().receives(receiver));
    }
    told(world)
}

/// Many senders that use all of their credit at once.
pub(super) const CROWD: Story = Story {
    name: "who_respects_his_credit_is_not_refused_for_want_of_memory_and_gets_more_in_the_end",
    tell: crowd,
};

fn crowd(seed: u64) -> Tally {
    let is_large = seed.is_multiple_of(8);
    let mut world = World::with(seed, |plan| {
        plan.memory_bytes = if is_large { 8 << 20 } else { 1 << 20 };
        plan.credit_window = 1_000;
        // Memory is what it is about.
        plan.large_message_bytes = 1 << 20;
    });
    let queues: Vec<String> = (0..world.random().between(3, 8)).map(|n| format!("q{n}")).collect();
    for queue in &queues {
        world.queue(queue, QueueSettings::default());
    }
    for number in 0..world.random().between(8, 40) {
        let random = world.random();
        let queue = random.pick(&queues).clone();
        let sizes = *random.pick(if is_large { &LARGE } else { &SMALL });
        let many = if is_large { 150 } else { 400 };
        let messages = if number < 8 { many } else { 30 };
        let settled = *random.pick(&[0, 0, 50]);
        let sender = SenderPlan::to(&queue, messages).sized(sizes).settled(settled).eager();
        let mishaps = Mishaps { detach: *random.pick(&[0, 0, 10]), ..Mishaps::default() };
        world.client(ClientPlan::new().window(2_048).sends(sender).suffers(mishaps));
    }
    // Some queues are read.
    for queue in &queues[1..] {
        if world.random().chance(40) {
            let credit = CreditPlan::Window(*world.random().pick(&[1, 10, 100]));
            world.client(ClientPlan::new().receives(ReceiverPlan::from(queue, credit)));
        }
    }
    world.run();
    // Now all are, so that there is memory again.
    let reader = queues.iter().fold(ClientPlan::new(), |plan, queue| {
        plan.receives(ReceiverPlan::from(queue, CreditPlan::Window(100)))
    });
    world.client(reader.window(2_048));
    world.run();
    assert_eq!(world.unfinished(), 0, "senders wait for credit although the queues are empty");
    world.finish();
    world.tally()
}

/// Messages of one size, and sizes that change, where memory is small.
const SMALL: [&[usize]; 4] = [&[100], &[1_500], &[20, 300, 1_000], &[100, 100, 100, 100, 4_000]];
/// The same where there is somewhat more.
const LARGE: [&[usize]; 4] =
    [&[800], &[10_000], &[200, 3_000, 20_000], &[800, 800, 800, 800, 30_000]];
