//! What is sent and settled in transactions (part 4, 4.4).

use crate::bench::control::{accepted, control, counts, holding, texts, why, within};
use crate::bench::raw::{framed, receiving, sending};
use crate::bench::{Bench, Setup, bytes_of, text};
use mochila_broker::DeleteIf;
use mochila_broker::settings::QueueSettings;
use mochila_engine::{AttachRequest, Delivery};
use mochila_wire::performative::{Flow, Role, Transfer};
use mochila_wire::transaction::{Declare, Discharge};
use mochila_wire::{Coordinator, DeliveryState, Encode, Map, Source, Target, Value, condition};

#[test]
fn messages_sent_within_a_transaction_are_there_when_it_is_discharged() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let (sender, receiver) = (bench.sender(client, "q"), bench.receiver(client, "q", 10));
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a", "b"]);
    assert_eq!(bench.states(sender), [accepted(&id), accepted(&id)], "within the transaction");
    assert!(bench.texts(receiver).is_empty());
    assert_eq!((bench.depth("q"), bench.totals()), (0, (1, 0, 0)));
    bench.commit(controller, &id);
    assert_eq!(bench.texts(receiver), ["a", "b"]);
    assert_eq!(bench.numbers("q").msg_txn_enqueues, 2);
    assert_eq!(bench.totals(), (0, 1, 0));
    bench.expect_nothing_left();
}

#[test]
fn messages_sent_settled_and_in_pieces_belong_to_their_transaction_too() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "q");
    for fail in [true, false] {
        let id = bench.declare(controller);
        bench.post_within(sender, &id, &text("settled").to_bytes(), true);
        bench.post_within(sender, &id, &bytes_of(300_000), false);
        bench.post_within(sender, &id, &bytes_of(3_000_000), false);
        bench.run();
        assert_eq!(bench.discharge(controller, &id, fail), DeliveryState::Accepted);
        assert_eq!(bench.states(sender), [accepted(&id), accepted(&id)]);
        assert_eq!(bench.depth("q"), if fail { 0 } else { 3 });
    }
    bench.expect_nothing_left();
}

#[test]
fn what_is_rolled_back_was_never_there() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "q");
    let before = bench.node.broker.budget().used();
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a", "b"]);
    bench.roll_back(controller, &id);
    assert_eq!(bench.node.broker.budget().used(), before);
    assert_eq!(bench.numbers("q").msg_total_enqueues, 0);
    assert_eq!(bench.totals(), (0, 0, 1));
    let again = bench.discharge(controller, &id, false);
    assert_eq!(why(&again).condition, condition::TRANSACTION_UNKNOWN_ID);
}

#[test]
fn messages_accepted_and_settled_leave_with_the_commit() {
    let (mut bench, _, controller, got) = holding(&["a", "b"], Source::at("q"));
    let id = bench.declare(controller);
    bench.accept_within(&got, &id, true);
    assert_eq!(bench.depth("q"), 2);
    bench.commit(controller, &id);
    assert_eq!((bench.depth("q"), bench.numbers("q").msg_txn_dequeues), (0, 2));
    bench.expect_nothing_left();
}

#[test]
fn what_was_settled_and_is_rolled_back_was_delivered_in_vain_unless_its_source_says_otherwise() {
    // Qpid JMS settles what it accepts within a transaction, and says what failure is.
    let says = |outcome| Source { default_outcome: Some(outcome), ..Source::at("q") };
    let sources = [
        (says(DeliveryState::modified(true, false)), 1),
        (says(DeliveryState::Released), 0),
        (Source::at("q"), 1),
    ];
    for (source, delivery_count) in sources {
        let (mut bench, _, controller, got) = holding(&["a", "b", "c"], source);
        let id = bench.declare(controller);
        // Out of order, and yet they come back in theirs.
        for index in [2, 0, 1] {
            bench.accept_within(&got[index..=index], &id, true);
        }
        assert!(bench.all_of("q").is_empty());
        bench.roll_back(controller, &id);
        let again = bench.all_of("q");
        assert_eq!(texts(&again), ["a", "b", "c"]);
        assert_eq!(counts(&again), [delivery_count; 3]);
        bench.expect_nothing_left();
    }
}

#[test]
fn what_was_not_settled_is_settled_by_the_commit() {
    let (mut bench, _, controller, got) = holding(&["a", "b"], Source::at("q"));
    let id = bench.declare(controller);
    bench.accept_within(&got, &id, false);
    let unsettled = |bench: &mut Bench| {
        let record = bench.node.management.directory().connections().pop().unwrap();
        record.links().iter().map(|(_, link)| link.unsettled.get()).sum::<u64>()
    };
    assert_eq!(unsettled(&mut bench), 2);
    bench.commit(controller, &id);
    assert_eq!((bench.depth("q"), unsettled(&mut bench)), (0, 0));
    bench.expect_nothing_left();
}

