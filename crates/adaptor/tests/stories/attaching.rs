//! Attaching: which node an address is, and what is answered.

use crate::bench::raw::{receiving, sending, whole};
use crate::bench::{Bench, text};
use mochila_broker::{BrokerSettings, Pattern, QueueSettings};
use mochila_engine::AttachRequest;
use mochila_wire::performative::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
use mochila_wire::terminus::{DISTRIBUTION_MOVE, TerminusDurability};
use mochila_wire::{
    AmqpError, Array, DeliveryState, Described, Encode, Map, Source, Symbol, Target, Value,
    condition,
};

/// A node on which no address becomes a queue by itself.
fn closed_bench() -> Bench {
    Bench::with(|setup| setup.broker.patterns = Vec::new())
}

/// Expects an attach to be refused as part 2, 2.6.3 says, and returns why.
pub(crate) fn refused(bench: &mut Bench, attach: &Attach) -> AmqpError {
    let raw = bench.raw_begun();
    let heard = bench.ask(raw, attach);
    assert_eq!(heard.names(), ["attach", "detach"]);
    match attach.role {
        Role::Sender => assert_eq!(heard.attach().target, None),
        Role::Receiver => assert_eq!(heard.attach().source, None),
    }
    assert_eq!(heard.attach().name, attach.name);
    assert!(heard.detach().closed);
    heard.detach().error.expect("an error")
}

#[test]
fn an_address_becomes_a_queue_when_somebody_attaches_to_it() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.sender(client, "from-sender");
    bench.receiver(client, "from-receiver", 0);
    assert_eq!(bench.queue_names(), ["from-receiver", "from-sender"]);
}

#[test]
fn an_address_that_no_pattern_names_is_not_found() {
    let mut bench = closed_bench();
    for attach in [receiving(0, "nowhere"), sending(0, "nowhere")] {
        let error = refused(&mut bench, &attach);
        assert_eq!(error.condition, condition::NOT_FOUND);
        assert!(error.description.unwrap().contains("'nowhere'"));
    }
    bench.expect_nothing_left();
}

#[test]
fn the_most_specific_pattern_decides_what_an_address_becomes() {
    let small = QueueSettings { max_count: Some(7), ..QueueSettings::default() };
    let patterns =
        vec![Pattern::new("test.*", QueueSettings::default()), Pattern::new("test.small.*", small)];
    let mut bench = Bench::with(|setup| {
        setup.broker = BrokerSettings { patterns, ..BrokerSettings::default() };
    });
    let client = bench.client();
    bench.sender(client, "test.a");
    bench.sender(client, "test.small.a");
    assert_eq!(bench.queue("test.small.a").limits().max_count, 7);
    assert_ne!(bench.queue("test.a").limits().max_count, 7);
    assert_eq!(refused(&mut bench, &sending(0, "other")).condition, condition::NOT_FOUND);
}

#[test]
fn names_of_the_nodes_own_are_not_found_either() {
    let mut bench = Bench::new();
    for attach in [receiving(0, "$cbs"), sending(0, "$cbs")] {
        assert_eq!(refused(&mut bench, &attach).condition, condition::NOT_FOUND);
    }
}

#[test]
fn a_name_that_cannot_be_one_is_an_invalid_field() {
    let mut bench = Bench::new();
    let long = "x".repeat(2_000);
    for name in ["a\nb", &long] {
        assert_eq!(refused(&mut bench, &sending(0, name)).condition, condition::INVALID_FIELD);
    }
}

#[test]
fn a_source_without_address_is_an_invalid_field() {
    let mut bench = Bench::new();
    let mut attach = receiving(0, "");
    attach.source = Some(Source::default());
    let error = refused(&mut bench, &attach);
    assert_eq!(error.condition, condition::INVALID_FIELD);
    assert!(error.description.unwrap().contains("address"));
}

