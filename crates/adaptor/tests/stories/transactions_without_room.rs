//! Transactions that are larger than what their queue has room for.

use crate::bench::control::{Id, accepted, why};
use crate::bench::{Bench, Client, Link, bytes_of, text};
use mochila_engine::AttachRequest;
use mochila_wire::{DeliveryState, Encode, Source, Target, condition};

/// Ten messages, of which more than six stop producers, who go on below four.
fn small_queue(name: &str) -> Bench {
    let bench = Bench::new();
    shrink(&bench, name);
    bench
}

fn shrink(bench: &Bench, name: &str) {
    bench.create(name, |settings| {
        settings.max_count = Some(10);
        settings.flow_stop_count = Some(6);
        settings.flow_resume_count = Some(4);
    });
}

/// Sends in a transaction as long as there is credit, one message after the other; returns how many.
fn send_all(bench: &mut Bench, sender: Link, id: &Id, most: usize) -> usize {
    for sent in 0..most {
        if bench.credit(sender) == 0 {
            return sent;
        }
        bench.send_within(sender, id, &["m"]);
    }
    most
}

fn begin(bench: &mut Bench, client: Client) -> (Link, Id) {
    let controller = bench.controller(client);
    let id = bench.declare(controller);
    (controller, id)
}

#[test]
fn a_transaction_may_be_larger_than_the_threshold_that_stops_producers() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let sender = bench.sender(client, "q");
    assert_eq!(send_all(&mut bench, sender, &id, 10), 10, "nobody else can make room");
    assert_eq!(bench.states(sender), vec![accepted(&id); 10]);
    bench.commit(controller, &id);
    bench.send(sender, &text("on what was left"));
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    assert_eq!((bench.depth("q"), bench.credit(sender)), (11, 0), "and now it waits");
    let receiver = bench.receiver(client, "q", 8);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert!(bench.credit(sender) > 0, "it goes on like everybody else");
}

#[test]
fn a_transaction_that_is_larger_than_its_queue_fails_soon_and_says_why() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let (sender, other) = (bench.sender(client, "q"), bench.sender(client, "q"));
    let sent = send_all(&mut bench, sender, &id, 100);
    assert_eq!(sent, 100, "it is not stopped, neither before it fails nor after");
    let states = bench.states(sender);
    let refused: Vec<_> = states.iter().filter(|state| **state != accepted(&id)).collect();
    assert!(states.len() == 100 && refused.len() >= 89, "{}", refused.len());
    let reasons: Vec<_> = refused.iter().map(|state| why(state.outcome().unwrap())).collect();
    assert_eq!(reasons[0].condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!(reasons[1].condition, condition::TRANSACTION_ROLLBACK);
    let [first, later] = [0, 1].map(|index| reasons[index].description.clone().unwrap());
    assert_eq!(first, "the queue holds as many messages as it may");
    assert!(later.ends_with(&first), "{later}");
    assert!(bench.credit(other) > 0, "its room is there for others");
    let answer = bench.discharge(controller, &id, false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!((bench.depth("q"), bench.totals()), (0, (0, 0, 1)));
    bench.expect_nothing_left();
}

#[test]
fn a_sender_waits_while_others_can_make_room() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let (plain, sender) = (bench.sender(client, "q"), bench.sender(client, "q"));
    for _ in 0..4 {
        bench.send(plain, &text("before"));
    }
    bench.states(plain);
    let sent = send_all(&mut bench, sender, &id, 10);
    assert_eq!(sent, 3, "those before it can be taken");
    let receiver = bench.receiver(client, "q", 4);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert_eq!(send_all(&mut bench, sender, &id, 7), 7);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 10);
}

#[test]
fn a_transaction_waits_at_the_limit_for_what_a_consumer_is_about_to_settle() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 100);
    let (controller, id) = begin(&mut bench, client);
    assert_eq!(send_all(&mut bench, sender, &id, 10), 10);
    bench.commit(controller, &id);
    let got = bench.got(receiver);
    bench.accept(&got[..7]);
    let id = bench.declare(controller);
    let mut sent = send_all(&mut bench, sender, &id, 10);
    assert_eq!(sent, 7, "three are with the consumer");
    for held in &got[7..] {
        bench.accept(std::slice::from_ref(held));
        sent += send_all(&mut bench, sender, &id, 10 - sent);
    }
    assert_eq!(sent, 10);
    bench.states(sender);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 10);
}

#[test]
fn the_credit_that_the_last_transaction_left_is_good_for_the_next_one() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let (controller, id) = begin(&mut bench, client);
    assert_eq!(send_all(&mut bench, sender, &id, 10), 10);
    assert_eq!(bench.credit(sender), 1, "to be told if that was not all");
    bench.commit(controller, &id);
    bench.states(sender);
    let id = bench.declare(controller);
    assert_eq!(send_all(&mut bench, sender, &id, 10), 1, "it was under way");
    assert_eq!(bench.states(sender), [accepted(&id)]);
    let receiver = bench.receiver(client, "q", 100);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert_eq!(send_all(&mut bench, sender, &id, 9), 9);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 10);
}

