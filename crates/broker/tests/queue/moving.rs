//! Messages that an operator removes, or moves to another queue.

use crate::bench::{QueueBench, message};
use mochila_broker::{
    BatchBuilder, DeleteIf, LargeBody, MessageMeta, Moved, Outcome, Pick, QueueSettings, Refusal,
    Selector, Taking,
};
use mochila_wire::{Map, Message, Sections, Timestamp, Value};
use std::sync::Arc;

fn of_colour(colour: &str, text: &str) -> Message {
    let mut message = message(text);
    message.set_application_property("colour", colour);
    message
}

fn pick(most: u64, selector: &str) -> Pick {
    Pick { most, selector: Selector::new(selector).unwrap(), connection: None }
}

fn at_most(max_count: u64) -> QueueSettings {
    QueueSettings { max_count: Some(max_count), ..QueueSettings::default() }
}

fn grouped() -> QueueSettings {
    let arguments =
        Map::new().with("qpid.group_header_key", "colour").with("qpid.shared_msg_group", 1u32);
    QueueSettings::from_arguments(&arguments).unwrap()
}

/// Moves messages; wakes whoever has to be woken.
fn moved(from: &QueueBench, to: &QueueBench, pick: impl Into<Pick>) -> Moved {
    let (moved, wakeups) = from.queue.move_to(from.now, &to.queue, pick).unwrap();
    wakeups.perform();
    moved
}

/// All that is left, in order.
fn rest(bench: &mut QueueBench) -> Vec<String> {
    let consumer = bench.consumer();
    bench.take(consumer, 10_000).texts
}

#[test]
fn messages_are_moved_in_order_behind_those_that_are_there_and_no_byte_is_copied() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    to.send(&["first"]);
    from.send_numbers(0..2_000);
    let used = from.broker.budget().used();
    let all = Moved { messages: 1_500, refused: None };
    assert_eq!(moved(&from, &to, 1_500), all);
    assert_eq!(from.broker.budget().used(), used);
    let (source, target) = (from.statistics(), to.statistics());
    assert_eq!((source.msg_depth, target.msg_depth), (500, 1_501));
    assert_eq!((source.msg_total_dequeues, target.msg_total_enqueues), (1_500, 1_501));
    assert_eq!((source.acquires, source.unacked_messages), (0, 0));
    let texts = rest(&mut to);
    assert_eq!(texts[0], "first");
    let numbers: Vec<String> = (0..1_500).map(|number| number.to_string()).collect();
    assert_eq!(texts[1..], numbers);
    assert_eq!(rest(&mut from)[0], "1500");
}

#[test]
fn the_memory_of_what_has_been_moved_comes_back_when_it_is_consumed() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    let used = from.broker.budget().used();
    from.send_numbers(0..300);
    moved(&from, &to, u64::MAX);
    assert_eq!(from.statistics().memory_bytes, 0);
    let consumer = to.consumer();
    let positions = to.take(consumer, 300).positions();
    to.accept(consumer, &positions);
    assert_eq!(from.broker.budget().used(), used);
    assert_eq!(to.statistics().memory_bytes, 0);
}

#[test]
fn whoever_waits_at_the_destination_is_woken() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    let consumer = to.consumer();
    assert_eq!(to.take(consumer, 5).taking, Taking::Waiting);
    from.send(&["a"]);
    moved(&from, &to, 1);
    assert_eq!(to.woken(), [consumer.key]);
    assert_eq!(to.take(consumer, 5).texts, ["a"]);
}

#[test]
fn a_destination_that_is_full_stops_the_move_and_the_rest_stays_in_its_place() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", at_most(3));
    from.send(&["a", "b", "c", "d", "e"]);
    let some = Moved { messages: 3, refused: Some(Refusal::Count) };
    assert_eq!(moved(&from, &to, u64::MAX), some);
    assert_eq!(to.statistics().discards_overflow, 0, "nothing has been discarded");
    from.send(&["f"]);
    let consumer = to.consumer();
    let positions = to.take(consumer, 3).positions();
    to.accept(consumer, &positions);
    let more = Moved { messages: 3, refused: None };
    assert_eq!(moved(&from, &to, u64::MAX), more);
    assert_eq!(to.take(consumer, 9).texts, ["d", "e", "f"]);
}

