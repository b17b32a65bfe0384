//! What happens when a queue, or the node, is full.

use crate::bench::raw::{sending, whole};
use crate::bench::{Bench, Client, Link, bytes_of, text};
use mochila_wire::{AmqpError, DeliveryState, Encode, condition};

fn rejected(state: DeliveryState) -> AmqpError {
    match state {
        DeliveryState::Rejected { error: Some(error) } => *error,
        other => panic!("not rejected with an error but {other:?}"),
    }
}

/// A queue that rejects more than `max` messages and does not hold producers back before.
fn limited(bench: &mut Bench, max: u64) -> (Client, Link) {
    bench.create("q", |settings| {
        settings.max_count = Some(max);
        settings.flow_stop_count = Some(0);
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    (client, sender)
}

/// Takes and accepts so many messages.
fn consume(bench: &mut Bench, receiver: Link, count: u32) {
    bench.grant(receiver, count);
    let got = bench.got(receiver);
    assert_eq!(got.len(), count as usize);
    bench.accept(&got);
}

#[test]
fn a_full_queue_rejects_with_the_reason() {
    let mut bench = Bench::new();
    let (_, sender) = limited(&mut bench, 2);
    for _ in 0..3 {
        bench.send(sender, &text("m"));
    }
    let mut states = bench.states(sender);
    let error = rejected(states.pop().unwrap());
    assert_eq!(states, [DeliveryState::Accepted, DeliveryState::Accepted]);
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert!(error.description.unwrap().contains("as many messages as it may"));
    assert_eq!((bench.depth("q"), bench.numbers("q").discards_overflow), (2, 1));
    assert_eq!(bench.detached(sender), None);
}

#[test]
fn of_one_packet_what_fits_is_accepted_and_the_rest_rejected() {
    let mut bench = Bench::new();
    limited(&mut bench, 3);
    let raw = bench.raw_sender("q");
    let packet: Vec<u8> = (0..5)
        .flat_map(|id| crate::bench::raw::framed(0, &whole(0, id), &text("m").to_bytes()))
        .collect();
    bench.say_bytes(raw, &packet);
    let heard = bench.hear(raw);
    let told: Vec<_> = heard
        .dispositions()
        .iter()
        .map(|d| (d.first, d.last(), d.state == Some(DeliveryState::Accepted)))
        .collect();
    assert_eq!(told, [(0, 2, true), (3, 4, false)]);
}

#[test]
fn b22_a_queue_that_rejects_takes_the_credit_back_and_gives_it_again_when_there_is_room() {
    let mut bench = Bench::new();
    let (client, sender) = limited(&mut bench, 2);
    assert_eq!(bench.credit(sender), 1_000);
    for _ in 0..3 {
        bench.send(sender, &text("m"));
    }
    assert_eq!(bench.credit(sender), 0);
    let receiver = bench.receiver(client, "q", 0);
    consume(&mut bench, receiver, 1);
    assert!(bench.credit(sender) > 0);
    bench.told(sender);
    bench.send(sender, &text("m"));
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
}

#[test]
fn b22_a_sender_that_comes_to_a_queue_that_rejects_is_told_once_and_then_waits() {
    let mut bench = Bench::new();
    let (client, first) = limited(&mut bench, 2);
    for _ in 0..3 {
        bench.send(first, &text("m"));
    }
    let late = bench.sender(client, "q");
    assert_eq!((bench.credit(first), bench.credit(late)), (0, 1));
    bench.send(late, &text("m"));
    let error = rejected(bench.states(late).remove(0));
    assert!(error.description.unwrap().contains("as many messages as it may"));
    assert_eq!((bench.credit(first), bench.credit(late)), (0, 0));
    let receiver = bench.receiver(client, "q", 0);
    consume(&mut bench, receiver, 2);
    assert!(bench.credit(first) > 1 && bench.credit(late) > 1, "there is room for both");
    bench.told(first);
    for _ in 0..3 {
        bench.send(first, &text("m"));
    }
    assert_eq!(bench.credit(first), 0);
    assert!(bench.credit(late) > 0, "it has not been told this time");
    bench.send(late, &text("m"));
    rejected(bench.states(late).remove(0));
    assert_eq!(bench.credit(late), 0);
}

#[test]
fn a_message_that_is_larger_than_its_queue_may_be_is_rejected_and_others_are_not() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_bytes = Some(5_000));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send_bytes(sender, &bytes_of(10_000), false);
    let error = rejected(bench.states(sender).remove(0));
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert!(bench.credit(sender) > 0, "it would never fit, so there is nothing to wait for");
    bench.send(sender, &text("small"));
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
}

