use crate::desk::{Ask, Desk, ask};
use crate::standing::fill;
use mochila_wire::{Map, Value};

#[test]
fn a_queue_tells_who_has_made_it() {
    let mut desk = Desk::new();
    desk.tell(ask("CREATE").kind("queue").name("asked"));
    assert_eq!(desk.read("queue", "asked", "creator"), "operator".into());
    desk.broker.open_for("used", Some("ada")).unwrap();
    desk.broker.open_for("used", Some("bob")).unwrap();
    assert_eq!(desk.read("queue", "used", "creator"), "ada".into());
    desk.broker.open("of-nobody").unwrap();
    assert_eq!(desk.read("queue", "of-nobody", "creator"), Value::Null);
}

#[test]
fn a_queue_is_created_with_arguments_under_either_name_and_tells_what_is_in_force() {
    let mut desk = Desk::new();
    let told = desk.tell(
        ask("CREATE")
            .kind("org.mochila.queue")
            .name("orders")
            .with("qpid.max_count", 4_000_000u32)
            .with("max-size", "1200000000")
            .with("qpid.flow_stop_count", 0u32)
            .with("autoDelete", false),
    );
    assert_eq!(told.outcome(), (201, "Created"));
    let queue = told.map();
    assert_eq!(queue.get("name"), Some(&"orders".into()));
    assert_eq!(queue.get("max-count"), Some(&Value::Ulong(4_000_000)));
    assert_eq!(queue.get("flow-stop-size"), Some(&Value::Ulong(0)));
    assert_eq!(queue.get("msgDepth"), Some(&Value::Ulong(0)));
    let arguments = queue.get("arguments").and_then(Value::as_map).unwrap();
    assert_eq!(arguments.get("qpid.max_size"), Some(&Value::Ulong(1_200_000_000)));
    assert_eq!(arguments.len(), 3, "{arguments:?}");
    assert!(desk.broker.queue("orders").is_some());
}

#[test]
fn arguments_may_come_in_a_map_of_their_own() {
    let mut desk = Desk::new();
    let arguments = Map::new().with("qpid.max_count", 5u32);
    let told = desk.tell(ask("CREATE").kind("queue").name("q").with("arguments", arguments));
    assert_eq!(told.status, 201);
    assert_eq!(told.map().get("max-count"), Some(&Value::Ulong(5)));
}

#[test]
fn a_queue_that_exists_is_not_created_again() {
    let mut desk = Desk::new();
    desk.create("q");
    let told = desk.tell(ask("CREATE").kind("queue").name("q"));
    assert_eq!(told.outcome(), (409, "a queue named 'q' exists already"));
}

#[test]
fn a_wrong_argument_is_named_and_nothing_is_created() {
    let mut desk = Desk::new();
    let create = || ask("CREATE").kind("queue").name("q");
    let told = desk.tell(create().with("qpid.max_cuont", 5u32));
    assert_eq!(told.outcome(), (400, "'qpid.max_cuont' is not an argument of a queue"));
    let told = desk.tell(create().with("qpid.max_count", "many"));
    assert_eq!(told.outcome(), (400, "qpid.max_count takes a number of messages, not 'many'"));
    let told = desk.tell(create().with("max-count", 5u32).with("flow-stop-count", 6u32));
    assert_eq!(
        told.outcome(),
        (400, "qpid.flow_stop_count (6) must not be larger than qpid.max_count (5)")
    );
    assert!(desk.broker.queue("q").is_none());
}

#[test]
fn an_argument_that_is_not_understood_is_an_error_without_a_value_too_unless_it_is_marked() {
    let mut desk = Desk::new();
    let marked = |request: Ask| request.kind("queue").name("q").with("x-opt-colour", "red");
    let told = desk.tell(marked(ask("CREATE")).with("max-count", Value::Null));
    assert_eq!(told.outcome(), (201, "Created"));
    assert_eq!(told.map().get("arguments"), Some(&Map::new().into()), "what is in force");
    let told = desk.tell(marked(ask("UPDATE")).with("qpid.replicate", "all"));
    assert_eq!(told.outcome(), (200, "OK"));
    for operation in ["CREATE", "UPDATE"] {
        let asked = ask(operation).kind("queue").name("q").with("qpid.foo", Value::Null);
        let told = desk.tell(asked);
        assert_eq!(told.outcome(), (400, "'qpid.foo' is not an argument of a queue"));
    }
}

