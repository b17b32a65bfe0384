use crate::desk::{Desk, Told, ask};
use mochila_wire::message::{Body, MessageId};
use mochila_wire::{Encode, Message, Value};

#[test]
fn an_operation_that_does_not_exist_is_told_from_one_that_the_type_does_not_have() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("EXPLODE").kind("queue").name("q"));
    assert_eq!(told.outcome(), (501, "there is no operation 'EXPLODE'"));
    let told = desk.tell(ask("PURGE").kind("connection").name("1"));
    assert_eq!(told.outcome(), (501, "a connection has no operation PURGE"));
}

#[test]
fn what_is_missing_is_named() {
    let mut desk = Desk::new();
    let told = desk.tell(crate::desk::Ask(Message::default()).kind("queue"));
    assert_eq!(told.outcome(), (400, "the request has no application property 'operation'"));
    let told = desk.tell(ask("READ").name("q"));
    assert_eq!(
        told.outcome(),
        (400, "READ of what? The request has no application property 'type'")
    );
    let told = desk.tell(ask("READ").kind("queue"));
    assert_eq!(told.status, 400);
    assert!(told.description.starts_with("which queue?"), "{}", told.description);
}

#[test]
fn what_is_unknown_is_named() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("READ").kind("topic").name("e"));
    assert_eq!(
        told.outcome(),
        (
            400,
            "there is no type 'topic'; there are broker, queue, exchange, binding, connection, \
             session, link, event"
        )
    );
    let names = Value::List(vec!["name".into(), "colour".into()]);
    let told = desk.tell(ask("QUERY").kind("queue").with("attributeNames", names));
    assert_eq!(told.outcome(), (400, "a queue has no attribute 'colour'"));
    desk.create("q");
    let told = desk.tell(ask("PURGE").kind("queue").name("q").with("amount", 5u32));
    assert_eq!(
        told.outcome(),
        (400, "PURGE has no argument 'amount'; it has count, request, filter")
    );
    let told = desk.tell(ask("READ").kind("broker").name("elsewhere"));
    assert_eq!(told.outcome(), (404, "there is no broker 'elsewhere'"));
}

#[test]
fn what_has_the_wrong_type_is_named() {
    let mut desk = Desk::new();
    desk.create("q");
    let told = desk.tell(ask("READ").kind("queue").property("name", 5u32));
    assert_eq!(told.outcome(), (400, "'name' has to be a string"));
    let told = desk.tell(ask("QUERY").kind("queue").property("offset", -1i32));
    assert_eq!(told.outcome(), (400, "'offset' has to be a number that is not negative"));
    let told = desk.tell(ask("DELETE").kind("queue").name("q").with("if_empty", "perhaps"));
    assert_eq!(told.outcome(), (400, "'if_empty' has to be true or false"));
    let told = desk.tell(ask("QUERY").kind("queue").with("attributeNames", "name"));
    assert_eq!(told.outcome(), (400, "'attributeNames' has to be a list of strings"));
    let mut request = ask("READ").kind("queue").name("q");
    request.0.body = Body::Value("text".into());
    let told = desk.tell(request);
    assert_eq!(told.outcome(), (400, "the body of a request has to be a map"));
    assert!(desk.broker.queue("q").is_some());
}

#[test]
fn what_is_too_long_is_refused() {
    let mut desk = Desk::new();
    let told = desk.tell(ask("CREATE").kind("queue").name(&"n".repeat(1025)));
    assert_eq!(told.outcome(), (400, "'name' has 1025 bytes; at most 1024 are allowed"));
    let told = desk.tell(ask("CREATE").kind("queue").name("q").with("x", "y".repeat(70_000)));
    assert_eq!(told.status, 400);
    assert!(told.description.contains("at most 65536 are read"), "{}", told.description);
    let names = Value::List(vec!["name".into(); 300]);
    let told = desk.tell(ask("QUERY").kind("queue").with("attributeNames", names));
    assert_eq!(told.status, 400);
    let deep = (0..20).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let told = desk.tell(ask("READ").kind("queue").name("q").with("deep", deep));
    assert_eq!(told.status, 400);
    assert!(told.description.starts_with("the request cannot be read:"), "{}", told.description);
}

#[test]
fn the_correlation_id_of_a_request_wins_over_its_message_id() {
    let desk = Desk::new();
    let mut request = ask("READ").kind("broker").0;
    let properties = request.properties_mut();
    properties.message_id = Some(MessageId::from("mine"));
    properties.correlation_id = Some(MessageId::Binary(vec![1, 2]));
    let response = desk.send(&request.to_bytes());
    assert_eq!(response.reply_to, None, "nobody waits for it");
    let message = Message::decode(&response.message).unwrap();
    let properties = message.properties.clone().unwrap();
    assert_eq!(properties.correlation_id, Some(MessageId::Binary(vec![1, 2])));
    assert_eq!(Told::read(message).status, 200);
}

#[test]
fn bytes_that_are_no_message_are_answered_with_a_status_too() {
    let desk = Desk::new();
    let request = ask("READ").kind("broker").0.to_bytes();
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n", &[0xff; 100], &request[..request.len() - 1]] {
        let response = desk.send(bytes);
        let told = Told::read(Message::decode(&response.message).unwrap());
        assert_eq!(told.status, 400, "{}", told.description);
    }
}

/// Whatever the bytes, there is a response, and it is a message.
#[test]
fn requests_with_any_byte_changed_are_answered() {
    let mut desk = Desk::new();
    desk.create("q");
    let requests = [
        ask("QUERY").kind("queue").with("attributeNames", Value::List(vec!["name".into()])),
        ask("UPDATE").kind("queue").name("q").with("qpid.max_count", 7u32),
        ask("PURGE").kind("queue").name("q").property("count", 1u32),
    ];
    for request in requests {
        let bytes = request.0.to_bytes();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x40, 0x45, 0x7f, 0x80, 0xc1, 0xd0, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let response = desk.send(&changed);
                assert!(Message::decode(&response.message).is_ok(), "byte {at} = {value:#x}");
                response.wakeups.perform();
            }
        }
    }
}