#[test]
fn what_was_not_settled_is_the_receivers_again_after_a_rollback() {
    // Proton settles what it has accepted when it hears of the end of the transaction.
    let (mut bench, _, controller, got) = holding(&["a", "b", "c"], Source::at("q"));
    let id = bench.declare(controller);
    bench.accept_within(&got, &id, false);
    bench.roll_back(controller, &id);
    assert_eq!(bench.numbers("q").unacked_messages, 3, "they have not come back");
    bench.settle(&got[0], DeliveryState::Accepted);
    bench.settle(&got[1], DeliveryState::Released);
    let next = bench.declare(controller);
    bench.accept_within(&got[2..], &next, true);
    bench.commit(controller, &next);
    let again = bench.all_of("q");
    assert_eq!((texts(&again), counts(&again)), (vec!["b".to_owned()], vec![0]));
    bench.expect_nothing_left();
}

#[test]
fn a_delivery_may_be_settled_after_it_was_told_an_outcome() {
    for fail in [true, false] {
        let (mut bench, _, controller, got) = holding(&["a"], Source::at("q"));
        let id = bench.declare(controller);
        bench.accept_within(&got, &id, false);
        bench.accept_within(&got, &id, true);
        assert_eq!(bench.discharge(controller, &id, fail), DeliveryState::Accepted);
        assert_eq!(bench.all_of("q").len(), usize::from(fail));
    }
}

#[test]
fn an_outcome_outside_of_the_transaction_does_not_concern_what_is_in_it() {
    let (mut bench, _, controller, got) = holding(&["a"], Source::at("q"));
    let id = bench.declare(controller);
    bench.accept_within(&got, &id, false);
    bench.settle(&got[0], DeliveryState::Accepted);
    assert_eq!(bench.depth("q"), 1, "its transaction says what becomes of it");
    bench.roll_back(controller, &id);
    assert_eq!(bench.all_of("q").len(), 1, "it was settled, so it is nobody's now");
}

#[test]
fn every_outcome_may_be_told_within_a_transaction() {
    let bodies = ["accepted", "rejected", "released", "modified", "unsaid"];
    let (mut bench, _, controller, got) = holding(&bodies, Source::at("q"));
    let id = bench.declare(controller);
    let outcomes = [
        Some(DeliveryState::Accepted),
        Some(DeliveryState::Rejected { error: None }),
        Some(DeliveryState::Released),
        Some(DeliveryState::modified(true, false)),
        None,
    ];
    for (got, outcome) in got.iter().zip(outcomes) {
        bench.settle(got, within(&id, outcome));
    }
    assert_eq!(bench.numbers("q").unacked_messages, 5);
    bench.commit(controller, &id);
    assert_eq!(bench.numbers("q").discards_subscriber, 1);
    let again = bench.all_of("q");
    assert_eq!(texts(&again), ["released", "modified", "unsaid"]);
    assert_eq!(counts(&again), [0, 1, 0]);
}

#[test]
fn i8_a_message_is_moved_from_queue_to_queue_or_is_not() {
    for fail in [true, false] {
        let (mut bench, client, controller, got) = holding(&["a"], Source::at("q"));
        let sender = bench.sender(client, "other");
        let id = bench.declare(controller);
        bench.send_within(sender, &id, &["a"]);
        bench.accept_within(&got, &id, true);
        assert_eq!(bench.discharge(controller, &id, fail), DeliveryState::Accepted);
        let expected = if fail { (1, 0) } else { (0, 1) };
        assert_eq!((bench.depth("q"), bench.depth("other")), expected);
    }
}

#[test]
fn several_transactions_on_one_session_do_not_mix() {
    let (mut bench, client, controller, got) = holding(&["1", "2"], Source::at("q"));
    let sender = bench.sender(client, "to");
    let (first, second) = (bench.declare(controller), bench.declare(controller));
    assert_ne!(first, second);
    bench.send_within(sender, &first, &["a"]);
    bench.send_within(sender, &second, &["b"]);
    bench.send(sender, &text("c"));
    bench.accept_within(&got[..1], &first, true);
    bench.accept_within(&got[1..], &second, true);
    bench.roll_back(controller, &first);
    bench.commit(controller, &second);
    assert_eq!(texts(&bench.all_of("to")), ["c", "b"]);
    assert_eq!(texts(&bench.all_of("q")), ["1"]);
}

