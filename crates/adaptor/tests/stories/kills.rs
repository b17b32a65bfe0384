//! Peers that vanish: nothing that was accepted is lost, and nothing of theirs is left.

use crate::bench::raw::{credit_of, framed, more, receiving, sending, whole};
use crate::bench::{Bench, bytes_of, text};
use mochila_engine::pair::Random;
use mochila_wire::performative::{Begin, End, Transfer};
use mochila_wire::{DeliveryState, Encode};

#[test]
fn a_sender_that_is_killed_in_the_middle_of_a_message_leaves_what_was_accepted_and_nothing_else() {
    for size in [30_000, 3 * 1024 * 1024] {
        let mut bench = Bench::new();
        bench.create("q", |settings| settings.max_bytes = Some(0));
        let raw = bench.raw_sender("q");
        bench.say_with(raw, 0, &whole(0, 0), &text("accepted").to_bytes());
        assert_eq!(bench.hear(raw).disposition().state, Some(DeliveryState::Accepted));
        let used = bench.node.broker.budget().used();
        for (at, piece) in bytes_of(size).chunks(10_000).enumerate() {
            bench.say_with(raw, 0, &more((at == 0).then_some(1)), piece);
        }
        let is_in_memory = bench.files.count() == 0;
        assert_eq!(bench.node.broker.budget().used() > used, is_in_memory, "and paid for");
        bench.cut(raw);
        assert_eq!(bench.node.broker.budget().used(), used);
        assert_eq!((bench.depth("q"), bench.files.count()), (1, 0));
        let client = bench.client();
        let receiver = bench.receiver(client, "q", 10);
        assert_eq!(bench.texts(receiver), ["accepted"]);
        bench.expect_nothing_left();
    }
}

#[test]
fn a_session_that_ends_in_the_middle_of_a_message_leaves_nothing_of_it() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let used = bench.node.broker.budget().used();
    bench.say_with(raw, 0, &more(Some(0)), &[0; 5_000]);
    bench.say(raw, 0, &End { error: None });
    assert_eq!(bench.node.broker.budget().used(), used);
    assert_eq!(bench.numbers("q").producer_count, 0);
    bench.say(raw, 0, &Begin::new(0, 100, 100));
    assert!(bench.hear(raw).names().contains(&"begin"), "the connection goes on");
}

#[test]
fn a_receiver_that_is_killed_in_the_middle_of_a_message_leaves_it_to_others() {
    for size in [200_000, 3 * 1024 * 1024] {
        let mut bench = Bench::new();
        let client = bench.client();
        let sender = bench.sender(client, "q");
        bench.send_bytes(sender, &bytes_of(size), false);
        bench.send(sender, &text("after"));
        let raw = bench.raw_receiver("q", 0);
        bench.stall(raw, true);
        bench.say(raw, 0, &credit_of(0, 0, 10));
        bench.cut(raw);
        let other = bench.receiver(client, "q", 10);
        let got = bench.got(other);
        let (bytes, first) = (bytes_of(size), &got[0].bytes);
        assert!(first.ends_with(&bytes) && first.len() > bytes.len(), "with a header of its own");
        assert_eq!(got[0].message().header.unwrap().delivery_count, 1);
        assert_eq!(got[1].text(), "after");
        bench.accept(&got);
        bench.expect_nothing_left();
    }
}

#[test]
fn a_packet_that_ends_in_the_middle_of_a_frame_counts_as_far_as_it_goes() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    let mut packet = framed(0, &whole(0, 0), &text("whole").to_bytes());
    let cut = framed(0, &whole(0, 1), &text("cut off").to_bytes());
    packet.extend_from_slice(&cut[..cut.len() - 1]);
    bench.say_bytes(raw, &packet);
    bench.cut(raw);
    let client = bench.client();
    let receiver = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(receiver), ["whole"]);
}