#[test]
fn credit_at_the_limit_is_good_once_there_is_room_to_come() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let (controller, first) = begin(&mut bench, client);
    assert_eq!(send_all(&mut bench, sender, &first, 9), 9);
    // As a sender does that begins the next one before it has heard of the last one.
    let second = bench.declare(controller);
    assert_eq!(send_all(&mut bench, sender, &second, 1), 1);
    assert_eq!(bench.credit(sender), 1, "that fills the queue");
    bench.commit(controller, &first);
    bench.states(sender);
    assert_eq!(send_all(&mut bench, sender, &second, 1), 1, "that was under way");
    assert_eq!(bench.states(sender), [accepted(&second)]);
    let receiver = bench.receiver(client, "q", 100);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert_eq!(send_all(&mut bench, sender, &second, 8), 8);
    bench.commit(controller, &second);
    assert_eq!(bench.depth("q"), 10);
}

#[test]
fn a_transaction_waits_for_those_that_have_what_they_want() {
    let mut bench = small_queue("q");
    let clients = [bench.client(), bench.client()];
    let [first, second] = clients.map(|client| begin(&mut bench, client));
    let senders = clients.map(|client| bench.sender(client, "q"));
    assert_eq!(send_all(&mut bench, senders[0], &first.1, 5), 5);
    assert_eq!(send_all(&mut bench, senders[1], &second.1, 10), 5, "the first may be about to end");
    bench.advance(900);
    assert_eq!(bench.credit(senders[1]), 0);
    bench.commit(first.0, &first.1);
    bench.advance(10_000);
    assert_eq!(bench.credit(senders[1]), 0, "there is something to take now");
    let receiver = bench.receiver(clients[0], "q", 100);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert_eq!(send_all(&mut bench, senders[1], &second.1, 5), 5);
    bench.commit(second.0, &second.1);
    assert_eq!(bench.depth("q"), 10);
}

#[test]
fn of_two_transactions_that_wait_for_each_other_one_fails_and_the_other_goes_on() {
    let mut bench = small_queue("q");
    let clients = [bench.client(), bench.client()];
    let open = clients.map(|client| begin(&mut bench, client));
    let senders = clients.map(|client| bench.sender(client, "q"));
    let mut sent = [0; 2];
    for _ in 0..10 {
        for index in 0..2 {
            sent[index] += send_all(&mut bench, senders[index], &open[index].1, 1);
        }
    }
    assert_eq!(sent, [6, 5], "all of the room, and what was under way");
    bench.advance(1_000);
    for _ in 0..2 {
        for index in 0..2 {
            sent[index] += send_all(&mut bench, senders[index], &open[index].1, 1);
        }
    }
    let told = senders.map(|sender| bench.states(sender).len());
    assert_eq!((told, sent[1]), (sent, 7), "nobody waits for what he is to hear");
    let answers = [0, 1].map(|index| bench.discharge(open[index].0, &open[index].1, false));
    assert_eq!(why(&answers[0]).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!(answers[1], DeliveryState::Accepted);
    assert_eq!(bench.depth("q"), 7);
}

/// Two clients, each with a transaction that fills a queue; the queues are `p` and `q`.
struct Crosswise {
    bench: Bench,
    clients: [Client; 2],
    open: [(Link, Id); 2],
}

fn crosswise() -> Crosswise {
    let mut bench = small_queue("p");
    shrink(&bench, "q");
    let clients = [bench.client(), bench.client()];
    let open = clients.map(|client| begin(&mut bench, client));
    for (index, queue) in ["p", "q"].into_iter().enumerate() {
        let sender = bench.sender(clients[index], queue);
        assert_eq!(send_all(&mut bench, sender, &open[index].1, 10), 10);
    }
    Crosswise { bench, clients, open }
}

#[test]
fn of_two_that_wait_crosswise_for_full_queues_one_fails_and_the_other_goes_on() {
    let Crosswise { mut bench, clients, open } = crosswise();
    let first = bench.sender(clients[0], "q");
    bench.advance(600);
    let second = bench.sender(clients[1], "p");
    bench.advance(900);
    assert_eq!([first, second].map(|sender| bench.credit(sender)), [0, 0], "not for long yet");
    bench.advance(100);
    let fails = if bench.credit(first) > 0 { 0 } else { 1 };
    let senders = [first, second];
    assert_eq!(bench.credit(senders[1 - fails]), 0, "one of them is enough");
    assert_eq!(send_all(&mut bench, senders[fails], &open[fails].1, 1), 1);
    assert_ne!(bench.states(senders[fails]), [accepted(&open[fails].1)]);
    assert_eq!(send_all(&mut bench, senders[1 - fails], &open[1 - fails].1, 5), 5);
    let state = bench.discharge(open[fails].0, &open[fails].1, false);
    assert_eq!(why(&state).condition, condition::TRANSACTION_ROLLBACK);
    bench.commit(open[1 - fails].0, &open[1 - fails].1);
    assert_eq!(bench.depth("p") + bench.depth("q"), 15);
}

#[test]
fn what_is_still_sent_in_a_transaction_that_has_failed_is_told_so_and_does_not_wait() {
    let mut bench = small_queue("q");
    let clients = [bench.client(), bench.client()];
    let plain = bench.sender(clients[1], "q");
    while bench.credit(plain) > 0 {
        bench.send(plain, &text("there"));
    }
    bench.create("tiny", |settings| settings.max_bytes = Some(500));
    let (controller, id) = begin(&mut bench, clients[0]);
    let too_large = bench.sender(clients[0], "tiny");
    bench.post_within(too_large, &id, &bytes_of(1_000), false);
    bench.run();
    let sender = bench.sender(clients[0], "q");
    assert_eq!(bench.credit(plain), 0);
    assert_eq!(send_all(&mut bench, sender, &id, 5), 5);
    assert_eq!(bench.states(sender).len(), 5);
    let state = bench.discharge(controller, &id, false);
    assert_eq!(why(&state).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!(bench.depth("q"), 7);
    let (controller, id) = begin(&mut bench, clients[0]);
    assert_eq!(send_all(&mut bench, sender, &id, 5), 1, "what was left of the credit");
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 8);
}

#[test]
fn what_is_sent_beside_a_transaction_does_not_pass_the_limit_that_this_has_reached() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let sender = bench.sender(client, "q");
    assert_eq!(send_all(&mut bench, sender, &id, 10), 10);
    let plain = bench.sender(client, "q");
    let mut beside = 0;
    while beside < 5 && bench.credit(plain) > 0 {
        bench.send(plain, &text("beside"));
        beside += 1;
    }
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 10, "of {beside} beside it");
}