#[test]
fn a_delivery_that_is_in_one_transaction_cannot_be_in_another() {
    let (mut bench, client, controller, got) = holding(&["a"], Source::at("q"));
    let other = bench.controller(client);
    let (first, second) = (bench.declare(controller), bench.declare(other));
    bench.accept_within(&got, &first, false);
    bench.accept_within(&got, &second, false);
    assert_eq!(bench.detach_error(other).condition, condition::TRANSACTION_ROLLBACK);
    bench.commit(controller, &first);
    assert_eq!((bench.depth("q"), bench.totals()), (0, (0, 1, 0)));
}

#[test]
fn a_message_that_is_refused_dooms_its_transaction() {
    let mut bench = Bench::new();
    bench.create("q", |settings: &mut QueueSettings| {
        settings.max_count = Some(2);
        settings.flow_stop_count = Some(0);
    });
    let client = bench.client();
    let controller = bench.controller(client);
    let (sender, other) = (bench.sender(client, "q"), bench.sender(client, "q"));
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a", "b"]);
    bench.send_within(other, &id, &["c"]);
    assert_eq!(bench.states(sender), [accepted(&id), accepted(&id)]);
    let states = bench.states(other);
    let reason = states[0].outcome().map(why).unwrap();
    assert_eq!(reason.condition, condition::RESOURCE_LIMIT_EXCEEDED);
    let answer = bench.discharge(controller, &id, false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!((bench.depth("q"), bench.totals()), (0, (0, 0, 1)));
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a", "b"]);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 2);
}

#[test]
fn a_message_for_nobody_dooms_its_transaction() {
    let mut bench = Bench::with(|setup: &mut Setup| setup.broker.patterns.clear());
    bench.create("q", |_| {});
    let client = bench.client();
    let controller = bench.controller(client);
    let relay = Target::default().into();
    let relay = bench.attach(client, AttachRequest::sender("relay", Source::default(), relay));
    let id = bench.declare(controller);
    for to in ["q", "nowhere"] {
        let mut message = text("a");
        message.properties_mut().to = Some(to.into());
        bench.post_within(relay, &id, &message.to_bytes(), false);
    }
    bench.run();
    let states = bench.states(relay);
    let reasons: Vec<_> = states.iter().map(|it| why(it.outcome().unwrap()).condition).collect();
    assert_eq!(reasons, [condition::TRANSACTION_ROLLBACK, condition::NOT_FOUND]);
    let answer = bench.discharge(controller, &id, false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn a_queue_that_is_deleted_lets_the_commit_fail_and_deliveries_are_the_receivers_again() {
    let (mut bench, client, controller, got) = holding(&["a"], Source::at("q"));
    let sender = bench.sender(client, "gone");
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["b"]);
    bench.accept_within(&got, &id, false);
    bench.queue("gone").delete(DeleteIf::default()).unwrap().perform();
    let error = why(&bench.discharge(controller, &id, false));
    assert_eq!(error.condition, condition::TRANSACTION_ROLLBACK);
    assert!(error.description.unwrap().contains("'gone'"));
    bench.settle(&got[0], DeliveryState::Accepted);
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn i6_what_is_deleted_with_its_queue_is_not_dequeued_again_by_a_transaction() {
    for fail in [true, false] {
        let (mut bench, _, controller, got) = holding(&["a", "b"], Source::at("q"));
        let id = bench.declare(controller);
        bench.accept_within(&got[..1], &id, true);
        bench.accept_within(&got[1..], &id, false);
        bench.queue("q").delete(DeleteIf::default()).unwrap().perform();
        bench.run();
        assert_eq!(bench.discharge(controller, &id, fail), DeliveryState::Accepted);
        let total = bench.node.broker.statistics();
        assert_eq!((total.msg_total_dequeues, total.msg_txn_dequeues), (2, 0));
        bench.expect_nothing_left();
    }
}

#[test]
fn what_a_link_has_settled_is_its_transactions_when_the_link_is_gone() {
    for fail in [true, false] {
        let (mut bench, _, controller, got) = holding(&["a", "b"], Source::at("q"));
        let id = bench.declare(controller);
        bench.accept_within(&got[..1], &id, true);
        bench.accept_within(&got[1..], &id, false);
        bench.close_link(got[0].link);
        assert!(bench.all_of("q").is_empty());
        assert_eq!(bench.discharge(controller, &id, fail), DeliveryState::Accepted);
        assert_eq!(bench.all_of("q").len(), if fail { 2 } else { 0 });
        bench.expect_nothing_left();
    }
}

#[test]
fn a_request_to_management_cannot_be_in_a_transaction() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "$management");
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["anything"]);
    let told = bench.states(sender);
    assert_eq!(why(told[0].outcome().unwrap()).condition, condition::NOT_IMPLEMENTED);
}

