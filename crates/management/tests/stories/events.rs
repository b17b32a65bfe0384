//! What has happened lately, as an operator asks for it.

use crate::desk::{Desk, ask};
use crate::standing::fill;
use mochila_wire::{Map, Value};

#[test]
fn what_has_happened_is_listed_with_its_time_and_who_had_to_do_with_it() {
    let mut desk = Desk::new();
    desk.tell(ask("CREATE").kind("queue").name("q").with("alert-count", 3u32));
    fill(&desk, "q", 3);
    let told = desk.tell(ask("QUERY").property("entityType", "event"));
    let rows = told.rows();
    let of = |row: &Map, key: &str| row.get(key).unwrap().clone();
    let events: Vec<Value> = rows.iter().map(|row| of(row, "event")).collect();
    let expected: [Value; 2] = ["queueDeclare".into(), "queueThresholdCrossedUpward".into()];
    assert_eq!(events, expected);
    assert_eq!(of(&rows[1], "severity"), "warn".into());
    assert_eq!(of(&rows[1], "time"), Value::Timestamp(desk.now.wall_ms));
    let details = of(&rows[1], "details");
    assert_eq!(details.as_map().unwrap().get("count"), Some(&Value::Ulong(3)));
}

#[test]
fn exchanges_and_bindings_are_told_of_too() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.tell(ask("CREATE").kind("exchange").name("e").with("exchange-type", "topic"));
    for _ in 0..2 {
        desk.tell(ask("CREATE").kind("binding").name("e/q/a.#"));
    }
    desk.tell(ask("DELETE").kind("binding").name("e/q/a.#"));
    desk.tell(ask("DELETE").kind("exchange").name("e"));
    let told = desk.tell(ask("QUERY").property("entityType", "event"));
    let events: Vec<String> = told
        .rows()
        .iter()
        .map(|row| {
            let details = row.get("details").and_then(Value::as_map).unwrap();
            let text = |key: &str| details.get(key).and_then(Value::as_str).unwrap_or("-");
            let event = row.get("event").and_then(Value::as_str).unwrap();
            format!("{event} {} {} {}", text("exchange"), text("queue"), text("key"))
        })
        .collect();
    let expected = [
        "queueDeclare - q -",
        "exchangeDeclare e - -",
        "bind e q a.#",
        "unbind e q a.#",
        "exchangeDelete e - -",
    ];
    assert_eq!(events, expected);
}

#[test]
fn one_event_is_read_by_its_number() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.create("p");
    let details = desk.read("event", "2", "details");
    assert_eq!(details.as_map().unwrap().get("queue"), Some(&"p".into()));
    assert_eq!(desk.tell(ask("READ").kind("event").name("7")).status, 404);
}

#[test]
fn thresholds_that_contradict_each_other_are_refused() {
    let mut desk = Desk::new();
    let create = ask("CREATE").kind("queue").name("q").with("qpid.alert_count_up", 5u32);
    let told = desk.tell(create.with("qpid.alert_count_down", 6u32));
    let sentence = "qpid.alert_count_down (6) must not be larger than qpid.alert_count (5)";
    assert_eq!(told.outcome(), (400, sentence));
}
