//! Session windows, however small and wherever they begin.

use crate::bench::raw::{credit_of, framed, receiving, sending, settled, whole};
use crate::bench::{Bench, bytes_of, text};
use mochila_engine::ConnectionConfig;
use mochila_wire::performative::{Attach, Begin, Disposition, Flow, Open};
use mochila_wire::{DeliveryState, Encode};

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
fn b1_ids_of_one_packet_may_wrap_around_in_either_direction() {
    for start in [0, 0x7fff_fffc, u32::MAX - 3, u32::MAX] {
        let mut bench = Bench::with(|setup| setup.engine.initial_outgoing_id = start);
        let raw = bench.raw_opened();
        bench.say(raw, 0, &Begin::new(start, 2_048, 2_048));
        let attach = Attach { initial_delivery_count: Some(start), ..sending(0, "q") };
        let heard = bench.ask(raw, &attach);
        assert_eq!(heard.flow().delivery_count, Some(start), "it counts as its sender does");
        let ids: Vec<_> = (0..8).map(|n| start.wrapping_add(n)).collect();
        let message = text("m").to_bytes();
        let packet: Vec<u8> =
            ids.iter().flat_map(|id| framed(0, &whole(0, *id), &message)).collect();
        bench.say_bytes(raw, &packet);
        let heard = bench.hear(raw);
        assert_eq!((heard.ends(), heard.detaches()), (vec![], vec![]));
        let accepted: Vec<_> = heard.dispositions().iter().flat_map(settled_ids).collect();
        assert_eq!(accepted, ids, "start {start}");

        let heard = bench.ask(raw, &receiving(1, "q"));
        let seen = heard.attach().initial_delivery_count.unwrap();
        let flow = Flow { next_incoming_id: Some(start), ..credit_of(1, seen, 8) };
        let transfers = bench.ask(raw, &flow).transfers();
        assert_eq!(transfers.iter().map(|it| it.id.unwrap()).collect::<Vec<_>>(), ids);
        bench.say(raw, 0, &settled(ids[0], ids[7], DeliveryState::Accepted));
        assert_eq!((bench.depth("q"), bench.hear(raw).ends()), (0, vec![]));
    }
}

/// The deliveries that a disposition is about.
fn settled_ids(disposition: &Disposition) -> Vec<u32> {
    let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
    assert_eq!((disposition.settled, &disposition.state), (true, &Some(DeliveryState::Accepted)));
    (0..=last.wrapping_sub(first)).map(|n| first.wrapping_add(n)).collect()
}

/// A queue without end, and somebody who fills it with so many of the smallest messages.
fn filled(bench: &mut Bench, messages: usize) {
    bench.create("q", |settings| settings.max_bytes = Some(0));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for sent in 0..messages {
        if !bench.may_begin(sender) {
            bench.run();
        }
        assert!(bench.may_begin(sender), "message {sent}");
        bench.post(sender, &Default::default(), &[0x00, 0x53, 0x77, 0x40]);
    }
    bench.run();
    assert_eq!((bench.depth("q"), bench.told(sender).len()), (messages as u64, messages));
}

#[test]
fn b2_a_receiver_with_one_huge_window_gets_more_than_65536_messages() {
    // All numbers of RFC 1982 at once, or all there are, and never a word about it again.
    for window in [u32::MAX / 2, u32::MAX] {
        let mut bench = Bench::with(|setup| setup.settings.credit_window = 10_000);
        filled(&mut bench, 70_000);
        let raw = bench.raw_opened();
        bench.say(raw, 0, &Begin::new(0, window, window));
        bench.say(raw, 0, &receiving(0, "q"));
        bench.say(raw, 0, &Flow { incoming_window: window, ..credit_of(0, 0, 1_000_000) });
        assert_eq!(bench.hear(raw).transfers().len(), 70_000, "window {window}");
    }
}

#[test]
fn b2_a_receiver_gets_what_its_window_lets_through_and_more_when_it_renews_it() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 10_000);
    filled(&mut bench, 140_000);
    let window = 65_535;
    let raw = bench.raw_opened();
    bench.say(raw, 0, &Begin::new(0, window, window));
    bench.say(raw, 0, &receiving(0, "q"));
    bench.say(raw, 0, &Flow { incoming_window: window, ..credit_of(0, 0, u32::MAX) });
    let mut seen = bench.hear(raw).transfers().len() as u32;
    assert_eq!(seen, window, "there is credit for more");
    // The session alone is told of it, as clients do, and not the link.
    for expected in [window, 140_000 - 2 * window] {
        let renewed = Flow {
            next_incoming_id: Some(seen),
            incoming_window: window,
            outgoing_window: window,
            ..Flow::default()
        };
        let more = bench.ask(raw, &renewed).transfers().len() as u32;
        assert_eq!(more, expected);
        seen += more;
    }
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