#[test]
fn a_null_source_is_refused_as_the_end_of_a_subscription_that_is_not_there() {
    let mut bench = Bench::new();
    let attach = Attach { source: None, ..receiving(0, "subscription") };
    let error = refused(&mut bench, &attach);
    assert_eq!(error.condition, condition::NOT_FOUND);
    assert!(error.description.unwrap().contains("'receiver-0-subscription'"));
}

#[test]
fn a_null_target_is_refused() {
    let mut bench = Bench::new();
    let error = refused(&mut bench, &Attach { target: None, ..sending(0, "q") });
    assert_eq!(error.condition, condition::INVALID_FIELD);
}

#[test]
fn a_capability_may_be_one_symbol_or_an_array_and_is_echoed() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let forms = [
        Value::Symbol("queue".into()),
        Value::Array(Array::of_symbols(["queue".into(), "other".into()])),
    ];
    for (handle, capabilities) in (0u32..).zip(forms) {
        let fields = [&[Value::from("q")][..], &vec![Value::Null; 9], &[capabilities]].concat();
        let source = Described { descriptor: Value::Ulong(0x28), value: Value::List(fields) };
        let attach = Value::from(Described {
            descriptor: Value::Ulong(0x12),
            value: Value::List(vec![
                Value::String(format!("link-{handle}")),
                Value::Uint(handle),
                Value::Bool(true),
                Value::Null,
                Value::Null,
                source.into(),
            ]),
        });
        let answer = bench.ask(raw, &attach).attach();
        assert_eq!(answer.source.unwrap().capabilities, ["queue"]);
    }
}

#[test]
fn a_node_is_made_on_demand_as_its_properties_say_and_they_are_echoed() {
    let mut bench = closed_bench();
    let client = bench.client();
    let mut properties =
        Map::new().with("qpid.max_count", 5u32).with("supported-dist-modes", "move");
    properties.insert("exclusive", false);
    let mut target = Target::at("made");
    target.capabilities = vec!["create-on-demand".into(), "queue".into()];
    target.dynamic_node_properties = Some(properties);
    let request = AttachRequest::sender("l", Source::default(), target.into());
    let link = bench.attach(client, request);
    let answer = bench.answer(link);
    let target = answer.target.as_ref().and_then(|t| t.target()).unwrap().clone();
    assert_eq!(target.address.as_deref(), Some("made"));
    assert_eq!(target.capabilities, ["create-on-demand", "queue"]);
    let properties = target.dynamic_node_properties.unwrap();
    assert_eq!(properties.get("qpid.max_count"), Some(&Value::Ulong(5)));
    assert_eq!(bench.queue("made").limits().max_count, 5);
}

#[test]
fn an_address_that_a_pattern_names_becomes_what_its_first_link_says_upon_the_pattern() {
    let small = QueueSettings { max_count: Some(7), ..QueueSettings::default() };
    let mut bench =
        Bench::with(|setup| setup.broker.patterns = vec![Pattern::new("small.*", small)]);
    let client = bench.client();
    let mut source = Source::at("small.groups");
    source.dynamic_node_properties = Some(Map::new().with("qpid.shared_msg_group", 1u32));
    let link = bench.receiver_of(client, source.clone(), 0);
    let properties = bench.answer(link).source.unwrap().dynamic_node_properties.unwrap();
    assert_eq!(properties.get("qpid.shared_msg_group"), Some(&Value::Bool(true)));
    assert_eq!(bench.queue("small.groups").limits().max_count, 7);
    bench.close_link(link);
    assert_eq!(bench.queue_names(), ["small.groups"], "it stays, as others of the pattern do");

    let mut made = Source::at("small.made");
    made.capabilities = vec!["create-on-demand".into()];
    bench.receiver_of(client, made, 0);
    assert_eq!(bench.queue("small.made").limits().max_count, 7, "whoever asks for it by word, too");

    source.address = Some("small.wrong".into());
    source.dynamic_node_properties = Some(Map::new().with("qpid.shared_msg_gruop", 1u32));
    let attach = Attach { source: Some(source), ..receiving(0, "small.wrong") };
    let error = refused(&mut bench, &attach);
    assert_eq!(error.condition, condition::INVALID_FIELD);
    assert_eq!(bench.queue_names(), ["small.groups", "small.made"]);
}

