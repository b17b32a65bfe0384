//! What is taken back of what a queue was made with.

use crate::desk::{Ask, Desk, ask};
use mochila_wire::{Map, Value};

fn create() -> Ask {
    ask("CREATE").kind("queue").name("q")
}

fn update() -> Ask {
    ask("UPDATE").kind("queue").name("q")
}

#[test]
fn null_takes_back_what_was_said_before() {
    let mut desk = Desk::new();
    let made = desk.tell(
        create()
            .with("max-count", 10)
            .with("flow-stop-count", 9)
            .with("flow-resume-count", 8)
            .with("limit-policy", "ring")
            .with("autoDelete", true)
            .with("qpid.queue_msg_sequence", "number"),
    );
    assert_eq!(made.status, 201, "{}", made.description);
    let told = desk.tell(update().with("max-count", 5));
    assert_eq!(told.status, 400, "the thresholds are above");
    let nested = Map::new().with("qpid.queue_msg_sequence", Value::Null);
    let told = desk.tell(
        update()
            .with("max-count", 5)
            .with("flow-stop-count", Value::Null)
            .with("qpid.flow_resume_count", Value::Null)
            .with("qpid.policy_type", Value::Null)
            .with("autoDelete", Value::Null)
            .with("arguments", nested),
    );
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(desk.read("queue", "q", "flow-stop-count"), Value::Ulong(4));
    assert_eq!(desk.read("queue", "q", "limit-policy"), "reject".into());
    assert_eq!(desk.read("queue", "q", "autoDelete"), false.into());
    let left = Map([("qpid.max_count".into(), 5_u64.into())].into_iter().collect());
    assert_eq!(desk.read("queue", "q", "arguments"), left.into());
    let told = desk.tell(update().with("max-count", Value::Null));
    assert_eq!(told.outcome(), (200, "OK"));
    assert_eq!(desk.read("queue", "q", "arguments"), Map::new().into());
}

#[test]
fn groups_and_priorities_end_and_what_was_said_of_them_ends_too() {
    let none = || [Value::Null, Value::from("")];
    for key in [None].into_iter().chain(none().map(Some)) {
        let mut desk = Desk::new();
        desk.tell(create().with("shared-msg-group", true).with("group-header-key", "colour"));
        let end = update().with("qpid.shared_msg_group", 0);
        let told = desk.tell(match key {
            None => end,
            Some(key) => end.with("qpid.group_header_key", key),
        });
        assert_eq!(told.outcome(), (200, "OK"));
        assert_eq!(desk.read("queue", "q", "arguments"), Map::new().into());
    }
    for turn in [None, Some(Value::Null), Some(0.into())] {
        let mut desk = Desk::new();
        desk.tell(create().with("priorities", 5).with("fairshare", 3).with("fairshare-2", 1));
        let end = update().with("priorities", 0);
        let told = desk.tell(match turn {
            None => end,
            Some(turn) => end.with("fairshare", turn.clone()).with("fairshare-2", turn),
        });
        assert_eq!(told.outcome(), (200, "OK"));
    }
}

#[test]
fn what_a_queue_is_cannot_be_taken_back_either() {
    let mut desk = Desk::new();
    desk.tell(create().with("exclusive", true));
    let told = desk.tell(update().with("exclusive", Value::Null));
    assert!(told.description.starts_with("'exclusive' of a queue cannot be changed"));
    let told = desk.tell(update().with("durable", Value::Null));
    assert_eq!(told.outcome(), (200, "OK"), "it is as usual already");
}

#[test]
fn an_empty_key_takes_back_the_one_there_is_and_makes_no_queue() {
    let mut desk = Desk::new();
    for name in ["last-value-queue-key", "sequence-key"] {
        let told = desk.tell(create().with(name, ""));
        assert_eq!(told.status, 400);
        assert!(told.description.ends_with(", not ''"), "{}", told.description);
    }
    desk.tell(create().with("sequence-key", "number"));
    for _ in ["there is one", "there is none any more"] {
        let told = desk.tell(update().with("sequence-key", ""));
        assert_eq!(told.outcome(), (200, "OK"));
        assert_eq!(desk.read("queue", "q", "sequence-key"), Value::Null);
    }
}

#[test]
fn one_argument_that_says_two_things_is_an_error_wherever_it_stands() {
    let mut desk = Desk::new();
    let different = [
        create().with("max-count", 5).with("qpid.max_count", 6),
        create().with("max-count", 5).with("arguments", Map::new().with("max-count", 6)),
        create().with("arguments", Map::new().with("max-count", 6)).with("max-count", 5),
        create().with("autoDelete", true).with("auto-delete", false),
    ];
    for asked in different {
        let told = desk.tell(asked);
        assert_eq!(told.status, 400);
        assert!(told.description.contains("different values"), "{}", told.description);
    }
    let told = desk.tell(create().with("max-count", 5).with("qpid.max_count", "5"));
    assert_eq!(told.outcome(), (201, "Created"));
}
