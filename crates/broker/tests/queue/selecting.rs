//! Consumers that want some messages and not others.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::{
    BatchBuilder, Filters, MessageMeta, Mode, Origin, Outcome, QueueSettings, TakeLimit, Taking,
};
use mochila_wire::section::scan;
use mochila_wire::terminus::{JMS_SELECTOR, NO_LOCAL};
use mochila_wire::{Encode, Limits, Map, Message, Value};
use std::sync::Arc;

pub(crate) fn selector(text: &str) -> Arc<Filters> {
    let set = Map::new().with("s", JMS_SELECTOR.with(text));
    Arc::new(Filters::new(&set).unwrap())
}

fn selecting(bench: &mut QueueBench, text: &str) -> BenchConsumer {
    bench.subscribe(|options| options.filters = Some(selector(text)))
}

fn selecting_browser(bench: &mut QueueBench, text: &str) -> BenchConsumer {
    bench.subscribe(|options| {
        options.filters = Some(selector(text));
        options.mode = Mode::Browse;
    })
}

fn coloured(colour: &str, number: usize) -> Message {
    let mut message = message(&format!("{colour} {number}"));
    message.set_application_property("colour", colour);
    message.set_application_property("n", number as u64);
    message
}

/// Sends messages of these colours, numbered on, in one batch.
fn send(bench: &mut QueueBench, colours: &[&str]) {
    let first = bench.statistics().msg_total_enqueues as usize;
    let numbered = colours.iter().enumerate();
    let messages = numbered.map(|(index, colour)| coloured(colour, first + index)).collect();
    bench.send_messages(messages);
}

#[test]
fn a_consumer_gets_what_it_selects_in_order_and_the_rest_stays_for_others() {
    let mut bench = QueueBench::default();
    send(&mut bench, &["red", "blue", "red", "green", "blue"]);
    let blue = selecting(&mut bench, "colour = 'blue'");
    let got = bench.take(blue, 10);
    assert_eq!(got.texts, ["blue 1", "blue 4"]);
    assert_eq!(got.taking, Taking::Waiting);
    let plain = bench.consumer();
    assert_eq!(bench.take(plain, 10).texts, ["red 0", "red 2", "green 3"]);
}

#[test]
fn a_consumer_that_waits_is_woken_by_a_message_that_matches_and_by_no_other() {
    let mut bench = QueueBench::default();
    let blue = selecting(&mut bench, "colour = 'blue'");
    let red = selecting(&mut bench, "colour = 'red'");
    for consumer in [blue, red] {
        assert_eq!(bench.take(consumer, 10).taking, Taking::Waiting);
    }
    send(&mut bench, &["green"]);
    assert_eq!(bench.woken(), []);
    send(&mut bench, &["green", "red"]);
    assert_eq!(bench.woken(), [red.key]);
    assert_eq!(bench.take(red, 10).texts, ["red 2"]);
}

#[test]
fn one_message_wakes_one_of_many_that_it_matches_and_they_take_turns() {
    let mut bench = QueueBench::default();
    let any: Vec<_> = (0..5).map(|n| selecting(&mut bench, &format!("n > -{n} - 1"))).collect();
    any.iter().for_each(|consumer| drop(bench.take(*consumer, 10)));
    for turn in 0..10 {
        send(&mut bench, &["red"]);
        let expected = any[turn % 5];
        assert_eq!(bench.woken(), [expected.key]);
        assert_eq!(bench.take(expected, 10).texts.len(), 1);
    }
}

#[test]
fn one_that_was_called_and_cannot_come_leaves_the_message_to_the_next() {
    let mut bench = QueueBench::default();
    let first = selecting(&mut bench, "n >= 0");
    let second = selecting(&mut bench, "colour = 'red'");
    bench.take(first, 10);
    bench.take(second, 10);
    send(&mut bench, &["red"]);
    assert_eq!(bench.woken(), [first.key]);
    bench.idle(first);
    assert_eq!(bench.woken(), [second.key]);
    bench.unsubscribe(second);
    assert_eq!(bench.woken(), []);
    assert_eq!(bench.take(first, 10).texts, ["red 0"]);
}