#[test]
fn a_node_that_is_there_is_used_as_it_is() {
    let mut bench = closed_bench();
    bench.create("there", |settings| settings.max_count = Some(9));
    let client = bench.client();
    let mut source = Source::at("there");
    source.capabilities = vec!["create-on-demand".into()];
    source.dynamic_node_properties = Some(Map::new().with("qpid.max_count", 5u32));
    let link = bench.receiver_of(client, source, 0);
    let properties = bench.answer(link).source.unwrap().dynamic_node_properties.unwrap();
    assert_eq!(properties.get("qpid.max_count"), Some(&Value::Ulong(9)), "what is in force");
}

#[test]
fn an_unknown_argument_of_a_node_is_named_in_the_refusal() {
    let mut bench = closed_bench();
    let mut target = Target::at("made");
    target.capabilities = vec!["create-on-demand".into()];
    target.dynamic_node_properties = Some(Map::new().with("qpid.max_cuont", 5u32));
    let error = refused(&mut bench, &Attach { target: Some(target.into()), ..sending(0, "made") });
    assert_eq!(error.condition, condition::INVALID_FIELD);
    assert!(error.description.unwrap().contains("'qpid.max_cuont'"));
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_topic_that_is_not_there_is_not_found_and_does_not_become_a_queue() {
    let mut bench = Bench::new();
    for capability in ["topic", "temporary-topic"] {
        let mut attach = receiving(0, "news");
        attach.source.as_mut().unwrap().capabilities = vec![Symbol::from_static(capability)];
        assert_eq!(refused(&mut bench, &attach).condition, condition::NOT_FOUND);
    }
    assert_eq!(bench.queue_names(), [""; 0], "nothing was made in passing");
}

#[test]
fn filters_are_read_in_either_form_and_answered_if_they_are_in_force() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let selector = |descriptor: Value| Value::from(Described { descriptor, value: "a = 1".into() });
    let filters = [
        Map::new().with("jms-selector", selector(Value::Ulong(0x0000_468c_0000_0004))),
        Map::new().with(
            "jms-selector",
            selector(Value::Symbol("apache.org:selector-filter:string".into())),
        ),
        Map::new().with(
            "no-local",
            Described {
                descriptor: Value::Symbol("apache.org:no-local-filter:list".into()),
                value: Value::List(Vec::new()),
            },
        ),
        Map::new().with("anything", "not even described"),
    ];
    let unknown = filters.len() - 1;
    for (handle, filter) in filters.into_iter().enumerate() {
        let mut attach = receiving(handle as u32, "q");
        attach.source.as_mut().unwrap().filter = Some(filter.clone());
        let source = bench.ask(raw, &attach).attach().source.unwrap();
        let expected = (handle != unknown).then_some(filter);
        assert_eq!(source.filter, expected, "a filter that is not answered is not in force");
    }
}

#[test]
fn the_answer_says_what_is_in_force_on_a_source() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut attach = receiving(0, "q");
    let source = attach.source.as_mut().unwrap();
    source.durable = TerminusDurability::UnsettledState;
    let answer = bench.ask(raw, &attach).attach();
    assert_eq!(answer.snd_settle_mode, SenderSettleMode::Unsettled, "mixed was asked for");
    assert_eq!(answer.initial_delivery_count, Some(0));
    let source = answer.source.unwrap();
    assert_eq!(source.address.as_deref(), Some("q"));
    assert_eq!(source.distribution_mode, Some(DISTRIBUTION_MOVE));
    assert_eq!(source.default_outcome, Some(DeliveryState::Released));
    assert_eq!(source.durable, TerminusDurability::None, "nothing survives a restart yet");
    let outcomes: Vec<_> = source.outcomes.iter().map(Symbol::as_str).collect();
    let known = ["accepted", "rejected", "released", "modified"];
    assert_eq!(outcomes, known.map(|name| format!("amqp:{name}:list")));
}

