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

#[test]
fn a_full_queue_rejects_what_a_relay_brings_and_others_take_theirs() {
    let mut bench = Bench::new();
    for (name, policy) in [("rejecting", "reject"), ("blocking", "block")] {
        let arguments =
            mochila_wire::Map::new().with("qpid.max_count", 2u32).with("qpid.policy_type", policy);
        let settings = mochila_broker::QueueSettings::from_arguments(&arguments).unwrap();
        bench.node.broker.create(name, settings).unwrap();
    }
    let client = bench.client();
    let relay = relay(&mut bench, client);
    for queue in ["rejecting", "blocking"] {
        for _ in 0..10 {
            bench.send(relay, &addressed(queue));
        }
        let rejected = bench.states(relay).into_iter().filter(|s| *s != DeliveryState::Accepted);
        let conditions: Vec<_> = rejected.map(rejection).collect();
        assert_eq!(conditions, [condition::RESOURCE_LIMIT_EXCEEDED; 8], "{queue}");
        assert_eq!(bench.depth(queue), 2);
    }
    bench.send(relay, &addressed("other"));
    assert_eq!(bench.states(relay), [DeliveryState::Accepted]);
}
