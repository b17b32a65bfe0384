//! Purging queues and moving their messages, as an operator asks for it.

use crate::desk::{Ask, Desk, ask};
use crate::standing::fill;
use mochila_broker::{BatchBuilder, MessageMeta};
use mochila_wire::section::scan;
use mochila_wire::{Encode, Limits, Map, Message, Value};

/// Sends messages with these values of an application property.
fn send(desk: &Desk, name: &str, colours: &[Value]) {
    let queue = desk.broker.queue(name).unwrap();
    let mut builder = BatchBuilder::new();
    for colour in colours {
        let mut message = Message::of_value("body");
        message.set_application_property("colour", colour.clone());
        let bytes = message.to_bytes();
        let sections = scan(&bytes, &Limits::DEFAULT).unwrap();
        builder.push_owned(bytes, &sections, MessageMeta::default());
    }
    let batch = builder.finish(&[], desk.broker.budget()).unwrap();
    queue.enqueue(desk.now, batch).1.perform();
}

fn header_match(key: &str, value: &str) -> Map {
    let parameters = Map::new().with("header_key", key).with("header_value", value);
    Map::new().with("filter_type", "header_match_str").with("filter_params", parameters)
}

fn purge(filter: impl Into<Value>) -> Ask {
    ask("PURGE").kind("queue").name("q").with("filter", filter)
}

fn move_to(destination: &str) -> Ask {
    ask("MOVE").kind("queue").name("q").with("destination", destination)
}

#[test]
fn a_purge_with_a_selector_removes_only_what_it_is_true_for() {
    let mut desk = Desk::new();
    desk.create("q");
    send(&desk, "q", &["red".into(), "blue".into(), "red".into(), "red".into()]);
    let told = desk.tell(purge("colour = 'red'").with("count", 2u32));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(2)));
    let told = desk.tell(purge("colour = 'red'"));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(1)));
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(1));
}

#[test]
fn how_many_may_be_said_under_the_name_that_the_qpid_tools_use() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 6);
    let purge = || ask("PURGE").kind("queue").name("q");
    let told = desk.tell(purge().with("request", 2u32));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(2)));
    let reroute = ask("REROUTE").kind("queue").name("q").with("exchange", "amq.fanout");
    let told = desk.tell(reroute.with("request", 1u32));
    assert_eq!(told.map().get("rerouted"), Some(&Value::Ulong(0)), "nothing is bound there");
    let told = desk.tell(purge().with("request", 1u32).with("count", 2u32));
    assert_eq!(told.status, 400);
    let told = desk.tell(purge().with("request", 0u32));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(4)), "0 is no limit");
}

#[test]
fn a_filter_may_be_a_map_as_the_qpid_tools_send_it() {
    let mut desk = Desk::new();
    desk.create("q");
    send(&desk, "q", &["7".into(), 7u32.into(), 8u32.into(), true.into(), "it's".into()]);
    for (value, purged) in [("7", 2), ("True", 1), ("it's", 1), ("red", 0)] {
        let told = desk.tell(purge(header_match("colour", value)));
        assert_eq!(told.map().get("purged"), Some(&Value::Ulong(purged)), "{value}");
    }
    let told = desk.tell(purge(Map::new()));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(1)), "no filter at all");
}

#[test]
fn a_filter_that_is_none_is_refused_and_nothing_happens() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 1);
    let wrong = desk.tell(purge("colour ="));
    assert_eq!(wrong.status, 400);
    assert!(wrong.description.starts_with("the selector is wrong at byte"), "{wrong:?}");
    assert_eq!(desk.tell(purge(5u32)).status, 400);
    assert_eq!(desk.tell(purge(Map::new().with("filter_type", "other"))).status, 400);
    let half = Map::new().with("filter_type", "header_match_str");
    assert_eq!(desk.tell(purge(half)).status, 400);
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(1));
}

#[test]
fn messages_are_moved_and_whoever_waits_for_them_is_woken() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.create("other");
    fill(&desk, "q", 5);
    let other = desk.broker.queue("other").unwrap();
    let (_, bell) = desk.connect("receiver");
    let consumer = desk.subscribe(&other, &bell, 4);
    assert_eq!(desk.take(&other, consumer, 10), 0);
    let told = desk.tell(move_to("other").with("count", 2u32));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(told.map().get("moved"), Some(&Value::Ulong(2)));
    assert_eq!(told.map().get("refused"), Some(&Value::Null));
    assert_eq!(*bell.keys.lock().unwrap(), [4]);
    assert_eq!(desk.take(&other, consumer, 10), 2);
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(3));
}

