//! Nodes that a link has made for itself, and how long they live.

use crate::bench::raw::{credit_of, receiving, sending, whole};
use crate::bench::{Bench, Client, Link, text};
use mochila_engine::AttachRequest;
use mochila_wire::performative::{Attach, Detach, Role};
use mochila_wire::terminus::{LifetimePolicy, TerminusExpiryPolicy};
use mochila_wire::{DeliveryState, Encode, Map, Message, Source, Symbol, Target, Value, condition};

fn dynamic_source(properties: Option<Map>) -> Source {
    Source { dynamic: true, dynamic_node_properties: properties, ..Source::default() }
}

fn dynamic_receiver(bench: &mut Bench, client: Client) -> (Link, String) {
    let link = bench.receiver_of(client, dynamic_source(None), 10);
    let address = bench.address(link);
    (link, address)
}

#[test]
fn a_dynamic_source_is_a_queue_with_a_name_that_nobody_can_guess() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (_, first) = dynamic_receiver(&mut bench, client);
    let (link, second) = dynamic_receiver(&mut bench, client);
    assert!(first.len() >= 32 && first != second, "{first} {second}");
    assert!(bench.answer(link).source.unwrap().dynamic);
    assert_eq!(bench.queue_names().len(), 2);
}

#[test]
fn a_dynamic_target_is_a_queue_too() {
    let mut bench = Bench::new();
    let client = bench.client();
    let target = Target { dynamic: true, ..Target::default() };
    let request = AttachRequest::sender("l", Source::default(), target.into());
    let sender = bench.attach(client, request);
    bench.send(sender, &text("kept"));
    let address = bench.address(sender);
    let receiver = bench.receiver(client, &address, 1);
    assert_eq!(bench.texts(receiver), ["kept"]);
}

#[test]
fn a_request_is_answered_over_a_dynamic_reply_queue() {
    let mut bench = Bench::new();
    let (asker, answerer) = (bench.client(), bench.client());
    let (replies, reply_to) = dynamic_receiver(&mut bench, asker);
    let requests = bench.sender(asker, "requests");
    let mut request = text("what?");
    request.properties_mut().reply_to = Some(reply_to);
    bench.send(requests, &request);

    let work = bench.receiver(answerer, "requests", 1);
    let request = bench.got(work).remove(0).message();
    let reply_to = request.properties.unwrap().reply_to.unwrap();
    let reply = bench.sender(answerer, &reply_to);
    bench.send(reply, &text("that."));
    assert_eq!(bench.texts(replies), ["that."]);
}

#[test]
fn it_goes_when_the_link_that_made_it_is_closed() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    let properties = LifetimePolicy::DeleteOnClose.to_properties();
    let link = bench.receiver_of(client, dynamic_source(Some(properties)), 0);
    let echoed = bench.answer(link).source.unwrap().dynamic_node_properties.unwrap();
    assert_eq!(LifetimePolicy::among(&echoed), Some(LifetimePolicy::DeleteOnClose));
    let address = bench.address(link);
    let sender = bench.sender(other, &address);
    bench.send(sender, &text("late"));
    bench.close_link(link);
    assert_eq!(bench.queue_names(), [""; 0]);
    assert_eq!(bench.detach_error(sender).condition, condition::RESOURCE_DELETED);
}

