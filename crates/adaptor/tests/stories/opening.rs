//! Who may open a connection, and what it is offered.

use crate::bench::raw::{framed, sending, whole};
use crate::bench::{Bench, Raw};
use mochila_engine::pair::Said;
use mochila_wire::frame::PROTOCOL_AMQP;
use mochila_wire::performative::{Begin, Close, Open};
use mochila_wire::{AmqpError, Map, Symbol, Value, condition};

const SOLE: Symbol = Symbol::from_static("sole-connection-for-container");

fn sole(container: &str) -> Open {
    Open { desired_capabilities: vec![SOLE], ..Open::new(container) }
}

fn is_open(bench: &mut Bench, raw: Raw) -> bool {
    bench.say(raw, 0, &Begin::new(0, 1, 1));
    bench.hear(raw).names().contains(&"begin")
}

#[test]
fn everybody_is_offered_an_anonymous_relay_and_told_the_product() {
    let mut bench = Bench::new();
    let raw = bench.raw_opened();
    let open = bench.hear(raw).open();
    assert_eq!(open.offered_capabilities, ["ANONYMOUS-RELAY", "SHARED-SUBS"]);
    assert_eq!(open.properties.unwrap().get("product"), Some(&Value::from("mochila")));
}

#[test]
fn a_container_that_wants_to_be_alone_is_promised_that() {
    let mut bench = Bench::new();
    let raw = bench.raw_open(sole("jms"));
    assert!(bench.hear(raw).open().offered_capabilities.contains(&SOLE));
}

#[test]
fn a_second_connection_of_a_container_that_wants_to_be_alone_is_opened_and_closed() {
    let mut bench = Bench::new();
    bench.raw_open(sole("jms"));
    let second = bench.raw_open(sole("jms"));
    let heard = bench.hear(second);
    assert_eq!(heard.names(), ["header", "open", "close"]);
    let failed = Value::Bool(true);
    let properties = heard.open().properties.unwrap();
    assert_eq!(properties.get("amqp:connection-establishment-failed"), Some(&failed));
    assert!(!heard.open().offered_capabilities.contains(&SOLE));
    let error = heard.close().error.unwrap();
    assert_eq!(error.condition, condition::INVALID_FIELD);
    let field = error.info.as_ref().unwrap().get("invalid-field").cloned();
    assert_eq!(field, Some(Value::Symbol("container-id".into())));
    assert!(error.description.unwrap().contains("'jms' is connected already"));
}

#[test]
fn l1_a_container_id_is_free_again_when_its_connection_is_closed_or_lost() {
    let mut bench = Bench::new();
    let first = bench.raw_open(sole("jms"));
    bench.say(first, 0, &Close { error: None });
    let second = bench.raw_open(sole("jms"));
    assert!(is_open(&mut bench, second));
    bench.cut(second);
    let third = bench.raw_open(sole("jms"));
    assert!(is_open(&mut bench, third));
}

#[test]
fn l1_a_container_may_take_over_from_its_old_connection() {
    let mut bench = Bench::new();
    let first = bench.raw_open(sole("jms"));
    bench.hear(first);
    let policy = Map::new().with("sole-connection-enforcement-policy", 1u32);
    let second = bench.raw_open(Open { properties: Some(policy), ..sole("jms") });
    assert!(is_open(&mut bench, second));
    let error = bench.hear(first).close().error.unwrap();
    assert_eq!(error.condition, condition::RESOURCE_LOCKED);
    let info = error.info.unwrap();
    assert_eq!(info.get("sole-connection-enforcement"), Some(&Value::Bool(true)));
}

#[test]
fn containers_that_do_not_care_share_an_id() {
    let mut bench = Bench::new();
    let (first, second) = (bench.raw_open(Open::new("same")), bench.raw_open(Open::new("same")));
    assert!(is_open(&mut bench, first) && is_open(&mut bench, second));
}

#[test]
fn l7_a_probe_that_hangs_up_or_speaks_another_protocol_is_counted_and_answered_in_eight_bytes() {
    let mut bench = Bench::new();
    let silent = bench.raw();
    bench.cut(silent);
    let browser = bench.raw();
    bench.say_bytes(browser, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bench.hear(browser).0, [Said::Header(PROTOCOL_AMQP)]);
    bench.cut(browser);
    let directory = bench.node.management.directory();
    assert_eq!((directory.failed_handshakes(), directory.len()), (2, 0));
}

#[test]
fn m4_a_peer_that_never_finishes_the_handshake_is_dropped_and_forgotten() {
    let mut bench = Bench::new();
    let raw = bench.raw();
    bench.say_bytes(raw, &PROTOCOL_AMQP[..5]);
    bench.advance(30_000);
    assert!(bench.is_closed(raw));
    bench.cut(raw);
    bench.expect_nothing_left();
}

#[test]
fn n13_a_connection_is_known_by_the_address_that_it_comes_from() {
    let mut bench = Bench::new();
    bench.raw_open(Open::new("somebody"));
    let connections = bench.node.management.directory().connections();
    assert_eq!(connections[0].peer_address, "10.0.0.1:40000");
    assert_eq!(connections[0].opened.get().unwrap().container, "somebody");
}

#[test]
fn l8_a_session_that_is_ended_for_a_fault_says_why() {
    let mut bench = Bench::with(|setup| setup.engine.incoming_window = 2);
    let raw = bench.raw_begun();
    bench.say(raw, 0, &sending(0, "q"));
    bench.hear(raw);
    let burst: Vec<u8> = (0..3).flat_map(|id| framed(0, &whole(0, id), &[0; 3])).collect();
    bench.say_bytes(raw, &burst);
    let error = bench.hear(raw).end().error.unwrap();
    assert_eq!(error.condition, condition::WINDOW_VIOLATION);
    assert_eq!(bench.numbers("q").producer_count, 0, "its links went with it");
}

#[test]
fn a_connection_that_an_operator_closes_is_told_so() {
    let mut bench = Bench::new();
    let raw = bench.raw_opened();
    bench.hear(raw);
    let record = bench.node.management.directory().connections().remove(0);
    record.request_close().perform();
    bench.run();
    let error = bench.hear(raw).close().error.unwrap();
    assert_eq!(error.condition, condition::CONNECTION_FORCED);
    bench.say(raw, 0, &Close { error: None });
    assert!(bench.is_closed(raw));
    bench.expect_nothing_left();
}

#[test]
fn a_close_with_an_error_ends_everything_as_one_without() {
    let mut bench = Bench::new();
    let raw = bench.raw_receiver("q", 10);
    let error = AmqpError::new(condition::INTERNAL_ERROR, "out of ideas");
    let heard = bench.ask(raw, &Close { error: Some(error) });
    assert_eq!(heard.names(), ["close"]);
    assert!(heard.close().error.is_none());
    bench.expect_nothing_left();
}
