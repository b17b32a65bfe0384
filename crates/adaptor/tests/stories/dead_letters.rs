//! Messages that could not be dealt with, and where they go.

use crate::bench::{Bench, text};
use mochila_broker::DeleteIf;
use mochila_broker::settings::{LifetimePolicy, LimitPolicy, QueueSettings};
use mochila_wire::{DeliveryState, Map, Message, Value};

/// A node with a queue whose dead letters go to the queue `dead`.
fn bench(change: impl FnOnce(&mut QueueSettings)) -> Bench {
    let bench = Bench::new();
    let fanout = bench.node.broker.exchange("amq.fanout").unwrap();
    let dead = bench.node.broker.open("dead").unwrap();
    fanout.bind(bench.now, &dead, "", Map::new()).unwrap().1.perform();
    bench.create("q", |settings| {
        settings.alternate_exchange = Some("amq.fanout".into());
        change(settings);
    });
    bench
}

/// What the queue `dead` has.
fn dead(bench: &mut Bench) -> Vec<Message> {
    let client = bench.client();
    let receiver = bench.receiver(client, "dead", 100);
    let got = bench.got(receiver);
    bench.accept(&got);
    bench.close(client);
    got.iter().map(|got| got.message()).collect()
}

fn told(message: &Message, key: &str) -> Option<Value> {
    message.message_annotations.as_ref()?.get(key).cloned()
}

fn reason(message: &Message) -> String {
    told(message, "x-opt-deadletter-reason").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn a_rejected_message_goes_to_the_alternate_exchange_with_where_it_comes_from_and_why() {
    let mut bench = bench(|_| {});
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = text("a");
    message.set_message_annotation("x-opt-mine", 1u32);
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 10);
    let got = bench.got(receiver);
    bench.settle(&got[0], DeliveryState::Rejected { error: None });
    let dead = dead(&mut bench);
    assert_eq!((dead.len(), reason(&dead[0])), (1, "rejected".into()));
    assert_eq!(told(&dead[0], "x-opt-deadletter-source"), Some("q".into()));
    let time = Value::Timestamp(bench.now.wall_ms);
    assert_eq!(told(&dead[0], "x-opt-deadletter-time"), Some(time));
    assert_eq!(told(&dead[0], "x-opt-mine"), Some(1u32.into()));
    assert_eq!(bench.numbers("q").discards_subscriber, 1);
    bench.expect_nothing_left();
}

#[test]
fn j4_messages_that_are_left_when_a_queue_is_deleted_are_not_lost() {
    let mut bench = bench(|_| {});
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b", "c"] {
        bench.send(sender, &text(body));
    }
    bench.receiver(client, "q", 1);
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.run();
    let dead = dead(&mut bench);
    assert_eq!(dead.iter().map(reason).collect::<Vec<_>>(), ["deleted"; 3]);
    assert_eq!(dead[0].body, text("a").body);
    bench.expect_nothing_left();
}

#[test]
fn j4_messages_of_a_queue_that_deletes_itself_are_not_lost() {
    let is_unused = |settings: &mut QueueSettings| {
        settings.lifetime = Some(LifetimePolicy::DeleteOnNoLinks);
        settings.auto_delete_delay_ms = 1_000;
    };
    let mut bench = bench(is_unused);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    bench.close(client);
    assert_eq!(bench.depth("dead"), 0, "somebody may come back");
    bench.advance(2_000);
    assert_eq!(bench.queue_names(), ["dead"]);
    let dead = dead(&mut bench);
    assert_eq!((dead.len(), reason(&dead[0])), (1, "deleted".into()));
    bench.expect_nothing_left();
}