#[test]
fn what_comes_back_from_a_move_in_vain_is_for_whoever_waits() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    to.send(&["purged"]);
    to.queue.purge(to.now, u64::MAX).1.perform();
    to.queue.delete(DeleteIf::default()).unwrap().perform();
    from.send(&["a", "b"]);
    let none = Moved { messages: 0, refused: Some(Refusal::Deleted) };
    assert_eq!(moved(&from, &to, u64::MAX), none);
    let statistics = from.statistics();
    assert_eq!((statistics.msg_depth, statistics.unacked_messages, statistics.releases), (2, 0, 0));
    assert_eq!(rest(&mut from), ["a", "b"]);
}

#[test]
fn a_queue_is_not_moved_into_itself() {
    let mut bench = QueueBench::default();
    bench.send(&["a"]);
    let error = bench.queue.move_to(bench.now, &bench.queue, 1u64).unwrap_err();
    assert_eq!(error.to_string(), "the messages of queue 'q' cannot go to where they are");
    assert_eq!(rest(&mut bench), ["a"]);
}

#[test]
fn only_what_a_selector_is_true_for_is_moved_and_no_more_than_was_asked_for() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    let colour = |number: usize| if number.is_multiple_of(3) { "red" } else { "blue" };
    from.send_messages((0..3_000).map(|n| of_colour(colour(n), &n.to_string())).collect());
    assert_eq!(moved(&from, &to, pick(700, "colour = 'red'")).messages, 700);
    let reds: Vec<String> = (0..700).map(|n| (3 * n).to_string()).collect();
    assert_eq!(rest(&mut to), reds);
    assert_eq!(moved(&from, &to, pick(u64::MAX, "colour = 'red'")).messages, 300);
    assert_eq!(from.statistics().msg_depth, 2_000);
}

#[test]
fn a_purge_with_a_selector_leaves_everything_else_where_it_is() {
    let mut bench = QueueBench::default();
    let colours = ["red", "blue", "red", "blue", "red"];
    let coloured = |(n, colour): (usize, &&str)| of_colour(colour, &n.to_string());
    bench.send_messages(colours.iter().enumerate().map(coloured).collect());
    let (purged, wakeups) = bench.queue.purge(bench.now, pick(2, "colour = 'red'"));
    wakeups.perform();
    assert_eq!((purged, bench.statistics().discards_purge), (2, 2));
    assert_eq!(bench.statistics().acquires, 0, "nobody has had them");
    assert_eq!(rest(&mut bench), ["1", "3", "4"]);
}

#[test]
fn what_somebody_holds_is_neither_purged_nor_moved() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    let consumer = from.consumer();
    from.send(&["a", "b", "c"]);
    let held = from.take(consumer, 1).positions();
    assert_eq!(moved(&from, &to, u64::MAX).messages, 2);
    assert_eq!(from.queue.purge(from.now, u64::MAX).0, 0);
    from.release(consumer, &held);
    assert_eq!(from.take(consumer, 9).texts, ["a"]);
    assert_eq!(rest(&mut to), ["b", "c"]);
}

#[test]
fn what_has_happened_to_a_message_goes_along() {
    let mut from = QueueBench::default();
    let sequence =
        QueueSettings { sequence_key: Some("number".into()), ..QueueSettings::default() };
    let mut to = from.beside("to", sequence);
    let consumer = from.consumer();
    let mut sent = message("a");
    let header = sent.header.get_or_insert_default();
    (header.ttl, header.durable, header.priority, header.first_acquirer) =
        (Some(1_000), true, 7, true);
    from.send_messages(vec![message("before"), sent]);
    let positions = from.take(consumer, 2).positions();
    let annotations = Some(Box::new(Map::new().with("x-opt-why", "late")));
    let in_vain = Outcome::Modify { failed: true, undeliverable_here: false, annotations };
    from.settle(consumer, &positions, in_vain);
    from.pass(400);
    to.now = from.now;
    moved(&from, &to, u64::MAX);

    let receiver = to.consumer();
    to.receive(receiver);
    let (_, got) = to.receive(receiver);
    let header = got.header.unwrap();
    assert_eq!((header.durable, header.priority, header.ttl), (true, 7, Some(600)));
    assert_eq!((header.delivery_count, header.first_acquirer), (1, false));
    let annotations = got.message_annotations.unwrap();
    assert_eq!(annotations.get("x-opt-why"), Some(&"late".into()));
    assert_eq!(annotations.get("number"), Some(&Value::Uint(2)));
}

