//! Credit and drain, as the receiver of a link uses them.

use crate::bench::raw::{credit_of, receiving, settled};
use crate::bench::{Bench, Client, text};
use mochila_wire::performative::{Attach, Flow};
use mochila_wire::terminus::{DISTRIBUTION_COPY, JMS_SELECTOR};
use mochila_wire::{DeliveryState, Map, SequenceNo, Source};

fn draining(handle: u32, seen: u32, credit: u32) -> Flow {
    Flow { drain: true, ..credit_of(handle, seen, credit) }
}

#[test]
fn b7_b19_a_drain_of_an_empty_queue_is_answered_at_once() {
    let mut bench = Bench::new();
    let raw = bench.raw_receiver("q", 10);
    let heard = bench.ask(raw, &draining(0, 0, 10));
    assert_eq!(heard.names(), ["flow"]);
    let flow = heard.flow();
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(10), Some(0)));
    assert!(flow.drain);
    assert_eq!(flow.handle, Some(0));
}

#[test]
fn b7_a_drain_on_a_link_that_never_had_credit_is_answered_too() {
    let mut bench = Bench::new();
    let raw = bench.raw_receiver("q", 0);
    let flow = bench.ask(raw, &draining(0, 0, 0)).flow();
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(0), Some(0)));
    assert_eq!(bench.ask(raw, &draining(0, 0, 0)).flows().len(), 1, "and again");
}

/// What a link from `q` or elsewhere may be like that finds nothing there to take.
type Idle = (&'static str, fn(&mut Bench, Client) -> Attach);

const IDLE: [Idle; 8] = [
    ("a queue", |_, _| receiving(0, "q")),
    ("a browser that has seen all", |bench, client| {
        let sender = bench.sender(client, "q");
        bench.send(sender, &text("seen"));
        let mut source = Source::at("q");
        source.distribution_mode = Some(DISTRIBUTION_COPY);
        Attach { source: Some(source), ..receiving(0, "q") }
    }),
    ("a selector that nothing passes", |bench, client| {
        let sender = bench.sender(client, "q");
        bench.send(sender, &text("of no colour"));
        let mut source = Source::at("q");
        source.filter = Some(Map::new().with("s", JMS_SELECTOR.with("colour = 'red'")));
        Attach { source: Some(source), ..receiving(0, "q") }
    }),
    ("groups that others have", |bench, client| {
        bench.create("q", |settings| {
            settings.group_header_key = Some("group".into());
            settings.shared_groups = true;
        });
        let (sender, owner) = (bench.sender(client, "q"), bench.receiver(client, "q", 1));
        for body in ["held", "waits for it"] {
            let mut message = text(body);
            message.set_application_property("group", "g");
            bench.send(sender, &message);
        }
        assert_eq!(bench.texts(owner), ["held"]);
        receiving(0, "q")
    }),
    ("priorities", |bench, _| {
        bench.create("q", |settings| settings.priorities = Some(10));
        receiving(0, "q")
    }),
    ("last values", |bench, _| {
        bench.create("q", |settings| settings.last_value_key = Some("key".into()));
        receiving(0, "q")
    }),
    ("an exchange", |_, _| receiving(0, "amq.topic/key")),
    ("a queue made for the link", |_, _| {
        let source = Source { dynamic: true, ..Source::default() };
        Attach { source: Some(source), ..receiving(0, "") }
    }),
];

#[test]
fn b19_a_consumer_that_has_been_idle_for_long_has_its_drain_answered_whatever_it_takes_from() {
    for (what, prepare) in IDLE {
        let mut bench = Bench::new();
        let client = bench.client();
        let attach = prepare(&mut bench, client);
        let raw = bench.raw_begun();
        bench.ask(raw, &attach);
        let got = bench.ask(raw, &credit_of(0, 0, 10)).transfers().len() as u32;
        bench.advance(5_000);
        assert!(bench.hear(raw).is_silent(), "{what}");
        let heard = bench.ask(raw, &draining(0, got, 10 - got));
        assert_eq!(heard.names(), ["flow"], "{what}");
        let flow = heard.flow();
        assert_eq!((flow.link_credit, flow.drain), (Some(0), true), "{what}");
        assert_eq!(flow.delivery_count, Some(10), "{what}");
    }
}

#[test]
fn a_drain_gets_what_is_there_and_then_its_answer() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b"] {
        bench.send(sender, &text(body));
    }
    let raw = bench.raw_receiver("q", 0);
    let heard = bench.ask(raw, &draining(0, 0, 10));
    assert_eq!(heard.names(), ["transfer", "transfer", "flow"]);
    assert_eq!((heard.flow().delivery_count, heard.flow().link_credit), (Some(10), Some(0)));
}

#[test]
fn a_drain_that_ends_with_the_last_credit_is_answered_as_well() {
    // Clients that fetch one message wait for this flow without limit.
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    bench.send(sender, &text("b"));
    let raw = bench.raw_receiver("q", 0);
    let heard = bench.ask(raw, &draining(0, 0, 1));
    assert_eq!(heard.names(), ["transfer", "flow"]);
    assert_eq!((heard.flow().delivery_count, heard.flow().link_credit), (Some(1), Some(0)));
}

