//! What messages cost, and that it comes back.

use crate::bench::{QueueBench, as_sent, message};
use mochila_broker::{
    BatchBuilder, BrokerSettings, Content, DeleteIf, EventKind, LargeBody, MessageMeta,
    QueueSettings, TakeLimit, Taken, Want,
};
use mochila_wire::{Now, Sections};
use std::sync::Arc;

fn tight(limit: u64) -> BrokerSettings {
    BrokerSettings { memory_limit_bytes: limit, ..BrokerSettings::default() }
}

#[test]
fn producers_wait_for_the_nodes_memory_and_go_on_in_order() {
    let mut bench = QueueBench::with(tight(100_000), QueueSettings::default());
    let producers = [bench.producer(), bench.producer()];
    let consumer = bench.consumer();
    assert_eq!(bench.grant(producers[0], 5), 1, "there is no room for five large ones");
    bench.send(&[&"x".repeat(90_000)]);
    assert_eq!(producers.map(|producer| bench.grant(producer, 5)), [0, 0]);
    assert_eq!(bench.grant(producers[0], 5), 0, "it keeps its place");
    let positions = bench.take(consumer, 1).positions();
    bench.accept(consumer, &positions);
    assert_eq!(bench.woken(), producers.map(|producer| producer.key));
    assert_eq!(producers.map(|producer| bench.grant(producer, 5)), [1, 1]);
}

#[test]
fn credit_is_for_no_more_than_the_nodes_memory_has_room_for() {
    let mut bench = QueueBench::with(tight(1_000_000), QueueSettings::default());
    let producers = [bench.producer(), bench.producer()];
    bench.send(&[&"x".repeat(10_000)]);
    let credit = producers.map(|producer| bench.grant(producer, 1_000));
    assert!(credit.iter().all(|credit| (35..45).contains(credit)), "{credit:?}");
}

#[test]
fn memory_that_another_queue_gives_back_lets_producers_go_on() {
    let mut bench = QueueBench::with(tight(100_000), QueueSettings::default());
    let producer = bench.producer();
    bench.send(&[&"x".repeat(93_000)]);
    let other = bench.broker.open("other").unwrap();
    let (waker, key) = bench.waker();
    let id = other.attach_producer(bench.now, waker).unwrap();
    // So much that nobody gets anything.
    let budget = Arc::clone(bench.broker.budget());
    let _rest = budget.reserve(100_000 - budget.used()).unwrap();
    assert_eq!(other.grant(bench.now, id, &Want::credit(5)).0, 0);
    assert_eq!(bench.grant(producer, 5), 0);
    bench.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.pass(0);
    assert!(bench.woken().contains(&key));
    assert_eq!(other.grant(bench.now, id, &Want::credit(5)).0, 1);
}

/// Ten messages, of which more than four stop producers, who go on below three; two large ones are
/// there.
fn small_and_tight() -> QueueBench {
    let settings = QueueSettings {
        max_count: Some(10),
        flow_stop_count: Some(4),
        flow_resume_count: Some(3),
        ..QueueSettings::default()
    };
    let mut bench = QueueBench::with(tight(100_000), settings);
    bench.send(&[&"x".repeat(5_000), &"x".repeat(5_000)]);
    bench
}

#[test]
fn whoever_has_waited_for_memory_and_then_for_room_asks_for_memory_again() {
    let mut bench = small_and_tight();
    let (producer, consumer) = (bench.producer(), bench.consumer());
    let budget = Arc::clone(bench.broker.budget());
    let all = || budget.reserve(100_000 - budget.used()).unwrap();
    let rest = all();
    assert_eq!(bench.grant(producer, 5), 0);
    drop(rest);
    bench.pass(0);
    assert_eq!(bench.woken(), [producer.key]);
    bench.send(&["a", "b", "c"]);
    assert_eq!(bench.grant(producer, 5), 0, "others have filled the queue");
    let positions = bench.take(consumer, 5).positions();
    let rest = all();
    bench.accept(consumer, &positions[2..]);
    assert_eq!(bench.woken(), [producer.key], "it stands in no other line");
    assert_eq!(bench.grant(producer, 5), 0);
    drop(rest);
    bench.pass(0);
    assert_eq!(bench.woken(), [producer.key]);
    assert!(bench.grant(producer, 5) > 0);
}

