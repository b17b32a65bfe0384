use crate::desk::{Desk, ask};
use crate::standing::fill;
use mochila_management::Logging;
use mochila_wire::message::Body;
use mochila_wire::{Map, Value};
use std::sync::{Arc, Mutex};

fn query(kind: &str) -> crate::desk::Ask {
    ask("QUERY").kind("org.amqp.management").property("entityType", kind)
}

fn list(names: &[&str]) -> Value {
    Value::List(names.iter().map(|name| Value::from(*name)).collect())
}

#[test]
fn a_query_lists_queues_by_name_with_the_attributes_asked_for() {
    let mut desk = Desk::new();
    for name in ["c", "a", "b"] {
        desk.create(name);
    }
    fill(&desk, "b", 4);
    let told = desk.tell(query("queue").with("attributeNames", list(&["name", "msgDepth"])));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(told.map().get("attributeNames"), Some(&list(&["name", "msgDepth"])));
    let row = |name: &str, depth: u64| {
        Map::from_iter([("name".into(), name.into()), ("msgDepth".into(), Value::Ulong(depth))])
    };
    assert_eq!(told.rows(), [row("a", 0), row("b", 4), row("c", 0)]);
}

#[test]
fn without_a_list_all_attributes_are_told() {
    let mut desk = Desk::new();
    desk.create("a");
    for request in [query("queue"), query("queue").with("attributeNames", list(&[]))] {
        let told = desk.tell(request);
        let row = &told.rows()[0];
        for attribute in ["name", "max-size", "msgTotalEnqueues", "consumerCount", "holders"] {
            assert!(row.get(attribute).is_some(), "{attribute}");
        }
    }
}

#[test]
fn without_a_type_everything_is_listed_and_what_does_not_apply_is_null() {
    let mut desk = Desk::new();
    desk.create("a");
    desk.connect("shop");
    let told = desk.tell(ask("QUERY").with("attributeNames", list(&["type", "msgDepth"])));
    let types: Vec<_> = told.rows().iter().map(|row| row.get("type").cloned().unwrap()).collect();
    let mut kinds = types.clone();
    kinds.dedup();
    let expected = ["broker", "queue", "exchange", "binding", "connection", "event"];
    assert_eq!(kinds, expected.map(Value::from));
    assert_eq!(told.rows().last().unwrap().get("msgDepth"), Some(&Value::Null));
}

#[test]
fn offset_and_count_select_a_page() {
    let mut desk = Desk::new();
    for name in ["a", "b", "c", "d"] {
        desk.create(name);
    }
    let told = desk.tell(query("queue").property("offset", 1i32).property("count", 2i32));
    assert_eq!(told.names(), ["b", "c"]);
    assert_eq!(told.message.application_property("count"), Some(&Value::Ulong(2)));
    assert_eq!(told.message.application_property("total"), Some(&Value::Ulong(4)));
    assert_eq!(told.message.application_property("nextOffset"), Some(&Value::Ulong(3)));
    let told = desk.tell(query("queue").property("offset", 3u32));
    assert_eq!(told.names(), ["d"]);
    assert_eq!(told.message.application_property("nextOffset"), None);
    assert!(desk.tell(query("queue").property("offset", u64::MAX)).rows().is_empty());
}

#[test]
fn an_answer_never_grows_beyond_a_mebibyte_or_so() {
    let mut desk = Desk::new();
    for number in 0..3_000 {
        desk.create(&format!("{number:0200}"));
    }
    let (mut seen, mut pages, mut offset) = (0, 0, 0u64);
    loop {
        let told = desk.tell(query("queue").property("offset", offset));
        seen += told.rows().len();
        pages += 1;
        let bytes = mochila_wire::Encode::to_bytes(&told.message).len();
        assert!(bytes < (1 << 20) + (1 << 14), "{bytes} bytes");
        match told.message.application_property("nextOffset").and_then(Value::as_u64) {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(seen, 3_000);
    assert!(pages > 1);
}

/// Proton keeps at most 65,535 values of a body, and shows what came before without a word.
#[test]
fn an_answer_never_has_more_values_than_proton_reads() {
    let mut desk = Desk::new();
    for number in 0..3_003 {
        desk.create(&format!("q{number:05}"));
    }
    for attributes in [list(&[]), list(&["name"]), list(&["name", "holders", "arguments"])] {
        let (mut seen, mut offset) = (Vec::new(), Some(0u64));
        while let Some(from) = offset {
            let request = query("queue").property("offset", from);
            let told = desk.tell(request.with("attributeNames", attributes.clone()));
            let values = values_in(told.message.body.as_value().unwrap());
            assert!(values < 60_000, "{values} values");
            seen.extend(told.names());
            offset = told.message.application_property("nextOffset").and_then(Value::as_u64);
        }
        assert_eq!(seen.len(), 3_003);
        assert!(seen.is_sorted());
    }
}

fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::List(items) => items.iter().map(values_in).sum(),
        Value::Map(map) => map.iter().map(|(key, value)| values_in(key) + values_in(value)).sum(),
        _ => 0,
    }
}