#[test]
fn a_message_for_which_somebody_was_called_is_not_overtaken() {
    for other in [None, Some("colour = 'red'"), Some("n >= 0")] {
        let mut bench = QueueBench::default();
        let called = selecting(&mut bench, "colour = 'red'");
        let other = bench.subscribe(|options| options.filters = other.map(selector));
        bench.take(called, 10);
        send(&mut bench, &["red"]);
        assert_eq!(bench.woken(), [called.key]);
        send(&mut bench, &["red"]);
        assert_eq!(bench.take(other, 10).texts, ["red 0"]);
        bench.idle(called);
        assert_eq!(bench.take(other, 10).texts, ["red 1"]);
    }
}

#[test]
fn whoever_comes_uncalled_leaves_a_message_to_the_one_who_was_called() {
    for other in [None, Some("colour = 'red'"), Some("n >= 0")] {
        let mut bench = QueueBench::default();
        let called = selecting(&mut bench, "colour = 'red'");
        bench.take(called, 10);
        send(&mut bench, &["red", "blue", "red"]);
        let other = bench.subscribe(|options| options.filters = other.map(selector));
        assert_eq!(bench.take(other, 1).texts, ["red 0"]);
        assert_eq!(bench.take(called, 10).texts, ["red 2"]);
    }
}

#[test]
fn one_whose_message_another_has_taken_waits_for_the_next() {
    let mut bench = QueueBench::default();
    let called = selecting(&mut bench, "colour = 'red'");
    bench.take(called, 10);
    send(&mut bench, &["red", "blue"]);
    let plain = bench.consumer();
    assert_eq!(bench.take(plain, 1).texts, ["red 0"]);
    assert_eq!(bench.woken(), [called.key]);
    assert_eq!(bench.take(called, 10).taking, Taking::Waiting);
    send(&mut bench, &["red"]);
    assert_eq!(bench.woken(), [called.key]);
    assert_eq!(bench.take(called, 10).texts, ["red 2"]);
}

#[test]
fn those_who_select_and_those_who_do_not_take_turns() {
    let mut bench = QueueBench::default();
    let red = selecting(&mut bench, "colour = 'red'");
    let plain = bench.consumer();
    let mut counts = [0, 0];
    for consumer in [red, plain] {
        bench.take(consumer, 10);
    }
    for _ in 0..20 {
        send(&mut bench, &["red"]);
        let woken = bench.woken();
        assert_eq!(woken.len(), 1);
        let who = if woken[0] == red.key { 0 } else { 1 };
        let consumer = [red, plain][who];
        counts[who] += bench.take(consumer, 10).texts.len();
    }
    assert_eq!(counts, [10, 10]);
}

#[test]
fn consumers_with_the_same_selector_get_fair_shares() {
    let mut bench = QueueBench::default();
    let consumers: Vec<_> = (0..4).map(|_| selecting(&mut bench, "colour = 'red'")).collect();
    consumers.iter().for_each(|consumer| drop(bench.take(*consumer, 100)));
    let colours: Vec<&str> = (0..80).map(|n| if n % 2 == 0 { "red" } else { "blue" }).collect();
    send(&mut bench, &colours);
    assert_eq!(bench.woken().len(), 4);
    for consumer in consumers {
        assert_eq!(bench.take(consumer, 100).texts.len(), 10);
    }
}

#[test]
fn a_released_message_is_offered_again_to_whoever_selects_it() {
    let mut bench = QueueBench::default();
    let plain = bench.consumer();
    send(&mut bench, &["red", "blue"]);
    bench.take(plain, 2);
    let red = selecting(&mut bench, "colour = 'red'");
    assert_eq!(bench.take(red, 10).taking, Taking::Waiting);
    bench.release(plain, &[0, 1]);
    assert_eq!(bench.woken(), [red.key]);
    let got = bench.take(red, 10);
    assert_eq!(got.texts, ["red 0"]);
    bench.release(red, &got.positions());
    assert_eq!(bench.take(red, 10).texts, ["red 0"]);
}