#[test]
fn when_somebody_goes_who_waited_for_memory_the_next_one_asks_for_it() {
    for is_gone in [true, false] {
        let mut bench = small_and_tight();
        let (producers, consumer) = ([bench.producer(), bench.producer()], bench.consumer());
        bench.send(&["a", "b", "c"]);
        assert_eq!(producers.map(|producer| bench.grant(producer, 5)), [0, 0]);
        let positions = bench.take(consumer, 5).positions();
        let budget = Arc::clone(bench.broker.budget());
        let rest = budget.reserve(100_000 - budget.used()).unwrap();
        bench.accept(consumer, &positions[2..]);
        assert_eq!(bench.woken(), [producers[0].key]);
        assert_eq!(bench.grant(producers[0], 5), 0);
        match is_gone {
            true => bench.detach(producers[0]),
            false => assert_eq!(bench.grant(producers[0], 0), 0),
        }
        assert_eq!(bench.woken(), [producers[1].key], "it had waited for room");
        assert_eq!(bench.grant(producers[1], 5), 0);
        drop(rest);
        bench.pass(0);
        assert_eq!(bench.woken(), [producers[1].key]);
    }
}

#[test]
fn whoever_waits_for_memory_goes_on_whatever_somebody_does_when_it_has_come_back() {
    type Occasion = (&'static str, fn(&mut QueueBench));
    let occasions: [Occasion; 7] = [
        ("a consumer comes", |other| {
            other.consumer();
        }),
        ("a consumer is refused", |other| {
            assert!(other.try_subscribe(|options| options.exclusive = true).is_err());
        }),
        ("a producer comes", |other| {
            other.producer();
        }),
        ("a guest comes", |other| {
            let (waker, _) = other.waker();
            other.queue.attach_guest(waker).unwrap();
        }),
        ("it is not deleted", |other| {
            let condition = DeleteIf { unused: true, ..DeleteIf::default() };
            assert!(other.queue.delete(condition).is_err());
        }),
        ("it is not changed", |other| {
            let settings = QueueSettings { priorities: Some(5), ..QueueSettings::default() };
            assert!(other.queue.set_settings(other.now, settings).is_err());
        }),
        ("somebody asks for groups that it has lost", |other| {
            let consumer = other.consumer();
            assert_eq!(other.queue.take_lost_groups(consumer.id), None);
        }),
    ];
    for (what, happens) in occasions {
        let mut bench = QueueBench::with(tight(100_000), QueueSettings::default());
        let producer = bench.producer();
        let mut other = bench.beside("other", QueueSettings::default());
        other.consumer();
        other.send(&["so that it is not empty"]);
        let budget = Arc::clone(bench.broker.budget());
        let rest = budget.reserve(100_000 - budget.used()).unwrap();
        assert_eq!(bench.grant(producer, 5), 0, "{what}");
        drop(rest);
        happens(&mut other);
        bench.pass(0);
        assert_eq!(bench.woken(), [producer.key], "{what}");
    }
}

#[test]
fn a_queue_counts_as_stopped_before_a_sender_comes_that_would_get_nothing() {
    let bench = QueueBench::with(tight(100_000), QueueSettings::default());
    assert_eq!(bench.statistics().memory_stopped, 0);
    let budget = Arc::clone(bench.broker.budget());
    let rest = budget.reserve(100_000 - budget.used()).unwrap();
    let statistics = bench.statistics();
    assert_eq!((statistics.flow_stopped, statistics.memory_stopped), (1, 1));
    drop(rest);
    assert_eq!(bench.statistics().memory_stopped, 0);
}

#[test]
fn operators_hear_that_memory_is_short_also_while_nothing_happens() {
    let bench = QueueBench::with(tight(100_000), QueueSettings::default());
    bench.broker.tell_events(bench.now).perform();
    let budget = Arc::clone(bench.broker.budget());
    let rest = budget.reserve(100_000 - budget.used()).unwrap();
    assert_eq!(bench.broker.next_timeout_ms(), Some(0));
    bench.broker.handle_timeout(bench.now).perform();
    let last = || bench.broker.feed().recent().last().unwrap().event.kind();
    assert_eq!(last(), EventKind::MemoryShort);
    drop(rest);
    let due_ms = bench.broker.next_timeout_ms().unwrap();
    assert!(due_ms > bench.now.mono_ms, "it is not over yet");
    bench.broker.handle_timeout(Now::new(due_ms, 0)).perform();
    assert_eq!(last(), EventKind::MemoryFree);
    assert_eq!(bench.broker.next_timeout_ms(), None);
}

#[test]
fn a_queue_that_nobody_reads_does_not_hold_back_the_producers_of_others() {
    let mut bench = QueueBench::with(tight(1_000_000), QueueSettings::default());
    let producer = bench.producer();
    let mut sent = 0;
    while bench.grant(producer, 1) > 0 {
        bench.send(&[&"x".repeat(1_000)]);
        sent += 1;
    }
    assert!((700..900).contains(&sent), "{sent}");
    let statistics = bench.statistics();
    assert_eq!((statistics.flow_stopped, statistics.memory_stopped), (1, 1));
    let others: Vec<_> =
        (0..3).map(|n| bench.broker.open(&format!("other-{n}")).unwrap()).collect();
    for other in others {
        let (waker, _) = bench.waker();
        let id = other.attach_producer(bench.now, waker).unwrap();
        assert!(other.grant(bench.now, id, &Want::credit(1_000)).0 > 0, "{}", other.name());
        assert_eq!(other.statistics().memory_stopped, 0);
    }
    assert_eq!(bench.woken(), [], "the full queue still waits");
}

#[test]
fn producers_go_on_when_their_own_queue_has_been_read_although_others_have_the_memory() {
    let mut bench = QueueBench::with(tight(1_000_000), QueueSettings::default());
    let (producer, consumer) = (bench.producer(), bench.consumer());
    let fill = |bench: &mut QueueBench| {
        while bench.grant(producer, 1) > 0 {
            bench.send(&[&"x".repeat(1_000)]);
        }
    };
    fill(&mut bench);
    bench.woken();
    // Whatever this queue gives back, somebody else takes.
    let budget = Arc::clone(bench.broker.budget());
    let mut taken = budget.reserve(0).unwrap();
    let before = budget.used();
    while bench.woken().is_empty() {
        let positions = bench.take(consumer, 1).positions();
        assert_eq!(positions.len(), 1, "it is empty, and the producer waits for ever");
        bench.accept(consumer, &positions);
        taken.merge(budget.reserve(before.saturating_sub(budget.used())).unwrap());
    }
    assert!(bench.statistics().msg_depth > 300);
}

#[test]
fn a_batch_that_the_node_has_no_memory_for_is_refused_whole() {
    let bench = QueueBench::with(tight(10_000), QueueSettings::default());
    let used = bench.broker.budget().used();
    let mut builder = BatchBuilder::new();
    builder.push_owned(vec![0; 20_000], &Sections::default(), MessageMeta::default());
    let over = builder.finish(&[], bench.broker.budget()).unwrap_err();
    assert_eq!(over.limit, 10_000);
    assert_eq!(bench.broker.budget().used(), used);
}

#[test]
fn all_memory_comes_back_when_a_queue_has_been_drained() {
    let mut bench = QueueBench::default();
    let empty = bench.broker.budget().used();
    let consumer = bench.consumer();
    for n in 0..50 {
        bench.send_numbers(n * 100..(n + 1) * 100);
    }
    let got = bench.take(consumer, 5_000);
    assert_eq!(got.texts.len(), 5_000);
    bench.accept(consumer, &got.positions());
    let statistics = bench.statistics();
    assert_eq!((statistics.msg_depth, statistics.byte_depth, statistics.memory_bytes), (0, 0, 0));
    assert_eq!(bench.broker.budget().used(), empty);
}

#[test]
fn messages_that_stay_behind_do_not_hold_on_to_those_that_came_with_them() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let texts: Vec<String> = (0..2_000).map(|n| format!("{n:0>1000}")).collect();
    for chunk in texts.chunks(100) {
        bench.send(&chunk.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let got = bench.take(consumer, 2_000);
    // One message in fifty stays.
    let (stay, go): (Vec<u64>, Vec<u64>) = got.positions().iter().partition(|p| *p % 50 == 7);
    bench.accept(consumer, &go);
    for _ in 0..100 {
        bench.idle(consumer);
    }
    let memory = bench.statistics().memory_bytes;
    assert!(memory < 330_000, "{} messages take {memory} bytes", stay.len());
    bench.release(consumer, &stay);
    let expected: Vec<_> = stay.iter().map(|p| texts[*p as usize].clone()).collect();
    assert_eq!(bench.take(consumer, 2_000).texts, expected);
}

#[test]
fn a_message_that_is_held_for_ever_costs_the_others_nothing() {
    let mut bench = QueueBench::default();
    let (stuck, consumer) = (bench.consumer(), bench.consumer());
    bench.send(&["stuck"]);
    bench.take(stuck, 1);
    bench.idle(stuck);
    let before = bench.statistics().memory_bytes;
    for n in 0..200 {
        bench.send_numbers(n * 100..(n + 1) * 100);
        let positions = bench.take(consumer, 100).positions();
        bench.accept(consumer, &positions);
    }
    assert_eq!(bench.statistics().memory_bytes, before);
    bench.unsubscribe(stuck);
    assert_eq!(bench.take(consumer, 10).texts, ["stuck"]);
}

#[test]
fn sent_messages_keep_their_bytes_after_the_queue_has_let_go_of_them() {
    let mut bench = QueueBench::default();
    let consumer = bench.subscribe(|options| options.settled = true);
    bench.send(&["a"]);
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 1, bytes: usize::MAX };
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    bench.broker.delete("q", DeleteIf::default()).unwrap().perform();
    let delivery = taken.deliveries()[0];
    assert_eq!(as_sent(&taken, &delivery), message("a"));
}

struct OnDisk(Vec<u8>);

impl LargeBody for OnDisk {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

#[test]
fn a_large_message_counts_with_its_whole_size_but_only_its_head_is_in_memory() {
    let mut bench = QueueBench::default();
    let consumer = bench.consumer();
    let used = bench.broker.budget().used();
    let body: Arc<dyn LargeBody> = Arc::new(OnDisk(vec![7; 5_000_000]));
    let mut builder = BatchBuilder::new();
    let meta = MessageMeta::default();
    builder.push_large(vec![7; 100], &Sections::default(), meta, body);
    let batch = builder.finish(&[], bench.broker.budget()).unwrap();
    bench.queue.enqueue(bench.now, batch).1.perform();
    assert_eq!(bench.statistics().byte_depth, 5_000_000);
    assert!(bench.broker.budget().used() - used < 1_000);

    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 1, bytes: usize::MAX };
    bench.queue.take(bench.now, consumer.id, limit, &mut taken).1.perform();
    let delivery = taken.deliveries()[0];
    let Content::Large { head, body } = taken.content(&delivery) else { panic!("not large") };
    assert_eq!((head.len(), body.len()), (100, 5_000_000));
    bench.accept(consumer, &[delivery.position]);
    assert_eq!(bench.statistics().byte_depth, 0);
}