#[test]
fn settle_modes_are_granted_as_asked() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut attach = receiving(0, "q");
    attach.snd_settle_mode = SenderSettleMode::Settled;
    attach.rcv_settle_mode = ReceiverSettleMode::Second;
    let answer = bench.ask(raw, &attach).attach();
    assert_eq!(answer.snd_settle_mode, SenderSettleMode::Settled);
    assert_eq!(answer.rcv_settle_mode, ReceiverSettleMode::Second);
    let mut attach = sending(1, "q");
    attach.rcv_settle_mode = ReceiverSettleMode::Second;
    assert_eq!(bench.ask(raw, &attach).attach().rcv_settle_mode, ReceiverSettleMode::Second);
}

#[test]
fn a_suspended_links_deliveries_are_answered_we_have_none_of_them() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut unsettled = Map::new();
    unsettled.insert(b"tag".to_vec(), Value::Null);
    for attach in [receiving(0, "q"), sending(1, "q")] {
        let attach = Attach { unsettled: Some(unsettled.clone()), ..attach };
        let answer = bench.ask(raw, &attach).attach();
        assert_eq!(answer.unsettled, Some(Map::new()));
        assert!(!answer.incomplete_unsettled);
    }
    assert_eq!(bench.ask(raw, &sending(2, "q")).attach().unsettled, None, "nobody asked");
}

#[test]
fn a_resumed_delivery_that_we_do_not_know_is_ignored() {
    let mut bench = Bench::with(|setup| setup.settings.credit_window = 2);
    let raw = bench.raw_sender("q");
    for id in 0..10 {
        let mut transfer = whole(0, id);
        transfer.resume = true;
        bench.say_with(raw, 0, &transfer, &text("old").to_bytes());
    }
    let heard = bench.hear(raw);
    assert!(heard.dispositions().is_empty() && heard.detaches().is_empty());
    assert!(!heard.flows().is_empty(), "the credit comes back");
    bench.say_with(raw, 0, &whole(0, 10), &text("new").to_bytes());
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn n12_a_sender_and_a_receiver_may_have_the_same_name() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = AttachRequest::sender("same", Source::default(), Target::at("q").into());
    let receiver = AttachRequest::receiver("same", Source::at("q"), Target::default().into());
    let (sender, receiver) = (bench.attach(client, sender), bench.attach(client, receiver));
    bench.grant(receiver, 1);
    bench.send(sender, &text("hello"));
    assert_eq!(bench.texts(receiver), ["hello"]);
}

#[test]
fn an_exclusive_consumer_keeps_others_out_until_it_is_gone() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut source = Source::at("q");
    source.dynamic_node_properties = Some(Map::new().with("exclusive", true));
    let exclusive = bench.receiver_of(client, source, 1);
    let other = bench.client();
    let late = bench.receiver(other, "q", 1);
    let error = bench.detach_error(late);
    assert_eq!(error.condition, condition::RESOURCE_LOCKED);
    assert!(error.description.unwrap().contains("'q'"));
    bench.close_link(exclusive);
    let late = bench.receiver(other, "q", 1);
    assert_eq!(bench.detached(late), None);
}

#[test]
fn an_exclusive_queue_belongs_to_the_connection_that_consumes_first() {
    let mut bench = Bench::new();
    bench.create("mine", |settings| settings.exclusive = true);
    let (owner, other) = (bench.client(), bench.client());
    bench.receiver(owner, "mine", 1);
    let again = bench.receiver(owner, "mine", 1);
    assert_eq!(bench.detached(again), None, "the owner may consume twice");
    let denied = bench.receiver(other, "mine", 1);
    assert_eq!(bench.detach_error(denied).condition, condition::RESOURCE_LOCKED);
    let sender = bench.sender(other, "mine");
    assert_eq!(bench.detached(sender), None, "everybody may send");
    bench.kill(owner);
    let late = bench.receiver(other, "mine", 1);
    assert_eq!(bench.detached(late), None);
}
