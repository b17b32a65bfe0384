//! The numbers that messages get at an exchange.

use crate::bench::{Bench, message};
use mochila_broker::{Exchange, ExchangeKind, Pick, QueueSettings, Selector, SharedQueue};
use mochila_wire::{Map, Message, Value};
use std::sync::Arc;

#[test]
fn messages_get_numbers_of_their_exchange() {
    let mut bench = Bench::new();
    let direct = bench.exchange_with("e", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.sequences = true;
    });
    let (a, b) = (bench.bind(&direct, "a", "a"), bench.bind(&direct, "b", "b"));
    bench.publish(&direct, &["a", "b", "b"]);
    let mut annotated = message("a");
    annotated.set_message_annotation("x-opt-mine", 5u32);
    bench.publish_all(&direct, None, vec![annotated]);
    let numbers = |queue: &SharedQueue| -> Vec<Value> {
        let messages = bench.messages(queue);
        let number = |message: &Message| {
            message.message_annotations.as_ref().unwrap().get("qpid.msg_sequence").unwrap().clone()
        };
        messages.iter().map(number).collect()
    };
    assert_eq!(numbers(&a), [Value::Long(1), Value::Long(4)]);
    assert_eq!(numbers(&b), [Value::Long(2), Value::Long(3)]);
    let last = bench.messages(&a).pop().unwrap().message_annotations.unwrap();
    assert_eq!(last.get("x-opt-mine"), Some(&Value::Uint(5)));
    bench.purge(&a);
    bench.purge(&b);
}

/// The numbers of what a queue holds.
fn numbers(bench: &Bench, queue: &SharedQueue) -> Vec<i64> {
    let number = |message: &Message| {
        let annotations = message.message_annotations.as_ref().expect("they are numbered");
        annotations.get("qpid.msg_sequence").and_then(Value::as_i64).unwrap()
    };
    bench.messages(queue).iter().map(number).collect()
}

fn numbering(bench: &Bench, name: &str) -> Arc<Exchange> {
    bench.exchange_with(name, |settings| {
        settings.kind = ExchangeKind::Fanout;
        settings.sequences = true;
    })
}

#[test]
fn a_number_takes_little_memory_and_gives_it_back() {
    let mut bench = Bench::new();
    let plain = bench.exchange_with("plain", |settings| settings.kind = ExchangeKind::Fanout);
    let numbered = numbering(&bench, "numbered");
    let subjects = vec!["a"; 100];
    let used = |bench: &mut Bench, exchange: &Exchange, queue: &str| {
        bench.bind(exchange, queue, "");
        let before = bench.broker.budget().used();
        bench.publish(exchange, &subjects);
        bench.broker.budget().used() - before
    };
    let without = used(&mut bench, &plain, "without");
    assert_eq!(used(&mut bench, &numbered, "with"), without + 100 * 8);
    let queue = bench.queue("with");
    let before = bench.broker.budget().used();
    bench.purge(&queue);
    assert!(bench.broker.budget().used() <= before - without - 100 * 8);
}

#[test]
fn a_number_stays_with_its_message_when_others_leave_the_memory_that_they_share() {
    let mut bench = Bench::new();
    let exchange = numbering(&bench, "e");
    let queue = bench.bind(&exchange, "q", "");
    let large = "x".repeat(1_000);
    let mut kept = Vec::new();
    for batch in 0..20 {
        let subjects: Vec<&str> =
            (0..50).map(|index| if index == 17 { "kept" } else { &large[..] }).collect();
        bench.publish(&exchange, &subjects);
        kept.push(batch * 50 + 18);
    }
    let before = bench.broker.budget().used();
    let others = Selector::new("JMSType <> 'kept'").unwrap();
    queue.purge(bench.now, Pick { selector: others, ..Pick::from(u64::MAX) }).1.perform();
    // Each visit moves what is left of one piece of memory.
    (0..20).for_each(|_| drop(bench.messages(&queue)));
    assert!(bench.broker.budget().used() < before / 4, "the memory has been given back");
    assert_eq!(numbers(&bench, &queue), kept);
}

#[test]
fn a_number_goes_along_to_other_queues_until_another_exchange_gives_one() {
    let mut bench = Bench::new();
    let (first, second) = (numbering(&bench, "first"), numbering(&bench, "second"));
    let queue = bench.bind(&first, "q", "");
    let last = bench.bind(&second, "last", "");
    bench.publish(&first, &["a", "b", "c"]);
    let other = bench.queue("other");
    queue.move_to(bench.now, &other, Pick::from(2)).unwrap().1.perform();
    assert_eq!((numbers(&bench, &other), numbers(&bench, &queue)), (vec![1, 2], vec![3]));
    bench.publish(&second, &["x"]);
    queue.reroute(bench.now, &second, Pick::from(9)).1.perform();
    other.reroute(bench.now, &second, Pick::from(9)).1.perform();
    assert_eq!(numbers(&bench, &last), [1, 2, 3, 4]);
    assert_eq!(bench.texts(&last), ["x", "c", "a", "b"]);
}

#[test]
fn a_number_stands_beside_what_the_queue_adds_and_a_time_to_live() {
    let mut bench = Bench::new();
    let exchange = numbering(&bench, "e");
    let settings = QueueSettings {
        sequence_key: Some("x-opt-place".into()),
        ingress_timestamp: Some(true),
        ..QueueSettings::default()
    };
    let queue = bench.broker.create("q", settings).unwrap();
    exchange.bind(bench.now, &queue, "", Map::new()).unwrap().1.perform();
    let mut short_lived = message("b");
    short_lived.header_mut().ttl = Some(1_000);
    let mut annotated = message("c");
    annotated.set_message_annotation("x-opt-mine", 5u32);
    // Two numbers go to nobody here.
    exchange.unbind(&queue, "").unwrap().perform();
    bench.publish(&exchange, &["", ""]);
    exchange.bind(bench.now, &queue, "", Map::new()).unwrap().1.perform();
    bench.publish_all(&exchange, None, vec![message("a"), short_lived, annotated, message("d")]);
    assert_eq!(numbers(&bench, &queue), [3, 4, 5, 6]);
    for (place, message) in (1..).zip(bench.messages(&queue)) {
        let annotations = message.message_annotations.unwrap();
        assert_eq!(annotations.get("x-opt-place"), Some(&Value::Uint(place)));
        assert!(annotations.get("x-opt-ingress-timestamp").is_some());
        assert_eq!(annotations.get("x-opt-mine").is_some(), place == 3);
        assert_eq!(annotations.len(), if place == 3 { 4 } else { 3 });
    }
}