#[test]
fn a_queue_needs_a_name_and_two_names_have_to_agree() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("CREATE").kind("queue"));
    assert_eq!(told.outcome(), (400, "a queue needs a name: the application property 'name'"));
    let told = desk.tell(ask("CREATE").kind("queue").name("a").with("name", "b"));
    assert_eq!(told.status, 400);
    let told = desk.tell(ask("CREATE").kind("queue").with("name", "b"));
    assert_eq!(told.status, 201);
    let told = desk.tell(ask("CREATE").kind("queue").name(""));
    assert_eq!(told.status, 400, "{}", told.description);
}

#[test]
fn limits_change_while_the_queue_is_in_use_and_what_it_is_does_not() {
    let mut desk = Desk::new();
    desk.create("q");
    let told = desk.tell(ask("UPDATE").kind("queue").name("q").with("max-count", 9u32));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(desk.read("queue", "q", "max-count"), Value::Ulong(9));

    let told = desk.tell(ask("UPDATE").kind("queue").name("q").with("exclusive", true));
    assert_eq!(told.status, 400);
    assert!(told.description.starts_with("'exclusive' of a queue cannot be changed"));
    let told = desk.tell(ask("UPDATE").kind("queue").name("q").with("exclusive", false));
    assert_eq!(told.status, 200, "what is so already may be said");
}

#[test]
fn a_producer_that_was_held_back_goes_on_when_the_limit_is_raised() {
    let mut desk = Desk::new();
    let create = ask("CREATE").kind("queue").name("q");
    desk.tell(create.with("flow-stop-count", 2u32).with("flow-resume-count", 1u32));
    let (_, bell) = desk.connect("sender");
    let queue = desk.broker.queue("q").unwrap();
    let producer = desk.attach_producer(&queue, &bell, 5);
    fill(&desk, "q", 3);
    assert_eq!(desk.grant(&queue, producer, 10), 0);
    assert_eq!(desk.read("queue", "q", "flowStopped"), Value::Bool(true));

    let told = desk.tell(
        ask("UPDATE")
            .kind("queue")
            .name("q")
            .with("flow-stop-count", 0u32)
            .with("flow-resume-count", 0u32),
    );
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(*bell.keys.lock().unwrap(), [5]);
    assert_eq!(desk.read("queue", "q", "flowStopped"), Value::Bool(false));
    assert_eq!(desk.read("queue", "q", "flowStoppedCount"), Value::Ulong(1));
}

#[test]
fn a_queue_that_is_not_empty_is_deleted_only_by_who_does_not_mind() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 2);
    let delete = || ask("DELETE").kind("queue").name("q");
    let told = desk.tell(delete().property("if_empty", true));
    assert_eq!(told.outcome(), (409, "queue 'q' is not empty: it holds 2 messages"));
    let told = desk.tell(delete().with("if_empty", true).with("if_unused", true));
    assert_eq!(told.status, 409);
    let told = desk.tell(delete());
    assert_eq!(told.outcome(), (204, "No Content"));
    assert!(desk.broker.queue("q").is_none());
    assert_eq!(desk.tell(delete()).outcome(), (404, "there is no queue 'q'"));
}

#[test]
fn a_queue_in_use_is_deleted_only_by_who_does_not_mind_and_its_links_are_told() {
    let mut desk = Desk::new();
    desk.create("q");
    let (_, bell) = desk.connect("receiver");
    let queue = desk.broker.queue("q").unwrap();
    desk.subscribe(&queue, &bell, 3);
    let delete = || ask("DELETE").kind("queue").name("q");
    let told = desk.tell(delete().property("if_unused", true));
    assert_eq!(told.outcome(), (409, "queue 'q' is in use by 1 consumer and 0 producers"));
    assert_eq!(desk.tell(delete()).status, 204);
    assert_eq!(*bell.keys.lock().unwrap(), [3]);
}