#[test]
fn a_drain_does_not_wait_for_messages_that_others_hold() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("held"));
    let holder = bench.receiver(client, "q", 1);
    let held = bench.got(holder);
    let raw = bench.raw_receiver("q", 0);
    assert_eq!(bench.ask(raw, &draining(0, 0, 5)).names(), ["flow"]);
    bench.settle(&held[0], DeliveryState::Released);
    assert!(bench.hear(raw).is_silent(), "the credit is gone");
}

#[test]
fn b8_credit_works_again_after_a_drain() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 0);
    bench.ask(raw, &draining(0, 0, 3));
    bench.send(sender, &text("early"));
    assert!(bench.hear(raw).is_silent());
    bench.advance(1_000);
    let heard = bench.ask(raw, &credit_of(0, 3, 1));
    assert_eq!(heard.transfer().message(), text("early"));
    bench.send(sender, &text("late"));
    assert!(bench.hear(raw).is_silent(), "one message, one credit");
    assert_eq!(bench.ask(raw, &credit_of(0, 4, 2)).transfer().message(), text("late"));
    bench.advance(1_000);
    bench.send(sender, &text("while it waits"));
    let heard = bench.hear(raw);
    assert_eq!(heard.names(), ["transfer"], "nothing is drained any more");
    assert_eq!(heard.transfer().message(), text("while it waits"));
}

#[test]
fn drains_may_follow_one_another_for_ever() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 0);
    let mut seen = 0;
    for round in 0..500u32 {
        if round % 3 == 0 {
            bench.send(sender, &text("m"));
        }
        let flow = bench.ask(raw, &draining(0, seen, round % 5)).flow();
        seen += round % 5;
        assert_eq!((flow.delivery_count, flow.link_credit), (Some(seen), Some(0)), "{round}");
    }
}

#[test]
fn b10_credit_may_be_lowered_without_a_drain() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    assert!(bench.ask(raw, &credit_of(0, 0, 0)).is_silent());
    bench.send(sender, &text("a"));
    assert!(bench.hear(raw).is_silent());
    assert_eq!(bench.ask(raw, &credit_of(0, 0, 1)).names(), ["transfer"]);
}

#[test]
fn b10_what_was_under_way_when_credit_was_lowered_is_a_part_of_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    for body in ["a", "b", "c"] {
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.hear(raw).transfers().len(), 3);
    // It has not seen any of the three yet: less than what is under way is none.
    assert!(bench.ask(raw, &credit_of(0, 0, 2)).is_silent());
    bench.send(sender, &text("d"));
    assert!(bench.hear(raw).is_silent());
    let flow = bench.ask(raw, &Flow { echo: true, ..credit_of(0, 3, 0) }).flow();
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(3), Some(0)), "it was no drain");
    // More than what is under way is the rest.
    assert_eq!(bench.ask(raw, &credit_of(0, 3, 10)).names(), ["transfer"]);
    assert!(bench.ask(raw, &credit_of(0, 3, 3)).is_silent());
    for body in ["e", "f", "g"] {
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.hear(raw).transfers().len(), 2, "one of three was under way");
    assert_eq!(bench.depth("q"), 7, "nothing is lost");
}

#[test]
fn credit_that_was_lowered_lets_others_have_the_message() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    let other = bench.receiver(client, "q", 10);
    bench.say(raw, 0, &credit_of(0, 0, 0));
    bench.send(sender, &text("a"));
    assert_eq!(bench.texts(other), ["a"]);
}

#[test]
fn an_echo_is_answered_with_credit_and_what_is_available() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 0);
    for body in ["a", "b", "c"] {
        bench.send(sender, &text(body));
    }
    let flow = bench.ask(raw, &Flow { echo: true, ..credit_of(0, 0, 0) }).flow();
    assert_eq!((flow.link_credit, flow.available), (Some(0), Some(3)));
    let heard = bench.ask(raw, &Flow { echo: true, ..credit_of(0, 0, 2) });
    assert_eq!(heard.names(), ["flow", "transfer", "transfer"]);
    assert_eq!((heard.flow().link_credit, heard.flow().available), (Some(2), Some(3)));
    let heard = bench.ask(raw, &Flow { drain: true, ..credit_of(0, 2, 5) });
    assert_eq!(heard.names(), ["transfer", "flow"]);
    assert_eq!((heard.flow().link_credit, heard.flow().available), (Some(0), Some(0)));
}

#[test]
fn credit_that_came_with_the_attach_in_one_packet_counts() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    let raw = bench.raw_begun();
    let mut bytes = crate::bench::raw::framed(0, &receiving(0, "q"), b"");
    // The receiver cannot know our delivery count yet.
    let flow = Flow { delivery_count: None, ..credit_of(0, 0, 5) };
    bytes.extend(crate::bench::raw::framed(0, &flow, b""));
    bench.say_bytes(raw, &bytes);
    assert_eq!(bench.hear(raw).names(), ["attach", "transfer"]);
}