#[test]
fn producers_get_no_credit_above_the_stop_mark_and_go_on_below_the_resume_mark() {
    let mut bench = Bench::new();
    bench.create("q", |settings| {
        settings.flow_stop_count = Some(10);
        settings.flow_resume_count = Some(5);
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut sent = 0;
    while bench.credit(sender) > 0 {
        bench.send(sender, &text("m"));
        sent += 1;
    }
    assert_eq!((sent, bench.numbers("q").flow_stopped), (11, 1));
    assert_eq!(bench.states(sender).len(), 11);
    let receiver = bench.receiver(client, "q", 0);
    consume(&mut bench, receiver, 6);
    assert_eq!(bench.credit(sender), 0, "five are not less than five");
    consume(&mut bench, receiver, 1);
    assert!(bench.credit(sender) > 0);
    assert_eq!(bench.numbers("q").flow_stopped_count, 1);
}

#[test]
fn a_blocking_queue_loses_nothing_and_rejects_nothing() {
    let mut bench = Bench::new();
    let settings =
        mochila_wire::Map::new().with("qpid.max_count", 10u32).with("limit-policy", "block");
    let settings = mochila_broker::QueueSettings::from_arguments(&settings).unwrap();
    bench.node.broker.create("q", settings).unwrap();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 0);
    let (mut sent, mut received) = (0u32, Vec::new());
    while sent < 500 {
        match bench.credit(sender) {
            0 => {
                bench.grant(receiver, 3);
                let got = bench.got(receiver);
                assert!(!got.is_empty(), "nobody can go on after {sent}");
                received.extend(got.iter().map(|got| got.text().parse::<u32>().unwrap()));
                bench.accept(&got);
            }
            _ => {
                bench.send(sender, &text(&sent.to_string()));
                sent += 1;
            }
        }
    }
    assert!(bench.states(sender).iter().all(|state| *state == DeliveryState::Accepted));
    bench.grant(receiver, 100);
    received.extend(bench.got(receiver).iter().map(|got| got.text().parse::<u32>().unwrap()));
    assert_eq!(received, (0..500).collect::<Vec<_>>());
}

#[test]
fn all_producers_get_their_turn_when_a_full_queue_is_consumed_slowly() {
    let mut bench = Bench::new();
    bench.create("q", |settings| {
        settings.flow_stop_count = Some(20);
        settings.flow_resume_count = Some(15);
    });
    let clients: Vec<_> = (0..5).map(|_| bench.client()).collect();
    let senders: Vec<_> = clients.iter().map(|client| bench.sender(*client, "q")).collect();
    let consumer = bench.client();
    let receiver = bench.receiver(consumer, "q", 0);
    let mut sent = [0; 5];
    for _ in 0..400 {
        for (index, sender) in senders.iter().enumerate() {
            if bench.credit(*sender) > 0 {
                bench.send(*sender, &text("m"));
                sent[index] += 1;
            }
        }
        consume(&mut bench, receiver, 1);
    }
    let (most, least) = (sent.iter().max().unwrap(), sent.iter().min().unwrap());
    assert!(*least > 0 && most - least < 100, "{sent:?}");
}

#[test]
fn a_node_that_is_out_of_memory_rejects_and_goes_on_when_there_is_some() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 200_000);
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut accepted = 0;
    let error = loop {
        if bench.credit(sender) == 0 {
            break None;
        }
        bench.send_bytes(sender, &bytes_of(10_000), false);
        match bench.states(sender).remove(0) {
            DeliveryState::Accepted => accepted += 1,
            other => break Some(rejected(other)),
        }
    };
    if let Some(error) = error {
        assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
        assert!(error.description.unwrap().contains("memory"));
    }
    assert!((15..20).contains(&accepted), "{accepted}");
    assert!(bench.node.broker.budget().peak() <= 200_000);
    let receiver = bench.receiver(client, "q", 0);
    consume(&mut bench, receiver, accepted);
    assert!(bench.credit(sender) > 0);
    bench.send_bytes(sender, &bytes_of(10_000), false);
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
}

