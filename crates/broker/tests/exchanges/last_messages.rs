//! The last message of an exchange, which queues that are bound later get.

use crate::bench::{Bench, message};
use mochila_broker::QueueSettings;
use mochila_broker::exchange::Unroutable;
use mochila_wire::Map;

#[test]
fn what_a_transaction_sends_is_the_last_message_when_it_is_committed_and_not_before() {
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    bench.publish(&topic, &["old"]);
    let mut transaction = bench.broker.begin();
    bench.publish_in(&mut transaction, &topic, &["first", "new"]);
    assert_eq!(bench.texts(&bench.bind(&topic, "before", "#")), ["old"]);
    transaction.commit(bench.now).unwrap().perform();
    assert_eq!(bench.texts(&bench.queue("before")), ["old", "new"], "as if bound after it");
    assert_eq!(bench.texts(&bench.bind(&topic, "after", "#")), ["new"]);
    let mut transaction = bench.broker.begin();
    bench.publish_in(&mut transaction, &topic, &["vain"]);
    assert_eq!(bench.texts(&bench.bind(&topic, "meanwhile", "#")), ["new"]);
    transaction.rollback(bench.now).perform();
    assert_eq!(bench.texts(&bench.bind(&topic, "later", "#")), ["new"]);
    assert_eq!(bench.texts(&bench.queue("after")), ["new"]);
}

#[test]
fn the_last_message_of_a_transaction_comes_once_to_queues_that_were_bound_before() {
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    let early = bench.bind(&topic, "early", "#");
    let mut transaction = bench.broker.begin();
    bench.publish_in(&mut transaction, &topic, &["x"]);
    let other = bench.bind(&topic, "other", "y");
    transaction.commit(bench.now).unwrap().perform();
    assert_eq!(bench.texts(&early), ["x"]);
    assert!(bench.texts(&other).is_empty(), "it is not for this queue");
}

#[test]
fn the_time_of_a_last_message_begins_when_it_is_sent_in_its_transaction() {
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    let mut transaction = bench.broker.begin();
    let mut last = message("x");
    last.header_mut().ttl = Some(1_000);
    bench.publish_all_in(&mut transaction, &topic, vec![last]);
    bench.now = bench.now.after(400);
    transaction.commit(bench.now).unwrap().perform();
    let late = bench.bind(&topic, "late", "#");
    assert_eq!(bench.messages(&late)[0].header.unwrap().ttl, Some(600));
}

#[test]
fn a_message_that_is_rerouted_is_the_last_one() {
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    bench.bind(&topic, "known", "known");
    let fanout = bench.broker.exchange("amq.fanout").unwrap();
    let source = bench.bind(&fanout, "source", "");
    bench.publish(&fanout, &["known", "unknown"]);
    source.reroute(bench.now, &topic, 10_u64).1.perform();
    assert_eq!(bench.texts(&source), ["unknown"], "no queue is bound for it");
    assert_eq!(bench.texts(&bench.bind(&topic, "late", "#")), ["known"]);
}

#[test]
fn a_message_that_its_sender_has_to_send_again_is_not_the_last_one() {
    for unroutable in [Unroutable::Release, Unroutable::Reject] {
        let mut bench = Bench::new();
        let topic = bench.exchange_with("e", |settings| {
            (settings.keeps_last, settings.unroutable) = (true, unroutable);
        });
        let known = bench.bind(&topic, "known", "known");
        bench.publish(&topic, &["known", "unknown"]);
        bench.publish(&topic, &["unknown"]);
        assert_eq!(bench.texts(&bench.bind(&topic, "late", "#")), ["known"]);
        let mut transaction = bench.broker.begin();
        bench.publish_in(&mut transaction, &topic, &["known"]);
        bench.queue("late").delete(<_>::default()).unwrap().perform();
        bench.publish_in(&mut transaction, &topic, &["unknown"]);
        drop(transaction.commit(bench.now).map(|wakeups| wakeups.perform()));
        assert_eq!(bench.texts(&bench.bind(&topic, "later", "#")), ["known"]);
        bench.purge(&known);
    }
    let mut bench = Bench::new();
    let topic = bench.exchange_with("e", |settings| settings.keeps_last = true);
    let full = QueueSettings { max_count: Some(1), ..QueueSettings::default() };
    let full = bench.broker.create("full", full).unwrap();
    topic.bind(bench.now, &full, "#", Map::new()).unwrap().1.perform();
    bench.publish(&topic, &["kept", "refused"]);
    assert_eq!(bench.texts(&bench.bind(&topic, "late", "#")), ["kept"]);
}
