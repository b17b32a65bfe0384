//! Those who send to an exchange.

use crate::bench::Bench;
use mochila_broker::{
    DeleteIf, Exchange, ExchangeDeleteIf, ExchangeError, ExchangeKind, Publisher, QueueSettings,
};
use mochila_wire::Map;

#[test]
fn a_sender_whose_messages_all_go_to_one_queue_is_held_back_by_it() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    let mut publisher = bench.publisher(&direct);
    assert_eq!(bench.grant(&mut publisher, 100), 1, "nobody knows where it sends to");
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    assert_eq!(full.statistics().producers_waiting, 1);
    bench.purge(&full);
    assert_eq!(bench.woken(), [7]);
    assert_eq!(bench.grant(&mut publisher, 100), 3, "as much as there is room");
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    bench.broker.delete("full", DeleteIf::default()).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    assert_eq!(bench.grant(&mut publisher, 100), 1, "nobody knows again");
    publisher.detach(bench.now).perform();
    assert_eq!(direct.statistics().producer_count, 0);
}

#[test]
fn a_sender_whose_key_leads_to_one_queue_has_its_credit_at_once() {
    for kind in [ExchangeKind::Direct, ExchangeKind::Topic, ExchangeKind::Fanout] {
        let mut bench = Bench::new();
        let exchange = bench.exchange(kind);
        let full = bench.stopping(&exchange, "full", "k");
        let mut publisher = bench.publisher_to(&exchange, "k");
        assert_eq!(bench.grant(&mut publisher, 100), 3, "{kind:?}");
        publisher.note(&bench.publish(&exchange, &["k", "k", "k"]));
        let mut late = bench.publisher_to(&exchange, "k");
        assert_eq!(bench.grant(&mut late, 100), 0, "{kind:?}");
        bench.purge(&full);
        assert_eq!(bench.woken(), [7]);
        assert!(bench.grant(&mut late, 100) > 0);
        publisher.detach(bench.now).perform();
        late.detach(bench.now).perform();
        assert_eq!(full.statistics().producer_count, 0);
    }
}

#[test]
fn a_new_sender_shows_with_one_message_where_it_sends_to() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    bench.bind(&direct, "a", "k");
    bench.bind(&direct, "b", "k");
    let mut publisher = bench.publisher_to(&direct, "k");
    assert_eq!(bench.grant(&mut publisher, 100), 1);
    publisher.note(&bench.publish(&direct, &["k"]));
    assert_eq!(bench.grant(&mut publisher, 100), 100, "to two that have room");
    publisher.detach(bench.now).perform();
    let mut stray = bench.publisher_to(&direct, "nowhere");
    stray.note(&bench.publish(&direct, &["nowhere"]));
    assert_eq!(bench.grant(&mut stray, 100), 100, "to none");
    stray.detach(bench.now).perform();
}

#[test]
fn whoever_waits_for_a_queue_goes_on_when_its_messages_go_elsewhere() {
    for key in [None, Some("k")] {
        let mut bench = Bench::new();
        let direct = bench.exchange(ExchangeKind::Direct);
        let full = bench.stopping(&direct, "full", "k");
        let mut publisher = match key {
            Some(key) => bench.publisher_to(&direct, key),
            None => bench.publisher(&direct),
        };
        publisher.note(&bench.publish(&direct, &["k", "k", "k"]));
        assert_eq!(bench.grant(&mut publisher, 100), 0);
        direct.unbind(&full, "k").unwrap().perform();
        bench.stopping(&direct, "other", "k");
        assert!(!bench.woken().is_empty(), "{key:?}");
        assert!(bench.grant(&mut publisher, 100) > 0, "{key:?}");
        assert_eq!(full.statistics().producers_waiting, 0);
        let exclusive = Map::new().with("qpid.exclusive-binding", true);
        publisher.note(&bench.publish(&direct, &["k", "k", "k"]));
        assert_eq!(bench.grant(&mut publisher, 100), 0, "{key:?}");
        bench.bind_with(&direct, "alone", "k", exclusive);
        assert!(!bench.woken().is_empty(), "{key:?}");
        assert!(bench.grant(&mut publisher, 100) > 0, "{key:?}");
        publisher.detach(bench.now).perform();
    }
}

