//! Queues of every kind, as peers ask for them and see them.

use crate::bench::{Bench, Client, Link, text};
use mochila_engine::AttachRequest;
use mochila_wire::{
    DeliveryState, Map, Message, Source, Symbol, Target, TargetArchetype, Value, condition,
};

/// The node properties that an address string with these arguments makes.
fn properties(arguments: &[(&'static str, Value)]) -> Map {
    let mut properties = Map::new();
    properties.insert(Symbol::from_static("supported-dist-modes"), "move");
    for (name, value) in arguments {
        properties.insert(Symbol::from_static(name), value.clone());
    }
    properties
}

/// A sender of a queue that is made like this if it is not there.
fn creating(
    bench: &mut Bench,
    client: Client,
    address: &str,
    arguments: &[(&'static str, Value)],
) -> Link {
    let target = Target {
        dynamic_node_properties: Some(properties(arguments)),
        capabilities: vec!["create-on-demand".into(), "queue".into()],
        ..Target::at(address)
    };
    bench.attach(client, AttachRequest::sender(address, Source::default(), target.into()))
}

/// A receiver that describes its queue, which must be there or be made by a pattern.
fn declaring(
    bench: &mut Bench,
    client: Client,
    address: &str,
    arguments: &[(&'static str, Value)],
    credit: u32,
) -> Link {
    let dynamic_node_properties = Some(properties(arguments));
    bench.receiver_of(client, Source { dynamic_node_properties, ..Source::at(address) }, credit)
}

fn in_force(bench: &mut Bench, link: Link) -> Map {
    let answer = bench.answer(link);
    let properties = match answer.target {
        Some(TargetArchetype::Target(target)) if target.dynamic_node_properties.is_some() => {
            target.dynamic_node_properties
        }
        _ => answer.source.and_then(|source| source.dynamic_node_properties),
    };
    properties.expect("the properties in force")
}

fn keyed(key: &str, body: &str) -> Message {
    let mut message = text(body);
    message.set_application_property("key", key);
    message
}

fn urgent(priority: u8, body: &str) -> Message {
    let mut message = text(body);
    message.header_mut().priority = priority;
    message
}

fn refusal(bench: &mut Bench, link: Link) -> (Symbol, String) {
    let error = bench.detach_error(link);
    (error.condition.clone(), error.description.unwrap_or_default())
}

#[test]
fn a_ring_is_made_by_its_sender_and_accepts_every_message() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments = [("qpid.policy_type", "ring".into()), ("qpid.max_count", Value::Int(2))];
    let sender = creating(&mut bench, client, "ring", &arguments);
    let properties = in_force(&mut bench, sender);
    assert_eq!(properties.get("qpid.policy_type"), Some(&Value::from("ring")));
    for body in ["a", "b", "c", "d"] {
        bench.send(sender, &text(body));
    }
    assert_eq!(bench.states(sender), [const { DeliveryState::Accepted }; 4]);
    let receiver = bench.receiver(client, "ring", 10);
    assert_eq!(bench.texts(receiver), ["c", "d"]);
    assert_eq!(bench.numbers("ring").discards_ring, 2);
}

#[test]
fn a_queue_that_deletes_itself_tells_everybody_who_is_linked_to_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments =
        [("qpid.policy_type", "self-destruct".into()), ("qpid.max_count", Value::Int(1))];
    let sender = creating(&mut bench, client, "fuse", &arguments);
    let receiver = bench.receiver(client, "fuse", 0);
    bench.send(sender, &text("a"));
    bench.send(sender, &text("b"));
    let states = bench.states(sender);
    assert_eq!(states[0], DeliveryState::Accepted);
    let DeliveryState::Rejected { error: Some(error) } = &states[1] else { panic!("{states:?}") };
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    for link in [sender, receiver] {
        assert_eq!(refusal(&mut bench, link).0, condition::RESOURCE_DELETED);
    }
}

#[test]
fn urgent_messages_leave_first_and_each_is_settled_by_its_own_delivery() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments = [("x-qpid-priorities", Value::Int(10))];
    let sender = creating(&mut bench, client, "urgent", &arguments);
    for (priority, body) in [(1, "a"), (9, "b"), (5, "c"), (9, "d")] {
        bench.send(sender, &urgent(priority, body));
    }
    let receiver = bench.receiver(client, "urgent", 3);
    let got = bench.got(receiver);
    let texts: Vec<String> = got.iter().map(|got| got.text()).collect();
    assert_eq!(texts, ["b", "d", "c"]);
    bench.accept(&got[..2]);
    bench.settle(&got[2], DeliveryState::Released);
    bench.grant(receiver, 10);
    assert_eq!(bench.texts(receiver), ["c", "a"]);
    assert_eq!(bench.depth("urgent"), 2);
}

#[test]
fn a_value_that_is_replaced_while_a_receiver_holds_it_is_settled_cleanly() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments = [("qpid.last_value_queue_key", "key".into())];
    let sender = creating(&mut bench, client, "values", &arguments);
    bench.send(sender, &keyed("k", "old"));
    let receiver = bench.receiver(client, "values", 1);
    let old = bench.got(receiver);
    bench.send(sender, &keyed("k", "new"));
    bench.settle(&old[0], DeliveryState::Released);
    assert_eq!(bench.depth("values"), 1);
    bench.grant(receiver, 10);
    let new = bench.got(receiver);
    assert_eq!(new[0].text(), "new");
    bench.accept(&new);
    assert_eq!((bench.depth("values"), bench.numbers("values").discards_lvq), (0, 1));
}

#[test]
fn whoever_consumes_where_messages_are_only_shown_is_told_that_it_browses() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = creating(&mut bench, client, "shown", &[("qpid.browse-only", true.into())]);
    bench.send(sender, &text("a"));
    for _ in 0..2 {
        let receiver = bench.receiver(client, "shown", 10);
        let source = bench.answer(receiver).source.unwrap();
        assert!(source.is_browsing());
        let got = bench.got(receiver);
        assert_eq!(got[0].text(), "a");
        bench.accept(&got);
    }
    assert_eq!(bench.depth("shown"), 1);
}

#[test]
fn a_receiver_that_describes_groups_gets_them_on_a_queue_that_is_there_and_has_no_messages() {
    // qpid-cpp-benchmark … --receive-option "node:{x-declare:{arguments:{…}}}"
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "work");
    let arguments =
        [("qpid.group_header_key", "GROUP-ID".into()), ("qpid.shared_msg_group", Value::Int(1))];
    let first = declaring(&mut bench, client, "work", &arguments, 10);
    let second = declaring(&mut bench, client, "work", &arguments, 10);
    let properties = in_force(&mut bench, second);
    assert_eq!(properties.get("qpid.group_header_key"), Some(&Value::from("GROUP-ID")));
    for body in ["a", "b", "c", "d"] {
        let mut message = text(body);
        message.set_application_property("GROUP-ID", "only");
        bench.send(sender, &message);
    }
    let (one, other) = (bench.texts(first), bench.texts(second));
    assert!(one.is_empty() != other.is_empty(), "{one:?} {other:?}");
    assert_eq!(bench.queue("work").group_count(), 1);
    // Nobody changes what has been arranged, and what is in force is told.
    let third = declaring(&mut bench, client, "work", &[("qpid.priorities", Value::Int(3))], 0);
    let properties = in_force(&mut bench, third);
    assert_eq!(properties.get("qpid.priorities"), Some(&Value::Ulong(0)));
}