#[test]
fn a_selector_may_ask_for_what_has_changed_since_the_message_came() {
    let mut bench = QueueBench::default();
    let plain = bench.consumer();
    let again = selecting(&mut bench, "JMSRedelivered = TRUE AND amqp.annotation.why = 'busy'");
    send(&mut bench, &["red"]);
    assert_eq!(bench.take(again, 10).texts.len(), 0);
    bench.take(plain, 10);
    let annotations = Some(Box::new(Map::new().with("why", "busy")));
    let outcome = Outcome::Modify { failed: true, undeliverable_here: false, annotations };
    bench.settle(plain, &[0], outcome);
    assert_eq!(bench.woken(), [again.key]);
    assert_eq!(bench.take(again, 10).texts, ["red 0"]);
    let first = selecting(&mut bench, "JMSRedelivered = FALSE");
    bench.release(again, &[0]);
    assert_eq!(bench.take(first, 10).texts.len(), 0);
}

#[test]
fn a_message_that_is_undeliverable_here_goes_to_another_with_the_same_selector() {
    let mut bench = QueueBench::default();
    let consumers = ["colour = 'red'"; 2].map(|text| selecting(&mut bench, text));
    send(&mut bench, &["red", "red"]);
    assert_eq!(bench.take(consumers[0], 1).texts, ["red 0"]);
    let outcome = Outcome::Modify { failed: true, undeliverable_here: true, annotations: None };
    bench.settle(consumers[0], &[0], outcome);
    assert_eq!(bench.take(consumers[0], 10).texts, ["red 1"]);
    assert_eq!(bench.take(consumers[1], 10).texts, ["red 0"]);
}

#[test]
fn a_selector_may_ask_for_the_number_that_the_queue_adds() {
    let settings = QueueSettings { sequence_key: Some("seqno".into()), ..QueueSettings::default() };
    let mut bench = QueueBench::new(settings);
    send(&mut bench, &["red"; 9]);
    let late = selecting(&mut bench, "amqp.annotation.seqno > 7");
    assert_eq!(bench.take(late, 10).texts, ["red 7", "red 8"]);
}

#[test]
fn a_browser_sees_what_it_selects_once_and_is_woken_by_nothing_else() {
    let mut bench = QueueBench::default();
    send(&mut bench, &["red", "blue", "blue"]);
    let browser = selecting_browser(&mut bench, "colour = 'blue'");
    let plain = bench.consumer();
    assert_eq!(bench.take(browser, 1).texts, ["blue 1"]);
    let got = bench.take(browser, 10);
    assert_eq!((got.texts, got.taking), (vec!["blue 2".to_owned()], Taking::Waiting));
    bench.take(plain, 3);
    bench.release(plain, &[0, 1, 2]);
    assert_eq!(bench.take(browser, 10).texts.len(), 0, "it has seen them");
    send(&mut bench, &["red"]);
    assert_eq!(bench.woken(), []);
    send(&mut bench, &["blue"]);
    assert_eq!(bench.woken(), [browser.key]);
    assert_eq!(bench.take(browser, 10).texts, ["blue 4"]);
}

#[test]
fn a_browser_that_could_not_pass_messages_on_sees_them_again() {
    let mut bench = QueueBench::default();
    send(&mut bench, &["blue", "red", "blue", "blue"]);
    let browser = selecting_browser(&mut bench, "colour = 'blue'");
    assert_eq!(bench.take(browser, 10).positions(), [0, 2, 3]);
    bench.queue.give_back(bench.now, browser.id, &[2, 3]).perform();
    assert_eq!(bench.take(browser, 10).positions(), [2, 3]);
}

/// Sends one message over a connection.
pub(crate) fn send_over(bench: &QueueBench, connection: u64, message: &Message) {
    let bytes = message.to_bytes();
    let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
    let mut builder = BatchBuilder::new();
    builder.set_origin(Origin::new(connection, bench.now));
    builder.push(0..bytes.len(), &sections, MessageMeta::read(&sections, &bytes));
    let batch = builder.finish(&bytes, bench.broker.budget()).unwrap();
    bench.queue.enqueue(bench.now, batch).1.perform();
}

#[test]
fn no_local_means_messages_of_other_connections() {
    let mut bench = QueueBench::default();
    let set = Map::new().with("no-local", NO_LOCAL.with(Vec::<Value>::new()));
    let filters = Arc::new(Filters::new(&set).unwrap());
    let mut on = |connection| {
        bench.subscribe(|options| {
            options.filters = Some(Arc::clone(&filters));
            options.owner = connection;
        })
    };
    let (first, second) = (on(1), on(2));
    for connection in [1, 2, 1] {
        send_over(&bench, connection, &message(&connection.to_string()));
    }
    assert_eq!(bench.take(first, 10).texts, ["2"]);
    assert_eq!(bench.take(second, 10).texts, ["1", "1"]);
}

