//! Requests to `$management`, over links.

use crate::bench::{Bench, Client, Link, text};
use mochila_broker::QueueSettings;
use mochila_engine::AttachRequest;
use mochila_wire::message::{Body, MessageId};
use mochila_wire::{DeliveryState, Map, Message, Source, Target, Value, condition};

fn request(operation: &str, kind: &str, name: &str, reply_to: &str) -> Message {
    let mut message = Message::of_value(Value::Map(Map::new()));
    message.set_application_property("operation", operation);
    message.set_application_property("type", kind);
    message.set_application_property("name", name);
    let properties = message.properties_mut();
    properties.message_id = Some(MessageId::Ulong(42));
    properties.reply_to = Some(reply_to.into());
    message
}

fn query(kind: &str, reply_to: &str) -> Message {
    let mut message = Message::of_value(Value::Map(Map::new()));
    message.set_application_property("operation", "QUERY");
    message.set_application_property("entityType", kind);
    message.properties_mut().reply_to = Some(reply_to.into());
    message
}

/// Makes queues until there is no memory for another one; how many.
fn fill_with_queues(bench: &Bench) -> usize {
    let make = |number: &usize| {
        bench.node.broker.create(&format!("q{number}"), QueueSettings::default()).is_ok()
    };
    (0..).take_while(make).count()
}

fn status(message: &Message) -> i64 {
    match message.application_property("statusCode") {
        Some(Value::Int(status)) => i64::from(*status),
        other => panic!("the status is {other:?}"),
    }
}

fn attribute<'a>(message: &'a Message, name: &str) -> &'a Value {
    let map = message.body.as_value().and_then(Value::as_map).expect("a map");
    map.get(name).unwrap_or_else(|| panic!("no attribute '{name}'"))
}

/// A link from `$management` whose responses are for `reply_to`.
fn own_replies(bench: &mut Bench, client: Client, reply_to: &str) -> Link {
    let source = Source::at("$management");
    let target = Target::at(reply_to);
    let request = AttachRequest::receiver(format!("from-{reply_to}"), source, target.into());
    let link = bench.attach(client, request);
    bench.grant(link, 10);
    link
}

fn answer_to(bench: &mut Bench, requests: Link, replies: Link, request: &Message) -> Message {
    bench.send(requests, request);
    assert_eq!(bench.states(requests), [DeliveryState::Accepted]);
    let got = bench.got(replies);
    assert_eq!(got.len(), 1, "one response to {request:?}");
    bench.accept(&got);
    got[0].message()
}

#[test]
fn a_request_is_answered_on_a_link_from_the_management_node() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    assert_eq!(bench.address(replies), "$management");
    let response =
        answer_to(&mut bench, requests, replies, &request("CREATE", "queue", "made", "me"));
    assert_eq!(status(&response), 201);
    assert_eq!(response.properties.unwrap().correlation_id, Some(MessageId::Ulong(42)));
    assert!(bench.queue_names().contains(&"made".to_owned()));
}

#[test]
fn an_operator_can_look_and_purge_when_messages_have_taken_all_memory() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let mut taken = Vec::new();
    while let Ok(more) = bench.node.broker.budget().reserve(512) {
        taken.push(more);
    }
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let source = Source { dynamic: true, ..Source::default() };
    let replies = bench.receiver_of(client, source, 10);
    let reply_to = bench.address(replies);
    let read = request("READ", "node", "", &reply_to);
    let response = answer_to(&mut bench, requests, replies, &read);
    assert_ne!(status(&response), 500, "{response:?}");
    let limit = bench.node.broker.budget().limit();
    assert!(Some(bench.node.broker.budget().peak()) <= limit);
}

/// Pages get smaller: whoever asks for all of them has all queues in the end.
#[test]
fn all_queues_are_told_when_queues_have_taken_all_memory() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let queues = fill_with_queues(&bench);
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let source = Source { dynamic: true, ..Source::default() };
    let replies = bench.receiver_of(client, source, 10_000);
    let reply_to = bench.address(replies);
    let (mut told, mut offset) = (0, Some(0));
    while let Some(from) = offset {
        let mut query = query("queue", &reply_to);
        query.set_application_property("offset", from);
        let response = answer_to(&mut bench, requests, replies, &query);
        assert_eq!(status(&response), 200, "{response:?}");
        told += attribute(&response, "results").as_list().unwrap().len();
        offset = response.application_property("nextOffset").and_then(Value::as_u64);
    }
    // The one for the answers is among them.
    assert_eq!(told, queues + 1);
}

