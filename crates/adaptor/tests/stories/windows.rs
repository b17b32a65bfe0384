//! Session windows, however small and wherever they begin.

use crate::bench::raw::{credit_of, receiving, settled};
use crate::bench::{Bench, bytes_of, text};
use mochila_engine::ConnectionConfig;
use mochila_wire::DeliveryState;
use mochila_wire::performative::{Begin, Flow, Open};

#[test]
fn small_session_windows_never_stall() {
    for window in [1, 2, 3, 7, 64, 2_048] {
        let mut bench = Bench::with(|setup| {
            setup.engine.incoming_window = window;
            setup.settings.credit_window = 100;
        });
        let client = bench.client_with(ConnectionConfig {
            incoming_window: window,
            ..ConnectionConfig::new("small")
        });
        let sender = bench.sender(client, "q");
        let receiver = bench.receiver(client, "q", 50);
        let mut received = 0;
        for number in 0..500u32 {
            assert!(bench.credit(sender) > 0, "window {window}, message {number}");
            bench.send(sender, &text("m"));
            let got = bench.got(receiver);
            received += got.len();
            bench.accept(&got);
            bench.grant(receiver, 50);
        }
        received += bench.got(receiver).len();
        assert_eq!(received, 500, "window {window}");
        assert_eq!(bench.told(sender).len(), 500);
    }
}

#[test]
fn small_session_windows_let_a_backlog_through() {
    for window in [1, 2, 5, 100, 2_048] {
        let mut bench = Bench::new();
        let filler = bench.client();
        let sender = bench.sender(filler, "q");
        for number in 0..300u32 {
            match number % 10 {
                0 => bench.send_bytes(sender, &bytes_of(3_000), false),
                _ => bench.send(sender, &text("m")),
            };
        }
        let client = bench.client_with(ConnectionConfig {
            incoming_window: window,
            max_frame_size: 1_024,
            ..ConnectionConfig::new("small")
        });
        let receiver = bench.receiver(client, "q", 1_000);
        assert_eq!(bench.got(receiver).len(), 300, "window {window}");
    }
}

#[test]
fn links_share_a_small_window() {
    let mut bench = Bench::new();
    let filler = bench.client();
    let small = ConnectionConfig { incoming_window: 4, ..ConnectionConfig::new("small") };
    let client = bench.client_with(small);
    let receivers: Vec<_> = (0..5)
        .map(|number| {
            let queue = format!("q{number}");
            let sender = bench.sender(filler, &queue);
            for _ in 0..50 {
                bench.send(sender, &text("m"));
            }
            bench.receiver(client, &queue, 0)
        })
        .collect();
    for receiver in &receivers {
        bench.grant(*receiver, 100);
    }
    for receiver in receivers {
        assert_eq!(bench.got(receiver).len(), 50);
    }
}

#[test]
fn a_closed_window_leaves_messages_to_others() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_open(Open::new("closed"));
    bench.say(raw, 0, &Begin::new(0, 1, 1));
    bench.say(raw, 0, &receiving(0, "q"));
    bench.say(raw, 0, &Flow { incoming_window: 1, ..credit_of(0, 0, 100) });
    let other = bench.receiver(client, "q", 100);
    for _ in 0..10 {
        bench.send(sender, &text("m"));
    }
    assert_eq!(bench.hear(raw).transfers().len(), 1);
    assert_eq!(bench.got(other).len(), 9);
}

#[test]
fn b1_a_flow_that_was_sent_before_our_begin_was_seen_does_not_end_the_session() {
    // rhea guesses next-incoming-id 0 where our ids begin elsewhere.
    let mut bench = Bench::with(|setup| setup.engine.initial_outgoing_id = u32::MAX - 3);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for _ in 0..10 {
        bench.send(sender, &text("m"));
    }
    let raw = bench.raw_opened();
    let mut packet = crate::bench::raw::framed(0, &Begin::new(0, 2_048, 2_048), b"");
    packet.extend(crate::bench::raw::framed(0, &receiving(0, "q"), b""));
    packet.extend(crate::bench::raw::framed(0, &credit_of(0, 0, 10), b""));
    bench.say_bytes(raw, &packet);
    let heard = bench.hear(raw);
    assert_eq!(heard.ends(), []);
    let ids: Vec<_> = heard.transfers().iter().map(|moved| moved.id.unwrap()).collect();
    let expected: Vec<_> = (0..10).map(|n| (u32::MAX - 3).wrapping_add(n)).collect();
    assert_eq!(ids, expected);
    bench.say(raw, 0, &settled(u32::MAX - 3, 5, DeliveryState::Accepted));
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn b2_a_receiver_with_one_huge_window_gets_more_than_65536_messages() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 10_000);
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_opened();
    // All of RFC 1982's numbers at once, and never a word about it again.
    bench.say(raw, 0, &Begin::new(0, u32::MAX / 2, u32::MAX / 2));
    bench.say(raw, 0, &receiving(0, "q"));
    bench.say(raw, 0, &Flow { incoming_window: u32::MAX / 2, ..credit_of(0, 0, 1_000_000) });
    bench.hear(raw);
    let (mut sent, mut received) = (0, 0);
    while sent < 70_000 {
        for _ in 0..bench.credit(sender).min(5_000) {
            bench.post(sender, &Default::default(), &[0x00, 0x53, 0x77, 0x40]);
            sent += 1;
        }
        bench.run();
        received += bench.hear(raw).transfers().len();
    }
    assert_eq!(received, sent);
    assert_eq!(bench.told(sender).len(), sent);
}

#[test]
fn b2_a_sender_with_a_small_window_sends_more_than_65536_messages() {
    let mut bench = Bench::with(|setup| setup.engine.incoming_window = 100);
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for sent in 0..66_000u32 {
        assert!(bench.credit(sender) > 0, "message {sent}");
        bench.post(sender, &Default::default(), &[0x00, 0x53, 0x77, 0x40]);
        if sent % 90 == 0 {
            bench.run();
        }
    }
    bench.run();
    assert_eq!(bench.depth("q"), 66_000);
}

#[test]
fn our_delivery_ids_go_on_after_the_largest_number() {
    let start = u32::MAX - 100;
    let mut bench = Bench::with(|setup| setup.engine.initial_outgoing_id = start);
    let client = bench.client_with(ConnectionConfig {
        initial_outgoing_id: u32::MAX - 7,
        ..ConnectionConfig::new("wrapping")
    });
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 10);
    for number in 0..300 {
        bench.send(sender, &text("m"));
        let got = bench.got(receiver);
        assert_eq!(got[0].id, start.wrapping_add(number));
        bench.accept(&got);
        bench.grant(receiver, 10);
    }
    assert_eq!((bench.depth("q"), bench.told(sender).len()), (0, 300));
}
