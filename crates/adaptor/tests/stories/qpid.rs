//! What the Qpid C++ messaging client does over AMQP 1.0, and what it waits for.

use crate::bench::raw::{credit_of, framed, receiving, sending, settled, whole};
use crate::bench::{Bench, Raw, text};
use mochila_wire::performative::{Attach, Begin, Close, Detach, End, Flow, Open};
use mochila_wire::{DeliveryState, Described, Encode, Map, Message, Symbol, Value, condition};

/// A connection with a session as the client opens it.
fn connected(bench: &mut Bench) -> Raw {
    let properties = Map::new()
        .with("qpid.client_process", "qpid-receive")
        .with("qpid.client_pid", Value::Int(4711))
        .with("qpid.client_ppid", Value::Int(1));
    let open = Open { channel_max: 32_767, properties: Some(properties), ..Open::new("uuid") };
    let raw = bench.raw_open(open);
    bench.say(raw, 0, &Begin::new(0, 2_147_483_647, 2_147_483_647));
    bench.hear(raw);
    raw
}

/// A receiver with `--capacity`: credit in batches.
fn receiver(bench: &mut Bench, raw: Raw, credit: u32) {
    let mut attach = receiving(0, "q");
    attach.source.as_mut().unwrap().capabilities = vec!["queue".into()];
    let answer = bench.ask(raw, &attach).attach();
    assert!(answer.source.unwrap().capabilities.contains(&Symbol::from_static("queue")));
    bench.say(raw, 0, &credit_of(0, 0, credit));
}

#[test]
fn a_fetch_that_times_out_drains_and_waits_for_the_flow() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    receiver(&mut bench, raw, 0);
    for round in 1..4 {
        let seen = round - 1;
        assert!(bench.ask(raw, &credit_of(0, seen, 1)).is_silent());
        bench.advance(1_000);
        let flow = bench.ask(raw, &Flow { drain: true, ..credit_of(0, seen, 1) }).flow();
        assert_eq!((flow.link_credit, flow.delivery_count), (Some(0), Some(round)));
        assert!(flow.drain);
    }
}

#[test]
fn closing_a_receiver_with_capacity_drains_releases_and_detaches() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["a", "b"] {
        bench.send(sender, &text(body));
    }
    let raw = connected(&mut bench);
    receiver(&mut bench, raw, 500);
    assert_eq!(bench.hear(raw).transfers().len(), 2);
    let flow = bench.ask(raw, &Flow { drain: true, ..credit_of(0, 2, 498) }).flow();
    assert_eq!((flow.link_credit, flow.delivery_count), (Some(0), Some(500)));
    bench.say(raw, 0, &settled(0, 1, DeliveryState::Released));
    let detach = bench.ask(raw, &Detach { handle: 0, closed: true, error: None }).detach();
    assert!(detach.closed && detach.error.is_none());
    assert!(bench.ask(raw, &End { error: None }).names().contains(&"end"));
    assert!(bench.ask(raw, &Close { error: None }).names().contains(&"close"));
    assert_eq!((bench.depth("q"), bench.numbers("q").unacked_messages), (2, 0));
}

#[test]
fn an_acknowledgement_every_thousand_messages_is_one_range() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let raw = connected(&mut bench);
    receiver(&mut bench, raw, 2_000);
    for _ in 0..1_500 {
        bench.send(sender, &text("m"));
    }
    assert_eq!(bench.hear(raw).transfers().len(), 1_500);
    bench.say(raw, 0, &settled(0, 999, DeliveryState::Accepted));
    assert_eq!(bench.depth("q"), 500);
    bench.say(raw, 0, &settled(1_000, 1_499, DeliveryState::Accepted));
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn a_node_is_created_as_an_address_string_says() {
    // srcQ1; {create: always, node: {type: queue, x-declare: {arguments: {…}}}}
    let mut bench = Bench::with(|setup| setup.broker.patterns = Vec::new());
    let raw = connected(&mut bench);
    let mut attach = sending(0, "srcQ1");
    let Some(mochila_wire::TargetArchetype::Target(target)) = &mut attach.target else {
        panic!("a target was asked for")
    };
    target.capabilities = vec!["queue".into(), "create-on-demand".into()];
    let mut properties = Map::new();
    properties.insert(Symbol::from_static("supported-dist-modes"), Symbol::from_static("move"));
    properties.insert(Symbol::from_static("durable"), true);
    properties.insert(Symbol::from_static("auto-delete"), "False");
    properties.insert(Symbol::from_static("qpid.max_count"), Value::Long(4_000_000));
    target.dynamic_node_properties = Some(properties);
    let answer = bench.ask(raw, &attach);
    assert_eq!(answer.detaches(), []);
    let target = answer.attach().target.as_ref().and_then(|t| t.target()).unwrap().clone();
    let capabilities: Vec<_> = target.capabilities.iter().map(Symbol::as_str).collect();
    assert!(capabilities.contains(&"queue") && capabilities.contains(&"create-on-demand"));
    let properties = target.dynamic_node_properties.unwrap();
    assert_eq!(properties.get("durable"), Some(&Value::Bool(false)), "nothing survives a restart");
    assert_eq!(properties.get("qpid.max_count"), Some(&Value::Ulong(4_000_000)));
    assert!(!bench.queue("srcQ1").settings().durable);
}