#[test]
fn nothing_that_was_accepted_is_lost_however_often_peers_are_killed() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut bench = Bench::with(|setup| setup.settings.credit_window = 20);
        bench.create("q", |settings| settings.max_bytes = Some(0));
        let (mut sent, mut accepted, mut received) = (0u32, Vec::new(), Vec::new());
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        for _ in 0..300 {
            match random.below(8) {
                0 if senders.len() < 3 => {
                    let client = bench.client();
                    senders.push((client, bench.sender(client, "q"), Vec::new()));
                }
                1 if receivers.len() < 3 => {
                    let client = bench.client();
                    let credit = 1 + random.below(10) as u32;
                    receivers.push((client, bench.receiver(client, "q", credit)));
                }
                2 if !senders.is_empty() && random.below(4) == 0 => {
                    let at = random.below(senders.len());
                    bench.kill(senders.remove(at).0);
                }
                3 if !receivers.is_empty() && random.below(3) == 0 => {
                    let at = random.below(receivers.len());
                    let (client, _) = receivers.remove(at);
                    match random.below(2) {
                        0 => bench.kill(client),
                        _ => bench.kill_after_writing(client),
                    }
                }
                4 | 5 if !senders.is_empty() => {
                    let at = random.below(senders.len());
                    let (_, link, pending) = &mut senders[at];
                    if bench.credit(*link) > 0 {
                        let size = [5, 100, 70_000][random.below(3)];
                        let body = format!("{sent:06}{}", "x".repeat(size));
                        let token = bench.send(*link, &text(&body));
                        pending.push((token, sent));
                        sent += 1;
                    }
                    for told in bench.told(*link) {
                        assert_eq!(told.state, Some(DeliveryState::Accepted), "seed {seed}");
                        let number = pending.iter().find(|(token, _)| *token == told.token);
                        accepted.push(number.expect("it was sent").1);
                    }
                }
                _ if !receivers.is_empty() => {
                    let (_, link) = receivers[random.below(receivers.len())];
                    let got = bench.got(link);
                    for got in &got {
                        match random.below(4) {
                            0 => bench.settle(got, DeliveryState::Released),
                            _ => {
                                received.push(number_of(&got.text()));
                                bench.settle(got, DeliveryState::Accepted);
                            }
                        }
                    }
                    bench.grant(link, 1 + random.below(10) as u32);
                }
                _ => {}
            }
        }
        for (client, ..) in senders {
            bench.kill(client);
        }
        for (client, _) in receivers {
            bench.kill(client);
        }
        let client = bench.client();
        let last = bench.receiver(client, "q", u32::MAX);
        let got = bench.got(last);
        received.extend(got.iter().map(|got| number_of(&got.text())));
        bench.accept(&got);
        received.sort_unstable();
        for number in accepted {
            assert!(received.binary_search(&number).is_ok(), "seed {seed}: {number} is lost");
        }
        let all = received.len();
        received.dedup();
        assert_eq!(received.len(), all, "seed {seed}: what was accepted came again");
        assert_eq!(bench.depth("q"), 0, "seed {seed}");
        bench.expect_nothing_left();
    }
}

fn number_of(text: &str) -> u32 {
    text[..6].parse().unwrap()
}

#[test]
fn everything_a_connection_had_is_given_back_whatever_it_was_doing() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    for handle in 0..20 {
        bench.say(raw, 0, &receiving(handle, "q"));
        bench.say(raw, 0, &sending(100 + handle, "q"));
        bench.say(raw, 0, &credit_of(handle, 0, 3));
    }
    for id in 0..10 {
        bench.say_with(raw, 0, &whole(100 + id, id), &text("m").to_bytes());
    }
    bench.say_with(raw, 0, &Transfer { more: true, ..whole(105, 10) }, &[0; 900]);
    bench.cut(raw);
    let numbers = bench.numbers("q");
    assert_eq!((numbers.consumer_count, numbers.producer_count), (0, 0));
    assert_eq!((numbers.msg_depth, numbers.unacked_messages), (10, 0));
    bench.expect_nothing_left();
}
