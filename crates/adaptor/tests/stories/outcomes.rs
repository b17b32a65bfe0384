//! What becomes of a message after its receiver has said so.

use crate::bench::raw::{credit_of, receiving, settled};
use crate::bench::{Bench, Client, Link, text};
use mochila_wire::message::Header;
use mochila_wire::performative::{Attach, Detach, Disposition, Role};
use mochila_wire::{AmqpError, DeliveryState, Map, Message, Source, Symbol, Value, condition};

struct Story {
    bench: Bench,
    client: Client,
    sender: Link,
    receiver: Link,
}

/// A queue with these messages, all of which a receiver holds.
fn holding(bodies: &[&str]) -> (Story, Vec<crate::bench::Got>) {
    holding_of(Source::at("q"), bodies)
}

fn holding_of(source: Source, bodies: &[&str]) -> (Story, Vec<crate::bench::Got>) {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in bodies {
        bench.send(sender, &text(body));
    }
    let receiver = bench.receiver_of(client, source, 0);
    bench.grant(receiver, bodies.len() as u32);
    let got = bench.got(receiver);
    assert_eq!(got.len(), bodies.len());
    (Story { bench, client, sender, receiver }, got)
}

impl Story {
    /// The messages that a newcomer gets.
    fn next(&mut self) -> Vec<Message> {
        let client = self.bench.client();
        let other = self.bench.receiver(client, "q", 100);
        self.bench.got(other).iter().map(|got| got.message()).collect()
    }
}

fn header_of(message: &Message) -> Header {
    message.header.unwrap_or_default()
}

#[test]
fn an_accepted_message_is_gone() {
    let (mut story, got) = holding(&["a", "b"]);
    story.bench.settle(&got[0], DeliveryState::Accepted);
    assert_eq!(story.bench.depth("q"), 1);
    assert_eq!(story.bench.numbers("q").unacked_messages, 1);
}

#[test]
fn a_rejected_message_is_gone_and_counted() {
    let (mut story, got) = holding(&["a"]);
    let error = AmqpError::new(Symbol::from_static("app:bad"), "cannot read it");
    story.bench.settle(&got[0], DeliveryState::rejected(error));
    let numbers = story.bench.numbers("q");
    assert_eq!((numbers.msg_depth, numbers.discards_subscriber), (0, 1));
}

#[test]
fn a_released_message_comes_again_as_if_nothing_had_happened() {
    let (mut story, got) = holding(&["a"]);
    story.bench.settle(&got[0], DeliveryState::Released);
    let again = story.next().remove(0);
    assert_eq!(again, text("a"), "byte for byte, without a header that it never had");
}

#[test]
fn released_messages_keep_their_place_before_later_ones() {
    let (mut story, got) = holding(&["a", "b", "c"]);
    let sender = story.sender;
    story.bench.send(sender, &text("d"));
    for index in [2, 0, 1] {
        story.bench.settle(&got[index], DeliveryState::Released);
    }
    let bodies: Vec<_> = story.next().iter().map(|m| m.body.content().unwrap()).collect();
    assert_eq!(bodies, [b"a", b"b", b"c", b"d"]);
}

#[test]
fn a_failed_delivery_is_counted_in_the_header() {
    let (mut story, got) = holding(&["a"]);
    story.bench.settle(&got[0], DeliveryState::modified(true, false));
    let again = story.next().remove(0);
    assert_eq!(header_of(&again).delivery_count, 1);
    assert_eq!(again.body, text("a").body);
}

#[test]
fn deliveries_that_failed_add_up_with_those_before_this_broker() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = text("a");
    message.header_mut().delivery_count = 4;
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 0);
    for expected in 4..7 {
        bench.grant(receiver, 1);
        let got = bench.got(receiver);
        assert_eq!(header_of(&got[0].message()).delivery_count, expected);
        bench.settle(&got[0], DeliveryState::modified(true, false));
    }
}

#[test]
fn a_modified_message_that_did_not_fail_is_not_counted() {
    let (mut story, got) = holding(&["a"]);
    story.bench.settle(&got[0], DeliveryState::modified(false, false));
    assert_eq!(story.next(), [text("a")]);
}