#[test]
fn the_management_node_tells_what_it_knows_about() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("GET-TYPES").kind("org.amqp.management").name("self"));
    let types: Vec<_> = told.map().iter().map(|(name, _)| name.as_str().unwrap()).collect();
    let expected =
        ["broker", "queue", "exchange", "binding", "connection", "session", "link", "event"];
    assert_eq!(types, expected);
    let told = desk.tell(ask("GET-ATTRIBUTES").property("entityType", "queue"));
    assert_eq!(told.map().len(), 1);
    let attributes = told.map().get("queue").and_then(Value::as_list).unwrap();
    assert!(attributes.contains(&"max-count".into()) && attributes.contains(&"acquires".into()));
    let told = desk.tell(ask("GET-OPERATIONS"));
    assert_eq!(told.map().get("connection"), Some(&list(&["READ", "DELETE"])));
    let told = desk.tell(ask("GET-MGMT-NODES"));
    assert_eq!(told.message.body, Body::Value(Value::List(Vec::new())));
}

#[test]
fn the_node_tells_of_itself_and_of_all_queues_together() {
    let mut desk = Desk::new();
    desk.create("a");
    desk.create("b");
    fill(&desk, "a", 2);
    fill(&desk, "b", 3);
    desk.pass(60_000);
    let told = desk.tell(ask("READ").kind("broker"));
    let node = told.map();
    assert_eq!(node.get("name"), Some(&"here".into()));
    assert_eq!(node.get("version"), Some(&"1.2.3".into()));
    assert_eq!(node.get("workerThreads"), Some(&Value::Ulong(3)));
    assert_eq!(node.get("uptimeMs"), Some(&Value::Ulong(60_000)));
    assert_eq!(node.get("queueCount"), Some(&Value::Ulong(2)));
    assert_eq!(node.get("msgDepth"), Some(&Value::Ulong(5)));
    assert_eq!(node.get("memoryLimitBytes"), Some(&Value::Ulong(1 << 30)));
    assert!(node.get("memoryUsedBytes").and_then(Value::as_u64).unwrap() > 0);
}

/// A log of which only the level is known.
#[derive(Debug)]
struct Log(Mutex<String>);

impl Logging for Log {
    fn level(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn set_level(&self, level: &str) -> Result<(), String> {
        if level == "loud" {
            return Err("'loud' is no level".to_owned());
        }
        *self.0.lock().unwrap() = level.to_owned();
        Ok(())
    }
}

#[test]
fn what_is_logged_is_told_and_changed() {
    let mut desk = Desk::new();
    let update = |level: &str| ask("UPDATE").kind("broker").with("logLevel", level);
    assert_eq!(desk.read("broker", "broker", "logLevel"), Value::Null);
    assert_eq!(desk.tell(update("debug")).status, 501);
    desk.management.log_with(Arc::new(Log(Mutex::new("info".into()))));
    assert_eq!(desk.read("broker", "broker", "logLevel"), "info".into());
    let told = desk.tell(update("debug"));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(told.map().get("logLevel"), Some(&"debug".into()));
    assert_eq!(desk.tell(update("loud")).outcome(), (400, "'loud' is no level"));
    assert_eq!(desk.tell(ask("UPDATE").kind("broker")).status, 400);
    assert_eq!(desk.read("broker", "broker", "logLevel"), "debug".into());
}
