//! Queues that do not let every message in, and queues out of which nobody takes any.

use crate::bench::{QueueBench, message};
use crate::selecting::send_over;
use mochila_broker::{
    BatchBuilder, DeleteIf, Exchange, ExchangeKind, ExchangeSettings, LargeBody, MessageMeta, Mode,
    Moved, Outcome, QueueError, QueueSettings, Refusal, Routing, Taking,
};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message};
use std::sync::Arc;

fn filtering(text: &str) -> QueueSettings {
    QueueSettings { filter: Some(text.into()), ..QueueSettings::default() }
}

/// Messages of these colours, whose texts say which they are.
fn coloured(colours: &[&str]) -> Vec<Message> {
    let coloured = |(number, colour): (usize, &&str)| {
        let mut message = message(&format!("{colour} {number}"));
        message.set_application_property("colour", *colour);
        message
    };
    colours.iter().enumerate().map(coloured).collect()
}

/// A queue, and another one beside it that lets only red messages in.
fn beside_red() -> (QueueBench, QueueBench) {
    let bench = QueueBench::default();
    let red = bench.beside("red", filtering("colour = 'red'"));
    (bench, red)
}

/// An exchange that sends everything to all of its queues.
fn fanout(bench: &QueueBench, queues: &[&QueueBench]) -> Arc<Exchange> {
    let (kind, keeps_last) = (ExchangeKind::Fanout, true);
    let settings = ExchangeSettings { kind, keeps_last, ..ExchangeSettings::default() };
    let fanout = bench.broker.create_exchange("fanout", settings).unwrap();
    queues.iter().for_each(|queue| bind(&fanout, queue));
    fanout
}

fn bind(exchange: &Exchange, bench: &QueueBench) {
    exchange.bind(bench.now, &bench.queue, "", Map::new()).unwrap().1.perform();
}

/// Moves everything; wakes whoever has to be woken.
fn move_all(from: &QueueBench, to: &QueueBench) -> Moved {
    let (moved, wakeups) = from.queue.move_to(from.now, &to.queue, u64::MAX).unwrap();
    wakeups.perform();
    moved
}

/// All that is left, in order.
fn rest(bench: &mut QueueBench) -> Vec<String> {
    let consumer = bench.consumer();
    bench.take(consumer, 10_000).texts
}

#[test]
fn what_a_filter_does_not_match_is_accepted_and_does_not_enter() {
    let mut bench = QueueBench::new(QueueSettings {
        max_count: Some(2),
        flow_stop_count: Some(0),
        ..filtering("colour = 'red'")
    });
    let enqueued = bench.send_messages(coloured(&["blue", "red", "", "red", "blue", "red"]));
    let rejected: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!((enqueued.accepted, rejected), (2, vec![(5, Refusal::Count)]));
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_filter), (2, 3));
    let consumer = bench.consumer();
    let got = bench.take(consumer, 10);
    assert_eq!(got.texts, ["red 1", "red 3"]);
    bench.accept(consumer, &got.positions());
    assert_eq!(bench.statistics().byte_depth, 0);
}

#[test]
fn what_a_filter_keeps_out_stays_where_it_is_when_an_operator_moves_messages() {
    let (mut bench, mut red) = beside_red();
    bench.send_messages(coloured(&["blue", "red", "blue", "red"]));
    let some = Moved { messages: 2, refused: Some(Refusal::KeptOut) };
    assert_eq!(move_all(&bench, &red), some);
    assert_eq!(red.statistics().discards_filter, 0, "nothing has been discarded");
    assert_eq!((bench.statistics().unacked_messages, bench.statistics().releases), (0, 0));
    assert_eq!(rest(&mut bench), ["blue 0", "blue 2"]);
    assert_eq!(rest(&mut red), ["red 1", "red 3"]);
}

#[test]
fn what_a_filter_keeps_out_neither_counts_as_moved_nor_stops_what_is_behind_it() {
    let (mut bench, mut red) = beside_red();
    bench.send_messages(coloured(&["blue"; 1_000]));
    bench.send_messages(coloured(&["red", "blue", "red", "red"]));
    let (moved, wakeups) = bench.queue.move_to(bench.now, &red.queue, 2).unwrap();
    wakeups.perform();
    assert_eq!(moved, Moved { messages: 2, refused: Some(Refusal::KeptOut) });
    assert_eq!(rest(&mut red), ["red 0", "red 2"]);
    assert_eq!(bench.statistics().msg_depth, 1_002);
}

