//! A link that is attached again somewhere else (part 2, 2.6.1).

use crate::bench::raw::{credit_of, receiving, sending};
use crate::bench::{Bench, Client, Link, Raw, text};
use mochila_engine::{AttachRequest, ConnectionConfig};
use mochila_wire::performative::{Begin, Open};
use mochila_wire::{DeliveryState, Source, Target, condition};

fn stealing() -> Bench {
    Bench::with(|setup| setup.settings.steal_across_connections = true)
}

fn receiver_named(bench: &mut Bench, client: Client, name: &str) -> Link {
    let request = AttachRequest::receiver(name, Source::at("q"), Target::default().into());
    let link = bench.attach(client, request);
    bench.grant(link, 10);
    link
}

fn connection_of(bench: &mut Bench, container: &str) -> Raw {
    let raw = bench.raw_open(Open::new(container));
    bench.say(raw, 0, &Begin::new(0, 1_000, 1_000));
    bench.hear(raw);
    raw
}

#[test]
fn a_link_attached_again_on_the_same_connection_is_stolen_from_its_old_end() {
    let mut bench = stealing();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    let raw = bench.raw_receiver("q", 10);
    assert_eq!(bench.hear(raw).transfer().message(), text("a"));
    let mut again = receiving(5, "q");
    again.name = receiving(0, "q").name;
    let heard = bench.ask(raw, &again);
    assert_eq!(heard.detach().error.unwrap().condition, condition::STOLEN);
    assert_eq!(heard.attaches().len(), 1);
    assert_eq!(bench.numbers("q").consumer_count, 1);
    bench.say(raw, 0, &credit_of(5, 0, 1));
    assert_eq!(bench.hear(raw).transfer().message(), text("a"), "what the old one held is free");
}

#[test]
fn two_connections_of_a_container_may_use_one_name_for_two_links_unless_the_node_is_strict() {
    // The Python client of Proton makes such names, and means two links.
    let mut bench = Bench::new();
    let (one, two) = (connection_of(&mut bench, "same"), connection_of(&mut bench, "same"));
    bench.ask(one, &receiving(0, "q"));
    bench.ask(two, &receiving(0, "q"));
    assert!(bench.hear(one).is_silent());
    assert_eq!(bench.numbers("q").consumer_count, 2);
}

#[test]
fn a_link_attached_again_on_another_connection_of_its_container_is_stolen() {
    let mut bench = stealing();
    let (old, new) = (connection_of(&mut bench, "same"), connection_of(&mut bench, "same"));
    bench.ask(old, &receiving(0, "q"));
    let heard = bench.ask(new, &receiving(0, "q"));
    assert_eq!(heard.names(), ["attach"]);
    let error = bench.hear(old).detach().error.unwrap();
    assert_eq!(error.condition, condition::STOLEN);
    assert!(error.description.unwrap().contains("'receiver-0-q'"));
    assert_eq!(bench.numbers("q").consumer_count, 1);
}

#[test]
fn what_a_stolen_link_held_is_delivered_to_its_new_end() {
    let mut bench = stealing();
    let name = |name: &str| ConnectionConfig::new(name);
    let (old, new) = (bench.client_with(name("same")), bench.client_with(name("same")));
    let other = bench.client();
    let sender = bench.sender(other, "q");
    bench.send(sender, &text("a"));
    let first = receiver_named(&mut bench, old, "link");
    let held = bench.got(first).remove(0);
    let second = receiver_named(&mut bench, new, "link");
    assert_eq!(bench.detach_error(first).condition, condition::STOLEN);
    assert_eq!(bench.texts(second), ["a"]);
    bench.settle(&held, DeliveryState::Accepted);
    assert_eq!(bench.depth("q"), 1, "the old end has no say any more");
}

#[test]
fn the_two_directions_of_a_name_are_two_links() {
    let mut bench = stealing();
    let (old, new) = (connection_of(&mut bench, "same"), connection_of(&mut bench, "same"));
    let mut attach = receiving(0, "q");
    attach.name = "link".into();
    bench.ask(old, &attach);
    let mut attach = sending(0, "q");
    attach.name = "link".into();
    bench.ask(new, &attach);
    assert!(bench.hear(old).is_silent());
}

#[test]
fn links_of_other_containers_are_left_alone_whatever_they_are_called() {
    let mut bench = stealing();
    let (one, other) = (connection_of(&mut bench, "one"), connection_of(&mut bench, "other"));
    bench.ask(one, &receiving(0, "q"));
    bench.ask(other, &receiving(0, "q"));
    assert!(bench.hear(one).is_silent());
    assert_eq!(bench.numbers("q").consumer_count, 2);
}

#[test]
fn an_attach_that_is_refused_steals_nothing() {
    let mut bench = stealing();
    let (old, new) = (connection_of(&mut bench, "same"), connection_of(&mut bench, "same"));
    bench.ask(old, &receiving(0, "q"));
    let mut attach = receiving(0, "news");
    attach.name = receiving(0, "q").name;
    attach.source.as_mut().unwrap().capabilities = vec!["topic".into()];
    assert_eq!(bench.ask(new, &attach).names(), ["attach", "detach"]);
    assert!(bench.hear(old).is_silent());
}

#[test]
fn a_link_may_be_stolen_back_and_forth() {
    let mut bench = stealing();
    let (one, two) = (connection_of(&mut bench, "same"), connection_of(&mut bench, "same"));
    for handle in 0..20 {
        for raw in [one, two] {
            let mut attach = sending(handle, "q");
            attach.name = "link".into();
            assert_eq!(bench.ask(raw, &attach).attaches().len(), 1);
            assert_eq!(bench.numbers("q").producer_count, 1);
        }
    }
}