#[test]
fn whoever_waits_for_a_transaction_that_waits_for_nobody_goes_on_when_it_ends() {
    let Crosswise { mut bench, clients, open } = crosswise();
    let late = bench.sender(clients[1], "p");
    bench.advance(30_000);
    assert_eq!(bench.credit(late), 0);
    bench.roll_back(open[0].0, &open[0].1);
    assert_eq!(send_all(&mut bench, late, &open[1].1, 10), 10);
    bench.commit(open[1].0, &open[1].1);
    assert_eq!((bench.depth("p"), bench.depth("q")), (10, 10));
}

#[test]
fn of_three_that_wait_in_a_circle_one_fails() {
    let Crosswise { mut bench, clients, open } = crosswise();
    shrink(&bench, "r");
    let third = bench.client();
    let (_, id) = begin(&mut bench, third);
    let sender = bench.sender(third, "r");
    assert_eq!(send_all(&mut bench, sender, &id, 10), 10);
    let waits =
        [bench.sender(clients[0], "q"), bench.sender(clients[1], "r"), bench.sender(third, "p")];
    bench.advance(2_000);
    let with_credit: Vec<_> = waits.into_iter().filter(|wait| bench.credit(*wait) > 0).collect();
    assert_eq!(with_credit.len(), 1);
    bench.advance(20_000);
    assert_eq!(waits.into_iter().filter(|wait| bench.credit(*wait) > 0).count(), 1);
    drop(open);
}

#[test]
fn sessions_of_one_connection_wait_for_each_other_as_connections_do() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let first = begin(&mut bench, client);
    let sender = bench.sender(client, "q");
    assert_eq!(send_all(&mut bench, sender, &first.1, 6), 6);
    bench.begin_again(client);
    let second = begin(&mut bench, client);
    let other = bench.sender(client, "q");
    assert_eq!(send_all(&mut bench, other, &second.1, 10), 4);
    bench.advance(900);
    assert_eq!(bench.credit(other), 0, "the first may be about to end");
    bench.roll_back(first.0, &first.1);
    assert_eq!(send_all(&mut bench, other, &second.1, 4), 4);
    bench.commit(second.0, &second.1);
    assert_eq!(bench.depth("q"), 8);
}