#[test]
fn a_message_expires_at_its_time_wherever_it_has_been_moved() {
    let mut from = QueueBench::default();
    let mut to = from.beside("to", QueueSettings::default());
    let mut short = message("short");
    short.header.get_or_insert_default().ttl = Some(1_000);
    let mut dated = message("dated");
    dated.properties_mut().absolute_expiry_time = Some(Timestamp(from.now.wall_ms + 2_000));
    from.send_messages(vec![short, dated, message("long")]);
    from.pass(500);
    to.now = from.now;
    moved(&from, &to, u64::MAX);
    to.pass(520);
    assert_eq!((to.statistics().msg_depth, to.statistics().discards_ttl), (2, 1));
    to.pass(1_000);
    assert_eq!(to.statistics().discards_ttl, 2);
    assert_eq!(rest(&mut to), ["long"]);
}

#[test]
fn messages_are_moved_out_of_the_middle_of_a_group_and_into_another() {
    let mut from = QueueBench::new(grouped());
    let mut to = from.beside("to", grouped());
    let owner = from.consumer();
    from.send_messages(vec![
        of_colour("red", "1"),
        of_colour("blue", "2"),
        of_colour("red", "3"),
        of_colour("red", "4"),
    ]);
    let held = from.take(owner, 1).positions();
    assert_eq!(moved(&from, &to, 2).messages, 2);
    assert_eq!((from.queue.group_count(), to.queue.group_count()), (1, 2));
    let other = from.consumer();
    assert_eq!(from.take(other, 5).texts, [] as [&str; 0], "the group has an owner");
    from.accept(owner, &held);
    assert_eq!(from.take(other, 5).texts, ["4"]);
    assert_eq!(rest(&mut to), ["2", "3"]);
}

#[test]
fn a_large_message_stays_in_its_file() {
    struct OnDisk;
    impl LargeBody for OnDisk {
        fn len(&self) -> u64 {
            1 << 33
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<usize> {
            Ok(0)
        }
    }
    let from = QueueBench::default();
    let unlimited = QueueSettings { max_bytes: Some(0), ..QueueSettings::default() };
    let to = from.beside("to", unlimited.clone());
    from.queue.set_settings(from.now, unlimited).unwrap().perform();
    let mut builder = BatchBuilder::new();
    let meta = MessageMeta::default();
    builder.push_large(vec![1; 10], &Sections::default(), meta, Arc::new(OnDisk));
    let batch = builder.finish(&[], from.broker.budget()).unwrap();
    from.queue.enqueue(from.now, batch).1.perform();
    moved(&from, &to, u64::MAX);
    assert_eq!((from.statistics().byte_depth, to.statistics().byte_depth), (0, 1 << 33));
}

#[test]
fn j10_what_is_purged_or_expires_was_acquired_by_nobody() {
    let mut bench = QueueBench::default();
    let mut short = message("short");
    short.header.get_or_insert_default().ttl = Some(100);
    bench.send_messages(vec![short.clone(), short, message("long")]);
    bench.pass(200);
    bench.queue.purge(bench.now, u64::MAX).1.perform();
    let statistics = bench.statistics();
    assert_eq!((statistics.discards_ttl, statistics.discards_purge), (2, 1));
    assert_eq!((statistics.acquires, statistics.releases), (0, 0));
    assert_eq!(statistics.msg_total_dequeues, 3);
}