#[test]
fn a_message_that_claims_a_first_acquirer_has_one_only_once() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let mut message = text("a");
    message.header_mut().first_acquirer = true;
    bench.send(sender, &message);
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver);
    assert!(header_of(&got[0].message()).first_acquirer);
    bench.settle(&got[0], DeliveryState::Released);
    bench.grant(receiver, 1);
    let got = bench.got(receiver);
    assert!(!header_of(&got[0].message()).first_acquirer);
    assert_eq!(header_of(&got[0].message()).delivery_count, 0);
}

#[test]
fn annotations_of_modified_are_there_at_the_next_delivery() {
    let (mut story, got) = holding(&["a"]);
    let added = Map::new().with("x-opt-why", "no stock").with("x-opt-times", 3u32);
    let state = DeliveryState::Modified {
        delivery_failed: true,
        undeliverable_here: false,
        message_annotations: Some(added),
    };
    story.bench.settle(&got[0], state);
    let again = story.next().remove(0);
    assert_eq!(again.message_annotation("x-opt-why"), Some(&Value::from("no stock")));
    assert_eq!(again.message_annotation("x-opt-times"), Some(&Value::Uint(3)));
    assert_eq!(header_of(&again).delivery_count, 1);
    assert_eq!(again.body, text("a").body);
}

#[test]
fn a_message_that_is_undeliverable_here_goes_to_somebody_else() {
    let (mut story, got) = holding(&["a"]);
    story.bench.settle(&got[0], DeliveryState::modified(true, true));
    story.bench.grant(story.receiver, 10);
    assert_eq!(story.bench.got(story.receiver), []);
    let sender = story.sender;
    story.bench.send(sender, &text("b"));
    assert_eq!(story.bench.texts(story.receiver), ["b"], "others are not affected");
    assert_eq!(header_of(&story.next()[0]).delivery_count, 1);
}

#[test]
fn undeliverable_here_is_over_when_the_receiver_comes_back() {
    let (mut story, got) = holding(&["a"]);
    story.bench.settle(&got[0], DeliveryState::modified(false, true));
    story.bench.close_link(story.receiver);
    let again = story.bench.receiver(story.client, "q", 1);
    assert_eq!(story.bench.texts(again), ["a"]);
}

#[test]
fn what_a_link_holds_when_it_ends_is_released() {
    for ending in ["close", "detach", "end"] {
        let (mut story, _) = holding(&["a", "b"]);
        match ending {
            "close" => story.bench.close_link(story.receiver),
            "detach" => {
                let link = story.bench.link_id(story.receiver);
                story.bench.engine(story.client).detach(link, false, None);
                story.bench.run();
            }
            "end" => {
                let session = story.bench.session(story.client);
                story.bench.engine(story.client).end(session, None);
                story.bench.run();
            }
            _ => unreachable!("all endings are above"),
        }
        assert_eq!(story.next(), [text("a"), text("b")], "{ending}");
    }
}

#[test]
fn what_a_receiver_holds_when_its_connection_breaks_counts_as_delivered_in_vain() {
    let (mut story, _) = holding(&["a", "b"]);
    story.bench.kill(story.client);
    let counts = story.next().into_iter().map(|message| message.header.unwrap().delivery_count);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn the_default_outcome_of_the_source_applies_when_the_link_ends() {
    for is_killed in [false, true] {
        let source = Source {
            default_outcome: Some(DeliveryState::modified(true, false)),
            ..Source::at("q")
        };
        let (mut story, _) = holding_of(source, &["a"]);
        let answer = story.bench.answer(story.receiver).source.unwrap();
        assert_eq!(answer.default_outcome, Some(DeliveryState::modified(true, false)));
        match is_killed {
            true => story.bench.kill(story.client),
            false => story.bench.close_link(story.receiver),
        }
        assert_eq!(header_of(&story.next()[0]).delivery_count, 1);
    }
}

#[test]
fn the_default_outcome_applies_where_a_delivery_is_settled_without_one() {
    let cases = [
        (None, 1, 0),
        (Some(DeliveryState::Accepted), 0, 0),
        (Some(DeliveryState::modified(true, false)), 1, 1),
    ];
    for (default_outcome, left, count) in cases {
        let mut bench = Bench::new();
        let client = bench.client();
        let sender = bench.sender(client, "q");
        bench.send(sender, &text("a"));
        let raw = bench.raw_begun();
        let source = Source { default_outcome, ..Source::at("q") };
        bench.ask(raw, &Attach { source: Some(source), ..receiving(0, "q") });
        bench.ask(raw, &credit_of(0, 0, 1));
        let unsaid = Disposition { state: None, ..settled(0, 0, DeliveryState::Accepted) };
        bench.say(raw, 0, &unsaid);
        assert_eq!((bench.depth("q"), bench.numbers("q").unacked_messages), (left, 0));
        bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });
        if left > 0 {
            let receiver = bench.receiver(client, "q", 1);
            assert_eq!(header_of(&bench.got(receiver)[0].message()).delivery_count, count);
        }
    }
}

