//! Looking without taking.

use crate::bench::QueueBench;
use mochila_broker::Taking;

#[test]
fn a_browser_sees_all_messages_and_leaves_them_there() {
    let mut bench = QueueBench::default();
    let (browser, consumer) = (bench.browser(), bench.consumer());
    bench.send(&["a", "b"]);
    assert_eq!(bench.take(browser, 10).texts, ["a", "b"]);
    assert_eq!(bench.take(consumer, 10).texts, ["a", "b"]);
    assert_eq!(bench.statistics().acquires, 2);
}

#[test]
fn a_browser_that_has_seen_everything_is_woken_by_new_messages() {
    let mut bench = QueueBench::default();
    let (browser, consumer) = (bench.browser(), bench.consumer());
    bench.send(&["a"]);
    assert_eq!(bench.take(browser, 10).taking, Taking::Waiting);
    bench.take(consumer, 10);
    bench.send(&["b"]);
    assert_eq!(bench.woken(), [browser.key, consumer.key]);
    assert_eq!(bench.take(browser, 10).texts, ["b"]);
}

#[test]
fn a_browser_goes_on_where_it_stopped_and_does_not_see_what_others_have() {
    let mut bench = QueueBench::default();
    let (browser, consumer) = (bench.browser(), bench.consumer());
    bench.send_numbers(0..6);
    assert_eq!(bench.take(browser, 2).texts, ["0", "1"]);
    bench.take(consumer, 4);
    assert_eq!(bench.take(browser, 10).texts, ["4", "5"]);
}

#[test]
fn the_outcome_of_a_browsed_message_means_nothing() {
    let mut bench = QueueBench::default();
    let browser = bench.browser();
    bench.send(&["a"]);
    let positions = bench.take(browser, 1).positions();
    bench.accept(browser, &positions);
    bench.unsubscribe(browser);
    assert_eq!(bench.statistics().msg_depth, 1);
}

#[test]
fn a_browser_that_could_not_pass_on_what_it_was_shown_is_shown_it_again() {
    let mut bench = QueueBench::default();
    let browser = bench.browser();
    bench.send_numbers(0..4);
    let positions = bench.take(browser, 10).positions();
    bench.queue.give_back(bench.now, browser.id, &positions[2..]).perform();
    assert_eq!(bench.woken(), [browser.key]);
    assert_eq!(bench.take(browser, 10).texts, ["2", "3"]);
}