#[test]
fn a_move_says_what_has_ended_it_and_not_what_it_has_passed_by() {
    let mut bench = QueueBench::default();
    let settings = QueueSettings { max_count: Some(1), ..filtering("colour = 'red'") };
    let mut red = bench.beside("red", settings);
    bench.send_messages(coloured(&["blue", "red", "blue", "red"]));
    let one = Moved { messages: 1, refused: Some(Refusal::Count) };
    assert_eq!(move_all(&bench, &red), one);
    assert_eq!(red.statistics().discards_overflow, 0, "nothing has been discarded");
    assert_eq!(rest(&mut bench), ["blue 0", "blue 2", "red 3"]);
    assert_eq!(rest(&mut red), ["red 1"]);
}

#[test]
fn what_every_queue_keeps_out_stays_where_it_is_when_an_operator_sends_messages_on() {
    let (mut bench, mut red) = beside_red();
    let mut green = bench.beside("green", filtering("colour = 'green'"));
    let fanout = fanout(&bench, &[&red, &green]);
    bench.send_messages(coloured(&["red", "blue", "green", "blue"]));
    let (moved, wakeups) = bench.queue.reroute(bench.now, &fanout, u64::MAX);
    wakeups.perform();
    assert_eq!(moved, Moved { messages: 2, refused: Some(Refusal::KeptOut) });
    assert_eq!(fanout.statistics().msg_routes, 2);
    assert_eq!(rest(&mut bench), ["blue 1", "blue 3"]);
    assert_eq!((rest(&mut red), rest(&mut green)), (vec!["red 0".into()], vec!["green 2".into()]));
    bench.queue.purge(bench.now, u64::MAX).1.perform();
    let late = bench.beside("late", QueueSettings::default());
    bind(&fanout, &late);
    assert_eq!(late.statistics().msg_depth, 1, "the last message is one that somebody has taken");
}

#[test]
fn messages_that_an_operator_moves_do_not_enter_a_queue_that_wants_none_of_their_connection() {
    let mut bench = QueueBench::default();
    let settings = QueueSettings { no_local: true, ..QueueSettings::default() };
    let mut apart = bench.beside("apart", settings);
    apart.subscribe(|options| (options.owner, options.exclusive) = (7, true));
    send_over(&bench, 7, &message("own"));
    send_over(&bench, 8, &message("another's"));
    let some = Moved { messages: 1, refused: Some(Refusal::KeptOut) };
    assert_eq!(move_all(&bench, &apart), some);
    assert_eq!(rest(&mut bench), ["own"]);
}

/// A way by which messages come to the queue beside.
type Way = fn(&mut QueueBench, &mut QueueBench, Vec<Message>);

#[test]
fn whatever_the_way_by_which_messages_come_they_meet_the_filter() {
    let ways: [(&str, Way); 8] = [
        ("they are sent", |_, red, messages| drop(red.send_messages(messages))),
        ("the queue has changed places", |bench, red, messages| {
            bench.broker.redirect(&bench.queue, &red.queue).unwrap().perform();
            bench.send_messages(messages);
        }),
        ("an exchange", |bench, red, messages| {
            let (now, fanout) = (bench.now, fanout(bench, &[red]));
            let publish = |batch: &mut _| fanout.publish(now, batch, None, &mut Routing::new());
            bench.batch(messages, publish).1.perform();
        }),
        ("a transaction", |bench, red, messages| {
            let (now, mut transaction) = (bench.now, bench.broker.begin());
            let enqueue = |batch: &mut _| transaction.enqueue(now, &red.queue, batch, true);
            bench.batch(messages, enqueue).1.perform();
            transaction.commit(now).unwrap().perform();
        }),
        ("an exchange in a transaction", |bench, red, messages| {
            let (now, fanout) = (bench.now, fanout(bench, &[red]));
            let (mut transaction, mut routing) = (bench.broker.begin(), Routing::new());
            let publish =
                |batch: &mut _| fanout.publish_in(now, &mut transaction, batch, None, &mut routing);
            bench.batch(messages, publish).1.perform();
            transaction.commit(now).unwrap().perform();
        }),
        ("a consumer rejects them", |bench, red, messages| {
            bury_at(bench, red);
            bench.send_messages(messages);
            let consumer = bench.consumer();
            let positions = bench.take(consumer, 9).positions();
            bench.settle(consumer, &positions, Outcome::Reject);
        }),
        ("their queue is deleted", |bench, red, messages| {
            bury_at(bench, red);
            bench.send_messages(messages);
            bench.queue.delete(DeleteIf::default()).unwrap().perform();
        }),
        ("they are large", |_, red, messages| {
            messages.iter().for_each(|message| send_large(red, message));
        }),
    ];
    for (way, come) in ways {
        let (mut bench, mut red) = beside_red();
        come(&mut bench, &mut red, coloured(&["blue", "red", "blue"]));
        let numbers = red.statistics();
        assert_eq!((numbers.msg_depth, numbers.discards_filter), (1, 2), "{way}");
    }
}

