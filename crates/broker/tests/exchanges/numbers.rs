//! The numbers that messages get at an exchange.

use crate::bench::{Bench, message};
use mochila_broker::{ExchangeKind, SharedQueue};
use mochila_wire::{Message, Value};

#[test]
fn messages_get_numbers_of_their_exchange() {
    let mut bench = Bench::new();
    let direct = bench.exchange_with("e", |settings| {
        settings.kind = ExchangeKind::Direct;
        settings.sequences = true;
    });
    let (a, b) = (bench.bind(&direct, "a", "a"), bench.bind(&direct, "b", "b"));
    bench.publish(&direct, &["a", "b", "b"]);
    let mut annotated = message("a");
    annotated.set_message_annotation("x-opt-mine", 5u32);
    bench.publish_all(&direct, None, vec![annotated]);
    let numbers = |queue: &SharedQueue| -> Vec<Value> {
        let messages = bench.messages(queue);
        let number = |message: &Message| {
            message.message_annotations.as_ref().unwrap().get("qpid.msg_sequence").unwrap().clone()
        };
        messages.iter().map(number).collect()
    };
    assert_eq!(numbers(&a), [Value::Long(1), Value::Long(4)]);
    assert_eq!(numbers(&b), [Value::Long(2), Value::Long(3)]);
    let last = bench.messages(&a).pop().unwrap().message_annotations.unwrap();
    assert_eq!(last.get("x-opt-mine"), Some(&Value::Uint(5)));
    bench.purge(&a);
    bench.purge(&b);
}