/// Answers that nobody fetches take what operators have. The next ones are smaller, then there is
/// only a sentence, and in the end the outcome says it.
#[test]
fn every_request_is_answered_or_rejected_when_there_is_no_memory_for_answers() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    fill_with_queues(&bench);
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    bench.grant(replies, 0);
    let mut asked = 1;
    let error = loop {
        bench.send(requests, &query("queue", "me"));
        match bench.states(requests).as_slice() {
            [DeliveryState::Rejected { error: Some(error) }] => break error.clone(),
            states => assert_eq!(states, [DeliveryState::Accepted]),
        }
        asked += 1;
        assert!(asked < 200, "it is only silent");
    };
    assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    bench.grant(replies, 200);
    let statuses: Vec<i64> = bench.got(replies).iter().map(|got| status(&got.message())).collect();
    assert_eq!(statuses.len(), asked - 1);
    assert!(statuses.is_sorted() && statuses[0] == 200, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&503));
    assert!(Some(bench.node.broker.budget().peak()) <= bench.node.broker.budget().limit());
}

/// What was done is not called a failure because there is no memory to tell more of it.
#[test]
fn a_change_that_cannot_be_told_in_full_has_been_made_all_the_same() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    fill_with_queues(&bench);
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    let mut taken = Vec::new();
    while let Ok(more) = bench.node.broker.budget().reserve_for_operator(64) {
        taken.push(more);
    }
    taken.truncate(taken.len() - 1200 / 64);
    let mut update = request("UPDATE", "queue", "q0", "me");
    update.body = Body::Value(Value::Map(Map::new().with("qpid.max_count", 6u32)));
    let response = answer_to(&mut bench, requests, replies, &update);
    assert_eq!(status(&response), 200);
    assert_eq!(bench.queue("q0").limits().max_count, 6);
    let read = request("READ", "queue", "q0", "me");
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &read)), 503);
}

#[test]
fn a_request_is_answered_over_a_dynamic_node() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let source = Source { dynamic: true, ..Source::default() };
    let replies = bench.receiver_of(client, source, 10);
    let reply_to = bench.address(replies);
    bench.sender(client, "q");
    let response =
        answer_to(&mut bench, requests, replies, &request("READ", "queue", "q", &reply_to));
    assert_eq!(status(&response), 200);
    assert_eq!(attribute(&response, "name"), &Value::from("q"));
}

#[test]
fn a_queue_is_made_read_changed_and_deleted() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    let mut create = request("CREATE", "queue", "made", "me");
    create.body = Body::Value(Value::Map(Map::new().with("qpid.max_count", 5u32)));
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &create)), 201);
    let mut update = request("UPDATE", "queue", "made", "me");
    update.body = Body::Value(Value::Map(Map::new().with("qpid.max_count", 6u32)));
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &update)), 200);
    assert_eq!(bench.queue("made").limits().max_count, 6);
    let delete = request("DELETE", "queue", "made", "me");
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &delete)), 204);
    let read = request("READ", "queue", "made", "me");
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &read)), 404);
}

#[test]
fn a_query_lists_what_there_is() {
    let mut bench = Bench::new();
    let client = bench.client();
    for name in ["a", "b"] {
        bench.sender(client, name);
    }
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    for (kind, count) in [("connection", 1), ("session", 1), ("link", 4), ("broker", 1)] {
        let response = answer_to(&mut bench, requests, replies, &query(kind, "me"));
        let results = attribute(&response, "results").as_list().unwrap();
        assert_eq!(results.len(), count, "{kind}");
    }
}

#[test]
fn a_request_sees_what_was_sent_and_settled_before_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    let sender = bench.sender(client, "q");
    let bytes = |message: &Message| mochila_wire::Encode::to_bytes(message);
    // All in one packet.
    for _ in 0..3 {
        bench.post(sender, &Default::default(), &bytes(&text("m")));
    }
    let read = request("READ", "queue", "q", "me");
    bench.post(requests, &Default::default(), &bytes(&read));
    bench.run();
    let response = bench.got(replies).remove(0).message();
    assert_eq!(attribute(&response, "msgDepth"), &Value::Ulong(3));
}

#[test]
fn a_request_that_cannot_be_read_is_answered_or_dropped_and_the_link_goes_on() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    let mut nonsense = text("what?");
    nonsense.properties_mut().reply_to = Some("me".into());
    let response = answer_to(&mut bench, requests, replies, &nonsense);
    assert_eq!(status(&response), 400);
    bench.send(requests, &text("to nobody"));
    let mut lost = request("READ", "queue", "q", "dynamic-that-is-gone");
    bench.send(requests, &lost);
    lost.properties_mut().reply_to = Some("me".into());
    assert_eq!(bench.states(requests).len(), 2);
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &lost)), 404);
}

