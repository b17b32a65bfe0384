//! Queues that hand out urgent messages first.

use crate::bench::{BenchConsumer, QueueBench, message};
use crate::selecting::selector;
use mochila_broker::{Enqueued, Mode, Outcome, QueueSettings, Taking};
use mochila_wire::Message;

fn bench(levels: u64, change: impl FnOnce(&mut QueueSettings)) -> QueueBench {
    let mut settings = QueueSettings { priorities: Some(levels), ..QueueSettings::default() };
    change(&mut settings);
    QueueBench::new(settings)
}

fn of(priority: u8, text: &str) -> Message {
    let mut message = message(text);
    message.header_mut().priority = priority;
    message
}

/// Sends messages, each a priority and a text.
fn send(bench: &mut QueueBench, messages: &[(u8, &str)]) -> Enqueued {
    bench.send_messages(messages.iter().map(|(priority, text)| of(*priority, text)).collect())
}

#[test]
fn urgent_messages_come_first_and_each_level_in_order() {
    let mut bench = bench(10, |_| {});
    send(&mut bench, &[(4, "a"), (9, "b"), (0, "c"), (9, "d"), (4, "e"), (200, "f")]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 4).texts, ["b", "d", "f", "a"]);
    send(&mut bench, &[(5, "g")]);
    assert_eq!(bench.take(consumer, 10).texts, ["g", "e", "c"]);
}

#[test]
fn a_message_that_says_nothing_is_in_the_middle() {
    let mut bench = bench(3, |_| {});
    send(&mut bench, &[(3, "low")]);
    bench.send(&["usual"]);
    send(&mut bench, &[(5, "high"), (4, "explicit")]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["high", "usual", "explicit", "low"]);
}

#[test]
fn what_comes_back_has_its_place_in_its_level_again() {
    let mut bench = bench(10, |_| {});
    let consumer = bench.consumer();
    send(&mut bench, &[(1, "a"), (1, "b"), (8, "c"), (8, "d")]);
    let positions = bench.take(consumer, 4).positions();
    send(&mut bench, &[(8, "e"), (1, "f")]);
    bench.release(consumer, &[positions[2], positions[0]]);
    assert_eq!(bench.take(consumer, 10).texts, ["c", "e", "a", "f"]);
}

#[test]
fn consumers_share_what_there_is_each_in_order_of_urgency() {
    let mut bench = bench(10, |_| {});
    let (a, b) = (bench.consumer(), bench.consumer());
    bench.take(a, 1);
    bench.take(b, 1);
    send(&mut bench, &[(1, "1"), (2, "2"), (3, "3"), (4, "4")]);
    assert_eq!(bench.woken(), [a.key, b.key]);
    assert_eq!(bench.take(a, 2).texts, ["4", "3"]);
    assert_eq!(bench.take(b, 10).texts, ["2", "1"]);
}

#[test]
fn a_browser_is_shown_urgent_messages_first_and_each_once() {
    let mut bench = bench(10, |_| {});
    let (browser, consumer) = (bench.browser(), bench.consumer());
    send(&mut bench, &[(1, "a"), (5, "b"), (9, "c")]);
    assert_eq!(bench.take(browser, 2).texts, ["c", "b"]);
    // One that it has seen is taken and comes back, others come.
    let held = bench.take(consumer, 1).positions();
    bench.release(consumer, &held);
    send(&mut bench, &[(2, "d"), (9, "e")]);
    let got = bench.take(browser, 10);
    assert_eq!(
        (got.texts, got.taking),
        (vec!["e".into(), "d".into(), "a".into()], Taking::Waiting)
    );
    bench.woken();
    send(&mut bench, &[(0, "f")]);
    assert_eq!(bench.woken(), [browser.key, consumer.key][..1]);
    assert_eq!(bench.take(browser, 10).texts, ["f"]);
}

#[test]
fn a_browser_that_could_not_pass_on_what_it_was_shown_is_shown_it_again() {
    let mut bench = bench(10, |_| {});
    let browser = bench.browser();
    send(&mut bench, &[(1, "a"), (1, "b"), (9, "c"), (9, "d")]);
    let got = bench.take(browser, 4);
    assert_eq!(got.texts, ["c", "d", "a", "b"]);
    bench.queue.give_back(bench.now, browser.id, &got.positions()[1..3]).perform();
    assert_eq!(bench.take(browser, 10).texts, ["d", "a", "b"]);
}

fn selecting(bench: &mut QueueBench, mode: Mode) -> BenchConsumer {
    bench.subscribe(|options| {
        options.mode = mode;
        options.filters = Some(selector("JMSPriority <> 5"));
    })
}

#[test]
fn those_who_select_get_urgent_messages_first_too() {
    let mut bench = bench(10, |_| {});
    send(&mut bench, &[(1, "a"), (5, "b"), (9, "c"), (2, "d")]);
    let browser = selecting(&mut bench, Mode::Browse);
    assert_eq!(bench.take(browser, 2).texts, ["c", "d"]);
    let (choosy, plain) = (selecting(&mut bench, Mode::Acquire), bench.consumer());
    let held = bench.take(choosy, 2).positions();
    send(&mut bench, &[(7, "e")]);
    assert_eq!(bench.take(browser, 1).texts, ["e"]);
    bench.release(choosy, &held);
    assert_eq!(bench.take(browser, 10).texts, ["a"], "it has seen the others");
    assert_eq!(bench.take(choosy, 2).texts, ["c", "e"]);
    assert_eq!(bench.take(plain, 10).texts, ["b", "d", "a"]);
}

