//! Queues that do not let every message in, and queues out of which nobody takes any.

use crate::bench::{QueueBench, message};
use crate::selecting::send_over;
use mochila_broker::{Mode, QueueError, QueueSettings, Refusal, Taking};

fn filtering(text: &str) -> QueueSettings {
    QueueSettings { filter: Some(text.into()), ..QueueSettings::default() }
}

#[test]
fn what_a_filter_does_not_match_is_accepted_and_does_not_enter() {
    let mut bench = QueueBench::new(QueueSettings {
        max_count: Some(2),
        flow_stop_count: Some(0),
        ..filtering("colour = 'red'")
    });
    let coloured = |colour: &str, text: &str| {
        let mut message = message(text);
        message.set_application_property("colour", colour);
        message
    };
    let enqueued = bench.send_messages(vec![
        coloured("blue", "a"),
        coloured("red", "b"),
        message("c"),
        coloured("red", "d"),
        coloured("blue", "e"),
        coloured("red", "f"),
    ]);
    let rejected: Vec<_> = enqueued.rejected.iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!((enqueued.accepted, rejected), (2, vec![(5, Refusal::Count)]));
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.discards_filter), (2, 3));
    let consumer = bench.consumer();
    let got = bench.take(consumer, 10);
    assert_eq!(got.texts, ["b", "d"]);
    bench.accept(consumer, &got.positions());
    assert_eq!(bench.statistics().byte_depth, 0);
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