#[test]
fn responses_go_to_whose_they_are() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    let mut links = Vec::new();
    for client in [first, second] {
        let requests = bench.sender(client, "$management");
        links.push((requests, own_replies(&mut bench, client, "me")));
    }
    bench.sender(first, "q");
    for (requests, replies) in links {
        let read = request("READ", "queue", "q", "me");
        assert_eq!(status(&answer_to(&mut bench, requests, replies, &read)), 200);
    }
}

#[test]
fn two_links_from_management_of_one_connection_need_two_addresses() {
    let mut bench = Bench::new();
    let client = bench.client();
    own_replies(&mut bench, client, "me");
    let source = Source::at("$management");
    let again = AttachRequest::receiver("another", source, Target::at("me").into());
    let again = bench.attach(client, again);
    assert_eq!(bench.detach_error(again).condition, condition::INVALID_FIELD);
    let other = own_replies(&mut bench, client, "me-too");
    assert_eq!(bench.detached(other), None);
}

#[test]
fn an_answer_that_nobody_can_get_is_counted() {
    let mut bench = Bench::new();
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    for _ in 0..2 {
        bench.send(requests, &request("CREATE", "queue", "made", "nobody"));
        assert_eq!(bench.states(requests), [DeliveryState::Accepted], "it was carried out");
    }
    let node = request("READ", "broker", "node", "me");
    let node = answer_to(&mut bench, requests, replies, &node);
    assert_eq!(attribute(&node, "responsesLost"), &Value::Ulong(2));
    bench.create("full", |settings| settings.max_count = Some(10));
    for _ in 0..12 {
        bench.send(requests, &query("queue", "full"));
    }
    let states = bench.states(requests);
    let lost = |state: &DeliveryState| matches!(state, DeliveryState::Rejected { .. });
    assert_eq!(states.iter().map(lost).filter(|lost| *lost).count(), 2, "{states:?}");
    assert_eq!((bench.node.management.responses_lost(), bench.depth("full")), (4, 10));
}

#[test]
fn the_queue_of_responses_goes_with_its_link() {
    let mut bench = Bench::new();
    let client = bench.client();
    let replies = own_replies(&mut bench, client, "me");
    assert_eq!(bench.queue_names().len(), 1);
    bench.close_link(replies);
    assert_eq!(bench.queue_names(), [""; 0]);
    let again = own_replies(&mut bench, client, "me");
    assert_eq!(bench.detached(again), None);
    let session = bench.session(client);
    bench.engine(client).end(session, None);
    bench.run();
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn responses_that_nobody_fetches_are_bounded() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 1 << 20);
    let client = bench.client();
    let requests = bench.sender(client, "$management");
    let replies = own_replies(&mut bench, client, "me");
    bench.grant(replies, 0);
    for _ in 0..5_000 {
        bench.send(requests, &request("READ", "broker", "node", "me"));
    }
    assert!(bench.node.broker.budget().peak() <= 1 << 20);
    assert_eq!(bench.told(requests).len(), 5_000, "requests are carried out all the same");
}

#[test]
fn a_request_may_come_over_the_anonymous_terminus() {
    let mut bench = Bench::new();
    let client = bench.client();
    let relay = AttachRequest::sender("relay", Source::default(), Target::default().into());
    let relay = bench.attach(client, relay);
    let replies = own_replies(&mut bench, client, "me");
    let mut create = request("CREATE", "queue", "made", "me");
    create.properties_mut().to = Some("$management".into());
    assert_eq!(status(&answer_to(&mut bench, relay, replies, &create)), 201);
}

#[test]
fn an_operator_closes_a_connection() {
    let mut bench = Bench::new();
    let (operator, victim) = (bench.client(), bench.client());
    let requests = bench.sender(operator, "$management");
    let replies = own_replies(&mut bench, operator, "me");
    let id = bench.node.management.directory().connections()[1].id;
    let delete = request("DELETE", "connection", &id.to_string(), "me");
    assert_eq!(status(&answer_to(&mut bench, requests, replies, &delete)), 204);
    let error = bench.closed(victim).expect("it is closed").expect("with an error");
    assert_eq!(error.condition, condition::CONNECTION_FORCED);
    assert_eq!(bench.closed(operator), None);
}