#[test]
fn b23_everybody_who_waits_for_memory_goes_on_when_it_is_there_again() {
    let mut bench = Bench::with(|setup| {
        setup.broker.memory_limit_bytes = 400_000;
        setup.settings.credit_window = 2;
    });
    let client = bench.client();
    let names: Vec<_> = (0..10).map(|n| format!("q{n}")).collect();
    let senders: Vec<_> = names.iter().map(|name| bench.sender(client, name)).collect();
    let mut filled = bench.sender(client, "filled");
    while bench.credit(filled) > 0 {
        bench.send_bytes(filled, &bytes_of(10_000), false);
    }
    bench.told(filled);
    for sender in &senders {
        while bench.credit(*sender) > 0 {
            bench.send(*sender, &text("m"));
        }
    }
    bench.queue("filled").purge(bench.now, u64::MAX).1.perform();
    bench.advance(1_000);
    for sender in senders {
        assert!(bench.credit(sender) > 0);
        bench.told(sender);
        bench.send(sender, &text("m"));
        assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
    }
    filled = bench.sender(client, "filled");
    assert!(bench.credit(filled) > 0);
}

#[test]
fn b4_a_sender_that_overruns_its_credit_is_detached_with_the_reason() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 3);
    let raw = bench.raw_sender("q");
    let packet: Vec<u8> = (0..5)
        .flat_map(|id| crate::bench::raw::framed(0, &whole(0, id), &text("m").to_bytes()))
        .collect();
    bench.say_bytes(raw, &packet);
    let heard = bench.hear(raw);
    let error = heard.detach().error.unwrap();
    assert_eq!(error.condition, condition::TRANSFER_LIMIT_EXCEEDED);
    assert!(error.description.unwrap().contains("without credit"));
    assert_eq!(heard.dispositions()[0].last(), 2, "what came with credit is accepted");
    assert_eq!((bench.depth("q"), bench.numbers("q").producer_count), (3, 0));
}

#[test]
fn a_limit_on_queues_is_a_clear_refusal() {
    let mut bench = Bench::with(|setup| setup.broker.max_queues = 2);
    let client = bench.client();
    bench.sender(client, "a");
    bench.sender(client, "b");
    let error = crate::attaching::refused(&mut bench, &sending(0, "c"));
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
}

#[test]
fn a10_a_backlog_is_read_in_pieces_between_which_producers_are_served() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for _ in 0..200 {
        bench.send_bytes(sender, &bytes_of(20_000), false);
    }
    bench.told(sender);
    // Readers that want everything, and do not read what they get.
    let readers: Vec<_> = (0..3).map(|_| bench.raw_receiver("q", 0)).collect();
    for reader in &readers {
        bench.stall(*reader, true);
        bench.say(*reader, 0, &crate::bench::raw::credit_of(0, 0, 10_000));
    }
    let held = bench.numbers("q").unacked_messages;
    assert!(held < 60, "{held} messages were taken for sockets that take nothing");
    bench.send(sender, &text("served"));
    assert_eq!(bench.states(sender), [DeliveryState::Accepted]);
}