#[test]
fn messages_that_do_not_match_are_looked_at_once_and_not_at_every_take() {
    let mut bench = QueueBench::default();
    let colours = ["red"; 100];
    (0..300).for_each(|_| send(&mut bench, &colours));
    let blue = selecting(&mut bench, "colour = 'blue'");
    let mut takes = 0;
    while bench.take(blue, 10).taking == Taking::More {
        takes += 1;
    }
    assert!((1..10).contains(&takes), "a long backlog is looked through in {takes} pieces");
    send(&mut bench, &["blue"]);
    assert_eq!(bench.woken(), [blue.key]);
    assert_eq!(bench.take(blue, 10).texts, ["blue 30000"]);
}

#[test]
fn more_messages_than_one_visit_looks_at_are_left_to_those_who_wait() {
    let mut bench = QueueBench::default();
    let texts = (0..60).map(|n| format!("n = {n} OR n >= 1000")).collect::<Vec<_>>();
    let consumers: Vec<_> = texts.iter().map(|text| selecting(&mut bench, text)).collect();
    consumers.iter().for_each(|consumer| drop(bench.take(*consumer, 10)));
    // 60 times 1,000 are more than a publisher's visit does for others.
    send(&mut bench, &["red"; 1_000]);
    let mut got = 0;
    for _ in 0..10 {
        for key in bench.woken() {
            let consumer = consumers.iter().find(|consumer| consumer.key == key).unwrap();
            got += bench.take(*consumer, 10).texts.len();
        }
    }
    assert_eq!(got, 60);
}

#[test]
fn purging_and_expiring_in_between_is_harmless() {
    let mut bench = QueueBench::default();
    let red = selecting(&mut bench, "colour = 'red'");
    bench.take(red, 10);
    let mut short = coloured("red", 0);
    short.header_mut().ttl = Some(100);
    bench.send_messages(vec![short.clone(), coloured("red", 1), short]);
    assert_eq!(bench.woken(), [red.key]);
    bench.pass(200);
    bench.perform(bench.queue.purge(bench.now, 1).1);
    let got = bench.take(red, 10);
    assert_eq!((got.texts.len(), got.taking), (0, Taking::Waiting));
    send(&mut bench, &["red"]);
    assert_eq!(bench.woken(), [red.key]);
    let limit = TakeLimit { messages: 1, bytes: 0 };
    assert_eq!(bench.take_limited(red, limit).texts.len(), 1);
}

#[test]
fn one_that_does_not_come_is_shown_a_part_of_what_comes_and_gets_all_of_it_when_it_does() {
    let mut bench = QueueBench::default();
    let colours = ["red", "blue"];
    let [red, blue] = colours.map(|colour| selecting(&mut bench, &format!("colour = '{colour}'")));
    for consumer in [red, blue] {
        assert_eq!(bench.take(consumer, 1).taking, Taking::Waiting);
    }
    send(&mut bench, &colours);
    // From now on nobody waits, and both know what comes as long as they might come soon.
    assert_eq!(bench.take(red, 1).texts, ["red 0"]);
    assert_eq!(bench.take(blue, 1).texts, ["blue 1"]);
    (0..20).for_each(|_| send(&mut bench, &colours.repeat(500)));
    assert_eq!(bench.woken(), [red.key, blue.key], "they are called for the first two alone");
    // Somebody else has some of what they know of, and gives back a part of it.
    let plain = bench.consumer();
    let taken = bench.take(plain, 30).positions();
    bench.settle(plain, &taken[..10], Outcome::Release);
    let mut got = Vec::new();
    while got.len() < 9_990 {
        let taken = bench.take(blue, 1_000).positions();
        assert!(!taken.is_empty(), "{} and no more", got.len());
        got.extend(taken);
    }
    let expected = (1..).step_by(2).skip(1).filter(|position| !taken[10..].contains(position));
    assert!(got.iter().copied().eq(expected.take(got.len())), "in order");
    assert_eq!(bench.take(blue, 1).taking, Taking::Waiting);
}