#[test]
fn j4_messages_of_a_queue_that_is_deleted_at_its_limit_are_not_lost() {
    let mut bench = bench(|settings| {
        settings.max_count = Some(2);
        settings.limit_policy = LimitPolicy::SelfDestruct;
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b", "too many"] {
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.queue_names(), ["dead"]);
    let dead = dead(&mut bench);
    assert_eq!(dead.iter().map(reason).collect::<Vec<_>>(), ["deleted"; 2]);
    assert_eq!(dead[1].body, text("b").body);
    bench.expect_nothing_left();
}

#[test]
fn j8_a_message_that_was_delivered_in_vain_too_often_goes_to_the_alternate_exchange() {
    let mut bench = bench(|settings| settings.max_delivery_count = Some(2));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("poison"));
    let receiver = bench.receiver(client, "q", 10);
    for attempt in 0..2 {
        let got = bench.got(receiver).remove(0);
        let header = got.message().header.unwrap_or_default();
        assert_eq!(header.delivery_count, attempt);
        bench.settle(&got, DeliveryState::modified(true, false));
    }
    assert_eq!((bench.depth("q"), bench.got(receiver).len()), (0, 0));
    let dead = dead(&mut bench);
    assert_eq!((dead.len(), reason(&dead[0])), (1, "max-deliveries".into()));
    assert_eq!(dead[0].body, text("poison").body);
    bench.expect_nothing_left();
}

#[test]
fn j3_a_dead_letter_does_not_take_its_time_to_live_along() {
    let mut bench = bench(|settings| settings.buries_expired = true);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = text("a");
    message.header_mut().ttl = Some(1_000);
    bench.send(sender, &message);
    bench.advance(5_000);
    assert_eq!((bench.depth("q"), bench.depth("dead")), (0, 1));
    bench.advance(1_000_000);
    let dead = dead(&mut bench);
    assert_eq!((dead.len(), reason(&dead[0])), (1, "expired".into()));
    assert_eq!(dead[0].header.unwrap_or_default().ttl, None);
}

#[test]
fn what_expires_is_gone_unless_the_queue_says_otherwise() {
    let mut bench = bench(|_| {});
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = text("a");
    message.header_mut().ttl = Some(1_000);
    bench.send(sender, &message);
    bench.advance(5_000);
    assert_eq!((bench.depth("q"), bench.depth("dead")), (0, 0));
}

#[test]
fn what_has_to_make_room_goes_to_the_alternate_exchange() {
    let mut bench = bench(|settings| {
        settings.max_count = Some(2);
        settings.limit_policy = LimitPolicy::Ring;
    });
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b", "c"] {
        bench.send(sender, &text(body));
    }
    let dead = dead(&mut bench);
    assert_eq!((dead.len(), reason(&dead[0])), (1, "overflow".into()));
    assert_eq!(dead[0].body, text("a").body);
}

#[test]
fn a_ring_that_is_bound_to_its_own_alternate_exchange_comes_to_rest() {
    let mut bench = bench(|settings| {
        settings.max_count = Some(2);
        settings.limit_policy = LimitPolicy::Ring;
    });
    let fanout = bench.node.broker.exchange("amq.fanout").unwrap();
    fanout.bind(bench.now, &bench.queue("q"), "", Map::new()).unwrap().1.perform();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b", "c", "d"] {
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.depth("q"), 2);
    bench.queue("dead").purge(bench.now, u64::MAX).1.perform();
    bench.expect_nothing_left();
}

#[test]
fn an_alternate_exchange_has_to_be_there_and_stays_as_long_as_it_is_one() {
    let bench = Bench::new();
    let settings = QueueSettings { alternate_exchange: Some("e".into()), ..<_>::default() };
    let error = bench.node.broker.create("q", settings.clone()).unwrap_err();
    assert_eq!(error.to_string(), "no exchange is named 'e'");
    bench.node.broker.create_exchange("e", <_>::default()).unwrap();
    bench.node.broker.create("q", settings).unwrap();
    assert!(bench.node.broker.delete_exchange("e", <_>::default()).is_err());
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.node.broker.delete_exchange("e", <_>::default()).unwrap().perform();
}