/// Sends as long as there is credit, one message after the other; returns how many were rejected.
fn send_on_credit(
    bench: &mut Bench,
    (publisher, exchange): (&mut Publisher, &Exchange),
    mut credit: u32,
    batch: u32,
) -> (usize, u32) {
    let (mut rejected, mut sent) = (0, 0);
    while credit > 0 && sent < 1_000 {
        let count = credit.min(batch);
        let published = bench.publish_by(publisher, exchange, &vec!["k"; count as usize]);
        rejected += published.rejected.len();
        sent += count;
        credit -= count;
        if publisher.note(&published) || publisher.is_stopped() {
            credit = bench.grant(publisher, 100);
        }
    }
    (rejected, sent)
}

#[test]
fn a_sender_is_not_rejected_because_bindings_have_changed_since_it_got_its_credit() {
    for key in [None, Some("k")] {
        for batch in [1, 20] {
            for was_bound in [false, true] {
                let mut bench = Bench::new();
                let direct = bench.exchange(ExchangeKind::Direct);
                let small = |bench: &Bench, name| {
                    let max_count = Some(10);
                    let settings = QueueSettings { max_count, ..QueueSettings::default() };
                    let queue = bench.broker.create(name, settings).unwrap();
                    direct.bind(bench.now, &queue, "k", Map::new()).unwrap().1.perform();
                    queue
                };
                let mut publisher = match key {
                    Some(key) => bench.publisher_to(&direct, key),
                    None => bench.publisher(&direct),
                };
                if was_bound {
                    small(&bench, "first");
                    bench.bind(&direct, "roomy", "k");
                }
                publisher.note(&bench.publish(&direct, &["k"]));
                let credit = bench.grant(&mut publisher, 100);
                assert_eq!(credit, 100, "to none, or to two");
                let queue = match was_bound {
                    true => {
                        direct.unbind(&bench.queue("roomy"), "k").unwrap().perform();
                        bench.queue("first")
                    }
                    false => small(&bench, "first"),
                };
                let story = format!("{key:?}, {batch} at once, bound before: {was_bound}");
                let to = (&mut publisher, &*direct);
                let (rejected, sent) = send_on_credit(&mut bench, to, credit, batch);
                assert_eq!(rejected, 0, "{story}");
                assert!(sent <= 10 + batch, "{sent} {story}");
                assert_eq!(queue.statistics().producers_waiting, 1, "{story}");
                publisher.detach(bench.now).perform();
            }
        }
    }
}

#[test]
fn whoever_waits_for_a_queue_goes_on_when_another_one_is_bound_too() {
    for key in [None, Some("k")] {
        let mut bench = Bench::new();
        let direct = bench.exchange(ExchangeKind::Direct);
        let full = bench.stopping(&direct, "full", "k");
        let mut publisher = match key {
            Some(key) => bench.publisher_to(&direct, key),
            None => bench.publisher(&direct),
        };
        publisher.note(&bench.publish(&direct, &["k", "k", "k"]));
        assert_eq!(bench.grant(&mut publisher, 100), 0);
        bench.bind(&direct, "elsewhere", "other");
        let may_try = u32::from(key.is_none());
        assert_eq!(
            (bench.woken(), bench.grant(&mut publisher, 100)),
            (vec![7], may_try),
            "{key:?}"
        );
        if key.is_none() {
            // All the same it goes to the full queue, and to no other.
            let published = bench.publish_by(&publisher, &direct, &["k"]);
            assert!(published.rejected.is_empty(), "it could not know");
            publisher.note(&published);
            assert_eq!(bench.grant(&mut publisher, 100), 0);
        }
        let roomy = bench.bind(&direct, "roomy", "k");
        assert_eq!((bench.woken(), bench.grant(&mut publisher, 100)), (vec![7], 1), "{key:?}");
        publisher.note(&bench.publish_by(&publisher, &direct, &["k"]));
        assert_eq!(bench.grant(&mut publisher, 100), 100, "{key:?}");
        assert_eq!(roomy.statistics().msg_depth, 1);
        assert_eq!(full.statistics().producer_count, 0);
        publisher.detach(bench.now).perform();
        bench.bind(&direct, "later", "k");
        assert!(bench.woken().is_empty());
    }
}

