use crate::desk::{Desk, ask, consumer};
use mochila_management::{Direction, LinkRecord};
use mochila_wire::{Map, Value};
use std::sync::atomic::Ordering;

#[test]
fn a_connection_tells_who_is_there_and_how_much_has_passed() {
    let mut desk = Desk::new();
    let (record, _) = desk.connect("shop");
    record.messages_in.add(3);
    record.bytes_out.add(500);
    desk.pass(2_500);
    let told = desk.tell(ask("READ").kind("connection").name("1"));
    let connection = told.map();
    let expected = Map::new()
        .with("identity", "connection/1")
        .with("address", "127.0.0.1:40001")
        .with("container", "shop-container")
        .with("authIdentity", "anonymous")
        .with("saslMechanism", "ANONYMOUS")
        .with("remoteProcessName", "shop")
        .with("remotePid", "4711")
        .with("connectedMs", 2_500u64)
        .with("idleMs", 2_500u64)
        .with("msgsFromClient", 3u64)
        .with("bytesToClient", 500u64);
    for (key, value) in expected.iter() {
        let key = key.as_str().unwrap();
        assert_eq!(connection.get(key), Some(value), "{key}");
    }
}

#[test]
fn deleting_a_connection_asks_it_to_close() {
    let mut desk = Desk::new();
    let (record, bell) = desk.connect("shop");
    let told = desk.tell(ask("DELETE").identity("connection/1"));
    assert_eq!(told.status, 204);
    assert!(record.is_close_requested());
    assert_eq!(bell.rung.load(Ordering::Relaxed), 1);
    desk.management.directory().leave(&record);
    let told = desk.tell(ask("DELETE").identity("connection/1"));
    assert_eq!(told.outcome(), (404, "there is no connection 'connection/1'"));
}

#[test]
fn sessions_and_links_are_found_by_the_numbers_of_their_connection() {
    let mut desk = Desk::new();
    let (record, _) = desk.connect("shop");
    record.enter_session(0, desk.now.wall_ms);
    record.enter_session(4, desk.now.wall_ms);
    let link = LinkRecord::new("in".into(), 4, Direction::In, "orders".into());
    record.enter_link(2, link).unsettled.set(6);
    let told = desk.tell(ask("QUERY").property("entityType", "session"));
    assert_eq!(told.names(), ["1.0", "1.4"]);
    assert_eq!(desk.read("session", "1.4", "unsettled"), Value::Ulong(6));
    assert_eq!(desk.read("session", "1.0", "linkCount"), Value::Ulong(0));
    let told = desk.tell(ask("READ").identity("link/1.2"));
    assert_eq!(told.map().get("address"), Some(&"orders".into()));
    assert_eq!(told.map().get("direction"), Some(&"in".into()));
    assert_eq!(told.map().get("session"), Some(&"session/1.4".into()));
    assert_eq!(told.map().get("connection"), Some(&"connection/1".into()));
    record.leave_link(2);
    record.leave_session(4);
    assert_eq!(desk.tell(ask("READ").identity("link/1.2")).status, 404);
    assert_eq!(desk.tell(ask("READ").identity("session/1.4")).status, 404);
}

#[test]
fn a_link_may_be_called_by_its_name_as_long_as_there_is_one_of_that_name() {
    let mut desk = Desk::new();
    let (record, _) = desk.connect("shop");
    record.enter_link(0, consumer("mine", "a"));
    assert_eq!(desk.read("link", "mine", "address"), "a".into());
    record.enter_link(1, consumer("mine", "b"));
    let told = desk.tell(ask("READ").kind("link").name("mine"));
    assert_eq!(
        told.outcome(),
        (400, "several links are named 'mine': say which with its identity")
    );
}

#[test]
fn a_link_tells_for_how_long_it_has_had_no_credit() {
    let mut desk = Desk::new();
    let (record, _) = desk.connect("shop");
    let link = record.enter_link(0, consumer("l", "q"));
    link.credit.set(10);
    assert_eq!(desk.read("link", "l", "withoutCreditMs"), Value::Ulong(0));
    link.credit.set(0);
    link.without_credit_since_ms.set(desk.now.mono_ms);
    desk.pass(7_000);
    assert_eq!(desk.read("link", "l", "withoutCreditMs"), Value::Ulong(7_000));
    assert_eq!(desk.read("broker", "here", "linksBlocked"), Value::Ulong(0));
    desk.pass(3_000);
    assert_eq!(desk.read("broker", "here", "linksBlocked"), Value::Ulong(1));
}

#[test]
fn the_node_counts_who_never_got_as_far_as_an_open() {
    let mut desk = Desk::new();
    let (served, _) = desk.connect("shop");
    let (record, _) = desk.half_open();
    assert_eq!(desk.read("connection", "2", "opened"), Value::Bool(false));
    assert_eq!(desk.read("connection", "2", "container"), Value::Null);
    desk.management.directory().leave(&record);
    desk.management.directory().leave(&served);
    assert_eq!(desk.read("broker", "here", "failedHandshakes"), Value::Ulong(1));
    assert_eq!(desk.read("broker", "here", "connectionTotal"), Value::Ulong(2));
    assert_eq!(desk.read("broker", "here", "connectionCount"), Value::Ulong(0));
}