#[test]
fn a_transaction_goes_on_beside_messages_that_others_hold() {
    // More than twelve stop producers, who go on below ten.
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_count = Some(15));
    let clients = [bench.client(), bench.client()];
    let plain = bench.sender(clients[1], "q");
    for _ in 0..4 {
        bench.send(plain, &text("before"));
    }
    bench.states(plain);
    let (controller, id) = begin(&mut bench, clients[0]);
    let sender = bench.sender(clients[0], "q");
    assert_eq!(send_all(&mut bench, sender, &id, 10), 9);
    // Somebody takes them, and then waits for more to settle them together.
    bench.receiver(clients[1], "q", 100);
    assert_eq!(send_all(&mut bench, sender, &id, 1), 1);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 14);
}

#[test]
fn those_without_a_transaction_wait_all_the_same() {
    let mut bench = small_queue("q");
    let clients = [bench.client(), bench.client()];
    let (_, id) = begin(&mut bench, clients[0]);
    let sender = bench.sender(clients[0], "q");
    assert_eq!(send_all(&mut bench, sender, &id, 8), 8);
    let plain = bench.sender(clients[1], "q");
    assert_eq!(bench.credit(plain), 0);
}

#[test]
fn a_sender_to_an_exchange_or_to_any_address_goes_on_too() {
    for to in ["amq.fanout", ""] {
        let mut bench = small_queue("q");
        let exchange = bench.node.broker.exchange("amq.fanout").unwrap();
        exchange.bind(bench.now, &bench.queue("q"), "", Default::default()).unwrap().1.perform();
        let client = bench.client();
        let (controller, id) = begin(&mut bench, client);
        let target = if to.is_empty() { Target::default() } else { Target::at(to) };
        let request = AttachRequest::sender("any", Source::default(), target.into());
        let sender = bench.attach(client, request);
        let mut message = text("m");
        message.properties_mut().to = Some("q".into());
        for sent in 0..10 {
            assert!(bench.credit(sender) > 0, "after {sent} to '{to}'");
            bench.post_within(sender, &id, &message.to_bytes(), false);
            bench.run();
        }
        bench.commit(controller, &id);
        assert_eq!(bench.depth("q"), 10, "'{to}'");
    }
}

#[test]
fn a_sender_to_any_address_that_goes_on_is_left_alone_when_its_time_has_come() {
    let mut bench = small_queue("q");
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let sender = bench
        .attach(client, AttachRequest::sender("any", Source::default(), Target::default().into()));
    let mut message = text("m");
    message.properties_mut().to = Some("q".into());
    let bytes = message.to_bytes();
    for _ in 0..8 {
        bench.post_within(sender, &id, &bytes, false);
        bench.run();
    }
    assert!(bench.credit(sender) > 0, "it has credit, although the queue would hold it back");
    bench.advance(10_000);
    bench.post_within(sender, &id, &bytes, false);
    bench.run();
    assert_eq!(bench.states(sender), vec![accepted(&id); 9]);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 9);
}

#[test]
fn transactions_that_share_the_memory_wait_for_each_other_and_are_not_rejected() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let client = bench.client();
    let controller = bench.controller(client);
    let names: Vec<_> = (0..120).map(|number| format!("q-{number}")).collect();
    let senders: Vec<_> = names.iter().map(|name| bench.sender(client, name)).collect();
    let mut open: Vec<_> = names.iter().map(|_| (bench.declare(controller), 0)).collect();
    let mut brought = 0;
    for round in 0..300 {
        for (sender, (id, sent)) in senders.iter().zip(&mut open) {
            while *sent < 10 && bench.credit(*sender) > 0 && bench.may_begin(*sender) {
                bench.post_within(*sender, id, &bytes_of(2_000), false);
                *sent += 1;
            }
        }
        bench.run();
        for (sender, (id, sent)) in senders.iter().zip(&mut open) {
            let states = bench.states(*sender);
            assert!(states.iter().all(|state| *state == accepted(id)));
            brought += states.len();
            if *sent == 10 {
                bench.commit(controller, id);
                (*id, *sent) = (bench.declare(controller), 0);
            }
        }
        if round > 100 {
            let queue = bench.queue(&names[round % names.len()]);
            queue.purge(bench.now, u64::MAX).1.perform();
        }
    }
    assert_eq!(bench.node.broker.budget().refused(), 0);
    assert!(brought > 3_000, "{brought}");
}

#[test]
fn a_transaction_that_takes_all_memory_fails_soon() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 2_000_000);
    let client = bench.client();
    let (controller, id) = begin(&mut bench, client);
    let (plain, sender) = (bench.sender(client, "q"), bench.sender(client, "q"));
    for _ in 0..100 {
        bench.deliver(plain, &Default::default(), &bytes_of(1_000));
    }
    for sent in 0..3_000 {
        assert!(bench.credit(sender) > 0, "after {sent}");
        bench.post_within(sender, &id, &bytes_of(1_000), false);
        bench.run();
    }
    let answer = bench.discharge(controller, &id, false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!(bench.depth("q"), 100);
}