#[test]
fn a_full_queue_of_the_alternate_exchange_holds_back_who_sends_there() {
    let mut bench = Bench::new();
    let others = bench.exchange_with("others", |settings| settings.kind = ExchangeKind::Fanout);
    let direct = bench.exchange_with("e", |settings| {
        settings.alternate_exchange = Some("others".into());
    });
    let full = bench.stopping(&others, "full", "");
    let mut publisher = bench.publisher_to(&direct, "nowhere");
    assert_eq!(bench.grant(&mut publisher, 100), 1);
    publisher.note(&bench.publish(&direct, &["nowhere", "nowhere", "nowhere"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    others.unbind(&full, "").unwrap().perform();
    assert_eq!((bench.woken(), bench.grant(&mut publisher, 100)), (vec![7], 1));
    publisher.detach(bench.now).perform();
}

#[test]
fn a_full_queue_does_not_hold_back_a_sender_whose_messages_go_to_others_too() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    bench.bind(&direct, "roomy", "roomy");
    let mut publisher = bench.publisher(&direct);
    for _ in 0..100 {
        for key in ["full", "roomy"] {
            publisher.note(&bench.publish(&direct, &[key]));
            if full.statistics().msg_depth > 1 {
                assert_eq!(bench.grant(&mut publisher, 100), 100);
            }
        }
    }
    for _ in 0..100 {
        publisher.note(&bench.publish(&direct, &["full"]));
    }
    assert_eq!(bench.grant(&mut publisher, 100), 0, "nothing has gone elsewhere for long");
    bench.purge(&full);
    publisher.note(&bench.publish(&direct, &["roomy"]));
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    assert_eq!(full.statistics().producer_count, 0, "it is not its producer any more");
    publisher.detach(bench.now).perform();
}

#[test]
fn a_sender_is_held_back_when_every_queue_that_it_sends_to_is_full() {
    let mut bench = Bench::new();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let a = bench.stopping(&fanout, "a", "");
    let b = bench.stopping(&fanout, "b", "");
    let mut publisher = bench.publisher(&fanout);
    publisher.note(&bench.publish(&fanout, &["1", "2", "3"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    bench.purge(&a);
    bench.purge(&b);
    assert_eq!(bench.woken(), [7, 7]);
    assert!(bench.grant(&mut publisher, 100) > 0);
    publisher.note(&bench.publish(&fanout, &["1"]));
    assert_eq!(bench.grant(&mut publisher, 100), 100);
    publisher.detach(bench.now).perform();
}

#[test]
fn a_sender_goes_on_when_any_of_the_full_queues_that_it_sends_to_has_room() {
    for purged in ["a", "b", "c"] {
        let mut bench = Bench::new();
        let fanout = bench.exchange(ExchangeKind::Fanout);
        for queue in ["a", "b", "c"] {
            bench.stopping(&fanout, queue, "");
        }
        let mut publisher = bench.publisher(&fanout);
        publisher.note(&bench.publish(&fanout, &["1", "2", "3"]));
        assert_eq!(bench.grant(&mut publisher, 100), 0);
        let queue = bench.queue(purged);
        bench.purge(&queue);
        assert_eq!(bench.woken(), [7], "{purged}");
        assert!(bench.grant(&mut publisher, 100) > 0, "{purged}");
        publisher.note(&bench.publish(&fanout, &["4"]));
        assert_eq!(bench.grant(&mut publisher, 100), 100, "{purged}");
        let waiting = ["a", "b", "c"].map(|name| bench.queue(name).statistics().producers_waiting);
        assert_eq!(waiting, [0; 3]);
        publisher.detach(bench.now).perform();
    }
}

#[test]
fn a_queue_that_holds_a_sender_back_is_not_in_use_because_of_it() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = bench.stopping(&direct, "full", "full");
    let mut publisher = bench.publisher(&direct);
    publisher.note(&bench.publish(&direct, &["full", "full", "full"]));
    assert_eq!(bench.grant(&mut publisher, 100), 0);
    assert_eq!(full.statistics().producer_count, 0);
    full.delete(DeleteIf { unused: true, empty: false }).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    publisher.detach(bench.now).perform();
}

#[test]
fn whoever_sends_to_an_exchange_that_is_deleted_is_told() {
    let bench = Bench::new();
    let exchange = bench.exchange(ExchangeKind::Direct);
    let publisher = bench.publisher(&exchange);
    let unused = ExchangeDeleteIf { unused: true };
    assert!(matches!(exchange.delete(unused), Err(ExchangeError::InUse { .. })));
    exchange.delete(ExchangeDeleteIf::default()).unwrap().perform();
    assert_eq!(bench.woken(), [7]);
    assert!(publisher.exchange().is_deleted());
    publisher.detach(bench.now).perform();
}
