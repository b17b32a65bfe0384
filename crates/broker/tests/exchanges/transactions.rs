//! What becomes of a transaction through exchanges when queues go before it is committed.

use crate::bench::Bench;
use mochila_broker::exchange::Unroutable;
use mochila_broker::{ExchangeKind, Fault, QueueSettings, Transaction};
use mochila_wire::Map;

fn commit(bench: &Bench, transaction: Transaction) -> Result<(), Fault> {
    match transaction.commit(bench.now) {
        Ok(wakeups) => {
            wakeups.perform();
            Ok(())
        }
        Err(failed) => {
            let fault = failed.fault().cloned();
            failed.rollback(bench.now).perform();
            Err(fault.unwrap())
        }
    }
}

fn delete(bench: &Bench, queue: &str) {
    bench.queue(queue).delete(<_>::default()).unwrap().perform();
}

#[test]
fn a_queue_that_has_gone_is_not_missed_where_another_has_the_message() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let stays = bench.bind(&direct, "stays", "both");
    bench.bind(&direct, "goes", "both");
    bench.bind(&direct, "goes too", "both");
    let mut transaction = bench.broker.begin();
    bench.publish_in(&mut transaction, &direct, &["nobody", "both"]);
    bench.publish_in(&mut transaction, &direct, &["both"]);
    delete(&bench, "goes");
    delete(&bench, "goes too");
    assert_eq!(commit(&bench, transaction), Ok(()));
    assert_eq!(bench.texts(&stays), ["both", "both"]);
}

#[test]
fn what_no_queue_is_left_for_goes_the_way_of_what_no_queue_is_bound_for() {
    for (unroutable, is_committed) in
        [(Unroutable::Discard, true), (Unroutable::Release, false), (Unroutable::Reject, false)]
    {
        let mut bench = Bench::new();
        let direct = bench.exchange_with("e", |settings| {
            (settings.kind, settings.unroutable) = (ExchangeKind::Direct, unroutable);
        });
        let stays = bench.bind(&direct, "stays", "a");
        bench.bind(&direct, "goes", "b");
        bench.bind(&direct, "goes", "a");
        let mut transaction = bench.broker.begin();
        bench.publish_in(&mut transaction, &direct, &["a", "b", "a"]);
        delete(&bench, "goes");
        let committed = commit(&bench, transaction);
        let fault = Fault::QueueDeleted { name: "goes".into() };
        assert_eq!(committed, if is_committed { Ok(()) } else { Err(fault) }, "{unroutable:?}");
        assert_eq!(bench.texts(&stays).len(), if is_committed { 2 } else { 0 });
    }
}

#[test]
fn what_its_alternate_exchange_might_take_is_not_dropped_with_the_last_queue() {
    let mut bench = Bench::new();
    let direct = bench.exchange_with("e", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.alternate_exchange = Some("amq.fanout".into());
    });
    bench.bind(&direct, "goes", "a");
    let mut transaction = bench.broker.begin();
    bench.publish_in(&mut transaction, &direct, &["a"]);
    delete(&bench, "goes");
    assert!(commit(&bench, transaction).is_err());
}

#[test]
fn a_message_that_one_queue_had_no_room_for_is_not_lost_with_the_other() {
    for (texts, is_committed) in [(vec!["1"], true), (vec!["1", "2"], false)] {
        let mut bench = Bench::new();
        let fanout = bench.exchange(ExchangeKind::Fanout);
        let small = QueueSettings { max_count: Some(1), ..QueueSettings::default() };
        let small = bench.broker.create("small", small).unwrap();
        fanout.bind(bench.now, &small, "", Map::new()).unwrap().1.perform();
        bench.bind(&fanout, "goes", "");
        let mut transaction = bench.broker.begin();
        bench.publish_in(&mut transaction, &fanout, &texts);
        delete(&bench, "goes");
        assert_eq!(commit(&bench, transaction).is_ok(), is_committed, "{texts:?}");
        assert_eq!(bench.texts(&small).len(), usize::from(is_committed));
    }
}

#[test]
fn what_the_filter_of_a_queue_keeps_out_is_not_there() {
    let mut bench = Bench::new();
    let fanout = bench.exchange_with("e", |settings| {
        (settings.kind, settings.unroutable) = (ExchangeKind::Fanout, Unroutable::Reject);
    });
    let filter = Some("amqp.subject = 'red'".into());
    let red = QueueSettings { filter, ..QueueSettings::default() };
    let red = bench.broker.create("red", red).unwrap();
    fanout.bind(bench.now, &red, "", Map::new()).unwrap().1.perform();
    bench.bind(&fanout, "goes", "");
    for (subjects, is_committed) in [(["red", "red"], true), (["blue", "red"], false)] {
        let mut transaction = bench.broker.begin();
        bench.publish_in(&mut transaction, &fanout, &subjects);
        delete(&bench, "goes");
        assert_eq!(commit(&bench, transaction).is_ok(), is_committed, "{subjects:?}");
        bench.bind(&fanout, "goes", "");
    }
    assert_eq!(bench.texts(&red), ["red", "red"]);
}

#[test]
fn nothing_is_kept_of_what_no_queue_gets_however_much_it_is() {
    let mut bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let full = QueueSettings { max_count: Some(1), ..QueueSettings::default() };
    let full = bench.broker.create("full", full).unwrap();
    direct.bind(bench.now, &full, "full", Map::new()).unwrap().1.perform();
    bench.publish(&direct, &["full"]);
    let mut transaction = bench.broker.begin();
    let size = |transaction: &Transaction| format!("{transaction:?}").len();
    bench.publish_in(&mut transaction, &direct, &["nobody"]);
    let before = size(&transaction);
    (0..100).for_each(|_| bench.publish_in(&mut transaction, &direct, &["nobody"]));
    assert_eq!(size(&transaction), before);
    bench.publish_in(&mut transaction, &direct, &["full"]);
    let doomed = size(&transaction);
    (0..100).for_each(|_| bench.publish_in(&mut transaction, &direct, &["full"]));
    assert_eq!(size(&transaction), doomed);
    transaction.rollback(bench.now).perform();
}
