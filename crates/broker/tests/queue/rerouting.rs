//! Messages that an operator sends on from a queue to an exchange.

use crate::bench::{QueueBench, message};
use mochila_broker::exchange::Unroutable;
use mochila_broker::{
    Exchange, ExchangeKind, ExchangeSettings, Moved, Pick, QueueSettings, Refusal, Selector,
};
use mochila_wire::Map;
use std::sync::Arc;

impl QueueBench {
    fn exchange(&self, kind: ExchangeKind) -> Arc<Exchange> {
        let settings = ExchangeSettings { kind, ..ExchangeSettings::default() };
        self.broker.create_exchange("e", settings).unwrap()
    }

    /// Another queue, bound to an exchange.
    fn bound(&self, exchange: &Exchange, name: &str, settings: QueueSettings) -> QueueBench {
        let bench = self.beside(name, settings);
        self.bind(exchange, &bench, name);
        bench
    }

    fn bind(&self, exchange: &Exchange, bench: &QueueBench, key: &str) {
        exchange.bind(self.now, &bench.queue, key, Map::new()).unwrap().1.perform();
    }

    /// Sends messages whose subjects are their bodies.
    fn send_subjects(&mut self, subjects: &[&str]) {
        let message = |subject: &&str| {
            let mut message = message(subject);
            message.properties_mut().subject = Some((*subject).to_owned());
            message
        };
        self.send_messages(subjects.iter().map(message).collect());
    }

    fn reroute(&self, exchange: &Exchange, pick: impl Into<Pick>) -> Moved {
        let (moved, wakeups) = self.queue.reroute(self.now, exchange, pick);
        wakeups.perform();
        moved
    }

    fn rest(&mut self) -> Vec<String> {
        let consumer = self.consumer();
        self.take(consumer, 10_000).texts
    }
}

#[test]
fn each_message_goes_to_the_queues_that_its_subject_is_bound_to() {
    let mut bench = QueueBench::default();
    let direct = bench.exchange(ExchangeKind::Direct);
    let mut a = bench.bound(&direct, "a", QueueSettings::default());
    let mut b = bench.bound(&direct, "b", QueueSettings::default());
    bench.bind(&direct, &b, "a");
    bench.send_subjects(&["a", "b", "a", "b"]);
    let some = Moved { messages: 3, refused: None };
    assert_eq!(bench.reroute(&direct, 3), some);
    assert_eq!(bench.statistics().reroutes, 3);
    assert_eq!(bench.broker.statistics().reroutes, 3);
    assert_eq!(a.rest(), ["a", "a"]);
    assert_eq!(b.rest(), ["a", "b", "a"]);
    assert_eq!(bench.rest(), ["b"]);
    let numbers = direct.statistics();
    assert_eq!((numbers.msg_receives, numbers.msg_routes, numbers.msg_drops), (3, 5, 0));
}

#[test]
fn what_no_queue_is_bound_for_stays_whatever_the_exchange_does_with_others() {
    for unroutable in [Unroutable::Discard, Unroutable::Release, Unroutable::Reject] {
        let mut bench = QueueBench::default();
        let settings =
            ExchangeSettings { kind: ExchangeKind::Direct, unroutable, ..<_>::default() };
        let direct = bench.broker.create_exchange("e", settings).unwrap();
        let mut a = bench.bound(&direct, "a", QueueSettings::default());
        bench.send_subjects(&["x", "a", "y", "a"]);
        let some = Moved { messages: 2, refused: Some(Refusal::NoRoute) };
        assert_eq!(bench.reroute(&direct, u64::MAX), some);
        assert_eq!(direct.statistics().msg_drops, 0, "nothing has been dropped");
        assert_eq!(bench.statistics().unacked_messages, 0);
        assert_eq!(bench.rest(), ["x", "y"]);
        assert_eq!(a.rest(), ["a", "a"]);
    }
}

#[test]
fn messages_without_a_way_do_not_stop_those_behind_them() {
    let mut bench = QueueBench::default();
    let direct = bench.exchange(ExchangeKind::Direct);
    let a = bench.bound(&direct, "a", QueueSettings::default());
    bench.send_subjects(&["x"; 600]);
    bench.send_subjects(&["a"]);
    let some = Moved { messages: 1, refused: Some(Refusal::NoRoute) };
    assert_eq!(bench.reroute(&direct, u64::MAX), some);
    assert_eq!(a.statistics().msg_depth, 1);
}

#[test]
fn what_every_queue_refuses_stays_in_its_place_and_the_rest_behind_it() {
    let mut bench = QueueBench::default();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let small = QueueSettings { max_count: Some(2), ..QueueSettings::default() };
    let mut small = bench.bound(&fanout, "small", small);
    bench.send(&["a", "b", "c", "d"]);
    let some = Moved { messages: 2, refused: Some(Refusal::Count) };
    assert_eq!(bench.reroute(&fanout, u64::MAX), some);
    assert_eq!(small.rest(), ["a", "b"]);
    assert_eq!(bench.rest(), ["c", "d"]);
}

#[test]
fn a_queue_that_is_bound_itself_gets_its_messages_once_and_the_walk_ends() {
    let mut bench = QueueBench::default();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    bench.bind(&fanout, &bench, "q");
    bench.send(&["a", "b", "c"]);
    let all = Moved { messages: 3, refused: None };
    assert_eq!(bench.reroute(&fanout, u64::MAX), all);
    assert_eq!(bench.rest(), ["a", "b", "c"]);
}

#[test]
fn a_selector_says_which_messages_are_sent_on() {
    let mut bench = QueueBench::default();
    let fanout = bench.exchange(ExchangeKind::Fanout);
    let mut a = bench.bound(&fanout, "a", QueueSettings::default());
    bench.send_subjects(&["x", "y", "x"]);
    let selector = Selector::new("amqp.subject = 'x'").unwrap();
    let pick = Pick { selector, ..Pick::from(u64::MAX) };
    assert_eq!(bench.reroute(&fanout, pick), Moved { messages: 2, refused: None });
    assert_eq!(a.rest(), ["x", "x"]);
    assert_eq!(bench.rest(), ["y"]);
}
