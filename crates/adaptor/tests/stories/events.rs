//! Receivers on `$events`.

use crate::bench::{Bench, text};
use mochila_broker::settings::LimitPolicy;
use mochila_wire::{Value, condition};

/// What a receiver has heard: the events and what they are about.
fn heard(bench: &mut Bench, link: crate::bench::Link) -> Vec<(String, String)> {
    bench.advance(0);
    let got = bench.got(link);
    bench.accept(&got);
    let story = |delivery: &crate::bench::Got| {
        let message = delivery.message();
        let body = message.body.as_value().and_then(Value::as_map).unwrap().clone();
        let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!(message.properties.unwrap().subject.unwrap(), text("event"));
        (text("event"), text("queue"))
    };
    got.iter().map(story).collect()
}

#[test]
fn nobody_can_send_to_where_the_node_tells() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "$events");
    let error = bench.detach_error(sender);
    assert_eq!(error.condition, condition::NOT_ALLOWED);
    assert!(error.description.unwrap_or_default().contains("nothing can be sent to '$events'"));
}

#[test]
fn a_receiver_hears_what_happens_from_now_on() {
    let mut bench = Bench::new();
    let (operator, client) = (bench.client(), bench.client());
    let events = bench.receiver(operator, "$events", 100);
    assert_eq!(bench.address(events), "$events");
    heard(&mut bench, events);
    let receiver = bench.receiver(client, "q", 10);
    let pairs = |events: &[(&str, &str)]| {
        events.iter().map(|(e, q)| ((*e).to_owned(), (*q).to_owned())).collect::<Vec<_>>()
    };
    let expected = pairs(&[("queueDeclare", "q"), ("subscribe", "q")]);
    assert_eq!(heard(&mut bench, events), expected);
    bench.close_link(receiver);
    assert_eq!(heard(&mut bench, events), pairs(&[("unsubscribe", "q")]));
    bench.kill(client);
    assert_eq!(heard(&mut bench, events), pairs(&[("clientDisconnect", "")]));
    let _newcomer = bench.client();
    assert_eq!(heard(&mut bench, events), pairs(&[("clientConnect", "")]));
}

#[test]
fn several_receivers_hear_the_same_and_those_that_left_are_forgotten() {
    let mut bench = Bench::new();
    let operator = bench.client();
    let first = bench.receiver(operator, "$events", 100);
    let second = bench.receiver(operator, "$events", 100);
    heard(&mut bench, first);
    heard(&mut bench, second);
    bench.create("q", |_| {});
    let expected = [("queueDeclare".to_owned(), "q".to_owned())];
    assert_eq!(heard(&mut bench, first), expected);
    assert_eq!(heard(&mut bench, second), expected);
    bench.close_link(second);
    bench.create("p", |_| {});
    assert_eq!(heard(&mut bench, first).len(), 1);
    assert!(bench.queue_names().iter().filter(|name| name.starts_with("dynamic-")).count() == 1);
}

#[test]
fn an_operator_hears_that_a_queue_fills_before_it_is_full() {
    let mut bench = Bench::new();
    bench.create("q", |settings| {
        settings.max_count = Some(10);
        settings.limit_policy = LimitPolicy::Reject;
    });
    let (operator, client) = (bench.client(), bench.client());
    let events = bench.receiver(operator, "$events", 100);
    heard(&mut bench, events);
    let sender = bench.sender(client, "q");
    for number in 0..8 {
        bench.send(sender, &text(&number.to_string()));
    }
    let expected = [("queueThresholdCrossedUpward".to_owned(), "q".to_owned())];
    assert_eq!(heard(&mut bench, events), expected);
}

#[test]
fn nobody_sends_events_but_the_node() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "$events");
    assert!(bench.detached(sender).is_some(), "it is no node for senders");
}
