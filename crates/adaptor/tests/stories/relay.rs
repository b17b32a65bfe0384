//! The anonymous terminus: one link for all addresses.

use crate::bench::{Bench, Client, Link, text};
use mochila_engine::AttachRequest;
use mochila_wire::{DeliveryState, Message, Source, Symbol, Target, condition};

fn relay(bench: &mut Bench, client: Client) -> Link {
    let target = Target::default();
    bench.attach(client, AttachRequest::sender("relay", Source::default(), target.into()))
}

fn addressed(to: &str) -> Message {
    let mut message = text(to);
    message.properties_mut().to = Some(to.into());
    message
}

fn rejection(state: DeliveryState) -> Symbol {
    match state {
        DeliveryState::Rejected { error: Some(error) } => error.condition,
        other => panic!("not rejected with an error but {other:?}"),
    }
}

#[test]
fn each_message_goes_where_it_says() {
    let mut bench = Bench::new();
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for to in ["a", "b", "a", "c"] {
        bench.send(relay, &addressed(to));
    }
    assert_eq!(bench.states(relay), [const { DeliveryState::Accepted }; 4]);
    assert_eq!([bench.depth("a"), bench.depth("b"), bench.depth("c")], [2, 1, 1]);
}

#[test]
fn messages_of_one_packet_for_several_addresses_keep_their_order_in_each() {
    let mut bench = Bench::new();
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for number in 0..40 {
        let mut message = text(&number.to_string());
        message.properties_mut().to = Some(if number % 3 == 0 { "a" } else { "b" }.into());
        bench.post(relay, &Default::default(), &mochila_wire::Encode::to_bytes(&message));
    }
    bench.run();
    assert_eq!(bench.told(relay).len(), 40);
    for (queue, remainders) in [("a", vec![0]), ("b", vec![1, 2])] {
        let receiver = bench.receiver(client, queue, 100);
        let expected = (0..40).filter(|n| remainders.contains(&(n % 3))).map(|n| n.to_string());
        assert_eq!(bench.texts(receiver), expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_message_without_an_address_is_rejected_and_the_link_goes_on() {
    let mut bench = Bench::new();
    let client = bench.client();
    let relay = relay(&mut bench, client);
    bench.send(relay, &text("lost"));
    assert_eq!(rejection(bench.states(relay).remove(0)), condition::INVALID_FIELD);
    bench.send(relay, &addressed("q"));
    assert_eq!(bench.states(relay), [DeliveryState::Accepted]);
}

#[test]
fn m7_an_address_that_is_not_there_sounds_the_same_however_it_is_tried() {
    let mut bench = Bench::with(|setup| setup.broker.patterns = Vec::new());
    let client = bench.client();
    let relay = relay(&mut bench, client);
    bench.send(relay, &addressed("secret"));
    let DeliveryState::Rejected { error: Some(by_relay) } = bench.states(relay).remove(0) else {
        panic!("it was not rejected")
    };
    let sender = bench.sender(client, "secret");
    assert_eq!(bench.detach_error(sender), *by_relay);
    assert_eq!(by_relay.condition, condition::NOT_FOUND);
}

#[test]
fn an_address_that_was_deleted_meanwhile_is_made_again() {
    let mut bench = Bench::new();
    let client = bench.client();
    let relay = relay(&mut bench, client);
    bench.send(relay, &addressed("q"));
    bench.node.broker.delete("q", <_>::default()).unwrap().perform();
    bench.send(relay, &addressed("q"));
    assert_eq!(bench.states(relay), [DeliveryState::Accepted, DeliveryState::Accepted]);
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn many_addresses_in_turn_do_not_use_up_the_links_credit() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 4);
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for round in 0..100 {
        assert!(bench.credit(relay) > 0, "round {round}");
        let to = if round % 5 == 4 { String::new() } else { format!("q{}", round % 3) };
        bench.send(relay, &addressed(&to));
    }
    assert_eq!(bench.told(relay).len(), 100);
}

/// A relay that has filled a queue for ten messages, one after the other, as far as it could.
fn held_by_a_full_queue(bench: &mut Bench) -> (Client, Link) {
    bench.create("full", |settings| settings.max_count = Some(10));
    let client = bench.client();
    let relay = relay(bench, client);
    while bench.credit(relay) > 0 {
        bench.send(relay, &addressed("full"));
    }
    assert_eq!(bench.states(relay), [const { DeliveryState::Accepted }; 9], "more than 80 %");
    (client, relay)
}

fn consume(bench: &mut Bench, receiver: Link, count: u32) {
    bench.grant(receiver, count);
    let got = bench.got(receiver);
    bench.accept(&got);
}

#[test]
fn a_queue_without_room_holds_a_relay_back_until_it_has_some() {
    let mut bench = Bench::new();
    let (client, relay) = held_by_a_full_queue(&mut bench);
    let numbers = bench.numbers("full");
    assert_eq!((numbers.producers_waiting, numbers.producer_count), (1, 0));
    let receiver = bench.receiver(client, "full", 0);
    consume(&mut bench, receiver, 2);
    assert_eq!(bench.credit(relay), 0, "seven are not less than 70 %");
    consume(&mut bench, receiver, 1);
    assert_eq!(bench.credit(relay), 1_000);
    assert_eq!(bench.numbers("full").producers_waiting, 0);
    bench.send(relay, &addressed("full"));
    assert_eq!(bench.states(relay), [DeliveryState::Accepted]);
    bench.expect_nothing_left();
}

#[test]
fn what_a_relay_had_sent_before_it_was_held_back_is_taken_beyond_the_limit() {
    let mut bench = Bench::new();
    bench.create("full", |settings| settings.max_count = Some(10));
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for _ in 0..20 {
        let message = mochila_wire::Encode::to_bytes(&addressed("full"));
        bench.post(relay, &Default::default(), &message);
    }
    bench.run();
    assert_eq!(bench.states(relay), [const { DeliveryState::Accepted }; 20]);
    assert_eq!(bench.credit(relay), 0);
    bench.advance(250);
    bench.send(relay, &addressed("full"));
    let rejected = bench.states(relay).remove(0);
    assert_eq!(rejection(rejected), condition::RESOURCE_LIMIT_EXCEEDED, "it was not under way");
}

#[test]
fn a_queue_that_nobody_empties_does_not_stop_messages_for_others_for_ever() {
    let mut bench = Bench::new();
    let (_, relay) = held_by_a_full_queue(&mut bench);
    let mut others = 0;
    for hold_ms in [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000] {
        bench.advance(hold_ms - 1);
        assert_eq!(bench.credit(relay), 0, "it is held for {hold_ms} ms");
        bench.advance(1);
        assert_eq!(bench.credit(relay), 1, "one message shows where they go");
        for _ in 0..100 {
            bench.send(relay, &addressed("other"));
        }
        others += 100;
        assert!(bench.credit(relay) > 500, "there is room where they go");
        assert_eq!(bench.states(relay), [const { DeliveryState::Accepted }; 100]);
        bench.send(relay, &addressed("full"));
        assert_eq!(bench.told(relay).len(), 1);
    }
    assert_eq!((bench.depth("full"), bench.depth("other")), (10, others));
    bench.expect_nothing_left();
}

#[test]
fn after_a_queue_has_had_room_a_relay_is_held_for_a_short_time_again() {
    let mut bench = Bench::new();
    let (client, relay) = held_by_a_full_queue(&mut bench);
    bench.advance(250);
    bench.send(relay, &addressed("full"));
    bench.advance(250);
    assert_eq!(bench.credit(relay), 0, "the second time it is longer");
    let receiver = bench.receiver(client, "full", 0);
    consume(&mut bench, receiver, 10);
    assert_eq!(bench.credit(relay), 1_000);
    while bench.credit(relay) > 0 {
        bench.send(relay, &addressed("full"));
    }
    bench.advance(250);
    assert_eq!(bench.credit(relay), 1);
}

#[test]
fn a_relay_is_held_by_one_full_queue_after_the_other() {
    let mut bench = Bench::new();
    let (client, relay) = held_by_a_full_queue(&mut bench);
    bench.create("second", |settings| settings.max_count = Some(1));
    bench.advance(250);
    for to in ["other", "second"] {
        bench.send(relay, &addressed(to));
    }
    assert_eq!(bench.credit(relay), 0);
    let receiver = bench.receiver(client, "full", 0);
    consume(&mut bench, receiver, 9);
    assert_eq!(bench.credit(relay), 0, "the second has no room yet");
    bench.node.broker.delete("second", <_>::default()).unwrap().perform();
    bench.run();
    assert_eq!(bench.credit(relay), 1_000);
    bench.expect_nothing_left();
}

#[test]
fn a_relay_that_goes_while_it_is_held_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let (_, _) = held_by_a_full_queue(&mut bench);
    bench.expect_nothing_left();
}

#[test]
fn a_queue_with_flow_control_off_rejects_what_a_relay_brings_and_then_holds_it_back() {
    let mut bench = Bench::new();
    bench.create("full", |settings| {
        settings.max_count = Some(2);
        settings.flow_stop_count = Some(0);
    });
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for _ in 0..3 {
        bench.send(relay, &addressed("full"));
    }
    let rejected = bench.states(relay).pop().unwrap();
    assert_eq!(rejection(rejected), condition::RESOURCE_LIMIT_EXCEEDED);
    assert_eq!((bench.credit(relay), bench.depth("full")), (0, 2));
    let receiver = bench.receiver(client, "full", 0);
    consume(&mut bench, receiver, 1);
    assert_eq!(bench.credit(relay), 1_000);
}