#[test]
fn what_makes_no_sense_refuses_the_link_and_says_why() {
    let mut bench = Bench::new();
    let client = bench.client();
    let cases: [(&[(&'static str, Value)], &str); 4] = [
        (
            &[("qpid.priorities", Value::Int(3)), ("qpid.last_value_queue_key", "k".into())],
            "qpid.priorities and qpid.last_value_queue_key do not go together",
        ),
        (&[("qpid.fairshare", Value::Int(3))], "means nothing without qpid.priorities"),
        (&[("qpid.filter", "a =".into())], "qpid.filter takes a selector"),
        (&[("qpid.prioritise", Value::Int(3))], "'qpid.prioritise' is not an argument of a queue"),
    ];
    for (arguments, expected) in cases {
        let link = creating(&mut bench, client, "wrong", arguments);
        let (condition, text) = refusal(&mut bench, link);
        assert_eq!(condition, condition::INVALID_FIELD);
        assert!(text.contains(expected), "{text}");
    }
    let arguments = [("qpid.file_count", Value::Int(8)), ("qpid.max_count", Value::Int(7))];
    let link = creating(&mut bench, client, "right", &arguments);
    assert_eq!(in_force(&mut bench, link).get("qpid.max_count"), Some(&Value::Ulong(7)));
}

/// A receiver of a queue with groups that wants to hear of those that others get.
fn listening(bench: &mut Bench, client: Client, credit: u32) -> Link {
    let request = AttachRequest {
        desired_capabilities: vec!["lost-groups".into()],
        ..AttachRequest::receiver("listening", Source::at("groups"), Target::default().into())
    };
    let link = bench.attach(client, request);
    bench.grant(link, credit);
    link
}

#[test]
fn c4_a_receiver_that_asks_for_it_is_told_which_groups_others_have_now() {
    let mut bench = Bench::new();
    bench.create("groups", |settings| {
        settings.shared_groups = true;
        settings.rebalances_groups = true;
    });
    let (client, other) = (bench.client(), bench.client());
    let old = listening(&mut bench, client, 1);
    assert_eq!(bench.answer(old).offered_capabilities, [Symbol::from_static("lost-groups")]);
    let to = bench.sender(client, "groups");
    for n in 0..3 {
        let mut message = text(&n.to_string());
        message.properties_mut().group_id = Some("x".into());
        bench.send(to, &message);
    }
    let got = bench.got(old);
    assert_eq!(got.len(), 1);
    let new = bench.receiver(other, "groups", 1);
    bench.run();
    assert!(bench.answer(new).offered_capabilities.is_empty(), "it has not asked");
    assert!(bench.texts(new).is_empty());
    assert!(bench.flow_properties(old).is_empty(), "nobody else has it yet");
    // Without credit it hears of it all the same.
    bench.accept(&got);
    assert_eq!(bench.texts(new), ["1"]);
    let told = bench.flow_properties(old);
    let names = Value::List(vec!["x".into()]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].get("lost-groups"), Some(&names));
    assert!(bench.flow_properties(new).is_empty());
}