#[test]
fn it_goes_when_its_session_ends() {
    let mut bench = Bench::new();
    let client = bench.client();
    dynamic_receiver(&mut bench, client);
    let session = bench.session(client);
    bench.engine(client).end(session, None);
    bench.run();
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn it_goes_when_its_connection_is_lost() {
    let mut bench = Bench::new();
    let client = bench.client();
    dynamic_receiver(&mut bench, client);
    bench.kill(client);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn it_goes_when_its_link_is_detached_since_nothing_is_kept_of_such_a_link() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut attach = receiving(0, "");
    attach.source = Some(dynamic_source(None));
    let source = bench.ask(raw, &attach).attach().source.unwrap();
    assert_eq!(source.expiry_policy, TerminusExpiryPolicy::LinkDetach, "which the answer says");
    bench.say(raw, 0, &Detach { handle: 0, closed: false, error: None });
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn one_that_is_to_go_without_links_outlives_its_creator_until_the_last_link() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    let properties = LifetimePolicy::DeleteOnNoLinks.to_properties();
    let creator = bench.receiver_of(client, dynamic_source(Some(properties)), 0);
    let address = bench.address(creator);
    let other = bench.sender(other, &address);
    bench.close_link(creator);
    assert_eq!(bench.queue_names().len(), 1);
    bench.close_link(other);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn one_that_is_to_go_without_messages_waits_for_the_last_one() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    let target = Target {
        dynamic: true,
        dynamic_node_properties: Some(LifetimePolicy::DeleteOnNoMessages.to_properties()),
        ..Target::default()
    };
    let creator =
        bench.attach(client, AttachRequest::sender("l", Source::default(), target.into()));
    let address = bench.address(creator);
    bench.send(creator, &text("last"));
    bench.close_link(creator);
    let receiver = bench.receiver(other, &address, 1);
    let got = bench.got(receiver);
    assert_eq!(bench.queue_names().len(), 1);
    bench.accept(&got);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_reply_queue_that_is_gone_does_not_come_back_as_an_ordinary_queue() {
    let mut bench = Bench::new();
    let (asker, answerer) = (bench.client(), bench.client());
    let (replies, reply_to) = dynamic_receiver(&mut bench, asker);
    bench.close_link(replies);
    let late = bench.sender(answerer, &reply_to);
    assert_eq!(bench.detach_error(late).condition, condition::NOT_FOUND);

    let relay = AttachRequest::sender("relay", Source::default(), Target::default().into());
    let relay = bench.attach(answerer, relay);
    let mut reply = text("too late");
    reply.properties_mut().to = Some(reply_to);
    bench.send(relay, &reply);
    let DeliveryState::Rejected { error: Some(error) } = bench.states(relay).remove(0) else {
        panic!("it was not rejected")
    };
    assert_eq!(error.condition, condition::NOT_FOUND);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_temporary_queue_of_jms_is_a_dynamic_one_with_that_capability() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut attach = Attach::new("qpid-jms:temp-queue-creator:1", 0, Role::Sender);
    attach.target = Some(
        Target {
            dynamic: true,
            dynamic_node_properties: Some(LifetimePolicy::DeleteOnClose.to_properties()),
            capabilities: vec![Symbol::from_static("temporary-queue")],
            ..Target::default()
        }
        .into(),
    );
    let answer = bench.ask(raw, &attach).attach();
    let target = answer.target.as_ref().and_then(|t| t.target()).unwrap().clone();
    assert_eq!(target.capabilities, ["temporary-queue"]);
    let address = target.address.unwrap();
    // Others of the connection use it by its name.
    assert_eq!(bench.ask(raw, &receiving(1, &address)).detaches(), []);
    bench.say(raw, 0, &credit_of(1, 0, 1));
    assert_eq!(bench.ask(raw, &sending(2, &address)).detaches(), []);
    bench.say_with(raw, 0, &whole(2, 0), &text("hi").to_bytes());
    assert_eq!(bench.hear(raw).transfer().message(), text("hi"));
    bench.say(raw, 0, &Detach { handle: 0, closed: true, error: None });
    assert_eq!(bench.queue_names(), [""; 0]);
    assert_eq!(bench.hear(raw).detaches().len(), 3, "its own, and those of the other two");
}

#[test]
fn the_properties_of_a_dynamic_node_set_its_limits() {
    let mut bench = Bench::new();
    let client = bench.client();
    let properties = Map::new().with("qpid.max_count", 1u32).with("qpid.flow_stop_count", 0u32);
    let link = bench.receiver_of(client, dynamic_source(Some(properties)), 0);
    let address = bench.address(link);
    assert_eq!(bench.queue(&address).limits().max_count, 1);
    let echoed = bench.answer(link).source.unwrap().dynamic_node_properties.unwrap();
    assert_eq!(echoed.get("qpid.max_count"), Some(&Value::Ulong(1)));
}

#[test]
fn thousands_of_dynamic_nodes_leave_nothing_behind() {
    let mut bench = Bench::new();
    let client = bench.client();
    for round in 0..2_000 {
        let (link, _) = dynamic_receiver(&mut bench, client);
        match round % 3 {
            0 => bench.close_link(link),
            1 => {
                let id = bench.link_id(link);
                bench.engine(client).detach(id, false, None);
                bench.run();
            }
            _ => {
                let session = bench.session(client);
                bench.engine(client).end(session, None);
                bench.run();
                bench.begin_again(client);
            }
        }
    }
    bench.close(client);
    assert_eq!(bench.queue_names(), [""; 0]);
    bench.expect_nothing_left();
}

#[test]
fn a_message_for_a_dynamic_node_is_not_kept_longer_than_the_node() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    let (link, address) = dynamic_receiver(&mut bench, client);
    bench.grant(link, 0);
    let sender = bench.sender(other, &address);
    bench.send(sender, &Message::of_data(vec![7; 10_000]));
    let with_message = bench.node.broker.budget().used();
    bench.close_link(link);
    assert!(bench.node.broker.budget().used() < with_message - 10_000);
}