#[test]
fn a_purge_says_how_many_messages_it_removed() {
    let mut desk = Desk::new();
    desk.create("q");
    fill(&desk, "q", 5);
    let told = desk.tell(ask("PURGE").kind("queue").name("q").with("count", 2u32));
    assert_eq!(told.status, 200);
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(2)));
    let told = desk.tell(ask("PURGE").kind("queue").name("q"));
    assert_eq!(told.map().get("purged"), Some(&Value::Ulong(3)));
    assert_eq!(desk.read("queue", "q", "msgDepth"), Value::Ulong(0));
    assert_eq!(desk.read("queue", "q", "discardsPurge"), Value::Ulong(5));
    assert_eq!(desk.read("queue", "q", "msgTotalDequeues"), Value::Ulong(5));
}

#[test]
fn the_groups_of_a_queue_are_told() {
    let mut desk = Desk::new();
    let create = ask("CREATE").kind("queue").name("q").with("qpid.shared_msg_group", 1u32);
    assert_eq!(desk.tell(create).status, 201);
    fill(&desk, "q", 2);
    assert_eq!(desk.read("queue", "q", "groupCount"), Value::Ulong(1));
    let groups = desk.read("queue", "q", "groups");
    let group = groups.as_list().and_then(|groups| groups[0].as_map()).unwrap();
    assert_eq!(group.get("id"), Some(&"qpid.no-group".into()));
    assert_eq!(group.get("messages"), Some(&Value::Ulong(2)));
    assert_eq!(group.get("acquired"), Some(&Value::Ulong(0)));
    assert_eq!(group.get("connection"), Some(&Value::Null));
    let regroup = ask("UPDATE").kind("queue").name("q").with("group-header-key", "colour");
    assert_eq!(desk.tell(regroup).outcome(), (409, "queue 'q' is not empty: it holds 2 messages"));
}

#[test]
fn a_durable_queue_is_made_but_nobody_is_told_that_it_survives() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("CREATE").kind("queue").name("a").with("durable", true));
    assert_eq!(told.outcome(), (201, "Created"));
    assert_eq!(told.map().get("durable"), Some(&Value::Bool(false)));
    assert_eq!(desk.read("queue", "a", "durable"), Value::Bool(false));
    let told = desk.tell(ask("UPDATE").kind("queue").name("a").with("durable", true));
    assert_eq!(told.status, 400, "{}", told.description);
}

#[test]
fn what_was_left_in_queues_that_are_gone_is_counted_by_where_it_went() {
    let mut desk = Desk::new();
    desk.tell(ask("CREATE").kind("queue").name("kept").with("alternate-exchange", "amq.fanout"));
    desk.create("lost");
    desk.create("empty");
    fill(&desk, "kept", 3);
    fill(&desk, "lost", 2);
    for name in ["kept", "lost", "empty"] {
        assert_eq!(desk.tell(ask("DELETE").kind("queue").name(name)).status, 204);
    }
    let mut node = |name| desk.read("broker", "here", name);
    assert_eq!(node("abandoned"), Value::Ulong(2));
    assert_eq!(node("abandonedViaAlt"), Value::Ulong(3));
    assert_eq!(node("discardsNoRoute"), Value::Ulong(3), "nothing was bound to the exchange");
}

#[test]
fn the_name_of_a_queue_cannot_be_changed() {
    let mut desk = Desk::new();
    desk.create("q");
    let update = |name| ask("UPDATE").kind("queue").name("q").with("name", name);
    assert_eq!(desk.tell(update("other")).status, 400);
    assert_eq!(desk.tell(update("q").with("max-count", 5_u32)).status, 200);
}