#[test]
fn the_last_message_of_an_exchange_meets_the_filter_of_a_queue_that_is_bound_later() {
    let (mut bench, red) = beside_red();
    let (now, fanout) = (bench.now, fanout(&bench, &[]));
    let messages = coloured(&["red", "blue"]);
    bench
        .batch(messages, |batch| fanout.publish(now, batch, None, &mut Routing::new()))
        .1
        .perform();
    bind(&fanout, &red);
    assert_eq!((red.statistics().msg_depth, red.statistics().discards_filter), (0, 1));
}

/// What dies in the first queue goes to the second.
fn bury_at(bench: &QueueBench, red: &QueueBench) {
    fanout(bench, &[red]);
    let alternate_exchange = Some("fanout".into());
    let settings = QueueSettings { alternate_exchange, ..QueueSettings::default() };
    bench.queue.set_settings(bench.now, settings).unwrap().perform();
}

/// Sends a message of which more is in a file.
fn send_large(bench: &QueueBench, message: &Message) {
    struct OnDisk;
    impl LargeBody for OnDisk {
        fn len(&self) -> u64 {
            1 << 20
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<usize> {
            Ok(0)
        }
    }
    let bytes = message.to_bytes();
    let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
    let mut builder = BatchBuilder::new();
    builder.push_large(bytes.clone(), &sections, MessageMeta::default(), Arc::new(OnDisk));
    let batch = builder.finish(&[], bench.broker.budget()).unwrap();
    bench.queue.enqueue(bench.now, batch).1.perform();
}

#[test]
fn a_filter_may_come_and_go_while_the_queue_is_there() {
    let mut bench = QueueBench::default();
    let steps =
        [(filtering("FALSE"), "out"), (QueueSettings::default(), "in"), (filtering("TRUE"), "too")];
    for (settings, text) in steps {
        let wakeups = bench.queue.set_settings(bench.now, settings).unwrap();
        bench.perform(wakeups);
        bench.send(&[text]);
    }
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["in", "too"]);
    let error = bench.queue.set_settings(bench.now, filtering("=")).unwrap_err();
    assert!(matches!(error, QueueError::Settings(_)), "{error}");
}

#[test]
fn messages_of_its_own_connection_do_not_enter_a_queue_that_wants_none() {
    let mut bench = QueueBench::new(QueueSettings { no_local: true, ..QueueSettings::default() });
    send_over(&bench, 7, &message("before it belonged to anybody"));
    let consumer = bench.subscribe(|options| (options.owner, options.exclusive) = (7, true));
    send_over(&bench, 7, &message("own"));
    send_over(&bench, 8, &message("another's"));
    let got = bench.take(consumer, 10);
    assert_eq!(got.texts, ["before it belonged to anybody", "another's"]);
    assert_eq!(bench.statistics().discards_filter, 1);
}

#[test]
fn everybody_is_a_browser_where_messages_are_only_shown() {
    let mut bench =
        QueueBench::new(QueueSettings { browse_only: true, ..QueueSettings::default() });
    bench.send(&["a", "b"]);
    let (one, other) = (bench.consumer(), bench.consumer());
    for consumer in [one, other] {
        let got = bench.take(consumer, 10);
        assert_eq!((got.texts, got.taking), (vec!["a".into(), "b".into()], Taking::Waiting));
    }
    assert_eq!(bench.queue.consumers()[0].mode, Mode::Browse);
    assert_eq!((bench.statistics().msg_depth, bench.statistics().acquires), (2, 0));
}

#[test]
fn an_ordinary_queue_without_messages_becomes_what_somebody_asks_for_and_then_stays_so() {
    let mut bench = QueueBench::default();
    let grouped = QueueSettings { shared_groups: true, ..QueueSettings::default() };
    let urgent = QueueSettings { priorities: Some(5), ..QueueSettings::default() };
    bench.send(&["a"]);
    bench.queue.arrange(bench.now, &grouped).unwrap().perform();
    assert!(!bench.queue.settings().shared_groups, "it has messages");
    bench.queue.purge(bench.now, u64::MAX).1.perform();
    bench.queue.arrange(bench.now, &grouped).unwrap().perform();
    bench.queue.arrange(bench.now, &urgent).unwrap().perform();
    let settings = bench.queue.settings();
    assert_eq!((settings.shared_groups, settings.priorities), (true, None));
    bench.send(&["a", "b"]);
    let (one, other) = (bench.consumer(), bench.consumer());
    assert_eq!(bench.take(one, 1).texts, ["a"]);
    assert_eq!(bench.take(other, 1).texts, [""; 0], "they are of one group");
}