#[test]
fn a_move_that_ends_early_says_why_and_how_many_went() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.tell(ask("CREATE").kind("queue").name("small").with("max-count", 3u32));
    fill(&desk, "q", 5);
    let told = desk.tell(move_to("small"));
    assert_eq!(told.map().get("moved"), Some(&Value::Ulong(3)));
    let reason = "the queue holds as many messages as it may";
    assert_eq!(told.map().get("refused"), Some(&reason.into()));
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(2));
}

#[test]
fn a_move_leaves_what_the_destination_keeps_out_and_says_so() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.tell(ask("CREATE").kind("queue").name("red").with("filter", "colour = 'red'"));
    send(&desk, "q", &["blue".into(), "red".into(), "blue".into()]);
    let told = desk.tell(move_to("red").with("count", 1u32));
    assert_eq!(told.map().get("moved"), Some(&Value::Ulong(1)));
    let reason = "a filter or no-local of the queue keeps the message out";
    assert_eq!(told.map().get("refused"), Some(&reason.into()));
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(2));
    assert_eq!(desk.read("queue", "red", "discardsFilter"), Value::Ulong(0));
}

#[test]
fn a_move_needs_another_queue_that_is_there() {
    let mut desk = Desk::new();
    desk.create("q");
    let told = desk.tell(ask("MOVE").kind("queue").name("q"));
    assert_eq!(told.status, 400);
    assert_eq!(desk.tell(move_to("none")).outcome(), (404, "there is no queue 'none'"));
    let told = desk.tell(move_to("q"));
    let sentence = "the messages of queue 'q' cannot go to where they are";
    assert_eq!(told.outcome(), (400, sentence));
    assert_eq!(desk.tell(ask("MOVE").kind("queue").name("none")).status, 404);
}

#[test]
fn messages_are_sent_on_to_an_exchange_and_those_without_a_way_stay() {
    let mut desk = Desk::new();
    desk.tell(ask("CREATE").kind("queue").name("q").with("alternate-exchange", "amq.match"));
    desk.create("red");
    let binding = ask("CREATE").kind("binding").name("amq.match/red/k");
    desk.tell(binding.with("x-match", "all").with("colour", "red"));
    send(&desk, "q", &["red".into(), "blue".into(), "red".into(), "red".into()]);
    let reroute = || ask("REROUTE").kind("queue").name("q");
    let told = desk.tell(reroute().with("exchange", "amq.match").with("count", 1u32));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(told.map().get("rerouted"), Some(&Value::Ulong(1)));
    assert_eq!(told.map().get("refused"), Some(&Value::Null));
    let told = desk.tell(reroute().with("useAltExchange", true));
    assert_eq!(told.map().get("rerouted"), Some(&Value::Ulong(2)));
    let reason = "no queue is bound for the message";
    assert_eq!(told.map().get("refused"), Some(&reason.into()));
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(1));
    assert_eq!(desk.read("queue", "q", "reroutes"), Value::Ulong(3));
    assert_eq!(desk.read("queue", "red", "msgDepth"), Value::Ulong(3));
    assert_eq!(desk.read("exchange", "amq.match", "msgDrops"), Value::Ulong(0));
}

#[test]
fn messages_are_sent_on_only_to_an_exchange_that_is_there() {
    let mut desk = Desk::new();
    desk.create("q");
    let reroute = || ask("REROUTE").kind("queue").name("q");
    assert_eq!(desk.tell(reroute()).status, 400);
    let both = reroute().with("exchange", "amq.match").with("useAltExchange", true);
    let told = desk.tell(both);
    assert_eq!(told.status, 400);
    assert!(told.description.ends_with("not both"), "{}", told.description);
    let told = desk.tell(reroute().with("useAltExchange", true));
    assert_eq!(told.outcome(), (409, "queue 'q' has no alternate exchange"));
    let told = desk.tell(reroute().with("exchange", "none"));
    assert_eq!(told.outcome(), (404, "there is no exchange 'none'"));
}

#[test]
fn two_queues_change_places_and_back_again() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.create("spare");
    let redirect = |target: &str| ask("REDIRECT").kind("queue").name("q").with("target", target);
    assert_eq!(desk.tell(redirect("spare")).outcome(), (200, "OK"));
    assert_eq!(desk.read("queue", "spare", "redirectPeer"), "q".into());
    fill(&desk, "q", 2);
    assert_eq!(desk.read("queue", "spare", "msgDepth"), Value::Ulong(2));
    let sentence = "queue 'q' cannot be redirected: its messages go to queue 'spare' already";
    assert_eq!(desk.tell(redirect("spare")).outcome(), (409, sentence));
    assert_eq!(desk.tell(redirect("none")).status, 404);
    assert_eq!(desk.tell(redirect("")).outcome(), (200, "OK"));
    assert_eq!(desk.read("queue", "q", "redirectPeer"), Value::Null);
    assert_eq!(desk.tell(redirect("")).status, 409);
}