#[test]
fn received_is_no_outcome() {
    let (mut story, got) = holding(&["a"]);
    let received = DeliveryState::Received { section_number: 2, section_offset: 0 };
    story.bench.conclude(&got[0], received, false);
    assert_eq!(story.bench.numbers("q").unacked_messages, 1, "it is still held");
    story.bench.settle(&got[0], DeliveryState::Accepted);
    assert_eq!(story.bench.depth("q"), 0);
}

#[test]
fn an_outcome_within_a_transaction_that_is_not_there_ends_the_link() {
    for is_settled in [false, true] {
        let (mut story, got) = holding(&["a"]);
        let state = DeliveryState::Transactional {
            txn_id: Box::from(&b"txn"[..]),
            outcome: Some(Box::new(DeliveryState::Accepted)),
        };
        story.bench.conclude(&got[0], state, is_settled);
        let error = story.bench.detach_error(story.receiver);
        assert_eq!(error.condition, condition::TRANSACTION_UNKNOWN_ID);
        assert!(error.description.unwrap().contains("transaction"));
        assert_eq!(story.next(), [text("a")], "it was not accepted");
    }
}

#[test]
fn a_message_within_a_transaction_that_is_not_there_ends_the_link() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let state = DeliveryState::Transactional { txn_id: Box::from(&b"txn"[..]), outcome: None };
    let delivery = mochila_engine::Delivery { state: Some(&state), ..Default::default() };
    bench.deliver(sender, &delivery, &mochila_wire::Encode::to_bytes(&text("a")));
    assert_eq!(bench.detach_error(sender).condition, condition::TRANSACTION_UNKNOWN_ID);
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn one_disposition_settles_a_range_over_links_and_queues() {
    let mut bench = Bench::new();
    let client = bench.client();
    let raw = bench.raw_begun();
    for (handle, queue) in ["one", "two"].into_iter().enumerate() {
        let sender = bench.sender(client, queue);
        bench.say(raw, 0, &receiving(handle as u32, queue));
        bench.say(raw, 0, &credit_of(handle as u32, 0, 10));
        for _ in 0..3 {
            bench.send(sender, &text("m"));
        }
    }
    bench.say(raw, 0, &settled(1, 4, DeliveryState::Accepted));
    assert_eq!((bench.depth("one"), bench.depth("two")), (1, 1));
    bench.say(raw, 0, &settled(0, u32::MAX / 2, DeliveryState::Released));
    assert_eq!(bench.numbers("one").releases + bench.numbers("two").releases, 2);
}

#[test]
fn a_disposition_may_come_twice_or_for_what_was_never_sent() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    bench.send(sender, &text("a"));
    bench.send(sender, &text("b"));
    for _ in 0..3 {
        bench.say(raw, 0, &settled(0, 0, DeliveryState::Accepted));
        bench.say(raw, 0, &settled(500, 600, DeliveryState::Accepted));
    }
    assert_eq!(bench.depth("q"), 1);
    bench.hear(raw);
    bench.say(raw, 0, &settled(0, 1, DeliveryState::Released));
    assert_eq!(bench.depth("q"), 1, "what is settled stays settled");
    assert_eq!(bench.hear(raw).transfer().message(), text("b"));
}

#[test]
fn a_disposition_of_the_senders_role_says_nothing_about_what_it_receives() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = bench.raw_receiver("q", 10);
    bench.send(sender, &text("a"));
    let own = Disposition { role: Role::Sender, ..settled(0, 0, DeliveryState::Accepted) };
    bench.say(raw, 0, &own);
    assert_eq!(bench.depth("q"), 1);
}