#[test]
fn credit_of_one_never_stalls() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 0);
    for round in 0..3_000u32 {
        bench.send(sender, &text(&round.to_string()));
        bench.grant(receiver, 1);
        let got = bench.got(receiver);
        assert_eq!(got.len(), 1, "round {round}");
        assert_eq!(got[0].text(), round.to_string());
        bench.accept(&got);
    }
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn the_largest_credit_is_as_good_as_any() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", u32::MAX);
    for _ in 0..3 {
        bench.send(sender, &text("m"));
    }
    assert_eq!(bench.hear(raw).transfers().len(), 3);
}

#[test]
fn delivery_counts_wrap_around() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut seen = SequenceNo(0);
    let raw = bench.raw_receiver("q", 0);
    // Each drain moves the count by almost a third of all numbers.
    for _ in 0..5 {
        let step = u32::MAX / 3;
        seen += step;
        let before = seen.0.wrapping_sub(step);
        let flow = bench.ask(raw, &draining(0, before, step)).flow();
        assert_eq!(flow.delivery_count, Some(seen.0));
    }
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("after"));
    assert_eq!(bench.ask(raw, &credit_of(0, seen.0, 1)).transfer().message(), text("after"));
}

#[test]
fn no_more_deliveries_are_unsettled_than_the_node_allows() {
    let mut bench = Bench::with(|setup| setup.settings.max_unsettled = 5);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for _ in 0..20 {
        bench.send(sender, &text("m"));
    }
    let raw = bench.raw_receiver("q", 100);
    assert_eq!(bench.hear(raw).transfers().len(), 5);
    assert!(bench.ask(raw, &settled(0, 1, DeliveryState::Accepted)).transfers().len() >= 2);
    bench.say(raw, 0, &settled(0, 100, DeliveryState::Accepted));
    let mut accepted = 0;
    for _ in 0..10 {
        accepted += bench.hear(raw).transfers().len();
        bench.say(raw, 0, &settled(0, 100, DeliveryState::Accepted));
    }
    assert_eq!((accepted, bench.depth("q")), (13, 0), "none was forgotten");
}

#[test]
fn a_link_that_is_full_of_unsettled_deliveries_leaves_messages_to_others() {
    let mut bench = Bench::with(|setup| setup.settings.max_unsettled = 1);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let full = bench.raw_receiver("q", 100);
    bench.send(sender, &text("first"));
    let other = bench.receiver(client, "q", 10);
    bench.send(sender, &text("second"));
    assert_eq!(bench.hear(full).transfers().len(), 1);
    assert_eq!(bench.texts(other), ["second"]);
}

#[test]
fn a_drain_does_not_wait_until_the_receiver_settles_something() {
    let mut bench = Bench::with(|setup| setup.settings.max_unsettled = 2);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for _ in 0..5 {
        bench.send(sender, &text("m"));
    }
    let raw = bench.raw_receiver("q", 0);
    let heard = bench.ask(raw, &draining(0, 0, 10));
    assert_eq!(heard.names(), ["transfer", "transfer", "flow"]);
    assert_eq!((heard.flow().delivery_count, heard.flow().link_credit), (Some(10), Some(0)));
    bench.say(raw, 0, &settled(0, 1, DeliveryState::Accepted));
    assert_eq!(bench.ask(raw, &credit_of(0, 10, 10)).transfers().len(), 2);
}

#[test]
fn competing_receivers_get_their_share() {
    let mut bench = Bench::new();
    let client = bench.client();
    let receivers: Vec<_> = (0..4).map(|_| bench.receiver(client, "q", 1_000)).collect();
    let sender = bench.sender(client, "q");
    for _ in 0..400 {
        bench.send(sender, &text("m"));
    }
    for receiver in receivers {
        assert_eq!(bench.got(receiver).len(), 100);
    }
}

#[test]
fn b17_a_link_without_credit_can_be_seen_with_the_time_since_when() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let attach = Attach { name: "blocked".into(), ..receiving(0, "q") };
    bench.ask(raw, &attach);
    let record = bench.node.management.directory().connections().remove(0).links().remove(0).1;
    assert_eq!(record.without_credit_since_ms.get(), bench.now.mono_ms);
    bench.say(raw, 0, &credit_of(0, 0, 10));
    assert_eq!((record.without_credit_since_ms.get(), record.credit.get()), (0, 10));
    bench.advance(5_000);
    bench.say(raw, 0, &credit_of(0, 0, 0));
    assert_eq!(record.without_credit_since_ms.get(), bench.now.mono_ms);
}

#[test]
fn b17_what_is_unsettled_on_a_link_can_be_seen_and_goes_down_again() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    for _ in 0..3 {
        bench.send(sender, &text("m"));
    }
    let connections = bench.node.management.directory().connections();
    let record = connections[1].links().remove(0).1;
    assert_eq!((record.unsettled.get(), record.messages.get(), record.credit.get()), (3, 3, 7));
    bench.say(raw, 0, &settled(0, 1, DeliveryState::Accepted));
    assert_eq!(record.unsettled.get(), 1);
}
