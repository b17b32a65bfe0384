use crate::desk::{Ask, Desk, ask};
use mochila_wire::{Map, Value};

fn create_exchange(desk: &mut Desk, name: &str, kind: &str) {
    let told = desk.tell(ask("CREATE").kind("exchange").name(name).with("exchange-type", kind));
    assert_eq!(told.status, 201, "{}", told.description);
}

#[test]
fn an_exchange_is_created_with_arguments_and_tells_what_is_in_force() {
    let mut desk = Desk::new();
    let told = desk.tell(
        ask("CREATE")
            .kind("org.mochila.exchange")
            .name("orders")
            .with("exchange-type", "direct")
            .with("alternate-exchange", "amq.fanout")
            .with("qpid.msg_sequence", 1u32)
            .with("arguments", Map::new().with("qpid.unroutable", "release")),
    );
    assert_eq!(told.outcome(), (201, "Created"));
    let exchange = told.map();
    for (name, value) in
        [("identity", "exchange/orders"), ("exchangeType", "direct"), ("altExchange", "amq.fanout")]
    {
        assert_eq!(exchange.get(name), Some(&value.into()), "{name}");
    }
    assert_eq!(exchange.get("msgDrops"), Some(&Value::Ulong(0)));
    let arguments = exchange.get("arguments").and_then(Value::as_map).unwrap();
    assert_eq!(arguments.get("qpid.msg_sequence"), Some(&true.into()));
    assert_eq!((arguments.get("qpid.unroutable"), arguments.len()), (Some(&"release".into()), 2));
    assert_eq!(desk.tell(ask("CREATE").kind("exchange").name("orders")).status, 409);
    let told = desk.tell(ask("CREATE").kind("exchange").name("x").with("exchange-type", "xml"));
    assert_eq!(told.status, 400, "{}", told.description);
    let told = desk.tell(ask("CREATE").kind("exchange").name("amq.mine"));
    assert_eq!(told.status, 400, "{}", told.description);
}

#[test]
fn what_an_exchange_does_not_understand_is_an_error_without_a_value_too_unless_it_is_marked() {
    let mut desk = Desk::new();
    let create = |name| ask("CREATE").kind("exchange").name(name);
    let marked = create("e").with("x-opt-colour", "red").with("qpid.replicate", "all");
    let told = desk.tell(marked.with("altExchange", Value::Null));
    assert_eq!(told.outcome(), (201, "Created"));
    assert_eq!(told.map().get("arguments"), Some(&Map::new().into()), "what is in force");
    for value in [Value::Null, 1.into()] {
        let told = desk.tell(create("other").with("qpid.foo", value));
        assert_eq!(told.outcome(), (400, "'qpid.foo' is not an argument of an exchange"));
    }
}

#[test]
fn those_that_are_always_there_are_listed_and_cannot_be_deleted() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("QUERY").kind("exchange"));
    let rows = told.rows();
    let names: Vec<_> = rows.iter().map(|row| row.get("name").unwrap().clone()).collect();
    let expected = ["", "amq.direct", "amq.fanout", "amq.match", "amq.topic"];
    assert_eq!(names, expected.map(Value::from));
    for name in expected {
        let told = desk.tell(ask("DELETE").kind("exchange").name(name));
        assert_eq!(told.status, 409, "{}", told.description);
    }
    assert_eq!(desk.tell(ask("DELETE").kind("exchange").name("missing")).status, 404);
}

#[test]
fn a_queue_is_bound_and_unbound_by_the_name_of_the_binding() {
    let mut desk = Desk::new();
    desk.create("q");
    let told = desk.tell(ask("CREATE").kind("binding").name("amq.topic/q/#.news.*"));
    assert_eq!(told.outcome(), (201, "Created"));
    assert_eq!(told.map().get("key"), Some(&"#.news.*".into()));
    assert_eq!(desk.read("queue", "q", "bindingCount"), Value::Ulong(2));
    assert_eq!(desk.read("exchange", "amq.topic", "bindingCount"), Value::Ulong(1));
    let told = desk.tell(ask("QUERY").kind("binding"));
    assert_eq!(told.names(), ["/q/q", "amq.topic/q/#.news.*"]);
    assert_eq!(desk.read("binding", "/q/q", "exchange"), "".into());
    assert_eq!(desk.read("binding", "amq.topic/q/#.news.*", "links"), Value::Null);
    assert_eq!(desk.tell(ask("DELETE").kind("binding").name("/q/q")).status, 409);
    let told = desk.tell(ask("DELETE").kind("binding").name("amq.topic/q/#.news.*"));
    assert_eq!(told.status, 204);
    assert_eq!(desk.tell(ask("DELETE").kind("binding").name("amq.topic/q/x")).status, 404);
    assert_eq!(desk.tell(ask("CREATE").kind("binding").name("amq.topic/none/x")).status, 404);
    assert_eq!(desk.tell(ask("CREATE").kind("binding").name("none/q/x")).status, 404);
    assert_eq!(desk.tell(ask("CREATE").kind("binding").name("nothing")).status, 400);
}