#[test]
fn i5_acquiring_within_a_transaction_is_refused_with_a_reason() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    bench.say(raw, 0, &receiving(0, "q"));
    bench.hear(raw);
    let flow = Flow {
        handle: Some(0),
        link_credit: Some(10),
        properties: Some(Map::new().with("txn-id", Value::Binary(b"t".to_vec()))),
        ..Flow::default()
    };
    let heard = bench.ask(raw, &flow);
    assert_eq!(heard.detach().error.unwrap().condition, condition::NOT_IMPLEMENTED);
}

#[test]
fn one_disposition_settles_a_range_in_a_transaction() {
    let (mut bench, client, controller, got) = holding(&["a", "b", "c", "d"], Source::at("q"));
    let id = bench.declare(controller);
    let session = bench.session(client);
    let (first, last) = (got[0].id, got[3].id);
    bench.engine(client).settle_incoming(session, first, last, accepted(&id), true);
    bench.run();
    assert_eq!(bench.numbers("q").unacked_messages, 4);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 0);
}

#[test]
fn a_discharge_that_comes_with_what_it_discharges_counts_all_of_it() {
    // All in one piece of input, as a client writes that does not wait.
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "q");
    let id = bench.declare(controller);
    for body in ["a", "b"] {
        bench.post_within(sender, &id, &text(body).to_bytes(), false);
    }
    let discharge = Discharge { txn_id: id.clone(), fail: false };
    bench.post(controller, &Delivery::default(), &control(&discharge));
    bench.post(sender, &Delivery::default(), &text("c").to_bytes());
    bench.run();
    assert_eq!(texts(&bench.all_of("q")), ["a", "b", "c"]);
}

#[test]
fn the_state_of_the_first_frame_says_to_which_transaction_a_delivery_belongs() {
    let mut bench = Bench::new();
    let raw = bench.raw_begun();
    let mut attach = sending(0, "q");
    bench.say(raw, 0, &attach);
    attach = sending(1, "");
    attach.target = Some(Coordinator::default().into());
    bench.say(raw, 0, &attach);
    bench.hear(raw);
    let declare = Transfer {
        handle: 1,
        delivery_id: Some(0),
        delivery_tag: Some(b"d"),
        message_format: Some(0),
        ..Transfer::default()
    };
    bench.say_bytes(raw, &framed(0, &declare, &control(&Declare::default())));
    let state = bench.hear(raw).disposition().state.unwrap();
    let DeliveryState::Declared { txn_id } = state else { panic!("{state:?}") };
    let bytes = text("in two frames").to_bytes();
    let first = Transfer {
        handle: 0,
        delivery_id: Some(1),
        delivery_tag: Some(b"m"),
        message_format: Some(0),
        more: true,
        state: Some(within(&txn_id, None).into()),
        ..Transfer::default()
    };
    bench.say_bytes(raw, &framed(0, &first, &bytes[..5]));
    let second = Transfer { handle: 0, ..Transfer::default() };
    bench.say_bytes(raw, &framed(0, &second, &bytes[5..]));
    let disposition = bench.hear(raw).disposition();
    assert_eq!(disposition.state, Some(accepted(&txn_id)));
    assert_eq!((disposition.role, bench.depth("q")), (Role::Receiver, 0));
}

#[test]
fn messages_for_an_exchange_come_to_all_its_queues_with_the_commit_or_to_none() {
    let mut bench = Bench::new();
    bench.create("small", |settings| {
        settings.max_count = Some(1);
        settings.flow_stop_count = Some(0);
    });
    let fanout = bench.node.broker.exchange("amq.fanout").unwrap();
    for queue in ["small", "large"] {
        let queue = bench.node.broker.open(queue).unwrap();
        fanout.bind(bench.now, &queue, "", Map::new()).unwrap().1.perform();
    }
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "amq.fanout");
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a"]);
    assert_eq!((bench.depth("small"), bench.depth("large")), (0, 0));
    bench.roll_back(controller, &id);
    assert_eq!((bench.depth("small"), bench.depth("large")), (0, 0));
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a", "b"]);
    bench.states(sender);
    bench.commit(controller, &id);
    assert_eq!((bench.depth("small"), bench.depth("large")), (1, 2), "one had no room for it");
    let gone = bench.declare(controller);
    bench.send_within(sender, &gone, &["c"]);
    bench.node.broker.delete("large", DeleteIf::default()).unwrap().perform();
    bench.queue("small").purge(bench.now, u64::MAX).1.perform();
    let state = bench.discharge(controller, &gone, false);
    assert_eq!(why(&state).condition, condition::TRANSACTION_ROLLBACK, "one was full, one is gone");
    assert_eq!(bench.depth("small"), 0);
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["d", "e"]);
    let state = bench.discharge(controller, &id, false);
    assert_eq!(why(&state).condition, condition::TRANSACTION_ROLLBACK, "nobody had room");
    bench.expect_nothing_left();
}