#[test]
fn a_filter_that_it_asks_for_may_have_either_descriptor_and_selects() {
    let direct = "apache.org:legacy-amqp-direct-binding:string";
    let topic = "apache.org:legacy-amqp-topic-binding:string";
    for (descriptor, key) in [
        (Value::Ulong(0x0000_468c_0000_0000), "news.eu"),
        (Value::Symbol(direct.into()), "news.eu"),
        (Value::Ulong(0x0000_468c_0000_0001), "*.eu"),
        (Value::Symbol(topic.into()), "*.eu"),
    ] {
        let mut bench = Bench::new();
        let raw = connected(&mut bench);
        let filter = Described { descriptor, value: key.into() };
        let filters = Map::new().with("subject", filter);
        let mut attach = receiving(0, "q");
        attach.source.as_mut().unwrap().filter = Some(filters.clone());
        let answer = bench.ask(raw, &attach).attach();
        assert_eq!(answer.source.unwrap().filter, Some(filters), "it is in force");
        bench.say(raw, 0, &credit_of(0, 0, 10));
        let client = bench.client();
        let sender = bench.sender(client, "q");
        for subject in ["news", "news.eu", "*.us"] {
            let mut message = text(subject);
            message.properties_mut().subject = Some(subject.into());
            bench.send(sender, &message);
        }
        let got = bench.hear(raw).transfer().message();
        assert_eq!(got.properties.as_ref().and_then(|it| it.subject.as_deref()), Some("news.eu"));
        assert_eq!(bench.depth("q"), 3, "the others stay");
    }
}

#[test]
fn a_link_that_is_detached_says_by_which_condition_and_text() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    receiver(&mut bench, raw, 10);
    bench.node.broker.delete("q", <_>::default()).unwrap().perform();
    bench.run();
    let error = bench.hear(raw).detach().error.unwrap();
    assert_eq!(error.condition, condition::RESOURCE_DELETED);
    assert_eq!(error.description.as_deref(), Some("queue 'q' has been deleted"));
}

#[test]
fn what_qpid_send_writes_comes_out_as_it_is() {
    let mut bench = Bench::new();
    let mut message = Message::of_value("text as qpid-send makes it");
    message.header_mut().durable = false;
    message.properties_mut().group_id = Some("group".into());
    message.set_application_property("sn", 1u32);
    message.set_application_property("ts", Value::Long(1_700_000_000_000_000_000));
    let bytes = message.to_bytes();
    let raw = connected(&mut bench);
    bench.ask(raw, &sending(1, "q"));
    bench.say_with(raw, 0, &whole(1, 0), &bytes);
    assert_eq!(bench.hear(raw).disposition().state, Some(DeliveryState::Accepted));
    let client = bench.client();
    let receiver = bench.receiver(client, "q", 1);
    assert_eq!(bench.got(receiver)[0].bytes, bytes);
}

#[test]
fn the_process_behind_a_connection_is_known() {
    let mut bench = Bench::new();
    connected(&mut bench);
    let record = bench.node.management.directory().connections().remove(0);
    let peer = record.opened.get().unwrap();
    assert_eq!((peer.process.as_str(), peer.process_id.as_str()), ("qpid-receive", "4711"));
}

#[test]
fn a_sender_and_a_receiver_of_one_packet_each_are_served() {
    let mut bench = Bench::new();
    let raw = connected(&mut bench);
    let attach = Attach { name: "q".into(), ..sending(0, "q") };
    let mut packet = framed(0, &attach, b"");
    packet.extend(framed(0, &Attach { name: "q".into(), ..receiving(1, "q") }, b""));
    packet.extend(framed(0, &credit_of(1, 0, 100), b""));
    bench.say_bytes(raw, &packet);
    assert_eq!(bench.hear(raw).names(), ["attach", "attach", "flow"]);
    bench.say_with(raw, 0, &whole(0, 0), &text("loop").to_bytes());
    let heard = bench.hear(raw);
    assert_eq!(heard.transfer().message(), text("loop"));
    assert_eq!(heard.dispositions().len(), 1);
}