#[test]
fn one_that_selects_and_waits_is_called_for_the_most_urgent_message_that_is_left() {
    let mut bench = bench(10, |_| {});
    let (choosy, browser) =
        (selecting(&mut bench, Mode::Acquire), selecting(&mut bench, Mode::Browse));
    for consumer in [choosy, browser] {
        assert_eq!(bench.take(consumer, 1).taking, Taking::Waiting);
    }
    send(&mut bench, &[(1, "a"), (9, "b"), (5, "c")]);
    assert_eq!(bench.woken(), [choosy.key, browser.key]);
    let plain = bench.consumer();
    assert_eq!(bench.take(plain, 1).texts, ["b"], "nobody is overtaken");
    assert_eq!(bench.take(browser, 10).texts, ["a"]);
    assert_eq!(bench.take(choosy, 1).texts, ["a"]);
}

#[test]
fn messages_expire_in_every_level() {
    let mut bench = bench(10, |_| {});
    let short = |priority, text| {
        let mut message = of(priority, text);
        message.header_mut().ttl = Some(10);
        message
    };
    bench.send_messages(vec![short(9, "a"), of(9, "b"), short(1, "c"), of(1, "d")]);
    bench.pass(16);
    assert_eq!(bench.statistics().discards_ttl, 2);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["b", "d"]);
}

#[test]
fn a_level_that_has_had_its_turn_stands_back_for_lower_ones() {
    let mut bench = bench(10, |settings| {
        settings.fairshare = Some(2);
        settings.fairshare_of[9] = Some(3);
    });
    let messages: Vec<_> = (0..8).map(|_| (9, "h")).chain((0..4).map(|_| (1, "l"))).collect();
    send(&mut bench, &messages);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 20).texts.concat(), "hhhllhhhllhh");
}

#[test]
fn turns_go_on_from_one_consumer_to_the_next() {
    let mut bench = bench(2, |settings| settings.fairshare = Some(3));
    let messages: Vec<_> = (0..6).map(|_| (9, "h")).chain((0..3).map(|_| (1, "l"))).collect();
    send(&mut bench, &messages);
    let (a, b) = (bench.consumer(), bench.consumer());
    assert_eq!(bench.take(a, 2).texts.concat(), "hh");
    assert_eq!(bench.take(b, 3).texts.concat(), "hll");
    assert_eq!(bench.take(a, 4).texts.concat(), "lhhh");
}

#[test]
fn a_turn_that_a_lower_level_has_had_long_ago_makes_no_other_longer() {
    let mut bench = bench(10, |settings| settings.fairshare = Some(2));
    let consumer = bench.consumer();
    send(&mut bench, &[(1, "l"), (1, "l"), (0, "z"), (0, "z")]);
    assert_eq!(bench.take(consumer, 4).texts.concat(), "llzz");
    let of = |priority, text, count| (0..count).map(move |_| (priority, text));
    let messages: Vec<_> = of(9, "h", 8).chain(of(1, "l", 4)).chain(of(0, "z", 4)).collect();
    send(&mut bench, &messages);
    assert_eq!(bench.take(consumer, 20).texts.concat(), "hhllzzhhllzzhhhh");
}

#[test]
fn a_low_level_without_a_turn_of_its_own_gets_one_message_at_a_time_and_starves_nobody() {
    let mut bench = bench(2, |settings| settings.fairshare_of[1] = Some(2));
    let messages: Vec<_> = (0..5).map(|_| (1, "l")).chain((0..4).map(|_| (9, "h"))).collect();
    send(&mut bench, &messages);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 20).texts.concat(), "hhlhhllll");
}

#[test]
fn a_full_ring_drops_what_is_least_urgent_also_if_it_is_new() {
    let mut bench = bench(10, |settings| {
        settings.max_count = Some(3);
        settings.limit_policy = mochila_broker::settings::LimitPolicy::Ring;
    });
    send(&mut bench, &[(5, "a"), (5, "b"), (7, "c")]);
    send(&mut bench, &[(1, "d")]);
    assert_eq!(bench.statistics().discards_ring, 1, "it is the least urgent itself");
    send(&mut bench, &[(5, "e")]);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts, ["c", "b", "e"]);
}

#[test]
fn a_failed_message_is_not_less_urgent() {
    let mut bench = bench(10, |_| {});
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &[(9, "urgent"), (1, "idle")]);
    let held = bench.take(a, 1).positions();
    let outcome = Outcome::Modify { failed: true, undeliverable_here: true, annotations: None };
    bench.settle(a, &held, outcome);
    bench.idle(a);
    assert_eq!(bench.take(b, 1).texts, ["urgent"]);
    assert_eq!(bench.take(a, 1).texts, ["idle"]);
}

#[test]
fn levels_can_change_only_while_the_queue_is_empty_and_turns_at_any_time() {
    let mut bench = bench(10, |_| {});
    send(&mut bench, &[(9, "h"), (9, "h"), (1, "l")]);
    let settings = |levels, fairshare| QueueSettings {
        priorities: Some(levels),
        fairshare,
        ..QueueSettings::default()
    };
    let error = bench.queue.set_settings(bench.now, settings(5, None)).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    let wakeups = bench.queue.set_settings(bench.now, settings(10, Some(1))).unwrap();
    bench.perform(wakeups);
    let consumer = bench.consumer();
    assert_eq!(bench.take(consumer, 10).texts.concat(), "hlh");
}