#[test]
fn names_of_queues_and_keys_may_have_slashes() {
    let mut desk = Desk::new();
    desk.create("a/b");
    let told = desk.tell(ask("CREATE").kind("binding").name("amq.direct/a/b/c/d"));
    let binding = told.map();
    assert_eq!(binding.get("queue"), Some(&"a/b".into()));
    assert_eq!(binding.get("key"), Some(&"c/d".into()));
    assert_eq!(desk.tell(ask("DELETE").kind("binding").name("amq.direct/a/b/c/d")).status, 204);
    let told = desk.tell(
        ask("CREATE")
            .kind("binding")
            .with("exchange", "amq.direct")
            .with("queue", "a/b")
            .with("key", "k"),
    );
    assert_eq!(told.status, 201, "{}", told.description);
}

#[test]
fn what_is_said_of_a_binding_twice_has_to_be_the_same() {
    let mut desk = Desk::new();
    desk.create("q");
    let bind = |name: &str| {
        let ask = ask("CREATE").kind("binding");
        if name.is_empty() { ask } else { ask.name(name) }
    };
    let nested = |value: i32| Map::new().with("x-match", "all").with("c", value);
    let whole = |ask: Ask| ask.with("exchange", "amq.match").with("queue", "q");
    for (ask, status) in [
        (whole(bind("")).with("arguments", nested(1)).with("c", 2), 400),
        (whole(bind("")).with("arguments", nested(1)).with("c", 1), 201),
        (whole(bind("amq.match/q/k")).with("arguments", nested(1)), 201),
        (whole(bind("amq.match/q/n")).with("key", "k").with("arguments", nested(1)), 400),
        (whole(bind("amq.match/p/n")).with("arguments", nested(1)), 400),
        (bind("amq.topic/q/n").with("key", "m"), 400),
        (bind("amq.topic/q/n").with("queue", "p"), 400),
        (bind("amq.topic/q/n").with("exchange", "amq.direct"), 400),
        (bind("amq.topic/q/n").with("exchange", "amq.topic").with("key", "n"), 201),
    ] {
        let told = desk.tell(ask);
        assert_eq!(told.status, status, "{told:?}");
    }
    let keys = ["amq.match/q/", "amq.match/q/k", "amq.topic/q/n"];
    for name in keys {
        assert_eq!(desk.tell(ask("DELETE").kind("binding").name(name)).status, 204, "{name}");
    }
}

#[test]
fn a_request_that_says_two_things_is_refused() {
    let mut desk = Desk::new();
    desk.create("q");
    desk.create("other");
    let delete = || ask("DELETE").kind("queue").name("q");
    let bind = || ask("CREATE").kind("binding").with("exchange", "amq.direct").with("queue", "q");
    let exchange = || ask("CREATE").kind("exchange").name("e");
    for (ask, reason) in [
        (delete().with("if_empty", false).property("if_empty", true), "'if_empty' is false in the"),
        (delete().identity("queue/other"), "are of two"),
        (ask("READ").kind("queue").name("q").identity("queue/other"), "are of two"),
        (bind().with("key", 5), "'key' has to be a string, not 5"),
        (bind().with("arguments", 5), "'arguments' has to be a map"),
        (
            exchange().with("exchangeType", "topic").with("exchange-type", "direct"),
            "are the same argument",
        ),
        (
            exchange()
                .with("qpid.unroutable", "reject")
                .with("arguments", Map::new().with("qpid.unroutable", "release")),
            "is given twice",
        ),
    ] {
        let told = desk.tell(ask);
        assert_eq!(told.status, 400, "{reason}: {}", told.description);
        assert!(told.description.contains(reason), "{}", told.description);
    }
    let same = exchange().with("exchangeType", "topic").with("exchange-type", "topic");
    assert_eq!(desk.tell(same).status, 201);
    let same = ask("DELETE").kind("queue").name("q").identity("queue/q").with("if_empty", true);
    assert_eq!(desk.tell(same.property("if_empty", true)).status, 204);
}

#[test]
fn a_binding_to_a_headers_exchange_has_arguments() {
    let mut desk = Desk::new();
    desk.create("q");
    let bind = || ask("CREATE").kind("binding").name("amq.match/q/k").with("colour", "red");
    let told = desk.tell(bind());
    assert_eq!(told.status, 400, "{}", told.description);
    let told = desk.tell(bind().with("x-match", "all"));
    let arguments = told.map().get("arguments").and_then(Value::as_map).unwrap().clone();
    assert_eq!(arguments.get("colour"), Some(&"red".into()));
    assert_eq!(desk.tell(bind().with("x-match", "all")).status, 201, "it stays as it is");
    assert_eq!(desk.tell(bind().with("x-match", "any")).status, 409);
}

#[test]
fn an_exchange_in_use_is_not_deleted_if_that_was_asked() {
    let mut desk = Desk::new();
    desk.create("q");
    create_exchange(&mut desk, "e", "fanout");
    desk.tell(ask("CREATE").kind("binding").name("e/q/"));
    let delete = || ask("DELETE").kind("exchange").name("e");
    assert_eq!(desk.tell(delete().with("if_unused", true)).status, 409);
    assert_eq!(desk.tell(delete()).status, 204);
    assert_eq!(desk.read("queue", "q", "bindingCount"), Value::Ulong(1));
}
