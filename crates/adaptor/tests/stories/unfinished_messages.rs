//! Messages of several frames whose last one does not come, or late.

use crate::bench::raw::{last, more, whole};
use crate::bench::{Bench, bytes_of, text};
use mochila_wire::performative::Transfer;
use mochila_wire::{Encode, condition};

const MIB: usize = 1024 * 1024;

#[test]
fn an_aborted_delivery_is_as_if_it_had_never_been() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.say_with(raw, 0, &more(Some(0)), &text("half").to_bytes()[..4]);
    bench.say(raw, 0, &Transfer { aborted: true, ..last() });
    assert!(bench.hear(raw).dispositions().is_empty());
    bench.say_with(raw, 0, &whole(0, 1), &text("whole").to_bytes());
    assert_eq!(bench.hear(raw).disposition().first, 1);
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn aborted_deliveries_do_not_use_the_credit_up() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 10);
    let raw = bench.raw_sender("q");
    for id in 0..100 {
        bench.say_with(raw, 0, &more(Some(id)), b"half");
        bench.say(raw, 0, &Transfer { aborted: true, ..last() });
    }
    assert_eq!(bench.hear(raw).detaches(), []);
}

#[test]
fn an_aborted_large_delivery_leaves_neither_file_nor_memory() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let before = bench.node.broker.budget().used();
    let bytes = bytes_of(2 * MIB);
    for (at, piece) in bytes.chunks(60_000).enumerate() {
        bench.say_with(raw, 0, &more((at == 0).then_some(0)), piece);
    }
    assert_eq!(bench.files.count(), 1);
    bench.say(raw, 0, &Transfer { aborted: true, ..last() });
    assert_eq!((bench.files.count(), bench.node.broker.budget().used()), (0, before));
}

/// What each connection holds of unfinished messages.
fn unfinished(bench: &Bench) -> Vec<u64> {
    let connections = bench.node.management.directory().connections();
    connections.iter().map(|connection| connection.unfinished_bytes()).collect()
}

#[test]
fn a_message_that_has_come_or_is_given_up_is_unfinished_no_more() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let bytes = text(&"x".repeat(5_000)).to_bytes();
    bench.say_with(raw, 0, &more(Some(0)), &bytes[..3_000]);
    assert_eq!(unfinished(&bench), [3_000]);
    bench.say_with(raw, 0, &last(), &bytes[3_000..]);
    assert_eq!(unfinished(&bench), [0]);
    bench.say_with(raw, 0, &more(Some(1)), &bytes[..3_000]);
    bench.say(raw, 0, &Transfer { aborted: true, ..last() });
    assert_eq!(unfinished(&bench), [0]);
}

#[test]
fn a_message_that_is_not_finished_detaches_its_link_and_gives_its_memory_back() {
    let mut bench = Bench::new();
    let before = bench.node.broker.budget().used();
    let raw = bench.raw_sender("q");
    for second in 0..100 {
        bench.say_with(raw, 0, &more((second == 0).then_some(0)), &bytes_of(1_000));
        bench.advance(1_000);
    }
    assert_eq!(bench.hear(raw).detaches(), [], "something came of it every second");
    let come = 100 * bytes_of(1_000).len() as u64;
    assert_eq!(unfinished(&bench), [come], "operators see who holds how much");
    // Other frames are no progress.
    for _ in 0..10 {
        bench.advance(5_800);
        bench.say_with(raw, 0, &more(None), b"");
    }
    assert_eq!(bench.hear(raw).detaches(), []);
    bench.advance(2_000);
    let error = bench.hear(raw).detach().error.unwrap();
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    assert!(error.description.unwrap().contains("unfinished message"));
    assert_eq!(unfinished(&bench), [0]);
    assert!(bench.node.broker.budget().used() < before + 50_000);
}

#[test]
fn a_link_that_finishes_its_messages_may_rest_as_long_as_it_likes() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let rest = |bench: &mut Bench, ms: u64| {
        for _ in 0..10 {
            bench.advance(ms / 10);
            bench.say_bytes(raw, &[0, 0, 0, 8, 2, 0, 0, 0]);
        }
    };
    for id in 0..3 {
        bench.say_with(raw, 0, &more(Some(id)), b"");
        rest(&mut bench, 50_000);
        bench.say_with(raw, 0, &more(None), &text("half").to_bytes()[..4]);
        rest(&mut bench, 50_000);
        bench.say_with(raw, 0, &last(), &text("half").to_bytes()[4..]);
        rest(&mut bench, 200_000);
    }
    assert_eq!(bench.hear(raw).detaches(), []);
    assert_eq!(bench.depth("q"), 3);
}
