//! Looking at messages that stay where they are.

use crate::bench::raw::{credit_of, receiving};
use crate::bench::{Bench, Client, Link, text};
use mochila_engine::AttachRequest;
use mochila_wire::performative::{Attach, Flow, SenderSettleMode};
use mochila_wire::terminus::DISTRIBUTION_COPY;
use mochila_wire::{DeliveryState, Source, Target};

fn copies(address: &str) -> Source {
    Source { distribution_mode: Some(DISTRIBUTION_COPY), ..Source::at(address) }
}

fn browser(bench: &mut Bench, client: Client, credit: u32) -> Link {
    let request = AttachRequest {
        snd_settle_mode: SenderSettleMode::Settled,
        ..AttachRequest::receiver("browser", copies("q"), Target::default().into())
    };
    let link = bench.attach(client, request);
    bench.grant(link, credit);
    link
}

fn filled(bodies: &[&str]) -> (Bench, Client, Link) {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in bodies {
        bench.send(sender, &text(body));
    }
    (bench, client, sender)
}

#[test]
fn a_browser_sees_all_messages_and_takes_none() {
    let (mut bench, client, _) = filled(&["a", "b", "c"]);
    let browser = browser(&mut bench, client, 10);
    let answer = bench.answer(browser);
    assert_eq!(answer.source.unwrap().distribution_mode, Some(DISTRIBUTION_COPY));
    assert_eq!(answer.snd_settle_mode, SenderSettleMode::Settled);
    let got = bench.got(browser);
    assert!(got.iter().all(|got| got.settled));
    assert_eq!(got.iter().map(|got| got.text()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(bench.depth("q"), 3);
    let taker = bench.receiver(client, "q", 10);
    assert_eq!(bench.texts(taker), ["a", "b", "c"]);
}

#[test]
fn a_browser_learns_by_a_drain_that_it_has_seen_everything() {
    let (mut bench, ..) = filled(&["a", "b"]);
    let raw = bench.raw_begun();
    let attach = Attach {
        source: Some(copies("q")),
        snd_settle_mode: SenderSettleMode::Settled,
        ..receiving(0, "q")
    };
    bench.ask(raw, &attach);
    let heard = bench.ask(raw, &Flow { drain: true, ..credit_of(0, 0, 10) });
    assert_eq!(heard.names(), ["transfer", "transfer", "flow"]);
    assert_eq!((heard.flow().delivery_count, heard.flow().link_credit), (Some(10), Some(0)));
}

#[test]
fn a_browser_that_does_not_want_settled_messages_still_leaves_them() {
    let (mut bench, client, _) = filled(&["a", "b", "c"]);
    let browser = bench.receiver_of(client, copies("q"), 3);
    let got = bench.got(browser);
    assert!(got.iter().all(|got| !got.settled));
    bench.settle(&got[0], DeliveryState::Accepted);
    bench.settle(&got[1], DeliveryState::Rejected { error: None });
    bench.settle(&got[2], DeliveryState::modified(true, true));
    assert_eq!(bench.depth("q"), 3);
    let taker = bench.receiver(client, "q", 3);
    let got = bench.got(taker);
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|got| got.message().header.is_none()), "nobody has tried in vain");
}

#[test]
fn a_browser_goes_on_with_what_comes_later() {
    let (mut bench, client, sender) = filled(&["a"]);
    let browser = browser(&mut bench, client, 10);
    assert_eq!(bench.texts(browser), ["a"]);
    bench.send(sender, &text("b"));
    assert_eq!(bench.texts(browser), ["b"]);
}

#[test]
fn a_browser_does_not_see_what_others_hold() {
    let (mut bench, client, _) = filled(&["a", "b"]);
    let holder = bench.receiver(client, "q", 1);
    assert_eq!(bench.texts(holder), ["a"]);
    let browser = browser(&mut bench, client, 10);
    assert_eq!(bench.texts(browser), ["b"]);
}

#[test]
fn a_browser_does_not_keep_others_from_an_exclusive_link() {
    let (mut bench, client, _) = filled(&["a"]);
    let browser = browser(&mut bench, client, 10);
    let source = Source {
        dynamic_node_properties: Some(mochila_wire::Map::new().with("exclusive", true)),
        ..Source::at("q")
    };
    let exclusive = bench.receiver_of(client, source, 1);
    assert_eq!(bench.texts(exclusive), ["a"]);
    assert_eq!(bench.detached(browser), None);
}
