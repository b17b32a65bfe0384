//! Everything at once.

use mochila_wire::condition;

use super::{kinds, told};
use crate::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan, Story, Tally, World};

/// Any clients with any luck on any queues.
pub(super) const AT_ONCE: Story = Story { name: "everything_at_once", tell: at_once };

fn at_once(seed: u64) -> Tally {
    let mut world = World::with(seed, |plan| {
        if seed.is_multiple_of(3) {
            plan.memory_bytes = 100_000;
        }
        plan.disk_failures = u32::from(seed.is_multiple_of(5)) * 3;
    });
    world.forgive(condition::RESOURCE_DELETED);
    // There may be no memory for a dynamic queue.
    world.forgive(condition::RESOURCE_LIMIT_EXCEEDED);
    let queues = ["a", "b", "c"];
    for queue in queues {
        let settings = kinds::any(world.random());
        world.queue(queue, settings);
        world.may_refuse(queue);
    }
    // Where memory is short, answers may get lost.
    let has_operator = !seed.is_multiple_of(3) && world.random().chance(40);
    if has_operator {
        queues.iter().for_each(|queue| world.may_forget(queue));
        world.client(ClientPlan::new().manages(15, &queues));
    }
    for _ in 0..world.random().between(2, 6) {
        let plan = anybody(&mut world, &queues);
        world.client(plan);
    }
    told(world)
}

fn anybody(world: &mut World, queues: &[&str]) -> ClientPlan {
    let mut plan = ClientPlan::new();
    for _ in 0..world.random().between(0, 2) {
        let random = world.random();
        let queue = *random.pick(queues);
        let sender = match random.chance(30) {
            true => SenderPlan::to_any(queues, 40),
            false => SenderPlan::to(queue, 40),
        };
        let (settled, aborted, mortal) =
            (*random.pick(&[0, 30]), *random.pick(&[0, 20]), *random.pick(&[0, 30]));
        let names = *random.pick(&[1, 4, 20]);
        plan = plan.sends(
            sender
                .sized(&[0, 50, 400, 5_000])
                .settled(settled)
                .aborted(aborted)
                .mortal(mortal)
                .grouped(names)
                .keyed(names),
        );
    }
    for _ in 0..world.random().between(0, 2) {
        let random = world.random();
        let queue = *random.pick(queues);
        let mut receiver = ReceiverPlan::from(queue, CreditPlan::any(random));
        if random.chance(30) {
            receiver = receiver.selecting(random);
        }
        receiver = match random.below(4) {
            0 => receiver.browsing(),
            1 => receiver.settled(),
            _ => receiver.moody(random),
        };
        plan = plan.receives(receiver);
    }
    if world.random().chance(20) {
        plan = plan.receives(ReceiverPlan::dynamic());
    }
    let random = world.random();
    if random.chance(25) {
        let (transactions, slow) = (random.between(1, 6) as u32, *random.pick(&[0, 20]));
        plan = plan.transacts(transactions, 30, slow);
    }
    let mut any = || *random.pick(&[0, 0, 5, 20]);
    plan.suffers(Mishaps {
        reset: any(),
        silence: any(),
        stall: any(),
        leave: any(),
        detach: any(),
        end: any(),
        wrong_password: any(),
    })
}
