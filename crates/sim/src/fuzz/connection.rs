//! A connection to a broker, and an honest client beside it.

use mochila_broker::DeleteIf;
use mochila_wire::{Encode, Message};

use super::delivery::{Delivery, Next, check_output};
use crate::Hall;

/// Lets a broker's connection handle an input, and sees that nothing is left of it and that others
/// have not noticed.
pub(super) fn run(input: &[u8]) {
    let mut hall = play(input);
    check_others(&mut hall);
    check_nothing_left(&hall);
}

/// A hall in which somebody has said this, and is gone.
fn play(input: &[u8]) -> Hall {
    let mut delivery = Delivery::new(input);
    let mut hall = Hall::with(|settings| settings.large_message_bytes = 5_000);
    hall.now = delivery.now;
    let stranger = hall.stranger();
    loop {
        match delivery.next() {
            Next::Bytes(bytes) => hall.say(stranger, bytes),
            Next::Time => {
                hall.now = delivery.now;
                hall.tick();
            }
            Next::End => break,
        }
        hall.run();
        check_output(&hall.hear_raw(stranger));
    }
    hall.hang_up(stranger);
    hall.run();
    hall
}

/// Somebody else can still send and receive.
fn check_others(hall: &mut Hall) {
    let guest = hall.guest();
    let session = hall.session(guest);
    let sender = hall.sender(guest, session, "honest");
    let message = Message::of_value("hello");
    hall.send(guest, sender, &message.to_bytes());
    let receiver = hall.receiver(guest, session, "honest");
    hall.grant(guest, receiver, 1);
    assert_eq!(hall.received(guest), [message]);
    hall.hang_up(guest);
    hall.run();
}

fn check_nothing_left(hall: &Hall) {
    assert!(hall.node.management.directory().is_empty(), "a connection is still in the directory");
    let broker = &hall.node.broker;
    for queue in broker.queues() {
        let numbers = queue.statistics();
        let links = numbers.consumer_count + numbers.producer_count;
        assert_eq!((links, numbers.unacked_messages), (0, 0), "links, and what they hold");
        assert!(queue.delete(DeleteIf::default()).is_ok());
    }
    assert_eq!(broker.budget().used(), 0, "bytes of memory are left");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::conversations;

    #[test]
    fn the_conversations_of_the_corpus_are_understood() {
        let (mut enqueued, mut dequeued, mut queues) = (0, 0, 0);
        for input in conversations::all() {
            let hall = play(&input);
            let numbers = hall.node.broker.statistics();
            enqueued += numbers.msg_total_enqueues;
            dequeued += numbers.msg_total_dequeues;
            queues += hall.node.broker.queue_count();
        }
        assert!(enqueued > 50 && dequeued > 10 && queues > 10, "{enqueued} {dequeued} {queues}");
    }
}
